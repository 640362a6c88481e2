"""How deep regions and loops may nest in a program that is linked."""

from dataclasses import dataclass

import pytest
from xdsl.context import Context
from xdsl.dialects import arith, func, scf
from xdsl.dialects.builtin import IndexType, ModuleOp, i1
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass

from fhelium.backend import Compilation, LinkError, OperationBackend, Pipeline, ProgramExecutable
from fhelium.frontends.program import Program

TYPES = [i1, IndexType(), IndexType()]
BRANCH, LOOP, CALL = "?*@"


def nested(kinds: str) -> Program:
    """Return a sum inside branches, loops and functions, the outermost first."""
    return Program(ModuleOp(functions("main", kinds)))


def functions(name: str, kinds: str) -> list[Operation]:
    body = Block(arg_types=TYPES)
    outside, _, rest = kinds.partition(CALL)
    called = functions(f"{name}_callee", rest) if CALL in kinds else []
    condition, x, y = body.args
    inside: Operation = arith.AddiOp(x, y)
    if called:
        inside = func.CallOp(f"{name}_callee", body.args, [IndexType()])
    for kind in reversed(outside):
        inside = around(kind, inside, condition, x, y)
    body.add_ops([inside, func.ReturnOp(inside.results[0])])
    return [func.FuncOp(name, (TYPES, [IndexType()]), Region(body)), *called]


def around(
    kind: str, inside: Operation, condition: SSAValue, x: SSAValue, y: SSAValue
) -> Operation:
    ops = [inside, scf.YieldOp(inside.results[0])]
    if kind == BRANCH:
        other = Region(Block([scf.YieldOp(x)]))
        return scf.IfOp(condition, [IndexType()], Region(Block(ops)), other)
    return scf.ForOp(x, y, y, [x], Block(ops, arg_types=[IndexType()] * 2))


def link(kinds: str) -> ProgramExecutable:
    return OperationBackend().link(Compilation(nested(kinds), pipeline=Pipeline()))


@pytest.mark.parametrize(
    "kinds",
    [
        BRANCH * 98,
        LOOP * 20,
        BRANCH * 39 + LOOP * 10 + BRANCH * 39 + LOOP * 10,
        BRANCH * 60 + CALL + BRANCH * 60,
        LOOP * 12 + CALL + LOOP * 12,
    ],
)
def test_what_host_code_can_nest_is_linked(kinds: str) -> None:
    executable = link(kinds)
    assert executable.run(True, 2, 4) == 6
    assert executable.run(False, 2, 4) == (2 if BRANCH in kinds else 6)


@pytest.mark.parametrize(
    ("kinds", "message"),
    [
        (BRANCH * 99, "found arith.addi inside 100 regions, expected at most 99"),
        (BRANCH * 1000, "found scf.if inside 100 regions, expected at most 99"),
        (BRANCH * 10 + CALL + BRANCH * 99, "found arith.addi inside 100 regions"),
        (LOOP * 21, "found 21 nested loops, expected at most 20"),
        (LOOP * 10 + BRANCH * 5 + LOOP * 11, "found 21 nested loops"),
    ],
)
def test_what_host_code_cannot_nest_is_refused(kinds: str, message: str) -> None:
    with pytest.raises(LinkError) as caught:
        link(kinds)
    (fault,) = caught.value.faults
    assert fault.message.startswith(message)
    assert fault.message.endswith(
        "host code is Python, which nests no deeper: move what is inside to a function, and call it"
    )


@dataclass(frozen=True)
class DeepenPass(ModulePass):
    name = "deepen"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        op.body.block.erase_op(op.body.block.ops.first)  # pyright: ignore[reportArgumentType]
        op.body.block.add_ops(functions("main", BRANCH * 99))


def test_what_passes_nest_counts() -> None:
    with pytest.raises(LinkError, match=r"found arith\.addi inside 100 regions"):
        OperationBackend().link(Compilation(nested(BRANCH), pipeline=Pipeline((DeepenPass(),))))
