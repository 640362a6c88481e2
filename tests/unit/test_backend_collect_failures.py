"""Collectives that fail on two, three and four real Gloo ranks: on every rank, without a hang."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from collective_programs import LIMBS, PARAMETERS, Group, residues
from conftest import OnRanks
from test_backend_collectives import message, resources

from fhelium.backend import BoundResource, OperationInvocation, default_registry
from fhelium.dialects import distributed
from fhelium.dialects.distributed import LIMB_AXIS

Check = Callable[[Group], Any]
ROOTED = {
    distributed.ReduceOp: {},
    distributed.GatherOp: {"axis": 0},
    distributed.ScatterOp: {"axis": 0},
}
ALONG_AN_AXIS = (
    distributed.AllGatherOp,
    distributed.GatherOp,
    distributed.ScatterOp,
    distributed.AllToAllOp,
    distributed.ReduceScatterOp,
)


def add(a: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor]:
    return (a + b,)


def call(
    group: Group,
    op: type,
    *inputs: torch.Tensor,
    combine: Callable[..., Any] = add,
    more: tuple[BoundResource, ...] = (),
    results: tuple[Any, ...] = (),
    operands: tuple[Any, ...] = (),
    count: int = 1,
    **attributes: Any,
) -> Any:
    """Run one collective as the backend would, and return its first result."""
    implementation: Any = default_registry().resolve_type(op, requested=None)
    invocation = OperationInvocation(
        op,
        len(inputs),
        count,
        {"root": 0, **attributes},
        operand_prime_ids=operands,
        result_prime_ids=results,
    )
    bound = (*resources(group), *more)
    if issubclass(op, distributed.CombiningOp):
        outputs = implementation.execute_regions(
            invocation, inputs, bound, (combine,), in_place=False
        )
    else:
        outputs = implementation.execute(invocation, inputs, bound, in_place=False)
    return outputs[0] if outputs else None


def ranks_outside_the_group(group: Group) -> Any:
    value = torch.zeros(4)
    seen = [
        message(lambda op=op, rest=rest, root=root: call(group, op, value, **rest, root=root))
        for op, rest in ROOTED.items()
        for root in (-1, group.size)
    ]
    point_to_point = [
        message(lambda op=op, peer=peer: call(group, op, value, peer=peer, tag=0))
        for op in (distributed.SendOp, distributed.RecvOp)
        for peer in (-1, group.size, group.rank)
    ]
    return seen, point_to_point


def last_differs(group: Group, *values: torch.Tensor) -> torch.Tensor:
    return values[group.rank == group.size - 1]


def differing_layouts(group: Group) -> Any:
    """In what may not differ: dtype, number of dimensions, and all sizes but that of the axis."""
    wide = last_differs(group, torch.zeros(4, 3), torch.zeros(4, 2))
    integers = last_differs(group, torch.zeros(4), torch.zeros(4, dtype=torch.int64))
    return [
        *(message(lambda op=op: call(group, op, wide, axis=0)) for op in ALONG_AN_AXIS),
        *(message(lambda op=op: call(group, op, integers, axis=0)) for op in ALONG_AN_AXIS),
        message(lambda: call(group, distributed.ReduceOp, wide)),
        message(lambda: call(group, distributed.ReduceOp, wide, elementwise=True)),
        message(lambda: call(group, distributed.AllReduceOp, wide, elementwise=True)),
    ]


def ragged_where_it_is_not_allowed(group: Group) -> Any:
    rows = torch.zeros(group.rank + 4, 3)
    ops = (distributed.ScatterOp, distributed.ReduceScatterOp)
    return [message(lambda op=op: call(group, op, rows, axis=0)) for op in ops]


def different_collectives(group: Group) -> Any:
    last = group.rank == group.size - 1
    value = torch.zeros(4, 4)
    return [
        message(lambda: call(group, distributed.AllGatherOp, value, axis=int(last))),
        message(lambda: call(group, distributed.GatherOp, value, axis=0, root=int(last))),
        message(lambda: call(group, distributed.ReduceOp, value, root=int(last))),
        message(
            lambda: call(
                group, (distributed.AllToAllOp if last else distributed.AllGatherOp), value, axis=0
            )
        ),
        message(
            lambda: (
                call(group, distributed.BarrierOp)
                if last
                else call(group, distributed.SplitOp, torch.tensor(0), torch.tensor(0))
            )
        ),
    ]


def results_of_another_type(group: Group) -> Any:
    """On the last rank alone: a text of its own, or data that does not fit the text."""
    rows = torch.zeros(group.size * 2, 3)
    shape = (9, 9) if group.rank == group.size - 1 else None
    seen = [
        message(lambda op=op: call(group, op, rows, axis=0, result_shapes=(shape,)))
        for op in ALONG_AN_AXIS
    ]
    whole = tuple(range(LIMBS))
    x = residues(0, 2, LIMBS, 16)
    counts = [each.shape[0] for each in torch.arange(LIMBS).tensor_split(group.size)]
    first = sum(counts[: group.rank]) - (group.rank == group.size - 1)
    share = whole[first : first + counts[group.rank]]
    seen += [
        message(
            lambda op=op: call(group, op, x, axis=LIMB_AXIS, operands=(whole,), results=(share,))
        )
        for op in (distributed.ScatterOp, distributed.ReduceScatterOp)
    ]
    seen.append(
        message(
            lambda: call(
                group,
                distributed.AllGatherOp,
                x[..., : len(share), :],
                axis=LIMB_AXIS,
                operands=(share,),
                results=(whole,),
            )
        )
    )
    return seen


def regions_that_raise_on_one_rank(group: Group) -> Any:
    def fail(a: torch.Tensor, b: torch.Tensor) -> Any:
        if group.rank == group.size - 1:
            raise ArithmeticError("lost a limb")
        return (a + b,)

    value = torch.ones(4)
    root = group.size - 1
    return [
        message(
            lambda: call(group, distributed.AllReduceOp, value, combine=fail, elementwise=True)
        ),
        message(
            lambda: call(
                group, distributed.ReduceOp, value, combine=fail, root=root, elementwise=True
            )
        ),
        message(lambda: call(group, distributed.ReduceOp, value, combine=fail, root=root)),
        message(lambda: call(group, distributed.ReduceScatterOp, value, combine=fail, axis=0)),
    ]


def calls_that_make_no_sense(group: Group) -> Any:
    value = torch.zeros(4)
    invocation = OperationInvocation(distributed.ReduceOp, 1, 1, {"root": 0})
    reduce: Any = default_registry().resolve_type(distributed.ReduceOp, requested=None)
    gather: Any = default_registry().resolve_type(distributed.GatherOp, requested=None)
    bound = resources(group)
    return [
        message(lambda: reduce.execute(invocation, (value,), bound, in_place=False)),
        message(lambda: reduce.execute_regions(invocation, (value,), bound, (), in_place=False)),
        message(lambda: gather.execute(invocation, (value,), bound, in_place=True)),
        message(lambda: gather.execute(invocation, (value,), (), in_place=False)),
        message(lambda: gather.execute(invocation, (value,), bound * 2, in_place=False)),
        message(lambda: call(group, distributed.AllReduceAddCiphertextOp, value)),
    ]


def sums_that_may_overflow(group: Group) -> Any:
    moduli = torch.tensor([97, (1 << 62) + 1]).unsqueeze(-1)
    value = torch.zeros(2, 2, 4, dtype=torch.int64)
    return message(lambda: call(group, distributed.AllReduceAddCiphertextOp, value, moduli))


def sums_of_other_integers(group: Group) -> Any:
    moduli = torch.tensor([97, 193]).unsqueeze(-1)
    value = torch.zeros(2, 2, 4, dtype=torch.int32)
    mixed = (value.long(), last_differs(group, value.long(), value), moduli, moduli)
    return [
        message(lambda: call(group, distributed.AllReduceAddCiphertextOp, value, moduli)),
        message(lambda: call(group, distributed.AllReduceAddCiphertextsOp, *mixed, count=2)),
        message(
            lambda: call(
                group, distributed.AllReduceAddCiphertextsOp, value, value, moduli, moduli, count=2
            )
        ),
    ]


def messages_that_are_not_expected(group: Group) -> Any:
    """From rank 0 to rank 1; the others have no part in it."""
    if group.rank > 1:
        return None
    value = torch.zeros(4, 3)
    parameters = BoundResource("ckks.parameters", "ckks-parameters", PARAMETERS)

    def exchange(tag: int = 0, wanted: int = 0, key: bool = False, **expected: Any) -> Any:
        if group.rank == 0:
            return call(group, distributed.SendOp, value, peer=1, tag=tag)
        more = (parameters,) if key else ()
        return call(group, distributed.RecvOp, peer=0, tag=wanted, more=more, **expected)

    return [
        message(lambda: exchange(tag=3, wanted=4)),
        message(lambda: exchange(result_shapes=((4, 4),))),
        message(lambda: exchange(key=True, result_key=("rotation", 1))),
        message(lambda: exchange(result_dtypes=(torch.float64,))),
        message(lambda: exchange(result_shapes=((),), results=((0, 1),))),
        message(lambda: exchange(result_shapes=((...,),), results=((0, 1),))),
        message(lambda: exchange(result_shapes=((4, 3),), result_dtypes=(torch.float32,))),
    ]


def after_failures_the_group_still_works(group: Group) -> Any:
    value = torch.tensor([group.rank + 1])
    return call(group, distributed.AllReduceOp, value, elementwise=True).item()


CHECKS: tuple[Check, ...] = (
    ranks_outside_the_group,
    differing_layouts,
    ragged_where_it_is_not_allowed,
    different_collectives,
    results_of_another_type,
    regions_that_raise_on_one_rank,
    calls_that_make_no_sense,
    sums_that_may_overflow,
    sums_of_other_integers,
    messages_that_are_not_expected,
    after_failures_the_group_still_works,
)


def run_checks() -> dict[str, Any]:
    group = Group()
    return {check.__name__: check(group) for check in CHECKS}


@pytest.fixture(scope="module", params=[2, 3, 4], ids=lambda ranks: f"{ranks}-ranks")
def seen(request: pytest.FixtureRequest, on_ranks: OnRanks) -> Any:
    """Return what each rank saw in a check, by the name of the check."""
    ranks = on_ranks(run_checks, request.param)

    def of(name: str) -> list[Any]:
        return [results[name] for results in ranks]

    return of


def test_ranks_outside_the_group(seen: Any) -> None:
    found = seen("ranks_outside_the_group")
    size = len(found)
    for rank, (rooted, point_to_point) in enumerate(found):
        told = [*rooted, *point_to_point[:2], *point_to_point[3:5]]
        outside = [
            ("root", -1, "reduce"),
            ("root", size, "reduce"),
            ("root", -1, "gather"),
            ("root", size, "gather"),
            ("root", -1, "scatter"),
            ("root", size, "scatter"),
            ("peer", -1, "send"),
            ("peer", size, "send"),
            ("peer", -1, "recv"),
            ("peer", size, "recv"),
        ]
        for (kind, text), (role, other, op) in zip(told, outside, strict=True):
            assert kind == "IndexError"
            expected = f"found {role} {other} of dist.{op}, expected 0 to {size - 1}: the group of"
            assert text.startswith(expected)
        for name, itself in (("torch-send", point_to_point[2]), ("torch-recv", point_to_point[5])):
            assert itself == (
                "ValueError",
                f"{name} names rank {rank}, which is this one, expected another: put it under "
                "control flow that depends on the rank",
            )


def test_differing_layouts_are_an_error_on_every_rank(seen: Any) -> None:
    found = seen("differing_layouts")
    last = len(found) - 1
    for each in found:
        assert each == found[0]
        for kind, text in each:
            assert kind == "ValueError"
            assert "got payloads of several layouts, expected one on every rank: rank 0 ha" in text
            assert f"rank {last} has torch." in text
        assert "rank 0 has torch.float32 (4, 3); " in each[0][1]
        assert f"rank {last} has torch.float32 (4, 2)" in each[0][1]


def test_ragged_payloads_have_a_place(seen: Any) -> None:
    for each in seen("ragged_where_it_is_not_allowed"):
        for kind, text in each:
            assert kind == "ValueError"
            assert "rank 0 has torch.float32 (4, 3); rank 1 has torch.float32 (5, 3)" in text


def test_different_collectives_are_an_error_on_every_rank(seen: Any) -> None:
    found = seen("different_collectives")
    last = len(found) - 1
    for rank, each in enumerate(found):
        others = [last] if rank != last else list(range(last))
        for kind, text in each:
            assert kind == "RankMismatchError"
            named = ", ".join(map(str, others))
            assert f" on rank {named}, expected the same one on every rank" in text
    assert "torch-all-gather along 0 met torch-all-gather along 1 on" in found[0][0][1]
    gathers = "torch-gather to rank 0 along 0", "torch-gather to rank 1 along 0"
    assert " met ".join(gathers) in found[0][1][1]


def test_results_have_the_type_of_the_text(seen: Any) -> None:
    found = seen("results_of_another_type")
    last = len(found) - 1
    for rank, each in enumerate(found):
        for kind, text in each:
            assert kind == "RuntimeError"
            assert f"on rank {last}" in text
            assert ("the result is a" in text or "this rank's share" in text) == (rank == last)
    texts = [text for _, text in found[last]]
    assert "torch-all-gather failed to give a value of the result's type on rank" in texts[0]
    assert (
        f"the result is a torch.float32 ({2 * (last + 1) ** 2}, 3), expected the shape (9, 9)"
        in (texts[0])
    )
    count = len(torch.arange(LIMBS).tensor_split(last + 1)[last])
    first = LIMBS - count
    limbs = f"this rank's share has the limbs {list(range(first - 1, LIMBS - 1))}, expected "
    for text in texts[-3:-1]:
        assert limbs + f"{list(range(first, LIMBS))} of {list(range(LIMBS))}" in text


def test_regions_that_raise_on_one_rank_are_an_error_on_every_rank(seen: Any) -> None:
    found = seen("regions_that_raise_on_one_rank")
    last = len(found) - 1
    for rank, each in enumerate(found):
        for kind, text in each:
            assert kind == "RuntimeError"
            assert f"failed to combine payloads on rank {last}" in text
            assert ("lost a limb" in text) == (rank == last)


def test_calls_that_make_no_sense(seen: Any) -> None:
    for each in seen("calls_that_make_no_sense"):
        assert [kind for kind, _ in each] == ["RuntimeError"] + ["ValueError"] * 5
        texts = [text for _, text in each]
        assert "torch-reduce needs its combine region: call execute_regions" in texts[0]
        assert "torch-reduce got 0 regions, expected one to combine with" in texts[1]
        assert "torch-gather does not run in place: collectives are functional" in texts[2]
        assert "got resources of kind none, expected one 'process-group'" in texts[3]
        assert "the ciphertext all-reduce got no moduli, expected them as its second" in texts[5]


def test_a_sum_that_may_overflow_is_refused(seen: Any) -> None:
    found = seen("sums_that_may_overflow")
    assert found == [
        (
            "ValueError",
            f"torch-ciphertext-sum-all-reduce got residues modulo {(1 << 62) + 1} on {len(found)} "
            "ranks, expected at most 1, or the sum may overflow: assign "
            "torch-ciphertext-add-all-reduce",
        )
    ] * len(found)


def test_sums_of_other_integers_are_refused(seen: Any) -> None:
    for one, mixed, several in seen("sums_of_other_integers"):
        wrong = "-all-reduce got residues of torch.int32, expected torch.int64"
        assert one == ("TypeError", f"torch-ciphertext-sum{wrong}")
        assert several == ("TypeError", f"torch-ciphertext-sums{wrong}")
        assert mixed[0] == "RankMismatchError"
        assert "torch-ciphertext-sums-all-reduce of torch.int64 (2, 2, 4), torch.int" in mixed[1]


def test_messages_that_are_not_expected_are_an_error_at_both_ends(seen: Any) -> None:
    (sent, received, *others) = seen("messages_that_are_not_expected")
    assert set(others) <= {None}
    assert [kind for kind, _ in sent] == ["ValueError"] * 6 + ["nothing"]
    assert [kind for kind, _ in received] == ["ValueError"] * 6 + ["nothing"]
    assert "torch-send sent tag 3 to rank 1, which expects tag 4: send in the order" in sent[0][1]
    assert "torch-recv from rank 0: found tag 3, expected 4: receive in the order" in received[0][1]
    for _, text in sent[1:6]:
        assert "torch-send sent a torch.float32 (4, 3) to rank 1, which expects another la" in text
    assert "the result is a torch.float32 (4, 3), expected the shape (4, 4)" in received[1][1]
    assert (
        "torch-recv from rank 0: the data of a rotation key must be a torch.int64"
        in (received[2][1])
    )
    found = "the result is a torch.float32 (4, 3), expected "
    wanted = ("a torch.float64", "the shape ()", "the shape (batch..., components, limbs, N)")
    for (_, text), expected in zip(received[3:6], wanted, strict=True):
        assert found + expected in text


def test_the_group_still_works_after_failures(seen: Any) -> None:
    found = seen("after_failures_the_group_still_works")
    assert found == [sum(range(1, len(found) + 1))] * len(found)
