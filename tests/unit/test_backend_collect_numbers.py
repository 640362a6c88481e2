"""Reductions of host numbers, and of tensors of them, on two and three real Gloo ranks.

Truth is a fold with Python's integers and floats.
"""

from collections.abc import Callable
from functools import reduce
from typing import Any

import pytest
import torch
from collective_programs import module, run, shares
from conftest import OnRanks
from test_host_ops import DTYPES, OPERATIONS, WIDTHS, held, signed

from fhelium.backend import ProcessGroupExecutionResource

Combine = Callable[[Any, Any], Any]
FLOATS: dict[str, Combine] = {
    "arith.addf": lambda a, b: a + b,
    "arith.subf": lambda a, b: a - b,
    "arith.mulf": lambda a, b: a * b,
}
REGIONS = {
    "compare": (
        "%less = arith.cmpi slt, %a, %b : T\n %c = arith.select %less, %b, %a : T",
        max,
    ),
    "branch": (
        """%less = arith.cmpi slt, %a, %b : T
        %c = scf.if %less -> (T) {
          scf.yield %b : T
        } else {
          %one = arith.constant 1 : T
          %d = arith.subi %a, %one : T
          scf.yield %d : T
        }""",
        lambda a, b: b if a < b else a - 1,
    ),
    "constant": ("%c = arith.constant 1 : T", lambda a, b: 1),
    "captured": ("%c = arith.addi %same, %b : T", lambda a, b: 1 + b),
    "first": ("%c = arith.select %true, %a, %b : T", lambda a, b: a),
}
"""Regions that are more than one op, with their meaning in Python."""


def regions_of(type: str) -> dict[str, tuple[str, Combine]]:
    """Return regions on numbers of a type: their text, and what they compute."""
    if type == "f64":
        return {op: (f"%c = {op} %a, %b : T", function) for op, function in FLOATS.items()}
    ops = [op for op in OPERATIONS if (op, type) != ("arith.floordivsi", "i1")]
    return {op: (f"%c = {op} %a, %b : T", OPERATIONS[op]) for op in ops} | REGIONS


def truth(type: str, function: Combine, numbers: list[Any]) -> Any:
    """Return the fold of the numbers of all ranks, as a tensor of torch holds it."""
    if type == "f64":
        return reduce(function, numbers)
    width = WIDTHS[type]
    return held(reduce(lambda a, b: signed(function(a, b), width), numbers), width)


def numbers_of(type: str, rank: int, count: int) -> list[Any]:
    """Return what a rank holds: integers at the ends of their width too, none of them zero."""
    if type == "f64":
        return [(rank + 1) / (i + 3) for i in range(count)]
    width = WIDTHS[type]
    half = 1 << width - 1
    if width == 1:
        return [-((i >> rank) & 1) for i in range(count)]
    pattern = [half - 1, -half, -3, 7, 2, -half + 1, 1, -1]
    return [pattern[(i + 3 * rank + i * rank) % 8] for i in range(count)]


REDUCTION = """
  %{name} = dist.{op} %x {where}in %world : {type}{result} combine {{
  ^bb0(%a: {type}, %b: {type}):
    {body}
    dist.yield %c : {type}
  }}"""
WHERE = {"all_reduce": "", "reduce": "to 1 ", "reduce_scatter": "along 0 "}


def program_text(element: str, type: str, bodies: list[str], ops: list[str]) -> str:
    """Return a program of every reduction with every region; its results, region by region."""
    names: list[str] = []
    lines: list[str] = []
    for number, body in enumerate(bodies):
        for op in ops:
            names.append(f"{op}{number}")
            result = f" -> {type}" if op == "reduce_scatter" else ""
            each = REDUCTION.format(
                name=names[-1], op=op, where=WHERE[op], type=type, result=result, body=body
            )
            lines.append(each.replace(": T", f": {type}").replace("(T)", f"({type})"))
    same = "" if element == "f64" else f"%same = arith.constant 1 : {element}"
    results, types = ", ".join(f"%{name}" for name in names), ", ".join([type] * len(names))
    return f"""
func.func @main(%x: {type}) -> ({types}) {{
  %world = fhelium.resource @world : !dist.group
  %true = arith.constant true
  {same}
  {"".join(lines)}
  func.return {results} : {types}
}}"""


def faults_of_numbers(element: str, group: ProcessGroupExecutionResource) -> list[str]:
    """Reduce single numbers by every region."""
    regions = regions_of(element)
    ops = ["all_reduce", "reduce"]
    text = program_text(element, element, [body for body, _ in regions.values()], ops)
    faults: list[str] = []
    for i in range(4):
        values = [numbers_of(element, rank, 4)[i] for rank in range(group.size)]
        width = WIDTHS.get(element, 64)
        inputs = [value if element == "f64" else held(value, width) for value in values]
        found = iter(run(module(text), group, inputs[group.rank]))
        for name, (_, function) in regions.items():
            total = truth(element, function, values)
            for op in ops:
                wanted = total if op == "all_reduce" or group.rank == 1 else inputs[group.rank]
                result = next(found)
                if result != wanted or result.dtype != (
                    torch.float64 if element == "f64" else torch.int64
                ):
                    faults.append(f"{op} {name} of {values}: found {result}, expected {wanted}")
    return faults


def faults_of_tensors(element: str, group: ProcessGroupExecutionResource) -> list[str]:
    """Reduce tensors of numbers by every region of one op."""
    regions = {name: each for name, each in regions_of(element).items() if name.startswith("arith")}
    dtype = torch.float64 if element == "f64" else DTYPES[element]
    width = WIDTHS.get(element, 64)
    values = [numbers_of(element, rank, 7) for rank in range(group.size)]
    tensors = [
        torch.tensor([n if element == "f64" else held(n, width) for n in row], dtype=dtype)
        for row in values
    ]
    text = program_text(
        element, f"tensor<?x{element}>", [body for body, _ in regions.values()], list(WHERE)
    )
    found = iter(run(module(text), group, tensors[group.rank]))
    faults: list[str] = []
    for name, (_, function) in regions.items():
        columns = zip(*values, strict=True)
        total = torch.tensor([truth(element, function, [*c]) for c in columns], dtype=dtype)
        wanted = {
            "all_reduce": total,
            "reduce": total if group.rank == 1 else tensors[group.rank],
            "reduce_scatter": shares(total, group.size)[group.rank],
        }
        for op in WHERE:
            result = next(found)
            if result.dtype != dtype or not torch.equal(result, wanted[op]):
                faults.append(f"{op} {name}: found {result}, expected {wanted[op]}")
    return faults


EXTRACTED = """
func.func @main(%x: tensor<1xTYPE>) -> (TYPE, TYPE) {
  %world = fhelium.resource @world : !dist.group
  %zero = arith.constant 0 : index
  %rank = dist.rank %world
  %is_first = arith.cmpi eq, %rank, %zero : index
  %n = scf.if %is_first -> (TYPE) {
    %element = tensor.extract %x[%zero] : tensor<1xTYPE>
    scf.yield %element : TYPE
  } else {
    %one = arith.constant ONE : TYPE
    scf.yield %one : TYPE
  }
  %given = dist.broadcast %n from 0 in %world : TYPE
  %sum = dist.all_reduce %n in %world : TYPE combine {
  ^bb0(%a: TYPE, %b: TYPE):
    %c = arith.ADD %a, %b : TYPE
    dist.yield %c : TYPE
  }
  func.return %given, %sum : TYPE, TYPE
}"""
"""A number that is an element of a tensor on one rank, and none on the others."""


def faults_of_elements(element: str, group: ProcessGroupExecutionResource) -> list[str]:
    """Reduce a number that one rank has of a tensor."""
    add, one = ("addf", "1.0") if element == "f64" else ("addi", "1")
    text = EXTRACTED.replace("TYPE", element).replace("ONE", one).replace("ADD", add)
    x = torch.ones(1, dtype=torch.float64 if element == "f64" else DTYPES[element])
    given, total = run(module(text), group, x)
    wanted = group.size % 2 if element == "i1" else group.size
    right = given == 1 and total == wanted
    return [] if right else [f"elements: found {given} and {total}, expected 1 and {wanted}"]


def faults_on_this_rank() -> dict[str, list[str]]:
    """Return what is wrong, by type."""
    group = ProcessGroupExecutionResource()
    types = [*WIDTHS, "f64"]
    faults = {type: faults_of_numbers(type, group) for type in types}
    return faults | {
        f"tensor of {type}": faults_of_tensors(type, group) + faults_of_elements(type, group)
        for type in types
        if type in (*DTYPES, "f64")
    }


@pytest.fixture(scope="module", params=[2, 3], ids=lambda ranks: f"{ranks}-ranks")
def faults(request: pytest.FixtureRequest, on_ranks: OnRanks) -> list[Any]:
    return on_ranks(faults_on_this_rank, request.param)


@pytest.mark.parametrize("type", [*WIDTHS, "f64", *(f"tensor of {t}" for t in (*DTYPES, "f64"))])
def test_folds_of_numbers(faults: list[Any], type: str) -> None:
    assert not any(each[type] for each in faults), [each[type] for each in faults]
