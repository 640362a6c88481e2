"""The ops of the `dist` dialect on torch.distributed.

Before payloads move, ranks compare what they are about to send, and before a result is returned,
whether every rank has one. A difference or a failure raises on every rank: no wrong sum, no rank
that waits for another.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from zlib import crc32

import torch
import torch.distributed
from xdsl.ir import Operation

from fhelium.backend.invocation import OperationInvocation
from fhelium.backend.process_group import ProcessGroupExecutionResource
from fhelium.backend.registry import TensorRegion
from fhelium.backend.resources import (
    PARAMETERS_RESOURCE_KIND,
    PROCESS_GROUP_RESOURCE_KIND,
    BoundResource,
    ResourceRequirement,
)
from fhelium.dialects import distributed
from fhelium.dialects.ckks.parameters import PARAMETERS
from fhelium.scheme.parameters import Parameters

Tensor = torch.Tensor
DTYPES = sorted(
    {value for value in vars(torch).values() if isinstance(value, torch.dtype)}, key=str
)
SHOWN_DIMENSIONS = 8
"""Ranks send each other so many dimensions in full; a hash stands for all of them."""


class _OperandResourceImplementation:
    """Base of the implementations that need their resource operands and nothing else."""

    name: str

    def resource_requirements(
        self, invocation: OperationInvocation
    ) -> tuple[ResourceRequirement, ...]:
        """The group is an operand, so nothing else is needed."""
        return ()

    def _group(
        self, resources: tuple[BoundResource, ...], in_place: bool
    ) -> ProcessGroupExecutionResource:
        if in_place:
            raise ValueError(f"{self.name} does not run in place: collectives are functional")
        if len(resources) != 1 or resources[0].kind != PROCESS_GROUP_RESOURCE_KIND:
            kinds = ", ".join(repr(resource.kind) for resource in resources) or "none"
            raise ValueError(
                f"{self.name} got resources of kind {kinds}, expected one "
                f"{PROCESS_GROUP_RESOURCE_KIND!r}"
            )
        group = resources[0].value
        assert isinstance(group, ProcessGroupExecutionResource)
        return group


@dataclass(frozen=True)
class TorchProcessGroupQueryImplementation(_OperandResourceImplementation):
    """Read group rank and size as scalar index Tensors."""

    name: str = "torch-process-group-query"
    supports_in_place: bool = False
    operation_types: tuple[type[Operation], ...] = (distributed.RankOp, distributed.GroupSizeOp)

    def execute(
        self,
        invocation: OperationInvocation,
        inputs: tuple[Tensor, ...],
        resources: tuple[BoundResource, ...],
        *,
        in_place: bool,
    ) -> tuple[Tensor, ...]:
        """Return a scalar int64 tensor."""
        group = self._group(resources, in_place)
        value = group.rank if invocation.operation_type is distributed.RankOp else group.size
        return (torch.tensor(value, dtype=torch.int64),)


@dataclass(frozen=True)
class TorchBroadcastImplementation(_OperandResourceImplementation):
    """Functionally broadcast one equal-layout Tensor from a group rank."""

    name: str = "torch-broadcast"
    supports_in_place: bool = False
    operation_types: tuple[type[Operation], ...] = (distributed.BroadcastOp,)

    def execute(
        self,
        invocation: OperationInvocation,
        inputs: tuple[Tensor, ...],
        resources: tuple[BoundResource, ...],
        *,
        in_place: bool,
    ) -> tuple[Tensor, ...]:
        """Return a copy of the root's tensor.

        Raises `IndexError` for a root outside the group, and `ValueError` when dtype or shape
        differs between ranks.
        """
        group = self._group(resources, in_place)
        (value,) = inputs
        root = invocation.attributes["root"]
        assert isinstance(root, int)
        source = group.global_rank(root)
        _require_equal_layouts(self.name, value, group, f" from rank {root}")
        result = value.clone(memory_format=torch.contiguous_format)
        torch.distributed.broadcast(result, source, group=group.group)
        return (result,)


@dataclass(frozen=True)
class TorchGenericAllReduceImplementation(_OperandResourceImplementation):
    """Fold all rank-local payloads with the operation's combine region."""

    name: str = "torch-generic-all-reduce"
    supports_in_place: bool = False
    operation_types: tuple[type[Operation], ...] = (distributed.AllReduceOp,)

    def execute(
        self,
        invocation: OperationInvocation,
        inputs: tuple[Tensor, ...],
        resources: tuple[BoundResource, ...],
        *,
        in_place: bool,
    ) -> tuple[Tensor, ...]:
        """Raise `RuntimeError`: without its region the op has no meaning."""
        raise RuntimeError(f"{self.name} needs its combine region: call execute_regions")

    def execute_regions(
        self,
        invocation: OperationInvocation,
        inputs: tuple[Tensor, ...],
        resources: tuple[BoundResource, ...],
        regions: tuple[TensorRegion, ...],
        *,
        in_place: bool,
    ) -> tuple[Tensor, ...]:
        """Gather, then fold from the left in group-rank order: every rank holds the same bits.

        Raises `ValueError` unless there is one region, or when dtype or shape differs between
        ranks, and `RuntimeError` on every rank when the region raises on one.
        """
        group = self._group(resources, in_place)
        if len(regions) != 1:
            raise ValueError(
                f"{self.name} got {len(regions)} regions, expected one to combine with"
            )
        (value,) = inputs
        return (_fold(self.name, value, group, regions[0]),)


@dataclass(frozen=True)
class TorchCiphertextAddAllReduceImplementation(_OperandResourceImplementation):
    """Reduce ciphertext payloads with an injected Backend Tensor addition.

    Raises `TypeError` when `combine` is not callable.
    """

    combine: Callable[[Tensor, Tensor, Tensor], Tensor] = field(repr=False, compare=False)
    name: str = "torch-ciphertext-add-all-reduce"
    supports_in_place: bool = False
    operation_types: tuple[type[Operation], ...] = (distributed.AllReduceAddCiphertextOp,)

    def __post_init__(self) -> None:
        if not callable(self.combine):
            raise TypeError(
                f"combine is a {type(self.combine).__name__}, expected a callable such as "
                "prepare_ciphertext_add_combine returns"
            )

    def resource_requirements(
        self, invocation: OperationInvocation
    ) -> tuple[ResourceRequirement, ...]:
        """A ciphertext that is not lowered comes without moduli: those of the program are used."""
        if invocation.operand_count == 2:
            return ()
        return (ResourceRequirement(PARAMETERS, PARAMETERS_RESOURCE_KIND),)

    def execute(
        self,
        invocation: OperationInvocation,
        inputs: tuple[Tensor, ...],
        resources: tuple[BoundResource, ...],
        *,
        in_place: bool,
    ) -> tuple[Tensor, ...]:
        """Add the payloads of all ranks modulo the primes: `inputs` are value and moduli.

        Raises `ValueError` when dtype or shape differs between ranks, and `RuntimeError` on every
        rank when the addition raises on one.
        """
        group = self._group(resources[:1], in_place)
        value, moduli = inputs if len(inputs) == 2 else (*inputs, _moduli(invocation, resources))
        return (_fold(self.name, value, group, lambda a, b: (self.combine(a, b, moduli),)),)


def distributed_operation_contributions(
    *, ciphertext_add: Callable[[Tensor, Tensor, Tensor], Tensor] | None = None
) -> tuple[
    TorchProcessGroupQueryImplementation
    | TorchBroadcastImplementation
    | TorchGenericAllReduceImplementation
    | TorchCiphertextAddAllReduceImplementation,
    ...,
]:
    """Return distributed implementations for one execution owner.

    The specialized ciphertext-add implementation is contributed only when an execution owner
    supplies addition through its existing Tensor Backend. A Compile pass may instead lower the
    specialized operation to generic all-reduce with a visible combine region.
    """
    generic = (
        TorchProcessGroupQueryImplementation(),
        TorchBroadcastImplementation(),
        TorchGenericAllReduceImplementation(),
    )
    if ciphertext_add is None:
        return generic
    return (*generic, TorchCiphertextAddAllReduceImplementation(ciphertext_add))


def _moduli(invocation: OperationInvocation, resources: tuple[BoundResource, ...]) -> Tensor:
    """Return the primes of a ciphertext's level, from the parameters that were asked for."""
    parameters, limbs = resources[-1].value, invocation.operand_prime_ids[0]
    if not isinstance(parameters, Parameters) or limbs is None:
        raise ValueError(
            "the ciphertext all-reduce got no moduli, expected them as its second input, or the "
            "program's parameters and a known level"
        )
    return parameters.ring.moduli(limbs, torch.device("cpu"))


def _fold(
    name: str, value: Tensor, group: ProcessGroupExecutionResource, combine: TensorRegion
) -> Tensor:
    _require_equal_layouts(name, value, group)
    payload = value.contiguous()
    gathered = [torch.empty_like(payload) for _ in range(group.size)]
    torch.distributed.all_gather(gathered, payload, group=group.group)
    failure: Exception | None = None
    total = gathered[0]
    try:
        for operand in gathered[1:]:
            total = _combined(name, combine(total, operand), payload)
    except Exception as error:
        failure = error
    _require_success(name, failure, value.device, group)
    # A combine region may hand back a value from around it, even the payload itself.
    shared = total.untyped_storage().data_ptr() == value.untyped_storage().data_ptr()
    return total.clone() if shared else total


def _combined(name: str, result: tuple[Tensor, ...], payload: Tensor) -> Tensor:
    if len(result) != 1:
        raise ValueError(f"{name} combined two payloads to {len(result)} values, expected one")
    (combined,) = result
    if combined.shape != payload.shape or combined.dtype != payload.dtype:
        raise ValueError(
            f"{name} combined two {_layout(payload)} to a {_layout(combined)}, expected the same"
        )
    return combined


def _layout(value: Tensor) -> str:
    return f"{value.dtype} {tuple(value.shape)}"


def _require_equal_layouts(
    name: str, value: Tensor, group: ProcessGroupExecutionResource, detail: str = ""
) -> None:
    """Raise on every rank when one issues another collective, or has another dtype or shape."""
    row = [DTYPES.index(value.dtype), value.ndim, *value.shape[:SHOWN_DIMENSIONS]]
    row += [0] * (2 + SHOWN_DIMENSIONS - len(row)) + [hash(tuple(value.shape))]
    collective = crc32(f"{name}{detail}".encode())
    rows = _gather_integers([collective, *row], value.device, group)
    others = [rank for rank, (other, *_) in enumerate(rows) if other != collective]
    if others:
        ranks = ", ".join(str(rank) for rank in others)
        raise ValueError(
            f"{name}{detail} met another collective on rank {ranks}, expected the same one on "
            "every rank: it depends on the rank, or on data that differs between ranks"
        )
    if all(other == rows[0] for other in rows):
        return
    described = [
        f"rank {rank} has {DTYPES[dtype]} {tuple(shape[: min(ndim, SHOWN_DIMENSIONS)])}"
        for rank, (_, dtype, ndim, *shape) in enumerate(rows)
    ]
    raise ValueError(
        f"{name} got payloads of several layouts, expected one on every rank: "
        f"{'; '.join(described)}"
    )


def _require_success(
    name: str,
    failure: Exception | None,
    device: torch.device,
    group: ProcessGroupExecutionResource,
) -> None:
    """Raise on every rank when `failure` is set on one."""
    flags = _gather_integers([failure is not None], device, group)
    failed = [rank for rank, (flag,) in enumerate(flags) if flag]
    if failed:
        ranks = ", ".join(str(rank) for rank in failed)
        message = f"{name} failed to combine payloads on rank {ranks}"
        raise RuntimeError(message if failure is None else f"{message}: {failure}") from failure


def _gather_integers(
    row: list[int], device: torch.device, group: ProcessGroupExecutionResource
) -> list[list[int]]:
    mine = torch.tensor(row, dtype=torch.int64, device=device)
    rows = [torch.empty_like(mine) for _ in range(group.size)]
    torch.distributed.all_gather(rows, mine, group=group.group)
    return [other.tolist() for other in rows]
