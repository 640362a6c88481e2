"""`convert-secure-to-ckks`: write arithmetic on packed tensors as arithmetic on ciphertexts."""

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    FunctionType,
    IntegerAttr,
    ModuleOp,
    UnrealizedConversionCastOp,
    i64,
)
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from fhelium.analyses.slot_count import ring_slots
from fhelium.dialects import ckks, secure
from fhelium.dialects.ckks.parameters import PARAMETERS
from fhelium.dialects.ckks.types import CiphertextType
from fhelium.dialects.core import has_assignment
from fhelium.dialects.secure import LayoutAttr, TensorType
from fhelium.dialects.secure.layouts import PACKED_TYPE, SLOTS
from fhelium.passes.failure import PassFailure
from fhelium.passes.secure_lowerings import RULES, Emission

COST = "secure.cost"
"""Function attribute: how many of the ops that cost the most a lowered function has."""

LOWERED_BEFORE: dict[type[Operation], str] = {
    secure.PolynomialOp: "secure-expand-polynomials",
    secure.Conv2dOp: "secure-lower-convolutions",
}


@dataclass(frozen=True)
class ConvertSecureToCkksPass(ModulePass):
    """Lower ops on packed secret tensors to ckks ops whose types have no state yet.

    Each tensor becomes a ciphertext. Products with matrices go by diagonals with baby steps, which
    share a decomposition, and giant steps; diagonals that are zero are left out. Sums go by
    rotations with doubling steps. Public operands are laid out and encoded in the program, from
    what they depend on. Rotation keys are named at the top of the function.

    Arguments and results keep their tensor type, with its layout, in the attribute `secure.type`:
    it tells the client how to pack and unpack. The function's attribute `secure.cost` counts
    rotations, products (of ciphertexts), the key switches of both, decompositions, and products
    with plaintexts.
    """

    name = "convert-secure-to-ckks"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        secrets = [inner for inner in op.walk() if any(map(_is_secret, _types(inner)))]
        for inner in secrets:
            _check(inner)
        layouts = [layout for inner in secrets for layout in _layouts(inner)]
        if not layouts:
            return
        slots, expected = layouts[0].slots, ring_slots(op)
        if expected is not None and expected != slots:
            raise PassFailure(
                op,
                f"found layouts of {slots} slots, expected {expected}, half the "
                f"ring degree of {PARAMETERS}: assign layouts with the parameters given",
            )
        for inner in secrets:
            if any(layout.slots != slots for layout in _layouts(inner)):
                raise PassFailure(
                    inner,
                    f"found layouts of other than {slots} slots, expected one number in a module: "
                    "all ciphertexts are of one ring",
                )
        for inner in secrets:
            if isinstance(inner, FuncOp):
                _lower(inner)
        op.attributes[SLOTS] = IntegerAttr(slots, i64)


def _is_secret(type: Attribute) -> bool:
    return isinstance(type, TensorType)


def _types(operation: Operation) -> list[Attribute]:
    """Types of operands, results and block arguments, and of what a function takes and gives."""
    types = [value.type for value in (*operation.operands, *operation.results)]
    types += [arg.type for region in operation.regions for b in region.blocks for arg in b.args]
    if isinstance(operation, FuncOp):
        types += [*operation.function_type.inputs, *operation.function_type.outputs]
    return types


def _layouts(operation: Operation) -> list[LayoutAttr]:
    layouts = [type.layout for type in _types(operation) if isinstance(type, TensorType)]
    return [layout for layout in layouts if isinstance(layout, LayoutAttr)]


def _check(operation: Operation) -> None:
    """Refuse what can't be lowered, before anything is changed."""
    if isinstance(operation, FuncOp) and (
        operation.is_declaration or len(operation.body.blocks) != 1
    ):
        raise PassFailure(
            operation, f"found @{operation.sym_name.data} without a body of one block, expected one"
        )
    for found in _types(operation):
        if isinstance(found, TensorType) and not isinstance(found.layout, LayoutAttr):
            raise PassFailure(
                operation,
                f"found {operation.name} with a value of type {found}, expected a layout: run "
                "secure-assign-layouts before",
            )
    if type(operation) in LOWERED_BEFORE:
        raise PassFailure(
            operation,
            f"found {operation.name}, expected it lowered: run {LOWERED_BEFORE[type(operation)]} "
            "before",
        )
    if type(operation) not in RULES and not isinstance(operation, FuncOp | ReturnOp):
        raise PassFailure(
            operation,
            f"found {operation.name} on secret tensors, expected ops of the secure dialect: inline "
            "calls and unroll loops before",
        )
    if has_assignment(operation):
        raise PassFailure(
            operation,
            f"found {operation.name} with an implementation or a device assigned, expected none: "
            "an op on packed tensors becomes several, so drop the attribute",
        )


def _lower(function: FuncOp) -> None:
    block = function.body.block
    last = block.last_op
    assert isinstance(last, ReturnOp)
    inputs = [argument.type for argument in block.args]
    outputs = [operand.type for operand in last.operands]
    ops = list(block.ops)
    emit = Emission(function, ops[0])
    casts: dict[SSAValue, Operation] = {}
    ciphertexts: dict[SSAValue, SSAValue] = {}
    for argument in block.args:
        if _is_secret(argument.type):
            # Until all ops are lowered, the argument has both types.
            cast = UnrealizedConversionCastOp(
                operands=[[argument]], result_types=[[CiphertextType()]]
            )
            casts[argument], ciphertexts[argument] = cast, emit(cast)
    lowered: list[Operation] = []
    for op in ops:
        if (rule := RULES.get(type(op))) is not None:
            emit.replaced = op
            operands = [ciphertexts[value] for value in op.operands if value in ciphertexts]
            result = rule(op, operands, emit)
            ciphertexts[op.results[0]] = result
            if result.name_hint is None:
                result.name_hint = op.results[0].name_hint
            lowered.append(op)
    last.operands = [ciphertexts.get(value, value) for value in last.operands]
    for op in reversed(lowered):
        Rewriter.erase_op(op)
    for argument in list(block.args):
        if _is_secret(argument.type):
            ciphertext = block.insert_arg(CiphertextType(), argument.index)
            ciphertext.location, ciphertext.name_hint = argument.location, argument.name_hint
            casts[argument].results[0].replace_all_uses_with(ciphertext)
            Rewriter.erase_op(casts[argument])
            block.erase_arg(argument)
    _convert_signature(function, inputs, outputs)
    function.attributes[COST] = cost_of(function)


def _convert_signature(function: FuncOp, inputs: list[Attribute], outputs: list[Attribute]) -> None:
    function.arg_attrs = _with_packed_types(function.arg_attrs, inputs)
    function.res_attrs = _with_packed_types(function.res_attrs, outputs)
    function.function_type = FunctionType.from_lists(
        [CiphertextType() if _is_secret(type) else type for type in inputs],
        [CiphertextType() if _is_secret(type) else type for type in outputs],
    )


def _with_packed_types(
    attributes: ArrayAttr[DictionaryAttr] | None, types: list[Attribute]
) -> ArrayAttr[DictionaryAttr] | None:
    if not any(map(_is_secret, types)):
        return attributes
    old = [entry.data for entry in attributes] if attributes is not None else [{}] * len(types)
    return ArrayAttr(
        DictionaryAttr({**entry, PACKED_TYPE: type} if _is_secret(type) else dict(entry))
        for entry, type in zip(old, types, strict=True)
    )


def cost_of(function: FuncOp) -> DictionaryAttr:
    """Count what a function on ciphertexts costs most."""
    rotations = decompositions = products = plain_products = 0
    for op in function.walk():
        match op:
            case ckks.RotateOp():
                rotations, decompositions = rotations + 1, decompositions + 1
            case ckks.RotateManyOp():
                rotations, decompositions = rotations + len(op.keys), decompositions + 1
            case ckks.MulOp() | ckks.SquareOp():
                products, decompositions = products + 1, decompositions + 1
            case ckks.MulPlainOp():
                plain_products += 1
            case ckks.WeightedSumOp():
                plain_products += len(op.weights)
            case _:
                pass
    counts = {
        "rotations": rotations,
        "products": products,
        "key_switches": rotations + products,
        "decompositions": decompositions,
        "plain_products": plain_products,
    }
    return DictionaryAttr({name: IntegerAttr(n, i64) for name, n in counts.items()})
