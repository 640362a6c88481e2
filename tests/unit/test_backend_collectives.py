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
    default_registry,
)
from fhelium.dialects import distributed

Tensor = torch.Tensor
Group = ProcessGroupExecutionResource
Check = Callable[[Group], Any]
GENERIC = TorchGenericAllReduceImplementation()
BROADCAST = TorchBroadcastImplementation()


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


def queries(group: Group) -> Any:
    rank, size = query(group, distributed.RankOp), query(group, distributed.GroupSizeOp)
    assert rank.dtype == size.dtype == torch.int64
    assert rank.shape == size.shape == ()
    assert (group.rank, group.size) == (rank.item(), size.item())
    assert [group.global_rank(r) for r in range(group.size)] == list(range(group.size))
    outside = [message(lambda r=r: group.global_rank(r)) for r in (-1, group.size)]
    return rank.item(), size.item(), outside


def broadcasts(group: Group) -> Any:
    seen: list[list[int]] = []
    for root in range(group.size):
        value = torch.tensor([group.rank, 10 * group.rank + root])
        result = broadcast(group, value, root)
        assert value.tolist() == [group.rank, 10 * group.rank + root]
        assert result.untyped_storage().data_ptr() != value.untyped_storage().data_ptr()
        seen.append(result.tolist())
    return seen


def reductions_fold_in_rank_order(group: Group) -> Any:
    value = torch.tensor([group.rank + 1])
    result = reduce(group, value, double_and_add)
    special = reduce_ciphertext(group, value, lambda a, b, moduli: 2 * a + b)
    assert value.tolist() == [group.rank + 1]
    for each in (result, special):
        assert each.untyped_storage().data_ptr() != value.untyped_storage().data_ptr()
    assert torch.equal(result, special)
    return result.item()


def combines_receive_the_moduli(group: Group) -> Any:
    def combine(a: Tensor, b: Tensor, moduli: Tensor) -> Tensor:
        assert moduli.shape == (2, 1)
        return (a + b) % moduli

    value = torch.full((2, 2, 4), 90)
    return reduce_ciphertext(group, value, combine)[1, :, 3].tolist()


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


def what_a_region_captures(group: Group) -> Any:
    """A combine that returns the payload itself must not make the result an alias of it."""
    value = torch.tensor([7, 8])
    result = reduce(group, value, lambda a, b: (value,))
    view = reduce(group, value, lambda a, b: (value[:].view(2),))
    kept = reduce(group, value, lambda a, b: (b,))
    for each in (result, view, kept):
        each += 1
    return value.tolist()


def ranks_are_those_of_the_sub_group(world: Group) -> Any:
    """In a group of all ranks but the first."""
    if world.size == 1:
        return None
    members = list(range(1, world.size))
    raw: Any = torch.distributed.new_group(members)
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
  %weights = fhelium.material @weights : !TWO
  %captured = dist.broadcast %weights from 0 in %world : !TWO
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


CHECKS: tuple[Check, ...] = (
    queries,
    broadcasts,
    reductions_fold_in_rank_order,
    combines_receive_the_moduli,
    payloads_of_any_layout,
    what_a_region_captures,
    ranks_are_those_of_the_sub_group,
    a_program_with_every_collective,
)


def run_checks(checks: tuple[Check, ...]) -> dict[str, Any]:
    """Run checks on this rank, in the default group."""
    assert "fhelium.backend" in sys.modules, "the server of these processes has imported it"
    assert default_registry.cache_info().currsize == 0, "importing assembles no registry"
    group = ProcessGroupExecutionResource()
    return {check.__name__: check(group) for check in checks}


@pytest.fixture(scope="module", params=[1, 2, 3], ids=lambda ranks: f"{ranks}-ranks")
def seen(request: pytest.FixtureRequest, on_ranks: OnRanks) -> Any:
    """Return what each rank saw in a check, by the name of the check."""
    ranks = on_ranks(run_checks, request.param, CHECKS)

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
