"""What sizes, vector widths and CPUs of printed kernels may be."""

import inspect
import platform
import re
from typing import get_args

import pytest

from fhelium.kernels.cpu import compiler, host
from fhelium.kernels.cpu.catalogue import BUILDERS, KernelSpec
from fhelium.kernels.cpu.host import CPUS, Host, named_cpu
from fhelium.kernels.cpu.sizes import Limits

DEGREE = "expected a power of two from {} to 1048576 for vectors of {}"


@pytest.mark.parametrize(
    ("name", "sizes", "width", "message"),
    [
        ("ntt", (0,), 4, f"found 0 for the degree of the kernel ntt, {DEGREE.format(16, 4)}"),
        ("ntt", (8,), 4, f"found 8 for the degree of the kernel ntt, {DEGREE.format(16, 4)}"),
        ("intt", (100,), 8, f"found 100 for the degree of the kernel intt, {DEGREE.format(32, 8)}"),
        ("split", (1,), 1, f"found 1 for the degree of the kernel split, {DEGREE.format(2, 1)}"),
        ("divide", (1 << 21, 1), 2, f"the degree of the kernel divide, {DEGREE.format(8, 2)}"),
        ("ntt", (8,), 8, "to 1048576 for vectors of 8: write sizes=DEGREE or a smaller width="),
        ("divide", (64, 0), 4, "found 0 for the sources of the kernel divide, expected a number"),
        ("key_switch", (48, 1, 1, 0, 1), 4, "found 48 for the degree of the kernel key_switch"),
        ("key_switch", (64, 129, 1, 0, 1), 4, "found 129 for the sources of the kernel key_switch"),
        ("key_switch", (64, 1, 3, 0, 1), 4, "found 3 for the terms of the kernel key_switch, exp"),
        ("key_switch", (64, 1, 1, 3, 1), 4, "found 3 for the gather of the kernel key_switch, ex"),
        ("key_switch", (64, 1, 1, 0, 0), 4, "found 0 for the vectors of the kernel key_switch, e"),
        ("key_switch", (64, 1), 4, "found 2 sizes, expected 5 for the kernel key_switch: write si"),
        ("embedding", (8,), 4, "found 8 for the slots of the kernel embedding, expected a power o"),
        ("mod_up", (-1,), 4, "found -1 for the sources of the kernel mod_up, expected a number fr"),
        (
            "overflow",
            (1 << 40,),
            4,
            "for the sources of the kernel overflow, expected a number fro",
        ),
        (
            "multiply",
            (0, 1),
            4,
            "found 0 for the first of the kernel multiply, expected a number f",
        ),
        (
            "square",
            (33,),
            4,
            "found 33 for the components of the kernel square, expected a number ",
        ),
        ("weighted_sum", (2, 3), 4, "found 3 for the vectors of the kernel weighted_sum, expected"),
        (
            "from_doubles",
            (27,),
            4,
            "found 27 for the digits of the kernel from_doubles, expected a",
        ),
        (
            "gaussian",
            (),
            16,
            "found vectors of 16 words, expected one of 1, 2, 4, 8: choose anothe",
        ),
    ],
)
def test_other_sizes_are_refused(
    name: str, sizes: tuple[int, ...], width: int, message: str
) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        KernelSpec(name, sizes, width).build()


@pytest.mark.parametrize(
    ("name", "sizes", "width"),
    [
        *(("ntt", (2,), 1), ("ntt", (4,), 1), ("intt", (8,), 2), ("split", (32,), 8)),
        *(("embedding", (1,), 1), ("embedding", (4,), 2), ("embedding", (64,), 8)),
        *(("key_switch", (2, 1, 0, 0, 8), 1), ("from_doubles", (26,), 1), ("mod_up", (128,), 1)),
    ],
)
def test_the_least_and_the_most_are_taken(name: str, sizes: tuple[int, ...], width: int) -> None:
    KernelSpec(name, sizes, width).build().verify()


def test_every_size_has_limits() -> None:
    """But for those of `fused`, which are a recipe."""
    for name, builder in BUILDERS.items():
        for size in inspect.signature(builder).parameters.values():
            limited = any(isinstance(each, Limits) for each in get_args(size.annotation))
            assert limited or size.name == "width" or name == "fused", (name, size)


def on(monkeypatch: pytest.MonkeyPatch, machine: str, found: Host | None) -> None:
    """Be on a machine with this host."""
    monkeypatch.setattr(platform, "machine", lambda: machine)
    monkeypatch.setattr(host, "host", lambda: found)


def test_cpus_are_named_from_a_list(monkeypatch: pytest.MonkeyPatch) -> None:
    on(monkeypatch, "AMD64", Host("ours", "+fma", 4))
    assert named_cpu("haswell", 4) == Host("haswell", "", 4)
    assert named_cpu(None, 2) == named_cpu("ours", 2) == Host("ours", "+fma", 2)
    # Without AVX-512 LLVM has no code for kernels with vectors of 8, and ends the process.
    assert named_cpu(None, 8) == Host("ours", "+fma,+avx512dq,+avx512f,+avx512vl", 8)
    for name in ("nocona", "neoverse-n1", "", "haswell "):
        with pytest.raises(
            ValueError, match=f"found cpu {name}, expected one of haswell, .*: name"
        ):
            named_cpu(name, 4)
    on(monkeypatch, "arm64", None)
    assert named_cpu("neoverse-n1", 2) == Host("neoverse-n1", "", 2)
    with pytest.raises(ValueError, match="found no fused multiply-add here, expected one of gener"):
        named_cpu(None, 2)
    with pytest.raises(
        ValueError, match="found vectors of 8 words for aarch64, expected 1, 2 or 4"
    ):
        named_cpu("neoverse-n1", 8)


@pytest.mark.skipif(platform.machine() not in CPUS, reason="another architecture")
@pytest.mark.parametrize("name", CPUS.get(platform.machine(), ()))
def test_llvm_has_code_for_every_cpu(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    kernel = KernelSpec("gather", (), 8 if platform.machine() == "x86_64" else 2)
    assert "gather_share:" in compiler.assembly(kernel.build(), named_cpu(name, kernel.width))
    assert "not a recognized processor" not in "".join(capfd.readouterr())


def test_a_smaller_width_is_named_only_where_it_helps() -> None:
    with pytest.raises(ValueError, match=r"for vectors of 8: write sizes=DEGREE$"):
        KernelSpec("ntt", (1,), 8).build()
