"""Collectives that fail on one, two and three real Gloo ranks: on every rank, without a hang."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.distributed
from conftest import OnRanks
from test_backend_collectives import (
    BROADCAST,
    GENERIC,
    Check,
    Group,
    Tensor,
    broadcast,
    double_and_add,
    message,
    reduce,
    reduce_ciphertext,
    resources,
    run_checks,
)

from fhelium.backend import (
    BoundResource,
    OperationInvocation,
    TorchCiphertextAddAllReduceImplementation,
)
from fhelium.dialects import distributed


def roots_outside_the_group(group: Group) -> Any:
    return [message(lambda r=r: broadcast(group, torch.zeros(2), r)) for r in (group.size, 7, -1)]


def in_place_and_wrong_resources(group: Group) -> Any:
    value = torch.zeros(2)
    invocation = OperationInvocation(distributed.BroadcastOp, 1, 1, {"root": 0})
    wrong = (BoundResource("world", "table", group),)
    two = resources(group) * 2
    return [
        message(lambda: BROADCAST.execute(invocation, (value,), resources(group), in_place=True)),
        message(lambda: BROADCAST.execute(invocation, (value,), wrong, in_place=False)),
        message(lambda: BROADCAST.execute(invocation, (value,), (), in_place=False)),
        message(lambda: BROADCAST.execute(invocation, (value,), two, in_place=False)),
        message(lambda: GENERIC.execute(invocation, (value,), resources(group), in_place=False)),
        *(
            message(
                lambda regions=regions: GENERIC.execute_regions(
                    invocation, (value,), resources(group), regions, in_place=False
                )
            )
            for regions in ((), (double_and_add,) * 2)
        ),
    ]


def differing(group: Group, *values: Tensor) -> list[tuple[str, str]]:
    value = values[1] if group.rank == group.size - 1 and group.size > 1 else values[0]
    return [
        message(lambda: broadcast(group, value, 0)),
        message(lambda: reduce(group, value, double_and_add)),
        message(lambda: reduce_ciphertext(group, value, lambda a, b, q: a + b)),
    ]


def differing_shapes(group: Group) -> Any:
    """Shapes of one size too, which a transport alone would not notice."""
    tall = torch.zeros(*[1] * 12, 2), torch.zeros(*[1] * 11, 2, 1)
    return [
        *differing(group, torch.zeros(2, 3), torch.zeros(2, 2)),
        *differing(group, torch.zeros(2, 3), torch.zeros(3, 2)),
        *differing(group, torch.zeros(6), torch.zeros(2, 3)),
        *differing(group, *tall),
    ]


def differing_dtypes(group: Group) -> Any:
    return [
        *differing(group, torch.zeros(2, dtype=torch.int64), torch.zeros(2, dtype=torch.float64)),
        *differing(group, torch.zeros(2, dtype=torch.int64), torch.zeros(4, dtype=torch.int32)),
    ]


def different_collectives(group: Group) -> Any:
    last = group.rank == group.size - 1
    value = torch.zeros(2)
    return [
        message(
            lambda: broadcast(group, value, 0) if last else reduce(group, value, double_and_add)
        ),
        message(lambda: broadcast(group, value, 0 if last else group.size - 1)),
    ]


def a_combine_that_raises_on_one_rank(group: Group) -> Any:
    def fail(a: Tensor, b: Tensor, *moduli: Tensor) -> Any:
        if group.rank == group.size - 1:
            raise ArithmeticError("lost a limb")
        return a + b if moduli else (a + b,)

    value = torch.ones(3)
    return [
        message(lambda: reduce(group, value, fail)),
        message(lambda: reduce_ciphertext(group, value, fail)),
    ]


def a_combine_of_another_layout(group: Group) -> Any:
    value = torch.ones(3)
    wrong: list[Callable[..., Any]] = [
        lambda a, b: (a[:2],),
        lambda a, b: (a.double(),),
        lambda a, b: (a, b),
        lambda a, b: (),
        lambda a, b: None,
    ]
    return [message(lambda f=f: reduce(group, value, f)) for f in wrong]


def after_failures_the_group_still_works(group: Group) -> Any:
    return reduce(group, torch.tensor([group.rank + 1]), double_and_add).item()


CHECKS: tuple[Check, ...] = (
    roots_outside_the_group,
    in_place_and_wrong_resources,
    differing_shapes,
    differing_dtypes,
    different_collectives,
    a_combine_that_raises_on_one_rank,
    a_combine_of_another_layout,
    after_failures_the_group_still_works,
)


@pytest.fixture(scope="module", params=[1, 2, 3], ids=lambda ranks: f"{ranks}-ranks")
def seen(request: pytest.FixtureRequest, on_ranks: OnRanks) -> Any:
    """Return what each rank saw in a check, by the name of the check."""
    ranks = on_ranks(run_checks, request.param, CHECKS)

    def of(name: str) -> list[Any]:
        return [results[name] for results in ranks]

    return of


def test_a_root_outside_the_group_is_an_error_on_every_rank(seen: Any) -> None:
    found = seen("roots_outside_the_group")
    size = len(found)
    for each in found:
        assert each == [
            (
                "IndexError",
                f"found root {root} of dist.broadcast, expected 0 to {size - 1}: the group of this "
                f"rank has {size} rank{'s' * (size > 1)}; in a group by dist.split, name a root "
                "that every part has",
            )
            for root in (size, 7, -1)
        ]


def test_calls_that_make_no_sense(seen: Any) -> None:
    for each in seen("in_place_and_wrong_resources"):
        kinds = [kind for kind, _ in each]
        assert kinds == ["ValueError"] * 4 + ["RuntimeError"] + ["ValueError"] * 2
        texts = [text for _, text in each]
        assert "torch-broadcast does not run in place: collectives are functional" in texts[0]
        assert "got resources of kind 'table', expected one 'process-group'" in texts[1]
        assert "got resources of kind none, expected one 'process-group'" in texts[2]
        assert "torch-generic-all-reduce needs its combine region: call execute_regions" in texts[4]
        assert "got 0 regions, expected one to combine with" in texts[5]
        assert "got 2 regions" in texts[6]


@pytest.mark.parametrize("name", ["differing_shapes", "differing_dtypes"])
def test_differing_payloads_are_an_error_on_every_rank(seen: Any, name: str) -> None:
    found = seen(name)
    if len(found) == 1:
        assert {kind for kind, _ in found[0]} == {"nothing"}
        return
    assert all(each == found[0] for each in found)
    for kind, text in found[0]:
        assert kind == "ValueError"
        assert "got payloads of several layouts, expected one on every rank: rank 0 has" in text
        assert f"rank {len(found) - 1} has torch." in text
    if name == "differing_shapes":
        assert "rank 0 has torch.float32 (2, 3); " in found[0][0][1]


def test_different_collectives_are_an_error_on_every_rank(seen: Any) -> None:
    """At once, and not when the slower one gives up waiting."""
    found = seen("different_collectives")
    if len(found) == 1:
        assert {kind for kind, _ in found[0]} == {"nothing"}
        return
    for rank, each in enumerate(found):
        others = [r for r in range(len(found)) if (r == len(found) - 1) != (rank == len(found) - 1)]
        named = ", ".join(str(other) for other in others)
        for kind, text in each:
            assert kind == "RankMismatchError"
            assert f" on rank {named}, expected the same one on every rank" in text


def test_a_combine_that_raises_on_one_rank_is_an_error_on_every_rank(seen: Any) -> None:
    found = seen("a_combine_that_raises_on_one_rank")
    last = len(found) - 1
    if last == 0:
        assert {kind for kind, _ in found[0]} == {"nothing"}
        return
    for rank, each in enumerate(found):
        for kind, text in each:
            assert kind == "RuntimeError"
            assert f"failed to combine payloads on rank {last}" in text
            assert ("lost a limb" in text) == (rank == last)


def test_a_combine_of_another_layout_is_an_error(seen: Any) -> None:
    found = seen("a_combine_of_another_layout")
    if len(found) == 1:
        return
    for each in found:
        assert [kind for kind, _ in each] == ["RuntimeError"] * 5
        texts = [text for _, text in each]
        assert "combined two torch.float32 (3,) to a torch.float32 (2,), expected the s" in texts[0]
        assert "to a torch.float64 (3,)" in texts[1]
        assert "combined two payloads to 2 values, expected one" in texts[2]
        assert "combined two payloads to 0 values" in texts[3]


def test_the_group_still_works_after_failures(seen: Any) -> None:
    found = seen("after_failures_the_group_still_works")
    assert found == [{1: 1, 2: 4, 3: 11}[len(found)]] * len(found)


def fail_on_rank_one() -> None:
    if torch.distributed.get_rank() == 1:
        raise ArithmeticError("lost a limb")
    torch.distributed.barrier()


def test_a_rank_that_fails_ends_its_launch(on_ranks: OnRanks) -> None:
    with pytest.raises(pytest.fail.Exception, match=r"rank 1: Traceback") as error:
        on_ranks(fail_on_rank_one, 2)
    assert "ArithmeticError: lost a limb" in str(error.value)


@pytest.mark.parametrize("combine", [None, 3, "add"])
def test_a_combine_is_callable(combine: Any) -> None:
    with pytest.raises(TypeError, match=r"combine is a .*, expected a callable such as"):
        TorchCiphertextAddAllReduceImplementation(combine)
