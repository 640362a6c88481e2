"""`ckks-assign-scales`: write the scale of every ciphertext and plaintext."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import isclose

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import VerifyException

from fhelium.analyses.encrypted_steps import (
    Kind,
    Step,
    ciphertexts_of,
    encrypted_functions,
    states_of,
    steps_of,
)
from fhelium.analyses.plaintext_assignment import plaintext_types
from fhelium.analyses.program_parameters import program_parameters
from fhelium.analyses.state_assignment import assign_types, ciphertext_with, plaintext_with
from fhelium.dialects import ckks
from fhelium.dialects.ckks.checks import SCALE_TOLERANCE, encode_scalar, expect_room, shown_scale
from fhelium.dialects.ckks.types import CiphertextType, PlaintextType
from fhelium.passes.failure import PassFailure
from fhelium.scheme.canonical_scales import CanonicalScales, ScaleDriftError

_RESCALE_FIRST = (
    "run ckks-insert-rescale before ckks-assign-levels, and dce for ops that nothing uses"
)


@dataclass(frozen=True)
class CkksAssignScalesPass(ModulePass):
    """Write exact scales on the types of ciphertexts and plaintexts.

    Every level has one scale, so that all products at a level can be added: the default one where
    the program starts, and below it s_{l-1} = s_l^2 / (primes of level l), which is what products
    come out at (Kim, Papadimitriou and Polyakov, 2022, section 4.2). A number or plaintext that
    multiplies is encoded at the scale that leads there exactly, and one that is added at the scale
    of the ciphertext. An encoding that is used at several scales is repeated for each.

    Needs `ckks.parameters` and assigned levels. Scales that are assigned stay, where they agree
    with these; a function with a scale on each ciphertext and plaintext is left alone.
    """

    name = "ckks-assign-scales"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        functions = [
            function
            for function in encrypted_functions(op)
            if any(type.scale is None for type in states_of(function))
        ]
        if not functions:
            return
        parameters = program_parameters(
            op, "scales depend on the primes, and ckks-select-parameters chooses some"
        )
        top = max(_level(v, f) for f in functions for v in ciphertexts_of(f))
        scales = CanonicalScales(parameters.moduli, parameters.scale, top)
        unused = PlaintextType(scale=parameters.scale)
        for function in functions:
            found = _Scales(scales, function)
            steps = steps_of(function)
            for step in steps:
                found.add(step)
            found.check_joins(steps)
            types = plaintext_types(function, found.wanted, unused)
            for value, scale in found.of_value.items():
                types[value] = ciphertext_with(CiphertextType.of(value), scale=scale)
            assign_types(function, types)


def _level(value: SSAValue, function: FuncOp) -> int:
    level = CiphertextType.of(value).level
    if level is None:
        raise PassFailure(
            value.owner if isinstance(value.owner, Operation) else function,
            "found a ciphertext without a level, expected one on each: ckks-assign-levels finds "
            "them",
        )
    return level


class _Scales:
    """The scales of a function's ciphertexts, found in program order."""

    def __init__(self, scales: CanonicalScales, function: FuncOp):
        self.scales, self.function = scales, function
        self.of_value: dict[SSAValue, float] = {}
        # How many factors a value has that no rescale has divided by.
        self.degree: dict[SSAValue, int] = {}

    def add(self, step: Step) -> None:
        """Find the scale of a step's results, from those of its operands."""
        operands = [operand.value for operand in step.operands]
        op = step.operation
        match step.kind:
            case Kind.LEAVE:
                return
            case Kind.ENTER | Kind.MESSAGE:
                scale, degree = self.canonical(op, _level(step.results[0], self.function), 1), 1
            case Kind.MULTIPLY:
                factors = operands if len(operands) == 2 else operands * 2
                scale = self.of_value[factors[0]] * self.of_value[factors[1]]
                degree = self.degree[factors[0]] + self.degree[factors[1]]
            case Kind.SCALE:
                degree = self.degree[operands[0]] + 1
                scale = self.canonical(op, _level(operands[0], self.function), degree)
            case Kind.RESCALE:
                divisor = self.scales.divisor(_level(operands[0], self.function))
                scale, degree = self.of_value[operands[0]] / divisor, self.degree[operands[0]] - 1
            case _:
                scale, degree = self.of_value[operands[0]], self.degree[operands[0]]
        for result in step.results:
            self.degree[result] = degree
            self.of_value[result] = self.settled(step, result, scale, degree)
        if isinstance(op, ckks.AddScalarOp | ckks.MulScalarOp):
            self.check_scalar(op)

    def check_scalar(self, op: ckks.AddScalarOp | ckks.MulScalarOp) -> None:
        """Refuse a number that is too large, and a factor that is too small, for its scale."""
        number, scale = op.value.value.data, Fraction(self.of_value[op.result])
        if isinstance(op, ckks.MulScalarOp):
            scale /= Fraction(self.of_value[op.input])
        try:
            encoded = encode_scalar(number, scale)
        except VerifyException as error:
            raise PassFailure(op, str(error)) from None
        if isinstance(op, ckks.MulScalarOp) and number != 0 and encoded == 0:
            raise PassFailure(
                op,
                f"found a product by {number:.3g}, which rounds to 0 at the scale "
                f"{shown_scale(float(scale))}, expected a factor of at least "
                f"{float(1 / scale):.1e}: leave the term out, or choose parameters of a greater "
                "scale, as the option precision of secure-select-parameters and "
                "ckks-select-parameters does",
            )

    def settled(self, step: Step, result: SSAValue, scale: float, degree: int) -> float:
        """Return the scale of a result without the rounding of its computation."""
        given = CiphertextType.of(result).scale
        level = _level(result, self.function)
        self.check_room(step.operation, scale, level, degree)
        if given is not None:
            if not isclose(given, scale, rel_tol=SCALE_TOLERANCE):
                raise PassFailure(
                    step.operation,
                    f"found a ciphertext of scale {shown_scale(given)} at level {level}, expected "
                    f"{shown_scale(scale)}, so that it can be added to others: leave the scale out "
                    "for the pass to find",
                )
            return given
        if degree >= 1 and step.kind in (Kind.MULTIPLY, Kind.RESCALE):
            canonical = self.canonical(step.operation, level, degree)
            if isclose(scale, canonical, rel_tol=SCALE_TOLERANCE):
                return canonical
        return scale

    def check_room(self, op: Operation, scale: float, level: int, degree: int) -> None:
        """Refuse a value that the modulus of its level has no room for."""
        fix = _RESCALE_FIRST if degree > 1 else "choose primes above the scale"
        try:
            expect_room(scale, level, self.scales.groups, fix)
        except VerifyException as error:
            raise PassFailure(op, str(error)) from None

    def canonical(self, op: Operation, level: int, degree: int) -> float:
        if degree > level + 2:
            raise PassFailure(
                op,
                f"found a product of {degree} factors at level {level} that no rescale divides, "
                f"expected at most {level + 2}: {_RESCALE_FIRST}",
            )
        try:
            return self.scales.of(level, degree)
        except ScaleDriftError as error:
            raise PassFailure(op, str(error)) from None

    def check_joins(self, steps: Sequence[Step]) -> None:
        """Refuse ops on values of several scales, which the levels can't bring together."""
        for step in steps:
            if step.kind == Kind.MULTIPLY:
                continue
            ends = [operand.value for operand in step.operands]
            if step.kind == Kind.MESSAGE:
                ends += step.results
            found = sorted({self.of_value[value] for value in ends})
            if len(found) > 1:
                raise PassFailure(
                    step.operation,
                    f"found {step.operation.name} on values of scales "
                    f"{' and '.join(map(shown_scale, found))}, expected one: rescale both or "
                    "neither, and let ckks-insert-mod-switch bring them to one level",
                )

    def wanted(self, user: Operation, ciphertext: SSAValue, type: PlaintextType) -> PlaintextType:
        """Return the type that an op wants of a plaintext beside a ciphertext."""
        scale = self.of_value[ciphertext]
        if isinstance(user, ckks.MulPlainOp | ckks.WeightedSumOp):
            scale = self.of_value[user.result] / scale
        return plaintext_with(type, scale=scale)
