"""Which ops are known to have no effect: more than those of which xDSL says so."""

import pytest
from xdsl.dialects import arith, func, math, memref, scf, tensor
from xdsl.dialects.builtin import IndexType, MemRefType, i1, i32, i64
from xdsl.dialects.test import TestOp as UnknownOp
from xdsl.ir import Block, Operation, Region
from xdsl.traits import IsTerminator, MemoryEffect

from fhelium.dialects.effects import UNDECLARED, is_effect_free


def choice(*inner: Operation) -> scf.IfOp:
    """A condition around some ops."""
    go = UnknownOp(result_types=[i1]).results[0]
    return scf.IfOp(go, [], Region(Block([*inner, scf.YieldOp()])))


def test_remainders_and_extensions() -> None:
    n, m = UnknownOp(result_types=[IndexType(), i32]).results
    assert is_effect_free(arith.RemUIOp(n, n))
    assert is_effect_free(arith.ExtSIOp(m, i64))
    assert is_effect_free(choice(arith.RemUIOp(n, n), choice(arith.ExtSIOp(m, i64))))


def test_effects_are_seen() -> None:
    buffer = UnknownOp(result_types=[MemRefType(i32, [])]).results[0]
    n = UnknownOp(result_types=[i32]).results[0]
    for op in (lambda: UnknownOp(), lambda: memref.StoreOp.get(n, buffer, [])):
        assert not is_effect_free(op())
        assert not is_effect_free(choice(choice(op())))
    assert not is_effect_free(func.CallOp("f", [], []))


@pytest.mark.parametrize("dialect", [arith.Arith, math.Math, tensor.Tensor], ids=lambda d: d.name)
def test_arithmetic_is_pure(dialect: object) -> None:
    operations = dialect.operations  # pyright: ignore[reportAttributeAccessIssue]
    unknown = [
        op
        for op in operations
        if not any(isinstance(trait, MemoryEffect | IsTerminator) for trait in op.traits)
    ]
    assert {op.name for op in unknown} <= {op.name for op in UNDECLARED}
