"""The `torch` family: implementations that run on any device, and define what the ops mean."""
