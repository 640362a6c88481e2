"""Programs on several groups, which ranks name alike or not, on three real Gloo ranks."""

from typing import Any

import pytest
import torch
import torch.distributed
from conftest import OnRanks
from faulty_ranks import Told, tell, world

from fhelium.backend import (
    BoundResource,
    Compilation,
    OperationBackend,
    ProcessGroupExecutionResource,
    Program,
    ResourceBindings,
)

Group = ProcessGroupExecutionResource


def text(*groups: str) -> str:
    """Broadcast the input in one group after the other."""
    lines = [
        f"""
  %{group} = fhelium.resource @{group} : !dist.group
  %of_{group} = dist.broadcast %x from 0 in %{group} : tensor<?xi64>"""
        for group in groups
    ]
    of_last = f"%of_{groups[-1]}"
    return f"""
func.func @main(%x: tensor<?xi64>) -> tensor<?xi64> {{{"".join(lines)}
  func.return {of_last} : tensor<?xi64>
}}"""


def run(program: str, groups: dict[str, Group], size: int = 3) -> Told:
    bound = [BoundResource(name, "process-group", group) for name, group in groups.items()]
    backend = OperationBackend(named_resources=ResourceBindings(bound))
    return tell(backend.link(Compilation(Program.parse(program))).run, torch.arange(size))


def on_several_groups() -> dict[str, Any]:
    rank, whole = torch.distributed.get_rank(), world()
    a, b = (whole.part((0, 1, 2), name) for name in "ab")
    odd = rank == 2
    return {
        "bound in another order": run(
            text("a", "b"), {"b": b, "a": a} if odd else {"a": a, "b": b}
        ),
        "used in another order": run(text(*("ba" if odd else "ab")), {"a": a, "b": b}),
        "under other names": run(text("a", "b"), {"a": b, "b": a} if odd else {"a": a, "b": b}),
        "under two names": run(text("a", "b"), {"a": a, "b": a}),
        "failing together": run(text("b", "a"), {"a": a, "b": a}, 4 if odd else 3),
        "afterwards": run(text("a"), {"a": a}),
    }


@pytest.fixture(scope="module")
def seen(on_ranks: OnRanks) -> list[dict[str, Told]]:
    return on_ranks(on_several_groups, 3)


@pytest.mark.parametrize("what", ["bound in another order", "under two names", "afterwards"])
def test_what_runs(seen: list[dict[str, Told]], what: str) -> None:
    assert [each[what] for each in seen] == [("nothing", "")] * 3


def test_groups_in_another_order_are_a_difference(seen: list[dict[str, Told]]) -> None:
    message = (
        "the ranks of @a do not run the same: rank 2 differs from rank 0 in its program: start all "
        "ranks with one program, one pipeline and one version of FHElium"
    )
    told = [each["used in another order"] for each in seen]
    assert told == [("RankMismatchError", message)] * 3


def test_groups_under_other_names_are_a_difference(seen: list[dict[str, Told]]) -> None:
    for rank, each in enumerate(seen):
        name = "@b" if rank == 2 else "@a"
        assert each["under other names"] == (
            "RankMismatchError",
            f"the ranks of {name} do not run the same: rank 2 differs from rank 0 in its name of "
            "the group: @b, expected @a: start all ranks with one program, one pipeline and one "
            "version of FHElium",
        )


def test_an_agreed_failure_under_two_names_leaves_the_group_alone(
    seen: list[dict[str, Told]],
) -> None:
    for each in seen:
        kind, message = each["failing together"]
        assert kind == "ValueError"
        assert message.startswith("torch-broadcast got payloads of several layouts")
