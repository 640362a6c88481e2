"""The ops of the `rns` dialect that have a generated kernel."""

from dataclasses import dataclass

from xdsl.ir import Operation

from fhelium.backend.torch_family.residues import Kernel, TorchResidueImplementation
from fhelium.dialects import rns
from fhelium.kernels.cpu import operations
from fhelium.passes.implementation_families import FAMILIES

KERNELS: dict[type[Operation], Kernel] = {
    rns.AddOp: lambda c: operations.add(c.ring, c.limbs(), *c.inputs),
    rns.SubOp: lambda c: operations.subtract(c.ring, c.limbs(), *c.inputs),
    rns.NegateOp: lambda c: operations.negate(c.ring, c.limbs(), *c.inputs),
    rns.MulOp: lambda c: operations.multiply(c.ring, c.limbs(), *c.inputs),
    rns.SquareOp: lambda c: operations.square(c.ring, c.limbs(), *c.inputs),
    rns.WeightedSumOp: lambda c: operations.weighted_sum(c.ring, c.limbs(), *c.halves),
    rns.AddConstantOp: lambda c: operations.add_constant(
        c.ring, c.limbs(), c.inputs[0], c.integer("constant"), c.form
    ),
    rns.MulConstantOp: lambda c: operations.multiply_constant(
        c.ring, c.limbs(), c.inputs[0], c.integer("constant")
    ),
    rns.NttOp: lambda c: operations.ntt(c.ring, c.limbs(), c.inputs[0]),
    rns.InttOp: lambda c: operations.intt(c.ring, c.limbs(), c.inputs[0]),
    rns.ModUpOp: lambda c: operations.mod_up(c.ring, c.limbs(), c.result_limbs, c.inputs[0]),
    rns.ScaleUpOp: lambda c: operations.scale_up(c.ring, c.limbs(), c.result_limbs, c.inputs[0]),
    rns.ModDownOp: lambda c: operations.mod_down(c.ring, c.limbs(), c.result_limbs, *c.inputs),
    rns.KeyProductOp: lambda c: operations.key_product(
        c.ring, c.limbs(), c.inputs, c.key, c.every_limb
    ),
    rns.AutomorphismOp: lambda c: operations.automorphism(
        c.ring, c.limbs(), c.inputs[0], c.integer("galois_element"), c.form
    ),
}


@dataclass(frozen=True)
class CpuResidueImplementation(TorchResidueImplementation):
    """Run one rns op by its generated kernel; where none can run, by the reference kernel."""

    only_by_name: bool = True
    """It runs an op that asks for it, and leaves the others to the `torch` family."""


def cpu_contributions() -> tuple[CpuResidueImplementation, ...]:
    """Return one implementation for each op of the `rns` dialect that has a generated kernel."""
    return tuple(
        CpuResidueImplementation(FAMILIES["cpu"][operation.name], (operation,), kernel)
        for operation, kernel in KERNELS.items()
    )
