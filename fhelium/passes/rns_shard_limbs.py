"""`rns-shard-limbs`: spread the limbs of every value over the ranks of a group."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter
from xdsl.traits import IsTerminator

from fhelium.analyses.aggregated_sums import AggregatedSum, aggregated_sums
from fhelium.analyses.limb_branches import LimbBranch, values_read_whole
from fhelium.analyses.limb_shares import LimbShares
from fhelium.analyses.program_parameters import program_parameters
from fhelium.analyses.rank_branches import branch_by_rank
from fhelium.analyses.rank_dependence import AGREEING, captured, group_key
from fhelium.dialects import secure
from fhelium.dialects.ckks.types import StateType
from fhelium.dialects.core import ResourceOp, element_of
from fhelium.dialects.distributed import BarrierOp, CollectiveOp, GroupQueryOp, GroupType, RankOp
from fhelium.dialects.effects import is_effect_free
from fhelium.dialects.rns.types import PolyType, basis_text
from fhelium.passes.failure import PassFailure
from fhelium.passes.option_checks import check_at_least, check_names
from fhelium.scheme.parameters import Parameters


@dataclass(frozen=True)
class RnsShardLimbsPass(ModulePass):
    """Let each rank of a group hold and compute a share of the limbs of every value.

    The program stays one text for all `ranks` ranks of the group resource `@group`: a branch a
    rank, whose types name that rank's limbs. Inputs and materials come whole to every rank, and
    results are whole on every rank, the same bits as on one. Between them only base conversions
    send limbs: one all_gather for the input of a key switch (or for all rotations that share it),
    one broadcast for the limbs that a rescale drops. Key switches that are only added up, before
    they are divided by the special primes (`rns-fuse-divisions{sums=true}`), are shared whole where
    that sends fewer limbs: each input goes to one rank, and one reduce_scatter of Q and one
    all_reduce of P add what ranks have made. The ranks work on one value together, so the
    program has no other collectives, but for those that make numbers, tensors and keys the same on
    each rank: a condition may come from a `dist.broadcast`. Put the pass behind the rns passes,
    before implementations are assigned. The group must have as many ranks as the text says: a run
    with others is an error.
    """

    name = "rns-shard-limbs"

    ranks: int
    group: str = "world"

    def __post_init__(self) -> None:
        check_at_least(1, ranks=self.ranks)
        check_names(group=self.group)

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if self.ranks == 1:
            return
        functions = [inner for inner in op.walk() if isinstance(inner, FuncOp) and _spread(inner)]
        if not functions:
            return
        parameters = program_parameters(op, "keep the attribute when you lower")
        limbs = LimbShares(parameters, self.ranks)
        levels = limbs.parameters.max_level + 1
        if self.ranks > levels:
            raise PassFailure(
                op,
                f"found ranks={self.ranks}, expected at most {levels}: each rank owns the primes "
                f"of whole levels, and there are {levels}",
            )
        for function in functions:
            _check(function, limbs.parameters, self.group)
            _shard(function, limbs, self.group)


def _elements(function: FuncOp) -> Iterator[Attribute]:
    """Yield the types of a function's values; of tensors those of their elements."""
    for block in (block for op in function.walk() for r in op.regions for block in r.blocks):
        for value in (*block.args, *(result for op in block.ops for result in op.results)):
            yield element_of(value.type)


def _spread(function: FuncOp) -> bool:
    """Return whether a function computes on values that have limbs to spread, lowered or not."""
    spread = PolyType, StateType, secure.TensorType
    return any(isinstance(element, spread) for element in _elements(function))


def _check(function: FuncOp, parameters: Parameters, group_name: str) -> None:
    """Refuse what can't be spread, before anything is changed."""
    if len(function.body.blocks) != 1:
        raise PassFailure(
            function,
            f"found @{function.sym_name.data} with {len(function.body.blocks)} blocks, expected "
            "one: use scf.if and scf.for",
        )
    elements = [*dict.fromkeys(_elements(function))]
    residues = [element for element in elements if isinstance(element, PolyType)]
    if not residues:
        found = next(e for e in elements if isinstance(e, StateType | secure.TensorType))
        raise PassFailure(
            function,
            f"found {found} in @{function.sym_name.data}, expected residue polynomials, whose "
            "limbs ranks can share: lower with convert-ckks-to-rns first",
        )
    q, p = len(parameters.q_primes), len(parameters.p_primes)
    for element in residues:
        if max(element.basis.q, default=-1) >= q or max(element.basis.p, default=-1) >= p:
            raise PassFailure(
                function,
                f"found a value over {basis_text(element.basis)}, expected limbs of the "
                f"parameters, Q[0:{q}] P[0:{p}]",
            )
    for op in function.walk():
        if isinstance(op, CollectiveOp | GroupQueryOp) and not _agrees(op, group_name):
            raise PassFailure(
                op,
                f"found {op.name} in a program whose limbs are to be spread, expected one of a "
                "single rank: ranks that share limbs work on one value. What makes numbers, "
                f"tensors and keys the same on each rank of @{group_name} may stay: broadcast, "
                "all_reduce, all_gather and barrier",
            )


def _agrees(op: CollectiveOp | GroupQueryOp, group_name: str) -> bool:
    """Return whether an op leaves the same on each rank of the group, and has no polynomials."""
    elements = [element_of(value.type) for value in (*op.operands, *op.results)]
    return (
        isinstance(op, (*AGREEING, BarrierOp))
        and group_key(op.group) == group_name
        and not any(isinstance(element, PolyType | StateType) for element in elements)
    )


def _shard(function: FuncOp, limbs: LimbShares, group_name: str) -> None:
    block = function.body.block
    outside = _outside(block)
    inside = [op for op in block.ops if op not in outside]
    terminator = inside.pop()
    group = ResourceOp(group_name, GroupType())
    rank = RankOp(group, limbs.ranks)
    group.location = rank.location = function.location
    known = [*block.args, *(result for op in block.ops if op in outside for result in op.results)]
    given = [
        value
        for value in known
        if isinstance(value.type, PolyType)
        and any(use.operation not in outside for use in value.uses)
    ]
    read_whole = values_read_whole(function.walk(), limbs)
    sums: dict[Operation, AggregatedSum | None] = {}
    for each in aggregated_sums(function.walk(), limbs):
        sums |= {**dict.fromkeys(each.inner), each.total: each}
    branches = [
        _branch(LimbBranch(limbs, i, group.result, read_whole, sums), given, inside, terminator)
        for i in range(limbs.ranks)
    ]
    types = [value.type for value in terminator.operands]
    dispatch, share = branch_by_rank(rank.result, branches, types, function.location)
    terminator.operands = share.results
    for op in reversed(inside):
        Rewriter.erase_op(op)
    block.insert_ops_before([group, rank, *dispatch], terminator)


def _outside(block: Block) -> set[Operation]:
    """Return the ops that every rank runs whole, before ranks part: those that need no polynomial.

    They are pure, or make a number the same on each rank, so that conditions on it are one
    condition. Among them is all that comes from materials, which a link computes once.
    """
    outside: set[Operation] = set()
    known: set[SSAValue] = {v for v in block.args if not isinstance(element_of(v.type), PolyType)}
    for op in block.ops:
        pure = is_effect_free(op) and not op.has_trait(IsTerminator)
        if (pure or isinstance(op, AGREEING)) and known.issuperset((*op.operands, *captured(op))):
            outside.add(op)
            known.update(op.results)
    return outside


def _branch(
    branch: LimbBranch,
    given: Sequence[SSAValue],
    inside: Sequence[Operation],
    terminator: Operation,
) -> Block:
    """Return what one rank runs of a function's ops, of polynomials that it is given whole."""
    for value in given:
        branch.give(value)
    for op in inside:
        branch.add(op)
    results = [branch.entire(value) for value in terminator.operands]
    last = scf.YieldOp(*results)
    last.location = terminator.location
    branch.block.add_op(last)
    return branch.block
