"""Every op of the `ckks` dialect as one call: the same bits as its lowering to `rns`, unlowered."""

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial

import torch
from xdsl.ir import Operation

from fhelium.backend.invocation import OperationInvocation
from fhelium.backend.registry import PreparedCall
from fhelium.backend.resources import PARAMETERS_RESOURCE_KIND, BoundResource, ResourceRequirement
from fhelium.backend.torch_family.residues import Bound, binary, on_halves, unary
from fhelium.dialects import ckks
from fhelium.dialects.ckks.parameters import PARAMETERS
from fhelium.kernels import basis, pointwise
from fhelium.kernels.automorphism import automorphism
from fhelium.kernels.galois import conjugation_element, galois_element
from fhelium.kernels.key_product import key_product
from fhelium.kernels.key_switching import apply_key, decompose, divide
from fhelium.kernels.ntt import intt, ntt
from fhelium.kernels.ring import Ring
from fhelium.passes.implementation_families import FAMILIES
from fhelium.scheme.keys import SwitchingKey
from fhelium.scheme.parameters import Parameters

Tensor = torch.Tensor


@dataclass(frozen=True)
class Call:
    """What a whole op is bound to before its operands come: parameters, what it says, its keys."""

    parameters: Parameters
    invocation: OperationInvocation
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


def _relinearize(call: Call, x: Tensor) -> Tensor:
    switched = _switch(call, _decompose(call, x[..., 2:3, :, :]), call.keys[0])
    return pointwise.add(call.ring, call.limbs, x[..., :2, :, :], switched)


def _relinearize_rescale(call: Call, x: Tensor) -> Tensor:
    raised = (*call.limbs, *call.parameters.p_limbs)
    digits = _decompose(call, x[..., 2:3, :, :])
    every_limb = tuple(range(len(call.ring.primes)))
    product = key_product(call.ring, raised, digits, call.keys[0], every_limb)
    term = basis.scale_up(call.ring, call.limbs, raised, x[..., :2, :, :])
    total = pointwise.add(call.ring, raised, term, product)
    return divide(call.ring, raised, call.result_limbs, total)


def _apply_automorphism(call: Call, element: int, x: Tensor) -> Tensor:
    moved = automorphism(call.ring, call.limbs, x, element, "evaluation")
    switched = _switch(call, _decompose(call, moved[..., 1:2, :, :]), call.keys[0])
    return pointwise.add(call.ring, call.limbs, switched, moved[..., :1, :, :])


def _rotate(call: Call) -> Bound:
    step = call.invocation.attributes["step"]
    assert isinstance(step, int)
    return partial(_apply_automorphism, call, galois_element(step, call.parameters.ring_degree))


def _conjugate(call: Call) -> Bound:
    return partial(_apply_automorphism, call, conjugation_element(call.parameters.ring_degree))


def _rotate_many(call: Call, x: Tensor) -> Tensor | tuple[Tensor, ...]:
    steps = call.invocation.attributes["steps"]
    assert isinstance(steps, tuple)
    raised = (*call.limbs, *call.parameters.p_limbs)
    digits = _decompose(call, x[..., 1:2, :, :])
    results: list[Tensor] = []
    for step, key in zip(steps, call.keys, strict=True):
        element = galois_element(step, call.parameters.ring_degree)
        moved = [automorphism(call.ring, raised, d, element, "evaluation") for d in digits]
        first = automorphism(call.ring, call.limbs, x[..., :1, :, :], element, "evaluation")
        switched = _switch(call, moved, key)
        results.append(pointwise.add(call.ring, call.limbs, switched, first))
    return results[0] if len(results) == 1 else tuple(results)


def _mod_switch(call: Call) -> Bound:
    limbs, target_limbs = call.limbs, call.result_limbs
    return lambda x: basis.project(x, limbs, target_limbs)


def add_scalar(function: Callable[..., Tensor], call: Call) -> Bound:
    """Bind a sum with the op's number, at the scale of the operand."""
    constant = call.scaled(call.scale("operand_scales"))
    return partial(function, call.ring, call.limbs, constant=constant, form=call.form)


def multiply_scalar(function: Callable[..., Tensor], call: Call) -> Bound:
    """Bind a product with the op's number, at the scale that the product adds."""
    constant = call.scaled(call.scale("result_scales") / call.scale("operand_scales"))
    return partial(function, call.ring, call.limbs, constant=constant)


def multiply_integer(function: Callable[..., Tensor], call: Call) -> Bound:
    """Bind a product with the op's integer."""
    return partial(function, call.ring, call.limbs, constant=call.scaled(Fraction(1)))


Kernel = Callable[[Call], PreparedCall]
"""Binds an op to a call: what it returns takes the operands, and returns one or several results."""

KERNELS: dict[type[Operation], Kernel] = {
    ckks.AddOp: lambda c: binary(pointwise.add, c.ring, c.limbs),
    ckks.SubOp: lambda c: binary(pointwise.subtract, c.ring, c.limbs),
    ckks.NegateOp: lambda c: unary(pointwise.negate, c.ring, c.limbs),
    ckks.AddPlainOp: lambda c: binary(pointwise.add, c.ring, c.limbs),
    ckks.SubPlainOp: lambda c: binary(pointwise.subtract, c.ring, c.limbs),
    ckks.MulOp: lambda c: binary(pointwise.multiply, c.ring, c.limbs),
    ckks.SquareOp: lambda c: unary(pointwise.square, c.ring, c.limbs),
    ckks.MulPlainOp: lambda c: binary(pointwise.multiply, c.ring, c.limbs),
    ckks.WeightedSumOp: lambda c: on_halves(pointwise.weighted_sum, c.ring, c.limbs),
    ckks.AddScalarOp: partial(add_scalar, pointwise.add_constant),
    ckks.MulScalarOp: partial(multiply_scalar, pointwise.multiply_constant),
    ckks.MulIntegerOp: partial(multiply_integer, pointwise.multiply_constant),
    ckks.RelinearizeOp: lambda c: partial(_relinearize, c),
    ckks.RelinearizeRescaleOp: lambda c: partial(_relinearize_rescale, c),
    ckks.RescaleOp: lambda c: partial(divide, c.ring, c.limbs, c.result_limbs, form=c.form),
    ckks.ModSwitchOp: _mod_switch,
    ckks.RotateOp: _rotate,
    ckks.RotateManyOp: lambda c: partial(_rotate_many, c),
    ckks.ConjugateOp: _conjugate,
    ckks.ToEvaluationOp: lambda c: unary(ntt, c.ring, c.limbs),
    ckks.ToCoefficientOp: lambda c: unary(intt, c.ring, c.limbs),
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

    def prepare(
        self,
        invocation: OperationInvocation,
        resources: tuple[BoundResource, ...],
        /,
        *,
        in_place: bool,
    ) -> PreparedCall:
        """Bind the op; `resources` are its keys, then the parameters."""
        if in_place and not self.supports_in_place:
            raise ValueError(f"{self.name} does not run in place")
        parameters = resources[-1].value
        assert isinstance(parameters, Parameters)
        prepared = self.kernel(Call(parameters, invocation, resources))
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
        """Bind the op and run it."""
        result = self.prepare(invocation, resources, in_place=in_place)(*inputs)
        return result if isinstance(result, tuple) else (result,)


def ciphertext_contributions() -> tuple[TorchCiphertextImplementation, ...]:
    """Return one implementation for each op of the `ckks` dialect."""
    return tuple(
        TorchCiphertextImplementation(FAMILIES["torch"][operation.name], (operation,), kernel)
        for operation, kernel in KERNELS.items()
    )
