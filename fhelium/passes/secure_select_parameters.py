"""`secure-select-parameters`: the smallest secure parameters for a program of secret tensors."""

from dataclasses import dataclass
from itertools import takewhile

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.passes import ModulePass

from fhelium.analyses.magnitudes import largest_magnitude
from fhelium.analyses.slot_count import packed_slots
from fhelium.dialects.ckks.parameters import PARAMETERS
from fhelium.passes.ckks_select_parameters import CkksSelectParametersPass, highest_level
from fhelium.passes.option_checks import check_at_least, check_positive
from fhelium.passes.pipeline import Pipeline
from fhelium.passes.secure_assign_layouts import secret_values


@dataclass(frozen=True)
class SecureSelectParametersPass(ModulePass):
    """Choose `ckks.parameters` for a program of secret tensors, before it is packed.

    How many levels a program needs shows when it is packed and scheduled, and how it is packed
    depends on the ring, which depends on the levels. So copies are packed and scheduled, with more
    slots each time, until the ring that the levels need has as many. What `secure-pack` and
    `ckks-lazy` make of the program then fits.

    `precision` and `min-slots`, which makes room for a batch, are those of
    `ckks-select-parameters`. `largest` bounds the magnitude of inputs, and of what matrices, sums
    of elements and polynomials yield; where constants of the program make a value larger, or
    materials whose `secure.largest` is known, that counts. Give it where weights or inputs are
    larger than 1: a value that does not fit decrypts to something else. Parameters that are there
    already stay, and a program without secret tensors is left alone.
    """

    name = "secure-select-parameters"

    precision: int | float = 20.0
    largest: int | float = 1.0
    min_slots: int = 1

    def __post_init__(self) -> None:
        check_at_least(1, min_slots=self.min_slots)
        check_positive(precision=self.precision, largest=self.largest)

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if PARAMETERS in op.attributes or not _has_secrets(op):
            return
        largest = largest_magnitude(op, self.largest)
        while True:
            trial = op.clone()
            known = op.attributes.pop(PARAMETERS, None)
            for each in Pipeline.parse("secure-pack").passes:
                each.apply(ctx, trial)
            # Without them, so that levels are what the program needs.
            trial.attributes.pop(PARAMETERS, None)
            for each in takewhile(
                lambda each: not isinstance(each, CkksSelectParametersPass),
                Pipeline.parse("ckks-lazy").passes,
            ):
                each.apply(ctx, trial)
            CkksSelectParametersPass(
                depth=highest_level(trial),
                precision=self.precision,
                largest=largest,
                min_slots=max(self.min_slots, packed_slots(trial) or 1),
            ).apply(ctx, op)
            if op.attributes[PARAMETERS] == known:
                return


def _has_secrets(module: ModuleOp) -> bool:
    functions = (op for op in module.walk() if isinstance(op, FuncOp))
    return any(True for function in functions for _ in secret_values(function))
