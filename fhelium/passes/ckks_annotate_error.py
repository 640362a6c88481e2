"""`ckks-annotate-error`: estimate how many bits of each encrypted value are right."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import isfinite, prod
from operator import add, mul, sub

from xdsl.context import Context
from xdsl.dialects import arith, func, scf, tensor
from xdsl.dialects.builtin import FloatAttr, IntegerAttr, ModuleOp, UnitAttr, f64
from xdsl.ir import Attribute, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.traits import IsTerminator

from fhelium.analyses.ciphertext_states import holds_state, require_states
from fhelium.analyses.error_analysis import ErrorAnalysis, TrackedValue
from fhelium.analyses.program_parameters import CHOSEN_BY, program_parameters
from fhelium.analyses.rank_dependence import yielded
from fhelium.dialects import ckks
from fhelium.dialects.ckks.types import CiphertextType
from fhelium.dialects.core import MaterialOp
from fhelium.dialects.distributed import (
    AllReduceAddCiphertextOp,
    AllReduceAddCiphertextsOp,
    AxisOp,
    BroadcastOp,
    CombiningOp,
    RecvOp,
    ReduceOp,
    SendOp,
    StartOp,
    WaitOp,
)
from fhelium.dialects.memory import TransferOp
from fhelium.passes.failure import PassFailure
from fhelium.passes.option_checks import check_at_least
from fhelium.scheme.parameters import Parameters

PRECISION = "ckks.precision_bits"
MAY_OVERFLOW = "ckks.may_overflow"

_MOST_TRIPS = 1 << 16


@dataclass(frozen=True)
class CkksAnnotateErrorPass(ModulePass):
    """Write on each op that yields a ciphertext how precise it is: `ckks.precision_bits = 21.3`.

    That is the number of bits after the point that are right in every slot once decoded, a f64
    rounded to a tenth: the fewest of the op's results and of the times it runs, infinity for an
    exact zero. An op whose message might not fit the modulus of its level, and would decode to
    something else, gets `ckks.may_overflow` too. An op that never runs gets neither.

    - `largest` bounds the magnitude of every message that comes from outside: arguments of
      functions that nothing calls, materials, and what is encoded. Ciphertexts among them count as
      fresh encryptions with the public key, plaintexts as encodings.
    - `ranks` is the size of the groups that reductions fold over; only those need it.

    Errors are followed by where they come from: those of one origin add up in full, others as
    deviations do. `fhelium.scheme.noise` says how large each one is, and with which chance a slot
    is worse. Calls are followed, loops with constant bounds are run, and of two branches the worse
    counts. Of what is sent with one tag the worst counts too. Needs `ckks.parameters` and assigned
    states, and comes before `convert-ckks-to-rns`.
    """

    name = "ckks-annotate-error"

    largest: int | float = 1.0
    ranks: int | None = None

    def __post_init__(self) -> None:
        check_at_least(0, largest=self.largest)
        check_at_least(1, ranks=self.ranks)

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        encrypted = [inner for inner in op.walk() if _handles_ciphertexts(inner)]
        if not encrypted:
            return
        parameters = program_parameters(op, f"how large errors are depends on them: {CHOSEN_BY}")
        for inner in encrypted:
            require_states(inner, _types(inner), parameters)
        run = self._run(op, parameters)
        for inner in op.walk():
            inner.attributes.pop(PRECISION, None)
            inner.attributes.pop(MAY_OVERFLOW, None)
        for inner, bits in run.precision.items():
            inner.attributes[PRECISION] = FloatAttr(round(bits, 1), f64)
        for inner in run.overflowing:
            inner.attributes[MAY_OVERFLOW] = UnitAttr()

    def _run(self, module: ModuleOp, parameters: Parameters) -> _Run:
        """Run a module until what is received is what is sent."""
        sends = {_message(each): each for each in module.walk() if isinstance(each, SendOp)}
        changed, received = [*sends], {}
        # What passes through several messages is known when each of them is.
        for _ in range(len(sends) + 2):
            errors = ErrorAnalysis(parameters, float(self.largest))
            run = _Run(errors, self.ranks, sends, received)
            run.module(module)
            changed = [each for each in sends if run.sent.get(each) != received.get(each)]
            if not changed:
                return run
            received = run.sent
        tag, _ = changed[0]
        raise PassFailure(
            sends[changed[0]],
            f"found messages of tag {tag} that pass on what such messages bring, expected a tag of "
            "its own for each: how often they do is not known",
        )


def _types(operation: Operation) -> Iterator[Attribute]:
    yield from (value.type for value in (*operation.operands, *operation.results))
    for region in operation.regions:
        for block in region.blocks:
            yield from (argument.type for argument in block.args)


def _handles_ciphertexts(operation: Operation) -> bool:
    return any(map(holds_state, _types(operation)))


_Message = tuple[int, Attribute]
"""What tells messages apart: their tag, and the type of what is sent."""


def _message(op: SendOp | RecvOp) -> _Message:
    return op.tag.value.data, op.payload


_Known = TrackedValue | int | None
"""What is known of an SSA value: the error of a ciphertext or plaintext, an integer, nothing."""

_INTEGERS: dict[type[Operation], Callable[[int, int], int]] = {
    arith.AddiOp: add,
    arith.SubiOp: sub,
    arith.MuliOp: mul,
}


@dataclass
class _Run:
    """Runs a module on what is known of its values."""

    errors: ErrorAnalysis
    ranks: int | None
    sends: Collection[_Message]
    received: Mapping[_Message, TrackedValue]
    sent: dict[_Message, TrackedValue] = field(default_factory=dict)
    precision: dict[Operation, float] = field(default_factory=dict)
    overflowing: set[Operation] = field(default_factory=set)
    known: dict[SSAValue, _Known] = field(default_factory=dict)
    functions: dict[str, func.FuncOp] = field(default_factory=dict)
    entered: set[func.FuncOp] = field(default_factory=set)
    active: list[func.FuncOp] = field(default_factory=list)

    def module(self, module: ModuleOp) -> None:
        """Run every function that nothing calls."""
        for op in module.ops:
            if not isinstance(op, func.FuncOp) and any(map(_handles_ciphertexts, op.walk())):
                raise PassFailure(op, f"found {op.name} outside of a function, expected it in one")
        functions = [op for op in module.ops if isinstance(op, func.FuncOp)]
        self.functions = {function.sym_name.data: function for function in functions}
        calls = [op for op in module.walk() if isinstance(op, func.CallOp)]
        called = {call.callee.string_value() for call in calls}
        defined = [function for function in functions if not function.is_declaration]
        for function in defined:
            if function.sym_name.data not in called:
                types = function.function_type.inputs
                self.function(
                    function, [self.errors.from_outside(t, self.errors.draw()) for t in types]
                )
        for function in defined:
            if function not in self.entered:
                raise _recursion(function, function.sym_name.data)

    def function(self, function: func.FuncOp, arguments: Sequence[_Known]) -> list[_Known]:
        self.entered.add(function)
        self.active.append(function)
        results = self.region(function, function.body, arguments)
        self.active.pop()
        return results

    def region(
        self, owner: Operation, region: Region, arguments: Sequence[_Known] = ()
    ) -> list[_Known]:
        """Return what is known of what the region's terminator hands on."""
        if region.first_block is not region.last_block:
            raise PassFailure(
                owner,
                f"found several blocks in {owner.name}, expected one: use scf.for and scf.if "
                "instead of branches",
            )
        self.known.update(zip(region.block.args, arguments, strict=True))
        for op in region.block.ops:
            if op.has_trait(IsTerminator):
                return [self.known[operand] for operand in op.operands]
            for result, value in zip(op.results, self.operation(op), strict=True):
                self.known[result] = value
                if isinstance(result.type, CiphertextType):
                    self.record(op, result.type, value)
        return []

    def record(self, op: Operation, type: CiphertextType, value: _Known) -> None:
        """Keep the worst that an op has yielded."""
        assert isinstance(value, TrackedValue)
        assert type.level is not None
        assert type.scale is not None
        estimate, parameters = value.estimate, self.errors.parameters
        if not isfinite(estimate.largest) or not isfinite(estimate.deviation):
            raise PassFailure(
                op,
                f"found {op.name} with a message that may be as large as 2^1023, expected less: "
                "multiply fewer large numbers, or give a smaller largest=",
            )
        bits = estimate.bits(parameters)
        self.precision[op] = min(bits, self.precision.get(op, bits))
        modulus = prod(parameters.primes[limb] for limb in parameters.q_limbs(type.level))
        if 2 * Fraction(estimate.largest) * Fraction(type.scale) >= modulus:
            self.overflowing.add(op)

    def operation(self, op: Operation) -> Sequence[_Known]:
        """Return what is known of the results of one op."""
        operands = [self.known[operand] for operand in op.operands]
        match op:
            case func.CallOp():
                return self.call(op, operands)
            case scf.ForOp():
                return self.loop(op, operands)
            case scf.IfOp():
                return self.branches(op)
            case MaterialOp():
                origin = (("material", op.symbol_name), 1)
                return [self.errors.from_outside(op.result.type, origin)]
            case ReduceOp():
                return [_worse(operands[0], self.all_reduce(op, operands[0]))]
            case CombiningOp() | AllReduceAddCiphertextOp():
                return [self.all_reduce(op, operands[0])]
            case AllReduceAddCiphertextsOp():
                return [self.all_reduce(op, operands[i]) for i in range(len(op.inputs))]
            case StartOp():
                self.region(op, op.body)
                return [None]
            case WaitOp():
                return [self.known[value] for value in yielded(op.start.body.block).operands]
            case SendOp():
                self.send(_message(op), operands[0])
                return []
            case RecvOp() if _handles_ciphertexts(op):
                return [self.receive(op)]
            case arith.ConstantOp(value=IntegerAttr() as number):
                return [number.value.data]
            case arith.SelectOp():
                return [_worse(operands[1], operands[2])]
            case TransferOp() | BroadcastOp() | AxisOp() | tensor.ExtractOp():
                return operands[:1]
            case _ if isinstance(op, tuple(ckks.OPERATIONS)):
                return self.errors.apply(op, [v for v in operands if isinstance(v, TrackedValue)])
            case _ if any(map(_handles_ciphertexts, op.walk())):
                raise PassFailure(
                    op,
                    f"found {op.name} on ciphertexts or plaintexts, expected an op whose error is "
                    "known: those of ckks, dist and mem, func.call, scf.for, scf.if, arith.select "
                    "and tensor.extract",
                )
        match operands:
            case [int() as x, int() as y] if type(op) in _INTEGERS:
                return [_INTEGERS[type(op)](x, y)]
            case _:
                return [None] * len(op.results)

    def call(self, call: func.CallOp, arguments: Sequence[_Known]) -> Sequence[_Known]:
        name = call.callee.string_value()
        function = self.functions.get(name)
        if function in self.active:
            raise _recursion(call, name)
        if function is not None and not function.is_declaration:
            return self.function(function, arguments)
        if _handles_ciphertexts(call):
            raise PassFailure(call, f"found a call of @{name}, which has no body here to follow")
        return [None] * len(call.results)

    def loop(self, loop: scf.ForOp, operands: Sequence[_Known]) -> Sequence[_Known]:
        match operands:
            case [int() as first, int() as last, int() as step, *carried] if step > 0:
                trips = range(first, last, step)
            case _ if any(map(_handles_ciphertexts, loop.walk())):
                raise PassFailure(
                    loop,
                    "found a loop whose bounds are not constant, expected constants and a step of "
                    "at least 1: the error depends on how often it runs",
                )
            case _:
                return [None] * len(loop.results)
        if len(trips) > _MOST_TRIPS:
            raise PassFailure(
                loop, f"found a loop of {len(trips)} iterations, expected at most {_MOST_TRIPS}"
            )
        for i in trips:
            carried = self.region(loop, loop.body, [i, *carried])
        return carried

    def branches(self, branch: scf.IfOp) -> Sequence[_Known]:
        first, *others = [self.region(branch, region) for region in branch.regions if region.blocks]
        for other in others:
            first = [_worse(x, y) for x, y in zip(first, other, strict=True)]
        return first

    def send(self, message: _Message, value: _Known) -> None:
        """Keep the worst that messages bring."""
        if isinstance(value, TrackedValue):
            self.sent[message] = value.worse(self.sent.get(message, value))

    def receive(self, op: RecvOp) -> TrackedValue | None:
        message = _message(op)
        if message not in self.sends:
            raise PassFailure(
                op,
                f"found dist.recv with tag {message[0]}, and no dist.send of a {message[1]} with "
                "it, expected one: what is received is as precise as what is sent",
            )
        unknown = self.errors.from_outside(op.result.type, self.errors.draw())
        return self.received.get(message, unknown)

    def all_reduce(
        self,
        op: CombiningOp | AllReduceAddCiphertextOp | AllReduceAddCiphertextsOp,
        value: _Known,
    ) -> _Known:
        if not isinstance(value, TrackedValue):
            return None
        if self.ranks is None:
            raise PassFailure(
                op,
                f"found {op.name} over a group of unknown size, expected the option ranks=: the "
                "error grows with it",
            )
        total: _Known = value
        for _ in range(1, self.ranks):
            # The other ranks compute the same from data and keys' noise of their own.
            another = TrackedValue.of(value.estimate, self.errors.draw())
            if isinstance(op, CombiningOp):
                (total,) = self.region(op, op.combine, [total, another])
            else:
                assert isinstance(total, TrackedValue)
                total = total.plus(another)
        return total


def _recursion(op: Operation, name: str) -> PassFailure:
    return PassFailure(
        op, f"found @{name} calling itself, expected no recursion: how often it runs is not known"
    )


def _worse(x: _Known, y: _Known) -> _Known:
    if isinstance(x, TrackedValue) and isinstance(y, TrackedValue):
        return x.worse(y)
    return x if x == y else None
