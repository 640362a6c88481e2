"""Random residues to run ops on."""

import torch

from fhelium.kernels.ring import Ring


def random_residues(ring: Ring, limbs: tuple[int, ...], *shape: int) -> torch.Tensor:
    """Return residues `[..., limbs, N]`."""
    x = torch.empty(*shape, len(limbs), ring.ring_degree, dtype=torch.int64)
    for position, limb in enumerate(limbs):
        x[..., position, :].random_(ring.primes[limb])
    return x
