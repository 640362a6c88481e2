"""Every op of the `ckks` dialect as one call: the same bits as its lowering to `rns`, unlowered."""

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction

import torch
from xdsl.ir import Operation

from fhelium.backend.invocation import OperationInvocation
from fhelium.backend.resources import PARAMETERS_RESOURCE_KIND, BoundResource, ResourceRequirement
from fhelium.dialects import ckks
from fhelium.dialects.ckks.parameters import PARAMETERS
from fhelium.kernels import basis, pointwise
from fhelium.kernels.automorphism import automorphism
from fhelium.kernels.galois import conjugation_element, galois_element
from fhelium.kernels.key_switching import apply_key, decompose, divide
from fhelium.kernels.ntt import intt, ntt
from fhelium.kernels.ring import Ring
from fhelium.passes.implementation_families import FAMILIES
from fhelium.scheme.keys import SwitchingKey
from fhelium.scheme.parameters import Parameters

Tensor = torch.Tensor


@dataclass(frozen=True)
class Call:
    """One call of a whole op: the parameters, what the op says, its operands and its keys."""

    parameters: Parameters
    invocation: OperationInvocation
    inputs: tuple[Tensor, ...]
    resources: tuple[BoundResource, ...]

    @property
    def keys(self) -> tuple[Tensor, ...]:
        """The tensors of the switching keys among the operands."""
        return tuple(r.value.data for r in self.resources if isinstance(r.value, SwitchingKey))

    @property
    def ring(self) -> Ring:
        """The ring over all primes."""
        return self.parameters.ring

    @property
    def x(self) -> Tensor:
        """The first operand."""
        return self.inputs[0]

    @property
    def limbs(self) -> tuple[int, ...]:
        """The limbs of the operands."""
        limbs = self.invocation.operand_prime_ids[0]
        assert limbs is not None
        return limbs

    @property
    def result_limbs(self) -> tuple[int, ...]:
        """The limbs of the results."""
        limbs = self.invocation.result_prime_ids[0]
        assert limbs is not None
        return limbs

    @property
    def form(self) -> str:
        """The form of the first operand."""
        return str(self.invocation.attributes["form"])

    def scaled(self, scale: Fraction) -> int:
        """The op's number, encoded at a scale."""
        value = self.invocation.attributes["value"]
        assert isinstance(value, int | float)
        return round(Fraction(value) * scale)

    def scale(self, name: str) -> Fraction:
        """The scale of the first operand or result."""
        scales = self.invocation.attributes[name]
        assert isinstance(scales, tuple)
        return Fraction(scales[0])


def _decompose(call: Call, component: Tensor) -> list[Tensor]:
    digits = call.parameters.digit_limbs(call.parameters.level_of(call.limbs))
    return decompose(call.ring, call.limbs, digits, call.parameters.p_limbs, component)


def _switch(call: Call, digits: list[Tensor], key: Tensor) -> Tensor:
    return apply_key(call.ring, call.limbs, call.parameters.p_limbs, digits, key)


def _relinearize(call: Call) -> Tensor:
    switched = _switch(call, _decompose(call, call.x[..., 2:3, :, :]), call.keys[0])
    return pointwise.add(call.ring, call.limbs, call.x[..., :2, :, :], switched)


def _apply_automorphism(call: Call, element: int) -> Tensor:
    moved = automorphism(call.ring, call.limbs, call.x, element, "evaluation")
    switched = _switch(call, _decompose(call, moved[..., 1:2, :, :]), call.keys[0])
    return pointwise.add(call.ring, call.limbs, switched, moved[..., :1, :, :])


def _rotate(call: Call) -> Tensor:
    step = call.invocation.attributes["step"]
    assert isinstance(step, int)
    return _apply_automorphism(call, galois_element(step, call.parameters.ring_degree))


def _conjugate(call: Call) -> Tensor:
    return _apply_automorphism(call, conjugation_element(call.parameters.ring_degree))


def _rotate_many(call: Call) -> tuple[Tensor, ...]:
    steps = call.invocation.attributes["steps"]
    assert isinstance(steps, tuple)
    raised = (*call.limbs, *call.parameters.p_limbs)
    digits = _decompose(call, call.x[..., 1:2, :, :])
    results: list[Tensor] = []
    for step, key in zip(steps, call.keys, strict=True):
        element = galois_element(step, call.parameters.ring_degree)
        moved = [automorphism(call.ring, raised, d, element, "evaluation") for d in digits]
        first = automorphism(call.ring, call.limbs, call.x[..., :1, :, :], element, "evaluation")
        switched = _switch(call, moved, key)
        results.append(pointwise.add(call.ring, call.limbs, switched, first))
    return tuple(results)


def _weighted_sum(call: Call) -> Tensor:
    half = len(call.inputs) // 2
    return pointwise.weighted_sum(call.ring, call.limbs, call.inputs[:half], call.inputs[half:])


def _add(call: Call) -> Tensor:
    return pointwise.add(call.ring, call.limbs, *call.inputs)


def _subtract(call: Call) -> Tensor:
    return pointwise.subtract(call.ring, call.limbs, *call.inputs)


def _multiply(call: Call) -> Tensor:
    return pointwise.multiply(call.ring, call.limbs, *call.inputs)


def _multiply_constant(call: Call, constant: int) -> Tensor:
    return pointwise.multiply_constant(call.ring, call.limbs, call.x, constant)


Kernel = Callable[[Call], Tensor | tuple[Tensor, ...]]

KERNELS: dict[type[Operation], Kernel] = {
    ckks.AddOp: _add,
    ckks.SubOp: _subtract,
    ckks.NegateOp: lambda c: pointwise.negate(c.ring, c.limbs, c.x),
    ckks.AddPlainOp: _add,
    ckks.SubPlainOp: _subtract,
    ckks.MulOp: _multiply,
    ckks.SquareOp: lambda c: pointwise.square(c.ring, c.limbs, c.x),
    ckks.MulPlainOp: _multiply,
    ckks.WeightedSumOp: _weighted_sum,
    ckks.AddScalarOp: lambda c: pointwise.add_constant(
        c.ring, c.limbs, c.x, c.scaled(c.scale("operand_scales")), c.form
    ),
    ckks.MulScalarOp: lambda c: _multiply_constant(
        c, c.scaled(c.scale("result_scales") / c.scale("operand_scales"))
    ),
    ckks.MulIntegerOp: lambda c: _multiply_constant(c, c.scaled(Fraction(1))),
    ckks.RelinearizeOp: _relinearize,
    ckks.RescaleOp: lambda c: divide(c.ring, c.limbs, c.result_limbs, c.x, c.form),
    ckks.ModSwitchOp: lambda c: basis.project(c.x, c.limbs, c.result_limbs),
    ckks.RotateOp: _rotate,
    ckks.RotateManyOp: _rotate_many,
    ckks.ConjugateOp: _conjugate,
    ckks.ToEvaluationOp: lambda c: ntt(c.ring, c.limbs, c.x),
    ckks.ToCoefficientOp: lambda c: intt(c.ring, c.limbs, c.x),
}


@dataclass(frozen=True)
class TorchCiphertextImplementation:
    """Run one ckks op whole, under the program's parameters."""

    name: str
    operation_types: tuple[type[Operation], ...]
    kernel: Kernel = field(repr=False)
    supports_in_place: bool = False

    def resource_requirements(
        self, invocation: OperationInvocation
    ) -> tuple[ResourceRequirement, ...]:
        """Ask for the parameters."""
        return (ResourceRequirement(PARAMETERS, PARAMETERS_RESOURCE_KIND),)

    def execute(
        self,
        invocation: OperationInvocation,
        inputs: tuple[Tensor, ...],
        resources: tuple[BoundResource, ...],
        /,
        *,
        in_place: bool,
    ) -> tuple[Tensor, ...]:
        """Run the op; `resources` are its keys, then the parameters."""
        if in_place:
            raise ValueError(f"{self.name} does not run in place")
        parameters = resources[-1].value
        assert isinstance(parameters, Parameters)
        result = self.kernel(Call(parameters, invocation, inputs, resources))
        return result if isinstance(result, tuple) else (result,)


def ciphertext_contributions() -> tuple[TorchCiphertextImplementation, ...]:
    """Return one implementation for each op of the `ckks` dialect."""
    return tuple(
        TorchCiphertextImplementation(FAMILIES["torch"][operation.name], (operation,), kernel)
        for operation, kernel in KERNELS.items()
    )
