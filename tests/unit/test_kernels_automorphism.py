"""X -> X^g against substitution in Python integers; both forms agree."""

import pytest
import torch

from fhelium.kernels.automorphism import automorphism
from fhelium.kernels.galois import conjugation_element, galois_element
from fhelium.kernels.ntt import ntt
from fhelium.kernels.ring import Ring
from fhelium.scheme.primes import ntt_primes

LIMBS = (0, 2)


def _case(degree: int) -> tuple[Ring, torch.Tensor]:
    ring = Ring(degree, ntt_primes(50, degree, 3))
    generator = torch.Generator().manual_seed(degree)
    x = torch.randint(0, min(ring.primes), (3, 2, 2, degree), generator=generator)
    x[..., 0] = 0
    return ring, x


@pytest.mark.parametrize("degree", [2, 8, 64])
def test_coefficient_form_substitutes(degree: int) -> None:
    ring, x = _case(degree)
    before = x.clone()
    for g in range(1, 2 * degree, 2):
        expected = torch.zeros_like(x)
        for position, limb in enumerate(LIMBS):
            q = ring.primes[limb]
            for k in range(degree):
                sign = 1 if k * g % (2 * degree) < degree else -1
                moved = (sign * x[..., position, k]) % q
                expected[..., position, k * g % degree] = moved
        assert torch.equal(automorphism(ring, LIMBS, x, g, "coefficient"), expected)
    assert torch.equal(x, before)


@pytest.mark.parametrize("degree", [2, 8, 64, 1024])
def test_forms_agree(degree: int) -> None:
    ring, x = _case(degree)
    y = ntt(ring, LIMBS, x)
    for g in (1, 3, 5, -1, galois_element(3, degree), conjugation_element(degree)):
        moved = automorphism(ring, LIMBS, x, g, "coefficient")
        assert torch.equal(ntt(ring, LIMBS, moved), automorphism(ring, LIMBS, y, g, "evaluation"))


def test_galois_elements_compose() -> None:
    ring, x = _case(32)
    for form in ("coefficient", "evaluation"):
        left = automorphism(ring, LIMBS, x, galois_element(5, 32), form)
        back = automorphism(ring, LIMBS, left, galois_element(-5, 32), form)
        assert torch.equal(back, x)
    assert galois_element(0, 32) == 1
    assert galois_element(3, 32) == galois_element(3 - 16, 32) == 125 % 64
    assert conjugation_element(32) == 63


def test_refusals() -> None:
    ring, x = _case(8)
    with pytest.raises(ValueError, match="Galois element 4 is even"):
        automorphism(ring, LIMBS, x, 4, "coefficient")
    with pytest.raises(ValueError, match="form is 'slots'; expected"):
        automorphism(ring, LIMBS, x, 5, "slots")
