"""Host arithmetic against its meaning: two's complement, computed here with Python's integers."""

from collections.abc import Callable
from itertools import product
from typing import Any

import pytest
import torch

from fhelium.backend import (
    Compilation,
    LinkError,
    OperationBackend,
    Pipeline,
    Program,
    ProgramExecutable,
)

WIDTHS = {"i1": 1, "i8": 8, "i13": 13, "i32": 32, "i64": 64, "index": 64}
DTYPES = {
    "i1": torch.bool,
    "i8": torch.int8,
    "i32": torch.int32,
    "i64": torch.int64,
    "index": torch.int64,
}
OPERATIONS: dict[str, Callable[[int, int], int]] = {
    "arith.addi": lambda a, b: a + b,
    "arith.subi": lambda a, b: a - b,
    "arith.muli": lambda a, b: a * b,
    "arith.andi": lambda a, b: a & b,
    "arith.ori": lambda a, b: a | b,
    "arith.minsi": min,
    "arith.maxsi": max,
    "arith.floordivsi": lambda a, b: a // b,
}
PREDICATES: dict[str, Callable[[int, int], bool]] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "slt": lambda a, b: a < b,
    "sle": lambda a, b: a <= b,
    "sgt": lambda a, b: a > b,
    "sge": lambda a, b: a >= b,
}


def linked(text: str) -> ProgramExecutable:
    return OperationBackend().link(Compilation(Program.parse(text), pipeline=Pipeline()))


def binary(op: str, type: str, result: str | None = None) -> ProgramExecutable:
    result = result or type
    return linked(
        f"func.func @main(%a: {type}, %b: {type}) -> {result} {{\n"
        f"  %c = {op} %a, %b : {type}\n  func.return %c : {result}\n}}"
    )


def edges(width: int) -> list[int]:
    """Return signed integers at the ends and in the middle of a width."""
    if width == 1:
        return [-1, 0]
    half = 1 << width - 1
    return [-half, -half + 1, -7, -2, -1, 0, 1, 2, 3, half // 2, half - 2, half - 1]


def signed(number: int, width: int) -> int:
    """Return the integer with the same lowest bits as `number`."""
    bits = number % (1 << width)
    return bits - (1 << width) if bits >> width - 1 else bits


def held(number: int, width: int) -> int | bool:
    """Return a signed integer as programs take and give it: of one bit, a bool."""
    return bool(number) if width == 1 else number


def pairs(op: str, width: int) -> list[tuple[int, int]]:
    every = list(product(edges(width), repeat=2))
    return [(a, b) for a, b in every if b != 0 or op != "arith.floordivsi"]


CASES = [
    (op, type) for op in OPERATIONS for type in WIDTHS if (op[6:], type) != ("floordivsi", "i1")
]


@pytest.mark.parametrize(("op", "type"), CASES)
def test_arithmetic_on_numbers(op: str, type: str) -> None:
    width, executable = WIDTHS[type], binary(op, type)
    for a, b in pairs(op, width):
        expected = held(signed(OPERATIONS[op](a, b), width), width)
        found = executable.run(held(a, width), held(b, width))
        assert (found, found.__class__) == (expected, expected.__class__), (a, b)


@pytest.mark.parametrize("type", [type for type in WIDTHS if type != "i1"])
def test_remainders(type: str) -> None:
    width = WIDTHS[type]
    signed_one, unsigned = binary("arith.remsi", type), binary("arith.remui", type)
    for a, b in pairs("arith.floordivsi", width):
        quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
        assert signed_one.run(a, b) == a - quotient * b, (a, b)
        bits = a % (1 << width), b % (1 << width)
        assert unsigned.run(a, b) == signed(bits[0] % bits[1], width), (a, b)
    for executable in (signed_one, unsigned):
        with pytest.raises(ZeroDivisionError):
            executable.run(1, 0)


@pytest.mark.parametrize(("op", "type"), [(op, type) for op, type in CASES if type in DTYPES])
def test_arithmetic_on_tensors(op: str, type: str) -> None:
    width, dtype = WIDTHS[type], DTYPES[type]
    columns = zip(*pairs(op, width), strict=True)
    a, b = (torch.tensor([held(n, width) for n in column], dtype=dtype) for column in columns)
    before = a.clone(), b.clone()
    found = binary(op, f"tensor<?x{type}>").run(a, b)
    assert isinstance(found, torch.Tensor)
    assert found.dtype == dtype
    expected = [held(signed(OPERATIONS[op](m, n), width), width) for m, n in pairs(op, width)]
    assert found.tolist() == expected
    assert torch.equal(a, before[0])
    assert torch.equal(b, before[1])


@pytest.mark.parametrize("type", WIDTHS)
@pytest.mark.parametrize("predicate", PREDICATES)
def test_comparisons(predicate: str, type: str) -> None:
    width, executable = WIDTHS[type], binary(f"arith.cmpi {predicate},", type, "i1")
    for a, b in product(edges(width), repeat=2):
        found = executable.run(held(a, width), held(b, width))
        assert found is PREDICATES[predicate](a, b), (a, b)


@pytest.mark.parametrize(
    ("before", "after"),
    [(type, "index") for type in WIDTHS if type != "index"]
    + [("index", type) for type in WIDTHS if type != "index"],
)
def test_casts_keep_the_sign_or_cut_off(before: str, after: str) -> None:
    executable = linked(
        f"func.func @main(%a: {before}) -> {after} {{\n"
        f"  %b = arith.index_cast %a : {before} to {after}\n  func.return %b : {after}\n}}"
    )
    for a in edges(WIDTHS[before]):
        found = executable.run(held(a, WIDTHS[before]))
        expected = held(signed(a, WIDTHS[after]), WIDTHS[after])
        assert (found, found.__class__) == (expected, expected.__class__), a


ELEMENTS = """
func.func @main(%x: tensor<2xTYPE>, %b: TYPE) -> (TYPE, index, i1) {
  %zero = arith.constant 0 : index
  %a = tensor.extract %x[%zero] : tensor<2xTYPE>
  %sum = arith.addi %a, %b : TYPE
  %wide = arith.index_cast %a : TYPE to index
  %far = arith.muli %wide, %wide : index
  %less = arith.cmpi slt, %a, %b : TYPE
  func.return %sum, %far, %less : TYPE, index, i1
}"""


@pytest.mark.parametrize("type", ["i1", "i8", "i32", "i64"])
def test_elements_of_tensors_are_numbers(type: str) -> None:
    width, executable = WIDTHS[type], linked(ELEMENTS.replace("TYPE", type))
    for a, b in product(edges(width), repeat=2):
        x = torch.tensor([held(a, width)] * 2, dtype=DTYPES[type])
        found: Any = executable.run(x, held(b, width))
        expected = (held(signed(a + b, width), width), signed(a * a, 64), a < b)
        assert tuple(int(each) for each in found) == expected, (a, b)


@pytest.mark.parametrize("number", [1 << 63, (1 << 64) - 1, 1 << 64, -(1 << 63) - 1, 5])
def test_an_index_has_64_bits(number: int) -> None:
    executable = linked(
        f"func.func @main() -> index {{\n  %a = arith.constant {number} : index\n"
        "  func.return %a : index\n}"
    )
    assert executable.run() == signed(number, 64)


@pytest.mark.parametrize("type", ["i8", "index"])
def test_numbers_are_not_divided_by_zero(type: str) -> None:
    with pytest.raises(ZeroDivisionError) as raised:
        binary("arith.floordivsi", type).run(1, 0)
    assert "in arith.floordivsi at <string>:2:8" in "".join(raised.value.__notes__)


def test_tensors_are_not_divided_by_zero() -> None:
    zero = torch.zeros(2, dtype=torch.int64)
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        binary("arith.floordivsi", "tensor<2xi64>").run(zero + 1, zero)


def test_floats() -> None:
    a, b = 0.1, 3e300
    for op, expected in (("addf", a + b), ("subf", a - b), ("mulf", a * b)):
        assert binary(f"arith.{op}", "f64").run(a, b) == expected
        for dtype, type in ((torch.float32, "f32"), (torch.float64, "f64")):
            x, y = torch.tensor([a, 2.0], dtype=dtype), torch.tensor([b, 0.3], dtype=dtype)
            found = binary(f"arith.{op}", f"tensor<2x{type}>").run(x, y)
            assert isinstance(found, torch.Tensor)
            function = {"addf": torch.add, "subf": torch.sub, "mulf": torch.mul}[op]
            assert torch.equal(found, function(x, y))
    assert binary("arith.mulf", "f64").run(1e200, 1e200) == float("inf")


REFUSED = [
    # Unsigned, truncated and logical: lower them, or use their signed kin.
    *(f"%c = arith.{op} %a, %b : i64" for op in ("minui", "maxui", "divui", "divsi")),
    *(f"%c = arith.{op} %a, %b : i64" for op in ("shli", "shrsi", "shrui", "xori")),
    *(f"%c = arith.cmpi {op}, %a, %b : i64" for op in ("ult", "ule", "ugt", "uge")),
    # Types whose arithmetic Python and torch do not have.
    "%c = arith.addf %f, %f : f32",
    "%c = arith.floordivsi %p, %p : i1",
    *(f"%c = arith.{op} %p, %p : i1" for op in ("remsi", "remui")),
    *(f"%c = arith.{op} %u, %u : tensor<2xi64>" for op in ("remsi", "remui")),
    "%c = arith.addi %t, %t : tensor<2xi13>",
    "%c = arith.addi %v, %v : vector<2xi64>",
    "%c = arith.cmpi eq, %u, %u : tensor<2xi64>",
]


@pytest.mark.parametrize("line", REFUSED)
def test_what_is_no_host_op(line: str) -> None:
    name = line.split()[2]
    with pytest.raises(LinkError) as raised:
        linked(
            "func.func @main(%a: i64, %b: i64, %f: f32, %p: i1, %t: tensor<2xi13>, "
            f"%v: vector<2xi64>, %u: tensor<2xi64>) {{\n  {line}\n  func.return\n}}"
        )
    assert f"2:8: error: {name} has no implementation and is no host op: " in str(raised.value)
