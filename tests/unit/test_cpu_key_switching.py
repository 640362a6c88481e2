"""Fused key switching and rescale against the reference kernels, step by step."""

from collections.abc import Iterator
from dataclasses import replace
from functools import cache

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from test_cpu_transforms import MACHINE, needs_fma, random

from fhelium.kernels import basis, key_switching, pointwise
from fhelium.kernels.automorphism import automorphism
from fhelium.kernels.cpu.ciphertexts import Division, KeySwitch
from fhelium.kernels.cpu.host import Host
from fhelium.kernels.cpu.products import CHUNK
from fhelium.kernels.ring import Ring
from fhelium.scheme.parameters import Parameters
from fhelium.scheme.primes import ntt_primes

Tensor = torch.Tensor
pytestmark = needs_fma


@pytest.fixture(params=[1, 2])
def threads(request: pytest.FixtureRequest) -> Iterator[int]:
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


@cache
def parameters_of(log_n: int, depth: int, digits: int, bits: float) -> Parameters:
    return Parameters.build(
        ring_degree=1 << log_n, depth=depth, scale_bits=bits, digits=digits, insecure=True
    )


class Level:
    """One level of parameters: its plans, and what the reference computes."""

    def __init__(
        self,
        ring: Ring,
        digits: tuple[tuple[int, ...], ...],
        special: tuple[int, ...],
        machine: Host | None = MACHINE,
    ) -> None:
        assert machine is not None
        self.ring, self.digits, self.special = ring, digits, special
        self.limbs = tuple(limb for digit in digits for limb in digit)
        self.raised = (*self.limbs, *special)
        self.machine = machine
        self.plan = KeySwitch(ring, machine, digits, special, self.limbs)

    def decompose(self, component: Tensor) -> list[Tensor]:
        return key_switching.decompose(self.ring, self.limbs, self.digits, self.special, component)

    def switch(self, digits: list[Tensor], key: Tensor) -> Tensor:
        return key_switching.apply_key(self.ring, self.limbs, self.special, digits, key)

    def relinearized(self, x: Tensor, key: Tensor) -> Tensor:
        switched = self.switch(self.decompose(x[..., 2:3, :, :]), key)
        return pointwise.add(self.ring, self.limbs, x[..., :2, :, :], switched)

    def rotated(self, x: Tensor, element: int, key: Tensor) -> Tensor:
        moved = automorphism(self.ring, self.limbs, x, element, "evaluation")
        switched = self.switch(self.decompose(moved[..., 1:2, :, :]), key)
        return pointwise.add(self.ring, self.limbs, switched, moved[..., :1, :, :])

    def hoisted(self, x: Tensor, element: int, key: Tensor) -> Tensor:
        digits = [
            automorphism(self.ring, self.raised, digit, element, "evaluation")
            for digit in self.decompose(x[..., 1:2, :, :])
        ]
        first = automorphism(self.ring, self.limbs, x[..., :1, :, :], element, "evaluation")
        return pointwise.add(self.ring, self.limbs, self.switch(digits, key), first)

    def check(self, x: Tensor, keys: list[Tensor]) -> None:
        """Compare everything that three components and two keys can go through."""
        before, pair, elements = x.clone(), x[..., :2, :, :], [5, 2 * self.ring.ring_degree - 1]
        assert torch.equal(self.plan.relinearize(x, keys[0]), self.relinearized(x, keys[0]))
        for element in elements:
            expected = self.rotated(pair, element, keys[0])
            assert torch.equal(self.plan.rotate(pair, element, keys[0]), expected)
        results = self.plan.rotate_many(pair, elements, keys)
        for result, element, key in zip(results, elements, keys, strict=True):
            assert torch.equal(result, self.hoisted(pair, element, key))
        if len(self.limbs) > 1:
            self.check_divisions(x, keys[0])
        assert torch.equal(x, before)

    def check_divisions(self, x: Tensor, key: Tensor) -> None:
        """Drop the last limb, alone and together with the special ones."""
        kept, dropped = self.limbs[:-1], self.limbs[-1:]
        division = Division(self.ring, self.machine, kept, dropped)
        expected = key_switching.divide(self.ring, self.limbs, kept, x)
        assert torch.equal(division.rescale(x), expected)
        fused = KeySwitch(self.ring, self.machine, self.digits, self.special, kept)
        pair = basis.scale_up(self.ring, self.limbs, self.raised, x[..., :2, :, :])
        numerator = pointwise.add(self.ring, self.raised, pair, self.product(x, key))
        expected = key_switching.divide(self.ring, self.raised, kept, numerator)
        assert torch.equal(fused.relinearize(x, key), expected)

    def product(self, x: Tensor, key: Tensor) -> Tensor:
        every = tuple(range(len(self.ring.primes)))
        digits = self.decompose(x[..., 2:3, :, :])
        return key_switching.key_product(self.ring, self.raised, digits, key, every)


def level_of(parameters: Parameters, level: int) -> Level:
    return Level(parameters.ring, parameters.digit_limbs(level), parameters.p_limbs)


def keys_of(parameters: Parameters) -> list[Tensor]:
    every = tuple(range(len(parameters.primes)))
    key = random(parameters.ring, every, parameters.digits, 2)
    return [key, key.flip(-1) % parameters.ring.moduli(every, torch.device("cpu"))]


@pytest.mark.parametrize("batch", [(), (2, 2), (0,)])
@pytest.mark.parametrize(
    ("log_n", "depth", "digits", "bits"),
    [
        (4, 4, 3, 30),
        pytest.param(3, 2, 2, 22, marks=pytest.mark.long),
        pytest.param(4, 3, 2, 60, marks=pytest.mark.long),
        pytest.param(6, 6, 2, 40, marks=pytest.mark.long),
        pytest.param(8, 4, 5, 49, marks=pytest.mark.long),
    ],
)
def test_every_level_has_the_bits_of_the_reference(
    log_n: int, depth: int, digits: int, bits: float, batch: tuple[int, ...]
) -> None:
    parameters = parameters_of(log_n, depth, digits, bits)
    keys = keys_of(parameters)
    for level in range(parameters.max_level + 1):
        at = level_of(parameters, level)
        at.check(random(parameters.ring, at.limbs, *batch, 3), keys)


@pytest.mark.usefixtures("threads")
def test_threads_share_a_batch() -> None:
    parameters = parameters_of(9, 3, 2, 40)
    at = level_of(parameters, 3)
    x, (key, _) = random(parameters.ring, at.limbs, 5, 3), keys_of(parameters)
    assert torch.equal(at.plan.relinearize(x, key), at.relinearized(x, key))


@pytest.mark.long
@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize("log_n", [13, 14])
def test_a_ring_of_several_cached_blocks(log_n: int) -> None:
    parameters = parameters_of(log_n, 3, 2, 45)
    at = level_of(parameters, 3)
    at.check(random(parameters.ring, at.limbs, 3), keys_of(parameters))


@pytest.mark.parametrize(
    "width",
    [
        pytest.param(1, marks=pytest.mark.long),
        pytest.param(2, marks=pytest.mark.long),
        4,
    ],
)
def test_other_vectors_have_the_same_bits(width: int) -> None:
    parameters = parameters_of(5, 3, 2, 40)
    assert MACHINE is not None
    machine = replace(MACHINE, width=width)
    at = Level(parameters.ring, parameters.digit_limbs(3), parameters.p_limbs, machine)
    at.check(random(parameters.ring, at.limbs, 2, 3), keys_of(parameters))


@given(st.integers(0, 1 << 30))
@settings(deadline=None, max_examples=10)
def test_the_largest_primes_and_residues_at_the_edges(seed: int) -> None:
    """With more digits than are summed between two reductions."""
    degree, count = 16, 2 * CHUNK + 5
    ring = Ring(degree, ntt_primes(50, degree, count + 1))
    limbs, special = tuple(range(count)), (count,)
    digits = tuple(limbs[i : i + 2] for i in range(0, count, 2))
    generator = torch.Generator().manual_seed(seed)
    q = ring.moduli((*limbs, *special), torch.device("cpu"))
    values = torch.cat([0 * q, 0 * q + 1, q // 2, q - 1, q - 1], dim=1)

    def edges(*shape: int) -> Tensor:
        picks = torch.randint(0, 5, (*shape, count + 1, degree), generator=generator)
        return values.expand(*shape, count + 1, 5).gather(-1, picks)

    x = edges(3)[..., :count, :].contiguous()
    Level(ring, digits, special).check(x, [edges(len(digits), 2), edges(len(digits), 2)])


def test_sums_of_many_digits_are_reduced_in_time() -> None:
    """Every digit is 1 and the key odd and just below q / 2: sums would pass 2^53."""
    degree, count = 16, 4 * CHUNK
    ring = Ring(degree, ntt_primes(49.99, degree, count + 1))
    limbs, every = tuple(range(count)), tuple(range(count + 1))
    q = ring.moduli(every, torch.device("cpu"))
    x = torch.ones(3, count, degree, dtype=torch.int64)
    odd = 2 * torch.randint(0, 1 << 10, (count, 2, count + 1, degree)) + 1
    key = q // 2 - odd
    Level(ring, tuple((limb,) for limb in limbs), (count,)).check(x, [key, key])


@pytest.mark.parametrize("batch", [(), (2,)])
def test_in_place_results_lie_in_the_operand(batch: tuple[int, ...]) -> None:
    parameters = parameters_of(9, 3, 2, 40)
    at, (key, _) = level_of(parameters, 3), keys_of(parameters)
    x = random(parameters.ring, at.limbs, *batch, 3)
    pair = x[..., :2, :, :].clone(memory_format=torch.contiguous_format)
    expected = at.rotated(pair, 5, key), at.relinearized(x, key)
    rotated = at.plan.rotate(pair, 5, key, in_place=True)
    assert rotated.data_ptr() == pair.data_ptr()
    assert torch.equal(rotated, expected[0])
    relinearized = at.plan.relinearize(x, key, in_place=True)
    assert (relinearized.data_ptr() == x.data_ptr()) == (batch == ())
    assert torch.equal(relinearized, expected[1])
    # What is not contiguous is left alone.
    wide = random(parameters.ring, at.limbs, *batch, 3)
    part = wide[..., :2, :, :]
    if batch:
        before = wide.clone()
        result = at.plan.rotate(part, 5, key, in_place=True)
        assert torch.equal(result, at.rotated(part, 5, key))
        assert torch.equal(wide, before)


def test_wrong_inputs_are_refused() -> None:
    parameters = parameters_of(9, 3, 2, 40)
    at, (key, _) = level_of(parameters, 3), keys_of(parameters)
    x = random(parameters.ring, at.limbs, 2)
    with pytest.raises(ValueError, match="x has 2 components, expected 3"):
        at.plan.relinearize(x, key)
    with pytest.raises(ValueError, match="got 2 digits; the key has 1, use 1 or more"):
        at.plan.rotate(x, 5, key[:1])
    with pytest.raises(ValueError, match="key has shape"):
        at.plan.rotate(x, 5, key[..., :-1, :])
    with pytest.raises(ValueError, match="a polynomial over these limbs"):
        at.plan.rotate(x[..., :-1, :], 5, key)
    with pytest.raises(TypeError, match=r"residues are torch.int64"):
        at.plan.rotate(x.double(), 5, key)
    with pytest.raises(ValueError, match="x is on meta, expected cpu like the key: move it"):
        at.plan.rotate(x.to("meta"), 5, key)
