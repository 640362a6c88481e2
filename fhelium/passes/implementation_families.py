"""Names of the implementations that come with FHElium, by family: where they compute.

Passes know nothing of live tensors, so they have the names alone; a test holds this table against
the backend's registry.
"""

from fhelium.dialects import ckks, distributed, memory, rns

FAMILIES: dict[str, dict[str, str]] = {
    "torch": {
        op.name: f"torch-{op.name.replace('.', '-').replace('_', '-')}"
        for op in (*ckks.OPERATIONS, *rns.OPERATIONS)
    }
    | {
        distributed.RankOp.name: "torch-process-group-query",
        distributed.GroupSizeOp.name: "torch-process-group-query",
        distributed.BroadcastOp.name: "torch-broadcast",
        distributed.AllReduceOp.name: "torch-generic-all-reduce",
        distributed.AllReduceAddCiphertextOp.name: "torch-ciphertext-add-all-reduce",
        memory.TransferOp.name: "torch-memory-transfer",
    },
    "cpu": {
        op.name: f"cpu-{op.name.replace('.', '-').replace('_', '-')}"
        for op in rns.OPERATIONS
        # Those move no words that a kernel could move faster.
        if op not in (rns.ModuliOp, rns.ComponentsOp, rns.ProjectOp)
    },
}
