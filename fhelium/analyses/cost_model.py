"""What programs cost: transforms, key switches, bytes and time, from counts and a calibration.

An op of `ckks` costs what its lowering to `rns` costs, so that nothing is counted in two places.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects import arith, func, scf
from xdsl.dialects.builtin import IntegerAttr, ModuleOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.traits import IsTerminator

from fhelium.analyses.calibration import Calibration
from fhelium.dialects import ckks, rns
from fhelium.dialects.ckks.parameters import PARAMETERS
from fhelium.dialects.core import IMPLEMENTATION, MaterialOp, ResourceType
from fhelium.dialects.distributed import AllReduceAddCiphertextOp
from fhelium.dialects.rns.types import PolyType
from fhelium.passes.convert_ckks_to_rns import ConvertCkksToRnsPass
from fhelium.passes.failure import PassFailure
from fhelium.passes.implementation_families import FAMILIES
from fhelium.scheme.parameters import Parameters

WORD_BYTES = 8
VIEWS = (rns.ComponentsOp, rns.ProjectOp)
"""Ops that move no words, or hardly any."""

_FAMILY_OF = {
    name: family for family, operations in FAMILIES.items() for name in operations.values()
}


@dataclass(frozen=True)
class Cost:
    """What running something once costs.

    ntts: transforms of a polynomial modulo one prime, in either direction.
    key_switches: products with a switching key.
    bytes: residues and keys that ops read and write, each op by itself.
    milliseconds: the estimated time.
    unknown: ops on encrypted values that the calibration has no samples of; their time is left out.
    """

    ntts: int = 0
    key_switches: int = 0
    bytes: int = 0
    milliseconds: float = 0.0
    unknown: int = 0

    def __add__(self, other: Cost) -> Cost:
        return Cost(
            self.ntts + other.ntts,
            self.key_switches + other.key_switches,
            self.bytes + other.bytes,
            self.milliseconds + other.milliseconds,
            self.unknown + other.unknown,
        )

    def __mul__(self, times: int) -> Cost:
        return Cost(
            self.ntts * times,
            self.key_switches * times,
            self.bytes * times,
            self.milliseconds * times,
            self.unknown * times,
        )


NOTHING = Cost()


def units_of(op: Operation) -> int:
    """Return how much an op has to do, in polynomials modulo one prime.

    Those that it writes; for products those that it multiplies, and then adds up; for a base
    conversion of k limbs to m new ones k m + k + m.
    """
    match op:
        case rns.MulOp():
            x, y = PolyType.of(op.lhs).components, PolyType.of(op.rhs).components
            added = 0 if 1 in (x, y) else x + y - 1
            return (x * y + added) * len(op.result.type.basis)
        case rns.SquareOp():
            x = PolyType.of(op.input).components
            return (x * (x + 1) // 2 + 2 * x - 1) * len(op.result.type.basis)
        case rns.WeightedSumOp():
            return len(op.terms) * _words(op.result.type)
        case rns.ModUpOp():
            x = PolyType.of(op.input)
            source, target = len(x.basis), op.result.type.basis.limbs - x.basis.limbs
            return x.components * (source * len(target) + source + len(target))
        case rns.KeyProductOp():
            return len(op.digits) * _words(op.result.type)
        case AllReduceAddCiphertextOp():
            return _words(op.results[0].type)
        case _:
            return sum(_words(result.type) for result in op.results) or 1


@dataclass
class CostModel:
    """Estimates ops of `ckks` and `rns` under parameters, for a machine.

    family: what runs an op that records no implementation.
    """

    parameters: Parameters
    calibration: Calibration
    family: str = "torch"
    _lowered: dict[object, Cost] = field(default_factory=dict, repr=False)

    def of(self, op: Operation) -> Cost:
        """Return the cost of running one op once, without its regions and what it calls.

        Raises `PassFailure` for a ckks op whose states are not assigned.
        """
        if isinstance(op, ckks.EncodeOp):
            level = op.result.type.level
            limbs = len(
                self.parameters.q_limbs(self.parameters.max_level if level is None else level)
            )
            return self._timed(op, limbs, Cost(ntts=limbs, bytes=self._bytes(limbs)))
        if isinstance(op, (ckks.EncryptOp, ckks.DecryptOp, ckks.DecodeOp)):
            return Cost(unknown=1)
        if isinstance(op, tuple(ckks.OPERATIONS)):
            return self._of_ciphertexts(op)
        if isinstance(op, AllReduceAddCiphertextOp):
            if not any(isinstance(value.type, PolyType) for value in op.operands):
                return self._of_ciphertexts(op)
            words = units_of(op)
            return self._timed(op, words, Cost(bytes=self._bytes(2 * words)))
        if isinstance(op, tuple(rns.OPERATIONS)):
            return self._of_residues(op)
        return NOTHING

    def _of_residues(self, op: Operation, family: str | None = None) -> Cost:
        if isinstance(op, rns.ModuliOp):
            return NOTHING
        if isinstance(op, VIEWS):
            return self._timed(op, 1, NOTHING, family)
        units = units_of(op)
        words = sum(_words(value.type) for value in (*op.operands, *op.results))
        counted = Cost(
            ntts=units if isinstance(op, rns.NttOp | rns.InttOp) else 0,
            key_switches=int(isinstance(op, rns.KeyProductOp)),
            bytes=self._bytes(words + (units if isinstance(op, rns.KeyProductOp) else 0)),
        )
        return self._timed(op, units, counted, family)

    def _of_ciphertexts(self, op: Operation) -> Cost:
        family = self._family(op)
        types = tuple(value.type for value in (*op.operands, *op.results))
        key = (family, op.name, types, tuple(op.properties.items()))
        if key not in self._lowered:
            total = NOTHING
            for lowered in self._lowering(op).walk():
                if isinstance(lowered, tuple(rns.OPERATIONS)):
                    total += self._of_residues(lowered, family)
                elif isinstance(lowered, AllReduceAddCiphertextOp):
                    total += self.of(lowered)
            self._lowered[key] = total
        return self._lowered[key]

    def _lowering(self, op: Operation) -> ModuleOp:
        """Return a program of this op alone, lowered."""
        block = Block(arg_types=[operand.type for operand in op.operands])
        alone = op.clone(dict(zip(op.operands, block.args, strict=True)))
        for index, argument in enumerate(block.args):
            alone.operands[index] = argument
        alone.attributes.pop(IMPLEMENTATION, None)
        block.add_ops([alone, func.ReturnOp(*alone.results)])
        types = ([a.type for a in block.args], [result.type for result in alone.results])
        module = ModuleOp(
            [func.FuncOp("main", types, Region(block))],
            {PARAMETERS: self.parameters.to_attribute()},
        )
        try:
            ConvertCkksToRnsPass().apply(Context(), module)
        except PassFailure as failure:
            raise PassFailure(op, failure.message) from None
        return module

    def _family(self, op: Operation) -> str:
        recorded = op.attributes.get(IMPLEMENTATION)
        name = getattr(recorded, "data", None)
        return _FAMILY_OF.get(name, self.family) if isinstance(name, str) else self.family

    def _timed(self, op: Operation, units: int, cost: Cost, family: str | None = None) -> Cost:
        family, degree = family or self._family(op), self.parameters.ring_degree
        seconds = self.calibration.seconds(family, op.name, degree, units)
        if seconds is None and op.name not in FAMILIES.get(family, {}):
            # What a family has no implementation of, the reference runs.
            seconds = self.calibration.seconds("torch", op.name, degree, units)
        known = Cost(unknown=1) if seconds is None else Cost(milliseconds=1000 * seconds)
        return cost + known

    def _bytes(self, words: int) -> int:
        return words * self.parameters.ring_degree * WORD_BYTES


@dataclass(frozen=True)
class Line:
    """One op of a function: how often a run of the function runs it, and what one time costs.

    A link runs an op that depends on materials alone, `once`, and runs of the program do not.
    """

    op: Operation
    times: int
    cost: Cost
    once: bool

    @property
    def total(self) -> Cost:
        """The cost of all times."""
        return self.cost * self.times


@dataclass
class ProgramCosts:
    """The cost of every function of a module.

    trips: how often a loop runs whose bounds are not constant.
    guessed: the loops that this was taken for.
    """

    module: ModuleOp
    model: CostModel
    trips: int = 1
    guessed: list[Operation] = field(default_factory=list)
    _functions: dict[str, list[Line]] = field(default_factory=dict)
    _active: list[str] = field(default_factory=list)

    def lines(self, function: func.FuncOp) -> list[Line]:
        """Return a line for each op that costs something. Raises `PassFailure`."""
        name = function.sym_name.data
        if name in self._active:
            raise PassFailure(
                function,
                f"found @{name} calling itself, expected no recursion: how often it runs is not "
                "known",
            )
        if name not in self._functions:
            self._active.append(name)
            known: set[SSAValue] = set()
            self._functions[name] = list(self._region(function.body, 1, known))
            self._active.pop()
        return self._functions[name]

    def total(self, function: func.FuncOp, *, once: bool = False) -> Cost:
        """Return what a run of a function costs; with `once`, what a link of it does."""
        return sum((line.total for line in self.lines(function) if line.once is once), NOTHING)

    def _region(self, region: Region, times: int, known: set[SSAValue]) -> Iterator[Line]:
        for block in region.blocks:
            for op in block.ops:
                once = self._is_known(op, known)
                if once:
                    known.update(op.results)
                cost = self._callee(op) + self.model.of(op)
                if cost != NOTHING:
                    yield Line(op, times, cost, once)
                inner = times * self._trips(op) if isinstance(op, scf.ForOp) else times
                for nested in op.regions:
                    yield from self._region(nested, inner, set())

    def _is_known(self, op: Operation, known: set[SSAValue]) -> bool:
        """Whether an op of a function's body depends on materials and constants alone."""
        if isinstance(op, MaterialOp | arith.ConstantOp):
            return True
        if op.regions or not op.results or op.has_trait(IsTerminator):
            return False
        inputs = [value for value in op.operands if not isinstance(value.type, ResourceType)]
        return bool(inputs) and known.issuperset(inputs)

    def _callee(self, op: Operation) -> Cost:
        if not isinstance(op, func.CallOp):
            return NOTHING
        name = op.callee.string_value()
        for function in self.module.ops:
            if isinstance(function, func.FuncOp) and function.sym_name.data == name:
                return self.total(function) + self.total(function, once=True)
        return NOTHING

    def _trips(self, loop: scf.ForOp) -> int:
        bounds = [_constant(value) for value in (loop.lb, loop.ub, loop.step)]
        match bounds:
            case [int() as first, int() as last, int() as step] if step > 0:
                return len(range(first, last, step))
            case _:
                self.guessed.append(loop)
                return self.trips


def _constant(value: SSAValue) -> int | None:
    match value.owner:
        case arith.ConstantOp(value=IntegerAttr() as number):
            return number.value.data
        case _:
            return None


def _words(type: Attribute) -> int:
    """Return how many polynomials modulo one prime a value holds; 0 for what is none."""
    if not isinstance(type, PolyType):
        return 0
    return type.components * len(type.basis)
