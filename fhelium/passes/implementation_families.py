"""Names of the implementations that come with FHElium, by family: where they compute.

Passes know nothing of live tensors, so they have the names alone; a test holds this table against
the backend's registry.
"""

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Operation

from fhelium.dialects import ckks, distributed, memory, rns
from fhelium.dialects.core import IMPLEMENTATION
from fhelium.dialects.secure import packing

FAMILIES: dict[str, dict[str, str]] = {
    "torch": {
        op.name: f"torch-{op.name.replace('.', '-').replace('_', '-')}"
        for op in (*ckks.OPERATIONS, *rns.OPERATIONS, rns.FusedOp, *packing.OPERATIONS)
    }
    | {
        distributed.RankOp.name: "torch-process-group-query",
        distributed.GroupSizeOp.name: "torch-process-group-query",
        distributed.BroadcastOp.name: "torch-broadcast",
        distributed.AllReduceOp.name: "torch-generic-all-reduce",
        # No overflow: primes are below 2^50, so it takes more than 8192 ranks.
        distributed.AllReduceAddCiphertextOp.name: "torch-ciphertext-sum-all-reduce",
        distributed.AllReduceAddCiphertextsOp.name: "torch-ciphertext-sums-all-reduce",
        distributed.ReduceOp.name: "torch-reduce",
        distributed.ReduceScatterOp.name: "torch-reduce-scatter",
        distributed.AllGatherOp.name: "torch-all-gather",
        distributed.GatherOp.name: "torch-gather",
        distributed.ScatterOp.name: "torch-scatter",
        distributed.AllToAllOp.name: "torch-all-to-all",
        distributed.SendOp.name: "torch-send",
        distributed.RecvOp.name: "torch-recv",
        distributed.BarrierOp.name: "torch-barrier",
        distributed.SplitOp.name: "torch-split-group",
        memory.TransferOp.name: "torch-memory-transfer",
    },
    "cpu": {
        op.name: f"cpu-{op.name.replace('.', '-').replace('_', '-')}"
        for op in (*ckks.OPERATIONS, *rns.OPERATIONS, rns.FusedOp)
        # Those move no words that a kernel could move faster, or are the client's.
        if op not in (ckks.ModSwitchOp, rns.ModuliOp, rns.ComponentsOp, rns.ProjectOp)
        and op not in (ckks.EncodeOp, ckks.EncryptOp, ckks.DecryptOp, ckks.DecodeOp)
    },
}

OWN_NAMES = frozenset(name for family in FAMILIES.values() for name in family.values())
"""Names of the implementations of all families."""

IN_PLACE = frozenset(
    FAMILIES["cpu"][op.name]
    for op in (
        *(ckks.AddOp, ckks.SubOp, ckks.NegateOp, ckks.AddPlainOp, ckks.SubPlainOp),
        *(ckks.MulPlainOp, ckks.AddScalarOp, ckks.MulScalarOp, ckks.MulIntegerOp),
        *(ckks.RelinearizeOp, ckks.RotateOp, ckks.ConjugateOp),
        *(ckks.ToEvaluationOp, ckks.ToCoefficientOp),
        *(rns.AddOp, rns.SubOp, rns.NegateOp, rns.MulOp, rns.AddConstantOp, rns.MulConstantOp),
        *(rns.NttOp, rns.InttOp),
    )
)
"""Names of the implementations whose result may overwrite the first operand."""


def is_of_no_family(operation: Operation) -> bool:
    """Return whether an op records an implementation that does not come with FHElium."""
    recorded = operation.attributes.get(IMPLEMENTATION)
    return isinstance(recorded, StringAttr) and recorded.data not in OWN_NAMES
