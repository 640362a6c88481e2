"""Random ckks circuits that are valid by construction."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, combinations_with_replacement
from math import prod
from operator import mul

import numpy as np
from clients import Values, message
from hypothesis import strategies as st
from xdsl.dialects.builtin import FunctionType, ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, BlockArgument, Operation, Region, SSAValue

from fhelium.dialects import ckks
from fhelium.dialects.ckks.parameters import PARAMETERS
from fhelium.dialects.ckks.types import CiphertextType, KeyKind, KeyType, PlaintextType
from fhelium.dialects.core import ResourceOp
from fhelium.dialects.rns.types import Form
from fhelium.frontends.program import Program
from fhelium.scheme.parameters import Parameters

Draw = Callable[[st.SearchStrategy], object]


@dataclass(frozen=True)
class Wire:
    """One encrypted value of a circuit: in the program, in the clear, and how large it may be."""

    value: SSAValue
    plain: Values
    largest: float

    @cached_property
    def type(self) -> CiphertextType:
        return CiphertextType.of(self.value)

    @cached_property
    def level(self) -> int:
        assert self.type.level is not None
        return self.type.level

    @cached_property
    def scale(self) -> float:
        assert self.type.scale is not None
        return self.type.scale

    @cached_property
    def multiplies(self) -> bool:
        return self.type.form == Form.EVALUATION

    @cached_property
    def rests(self) -> bool:
        return self.multiplies and self.type.components == 2


class Circuit:
    """A program under construction, with its inputs and what it computes in the clear."""

    def __init__(self, parameters: Parameters, batch: tuple[int, ...], steps: Sequence[int]):
        self.parameters, self.batch, self.steps = parameters, batch, steps
        self.block = Block()
        self.wires: list[Wire] = []
        self.inputs: list[tuple[CiphertextType | PlaintextType, Values]] = []
        self.keys: dict[KeyType, SSAValue] = {}

    def __repr__(self) -> str:
        return f"<{len(self.wires)} wires>"

    def state(self, wire: Wire, **changes: object) -> CiphertextType:
        """Return the type of `wire` with some fields changed."""
        names = ("level", "scale", "components", "form")
        fields = {name: changes.get(name, getattr(wire.type, name)) for name in names}
        return CiphertextType(**fields)  # pyright: ignore[reportArgumentType]

    @cached_property
    def moduli(self) -> list[int]:
        """The modulus of each level."""
        return list(accumulate(map(prod, self.parameters.moduli), mul))

    def divisor(self, level: int) -> int:
        return prod(self.parameters.moduli[level])

    def fits(self, largest: float, scale: float, level: int) -> bool:
        """Return whether a message decodes, with a bit to spare; also whether 1 would."""
        return 4 * max(largest, 1.0) * scale < self.moduli[level]

    def argument(self, type: CiphertextType | PlaintextType, plain: Values) -> SSAValue:
        self.inputs.append((type, plain))
        return self.block.insert_arg(type, len(self.block.args))

    def key(self, kind: KeyKind, step: int | None = None) -> SSAValue:
        type = KeyType(kind, step)
        if type not in self.keys:
            name = str(kind) if step is None else f"{kind}_{step}".replace("-", "minus_")
            self.keys[type] = self.emit(ResourceOp(name, type))
        return self.keys[type]

    def emit(self, operation: Operation) -> SSAValue:
        self.block.add_op(operation)
        return operation.results[0]

    def add(self, operation: Operation, plain: Values, largest: float) -> Wire:
        """Append an op whose first result is a new wire."""
        self.wires.append(Wire(self.emit(operation), plain, largest))
        return self.wires[-1]

    def program(self) -> Program:
        """Return the program that yields every value that nothing else uses."""
        results = [
            wire.value
            for wire in self.wires
            if wire.value.first_use is None and not isinstance(wire.value, BlockArgument)
        ]
        self.block.add_op(ReturnOp(*results))
        types = FunctionType.from_lists(
            [argument.type for argument in self.block.args], [value.type for value in results]
        )
        main = FuncOp("main", types, Region(self.block))
        return Program(ModuleOp([main], attributes={PARAMETERS: self.parameters.to_attribute()}))

    def expected(self) -> list[Values]:
        """Return what the results are in the clear; call it after `program`."""
        end = self.block.last_op
        assert end is not None
        plain = {wire.value: wire.plain for wire in self.wires}
        return [plain[value] for value in end.operands]

    def moves(self) -> dict[str, list[tuple[Wire, ...]]]:
        """Return the operands that each op could take now, the simplest op first."""
        wires = self.wires[::-1]
        equal = [(x, y) for x, y in combinations_with_replacement(wires, 2) if x.type == y.type]
        single = [(x,) for x in wires]
        rested = [(x,) for x in wires if x.rests]
        moves = {
            "negate": single,
            "add": [(x, y) for x, y in equal if self.sum_fits(x, y.largest)],
            "sub": [(x, y) for x, y in equal if self.sum_fits(x, y.largest)],
            "add_scalar": [(x,) for x in wires if self.sum_fits(x, 1.0)],
            "add_plain": [(x,) for x in wires if self.sum_fits(x, 1.0)],
            "sub_plain": [(x,) for x in wires if self.sum_fits(x, 1.0)],
            "mul_integer": [(x,) for x in wires if self.fits(3 * x.largest, x.scale, x.level)],
            "mul_scalar": [(x,) for x in wires if self.fits(x.largest, x.scale * 2**40, x.level)],
            "mul_plain": [
                (x,)
                for x in wires
                if x.multiplies and self.fits(x.largest, x.scale * 2**40, x.level)
            ],
            "weighted_sum": [
                (x, y)
                for x, y in equal
                if x.multiplies and self.fits(x.largest + y.largest, x.scale * 2**40, x.level)
            ],
            "square": [(x,) for (x,) in rested if self.product_fits(x, x)],
            "mul": [
                (x, y)
                for (x,), (y,) in combinations_with_replacement(rested, 2)
                if x.level == y.level and self.product_fits(x, y)
            ],
            "relinearize": [(x,) for x in wires if x.multiplies and x.type.components == 3],
            "rescale": [
                (x,) for x in wires if x.level > 0 and x.scale / self.divisor(x.level) >= 2**20
            ],
            "mod_switch": [
                (x,) for x in wires if x.level > 0 and self.fits(x.largest, x.scale, x.level - 1)
            ],
            "rotate": rested,
            "rotate_many": rested,
            "conjugate": rested,
            "to_coefficient": [(x,) for x in wires if x.multiplies],
            "to_evaluation": [(x,) for x in wires if not x.multiplies],
            "align": [(x, y) for x in wires for y in wires if self.aligns(x, y)],
        }
        return {name: operands for name, operands in moves.items() if operands}

    def sum_fits(self, x: Wire, other: float) -> bool:
        return self.fits(x.largest + other, x.scale, x.level)

    def product_fits(self, x: Wire, y: Wire) -> bool:
        return self.fits(x.largest * y.largest, x.scale * y.scale, x.level)

    def aligns(self, x: Wire, y: Wire) -> bool:
        """Return whether `x` can take the type of `y` by a product with 1 and a rescale."""
        if (
            x.level <= y.level
            or x.type.components != y.type.components
            or x.type.form != y.type.form
        ):
            return False
        scale = y.scale * self.divisor(y.level + 1)
        return scale >= x.scale * 2**20 and self.fits(x.largest, scale, y.level + 1)

    def apply(self, name: str, operands: tuple[Wire, ...], draw: Draw) -> None:
        """Append the op `name` and draw what else it needs."""
        x, y = operands[0], operands[-1]
        match name:
            case "negate":
                self.add(ckks.NegateOp(x.value), -x.plain, x.largest)
            case "add":
                self.add(ckks.AddOp(x.value, y.value), x.plain + y.plain, x.largest + y.largest)
            case "sub":
                self.add(ckks.SubOp(x.value, y.value), x.plain - y.plain, x.largest + y.largest)
            case "add_scalar":
                number = draw(st.sampled_from([1.0, 0.0, -0.3]))
                assert isinstance(number, float)
                largest = x.largest + abs(number)
                self.add(ckks.AddScalarOp(x.value, number), x.plain + number, largest)
            case "add_plain":
                value, plain = self.plaintext(x, x.scale, draw)
                self.add(ckks.AddPlainOp(x.value, value), x.plain + plain, x.largest + 1.0)
            case "sub_plain":
                value, plain = self.plaintext(x, x.scale, draw)
                self.add(ckks.SubPlainOp(x.value, value), x.plain - plain, x.largest + 1.0)
            case "mul_integer":
                count = draw(st.sampled_from([1, 0, -1, 2, -3]))
                assert isinstance(count, int)
                largest = abs(count) * x.largest
                self.add(ckks.MulIntegerOp(x.value, count), count * x.plain, largest)
            case "mul_scalar":
                number = draw(st.sampled_from([1.0, 0.0, -0.3, 0.999]))
                assert isinstance(number, float)
                type = self.state(x, scale=x.scale * self.weight_scale(draw))
                largest = abs(number) * x.largest
                self.add(ckks.MulScalarOp(x.value, number, type), number * x.plain, largest)
            case "mul_plain":
                scale = self.weight_scale(draw)
                value, plain = self.plaintext(x, scale, draw)
                type = self.state(x, scale=x.scale * scale)
                self.add(ckks.MulPlainOp(x.value, value, type), x.plain * plain, x.largest)
            case "weighted_sum":
                self.weighted_sum(operands if draw(st.booleans()) else (x,), draw)
            case "square":
                type = self.state(x, scale=x.scale**2, components=3)
                self.add(ckks.SquareOp(x.value, type), x.plain**2, x.largest**2)
            case "mul":
                type = self.state(x, scale=x.scale * y.scale, components=3)
                product, largest = x.plain * y.plain, x.largest * y.largest
                self.add(ckks.MulOp(x.value, y.value, type), product, largest)
            case "relinearize":
                key = self.key(KeyKind.RELINEARIZATION)
                operation = ckks.RelinearizeOp(x.value, key, self.state(x, components=2))
                self.add(operation, x.plain, x.largest)
            case "rescale":
                type = self.state(x, level=x.level - 1, scale=x.scale / self.divisor(x.level))
                self.add(ckks.RescaleOp(x.value, type), x.plain, x.largest)
            case "mod_switch":
                levels = range(x.level)[::-1]
                fitting = [to for to in levels if self.fits(x.largest, x.scale, to)]
                type = self.state(x, level=draw(st.sampled_from(fitting)))
                self.add(ckks.ModSwitchOp(x.value, type), x.plain, x.largest)
            case "rotate":
                step = draw(st.sampled_from(self.steps))
                assert isinstance(step, int)
                key = self.key(KeyKind.ROTATION, step)
                rotated = np.roll(x.plain, -step, axis=-1)
                self.add(ckks.RotateOp(x.value, step, key), rotated, x.largest)
            case "rotate_many":
                self.rotate_many(x, draw)
            case "conjugate":
                key = self.key(KeyKind.CONJUGATION)
                self.add(ckks.ConjugateOp(x.value, key), x.plain.conj(), x.largest)
            case "to_coefficient":
                type = self.state(x, form=Form.COEFFICIENT)
                self.add(ckks.ToCoefficientOp(x.value, type), x.plain, x.largest)
            case "to_evaluation":
                type = self.state(x, form=Form.EVALUATION)
                self.add(ckks.ToEvaluationOp(x.value, type), x.plain, x.largest)
            case "align":
                self.align(x, y)
            case _:
                raise NotImplementedError(name)

    def weight_scale(self, draw: Draw) -> float:
        scale = draw(st.sampled_from([2.0**40, 2.0**25, 2.0**39.7]))
        assert isinstance(scale, float)
        return scale

    def plaintext(self, x: Wire, scale: float, draw: Draw) -> tuple[SSAValue, Values]:
        """Add an input beside `x`: with its own values for each element of the batch, or not."""
        batch = draw(st.sampled_from([self.batch, ()])) if self.batch else ()
        assert isinstance(batch, tuple)
        seed = 1000 + len(self.inputs)
        plain = message(seed, *batch, self.parameters.slots)
        return self.argument(PlaintextType(x.level, scale, x.type.form), plain), plain

    def weighted_sum(self, terms: tuple[Wire, ...], draw: Draw) -> None:
        scale = self.weight_scale(draw)
        weights = [self.plaintext(term, scale, draw) for term in terms]
        products = [x.plain * plain for x, (_, plain) in zip(terms, weights, strict=True)]
        total = sum(products[1:], start=products[0])
        operation = ckks.WeightedSumOp(
            [term.value for term in terms],
            [value for value, _ in weights],
            self.state(terms[0], scale=terms[0].scale * scale),
        )
        self.add(operation, total, sum(term.largest for term in terms))

    def rotate_many(self, x: Wire, draw: Draw) -> None:
        steps = draw(st.lists(st.sampled_from(self.steps), min_size=1, max_size=3))
        assert isinstance(steps, list)
        keys = [self.key(KeyKind.ROTATION, step) for step in steps]
        operation = ckks.RotateManyOp(x.value, steps, keys)
        self.block.add_op(operation)
        for step, result in zip(steps, operation.outputs, strict=True):
            self.wires.append(Wire(result, np.roll(x.plain, -step, axis=-1), x.largest))

    def align(self, x: Wire, y: Wire) -> None:
        if x.level > y.level + 1:
            type = self.state(x, level=y.level + 1)
            x = self.add(ckks.ModSwitchOp(x.value, type), x.plain, x.largest)
        type = self.state(x, scale=y.scale * self.divisor(x.level))
        x = self.add(ckks.MulScalarOp(x.value, 1.0, type), x.plain, x.largest)
        self.add(ckks.RescaleOp(x.value, y.type), x.plain, x.largest)


@st.composite
def circuits(
    draw: st.DrawFn, parameters: Sequence[Parameters], *, shortest: int = 5, longest: int = 40
) -> Circuit:
    """Draw a circuit of `shortest` to about `longest` ops on one to three ciphertexts."""
    chosen = draw(st.sampled_from(parameters))
    slots = chosen.slots
    circuit = Circuit(
        chosen,
        draw(st.sampled_from([(), (), (2,), (2, 1)])),
        (1, -1, 5, slots // 2, slots - 1, 1 - slots),
    )
    top = CiphertextType(chosen.max_level, chosen.scale, 2, Form.EVALUATION)
    for number in range(draw(st.integers(1, 3))):
        batch = circuit.batch if number == 0 or draw(st.booleans()) else ()
        plain = message(number, *batch, slots)
        circuit.wires.append(Wire(circuit.argument(top, plain), plain, 1.0))
    used: Counter[str] = Counter()
    for _ in range(draw(st.integers(shortest, longest))):
        moves = circuit.moves()
        # Hypothesis prefers what comes first: an op that is not in the circuit yet.
        name = draw(st.sampled_from(sorted(moves, key=lambda name: used[name])))
        used[name] += 1
        circuit.apply(name, draw(st.sampled_from(moves[name])), draw)
    return circuit
