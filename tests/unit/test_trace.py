"""What a span of a trace says of its op."""

import threading

import torch

from fhelium.backend.torch_family.collectives.asynchronous import CommunicationThread, Wait
from fhelium.backend.trace import Trace
from fhelium.dialects.distributed import CollectiveOp
from fhelium.frontends.program import Program

GROUPS = """
func.func @main(%x: tensor<2xi64>, %c: index, %given: !dist.group) {
  %world = fhelium.resource @world : !dist.group
  %part = dist.split %world by %c, %c
  %smaller = dist.split %part by %c, %c
  %a = dist.broadcast %x from 0 in %world : tensor<2xi64>
  %b = dist.broadcast %x from 0 in %part : tensor<2xi64>
  %d = dist.broadcast %x from 0 in %smaller : tensor<2xi64>
  %e = dist.broadcast %x from 0 in %given : tensor<2xi64>
  func.return
}
"""


def test_groups_and_payloads() -> None:
    trace, payload = Trace(), torch.zeros(2, dtype=torch.int64)
    for op in Program.parse(GROUPS).module.walk():
        if isinstance(op, CollectiveOp):
            trace.traced(op, lambda *arguments: arguments[0], {})(payload, payload)
    groups = [span["args"].get("group") for span in trace.spans]
    assert groups == ["world", "part of world", "world", "part of world", "part of world", None]
    # What a rank gives, whatever the algorithm sends of it.
    assert [span["args"]["bytes"] for span in trace.spans[2:]] == [16] * 4


STARTED = """
func.func @main(%x: tensor<2xi64>) {
  %world = fhelium.resource @world : !dist.group
  %pending = dist.start {
    %s = dist.all_reduce %x in %world : tensor<2xi64> combine {
    ^bb0(%a: tensor<2xi64>, %b: tensor<2xi64>):
      %c = arith.addi %a, %b : tensor<2xi64>
      dist.yield %c : tensor<2xi64>
    }
    dist.yield %s : tensor<2xi64>
  } : !dist.pending<tensor<2xi64>>
  %u = dist.broadcast %x from 0 in %world : tensor<2xi64>
  %v = dist.broadcast %x from 0 in %world : tensor<2xi64>
  %r = dist.wait %pending : tensor<2xi64>
  func.return
}
"""


def test_what_a_started_collective_runs_and_who_waits_for_it() -> None:
    ops = {op.name: op for op in Program.parse(STARTED).module.walk()}
    trace, payload, thread = Trace(), torch.zeros(2, dtype=torch.int64), CommunicationThread()
    go_on = threading.Event()

    def reduce(*arguments: torch.Tensor) -> torch.Tensor:
        assert go_on.wait(60)
        return trace.traced(ops["arith.addi"], torch.add, {})(*arguments, *arguments)

    def broadcast(*arguments: torch.Tensor) -> torch.Tensor:
        return arguments[0]

    def released(wait: Wait) -> Wait:
        go_on.set()
        return trace.waited(wait)

    with thread.run():
        call = trace.traced(ops["dist.all_reduce"], reduce, {})
        wait = trace.waited(thread.start(lambda: call(payload)))
        behind = trace.traced(ops["dist.broadcast"], broadcast, {})
        for _ in range(2):
            thread.in_order(behind, released)(payload)
        wait()
    assert [(span["name"], span["tid"]) for span in trace.spans] == [
        ("arith.addi", 1),
        ("dist.all_reduce", 1),
        # Of the first broadcast; the second one finds all that was started done.
        ("dist.wait", 0),
        ("dist.broadcast", 0),
        ("dist.broadcast", 0),
        ("dist.wait", 0),
    ]
