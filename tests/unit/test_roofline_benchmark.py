"""The roofline in small: a row for each kernel, with what the kernel moves and computes."""

import importlib
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from test_cpu_transforms import MACHINE, needs_fma

from fhelium.kernels.cpu.catalogue import BUILDERS
from fhelium.scheme.parameters import Parameters

pytestmark = needs_fma

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
DEGREE, LIMBS, DIGITS = 1 << 6, 3, 2
SMALL = Parameters.build(
    ring_degree=DEGREE, depth=LIMBS - 1, scale_bits=40, digits=DIGITS, insecure=True
)


@pytest.fixture(scope="module")
def roofline() -> ModuleType:
    """The module of the benchmark, which is no package."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(BENCHMARKS))
        return importlib.import_module("roofline")


@pytest.fixture(scope="module")
def cases(roofline: ModuleType) -> dict[str, Any]:
    """The cases by the names of their kernels."""
    return {case.kernel: case for case in roofline.Cases(SMALL, MACHINE).all()}


def test_every_kernel_has_a_row(cases: dict[str, Any]) -> None:
    assert set(cases) == {"triad", *BUILDERS}


@pytest.mark.parametrize("name", BUILDERS)
def test_each_op_launches_its_kernel(cases: dict[str, Any], name: str) -> None:
    (seconds,) = cases[name].times(1, lambda: None)
    assert seconds > 0


def test_an_op_that_does_not_launch_the_kernel_is_an_error(cases: dict[str, Any]) -> None:
    case = type(cases["add"])("subtract", cases["add"].run, 0)
    with pytest.raises(AssertionError, match="launches no kernel subtract"):
        case.times(1, lambda: None)


def test_rows_have_what_is_moved_and_computed(roofline: ModuleType, cases: dict[str, Any]) -> None:
    chosen = [cases[name] for name in ("triad", "add", "scale", "multiply_add", "gaussian")]
    rows, rates = roofline.measure(chosen, MACHINE, DEGREE, 1, 1 << 16)
    assert min(rates.bytes, rates.flops, rates.vector_ops, rates.triad) > 0
    found = {row["kernel"]: row for row in rows}
    words = 2 * LIMBS * DEGREE
    assert found["triad"]["bytes"] == found["add"]["bytes"] == 24 * words
    assert found["scale"]["bytes"] == 16 * words
    assert found["multiply_add"]["bytes"] == 32 * words
    # Once for each polynomial q is converted, outside the loop over words.
    assert MACHINE is not None
    width, polynomials = MACHINE.width, 2 * LIMBS
    # A product is two multiply-adds, which count twice, and four more operations.
    for name, flops in (("add", 0), ("scale", 1 + 8 + 1), ("multiply_add", 3 + 8 + 1 + 4 + 1)):
        assert 0 <= found[name]["flops"] - flops * words <= width * polynomials, name
    if width > 1:
        # x + y, less q, and a choice by the sign.
        assert 0 <= found["add"]["vector_ops"] - 4 * words / width <= 2 * polynomials
        # A comparison and a subtraction for each threshold.
        assert 27 * 2 <= found["gaussian"]["vector_ops"] / (DEGREE / width) <= 27 * 2 + 8
    for row in rows:
        floors = {name: row[f"{name}_ms"] for name in ("bytes", "flops", "vector_ops")}
        assert row["roof"] == floors[row["bound"]] / row["median_ms"]
        assert floors[row["bound"]] == max(floors.values())
    roofline.show(rows, "small")
