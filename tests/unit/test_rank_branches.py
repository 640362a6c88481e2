"""A branch a rank, for as many ranks as a run may have."""

import pytest
from clients import client_of
from test_backend_third_party import GROUP
from xdsl.dialects import arith, func, scf
from xdsl.dialects.builtin import IndexType, IntegerAttr, ModuleOp
from xdsl.ir import Block, Region

from fhelium.analyses.rank_branches import ONE_BY_ONE, branch_by_rank
from fhelium.analyses.rank_dependence import ancestors
from fhelium.backend import Compilation, OperationBackend, Pipeline, ResourceBindings
from fhelium.frontends.program import Program
from fhelium.frontends.tracing import trace
from fhelium.scheme.parameters import Parameters

NUMBER = IndexType()


def numbers(ranks: int) -> ModuleOp:
    """Return a program that takes a rank, and gives its square."""
    blocks: list[Block] = []
    for rank in range(ranks):
        square = arith.ConstantOp(IntegerAttr(rank * rank, NUMBER))
        blocks.append(Block([square, scf.YieldOp(square.result)]))
    body = Block(arg_types=[NUMBER])
    function = func.FuncOp("main", ([NUMBER], [NUMBER]), Region(body))
    ops, choice = branch_by_rank(body.args[0], blocks, [NUMBER], function.location)
    body.add_ops([*ops, func.ReturnOp(choice.results[0])])
    return ModuleOp([function])


@pytest.mark.parametrize("ranks", [2, 3, ONE_BY_ONE, ONE_BY_ONE + 1, 61, 128, 300])
def test_each_rank_runs_its_block(ranks: int) -> None:
    program = Program.parse(str(numbers(ranks)))
    program.verify()
    executable = OperationBackend().link(Compilation(program, pipeline=Pipeline()))
    assert [executable.run(rank) for rank in range(ranks)] == [i * i for i in range(ranks)]
    depths = [len([*ancestors(op)]) for op in program.module.walk()]
    assert max(depths) <= 2 + ONE_BY_ONE + ranks.bit_length()


def test_few_ranks_are_told_apart_one_after_the_other() -> None:
    compared = [op for op in numbers(ONE_BY_ONE).walk() if isinstance(op, arith.CmpiOp)]
    assert {op.predicate.value.data for op in compared} == {0}
    assert len(compared) == ONE_BY_ONE - 1


# INSECURE: for tests alone.
SHALLOW = Parameters.build(ring_degree=32, depth=1, scale_bits=40, insecure=True)
DEEP = Parameters.build(ring_degree=32, depth=ONE_BY_ONE, scale_bits=40, digits=4, insecure=True)


@pytest.mark.parametrize("ranks", [128, 300])
def test_sums_are_shared_by_many_ranks(ranks: int) -> None:
    program = trace(lambda x, y: sum([x, y] * (ranks // 2), x), SHALLOW)
    split = f"ckks-distribute-weighted-sum{{ranks={ranks}}},dist-verify-spmd{{ranks={ranks}}}"
    Pipeline.parse(split).apply(program)
    branches = [op for op in program.module.walk() if isinstance(op, scf.IfOp)]
    assert len(branches) == ranks - 1
    backend = OperationBackend(
        named_resources=ResourceBindings([GROUP]), materializer=client_of(SHALLOW)
    )
    lower = Pipeline.parse("convert-ckks-to-rns")
    backend.link(Compilation(Program.parse(str(program)), pipeline=lower))


def test_limbs_are_shared_by_many_ranks() -> None:
    """All branches issue the same messages, however ranks are told apart."""
    ranks = ONE_BY_ONE + 1
    program = trace(lambda x, y: x * y, DEEP)
    lower = (
        f"convert-ckks-to-rns,rns-shard-limbs{{ranks={ranks}}},dist-verify-spmd{{ranks={ranks}}}"
    )
    Pipeline.parse(lower).apply(program)
    assert sum(isinstance(op, scf.IfOp) for op in program.module.walk()) == ranks - 1
