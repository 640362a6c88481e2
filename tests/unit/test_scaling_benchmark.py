"""The strong-scaling benchmark in small: each route computes the product, and ranks talk."""

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import OnRanks

from fhelium.scheme.parameters import Parameters

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
SMALL = Parameters.build(ring_degree=1 << 6, depth=1, scale_bits=40, insecure=True)


def benchmark() -> Any:
    """Return the module of the benchmark, which is no package."""
    sys.path.insert(0, str(BENCHMARKS))
    try:
        spec = importlib.util.spec_from_file_location("scaling", BENCHMARKS / "scaling.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules["scaling"] = module
        spec.loader.exec_module(module)
        return module
    finally:
        sys.path.remove(str(BENCHMARKS))


def routes_on_this_rank() -> dict[str, tuple[list[Any], float]]:
    module = benchmark()
    found: dict[str, tuple[list[Any], float]] = {}
    for route in module.SPREAD:
        runs, error = module.measure(route, 16, 1, "torch", SMALL)
        found[route] = ([(run.seconds, run.bytes_sent) for run in runs], error)
    return found


@pytest.mark.skipif(sys.platform != "linux", reason="TCP_INFO is Linux's")
def test_each_route_on_two_ranks(on_ranks: OnRanks) -> None:
    on_root, on_other = on_ranks(routes_on_this_rank, 2)
    # One limb of a ciphertext.
    least = 2 * 8 * SMALL.ring_degree
    for route in ("terms", "limbs", "sums"):
        (runs, error), (others, _) = on_root[route], on_other[route]
        assert 0 < error < 1e-6
        for (seconds, sent), (_, other_sent) in zip(runs, others, strict=True):
            assert seconds > 0
            assert min(sent, other_sent) >= least


def test_a_wrong_result_is_an_error(on_ranks: OnRanks) -> None:
    (text,) = on_ranks(wrong_on_this_rank, 1)
    assert text.startswith("terms on 1 ranks: found an error of ")


def wrong_on_this_rank() -> str:
    module = benchmark()
    module.TOLERANCE = 1e-30
    with pytest.raises(ValueError, match="expected at most") as caught:
        module.measure("terms", 8, 1, "torch", SMALL)
    return str(caught.value)
