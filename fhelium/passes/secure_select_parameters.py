"""`secure-select-parameters`: the smallest secure parameters for a program of secret tensors."""

from dataclasses import dataclass
from functools import cache

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from fhelium.dialects.ckks.parameters import PARAMETERS
from fhelium.dialects.secure import TensorType
from fhelium.passes.ckks_select_parameters import CkksSelectParametersPass, highest_level
from fhelium.passes.named_pipelines import NAMED_PIPELINES
from fhelium.passes.pipeline import Pipeline
from fhelium.passes.secure_assign_layouts import SecureAssignLayoutsPass
from fhelium.passes.slot_count import packed_slots


@dataclass(frozen=True)
class SecureSelectParametersPass(ModulePass):
    """Choose `ckks.parameters` for a program of secret tensors, before it is packed.

    How many levels a program needs shows once it is packed and scheduled, and how it is packed
    depends on the slots, so on the ring. So a copy is packed and scheduled, with more slots until
    the ring that its levels need has as many: `secure-pack` and then `ckks-lazy` or `ckks-default`
    fit into the parameters.

    `precision` and `largest` are those of `ckks-select-parameters`, and `min-slots` is how many
    slots there have to be, for a batch of samples. Parameters that are there already stay, and a
    program without secret tensors is left alone.
    """

    name = "secure-select-parameters"

    precision: int | float = 20.0
    largest: int | float = 1.0
    min_slots: int | None = None

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if PARAMETERS in op.attributes or not _has_secret_tensors(op):
            return
        slots: int | None = None
        while True:
            depth, packed = _packed(ctx, op, slots)
            choose = CkksSelectParametersPass(
                depth, self.precision, self.largest, max(packed, self.min_slots or 1)
            )
            parameters = choose.parameters(op)
            if parameters.slots == slots:
                op.attributes[PARAMETERS] = parameters.to_attribute()
                return
            slots = parameters.slots


def _has_secret_tensors(module: ModuleOp) -> bool:
    return any(
        isinstance(argument.type, TensorType)
        for op in module.walk()
        for region in op.regions
        for block in region.blocks
        for argument in block.args
    )
