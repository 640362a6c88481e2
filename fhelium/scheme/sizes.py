"""How many bytes ciphertexts and keys take in memory. Imports no torch.

A file adds a header to the tensor, and holds half of a public or switching key: the other half is
a seed.
"""

from fhelium.scheme.parameters import Parameters

_RESIDUE_BYTES = 8


def ciphertext_bytes(parameters: Parameters, level: int | None = None) -> int:
    """Return the size of a ciphertext of 2 components, by default at the top level."""
    level = parameters.max_level if level is None else level
    return 2 * len(parameters.q_limbs(level)) * parameters.ring_degree * _RESIDUE_BYTES


def public_key_bytes(parameters: Parameters) -> int:
    """Return the size of a public key: that of a fresh ciphertext."""
    return ciphertext_bytes(parameters)


def switching_key_bytes(parameters: Parameters) -> int:
    """Return the size of one relinearization, rotation or conjugation key."""
    digits = len(parameters.digit_limbs(parameters.max_level))
    return digits * 2 * len(parameters.primes) * parameters.ring_degree * _RESIDUE_BYTES
