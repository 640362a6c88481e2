"""The ops of the `dist` dialect on torch.distributed.

Collectives are functional: no operand is written to, and no result is an alias of one. Ranks agree
before payloads move and before results are returned, so that they fail together (`agreement.py`).
"""

from collections.abc import Callable, Mapping

import torch
from xdsl.ir import Operation

from fhelium.backend.torch_family.collectives import (
    groups,
    movement,
    point_to_point,
    reductions,
)
from fhelium.backend.torch_family.collectives.ciphertext_sums import (
    TorchCiphertextAddAllReduceImplementation,
    TorchCiphertextFoldAllReduceImplementation,
    TorchCiphertextSumAllReduceImplementation,
    TorchCiphertextSumsAllReduceImplementation,
)
from fhelium.backend.torch_family.collectives.groups import TorchProcessGroupQueryImplementation
from fhelium.backend.torch_family.collectives.implementation import (
    Kernel,
    TorchCollectiveImplementation,
    TorchReductionImplementation,
)
from fhelium.backend.torch_family.collectives.movement import TorchBroadcastImplementation
from fhelium.backend.torch_family.collectives.reductions import TorchGenericAllReduceImplementation
from fhelium.dialects import distributed
from fhelium.passes.implementation_families import FAMILIES

Tensor = torch.Tensor

KERNELS: dict[type[Operation], Kernel] = {
    distributed.AllGatherOp: movement.all_gather,
    distributed.GatherOp: movement.gather,
    distributed.ScatterOp: movement.scatter,
    distributed.AllToAllOp: movement.all_to_all,
    distributed.SendOp: point_to_point.send,
    distributed.RecvOp: point_to_point.recv,
    distributed.BarrierOp: groups.barrier,
    distributed.SplitOp: groups.split,
}
REDUCTIONS: dict[type[Operation], Kernel] = {
    distributed.ReduceOp: reductions.reduce,
    distributed.ReduceScatterOp: reductions.reduce_scatter,
}


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


def collective_contributions(
    ciphertext_add: Callable[[Tensor, Tensor, Tensor], Tensor],
) -> tuple[
    TorchCollectiveImplementation
    | TorchCiphertextSumAllReduceImplementation
    | TorchCiphertextSumsAllReduceImplementation
    | TorchCiphertextFoldAllReduceImplementation,
    ...,
]:
    """Return what `distributed_operation_contributions()` leaves out of the `dist` dialect.

    Ciphertexts are summed as integers, unless the program names the fold with `ciphertext_add`.
    """
    kernels = implementations_of(KERNELS, TorchCollectiveImplementation)
    reductions = implementations_of(REDUCTIONS, TorchReductionImplementation)
    return (
        TorchCiphertextSumAllReduceImplementation(),
        TorchCiphertextSumsAllReduceImplementation(),
        TorchCiphertextFoldAllReduceImplementation(ciphertext_add),
        *kernels,
        *reductions,
    )


def implementations_of(
    kernels: Mapping[type[Operation], Kernel], kind: type[TorchCollectiveImplementation]
) -> list[TorchCollectiveImplementation]:
    """Return an implementation a kernel. Raises `LookupError` for an op whose one has no name."""
    names = FAMILIES["torch"]
    if unnamed := [op.name for op in kernels if op.name not in names]:
        raise LookupError(
            f"found a kernel of {', '.join(unnamed)} without a name, expected one: give its "
            "implementation a name in FAMILIES of fhelium/passes/implementation_families.py"
        )
    return [kind(names[op.name], (op,), kernel) for op, kernel in kernels.items()]


__all__ = [
    "TorchBroadcastImplementation",
    "TorchCiphertextAddAllReduceImplementation",
    "TorchCiphertextFoldAllReduceImplementation",
    "TorchCiphertextSumAllReduceImplementation",
    "TorchCiphertextSumsAllReduceImplementation",
    "TorchCollectiveImplementation",
    "TorchGenericAllReduceImplementation",
    "TorchProcessGroupQueryImplementation",
    "TorchReductionImplementation",
    "collective_contributions",
    "distributed_operation_contributions",
    "implementations_of",
]
