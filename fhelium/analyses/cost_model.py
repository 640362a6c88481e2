"""What programs cost: transforms, key switches, bytes and time, from counts and a calibration.

An op of `ckks` costs what its lowering to `rns` costs, so that nothing is counted in two places.
Only the time of one that runs whole, by a kernel of its own, is that of the op itself.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import prod

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import FixedBitwidthType, ModuleOp, TensorType, UnregisteredOp
from xdsl.ir import Attribute, Block, Operation, Region
from xdsl.utils.hints import isa

from fhelium.analyses.calibration import ALL_REDUCE, RUN, Calibration
from fhelium.dialects import ckks, rns
from fhelium.dialects.ckks.parameters import PARAMETERS
from fhelium.dialects.ckks.types import CiphertextType, KeyType, StateType
from fhelium.dialects.core import IMPLEMENTATION, IN_PLACE, ResourceOp, element_of
from fhelium.dialects.distributed import (
    AllReduceAddCiphertextOp,
    AllReduceAddCiphertextsOp,
    AllReduceOp,
    CollectiveOp,
    CombiningOp,
    GroupType,
)
from fhelium.dialects.memory import TransferOp
from fhelium.dialects.rns.types import PolyType
from fhelium.dialects.traits import ViewsOperand
from fhelium.passes.convert_ckks_to_rns import ConvertCkksToRnsPass
from fhelium.passes.failure import PassFailure
from fhelium.passes.implementation_families import FAMILIES, is_of_no_family
from fhelium.scheme.parameters import Parameters

WORD_BYTES = 8
PRODUCTS = (rns.MulOp, rns.SquareOp, rns.WeightedSumOp, rns.MulConstantOp)
"""Ops whose arithmetic takes time even where it moves no words."""
FREE = ("arith", "builtin", "dist", "fhelium", "func", "mem", "rns", "scf", "tensor")
"""Dialects whose ops take no time of their own, but for those that the model knows."""

_FAMILY_OF = {
    name: family for family, operations in FAMILIES.items() for name in operations.values()
}


@dataclass(frozen=True)
class Cost:
    """What running something once costs.

    ntts: transforms of a polynomial modulo one prime, in either direction.
    key_switches: products with a switching key.
    bytes: residues and keys that ops read and write, each op or fused region by itself.
    milliseconds: the estimated time.
    unknown: ops on encrypted values, and collectives, whose time is not known and left out.
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
    conversion of k limbs to m new ones k m + k + m; for a fused region those that it reads and
    writes, and twice what its products have to do; 1 for a view, which moves none.
    """
    match op:
        case rns.FusedOp():
            moved = sum(_words(value.type) for value in (*op.operands, *op.results))
            products = [step for step in steps_of(op) if isinstance(step, PRODUCTS)]
            return moved + 2 * sum(map(units_of, products))
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
        case _ if op.has_trait(ViewsOperand):
            return 1
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
        """Return the cost of running one op once, without its regions and what it calls; of an op
        of `ckks` that runs whole, time goes with the number of its transforms. That of an op, or an
        implementation, that does not come with FHElium is not known.

        Raises `PassFailure` for a ckks op whose states are not assigned.
        """
        cost = self._of(op)
        return replace(cost, milliseconds=0.0, unknown=1) if is_of_no_family(op) else cost

    def _of(self, op: Operation) -> Cost:
        if isinstance(op, ckks.EncodeOp):
            level = op.result.type.level
            limbs = self._limbs(op, self.parameters.max_level if level is None else level)
            counted = Cost(ntts=limbs, bytes=self._bytes(limbs))
            return self._timed(self._family(op), op.name, limbs, counted)
        if isinstance(op, (ckks.EncryptOp, ckks.DecryptOp, ckks.DecodeOp)):
            return Cost(unknown=1)
        if isinstance(op, tuple(ckks.OPERATIONS)):
            return self._of_ciphertexts(op)
        if isinstance(op, tuple(rns.OPERATIONS)):
            return self._of_residues(op)
        if isinstance(op, rns.FusedOp):
            return self._of_fused(op)
        if isinstance(op, CollectiveOp | TransferOp):
            return self._of_movement(op)
        if op.dialect_name() in FREE and not isinstance(op, UnregisteredOp):
            return NOTHING
        encoded = any(_is_encoded(value.type) for value in (*op.operands, *op.results))
        return Cost(unknown=1) if encoded else NOTHING

    def of_run(self, function: func.FuncOp) -> Cost:
        """Return what a run of a program costs beside its ops, most of it in groups of ranks, which
        agree on what they run.
        """
        module = function.parent_op()
        resources = [op for op in module.walk() if isinstance(op, ResourceOp)] if module else []
        groups = {op.symbol_name for op in resources if op.result.type == GroupType()}
        return self._timed("torch", RUN, 1 + len(groups), NOTHING)

    def _of_residues(self, op: Operation, family: str | None = None) -> Cost:
        if isinstance(op, rns.ModuliOp):
            return NOTHING
        family, units = family or self._family(op), units_of(op)
        if op.has_trait(ViewsOperand):
            return self._timed(family, op.name, units, NOTHING)
        words = sum(_words(value.type) for value in (*op.operands, *op.results))
        counted = Cost(
            ntts=units if isinstance(op, rns.NttOp | rns.InttOp) else 0,
            key_switches=int(isinstance(op, rns.KeyProductOp)),
            bytes=self._bytes(words + (units if isinstance(op, rns.KeyProductOp) else 0)),
        )
        return self._timed(family, op.name, units, counted)

    def _of_fused(self, op: rns.FusedOp) -> Cost:
        """Return the cost of one kernel, or of one op after the other."""
        family, steps = self._family(op), steps_of(op)
        if any(map(is_of_no_family, steps)):
            # Someone else's implementation is called, and so is each of the others.
            return sum((self.of(step) for step in steps), NOTHING)
        if self._seconds(family, op.name, 1) is None:
            return sum(
                (self._of_residues(step, None if _recorded(step) else family) for step in steps),
                NOTHING,
            )
        words = sum(_words(value.type) for value in (*op.operands, *op.results))
        return self._timed(family, op.name, units_of(op), Cost(bytes=self._bytes(words)))

    def _of_movement(self, op: CollectiveOp | TransferOp) -> Cost:
        """Return the cost of moving values, as large as their types say: a batch counts as one.

        A sum over ranks moves every word twice, to where it is added and back, the other
        collectives once: they take the time of a sum of half as many words. A combine region that
        is not elementwise gathers what all ranks have, whose number is not known.
        """
        types = [value.type for value in (*op.operands, *op.results)]
        words = [self._words_of(op, type) for type in types]
        counted = Cost(bytes=self._bytes(sum(words)))
        match op:
            case AllReduceAddCiphertextOp() | AllReduceAddCiphertextsOp():
                units = sum(words) // 2
            case CombiningOp(is_elementwise=True):
                units = max(words) if isinstance(op, AllReduceOp) else -(-max(words) // 2)
            case CollectiveOp() if not isinstance(op, CombiningOp):
                units = -(-max(words) // 2)
            case _:
                units = 0
        return self._timed("torch", ALL_REDUCE, units, counted)

    def _of_ciphertexts(self, op: Operation) -> Cost:
        family, recorded = self._family(op), _recorded(op)
        whole = recorded is not None and FAMILIES.get(family, {}).get(op.name) == recorded
        types = tuple(value.type for value in (*op.operands, *op.results))
        key = (family, whole, op.name, types, tuple(op.properties.items()))
        if key not in self._lowered:
            residues = self._lowering(op)
            cost = sum((self._of_residues(each, family) for each in residues), NOTHING)
            if whole:
                seconds = self._seconds(family, op.name, cost.ntts)
                if seconds is not None:
                    cost = replace(cost, milliseconds=1000 * seconds, unknown=0)
            self._lowered[key] = cost
        return self._lowered[key]

    def _lowering(self, op: Operation) -> list[Operation]:
        """Return the ops of `rns` that this op is lowered to."""
        block = Block(arg_types=[operand.type for operand in op.operands])
        alone = op.clone(dict(zip(op.operands, block.args, strict=True)))
        for index, argument in enumerate(block.args):
            alone.operands[index] = argument
        # What is assigned to an implementation, or in place, is left alone by the lowering.
        for recorded in (IMPLEMENTATION, IN_PLACE):
            alone.attributes.pop(recorded, None)
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
        return [each for each in module.walk() if type(each) in rns.OPERATIONS]

    def _family(self, op: Operation) -> str:
        return _FAMILY_OF.get(_recorded(op) or "", self.family)

    def _timed(self, family: str, name: str, units: int, counted: Cost) -> Cost:
        """Return a cost with the time of `units` of an op; no units are of no known time."""
        seconds = self._seconds(family, name, units) if units else None
        if seconds is None:
            return counted + Cost(unknown=1)
        return counted + Cost(milliseconds=1000 * seconds)

    def _seconds(self, family: str, name: str, units: int) -> float | None:
        degree = self.parameters.ring_degree
        seconds = self.calibration.seconds(family, name, degree, units)
        if seconds is None and name not in FAMILIES.get(family, {}):
            # What a family has no implementation of, the reference runs.
            seconds = self.calibration.seconds("torch", name, degree, units)
        return seconds

    def _words_of(self, op: Operation, type: Attribute) -> int:
        """Return how many polynomials modulo one prime take as much memory as a value."""
        parameters = self.parameters
        match type:
            case StateType():
                components = type.components if isinstance(type, CiphertextType) else 1
                if type.level is None or components is None:
                    raise PassFailure(
                        op,
                        f"found {op.name} with a value of type {type}, expected an assigned level "
                        "and number of components: assign them with ckks-assign-levels",
                    )
                return components * self._limbs(op, type.level)
            case KeyType():
                digits = len(parameters.digit_limbs(parameters.max_level))
                return digits * 2 * len(parameters.primes)
            case TensorType(element_type=element):
                count = prod(max(size, 1) for size in type.get_shape())
                if not isa(element, FixedBitwidthType):
                    return count * self._words_of(op, element)
                return -(-count * element.size // self._bytes(1))
            case _:
                return _words(type)

    def _limbs(self, op: Operation, level: int) -> int:
        try:
            return len(self.parameters.q_limbs(level))
        except ValueError as error:
            raise PassFailure(op, str(error)) from None

    def _bytes(self, words: int) -> int:
        return words * self.parameters.ring_degree * WORD_BYTES


def steps_of(op: rns.FusedOp) -> list[Operation]:
    """Return the ops that a fused region runs."""
    return [step for step in op.body.block.ops if not isinstance(step, rns.YieldOp)]


def _recorded(op: Operation) -> str | None:
    """Return the name of the implementation that an op records, if any."""
    name = getattr(op.attributes.get(IMPLEMENTATION), "data", None)
    return name if isinstance(name, str) else None


def _is_encoded(type: Attribute) -> bool:
    """Return whether a value is made of polynomials, or its elements are."""
    return isinstance(element_of(type), StateType | PolyType)


def _words(type: Attribute) -> int:
    """Return how many polynomials modulo one prime a value holds; 0 for what is none."""
    if not isinstance(type, PolyType):
        return 0
    return type.components * len(type.basis)
