"""Ranks that run different programs, die, stop, raise or stay away: the others say so, and end."""

import time
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
import torch
import torch.distributed
from conftest import OnRanks
from faulty_ranks import DEADLINE, Told, kill_self, linked, stop_self, survivors, tell, world

from fhelium.backend import (
    BoundResource,
    Compilation,
    OperationBackend,
    Pipeline,
    ProcessGroupExecutionResource,
    Program,
    ResourceBindings,
    spmd_guard,
)
from fhelium.backend.rank_watch import RankWatch
from fhelium.backend.spmd_guard import SpmdGuard, compare, input_signature, meet
from fhelium.scheme.parameters import Parameters

SUM = """
func.func @main(%x: tensor<?xi64>, %i: index) -> (tensor<?xi64>, i64) {
  %world = fhelium.resource @world : !dist.group
  %own = tensor.extract %x[%i] : tensor<?xi64>
  %sum = dist.all_reduce %x in %world : tensor<?xi64> combine {
  ^bb0(%a: tensor<?xi64>, %b: tensor<?xi64>):
    %c = arith.addi %a, %b : tensor<?xi64>
    dist.yield %c : tensor<?xi64>
  }
  func.return %sum, %own : tensor<?xi64>, i64
}
"""
OTHER = SUM.replace("arith.addi", "arith.muli")
VALUES = torch.arange(5)
TORCH = torch.__version__.partition("+")[0]


def run_each(*texts: str, pipelines: tuple[str, ...] = ("canonicalize",)) -> Told:
    """Run a program a rank: the texts and pipelines are those of the last ranks."""
    rank = torch.distributed.get_rank() - torch.distributed.get_world_size()
    text, pipeline = texts[max(rank, -len(texts))], pipelines[max(rank, -len(pipelines))]
    return tell(linked(text, pipeline).run, VALUES, 0)


def another_input() -> Told:
    guard = linked(SUM)._guard
    assert guard is not None
    rank = torch.distributed.get_rank()
    with guard.run():
        inputs = {"input x": f"torch.int64 [{rank // 2}]", "input i": "int"}
        return tell(guard.agree, inputs, None)


def of_secrets(*key_ids: str | None) -> Told:
    guard = linked(SUM)._guard
    assert guard is not None
    with guard.run():
        return tell(guard.agree, {}, key_ids[torch.distributed.get_rank()])


def same_twice() -> list[Any]:
    executable = linked(SUM)
    rank = torch.distributed.get_rank()
    sums = [executable.run(VALUES + rank, rank)[0].tolist() for _ in range(2)]  # pyright: ignore
    return [*sums, tell(executable.run, VALUES, "no number"), executable.run(VALUES, 0)[1]]  # pyright: ignore


def in_other_steps() -> dict[str, Any]:
    """The last rank does another thing than the others, in messages of any length."""
    rank = torch.distributed.get_rank()
    is_last = rank == torch.distributed.get_world_size() - 1
    guard = linked(SUM)._guard
    assert guard is not None
    with guard.run():
        agreeing = (
            tell(compare, "the search for checkpoints", [0] * 60)
            if is_last
            else tell(guard.agree, {}, None)
        )
    return {
        "agreeing": agreeing,
        "meeting": tell(meet, "checkpoint 1" if is_last else "checkpoint 2"),
        "lengths": tell(compare, "the search for checkpoints", [0] * (9 if is_last else 90)),
        "long": compare("a long row", [*range(rank, rank + 120)]),
    }


def of_another_version() -> Told:
    rank, version = torch.distributed.get_rank(), spmd_guard.version
    spmd_guard.version = lambda name: f"0.{rank // 2}.7"
    told = run_each(SUM, OTHER)
    spmd_guard.version = version
    return told


def differences(parameters: Parameters) -> dict[str, Any]:
    """Differ in one thing after the other, on a group that goes on working."""
    attributes = [p.to_attribute() for p in (parameters, replace(parameters, scale=2.0**39))]
    insecure = (
        f"builtin.module attributes {{ckks.parameters = {a}}} {{ {SUM} }}" for a in attributes
    )
    assigned = 'fhelium-assign-implementations{target=torch op="dist.all_reduce"}'
    return {
        "program": run_each(SUM, OTHER),
        "parameters": run_each(*insecure),
        "pipeline": run_each(SUM, pipelines=("canonicalize", assigned)),
        "majority": run_each(OTHER, SUM, SUM),
        "input": another_input(),
        "secret": of_secrets("ab" * 16, None, "cd" * 16),
        "one secret": of_secrets(None, "ab" * 16, "ab" * 16),
        "steps": in_other_steps(),
        "version": of_another_version(),
        "same": same_twice(),
    }


@pytest.fixture(scope="module")
def seen(on_ranks: OnRanks, parameters: Parameters) -> list[dict[str, Any]]:
    return on_ranks(differences, 3, parameters)


@pytest.mark.parametrize(
    ("what", "difference"),
    [
        ("program", "rank 2 differs from rank 0 in its program"),
        ("parameters", "rank 2 differs from rank 0 in its parameters"),
        ("pipeline", "rank 2 differs from rank 0 in its program"),
        ("majority", "rank 0 differs from rank 1 in its program"),
        (
            "input",
            "rank 2 differs from rank 0 in input x: torch.int64 [1], expected torch.int64 [0]",
        ),
        (
            "version",
            f"rank 2 differs from rank 0 in version: FHElium 0.1.7, torch {TORCH}, expected "
            f"FHElium 0.0.7, torch {TORCH}",
        ),
    ],
)
def test_a_rank_that_differs_is_named_on_every_rank(
    seen: list[dict[str, Any]], what: str, difference: str
) -> None:
    message = (
        f"the ranks of @world do not run the same: {difference}: start all ranks with one program, "
        "one pipeline and one version of FHElium"
    )
    assert [each[what] for each in seen] == [("RankMismatchError", message)] * 3


def test_ranks_in_different_steps_hear_of_it(seen: list[dict[str, Any]]) -> None:
    """Gloo ends the process where messages of two sizes meet, so that all are of one size."""
    expected = {
        "agreeing": ("the comparison of programs", "the search for checkpoints"),
        "meeting": ("checkpoint 2", "checkpoint 1"),
        "lengths": ("the search for checkpoints", "the search for checkpoints"),
    }
    for rank, each in enumerate(seen):
        for name, (of_others, of_last) in expected.items():
            here, there = (of_last, of_others) if rank == 2 else (of_others, of_last)
            met = f"{here} met {'another such step' if here == there else there}"
            where = "rank 0, 1" if rank == 2 else "rank 2"
            message = (
                f"{met} on {where}, expected the same one on every rank: what comes next depends "
                "on the rank, or on data that differs between ranks"
            )
            assert each["steps"][name] == ("RankMismatchError", message)
        assert each["steps"]["long"] == [[*range(other, other + 120)] for other in range(3)]


def test_the_same_program_runs_and_errors_leave_the_group_alone(seen: list[dict[str, Any]]) -> None:
    for first, second, error, own in (each["same"] for each in seen):
        assert first == second == (VALUES * 3 + 3).tolist()
        assert error == ("TypeError", "input 1 is a str, expected int")
        assert own == 0


def test_ranks_with_keys_of_several_secrets_are_refused(seen: list[dict[str, Any]]) -> None:
    message = (
        "the ranks of @world have keys or ciphertexts of several secret keys: rank 0 abababab, "
        "rank 2 cdcdcdcd: use keys of one fhelium-keys run, and what was encrypted with them"
    )
    assert [each["secret"] for each in seen] == [("RankMismatchError", message)] * 3
    assert [each["one secret"] for each in seen] == [("nothing", "")] * 3


def test_a_rank_that_differs_and_dies_is_named_all_the_same() -> None:
    class Group:
        rank, deadline = 0, timedelta(seconds=0.1)

    group: Any = Group()
    watch = RankWatch(torch.distributed.HashStore(), 0, 3, group)  # pyright: ignore
    told = SpmdGuard((), {}, {}, watch).difference("@world", group, [b"a", b"a", b"b"], {})
    watch._end.set()
    assert told == (
        "the ranks of @world do not run the same: rank 2 differs from rank 0: start all ranks with "
        "one program, one pipeline and one version of FHElium"
    )


def test_signatures_leave_out_what_may_differ() -> None:
    program = Program.parse(
        """func.func @f(%a: tensor<?x3xi64>, %b: tensor<?x!ckks.ciphertext<level = 1>>,
        %c: !ckks.ciphertext<level = 1>, %d: f64) { func.return }"""
    )
    a, b, c, d = program.function("f").function_type.inputs.data
    assert input_signature(torch.zeros(7, 3), a) == "torch.float32 [?, 3]"
    ciphertext = torch.zeros(2, 5, 32, dtype=torch.int64)
    assert input_signature(ciphertext.expand(9, 2, 5, 32), b) == "torch.int64 [?, 2, 5, 32]"
    batch = input_signature(ciphertext.expand(4, 2, 5, 32), c)
    assert batch == input_signature(ciphertext, c) == "torch.int64 [2, 5, 32]"
    assert input_signature(1.5, d) == "float"


def run_until_a_rank_fails(fault: Callable[..., None] | None) -> Told:
    """Run where the last rank meets with `fault` between the messages of an all-reduce."""
    executable = linked(SUM)
    is_victim = torch.distributed.get_rank() == torch.distributed.get_world_size() - 1
    if is_victim and fault is not None:
        torch.distributed.all_to_all_single = fault
    index = 9 if is_victim and fault is None else 0
    began = time.monotonic()
    kind, text = tell(executable.run, VALUES, index)
    assert time.monotonic() - began < 30
    return kind, text


FAULTS = [
    pytest.param(2, stop_self, id="stopped-2"),
    pytest.param(3, kill_self, id="killed-3"),
    pytest.param(2, kill_self, id="killed-2", marks=pytest.mark.long),
    pytest.param(3, stop_self, id="stopped-3", marks=pytest.mark.long),
]


@pytest.mark.parametrize(("ranks", "fault"), FAULTS)
def test_a_rank_that_dies_in_an_all_reduce_is_named(ranks: int, fault: Callable[..., None]) -> None:
    found = survivors(run_until_a_rank_fails, ranks, [ranks - 1], fault)
    assert sorted(found) == list(range(ranks - 1))
    for rank, (kind, text) in found.items():
        assert kind == "LostRankError"
        assert text.startswith(
            f"dist.all_reduce in @world failed on rank {rank}: rank {ranks - 1} no longer answers: "
            "killed, stopped, stuck or cut off ("
        )


@pytest.mark.parametrize("ranks", [2, pytest.param(3, marks=pytest.mark.long)])
def test_a_rank_that_raises_is_named(on_ranks: OnRanks, ranks: int) -> None:
    *others, (kind, text) = on_ranks(run_until_a_rank_fails, ranks, None)
    assert (kind, text) == ("IndexError", "index 9 is outside dimension 0 of size 5")
    for rank, (other, message) in enumerate(others):
        assert other == "LostRankError"
        assert message.startswith(
            f"dist.all_reduce in @world failed on rank {rank}: rank {ranks - 1} raised IndexError: "
            "index 9 is outside dimension 0 of size 5 in tensor.extract at <string>:4:10 ("
        )


def run_on_a_pair(*texts: str) -> list[Told]:
    """Run programs in a new group of the first two ranks."""
    pair = torch.distributed.new_group([0, 1])
    if torch.distributed.get_rank() > 1:
        return []
    assert isinstance(pair, torch.distributed.ProcessGroup)
    group = BoundResource("world", "process-group", ProcessGroupExecutionResource(pair))
    backend = OperationBackend(named_resources=ResourceBindings([group]))
    return [tell(backend.link(Compilation(Program.parse(t))).run, VALUES, 0) for t in texts]


def fail_after_runs_without_the_last() -> tuple[Told, Told]:
    run_on_a_pair(SUM, SUM)
    return run_each(SUM, OTHER), run_until_a_rank_fails(None)


def test_ranks_may_have_made_other_numbers_of_runs(on_ranks: OnRanks) -> None:
    found = on_ranks(fail_after_runs_without_the_last, 3)
    for (kind, text), _ in found:
        assert kind == "RankMismatchError"
        assert "rank 2 differs from rank 0 in its program" in text
    for _, (kind, text) in found[:2]:
        assert kind == "LostRankError"
        assert ": rank 2 raised IndexError: index 9 is outside dimension 0 of size 5 in" in text


def run_again_after_a_failure() -> tuple[list[Told], list[Told]]:
    """The last rank raises, and begins other runs while the first waits for it in an all-reduce."""
    told = [run_until_a_rank_fails(None)]
    if torch.distributed.get_rank() == torch.distributed.get_world_size() - 1:
        told += [tell(linked(text).run, VALUES, 0) for text in (SUM, OTHER)]
    return told, run_on_a_pair(SUM) if torch.distributed.get_world_size() == 2 else []


def test_a_rank_that_raised_is_refused_other_runs_in_that_group(on_ranks: OnRanks) -> None:
    ([survivor], pair), ([_, *refused], other_pair) = on_ranks(run_again_after_a_failure, 2)
    assert survivor[0] == "LostRankError"
    assert ": rank 1 raised IndexError: index 9 is outside dimension 0 of size 5 in" in survivor[1]
    message = (
        "found @world in a run that failed or still goes on, expected a group at rest: run one "
        "program at a time, and after a failure end all ranks and start them again"
    )
    assert refused == [("UnfinishedRunError", message)] * 2
    assert pair == other_pair == [("nothing", "")]


def test_a_rank_alone_runs_again_after_a_failure(on_ranks: OnRanks) -> None:
    (([failed, *others], _),) = on_ranks(run_again_after_a_failure, 1)
    assert failed[0] == "IndexError"
    assert others == [("nothing", "")] * 2


def stay_away(ended: bool) -> Told:
    executable = linked(SUM)
    executable.run(VALUES, 0)
    if torch.distributed.get_rank() == 0:
        return tell(executable.run, VALUES, 0)
    if ended:
        executable._guard.watch._stop()  # pyright: ignore
    else:
        time.sleep(DEADLINE + 1)
    return "nothing", ""


@pytest.mark.parametrize(
    ("ended", "where"),
    [
        (True, "rank 1 ended before this collective"),
        (
            False,
            "rank 1 is at collective 2 of run 1, dist.all_reduce in @world; rank 0 is at "
            "collective 1 of run 2, the comparison of programs in @world",
        ),
    ],
)
def test_a_rank_that_is_elsewhere_is_named(on_ranks: OnRanks, ended: bool, where: str) -> None:
    (kind, text), _ = on_ranks(stay_away, 2, ended)
    assert kind == "LostRankError"
    assert text.startswith(f"the comparison of programs in @world failed on rank 0: {where} (")


DIVERGING = SUM.replace(
    "%own = tensor.extract",
    """%zero = arith.constant 0 : index
  %rank = dist.rank %world
  %first = arith.cmpi eq, %rank, %zero : index
  scf.if %first {
    %y = dist.broadcast %x from 0 in %world : tensor<?xi64>
  }
  %own = tensor.extract""",
)


def link_diverging() -> list[Told]:
    group = BoundResource("world", "process-group", world())
    backend = OperationBackend(named_resources=ResourceBindings([group]))
    compilation = Compilation(Program.parse(DIVERGING), pipeline=Pipeline.parse("canonicalize"))
    trusting = backend.without_spmd_verification()
    extended = trusting.with_named_resources(ResourceBindings([group]))
    return [tell(each.link, compilation) for each in (backend, trusting, extended)]


ROOT = """
func.func @main(%x: f64) -> f64 {
  %world = fhelium.resource @world : !dist.group
  %y = dist.broadcast %x from 2 in %world : f64
  func.return %y : f64
}
"""


SMALL = Parameters.build(ring_degree=32, depth=1, scale_bits=40, insecure=True)
# Once lowered, both are residues of one basis.
OTHER_SCALE = """
!sent = !ckks.ciphertext<level = 1, scale = 2^40, components = 2, form = evaluation>
!received = !ckks.ciphertext<level = 1, scale = 2^41, components = 2, form = evaluation>
builtin.module attributes {ckks.parameters = PARAMETERS} {
  func.func @main(%x: !sent, %other: !received) -> !received {
    %world = fhelium.resource @world : !dist.group
    %rank = dist.rank %world
    %zero = arith.constant 0 : index
    %first = arith.cmpi eq, %rank, %zero : index
    %y = scf.if %first -> (!received) {
      dist.send %x to 1 in %world : !sent
      scf.yield %other : !received
    } else {
      %found = dist.recv from 0 in %world : !received
      scf.yield %found : !received
    }
    func.return %y : !received
  }
}
""".replace("PARAMETERS", str(SMALL.to_attribute()))


NO_DEADLINES: Any = (
    timedelta(0),
    timedelta(microseconds=500),
    timedelta(seconds=1e9 + 1e5),
    1.5,
)


def links() -> dict[str, Any]:
    return {
        "diverging": link_diverging(),
        "root": tell(linked, ROOT),
        "scale": tell(linked, OTHER_SCALE, "convert-ckks-to-rns"),
        "deadline": world().deadline.total_seconds(),
        "deadlines": [tell(world().set_deadline, each) for each in NO_DEADLINES],
        "kept": ProcessGroupExecutionResource().deadline.total_seconds(),
    }


def test_linking_on_two_ranks(on_ranks: OnRanks) -> None:
    for found in on_ranks(links, 2):
        refused, trusted, extended = found["diverging"]
        assert refused[0] == "LinkError"
        assert "<string>:8:10: error: dist-verify-spmd: dist.broadcast in @world" in refused[1]
        assert "the condition %first of scf.if may differ between ranks through %rank" in refused[1]
        assert trusted == extended == ("nothing", "")
        kind, text = found["root"]
        assert kind == "LinkError"
        assert "found root 2 of dist.broadcast in @world, expected 0 to 1: the group has" in text
        kind, text = found["scale"]
        assert kind == "LinkError"
        assert "found a dist.recv of !ckks.ciphertext<level = 1, scale = 2^41" in text
        assert found["deadline"] == DEADLINE
        assert found["deadlines"] == [
            ("ValueError", "the deadline is 0 s, expected 0.001 to 1e+09 s"),
            ("ValueError", "the deadline is 0.0005 s, expected 0.001 to 1e+09 s"),
            ("ValueError", "the deadline is 1.0001e+09 s, expected 0.001 to 1e+09 s"),
            ("TypeError", "the deadline is a float, expected a timedelta"),
        ]
        assert found["kept"] == DEADLINE


def test_linking_on_one_rank_verifies_nothing(on_ranks: OnRanks) -> None:
    (found,) = on_ranks(links, 1)
    assert found["diverging"] == [("nothing", "")] * 3
    assert found["root"] == ("nothing", "")
