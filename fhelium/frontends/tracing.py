"""Programs from Python functions: arithmetic on symbolic vectors becomes `ckks` ops.

    program = trace(lambda x, y: 0.5 * x * y + x.rotate(1) - 1.0, parameters)

Levels and scales are placed as the function runs. Level l has one canonical scale: that of the
parameters where the inputs are, and below it s_l = s_{l+1}^2 / (primes of level l+1), so that
products at one level agree after their rescale, exactly (Kim, Papadimitriou and Polyakov, 2022,
section 4.2). Every product is relinearized and rescaled at once; operands of different levels meet
at the lower one. Each op is verified where the function makes it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from operator import index
from typing import ClassVar, SupportsFloat

from xdsl.dialects.builtin import FunctionType, ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.utils.exceptions import VerifyException

from fhelium.dialects import ckks
from fhelium.dialects.ckks.parameters import PARAMETERS
from fhelium.dialects.ckks.types import CiphertextType, KeyKind, KeyType
from fhelium.dialects.core import ResourceOp
from fhelium.dialects.rns.types import Form
from fhelium.frontends.input_names import name_inputs
from fhelium.frontends.program import Program
from fhelium.scheme.canonical_scales import CanonicalScales, ScaleDriftError
from fhelium.scheme.parameters import Parameters


class TracingError(ValueError):
    """A function that has no program under the given parameters."""


@dataclass
class _Trace:
    """The function under construction, whose inputs are at level `top`."""

    parameters: Parameters
    top: int
    block: Block = field(default_factory=Block)
    keys: dict[KeyType, SSAValue] = field(default_factory=dict)

    def __post_init__(self) -> None:
        main = FuncOp("main", ((), ()), Region(self.block))
        self.module = ModuleOp([main], attributes={PARAMETERS: self.parameters.to_attribute()})
        self.main = main
        self.scales = CanonicalScales(self.parameters.moduli, self.parameters.scale, self.top)

    def emit(self, operation: Operation) -> SSAValue:
        self.block.add_op(operation)
        try:
            operation.verify_()
        except VerifyException as error:
            raise TracingError(f"{operation.name}: {error}") from None
        return operation.results[0]

    def scale(self, level: int) -> float:
        """The canonical scale of a level."""
        try:
            return self.scales.of(level)
        except ScaleDriftError as error:
            raise TracingError(str(error)) from None

    def type(self, level: int, scale: float | None = None, components: int = 2) -> CiphertextType:
        scale = self.scale(level) if scale is None else scale
        return CiphertextType(level, scale, components, Form.EVALUATION)

    def key(self, kind: KeyKind, step: int | None = None) -> SSAValue:
        """Name a key where it is first needed: @relinearization, @conjugation, @rotation_5."""
        key_type = KeyType(kind, step)
        if key_type not in self.keys:
            self.keys[key_type] = self.emit(ResourceOp(key_type.symbol, key_type))
        return self.keys[key_type]

    def rescaled(self, product: SSAValue, level: int) -> Vector:
        """Bring a product at `level` back to a canonical scale, one level down."""
        return Vector(self, self.emit(ckks.RescaleOp(product, self.type(level - 1))), level - 1)

    def require(self, level: int) -> None:
        if level == 0:
            raise TracingError(
                f"a product needs a level, and none of {self.parameters.max_level} is left: choose "
                "parameters of a greater depth, or multiply in fewer steps"
            )


@dataclass(frozen=True, eq=False)
class Vector:
    """An encrypted vector inside a traced function.

    Supports `+`, `-` and `*` with vectors and real numbers, negation, integer powers, `rotate` and
    `conjugate`. What has no program raises `TracingError`.
    """

    trace: _Trace = field(repr=False)
    value: SSAValue = field(repr=False)
    level: int

    # NumPy's arrays and numbers leave their arithmetic with vectors to the methods below.
    __array_ufunc__: ClassVar = None

    def _same(self, operation: Operation) -> Vector:
        return Vector(self.trace, self.trace.emit(operation), self.level)

    def at_level(self, level: int) -> Vector:
        """Return the same vector at a lower level, in that level's scale. Costs a product by 1."""
        if level == self.level:
            return self
        if not 0 <= level < self.level:
            raise TracingError(
                f"found the level {level}, expected 0 to {self.level}, the level of the vector: "
                "dropped primes do not come back"
            )
        trace = self.trace
        if level + 1 < self.level:
            scale = trace.scale(self.level)
            switch = ckks.ModSwitchOp(self.value, trace.type(level + 1, scale))
            value = trace.emit(switch)
        else:
            value, scale = self.value, trace.scale(self.level)
        product_scale = trace.scale(level) * trace.scales.divisor(level + 1)
        product = ckks.MulScalarOp(value, 1.0, trace.type(level + 1, product_scale))
        return trace.rescaled(trace.emit(product), level + 1)

    def _aligned(self, other: Vector) -> tuple[Vector, Vector]:
        if other.trace is not self.trace:
            raise TracingError("two vectors come from different traced functions: use one")
        level = min(self.level, other.level)
        return self.at_level(level), other.at_level(level)

    def __add__(self, other: Vector | float) -> Vector:
        if isinstance(other, Vector):
            x, y = self._aligned(other)
            return x._same(ckks.AddOp(x.value, y.value))
        return self._same(ckks.AddScalarOp(self.value, _number(other)))

    __radd__ = __add__

    def __neg__(self) -> Vector:
        return self._same(ckks.NegateOp(self.value))

    def __sub__(self, other: Vector | float) -> Vector:
        if isinstance(other, Vector):
            x, y = self._aligned(other)
            return x._same(ckks.SubOp(x.value, y.value))
        return self + -_number(other)

    def __rsub__(self, other: float) -> Vector:
        return -self + other

    def __mul__(self, other: Vector | float) -> Vector:
        trace = self.trace
        if not isinstance(other, Vector):
            number = _number(other)
            trace.require(self.level)
            scale = trace.scale(self.level - 1) * trace.scales.divisor(self.level)
            product = ckks.MulScalarOp(self.value, number, trace.type(self.level, scale))
            return trace.rescaled(trace.emit(product), self.level)
        x, y = self._aligned(other)
        trace.require(x.level)
        scale = trace.scale(x.level) ** 2
        three = trace.type(x.level, scale, 3)
        if x.value is y.value:
            product = trace.emit(ckks.SquareOp(x.value, three))
        else:
            product = trace.emit(ckks.MulOp(x.value, y.value, three))
        key = trace.key(KeyKind.RELINEARIZATION)
        two = trace.emit(ckks.RelinearizeOp(product, key, trace.type(x.level, scale)))
        return trace.rescaled(two, x.level)

    __rmul__ = __mul__

    def __pow__(self, exponent: int) -> Vector:
        """Raise to a power of at least 1, in the least depth."""
        if not isinstance(exponent, int) or isinstance(exponent, bool) or exponent < 1:
            raise TracingError(
                f"found the exponent {exponent!r}, expected an integer of at least 1"
            )
        if exponent == 1:
            return self
        half = self ** (exponent // 2)
        return half * (half if exponent % 2 == 0 else self ** (exponent - exponent // 2))

    def rotate(self, step: int) -> Vector:
        """Rotate the slots to the left by `step`, as `numpy.roll(values, -step)` does."""
        try:
            places = index(step)
        except TypeError:
            raise TracingError(f"found the step {step!r}, expected an integer") from None
        if places == 0:
            return self
        key = self.trace.key(KeyKind.ROTATION, places)
        return self._same(ckks.RotateOp(self.value, places, key))

    def conjugate(self) -> Vector:
        """Take the complex conjugate of every slot."""
        return self._same(ckks.ConjugateOp(self.value, self.trace.key(KeyKind.CONJUGATION)))


def _number(value: object) -> float:
    """Return what stands beside a vector as a real number."""
    if isinstance(value, SupportsFloat) and not isinstance(value, bool):
        with suppress(TypeError, OverflowError):
            return float(value)
    raise TracingError(
        f"found {type(value).__name__} beside a vector, expected another vector or a real number "
        "below 2^1024"
    )


def trace(
    function: Callable[..., Vector | Sequence[Vector]],
    parameters: Parameters,
    *,
    level: int | None = None,
) -> Program:
    """Run `function` on symbolic vectors, one for each of its parameters, and return its program.

    The inputs are fresh ciphertexts at `level` (by default the top) and the default scale, as
    `encode` makes them; results are at the levels where they come out. Raises `TracingError` when
    a product has no level left, when a number cannot be encoded, for parameters that are not
    positional, and when the function returns something else than vectors.
    """
    top = parameters.max_level if level is None else level
    parameters.check_level(top)
    tracer = _Trace(parameters, top)
    arguments: list[Vector] = []
    for position, parameter in enumerate(inspect.signature(function).parameters.values()):
        if parameter.kind not in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
            raise TracingError(
                f"found the parameter {parameter}, which is {parameter.kind.description}, expected "
                "positional ones: each is an input of the program"
            )
        argument = tracer.block.insert_arg(tracer.type(top), position)
        arguments.append(Vector(tracer, argument, top))
    returned = function(*arguments)
    results = list(returned) if isinstance(returned, Iterable) else [returned]
    for result in results:
        if not isinstance(result, Vector) or result.trace is not tracer:
            raise TracingError(
                f"the function returned {type(result).__name__}, expected vectors that come from "
                "its arguments"
            )
    values = [result.value for result in results]
    tracer.block.add_op(ReturnOp(*values))
    tracer.main.function_type = FunctionType.from_lists(
        [argument.type for argument in tracer.block.args], [value.type for value in values]
    )
    name_inputs(tracer.main, list(inspect.signature(function).parameters))
    return Program(tracer.module)
