"""What each ckks op does to errors: how large they are, and where they come from."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import hypot

from xdsl.ir import Attribute, Operation, SSAValue

from fhelium.dialects import ckks
from fhelium.dialects.ckks.client import ClientKeyKind, ClientKeyType
from fhelium.dialects.ckks.types import CiphertextType, state_types
from fhelium.kernels.galois import conjugation_element, galois_element
from fhelium.passes.failure import PassFailure
from fhelium.scheme import noise
from fhelium.scheme.noise import Estimate
from fhelium.scheme.parameters import Parameters

Origin = tuple[Hashable, int]
"""Where an error was drawn, and the Galois element that it has gone through since.

The slots of one error are uncorrelated, so a rotated error adds to the original like another one.
What is no random polynomial, as the rounding of a scalar, has the element 0, which no rotation
changes.
"""

_MOST_ORIGINS = 1 << 12
_NOTHING = Estimate(0.0, 0.0)


@dataclass(frozen=True)
class TrackedValue:
    """A bound on a message, and the deviation of its error in a slot, by origin.

    Errors of different origins are uncorrelated, and add up as deviations do; those of one origin
    add up in full.

    merged: the deviation of errors whose origins are no longer told apart, because there were more
        than 4096. It counts as dependent on everything.
    """

    largest: float
    errors: Mapping[Origin, float]
    merged: float = 0.0

    @staticmethod
    def of(estimate: Estimate, origin: Origin) -> TrackedValue:
        """Return a value whose whole error has one origin."""
        return TrackedValue(estimate.largest, {origin: estimate.deviation})

    @property
    def estimate(self) -> Estimate:
        """The same without the origins."""
        return Estimate(self.largest, self.merged + hypot(*self.errors.values()))

    def times(self, factor: float) -> TrackedValue:
        """Return the product with an exact number that is not negative."""
        errors = {origin: factor * deviation for origin, deviation in self.errors.items()}
        return TrackedValue(factor * self.largest, errors, factor * self.merged)

    def plus(self, other: TrackedValue) -> TrackedValue:
        """Return the sum or difference."""
        errors = dict(self.errors)
        for origin, deviation in other.errors.items():
            errors[origin] = errors.get(origin, 0.0) + deviation
        return _limited(self.largest + other.largest, errors, self.merged + other.merged)

    def product(self, other: TrackedValue, origin: Origin) -> TrackedValue:
        """Return (m + e)(m' + e') = m m' + (m e' + m' e) + e e'; the last is a new error."""
        linear = self.times(other.largest).plus(other.times(self.largest))
        value = TrackedValue(self.largest * other.largest, linear.errors, linear.merged)
        return value.with_error(origin, self.estimate.deviation * other.estimate.deviation)

    def with_error(self, origin: Origin, deviation: float) -> TrackedValue:
        """Return the value with a new error beside those that it has."""
        return _limited(self.largest, {**self.errors, origin: deviation}, self.merged)

    def moved(self, element: int, order: int) -> TrackedValue:
        """Return the value after an automorphism, whose elements are taken modulo `order`."""
        errors = {
            (drawn, element * before % order): deviation
            for (drawn, before), deviation in self.errors.items()
        }
        return TrackedValue(self.largest, errors, self.merged)

    def worse(self, other: TrackedValue) -> TrackedValue:
        """Return what bounds both values."""
        errors = dict(self.errors)
        for origin, deviation in other.errors.items():
            errors[origin] = max(errors.get(origin, 0.0), deviation)
        return _limited(max(self.largest, other.largest), errors, max(self.merged, other.merged))


def _limited(largest: float, errors: dict[Origin, float], merged: float) -> TrackedValue:
    if len(errors) <= _MOST_ORIGINS:
        return TrackedValue(largest, errors, merged)
    return TrackedValue(largest, {}, merged + hypot(*errors.values()))


@dataclass
class ErrorAnalysis:
    """Applies ckks ops to tracked values. `fhelium.scheme.noise` says how large each error is."""

    parameters: Parameters
    largest: float
    drawn: int = 0

    def draw(self) -> Origin:
        """Return the origin of a new error."""
        self.drawn += 1
        return (self.drawn, 1)

    def from_outside(self, type: Attribute, origin: Origin) -> TrackedValue | None:
        """Return a fresh encryption or an encoding, or None for a type of other data."""
        state = next(iter(state_types(type)), None)
        if state is None:
            return None
        assert state.scale is not None
        fresh = noise.encrypt if isinstance(state, CiphertextType) else noise.encode
        return TrackedValue.of(fresh(self.parameters, state.scale, self.largest), origin)

    def apply(self, op: Operation, values: Sequence[TrackedValue]) -> Sequence[TrackedValue | None]:
        """Return the results of a ckks op on its ciphertexts and plaintexts.

        Raises `PassFailure` for an op that has no rule here.
        """
        match op:
            case (
                ckks.NegateOp()
                | ckks.ModSwitchOp()
                | ckks.ToEvaluationOp()
                | ckks.ToCoefficientOp()
                | ckks.DecryptOp()
            ):
                return values
            case ckks.AddOp() | ckks.SubOp() | ckks.AddPlainOp() | ckks.SubPlainOp():
                return [values[0].plus(values[1])]
            case ckks.MulOp() | ckks.MulPlainOp():
                return [values[0].product(values[1], self.draw())]
            case ckks.SquareOp():
                return [values[0].product(values[0], self.draw())]
            case ckks.WeightedSumOp():
                half = len(values) // 2
                pairs = zip(values[:half], values[half:], strict=True)
                total, *products = [x.product(weight, self.draw()) for x, weight in pairs]
                for product in products:
                    total = total.plus(product)
                return [total]
            case ckks.MulIntegerOp():
                return [values[0].times(abs(op.value.value.data))]
            case ckks.AddScalarOp():
                return [values[0].plus(_scalar(op, _scale(op.input)))]
            case ckks.MulScalarOp():
                scalar = _scalar(op, _scale(op.result) / _scale(op.input))
                return [values[0].product(scalar, self.draw())]
            case ckks.RelinearizeOp():
                return [self._switch_key(op, values[0], 1)]
            case ckks.RelinearizeRescaleOp():
                switched = self._switch_key(op, values[0], 1, CiphertextType.of(op.input))
                return [self._rescale(op, switched)]
            case ckks.ConjugateOp():
                element = conjugation_element(self.parameters.ring_degree)
                return [self._switch_key(op, values[0], element)]
            case ckks.RotateOp():
                return [self._rotate(op, values[0], op.step.value.data)]
            case ckks.RotateManyOp():
                return [self._rotate(op, values[0], step) for step in op.steps.get_values()]
            case ckks.RescaleOp():
                return [self._rescale(op, values[0])]
            case ckks.EncodeOp():
                return [self.from_outside(op.result.type, self.draw())]
            case ckks.EncryptOp():
                return [self._encrypt(op, values[0])]
            case ckks.DecodeOp():
                return [None]
            case _:
                raise PassFailure(
                    op,
                    f"found {op.name}, which has no rule for its error, expected an op of ckks "
                    "that has one: add a rule to ErrorAnalysis.apply, or lower the op before "
                    "ckks-annotate-error",
                )

    def _rotate(self, op: Operation, x: TrackedValue, step: int) -> TrackedValue:
        return self._switch_key(op, x, galois_element(step, self.parameters.ring_degree))

    def _switch_key(
        self, op: Operation, x: TrackedValue, element: int, at: CiphertextType | None = None
    ) -> TrackedValue:
        """Return the value after an automorphism and the key switch behind it.

        Its level and scale are those of `at`, or of the result.
        """
        type = at or CiphertextType.of(op.results[0])
        assert type.level is not None
        assert type.scale is not None
        error = noise.switch_key(_NOTHING, self.parameters, type.level, type.scale)
        moved = x.moved(element, 2 * self.parameters.ring_degree)
        return moved.with_error(self.draw(), error.deviation)

    def _rescale(
        self, op: ckks.RescaleOp | ckks.RelinearizeRescaleOp, x: TrackedValue
    ) -> TrackedValue:
        type = op.result.type
        assert type.scale is not None
        assert type.components is not None
        error = noise.rescale(_NOTHING, self.parameters, type.scale, components=type.components)
        return x.with_error(self.draw(), error.deviation)

    def _encrypt(self, op: ckks.EncryptOp, x: TrackedValue) -> TrackedValue:
        key, scale = op.key.type, op.result.type.scale
        assert isinstance(key, ClientKeyType)
        assert scale is not None
        public = key.kind == ClientKeyKind.PUBLIC
        error = noise.encrypt(self.parameters, scale, 0.0, public=public)
        return x.with_error(self.draw(), error.deviation)


def _scale(value: SSAValue) -> Fraction:
    scale = CiphertextType.of(value).scale
    assert scale is not None
    return Fraction(scale)


def _scalar(op: ckks.AddScalarOp | ckks.MulScalarOp, scale: Fraction) -> TrackedValue:
    """Return the op's number, whose rounding at `scale` is the same error wherever it occurs."""
    value, constant = op.value.value.data, op.constant()
    assert constant is not None
    error = float(abs(constant / scale - Fraction(value)))
    return TrackedValue(abs(value), {(("scalar", value, scale), 0): error} if error else {})
