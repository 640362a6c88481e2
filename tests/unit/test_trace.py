"""What a span of a trace says of its op."""

import torch

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
