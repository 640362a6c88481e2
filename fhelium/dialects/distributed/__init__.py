"""The `dist` dialect: what one rank says in a program that every rank of a group runs (SPMD).

Ranks are group ranks. Collectives declare no memory effect, so nothing removes, duplicates or
reorders them.

A payload is data: ciphertexts, plaintexts, residue polynomials, moduli, tensors of them, tensors of
the numbers that torch has, and numbers of up to 64 bits.
Switching keys are public, and `broadcast`, `send` and `recv` carry them as such; every other
collective carries a key's residues as a tensor, `tensor<?x2x?x?xi64>`. The client's keys, groups
and devices are never sent.
"""

from collections.abc import Sequence

from xdsl.ir import Dialect, Operation

from fhelium.dialects.distributed.asynchronous import PendingType, StartOp, WaitOp
from fhelium.dialects.distributed.collective import CollectiveOp
from fhelium.dialects.distributed.combined import AllReduceAddCiphertextsOp
from fhelium.dialects.distributed.movement import (
    AllGatherOp,
    AllToAllOp,
    AxisOp,
    BroadcastOp,
    GatherOp,
    ScatterOp,
)
from fhelium.dialects.distributed.point_to_point import (
    PointToPointOp,
    RecvOp,
    SendOp,
)
from fhelium.dialects.distributed.queries import (
    BarrierOp,
    GroupQueryOp,
    GroupSizeOp,
    RankOp,
    SplitOp,
)
from fhelium.dialects.distributed.reductions import (
    ELEMENTWISE,
    AllReduceAddCiphertextOp,
    AllReduceOp,
    CombiningOp,
    ReduceOp,
    ReduceScatterOp,
    YieldOp,
    combine_region,
)
from fhelium.dialects.distributed.types import BATCH_AXIS, LIMB_AXIS, GroupType

COLLECTIVES: tuple[type[CollectiveOp], ...] = (
    BroadcastOp,
    AllReduceOp,
    AllReduceAddCiphertextOp,
    AllReduceAddCiphertextsOp,
    ReduceOp,
    ReduceScatterOp,
    AllGatherOp,
    GatherOp,
    ScatterOp,
    AllToAllOp,
    SendOp,
    RecvOp,
    BarrierOp,
    SplitOp,
)
"""The ops in which ranks talk to each other."""

OPERATIONS: Sequence[type[Operation]] = [
    *(RankOp, GroupSizeOp, *COLLECTIVES),
    *(StartOp, WaitOp, YieldOp),
]

Dist = Dialect("dist", list(OPERATIONS), [GroupType, PendingType])

__all__ = [
    "BATCH_AXIS",
    "COLLECTIVES",
    "ELEMENTWISE",
    "LIMB_AXIS",
    "OPERATIONS",
    "AllGatherOp",
    "AllReduceAddCiphertextOp",
    "AllReduceAddCiphertextsOp",
    "AllReduceOp",
    "AllToAllOp",
    "AxisOp",
    "BarrierOp",
    "BroadcastOp",
    "CollectiveOp",
    "CombiningOp",
    "Dist",
    "GatherOp",
    "GroupQueryOp",
    "GroupSizeOp",
    "GroupType",
    "PendingType",
    "PointToPointOp",
    "RankOp",
    "RecvOp",
    "ReduceOp",
    "ReduceScatterOp",
    "ScatterOp",
    "SendOp",
    "SplitOp",
    "StartOp",
    "WaitOp",
    "YieldOp",
    "combine_region",
]
