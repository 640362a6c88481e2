"""The key product against Python integers."""

import pytest
import torch

from fhelium.kernels.key_product import key_product
from fhelium.kernels.ring import Ring
from fhelium.scheme.primes import ntt_primes

N = 8
RING = Ring(N, ntt_primes(50, N, 5))
KEY_LIMBS = (0, 1, 2, 3, 4)


def _largest(limbs: tuple[int, ...], *shape: int) -> torch.Tensor:
    """Residues q - 1 and, at random places, others."""
    generator = torch.Generator().manual_seed(len(limbs))
    parts = []
    for limb in limbs:
        q = RING.primes[limb]
        values = torch.randint(0, q, (*shape, N), generator=generator)
        parts.append(torch.where(torch.rand(*shape, N, generator=generator) < 0.5, values, q - 1))
    return torch.stack(parts, dim=-2)


@pytest.mark.parametrize("limbs", [KEY_LIMBS, (0, 1, 3, 4), (0, 4)])
@pytest.mark.parametrize("count", [1, 3])
def test_sums_digit_times_row(limbs: tuple[int, ...], count: int) -> None:
    key = _largest(KEY_LIMBS, 3, 2)
    digits = [_largest(limbs, 2, 1) for _ in range(count)]
    result = key_product(RING, limbs, digits, key, KEY_LIMBS)
    assert result.shape == (2, 2, len(limbs), N)
    for batch in range(2):
        for component in range(2):
            for position, limb in enumerate(limbs):
                for k in range(N):
                    expected = sum(
                        int(digits[j][batch, 0, position, k]) * int(key[j, component, limb, k])
                        for j in range(count)
                    )
                    found = int(result[batch, component, position, k])
                    assert found == expected % RING.primes[limb]


def test_many_digits_of_the_largest_residues() -> None:
    q = RING.moduli(KEY_LIMBS, torch.device("cpu"))
    row = (q - 1).expand(-1, N)
    key = row.expand(500, 2, -1, -1)
    result = key_product(RING, KEY_LIMBS, [row.unsqueeze(0)] * 500, key, KEY_LIMBS)
    assert torch.equal(result, torch.full_like(result, 500))


def test_refusals() -> None:
    key = torch.zeros(2, 2, 5, N, dtype=torch.int64)
    digit = torch.zeros(1, 5, N, dtype=torch.int64)
    with pytest.raises(ValueError, match="got 3 digits; the key has 2"):
        key_product(RING, KEY_LIMBS, [digit] * 3, key, KEY_LIMBS)
    with pytest.raises(ValueError, match="got 0 digits"):
        key_product(RING, KEY_LIMBS, [], key, KEY_LIMBS)
    with pytest.raises(ValueError, match=r"digit has shape \[1, 5, 8\]"):
        key_product(RING, (0, 4), [digit], key, KEY_LIMBS)
    with pytest.raises(ValueError, match=r"limbs \[3, 4\] are not among"):
        key_product(RING, KEY_LIMBS, [digit], key[:, :, :3], (0, 1, 2))
