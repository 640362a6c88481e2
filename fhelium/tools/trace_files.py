"""Writing the trace of a run: one file for all ranks, or one for each."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.distributed

from fhelium.backend.process_group import ProcessGroupExecutionResource
from fhelium.backend.rank_watch import RankWatch
from fhelium.backend.spmd_guard import compare, explain
from fhelium.backend.torch_family.collectives.transport import exchange
from fhelium.backend.trace import Trace, merged
from fhelium.tools.files import FileError, output_of_rank, write_output

COLLECTION = "the collection of traces"


def write_trace(path: str, trace: Trace) -> None:
    """Write a file for this rank where the path has `{rank}`; else rank 0 writes all spans.

    Raises `FileError`, and `LostRankError` when another rank does not come.
    """
    spans = trace.spans if "{rank}" in path else _of_all_ranks(trace.spans)
    if (place := output_of_rank(path, trace.rank)) is not None:
        write_output(place, merged(spans).encode())


@contextmanager
def written_trace(path: str, trace: Trace) -> Iterator[None]:
    """Write the trace of what runs inside.

    When that fails or is interrupted, other ranks may wait elsewhere, so that theirs is not
    collected: this rank writes its own, without `{rank}` in the path rank 0 alone, and a note of
    the error says so. Raises what `write_trace` does.
    """
    try:
        yield
    except (Exception, KeyboardInterrupt) as error:
        if (place := output_of_rank(path, trace.rank)) is not None:
            try:
                write_output(place, merged(trace.spans).encode())
                error.add_note(f"what this rank had done until then is in {place}")
            except FileError as unwritten:
                error.add_note(str(unwritten))
        raise
    write_trace(path, trace)


def _of_all_ranks(spans: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the spans of all ranks on rank 0, and nothing on others."""
    text = torch.frombuffer(bytearray(json.dumps(spans).encode()), dtype=torch.uint8)
    sizes = [size for (size,) in compare(COLLECTION, [text.numel()])]
    if len(sizes) == 1:
        return spans
    group = ProcessGroupExecutionResource()
    nothing = text[:0]
    outgoing = [text if rank == 0 else nothing for rank in range(group.size)]
    shapes = [[size if group.rank == 0 else 0] for size in sizes]
    try:
        received = exchange(outgoing, shapes, group)
    except RuntimeError as error:
        explain(error, COLLECTION, range(group.size), RankWatch.of_default_group())
        raise
    return [span for each in received if each.numel() for span in json.loads(bytes(each.tolist()))]
