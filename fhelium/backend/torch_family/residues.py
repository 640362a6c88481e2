"""Every op of the `rns` dialect on torch tensors, by the reference kernels."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import torch
from xdsl.ir import Operation

from fhelium.backend.invocation import OperationInvocation
from fhelium.backend.resources import RING_RESOURCE_KIND, BoundResource, ResourceRequirement
from fhelium.dialects import rns
from fhelium.kernels import basis, pointwise
from fhelium.kernels.automorphism import automorphism
from fhelium.kernels.key_product import key_product
from fhelium.kernels.ntt import intt, ntt
from fhelium.kernels.ring import Ring
from fhelium.passes.implementation_families import FAMILIES
from fhelium.scheme.keys import SwitchingKey

Tensor = torch.Tensor
Bound = Callable[..., Tensor]
"""A kernel that is bound to a call: a function of the operands."""

RING = "ckks.ring"
"""The symbol under which implementations ask for the ring."""


@dataclass(frozen=True)
class Call:
    """What a kernel is bound to before its operands come: the ring and what the op says."""

    ring: Ring
    invocation: OperationInvocation
    resources: tuple[BoundResource, ...]

    def limbs(self, operand: int = 0) -> tuple[int, ...]:
        """The prime ids of an operand."""
        limbs = self.invocation.operand_prime_ids[operand]
        assert limbs is not None
        return limbs

    @property
    def result_limbs(self) -> tuple[int, ...]:
        """The prime ids of the result."""
        limbs = self.invocation.result_prime_ids[0]
        assert limbs is not None
        return limbs

    def integer(self, name: str) -> int:
        """An integer attribute."""
        value = self.invocation.attributes[name]
        assert isinstance(value, int)
        return value

    @property
    def every_limb(self) -> tuple[int, ...]:
        """The limbs of a key: all of them."""
        return tuple(range(len(self.ring.primes)))

    @property
    def key(self) -> Tensor:
        """The tensor of the switching key among the operands."""
        key = self.resources[0].value
        assert isinstance(key, SwitchingKey)
        return key.data

    @property
    def form(self) -> str:
        """The form of the first operand."""
        return str(self.invocation.attributes["form"])


def unary(function: Callable[..., Tensor], ring: Ring, limbs: tuple[int, ...]) -> Bound:
    """Return `function(ring, limbs, x)` as a function of x, which is faster than a `partial`."""

    def call(x: Tensor, in_place: bool = False) -> Tensor:
        return function(ring, limbs, x, in_place=True) if in_place else function(ring, limbs, x)

    return call


def binary(function: Callable[..., Tensor], ring: Ring, limbs: tuple[int, ...]) -> Bound:
    """Return `function(ring, limbs, x, y)` as a function of x and y."""

    def call(x: Tensor, y: Tensor, in_place: bool = False) -> Tensor:
        if in_place:
            return function(ring, limbs, x, y, in_place=True)
        return function(ring, limbs, x, y)

    return call


def on_halves(function: Callable[..., Tensor], ring: Ring, limbs: tuple[int, ...]) -> Bound:
    """Return a function of two lists of one length as one of their concatenation."""

    def call(*inputs: Tensor) -> Tensor:
        half = len(inputs) // 2
        return function(ring, limbs, inputs[:half], inputs[half:])

    return call


def on_key(function: Callable[..., Tensor], call: Call) -> Bound:
    """Return a product with a switching key as a function of the digits."""
    ring, limbs, key, every_limb = call.ring, call.limbs(), call.key, call.every_limb
    return lambda *digits: function(ring, limbs, digits, key, every_limb)


def _components(call: Call) -> Bound:
    part = (..., slice(call.integer("start"), call.integer("stop")), slice(None), slice(None))
    return lambda x: x[part]


def _moduli(call: Call) -> Bound:
    return partial(call.ring.moduli, call.result_limbs, torch.device("cpu"))


def _project(call: Call) -> Bound:
    limbs, target_limbs = call.limbs(), call.result_limbs
    return lambda x: basis.project(x, limbs, target_limbs)


Kernel = Callable[[Call], Bound]
"""Binds a kernel to a call: what it returns takes the operands."""

KERNELS: dict[type[Operation], Kernel] = {
    rns.ModuliOp: _moduli,
    rns.AddOp: lambda c: binary(pointwise.add, c.ring, c.limbs()),
    rns.SubOp: lambda c: binary(pointwise.subtract, c.ring, c.limbs()),
    rns.NegateOp: lambda c: unary(pointwise.negate, c.ring, c.limbs()),
    rns.MulOp: lambda c: binary(pointwise.multiply, c.ring, c.limbs()),
    rns.SquareOp: lambda c: unary(pointwise.square, c.ring, c.limbs()),
    rns.WeightedSumOp: lambda c: on_halves(pointwise.weighted_sum, c.ring, c.limbs()),
    rns.AddConstantOp: lambda c: partial(
        pointwise.add_constant, c.ring, c.limbs(), constant=c.integer("constant"), form=c.form
    ),
    rns.MulConstantOp: lambda c: partial(
        pointwise.multiply_constant, c.ring, c.limbs(), constant=c.integer("constant")
    ),
    rns.NttOp: lambda c: unary(ntt, c.ring, c.limbs()),
    rns.InttOp: lambda c: unary(intt, c.ring, c.limbs()),
    rns.ProjectOp: _project,
    rns.ModUpOp: lambda c: partial(basis.mod_up, c.ring, c.limbs(), c.result_limbs),
    rns.ScaleUpOp: lambda c: partial(basis.scale_up, c.ring, c.limbs(), c.result_limbs),
    rns.ModDownOp: lambda c: partial(basis.mod_down, c.ring, c.limbs(), c.result_limbs),
    rns.ComponentsOp: _components,
    rns.KeyProductOp: partial(on_key, key_product),
    rns.AutomorphismOp: lambda c: partial(
        automorphism, c.ring, c.limbs(), galois_element=c.integer("galois_element"), form=c.form
    ),
}


@dataclass(frozen=True)
class TorchResidueImplementation:
    """Run one rns op by its reference kernel, on the ring of the program's parameters."""

    name: str
    operation_types: tuple[type[Operation], ...]
    kernel: Kernel = field(repr=False)
    supports_in_place: bool = False

    def resource_requirements(
        self, invocation: OperationInvocation
    ) -> tuple[ResourceRequirement, ...]:
        """Ask for the ring."""
        return (ResourceRequirement(RING, RING_RESOURCE_KIND),)

    def prepare(
        self,
        invocation: OperationInvocation,
        resources: tuple[BoundResource, ...],
        /,
        *,
        in_place: bool,
    ) -> Bound:
        """Bind the kernel; the ring comes last in `resources`."""
        if in_place and not self.supports_in_place:
            raise ValueError(f"{self.name} does not run in place")
        ring = resources[-1].value
        assert isinstance(ring, Ring)
        prepared = self.kernel(Call(ring, invocation, resources))
        return partial(prepared, in_place=True) if in_place else prepared

    def execute(
        self,
        invocation: OperationInvocation,
        inputs: tuple[Tensor, ...],
        resources: tuple[BoundResource, ...],
        /,
        *,
        in_place: bool,
    ) -> tuple[Tensor, ...]:
        """Bind the kernel and run it."""
        return (self.prepare(invocation, resources, in_place=in_place)(*inputs),)


def residue_contributions() -> tuple[TorchResidueImplementation, ...]:
    """Return one implementation for each op of the `rns` dialect."""
    return tuple(
        TorchResidueImplementation(FAMILIES["torch"][operation.name], (operation,), kernel)
        for operation, kernel in KERNELS.items()
    )
