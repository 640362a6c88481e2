"""Linked programs of the `cpu` family under threads, forks, long use and wrong inputs."""

import gc
import multiprocessing
import os
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from clients import Client, message
from test_cpu_transforms import needs_fma

from fhelium.backend import (
    Compilation,
    OperationBackend,
    Pipeline,
    Program,
    ProgramExecutable,
    default_pipeline,
    generate_program_keys,
)
from fhelium.dialects.ckks.types import CiphertextType
from fhelium.frontends.tracing import trace
from fhelium.kernels.cpu.buffers import POOL
from fhelium.scheme.ciphertext import Ciphertext
from fhelium.scheme.encoding import decode, encode
from fhelium.scheme.encryption import decrypt, encrypt
from fhelium.scheme.keys import generate_secret_key
from fhelium.scheme.parameters import Parameters

pytestmark = needs_fma

TEXT = """
!ct = !ckks.ciphertext<level = 2, scale = 2^40, components = 2, form = evaluation>
!wide = !ckks.ciphertext<level = 2, scale = 2^80, components = 3, form = evaluation>
!key = !ckks.key<rotation, 1>
!s = !ckks.key<relinearization>
!flat = !ckks.ciphertext<level = 2, scale = 2^80, components = 2, form = evaluation>
builtin.module attributes {ckks.parameters = PARAMETERS} {
  func.func @main(%x: !ct, %y: !ct) -> (!ct, !flat) {
    %key = fhelium.resource @rotation_1 : !key
    %relin = fhelium.resource @relinearization : !s
    %moved = ckks.rotate %x by 1 with %key : !ct, !key
    %sum = ckks.add %moved, %y : !ct
    %square = ckks.mul %sum, %y : (!ct, !ct) -> !wide
    %flat = ckks.relinearize %square with %relin : !wide -> !flat
    func.return %sum, %flat : !ct, !flat
  }
}
"""

PARAMETERS = Parameters.build(ring_degree=1 << 12, depth=2, scale_bits=40, digits=3, insecure=True)
"""Polynomials that come from the pool of buffers, and are worth two threads."""


ON_CPU = f"{default_pipeline()},fhelium-assign-implementations{{target=cpu}}"
WHOLE_TORCH = "fhelium-assign-implementations{target=torch}"
LIMB = torch.tensor([0, 0, PARAMETERS.primes[2]]).unsqueeze(-1)
"""Too much for limb 2 alone."""


@cache
def client() -> Client:
    return Client(PARAMETERS)


@cache
def linked(pipeline: str) -> ProgramExecutable:
    program = Program.parse(TEXT.replace("PARAMETERS", str(PARAMETERS.to_attribute())))
    return client().backend.link(Compilation(program), pipeline=Pipeline.parse(pipeline))


@cache
def inputs(seed: int = 0) -> tuple[Any, ...]:
    type = CiphertextType(2, 2.0**40, 2)
    plain = [message(seed + i, PARAMETERS.slots) for i in range(2)]
    return tuple(client().input(values, type, (seed, i)) for i, values in enumerate(plain))


def data_of(results: Any) -> list[torch.Tensor]:
    return [each.data if isinstance(each, Ciphertext) else each for each in results]


def same(found: Any, expected: Any) -> bool:
    pairs = zip(data_of(found), data_of(expected), strict=True)
    return all(torch.equal(x, y) for x, y in pairs)


@pytest.fixture
def threads() -> Any:
    """Set the number of torch's threads, until the test ends."""
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


def test_several_python_threads_run_one_executable(threads: Callable[[int], None]) -> None:
    executable, seeds = linked("cpu-default"), range(3)
    threads(2)
    expected = [linked(WHOLE_TORCH).run(*inputs(seed)) for seed in seeds]

    def run(seed: int) -> bool:
        return all(same(executable.run(*inputs(seed)), expected[seed]) for _ in range(4))

    with ThreadPoolExecutor(len(seeds)) as pool:
        assert list(pool.map(run, seeds)) == [True] * len(seeds)


def test_the_number_of_threads_may_change_between_runs(threads: Callable[[int], None]) -> None:
    executable = linked("cpu-default")
    expected = linked(WHOLE_TORCH).run(*inputs())
    for count in (1, 2, 5, 1, 2):
        threads(count)
        assert same(executable.run(*inputs()), expected)


def _run_in_child(batch: tuple[Any, ...], expected: Any, sender: Any) -> None:
    sender.send(same(linked("cpu-default").run(*batch), expected))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_forked_child_runs_programs_and_so_does_its_parent(
    threads: Callable[[int], None],
) -> None:
    """A batch is large enough for torch to share its part of a run among threads, too."""
    threads(2)
    batch = tuple(torch.stack([each.data] * 4) for each in inputs())
    expected = linked("cpu-default").run(*batch)
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=_run_in_child, args=(batch, expected, sender))
    child.start()
    try:
        for _ in range(5):
            assert same(linked("cpu-default").run(*batch), expected)
        assert receiver.poll(60)
        assert receiver.recv() is True
    finally:
        child.join(timeout=10)
        if child.is_alive():
            child.kill()


def test_results_stay_as_they_are_while_anything_of_them_lives() -> None:
    """Later runs get no memory that a view of an earlier result has, in torch or in numpy."""
    executable = linked("cpu-default")
    sum_, flat = data_of(executable.run(*inputs()))
    views = [sum_[0, 1:], flat.view(-1)[5::7], torch.from_dlpack(flat.detach())[1]]
    arrays = [sum_.numpy()[1], flat.numpy().reshape(-1)[::3]]
    before = [view.clone() for view in views], [array.copy() for array in arrays]
    del sum_, flat
    gc.collect()
    kept = [executable.run(*inputs(seed)) for seed in (10, 20, 30)]
    assert not any(same(each, kept[0]) for each in kept[1:])
    assert all(torch.equal(x, y) for x, y in zip(views, before[0], strict=True))
    assert all((x == y).all() for x, y in zip(arrays, before[1], strict=True))


def resident_bytes() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.skipif(sys.platform != "linux", reason="for Linux")
@pytest.mark.parametrize("rounds", [200, pytest.param(10_000, marks=pytest.mark.long)])
def test_memory_levels_off(rounds: int, threads: Callable[[int], None]) -> None:
    executable = linked("cpu-default")
    threads(1)

    def run(count: int) -> None:
        for _ in range(count):
            executable.run(*inputs())

    run(50)
    gc.collect()
    live, idle, before = POOL.live_bytes, POOL.idle_bytes, resident_bytes()
    run(rounds)
    gc.collect()
    assert (POOL.live_bytes, POOL.idle_bytes) == (live, idle)
    # A result is 400 kB; the interpreter and the C library take a little.
    assert resident_bytes() - before < 8 << 20


Wrong = Callable[[torch.Tensor], object]


@pytest.mark.parametrize("pipeline", ["cpu-default", ON_CPU])
@pytest.mark.parametrize(
    ("wrong", "error", "message"),
    [
        (
            lambda x: x[:, :2],
            ValueError,
            r"input 0 has shape \[2, 2, 4096\], expected \[batch..., ",
        ),
        (lambda x: x[..., :2048], ValueError, r"input 0 has shape \[2, 3, 2048\], expected \[batc"),
        (lambda x: x[:1], ValueError, r"input 0 has shape \[1, 3, 4096\], expected \[batch..., 2"),
        (lambda x: x.double(), TypeError, "input 0 has dtype torch.float64, expected torch.int64"),
        (lambda x: x.int(), TypeError, "input 0 has dtype torch.int32, expected torch.int64"),
        (
            lambda x: x.to_sparse(),
            TypeError,
            "is torch.sparse_coo, expected torch.strided: call to",
        ),
        (lambda x: x.numpy(), TypeError, "input 0 is a ndarray, expected a Ciphertext or its tens"),
        (lambda x: x - (1 << 62), ValueError, r"input 0 has residues from -\d+ to -\d+ in limb 0"),
        (lambda x: x + LIMB, ValueError, r"input 0 has residues from \d+ to \d+ in limb 2, expect"),
        (
            lambda x: Ciphertext(x[:, :2], PARAMETERS, 1, 2.0**40),
            ValueError,
            "input 0 has level 1, expected 2",
        ),
        (
            lambda x: Ciphertext(x + LIMB, PARAMETERS, 2, 2.0**40),
            ValueError,
            r"input 0 has residues from \d+ to \d+ in limb 2, expected 0 to \d+: make it with thes",
        ),
    ],
)
def test_wrong_inputs_are_refused(
    pipeline: str, wrong: Wrong, error: type[Exception], message: str
) -> None:
    x, y = inputs()
    with pytest.raises(error, match=message):
        linked(pipeline).run(wrong(x.data), y.data)


def test_inputs_are_read_again_when_they_changed() -> None:
    executable = linked("cpu-default")
    x, y = (each.data for each in inputs())
    executable.run(x, y)
    x[0, 1, 7] = -1
    for _ in range(2):
        with pytest.raises(ValueError, match="input 0 has residues from -1 to "):
            executable.run(x, y)
    x[0, 1, 7] = 0
    executable.run(x, y)
    with torch.inference_mode():
        fresh = x.clone()
        executable.run(fresh, y)
        fresh[0, 1, 7] = -1
        with pytest.raises(ValueError, match="input 0 has residues from -1 to "):
            executable.run(fresh, y)


@pytest.mark.parametrize("pipeline", ["cpu-default", ON_CPU])
@pytest.mark.parametrize(
    "strided",
    [
        lambda x: torch.stack([x, x], dim=-1)[..., 1],
        lambda x: x.transpose(-1, -2).contiguous().transpose(-1, -2),
        lambda x: torch.cat([x, x], dim=-1)[..., : x.shape[-1]],
        lambda x: x.flip(0).flip(0)[:],
    ],
)
def test_strides_do_not_matter(
    pipeline: str, strided: Callable[[torch.Tensor], torch.Tensor]
) -> None:
    x, y = (each.data for each in inputs())
    assert same(linked(pipeline).run(strided(x), strided(y)), linked(pipeline).run(x, y))


def test_a_batch_that_does_not_fit_is_refused() -> None:
    x, y = (each.data for each in inputs())
    with pytest.raises((ValueError, RuntimeError), match=r"length 3 .* broadcastable to \[2\]"):
        linked("cpu-default").run(torch.stack([x] * 2), torch.stack([y] * 3))


LARGE = """
!a = !rns.poly<basis = Q[0:2], components = 40, form = evaluation>
!b = !rns.poly<basis = Q[0:2], components = 79, form = evaluation>
builtin.module attributes {ckks.parameters = PARAMETERS} {
  func.func @main(%x: !a, %y: !a) -> (!b, !b, !a) {
    %product = rns.mul %x, %y : (!a, !a) -> !b
    %square = rns.square %x : !a -> !b
    %d = rns.sub %x, %y : (!a, !a) -> !a
    %e = rns.add %d, %y : (!a, !a) -> !a
    %f = rns.add %e, %d : (!a, !a) -> !a
    %g = rns.sub %f, %e : (!a, !a) -> !a
    %h = rns.add %g, %x : (!a, !a) -> !a
    func.return %product, %square, %h : !b, !b, !a
  }
}
"""


@pytest.mark.parametrize("pipeline", [ON_CPU, f"rns-fuse,{ON_CPU}"])
def test_ops_larger_than_any_kernel_run_by_the_reference(pipeline: str) -> None:
    parameters = Parameters.build(ring_degree=64, depth=1, scale_bits=40, insecure=True)
    program = Program.parse(LARGE.replace("PARAMETERS", str(parameters.to_attribute())))
    moduli = parameters.ring.moduli(parameters.q_limbs(1), torch.device("cpu"))
    x, y = (torch.randint(1 << 62, (40, 2, 64)) % moduli for _ in range(2))
    expected, found = (
        OperationBackend().link(Compilation(program, pipeline=Pipeline.parse(each))).run(x, y)
        for each in ("", pipeline)
    )
    assert isinstance(found, tuple)
    assert isinstance(expected, tuple)
    assert all(map(torch.equal, found, expected))


def test_more_limbs_than_a_kernel_converts_run_by_the_reference() -> None:
    parameters = Parameters.build(ring_degree=64, depth=135, scale_bits=40, digits=1, insecure=True)
    secret = generate_secret_key(parameters)
    program = trace(lambda x: x * x + x.rotate(1), parameters)
    keys = generate_program_keys(program, secret)
    x = encrypt(encode([0.5] * parameters.slots, parameters), secret)
    results = [
        OperationBackend(named_resources=keys)
        .link(Compilation(program, pipeline=Pipeline.parse(pipeline)))
        .run(x)
        for pipeline in ("convert-ckks-to-rns", "cpu-default")
    ]
    found = [
        decode(decrypt(result, secret)) for result in results if isinstance(result, Ciphertext)
    ]
    assert len(found) == 2
    assert np.abs(found[0] - 0.75).max() < 1e-6
    assert np.abs(found[1] - 0.75).max() < 1e-6
