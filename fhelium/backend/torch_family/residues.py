"""Every op of the `rns` dialect on torch tensors, by the reference kernels."""

from collections.abc import Callable
from dataclasses import dataclass, field

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

RING = "ckks.ring"
"""The symbol under which implementations ask for the ring."""


@dataclass(frozen=True)
class Call:
    """One call of a kernel: the ring, what the op says, and its operands."""

    ring: Ring
    invocation: OperationInvocation
    inputs: tuple[Tensor, ...]
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
    def halves(self) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
        """The operands of an op that takes two lists of one length."""
        half = len(self.inputs) // 2
        return self.inputs[:half], self.inputs[half:]

    @property
    def form(self) -> str:
        """The form of the first operand."""
        return str(self.invocation.attributes["form"])

    @property
    def device(self) -> torch.device:
        """Where the op runs: the device of its first operand, or the CPU for a constant."""
        return self.inputs[0].device if self.inputs else torch.device("cpu")


def _components(call: Call) -> Tensor:
    return call.inputs[0][..., call.integer("start") : call.integer("stop"), :, :]


Kernel = Callable[[Call], Tensor]

KERNELS: dict[type[Operation], Kernel] = {
    rns.ModuliOp: lambda c: c.ring.moduli(c.result_limbs, c.device),
    rns.AddOp: lambda c: pointwise.add(c.ring, c.limbs(), *c.inputs),
    rns.SubOp: lambda c: pointwise.subtract(c.ring, c.limbs(), *c.inputs),
    rns.NegateOp: lambda c: pointwise.negate(c.ring, c.limbs(), *c.inputs),
    rns.MulOp: lambda c: pointwise.multiply(c.ring, c.limbs(), *c.inputs),
    rns.SquareOp: lambda c: pointwise.square(c.ring, c.limbs(), *c.inputs),
    rns.WeightedSumOp: lambda c: pointwise.weighted_sum(c.ring, c.limbs(), *c.halves),
    rns.AddConstantOp: lambda c: pointwise.add_constant(
        c.ring, c.limbs(), c.inputs[0], c.integer("constant"), c.form
    ),
    rns.MulConstantOp: lambda c: pointwise.multiply_constant(
        c.ring, c.limbs(), c.inputs[0], c.integer("constant")
    ),
    rns.NttOp: lambda c: ntt(c.ring, c.limbs(), c.inputs[0]),
    rns.InttOp: lambda c: intt(c.ring, c.limbs(), c.inputs[0]),
    rns.ProjectOp: lambda c: basis.project(c.inputs[0], c.limbs(), c.result_limbs),
    rns.ModUpOp: lambda c: basis.mod_up(c.ring, c.limbs(), c.result_limbs, c.inputs[0]),
    rns.ScaleUpOp: lambda c: basis.scale_up(c.ring, c.limbs(), c.result_limbs, c.inputs[0]),
    rns.ModDownOp: lambda c: basis.mod_down(c.ring, c.limbs(), c.result_limbs, *c.inputs),
    rns.ComponentsOp: _components,
    rns.KeyProductOp: lambda c: key_product(c.ring, c.limbs(), c.inputs, c.key, c.every_limb),
    rns.AutomorphismOp: lambda c: automorphism(
        c.ring, c.limbs(), c.inputs[0], c.integer("galois_element"), c.form
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

    def execute(
        self,
        invocation: OperationInvocation,
        inputs: tuple[Tensor, ...],
        resources: tuple[BoundResource, ...],
        /,
        *,
        in_place: bool,
    ) -> tuple[Tensor, ...]:
        """Run the kernel; the ring comes last in `resources`."""
        if in_place:
            raise ValueError(f"{self.name} does not run in place")
        ring = resources[-1].value
        assert isinstance(ring, Ring)
        return (self.kernel(Call(ring, invocation, inputs, resources)),)


def residue_contributions() -> tuple[TorchResidueImplementation, ...]:
    """Return one implementation for each op of the `rns` dialect."""
    return tuple(
        TorchResidueImplementation(FAMILIES["torch"][operation.name], (operation,), kernel)
        for operation, kernel in KERNELS.items()
    )
