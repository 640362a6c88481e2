"""The ops of the `rns` dialect that have a generated kernel."""

from dataclasses import dataclass
from functools import partial

from xdsl.ir import Operation

from fhelium.backend.cpu_family.loading import load_kernels
from fhelium.backend.invocation import OperationInvocation
from fhelium.backend.resources import BoundResource
from fhelium.backend.torch_family import residues as reference
from fhelium.backend.torch_family.residues import (
    Bound,
    Kernel,
    TorchResidueImplementation,
    binary,
    on_halves,
    on_key,
    unary,
)
from fhelium.dialects import rns
from fhelium.kernels.cpu import operations
from fhelium.kernels.cpu.sizes import SizeError
from fhelium.kernels.ring import Ring
from fhelium.passes.implementation_families import FAMILIES, IN_PLACE

KERNELS: dict[type[Operation], Kernel] = {
    rns.AddOp: lambda c: binary(operations.add, c.ring, c.limbs()),
    rns.SubOp: lambda c: binary(operations.subtract, c.ring, c.limbs()),
    rns.NegateOp: lambda c: unary(operations.negate, c.ring, c.limbs()),
    rns.MulOp: lambda c: binary(operations.multiply, c.ring, c.limbs()),
    rns.SquareOp: lambda c: unary(operations.square, c.ring, c.limbs()),
    rns.WeightedSumOp: lambda c: on_halves(operations.weighted_sum, c.ring, c.limbs()),
    rns.AddConstantOp: lambda c: partial(
        operations.add_constant, c.ring, c.limbs(), constant=c.integer("constant"), form=c.form
    ),
    rns.MulConstantOp: lambda c: partial(
        operations.multiply_constant, c.ring, c.limbs(), constant=c.integer("constant")
    ),
    rns.NttOp: lambda c: unary(operations.ntt, c.ring, c.limbs()),
    rns.InttOp: lambda c: unary(operations.intt, c.ring, c.limbs()),
    rns.ModUpOp: lambda c: partial(operations.mod_up, c.ring, c.limbs(), c.result_limbs),
    rns.ScaleUpOp: lambda c: partial(operations.scale_up, c.ring, c.limbs(), c.result_limbs),
    rns.ModDownOp: lambda c: partial(operations.mod_down, c.ring, c.limbs(), c.result_limbs),
    rns.KeyProductOp: partial(on_key, operations.key_product),
    rns.AutomorphismOp: lambda c: partial(
        operations.automorphism,
        c.ring,
        c.limbs(),
        galois_element=c.integer("galois_element"),
        form=c.form,
    ),
}


@dataclass(frozen=True)
class CpuResidueImplementation(TorchResidueImplementation):
    """Run one rns op by its generated kernel; where none can run, by the reference kernel."""

    only_by_name: bool = True
    """It runs an op that asks for it, and leaves the others to the `torch` family."""

    def prepare(
        self,
        invocation: OperationInvocation,
        resources: tuple[BoundResource, ...],
        /,
        *,
        in_place: bool,
    ) -> Bound:
        """Bind the kernel and load it; the ring comes last in `resources`."""
        ring = resources[-1].value
        assert isinstance(ring, Ring)
        try:
            prepared = super().prepare(invocation, resources, in_place=in_place)
            load_kernels(self.name, prepared, ring, invocation, resources, in_place=in_place)
        except SizeError:
            (operation,) = self.operation_types
            return reference.KERNELS[operation](reference.Call(ring, invocation, resources))
        return prepared


def cpu_contributions() -> tuple[CpuResidueImplementation, ...]:
    """Return one implementation for each op of the `rns` dialect that has a generated kernel."""
    names = FAMILIES["cpu"]
    return tuple(
        CpuResidueImplementation(
            names[operation.name],
            (operation,),
            kernel,
            supports_in_place=names[operation.name] in IN_PLACE,
        )
        for operation, kernel in KERNELS.items()
    )
