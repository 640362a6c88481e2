"""How many bytes each route of the ciphertext all-reduce sends, by the kernel's own count."""

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import OnRanks

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "collectives.py"
LOG_N, LIMBS = 12, 4


def benchmark() -> Any:
    """Return the module of the benchmark, which is no package."""
    spec = importlib.util.spec_from_file_location("collectives", BENCHMARK)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def bytes_on_this_rank() -> tuple[int, dict[str, tuple[float, float]]]:
    return benchmark().measure(LOG_N, LIMBS, 1)


@pytest.mark.skipif(sys.platform != "linux", reason="TCP_INFO is Linux's")
@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_each_route_sends_what_it_should(ranks: int, on_ranks: OnRanks) -> None:
    bound = benchmark().bound
    for payload, found in on_ranks(bytes_on_this_rank, ranks):
        assert payload == 2 * LIMBS * 8 << LOG_N
        for route, (sent, _) in found.items():
            payloads = bound(route, ranks)
            assert 0.95 * payloads < sent / payload < 1.05 * payloads, route
        assert set(found) == {"sum", "pieces", "fold"}
