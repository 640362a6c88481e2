"""FHElium: a compiler toolkit and distributed runtime for CKKS homomorphic encryption."""
