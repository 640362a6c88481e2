"""`ckks-distribute-weighted-sum`: share the terms of large sums out to the ranks of a group."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeGuard

from xdsl.context import Context
from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from fhelium.analyses.cost_model import CostModel
from fhelium.analyses.encrypted_steps import encrypted_functions
from fhelium.analyses.program_costs import costs_of
from fhelium.analyses.rank_branches import branch_by_rank
from fhelium.analyses.rank_dependence import RankDependence
from fhelium.analyses.rank_reach import all_ranks_reach
from fhelium.analyses.sums_of_terms import (
    SumOp,
    Term,
    add_up,
    is_outermost_sum,
    saved_sums,
    terms_of,
)
from fhelium.dialects import ckks
from fhelium.dialects.ckks.types import CiphertextType
from fhelium.dialects.core import CheckpointOp, ResourceOp, has_assignment
from fhelium.dialects.distributed import AllReduceAddCiphertextOp, GroupType, RankOp
from fhelium.dialects.effects import is_effect_free
from fhelium.passes.failure import PassFailure
from fhelium.passes.implementation_families import FAMILIES
from fhelium.passes.option_checks import check_at_least, check_names, check_one_of

KEY_SWITCHES = (
    *(ckks.RotateOp, ckks.RotateManyOp, ckks.ConjugateOp),
    *(ckks.RelinearizeOp, ckks.RelinearizeRescaleOp),
)
"""Ops that cost a key switch a result."""

Cost = tuple[int, int]
"""Key switches, then products and other ops: compared in this order."""


@dataclass(frozen=True)
class CkksDistributeWeightedSumPass(ModulePass):
    """Let each of `ranks` ranks of the group resource `@group` add up a share of a large sum.

    A sum is a tree of ckks.add and ckks.sub, or a ckks.weighted_sum, whose products count one by
    one unless something comes between it and the sum. Those of at least `least` terms, and a term
    a rank, are split: one branch a rank holds what only its terms need, and a
    `dist.all_reduce_add_ciphertext` behind them adds the shares. Terms are dealt so that ranks
    have about the same number of key switches, then of products. Of a matrix-vector product by
    baby and giant steps each rank so gets giant steps, with the products below them; the baby
    steps, which share a decomposition, run on every rank that needs them. Plaintexts are encoded
    in front of the branches, so that a link still does it once.

    All ranks must be given the same ciphertexts, materials and keys, and all terms of a sum one
    batch: the shares of a sum of batches and single ciphertexts may differ in shape, which the
    ranks refuse when they meet. A sum modulo q does not depend on the order of its terms, so a
    program with assigned levels and scales gives the bits of one rank. Put the pass behind
    scheduling, and before implementations are assigned. A group of another size is an error, in
    `dist-verify-spmd` or when the program runs, before any arithmetic.

    Some sums are left alone, without a word: those that some ranks may not reach, or whose terms
    may differ between ranks by the text (what follows from `dist.rank`, `dist.scatter` or
    `dist.recv`, say), those of fewer terms, and those inside a share. What a `fhelium.checkpoint`
    saves is one term of a sum behind it. A program in which nothing was split has no collective
    that it did not have.

    By default, `by=count`, every sum of enough terms is split. With `by=time` those alone whose
    dearest share and the message behind it take less time than the whole sum, as far as
    `calibration` and `family` tell, which are those of `fhelium-annotate-cost`: give it a
    calibration that was measured with as many ranks.
    """

    name = "ckks-distribute-weighted-sum"

    ranks: int
    group: str = "world"
    least: int = 8
    by: Literal["count", "time"] = "count"
    calibration: str | None = None
    family: str = "torch"

    def __post_init__(self) -> None:
        check_at_least(1, ranks=self.ranks)
        check_at_least(2, least=self.least)
        check_names(group=self.group)
        check_one_of(FAMILIES, family=self.family)

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if self.ranks == 1:
            return
        functions = list(encrypted_functions(op))
        for inner in (inner for function in functions for inner in function.walk()):
            if has_assignment(inner):
                raise PassFailure(
                    inner,
                    f"{inner.name} records how or where it runs, expected ops without assignments: "
                    f"run {self.name} before fhelium-assign-implementations, and write mem.device "
                    "behind it",
                )
        model = None
        if self.by == "time":
            model = costs_of(op, self.calibration, self.family).model
        # Without the same inputs sums would not be equal, yet they may steer what ranks run.
        reach, equal = RankDependence(op), RankDependence(op, inputs_are_equal=True)
        for function in functions:
            ranks = _Ranks(function, self.ranks, self.group)
            group, saved = ranks.group.result, saved_sums(function)
            # The sums that use others come first; what they take into their shares is then gone.
            for root in reversed([inner for inner in function.walk() if _is_sum(inner, saved)]):
                if root.parent is None:
                    continue
                private = _private_ops(root)
                parts = _parts_of(root, private, saved)
                if (
                    len(parts) >= max(self.least, self.ranks)
                    and all_ranks_reach(root, group, reach)
                    and equal.origin(root.result, group) is None
                ):
                    _split(root, parts, private, ranks, model)


@dataclass(frozen=True)
class _Part:
    """A term of a sum, or one product of a weighted sum that is a term."""

    value: SSAValue
    negative: bool = False
    weight: SSAValue | None = None
    whole: ckks.WeightedSumOp | None = None


@dataclass
class _Ranks:
    """The ranks of a group, which a function asks for once it has a sum that they share."""

    function: FuncOp
    count: int
    name: str
    group: ResourceOp = field(init=False)
    number: SSAValue | None = None

    def __post_init__(self) -> None:
        self.group = ResourceOp(self.name, GroupType())

    def rank(self) -> SSAValue:
        """Return this rank's number in a group that has to have `count` ranks."""
        if self.number is None:
            rank = RankOp(self.group, self.count)
            self.group.location = rank.location = self.function.location
            Rewriter.insert_op([self.group, rank], InsertPoint.at_start(self.function.body.block))
            self.number = rank.result
        return self.number


def _is_sum(op: Operation, saved: Collection[Operation]) -> TypeGuard[SumOp | ckks.WeightedSumOp]:
    return isinstance(op, ckks.WeightedSumOp) or is_outermost_sum(op, saved)


def _parts_of(
    root: SumOp | ckks.WeightedSumOp, private: Sequence[Operation], saved: Collection[Operation]
) -> list[_Part]:
    """Return the terms of a sum, and the products of the weighted sums among them."""
    parts: list[_Part] = []
    inside = {root, *private}
    alone = isinstance(root, ckks.WeightedSumOp)
    for term in [Term(root.result)] if alone else terms_of(root, saved):
        owner = term.value.owner
        once = owner is root or term.value.has_one_use()
        if isinstance(owner, ckks.WeightedSumOp) and once and owner in inside:
            pairs = zip(owner.terms, owner.weights, strict=True)
            parts += [_Part(value, term.negative, weight, owner) for value, weight in pairs]
        else:
            parts.append(_Part(term.value, term.negative))
    return parts


def _split(
    root: SumOp | ckks.WeightedSumOp,
    parts: Sequence[_Part],
    private: Sequence[Operation],
    ranks: _Ranks,
    model: CostModel | None,
) -> None:
    """Put branches for the shares of a sum, and their sum over the ranks, in its place.

    With a model of costs, only if that takes less time.
    """
    needs = _Needs(private)
    shares = _deal(parts, needs, ranks.count)
    taken = [needs.named(needs.of(part.value for part in share)) for share in shares]
    kept = _kept(private, set.intersection(*taken))
    moved = [op for op in private if op not in kept]
    blocks = [_branch(root, *both, moved) for both in zip(shares, taken, strict=True)]
    if model is not None and not _is_faster(model, [*moved, root], blocks, root, ranks.group):
        for block in blocks:
            block.erase()
        return
    dispatch, share = branch_by_rank(ranks.rank(), blocks, [root.result.type], root.location)
    total = AllReduceAddCiphertextOp(share.results[0], ranks.group)
    total.location = root.location
    Rewriter.insert_op([*dispatch, total], InsertPoint.before(root))
    total.result.name_hint = root.result.name_hint
    root.result.replace_all_uses_with(total.result)
    for op in (root, *reversed(moved)):
        Rewriter.erase_op(op)


def _is_faster(
    model: CostModel,
    alone: Sequence[Operation],
    shares: Sequence[Block],
    root: SumOp | ckks.WeightedSumOp,
    group: ResourceOp,
) -> bool:
    """Return whether the dearest share and the sum over the ranks take less time than all ops."""
    sum_over_ranks = AllReduceAddCiphertextOp(root.result, group)
    message = model.of(sum_over_ranks)
    sum_over_ranks.erase()
    if message.unknown:
        raise PassFailure(
            root,
            "found no time of a sum over ranks in the calibration, which by=time needs: measure it "
            "with several ranks, as in fhelium-run program.mlir --calibrate FILE --nproc 2",
        )
    shared = max(_milliseconds(model, block.ops) for block in shares)
    return shared + message.milliseconds < _milliseconds(model, alone)


def _milliseconds(model: CostModel, ops: Iterable[Operation]) -> float:
    return sum(model.of(op).milliseconds for op in ops)


def _private_ops(root: Operation) -> list[Operation]:
    """Return the ops on ciphertexts that serve a sum alone, in program order."""
    private: dict[Operation, None] = {root: None}
    op = root.prev_op
    # What a checkpoint saves is not computed behind it.
    while op is not None and not isinstance(op, CheckpointOp):
        users = {use.operation for result in op.results for use in result.uses}
        serves = bool(users) and users <= private.keys()
        encrypted = any(isinstance(result.type, CiphertextType) for result in op.results)
        if serves and encrypted and not op.regions and is_effect_free(op):
            private[op] = None
        op = op.prev_op
    del private[root]
    return [*reversed(private)]


class _Needs:
    """What each private value is computed from, and itself: a bit for each private value.

    Bits, since a value of a deep program may need all that stands before it.
    """

    def __init__(self, private: Sequence[Operation]):
        self.values = [result for op in private for result in op.results]
        self.bits: dict[SSAValue, int] = {}
        self.switches = 0
        self.products: dict[int, int] = {}
        """The values that cost so many products each."""
        for op in private:
            below = self.of(op.operands)
            count = len(op.terms) if isinstance(op, ckks.WeightedSumOp) else 1
            for result in op.results:
                bit = 1 << len(self.bits)
                self.bits[result] = below | bit
                self.switches |= bit * isinstance(op, KEY_SWITCHES)
                self.products[count] = self.products.get(count, 0) | bit

    def of(self, values: Iterable[SSAValue]) -> int:
        """Return the bits of all that values need."""
        needed = 0
        for value in values:
            needed |= self.bits.get(value, 0)
        return needed

    def named(self, bits: int) -> set[SSAValue]:
        """Return the values whose bits are set."""
        return {value for number, value in enumerate(self.values) if bits >> number & 1}

    def cost(self, bits: int) -> Cost:
        """Return what it costs to compute values from their operands."""
        products = sum(n * (bits & which).bit_count() for n, which in self.products.items())
        return (bits & self.switches).bit_count(), products


def _deal(parts: Sequence[_Part], needs: _Needs, ranks: int) -> list[list[_Part]]:
    """Share parts out: the dearest first, each to the rank that has the least to do with it.

    An empty share is always cheapest, so that none is left empty.
    """
    loads: list[Cost] = [(0, 0)] * ranks
    taken = [0] * ranks
    owners: dict[int, int] = {}
    needed = [needs.of([part.value]) for part in parts]
    costs = [needs.cost(bits) for bits in needed]
    for index in sorted(range(len(parts)), key=costs.__getitem__, reverse=True):
        with_it = [
            _plus(load, needs.cost(needed[index] & ~held))
            for load, held in zip(loads, taken, strict=True)
        ]
        rank = min(range(ranks), key=with_it.__getitem__)
        loads[rank] = _plus(with_it[rank], (0, 1))
        taken[rank] |= needed[index]
        owners[index] = rank
    return [[p for i, p in enumerate(parts) if owners[i] == rank] for rank in range(ranks)]


def _plus(one: Cost, other: Cost) -> Cost:
    return one[0] + other[0], one[1] + other[1]


def _kept(private: Sequence[Operation], common: set[SSAValue]) -> set[Operation]:
    """Return the ops that every rank needs as a whole: they stay in front of the branches."""
    kept: set[Operation] = set()
    inside = set(private)
    for op in private:
        used = {result for result in op.results if result.uses}
        below = {v.owner for v in op.operands if isinstance(v.owner, Operation)} & inside
        if used <= common and below <= kept:
            kept.add(op)
    return kept


def _branch(
    root: SumOp | ckks.WeightedSumOp,
    share: Sequence[_Part],
    taken: set[SSAValue],
    moved: Sequence[Operation],
) -> Block:
    """Return what one rank runs: copies of the ops that its share needs, and their sum."""
    new_ops: list[Operation] = []
    copies: dict[SSAValue, SSAValue] = {}
    for op in moved:
        if taken.isdisjoint(op.results):
            continue
        if isinstance(op, ckks.RotateManyOp):
            new_ops.append(_narrowed(op, taken, copies))
        else:
            new_ops.append(op.clone(copies))
    first_new = len(new_ops)
    terms: list[Term] = []
    products: dict[ckks.WeightedSumOp, list[_Part]] = {}
    for part in share:
        if part.whole is None:
            terms.append(Term(copies.get(part.value, part.value), part.negative))
        else:
            products.setdefault(part.whole, []).append(part)
    for whole, pairs in products.items():
        values = [copies.get(pair.value, pair.value) for pair in pairs]
        weights = [pair.weight for pair in pairs if pair.weight is not None]
        op = ckks.WeightedSumOp(values, weights, CiphertextType.of(whole.result))
        new_ops.append(op)
        terms.append(Term(op.result, pairs[0].negative))
    new_ops.append(scf.YieldOp(add_up(terms, new_ops)))
    for op in new_ops[first_new:]:
        op.location = root.location
    return Block(new_ops)


def _narrowed(
    op: ckks.RotateManyOp, taken: set[SSAValue], copies: dict[SSAValue, SSAValue]
) -> ckks.RotateManyOp:
    """Return an op for the rotations that a share needs.

    One alone stays hoisted too: ckks.rotate may round to other bits.
    """
    steps, indices = op.steps.get_values(), [i for i, o in enumerate(op.outputs) if o in taken]
    narrowed = ckks.RotateManyOp(
        copies.get(op.input, op.input), [steps[i] for i in indices], [op.keys[i] for i in indices]
    )
    narrowed.location = op.location
    for index, output in zip(indices, narrowed.outputs, strict=True):
        copies[op.outputs[index]] = output
        output.name_hint = op.outputs[index].name_hint
    return narrowed
