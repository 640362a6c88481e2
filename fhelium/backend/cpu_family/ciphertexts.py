"""Ops of the `ckks` dialect as one call of generated kernels, which keep their temporaries to
themselves. The bits are those of the `torch` family."""

from dataclasses import dataclass
from functools import partial

import torch
from xdsl.ir import Operation

from fhelium.backend.cpu_family.loading import load_kernels
from fhelium.backend.invocation import OperationInvocation
from fhelium.backend.registry import PreparedCall
from fhelium.backend.resources import BoundResource
from fhelium.backend.torch_family import ciphertexts as reference
from fhelium.backend.torch_family.ciphertexts import (
    Call,
    Kernel,
    TorchCiphertextImplementation,
    add_scalar,
    multiply_integer,
    multiply_scalar,
)
from fhelium.backend.torch_family.residues import binary, on_halves, unary
from fhelium.dialects import ckks
from fhelium.kernels.cpu import operations
from fhelium.kernels.cpu.ciphertexts import Division, KeySwitch
from fhelium.kernels.cpu.host import host
from fhelium.kernels.cpu.sizes import SizeError
from fhelium.kernels.galois import conjugation_element, galois_element
from fhelium.passes.implementation_families import FAMILIES, IN_PLACE
from fhelium.scheme.parameters import Parameters

Tensor = torch.Tensor


def _key_switch(call: Call) -> KeySwitch | None:
    """Return the plan of an op that switches keys; None where no kernel can run."""
    machine = host()
    if machine is None or any(not key.is_cpu for key in call.keys):
        return None
    parameters = call.parameters
    digits = parameters.digit_limbs(parameters.level_of(call.limbs))
    return KeySwitch(call.ring, machine, digits, parameters.p_limbs, call.result_limbs)


def _relinearize(operation: type[Operation], call: Call) -> PreparedCall:
    """Bind a relinearization; a rescale in the same op is division by more limbs."""
    plan = _key_switch(call)
    if plan is None:
        return _without_in_place(reference.KERNELS[operation](call))
    return partial(plan.relinearize, key=call.keys[0])


def _rotate(call: Call) -> PreparedCall:
    step = call.invocation.attributes["step"]
    assert isinstance(step, int)
    return _automorphism(call, ckks.RotateOp, galois_element(step, call.parameters.ring_degree))


def _conjugate(call: Call) -> PreparedCall:
    element = conjugation_element(call.parameters.ring_degree)
    return _automorphism(call, ckks.ConjugateOp, element)


def _automorphism(call: Call, operation: type[Operation], element: int) -> PreparedCall:
    plan = _key_switch(call)
    if plan is None:
        return _without_in_place(reference.KERNELS[operation](call))
    return partial(plan.rotate, element=element, key=call.keys[0])


def _rotate_many(call: Call) -> PreparedCall:
    plan = _key_switch(call)
    if plan is None:
        return reference.KERNELS[ckks.RotateManyOp](call)
    steps, keys = call.invocation.attributes["steps"], call.keys
    assert isinstance(steps, tuple)
    elements = [galois_element(step, call.parameters.ring_degree) for step in steps]

    def run(x: Tensor) -> Tensor | tuple[Tensor, ...]:
        results = plan.rotate_many(x, elements, keys)
        return results[0] if len(results) == 1 else results

    return run


def _rescale(call: Call) -> PreparedCall:
    machine, fallback = host(), reference.KERNELS[ckks.RescaleOp](call)
    if machine is None or call.form != "evaluation":
        return fallback
    kept = call.result_limbs
    division = Division(call.ring, machine, kept, call.limbs[len(kept) :])
    return lambda x: division.rescale(x) if x.is_cpu else fallback(x)


def _without_in_place(prepared: PreparedCall) -> PreparedCall:
    """Return a call that may run in place and does not."""
    return lambda x, in_place=False: prepared(x)


KERNELS: dict[type[Operation], Kernel] = {
    ckks.AddOp: lambda c: binary(operations.add, c.ring, c.limbs),
    ckks.SubOp: lambda c: binary(operations.subtract, c.ring, c.limbs),
    ckks.NegateOp: lambda c: unary(operations.negate, c.ring, c.limbs),
    ckks.AddPlainOp: lambda c: binary(operations.add, c.ring, c.limbs),
    ckks.SubPlainOp: lambda c: binary(operations.subtract, c.ring, c.limbs),
    ckks.MulOp: lambda c: binary(operations.multiply, c.ring, c.limbs),
    ckks.SquareOp: lambda c: unary(operations.square, c.ring, c.limbs),
    ckks.MulPlainOp: lambda c: binary(operations.multiply, c.ring, c.limbs),
    ckks.WeightedSumOp: lambda c: on_halves(operations.weighted_sum, c.ring, c.limbs),
    ckks.AddScalarOp: partial(add_scalar, operations.add_constant),
    ckks.MulScalarOp: partial(multiply_scalar, operations.multiply_constant),
    ckks.MulIntegerOp: partial(multiply_integer, operations.multiply_constant),
    ckks.RelinearizeOp: partial(_relinearize, ckks.RelinearizeOp),
    ckks.RelinearizeRescaleOp: partial(_relinearize, ckks.RelinearizeRescaleOp),
    ckks.RescaleOp: _rescale,
    ckks.RotateOp: _rotate,
    ckks.RotateManyOp: _rotate_many,
    ckks.ConjugateOp: _conjugate,
    ckks.ToEvaluationOp: lambda c: unary(operations.ntt, c.ring, c.limbs),
    ckks.ToCoefficientOp: lambda c: unary(operations.intt, c.ring, c.limbs),
}


@dataclass(frozen=True)
class CpuCiphertextImplementation(TorchCiphertextImplementation):
    """Run one ckks op whole by generated kernels; where none can run, by the reference."""

    only_by_name: bool = True
    """It runs an op that asks for it, and leaves the others to the `torch` family."""

    def prepare(
        self,
        invocation: OperationInvocation,
        resources: tuple[BoundResource, ...],
        /,
        *,
        in_place: bool,
    ) -> PreparedCall:
        """Bind the op and load its kernels; `resources` are its keys, then the parameters."""
        parameters = resources[-1].value
        assert isinstance(parameters, Parameters)
        ring = parameters.ring
        try:
            prepared = super().prepare(invocation, resources, in_place=in_place)
            load_kernels(self.name, prepared, ring, invocation, resources, in_place=in_place)
        except SizeError:
            (operation,) = self.operation_types
            return reference.KERNELS[operation](Call(parameters, invocation, resources))
        return prepared


def cpu_ciphertext_contributions() -> tuple[CpuCiphertextImplementation, ...]:
    """Return one implementation for each op of the `ckks` dialect that has generated kernels."""
    names = FAMILIES["cpu"]
    return tuple(
        CpuCiphertextImplementation(
            names[operation.name],
            (operation,),
            kernel,
            supports_in_place=names[operation.name] in IN_PLACE,
        )
        for operation, kernel in KERNELS.items()
    )
