"""Started collectives on two real ranks: same bits, overlap in the trace, failures at the wait."""

import json
import threading
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, cast

import pytest
import torch
from collective_programs import CIPHERTEXT, LIMBS, MODULI, PARAMETERS, module, residues
from conftest import OnRanks

from fhelium.backend import (
    BoundResource,
    Compilation,
    OperationBackend,
    Pipeline,
    ProcessGroupExecutionResource,
    ResourceBindings,
)
from fhelium.backend.default import complete_registry
from fhelium.backend.linking import LinkError
from fhelium.backend.torch_family.collectives import (
    TorchCiphertextSumAllReduceImplementation,
    asynchronous,
)
from fhelium.backend.torch_family.collectives.asynchronous import CommunicationThread
from fhelium.backend.trace import Trace, merged
from fhelium.dialects import ckks
from fhelium.dialects.distributed import AllReduceAddCiphertextOp

Group = ProcessGroupExecutionResource
PATIENCE = 60.0
"""Seconds after which a test that waits for the other thread fails."""

SMALL = CIPHERTEXT.replace(f"level = {PARAMETERS.max_level}", "level = 1")

SEVERAL = """
func.func @main(%x: CT, %y: CT, %z: SMALL) -> (CT, CT, SMALL, CT, CT) {
  %world = fhelium.resource @world : !dist.group
  %a = dist.all_reduce_add_ciphertext %x in %world : CT
  %n = ckks.negate %y : CT
  %b = dist.all_reduce_add_ciphertext %n in %world : CT
  %c = dist.all_reduce_add_ciphertext %z in %world : SMALL
  %s = ckks.add %a, %b : CT
  %d = dist.broadcast %s from 1 in %world : CT
  %m = ckks.add %n, %x : CT
  %e = dist.all_reduce %d in %world : CT combine {
  ^bb0(%l: CT, %r: CT):
    %f = ckks.sub %l, %r : CT
    dist.yield %f : CT
  }
  %o = ckks.add %m, %y : CT
  func.return %a, %b, %c, %e, %o : CT, CT, SMALL, CT, CT
}""".replace("SMALL", SMALL).replace("CT", CIPHERTEXT)

NAMED = '{fhelium.implementation = "gated-negation"}'

GATED = """
func.func @main(%x: CT) -> (CT, CT) {
  %world = fhelium.resource @world : !dist.group
  %a = dist.all_reduce_add_ciphertext %x in %world {fhelium.implementation = "gated"} : CT
  %n = ckks.negate %x NAMED : CT
  func.return %a, %n : CT, CT
}""".replace("CT", CIPHERTEXT).replace("NAMED", NAMED)

DEFAULT = "convert-ckks-to-rns"
OVERLAPPED = f"dist-overlap-collectives,{DEFAULT}"


def backend() -> OperationBackend:
    world = ResourceBindings([BoundResource("world", "process-group", Group())])
    return OperationBackend(named_resources=world)


def run_several(pipeline: str) -> tuple[list[torch.Tensor], str]:
    rank = Group().rank
    executable = backend().link(Compilation(module(SEVERAL)), pipeline=Pipeline.parse(pipeline))
    inputs = [residues(2 * rank + i, 2, LIMBS, 16) for i in range(2)]
    small = torch.randint(0, 1000, (3, 2, 2, 16), generator=torch.Generator().manual_seed(rank))
    results = executable.run(*inputs, small)
    assert isinstance(results, tuple)
    assert not [t for t in threading.enumerate() if t.name.startswith("fhelium-communication")]
    return list(results), executable.host_source


PIPELINES = {
    "plain": DEFAULT,
    "overlapped": OVERLAPPED,
    "overlapped behind the lowering": f"{DEFAULT},dist-overlap-collectives",
    "combined": f"dist-combine-collectives,{DEFAULT}",
    "combined behind the lowering": f"{DEFAULT},dist-combine-collectives",
    "both": f"dist-combine-collectives,dist-overlap-collectives,{DEFAULT}",
    "written out": f"dist-combine-collectives,dist-lower-ciphertext-all-reduce,{DEFAULT}",
}


def all_pipelines() -> dict[str, Any]:
    return {name: run_several(pipeline) for name, pipeline in PIPELINES.items()}


def test_every_order_of_messages_gives_the_bits_of_the_plain_program(on_ranks: OnRanks) -> None:
    seen = on_ranks(all_pipelines, 2)
    x, y = ([residues(2 * rank + i, 2, LIMBS, 16) for rank in range(2)] for i in range(2))
    for rank, by_pipeline in enumerate(seen):
        plain, source = by_pipeline["plain"]
        total = (x[0] + x[1]) % MODULI
        other = -(y[0] + y[1]) % MODULI
        assert torch.equal(plain[0], total)
        assert torch.equal(plain[1], other)
        # Both ranks have the broadcast sum, whose difference is nothing.
        assert torch.equal(plain[3], torch.zeros_like(total))
        assert torch.equal(plain[4], x[rank])
        assert "start" not in source
        for name, (results, text) in by_pipeline.items():
            assert all(map(torch.equal, results, plain)), name
            assert ("started_" in text) == ("overlapped" in name or name == "both"), name
            assert ("all_reduce_add_ciphertexts" in text) == ("combined" in name or name == "both")


# Both branches issue one sequence, in which the first alone could combine messages, and has
# arithmetic to run beside them.
BRANCHES = """
func.func @main(%x: CT, %y: CT) -> (CT, CT) {
  %world = fhelium.resource @world : !dist.group
  %rank = dist.rank %world
  %zero = arith.constant 0 : index
  %first = arith.cmpi eq, %rank, %zero : index
  %r = scf.if %first -> (CT) {
    %a = dist.all_reduce_add_ciphertext %x in %world : CT
    %b = dist.all_reduce_add_ciphertext %y in %world : CT
    %n = ckks.negate %x : CT
    %m = ckks.sub %n, %y : CT
    %c = dist.broadcast %m from 1 in %world : CT
    %s = ckks.sub %a, %b : CT
    %t = ckks.sub %s, %c : CT
    scf.yield %t : CT
  } else {
    %a = dist.all_reduce_add_ciphertext %x in %world : CT
    %n = ckks.negate %a : CT
    %b = dist.all_reduce_add_ciphertext %n in %world : CT
    %c = dist.broadcast %b from 1 in %world : CT
    scf.yield %c : CT
  }
  %s = dist.all_reduce_add_ciphertext %r in %world : CT
  func.return %r, %s : CT, CT
}""".replace("CT", CIPHERTEXT)


def run_branches() -> dict[str, tuple[list[torch.Tensor], str]]:
    found: dict[str, tuple[list[torch.Tensor], str]] = {}
    inputs = [residues(2 * Group().rank + i, 2, LIMBS, 16) for i in range(2)]
    for name, pipeline in PIPELINES.items():
        program = Compilation(module(BRANCHES))
        executable = backend().link(program, pipeline=Pipeline.parse(pipeline))
        results = executable.run(*inputs)
        assert isinstance(results, tuple)
        found[name] = list(results), executable.host_source
    return found


def test_ranks_meet_in_branches_that_overlap_differently(on_ranks: OnRanks) -> None:
    (x, y), (u, _) = ([residues(2 * rank + i, 2, LIMBS, 16) for i in range(2)] for rank in range(2))
    sum_of_first = (x + u) % MODULI
    sum_of_second = (y - sum_of_first) % MODULI
    expected = [
        (sum_of_first - sum_of_second - sum_of_second) % MODULI,
        sum_of_second,
    ]
    for rank, by_pipeline in enumerate(on_ranks(run_branches, 2)):
        for name, ((own, both), source) in by_pipeline.items():
            assert torch.equal(own, expected[rank]), name
            assert torch.equal(both, sum(expected) % MODULI), name
            assert "all_reduce_add_ciphertexts" not in source
            assert ("started_" in source) == ("overlapped" in name or name == "both"), name


@dataclass(frozen=True)
class Gate:
    """Two events by which a collective and a computation meet, where they run at one time."""

    begun: threading.Event = field(default_factory=threading.Event)
    computed: threading.Event = field(default_factory=threading.Event)


@dataclass(frozen=True)
class GatedSum(TorchCiphertextSumAllReduceImplementation):
    """The default sum, which ends after the computation has."""

    name: str = "gated"
    gate: Gate | None = None
    only_by_name: ClassVar[bool] = True

    def execute(
        self, invocation: Any, inputs: Any, resources: Any, *, in_place: bool
    ) -> tuple[torch.Tensor, ...]:
        if self.gate is not None:
            self.gate.begun.set()
            assert self.gate.computed.wait(PATIENCE)
        return super().execute(invocation, inputs, resources, in_place=in_place)


@dataclass(frozen=True)
class GatedNegation:
    """Negation, which ends after the collective has begun."""

    name: str = "gated-negation"
    gate: Gate | None = None
    operation_types: tuple[type, ...] = (ckks.NegateOp,)
    supports_in_place: bool = False
    only_by_name: ClassVar[bool] = True

    def resource_requirements(self, invocation: object) -> tuple[()]:
        return ()

    def execute(
        self, invocation: object, inputs: tuple[torch.Tensor, ...], resources: object, **_: bool
    ) -> tuple[torch.Tensor]:
        result = -inputs[0] % MODULI
        if self.gate is not None:
            assert self.gate.begun.wait(PATIENCE)
            self.gate.computed.set()
        return (result,)


def gated_trace(pipeline: str, gate: Gate | None) -> list[dict[str, Any]]:
    """Run the program on gated implementations, and return the events of its trace."""
    group, trace = Group(), Trace(Group().rank)
    world = ResourceBindings([BoundResource("world", "process-group", group)])
    gated = [GatedSum(gate=gate), GatedNegation(gate=gate)]
    registry = complete_registry().with_implementations(gated)
    executable = (
        OperationBackend(registry, named_resources=world)
        .with_trace(trace)
        .link(Compilation(module(GATED)), pipeline=Pipeline.parse(pipeline))
    )
    executable.run(residues(group.rank, 2, LIMBS, 16))
    return json.loads(merged(trace.spans))["traceEvents"]


def gated_traces() -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    return gated_trace(DEFAULT, None), gated_trace(OVERLAPPED, Gate())


def overlaps(events: list[dict[str, Any]]) -> bool:
    """Return whether a computation and a message of one rank run at one time."""
    spans = [event for event in events if event["ph"] == "X"]
    return any(
        one["pid"] == other["pid"]
        and one["ts"] < other["ts"] + other["dur"]
        and other["ts"] < one["ts"] + one["dur"]
        for one in spans
        if one["cat"] == "compute" and one["name"] == "ckks.negate"
        for other in spans
        if other["cat"] == "communication"
    )


def test_a_trace_shows_what_runs_beside_a_message(on_ranks: OnRanks) -> None:
    for rank, (plain, overlapped) in enumerate(on_ranks(gated_traces, 2)):
        assert not overlaps(plain)
        assert overlaps(overlapped)
        (message,) = [e for e in overlapped if e.get("cat") == "communication"]
        assert message["name"] == AllReduceAddCiphertextOp.name
        assert (message["pid"], message["tid"]) == (rank, 1)
        assert message["args"]["bytes"] == 2 * LIMBS * 16 * 8
        assert (message["args"]["group"], message["args"]["limbs"]) == ("world", LIMBS)
        assert message["args"]["implementation"] == "gated"
        (wait,) = [e for e in overlapped if e.get("cat") == "wait"]
        assert (wait["name"], wait["tid"]) == ("dist.wait", 0)
        assert [e["tid"] for e in plain if e.get("cat") == "communication"] == [0]


def failures() -> tuple[Any, ...]:
    """Run with another batch on each rank: the layouts of the message differ."""
    pipeline = Pipeline.parse(OVERLAPPED)
    program = module(GATED.replace(' {fhelium.implementation = "gated"}', "").replace(NAMED, ""))
    executable = backend().link(Compilation(program), pipeline=pipeline)
    try:
        executable.run(residues(0, Group().rank + 1, 2, LIMBS, 16))
    except Exception as error:
        told = type(error).__name__, str(error), " ".join(error.__notes__)
    else:
        told = "nothing", "", ""
    names = [t.name for t in threading.enumerate() if t.name.startswith("fhelium-comm")]
    # The program can run again.
    executable.run(residues(0, 2, LIMBS, 16))
    return *told, names


def test_a_failure_is_raised_at_the_wait_and_names_the_collective(on_ranks: OnRanks) -> None:
    for kind, message, note, threads in on_ranks(failures, 2):
        assert kind == "ValueError"
        assert "got payloads of several layouts, expected one on every rank" in message
        assert note.startswith("in dist.all_reduce_add_ciphertext at <string>:4")
        assert threads == []


def lost() -> str:
    """Rank 1 raises in what it has started, and rank 0 waits for it."""
    gate = Gate()
    gate.computed.set()
    if Group().rank == 1:
        gate = replace(gate, begun=cast("threading.Event", None))
    try:
        gated_trace(OVERLAPPED, gate)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "nothing"


def test_a_rank_that_fails_in_its_thread_is_named_on_the_others(on_ranks: OnRanks) -> None:
    survivor, failed = on_ranks(lost, 2)
    assert "AttributeError" in failed
    assert survivor.startswith("LostRankError: dist.all_reduce_add_ciphertext in @world failed")
    assert "rank 1 raised AttributeError" in survivor


def test_a_program_may_not_overwrite_what_is_sent() -> None:
    text = """
    func.func @main(%y: !rns.poly<basis = Q[0:5], components = 2, form = evaluation>) -> TWO {
      %q = rns.moduli : !rns.moduli<Q[0:5]>
      %world = fhelium.resource @world : !dist.group
      %x = rns.negate %y : POLY
      %p = dist.start {
        %s = dist.broadcast %x from 0 in %world : POLY
        dist.yield %s : POLY
      } : !dist.pending<POLY>
      %n = rns.negate %x {fhelium.implementation = "cpu-rns-negate", fhelium.in_place} : POLY
      %r = dist.wait %p : POLY
      func.return %n, %r : POLY, POLY
    }"""
    poly = "!rns.poly<basis = Q[0:5], components = 2, form = evaluation>"
    text = text.replace("TWO", "(POLY, POLY)").replace("POLY", poly)
    with pytest.raises(LinkError, match=r"rns.negate is to overwrite .* dist.broadcast still uses"):
        OperationBackend().link(Compilation(module(text)), pipeline=Pipeline.parse(""))


def test_a_later_collective_does_not_run_after_a_failure() -> None:
    thread = CommunicationThread()
    ran: list[int] = []

    def fail() -> None:
        raise ValueError("the first one")

    with thread.run():
        first, second = thread.start(fail), thread.start(lambda: ran.append(1))
        for wait in (first, second, thread.in_order(lambda: ran.append(2))):
            with pytest.raises(ValueError, match="the first one"):
                wait()
    assert ran == []
    with thread.run():
        assert thread.start(lambda: 3)() == 3


def test_a_collective_that_is_not_started_waits_for_those_that_are() -> None:
    thread, order, gate = CommunicationThread(), list[str](), threading.Event()

    def slow() -> None:
        assert gate.wait(PATIENCE)
        order.append("started")

    with thread.run():
        wait = thread.start(slow)
        threading.Timer(0.05, gate.set).start()
        thread.in_order(lambda: order.append("other"))()
        wait()
    assert order == ["started", "other"]


def test_work_on_cuda_stays_on_the_stream_of_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    used: list[object] = []

    class Surround:
        def __init__(self, stream: object) -> None:
            self.stream = stream

        def __enter__(self) -> None:
            used.append(self.stream)

        def __exit__(self, *error: object) -> None:
            used.append("left")

    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda: "the stream")
    monkeypatch.setattr(torch.cuda, "stream", Surround)
    body = asynchronous.on_stream_of_caller(lambda: used.append("body"))
    assert used == []
    body()
    assert used == ["the stream", "body", "left"]
