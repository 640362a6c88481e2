"""`rns-shard-limbs`: spread the limbs of every value over the ranks of a group."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter
from xdsl.traits import IsTerminator

from fhelium.analyses.limb_branches import LimbBranch, values_read_whole
from fhelium.analyses.limb_shares import LimbShares
from fhelium.analyses.program_parameters import program_parameters
from fhelium.analyses.rank_branches import branch_by_rank
from fhelium.dialects.core import ResourceOp
from fhelium.dialects.distributed import CollectiveOp, GroupQueryOp, GroupType, RankOp
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
    one broadcast for the limbs that a rescale drops. The ranks work on one value together, so the
    program has no other collectives; put the pass behind the rns passes, before implementations
    are assigned. The group must have as many ranks as the text says: a run with others is an error.
    """

    name = "rns-shard-limbs"

    ranks: int
    group: str = "world"

    def __post_init__(self) -> None:
        check_at_least(1, ranks=self.ranks)
        check_names(group=self.group)

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        functions = [
            inner
            for inner in op.walk()
            if isinstance(inner, FuncOp) and inner.body.blocks and any(_polynomials(inner))
        ]
        if self.ranks == 1 or not functions:
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
            _check(function, limbs.parameters)
            _shard(function, limbs, self.group)


def _polynomials(function: FuncOp) -> Iterator[SSAValue]:
    for block in (block for op in function.walk() for r in op.regions for block in r.blocks):
        for value in (*block.args, *(result for op in block.ops for result in op.results)):
            if isinstance(value.type, PolyType):
                yield value


def _check(function: FuncOp, parameters: Parameters) -> None:
    """Refuse what can't be spread, before anything is changed."""
    if len(function.body.blocks) != 1:
        raise PassFailure(
            function,
            f"found @{function.sym_name.data} with {len(function.body.blocks)} blocks, expected "
            "one: use scf.if and scf.for",
        )
    for value in _polynomials(function):
        basis, (q, p) = PolyType.of(value).basis, (parameters.q_primes, parameters.p_primes)
        if max(basis.q, default=-1) >= len(q) or max(basis.p, default=-1) >= len(p):
            raise PassFailure(
                function,
                f"found a value over {basis_text(basis)}, expected limbs of the parameters, "
                f"Q[0:{len(q)}] P[0:{len(p)}]",
            )
    for op in function.walk():
        if isinstance(op, CollectiveOp | GroupQueryOp):
            raise PassFailure(
                op,
                f"found {op.name} in a program whose limbs are to be spread, expected one of a "
                "single rank: ranks that share limbs work on one value",
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
    branches = [
        _branch(LimbBranch(limbs, number, group.result, read_whole), given, inside, terminator)
        for number in range(limbs.ranks)
    ]
    types = [value.type for value in terminator.operands]
    dispatch, share = branch_by_rank(rank.result, branches, types, function.location)
    terminator.operands = share.results
    for op in reversed(inside):
        Rewriter.erase_op(op)
    block.insert_ops_before([group, rank, *dispatch], terminator)


def _outside(block: Block) -> set[Operation]:
    """Return the ops that every rank runs whole: pure ones that need no polynomial of the caller.

    Among them is all that comes from materials, which a link computes once.
    """
    outside: set[Operation] = set()
    known: set[SSAValue] = {v for v in block.args if not isinstance(v.type, PolyType)}
    for op in block.ops:
        pure = is_effect_free(op) and not op.regions and not op.has_trait(IsTerminator)
        if pure and known.issuperset(op.operands):
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
    results = [
        branch.whole(value) if isinstance(value.type, PolyType) else branch.held(value)
        for value in terminator.operands
    ]
    last = scf.YieldOp(*results)
    last.location = terminator.location
    branch.block.add_op(last)
    return branch.block
