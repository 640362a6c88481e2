"""How a pass writes fields of states that it has found onto a function."""

from collections.abc import Mapping

from xdsl.dialects.func import FuncOp
from xdsl.ir import BlockArgument, SSAValue
from xdsl.rewriter import Rewriter

from fhelium.analyses.rank_dependence import yielded
from fhelium.dialects.ckks.types import CiphertextType, PlaintextType, StateType
from fhelium.dialects.distributed import PendingType, StartOp
from fhelium.dialects.rns.types import Form


def ciphertext_with(
    type: CiphertextType,
    *,
    level: int | None = None,
    scale: float | None = None,
    components: int | None = None,
    form: Form | None = None,
) -> CiphertextType:
    """Return a type with some fields set and the others as they are."""
    return CiphertextType(
        type.level if level is None else level,
        type.scale if scale is None else scale,
        type.components if components is None else components,
        type.form if form is None else form,
    )


def without_level(type: CiphertextType) -> CiphertextType:
    """Return a type whose level, and the scale that belongs to it, are not assigned."""
    return CiphertextType(components=type.components, form=type.form)


def plaintext_with(
    type: PlaintextType,
    *,
    level: int | None = None,
    scale: float | None = None,
    form: Form | None = None,
) -> PlaintextType:
    """Return a type with some fields set and the others as they are."""
    return PlaintextType(
        type.level if level is None else level,
        type.scale if scale is None else scale,
        type.form if form is None else form,
    )


def assign_types(function: FuncOp, types: Mapping[SSAValue, StateType]) -> None:
    """Give values of a function new types, and the function the signature that follows.

    What is pending has the types of what it will be.

    The keys of `types` are dead afterwards: a value of another type is another object.
    """
    for value, type in types.items():
        if value.type == type:
            continue
        replacement = Rewriter.replace_value_with_new_type(value, type)
        if isinstance(value, BlockArgument) and isinstance(replacement, BlockArgument):
            replacement.location = value.location
    for start in [op for op in function.walk() if isinstance(op, StartOp)]:
        pending = PendingType(yielded(start.body.block).operand_types)
        if start.result.type != pending:
            Rewriter.replace_value_with_new_type(start.result, pending)
    function.update_function_type()
