"""Collectives on one, two and three real Gloo ranks.

All checks of a group size run in one launch, one after the other on every rank; each is a test. A
check returns what its rank saw, and `test_*` says what the ranks must have seen together.
"""

import sys
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.distributed
from conftest import OnRanks

from fhelium.backend import (
    BoundResource,
    Compilation,
    OperationBackend,
    OperationInvocation,
    Pipeline,
    ProcessGroupExecutionResource,
    Program,
    ResourceBindings,
    TorchBroadcastImplementation,
    TorchCiphertextAddAllReduceImplementation,
    TorchGenericAllReduceImplementation,
    TorchProcessGroupQueryImplementation,
)
from fhelium.dialects import distributed

Tensor = torch.Tensor
Group = ProcessGroupExecutionResource
Check = Callable[[Group], Any]
CHECKS: dict[str, Check] = {}
GENERIC = TorchGenericAllReduceImplementation()
BROADCAST = TorchBroadcastImplementation()


def check(function: Check) -> Check:
    """Run `function` on every rank of every group size."""
    CHECKS[function.__name__] = function
    return function


def resources(group: Group) -> tuple[BoundResource, ...]:
    return (BoundResource("world", "process-group", group),)


def query(group: Group, op: type) -> Tensor:
    implementation = TorchProcessGroupQueryImplementation()
    (result,) = implementation.execute(
        OperationInvocation(op, 0, 1), (), resources(group), in_place=False
    )
    return result


def broadcast(group: Group, value: Tensor, root: int) -> Tensor:
    invocation = OperationInvocation(distributed.BroadcastOp, 1, 1, {"root": root})
    (result,) = BROADCAST.execute(invocation, (value,), resources(group), in_place=False)
    return result


def reduce(group: Group, value: Tensor, combine: Callable[..., Any]) -> Tensor:
    invocation = OperationInvocation(distributed.AllReduceOp, 1, 1)
    (result,) = GENERIC.execute_regions(
        invocation, (value,), resources(group), (combine,), in_place=False
    )
    return result


def reduce_ciphertext(group: Group, value: Tensor, combine: Callable[..., Any]) -> Tensor:
    implementation = TorchCiphertextAddAllReduceImplementation(combine)
    invocation = OperationInvocation(distributed.AllReduceAddCiphertextOp, 2, 1)
    moduli = torch.tensor([97, 193]).unsqueeze(-1)
    (result,) = implementation.execute(
        invocation, (value, moduli), resources(group), in_place=False
    )
    return result


def message(action: Callable[[], Any]) -> tuple[str, str]:
    """Return the kind and the text of what `action` raises."""
    try:
        action()
    except Exception as error:
        return type(error).__name__, str(error)
    return "nothing", ""


def double_and_add(a: Tensor, b: Tensor) -> tuple[Tensor]:
    return (2 * a + b,)


@check
def queries(group: Group) -> Any:
    rank, size = query(group, distributed.RankOp), query(group, distributed.GroupSizeOp)
    assert rank.dtype == size.dtype == torch.int64
    assert rank.shape == size.shape == ()
    assert (group.rank, group.size) == (rank.item(), size.item())
    assert [group.global_rank(r) for r in range(group.size)] == list(range(group.size))
    outside = [message(lambda r=r: group.global_rank(r)) for r in (-1, group.size)]
    return rank.item(), size.item(), outside


@check
def broadcasts(group: Group) -> Any:
    seen: list[list[int]] = []
    for root in range(group.size):
        value = torch.tensor([group.rank, 10 * group.rank + root])
        result = broadcast(group, value, root)
        assert value.tolist() == [group.rank, 10 * group.rank + root]
        assert result.untyped_storage().data_ptr() != value.untyped_storage().data_ptr()
        seen.append(result.tolist())
    return seen


@check
def reductions_fold_in_rank_order(group: Group) -> Any:
    value = torch.tensor([group.rank + 1])
    result = reduce(group, value, double_and_add)
    special = reduce_ciphertext(group, value, lambda a, b, moduli: 2 * a + b)
    assert value.tolist() == [group.rank + 1]
    for each in (result, special):
        assert each.untyped_storage().data_ptr() != value.untyped_storage().data_ptr()
    assert torch.equal(result, special)
    return result.item()


@check
def combines_receive_the_moduli(group: Group) -> Any:
    def combine(a: Tensor, b: Tensor, moduli: Tensor) -> Tensor:
        assert moduli.shape == (2, 1)
        return (a + b) % moduli

    value = torch.full((2, 2, 4), 90)
    return reduce_ciphertext(group, value, combine)[1, :, 3].tolist()


@check
def payloads_of_any_layout(group: Group) -> Any:
    base = torch.arange(24).reshape(2, 3, 4) + 100 * group.rank
    views = [base.transpose(0, 2), base[:, ::2, 1:3], base[1], base.expand(2, 2, 3, 4), base[:0]]
    views += [torch.tensor(group.rank), base.double(), base > 5, base.to(torch.complex64)]
    for view in views:
        before = view.clone()
        everything = [broadcast(group, view, root) for root in range(group.size)]
        expected = everything[0].clone()
        for each in everything[1:]:
            expected = expected + each
        total = reduce(group, view, lambda a, b: (a + b,))
        assert torch.equal(total, expected)
        assert total.dtype == view.dtype
        assert total.shape == view.shape
        assert torch.equal(everything[group.rank], view)
        assert torch.equal(view, before)
    return True


@check
def what_a_region_captures(group: Group) -> Any:
    """A combine that returns the payload itself must not make the result an alias of it."""
    value = torch.tensor([7, 8])
    result = reduce(group, value, lambda a, b: (value,))
    view = reduce(group, value, lambda a, b: (value[:].view(2),))
    kept = reduce(group, value, lambda a, b: (b,))
    for each in (result, view, kept):
        each += 1
    return value.tolist()


@check
def roots_outside_the_group(group: Group) -> Any:
    return [message(lambda r=r: broadcast(group, torch.zeros(2), r)) for r in (group.size, 7, -1)]


@check
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


@check
def differing_shapes(group: Group) -> Any:
    """Shapes of one size too, which a transport alone would not notice."""
    tall = torch.zeros(*[1] * 12, 2), torch.zeros(*[1] * 11, 2, 1)
    return [
        *differing(group, torch.zeros(2, 3), torch.zeros(2, 2)),
        *differing(group, torch.zeros(2, 3), torch.zeros(3, 2)),
        *differing(group, torch.zeros(6), torch.zeros(2, 3)),
        *differing(group, *tall),
    ]


@check
def differing_dtypes(group: Group) -> Any:
    return [
        *differing(group, torch.zeros(2, dtype=torch.int64), torch.zeros(2, dtype=torch.float64)),
        *differing(group, torch.zeros(2, dtype=torch.int64), torch.zeros(4, dtype=torch.int32)),
    ]


@check
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


@check
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


@check
def after_failures_the_group_still_works(group: Group) -> Any:
    return reduce(group, torch.tensor([group.rank + 1]), double_and_add).item()


@check
def ranks_are_those_of_the_sub_group(world: Group) -> Any:
    """In a group of all ranks but the first."""
    if world.size == 1:
        return None
    members = list(range(1, world.size))
    raw = torch.distributed.new_group(members)
    if world.rank not in members:
        return message(lambda: ProcessGroupExecutionResource(raw))[0]
    group = ProcessGroupExecutionResource(raw)
    assert group.size == len(members)
    assert group.rank == world.rank - 1
    assert [group.global_rank(rank) for rank in range(group.size)] == members
    assert message(lambda: group.global_rank(group.size))[0] == "IndexError"
    value = torch.tensor([world.rank])
    rank, size = query(group, distributed.RankOp), query(group, distributed.GroupSizeOp)
    results = [broadcast(group, value, root).item() for root in range(group.size)]
    fold = reduce(group, value, double_and_add)
    return rank.item(), size.item(), results, fold.item()


PROGRAM = """
func.func @main(%x: tensor<2xi64>, %y: !TWO) -> (tensor<2xi64>, !TWO, index, index, index) {
  %world = fhelium.resource @world : !dist.group
  %captured = fhelium.material @weights : !TWO
  %rank = dist.rank %world
  %size = dist.group_size %world
  %first = dist.broadcast %x from 0 in %world : tensor<2xi64>
  %fold = dist.all_reduce %y in %world : !TWO combine {
  ^bb0(%a: !TWO, %b: !TWO):
    %c = ckks.add %a, %a : !TWO
    %d = ckks.add %c, %b : !TWO
    %e = ckks.add %d, %captured : !TWO
    dist.yield %e : !TWO
  }
  %last = arith.addi %rank, %size : index
  %rank2 = dist.broadcast %last from 0 in %world : index
  func.return %first, %fold, %rank, %size, %rank2 : tensor<2xi64>, !TWO, index, index, index
}"""


@check
def a_program_with_every_collective(group: Group) -> Any:
    from fhelium.scheme.parameters import Parameters

    parameters = Parameters.build(ring_degree=16, depth=0, scale_bits=40, insecure=True)
    (prime,) = parameters.q_primes
    ciphertext = "!ckks.ciphertext<level = 0, scale = 2^40, components = 2, form = evaluation>"
    text = f"module attributes {{ckks.parameters = {parameters.to_attribute()}}} {{{PROGRAM}}}"
    text = text.replace("!TWO", ciphertext)
    backend = OperationBackend(named_resources=ResourceBindings(resources(group)))
    weights = torch.full((2, 1, 16), prime - 1)
    compilation = Compilation(Program.parse(text), {"weights": weights})
    x = torch.tensor([group.rank, 5])
    results: list[Any] = []
    for pipeline in (None, Pipeline()):
        executable = backend.link(compilation, pipeline=pipeline)
        first, fold, rank, size, broadcast_rank = executable.run(  # pyright: ignore
            x, torch.full((2, 1, 16), group.rank + 1)
        )
        effects = {op.name: d.effect for op, d in executable.dispatch_table.operations.items()}
        assert effects["dist.broadcast"] == effects["dist.all_reduce"] == "opaque"
        assert effects["dist.rank"] == effects["dist.group_size"] == "pure"
        prepared = {
            op.name for op, d in executable.dispatch_table.operations.items() if d.prepared_regions
        }
        assert prepared == {"dist.all_reduce"}
        assert len(set(fold.flatten().tolist())) == 1
        results.append(
            (first.tolist(), int(fold[0, 0, 0]), int(rank), int(size), int(broadcast_rank))
        )
    assert results[0] == results[1]
    return results[0]


def run_checks() -> dict[str, Any]:
    """Run every check on this rank; on each, `None` is the default group."""
    assert "fhelium.backend" in sys.modules
    group = ProcessGroupExecutionResource()
    return {name: function(group) for name, function in CHECKS.items()}


@pytest.fixture(scope="module", params=[1, 2, 3], ids=lambda ranks: f"{ranks}-ranks")
def seen(request: pytest.FixtureRequest, on_ranks: OnRanks) -> Any:
    """Return what each rank saw in a check, by the name of the check."""
    ranks = on_ranks(run_checks, request.param)

    def of(name: str) -> list[Any]:
        return [results[name] for results in ranks]

    return of


def test_queries(seen: Any) -> None:
    found = seen("queries")
    size = len(found)
    for rank, (own_rank, own_size, outside) in enumerate(found):
        assert (own_rank, own_size) == (rank, size)
        assert outside == [
            ("IndexError", f"rank {r} is outside the group, expected 0 to {size - 1}")
            for r in (-1, size)
        ]


def test_broadcast_gives_every_rank_a_copy_of_the_roots(seen: Any) -> None:
    found = seen("broadcasts")
    assert found == [[[root, 11 * root] for root in range(len(found))]] * len(found)


def test_reductions_fold_from_the_left_in_rank_order(seen: Any) -> None:
    found = seen("reductions_fold_in_rank_order")
    assert found == [{1: 1, 2: 4, 3: 11}[len(found)]] * len(found)
    assert seen("after_failures_the_group_still_works") == found


def test_the_ciphertext_all_reduce_hands_on_the_moduli(seen: Any) -> None:
    found = seen("combines_receive_the_moduli")
    size = len(found)
    expected = [90 * size % 97, 90 * size % 193] if size > 1 else [90, 90]
    assert found == [expected] * size


def test_payloads_may_have_any_layout_and_dtype(seen: Any) -> None:
    assert all(seen("payloads_of_any_layout"))


def test_a_result_never_aliases_the_payload(seen: Any) -> None:
    found = seen("what_a_region_captures")
    assert found == [[7, 8]] * len(found)


def test_a_root_outside_the_group_is_an_error_on_every_rank(seen: Any) -> None:
    found = seen("roots_outside_the_group")
    size = len(found)
    for each in found:
        assert each == [
            ("IndexError", f"rank {root} is outside the group, expected 0 to {size - 1}")
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


def test_group_ranks_are_not_global_ranks(seen: Any) -> None:
    found = seen("ranks_are_those_of_the_sub_group")
    size = len(found)
    if size > 1:
        assert found[0] == "TypeError", "a rank outside the group has no resource for it"
        fold = {2: 1, 3: 4}[size]
        for rank, each in enumerate(found[1:]):
            assert each == (rank, size - 1, list(range(1, size)), fold)


def test_a_program_with_every_collective(seen: Any) -> None:
    found = seen("a_program_with_every_collective")
    size = len(found)
    # Folding 2a + b - 1 over 1, 2, 3.
    fold = {1: 1, 2: 3, 3: 8}[size]
    assert found == [([0, 5], fold, rank, size, size) for rank in range(size)]


@pytest.mark.parametrize("combine", [None, 3, "add"])
def test_a_combine_is_callable(combine: Any) -> None:
    with pytest.raises(TypeError, match=r"combine is a .*, expected a callable such as"):
        TorchCiphertextAddAllReduceImplementation(combine)
