"""What passes find out about programs before they rewrite them."""
