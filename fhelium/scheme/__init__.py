"""CKKS mathematics and the client: parameters, encoding, keys, encryption, files."""
