"""What a program did and when, as a trace that Chrome's tracing view and Perfetto read.

A span is one call of one op. Its process is the rank; in it, thread 0 is the program, and thread 1
what `dist.start` started. `dist.wait` stands for one of the text, or for the wait of a collective
until those that were started before it are done. Categories are `compute`, `communication` and
`wait`. On CUDA a span is the time that it takes to queue the work. Host code, such as arithmetic of
`tensor`, leaves none.

`bytes` of a collective are the payload that this rank gives, or else gets. What is sent of it
depends on the algorithm and on the number of ranks.
"""

import json
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from xdsl.ir import Attribute, Operation, SSAValue

from fhelium.backend.torch_family.collectives.asynchronous import is_communication_thread
from fhelium.dialects.ckks.types import StateType
from fhelium.dialects.core import ResourceOp, ResourceType
from fhelium.dialects.distributed import CollectiveOp, SplitOp
from fhelium.dialects.rns.types import ModuliType, PolyType

THREADS = ("program", "started collectives")
MICROSECOND = 1000


@dataclass
class Trace:
    """The spans of one rank, in the order in which they end; times are nanoseconds of the day."""

    rank: int = 0
    spans: list[dict[str, Any]] = field(default_factory=list)
    _origin: int = field(default_factory=lambda: time.time_ns() - time.perf_counter_ns())

    def traced(
        self, operation: Operation, call: Callable[..., Any], details: Mapping[str, str]
    ) -> Callable[..., Any]:
        """Return the call of an op that leaves a span; `details` are further arguments of it."""
        collective = isinstance(operation, CollectiveOp)
        category = "communication" if collective else "compute"
        fixed = {**_description(operation), **details}
        data = [o.type for o in operation.operands if not isinstance(o.type, ResourceType)]
        sent = [position for position, type in enumerate(data) if not isinstance(type, ModuliType)]

        def timed(*arguments: Any) -> Any:
            begin = time.perf_counter_ns()
            result = call(*arguments)
            end = time.perf_counter_ns()
            size = _size(arguments[position] for position in sent)
            if not collective or size == 0:
                size += _size(result if isinstance(result, tuple) else (result,))
            self._add(operation.name, category, begin, end, {"bytes": size, **fixed})
            return result

        return timed

    def waited(self, wait: Callable[[], Any]) -> Callable[[], Any]:
        """Return the wait for a started collective, which leaves a span."""

        def timed() -> Any:
            begin = time.perf_counter_ns()
            result = wait()
            end = time.perf_counter_ns()
            size = _size(result if isinstance(result, tuple) else (result,))
            self._add("dist.wait", "wait", begin, end, {"bytes": size})
            return result

        return timed

    def _add(self, name: str, category: str, begin: int, end: int, args: dict[str, Any]) -> None:
        self.spans.append(
            {
                "name": name,
                "cat": category,
                "ph": "X",
                "ts": self._origin + begin,
                "dur": end - begin,
                "pid": self.rank,
                "tid": int(is_communication_thread()),
                "args": args,
            }
        )


def merged(spans: Iterable[Mapping[str, Any]]) -> str:
    """Return the spans of all ranks as one trace in JSON; it begins with the first of them."""
    ordered = sorted(spans, key=lambda span: span["ts"])
    first = ordered[0]["ts"] if ordered else 0
    events: list[dict[str, Any]] = []
    for rank in sorted({span["pid"] for span in ordered}):
        events.append(_name("process_name", rank, 0, f"rank {rank}"))
        events += [_name("thread_name", rank, i, name) for i, name in enumerate(THREADS)]
    for span in ordered:
        begin, duration = span["ts"] - first, span["dur"]
        events.append({**span, "ts": begin / MICROSECOND, "dur": duration / MICROSECOND})
    return json.dumps({"traceEvents": events, "displayTimeUnit": "ms"}, indent=1)


def _name(what: str, rank: int, thread: int, name: str) -> dict[str, Any]:
    return {"name": what, "ph": "M", "pid": rank, "tid": thread, "args": {"name": name}}


def _description(operation: Operation) -> dict[str, Any]:
    """Return what the text says of an op: its group, and the level or limbs of its result."""
    described: dict[str, Any] = {}
    if isinstance(operation, CollectiveOp) and (group := _group_name(operation.group)):
        described["group"] = group
    types = [value.type for value in (*operation.results, *operation.operands)]
    return described | next(filter(None, map(_state, types)), {})


def _group_name(group: SSAValue) -> str | None:
    """Return the name of a group, or of the one that it is a part of, if a resource has it."""
    part = ""
    while isinstance(group.owner, SplitOp):
        part, group = "part of ", group.owner.group
    return part + group.owner.symbol_name if isinstance(group.owner, ResourceOp) else None


def _state(type: Attribute) -> dict[str, Any]:
    match type:
        case StateType() if type.level is not None:
            return {"level": type.level}
        case PolyType():
            return {"limbs": len(type.basis.q) + len(type.basis.p)}
        case _:
            return {}


def _size(values: Iterable[object]) -> int:
    return sum(value.nbytes for value in values if isinstance(value, torch.Tensor))
