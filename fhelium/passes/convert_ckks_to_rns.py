"""`convert-ckks-to-rns`: write encrypted arithmetic out as residue kernels."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    FunctionType,
    ModuleOp,
    TensorType,
    UnrealizedConversionCastOp,
)
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, BlockArgument, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from fhelium.analyses.ciphertext_states import holds_state, require_states
from fhelium.analyses.program_parameters import CHOSEN_BY, program_parameters
from fhelium.dialects import ckks
from fhelium.dialects.ckks.parameters import PARAMETERS
from fhelium.dialects.ckks.types import CLIENT_TYPE, StateType
from fhelium.dialects.core import MaterialOp, has_implementation
from fhelium.dialects.distributed import PendingType
from fhelium.passes.ckks_lowerings import Emitter, lowerings, poly_type
from fhelium.passes.failure import PassFailure
from fhelium.scheme.parameters import Parameters

CKKS_OPERATIONS = frozenset(ckks.OPERATIONS)

TYPE_AGNOSTIC = ("arith", "builtin", "cf", "dist", "fhelium", "func", "mem", "rns", "scf", "tensor")
"""Dialects whose ops carry values of any type, and so carry residues as they did ciphertexts."""


@dataclass(frozen=True)
class ConvertCkksToRnsPass(ModulePass):
    """Lower ckks ops to rns kernels: each NTT, ModUp, key product and ModDown becomes visible.

    Needs `ckks.parameters` on the module, and every level, scale, number of components and form
    assigned. Arguments, results and materials keep their ckks type in the attribute `ckks.type`, so
    that a linked program can still check what it is given. An op that records an implementation
    stays whole, between casts that cost nothing: the name belongs to the whole op. So does an op of
    another dialect that takes or makes ciphertexts.
    """

    name = "convert-ckks-to-rns"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        operations = list(op.walk())
        if not any(map(_is_ckks, operations)):
            return
        parameters = program_parameters(
            op, f"the primes of each level come from there: {CHOSEN_BY}"
        )
        for inner in operations:
            _check(inner, op, parameters)
        lowered = _lower(operations, parameters)
        rest = [inner for inner in operations if inner not in lowered]
        kept = {
            inner: [operand.type for operand in inner.operands]
            for inner in rest
            if _stays_whole(inner)
        }
        _replace(lowered)
        for inner in rest:
            if inner not in kept:
                _convert_types(inner, parameters)
        for inner, operand_types in kept.items():
            _cast_around(inner, operand_types, parameters)
        for inner in list(op.walk()):
            if isinstance(inner, UnrealizedConversionCastOp):
                _drop_redundant_cast(inner)
        for inner in rest:
            whole = inner in kept or isinstance(inner, UnrealizedConversionCastOp)
            if not whole and _is_ckks(inner):
                raise PassFailure(
                    inner,
                    f"found {inner.name} on a type that has no residue form, expected ciphertexts, "
                    "plaintexts and tensors of them",
                )


def _types(operation: Operation) -> list[Attribute]:
    """Types of the results and the block arguments of `operation`, and of a function's results."""
    types = [result.type for result in operation.results]
    types += [arg.type for region in operation.regions for b in region.blocks for arg in b.args]
    if isinstance(operation, FuncOp):
        types += [*operation.function_type.inputs, *operation.function_type.outputs]
    return types


def _stays_whole(operation: Operation) -> bool:
    """Return whether an op that is left works on ciphertexts as such: one of ours, or a guest's."""
    if type(operation) in CKKS_OPERATIONS:
        return True
    if operation.dialect_name() in TYPE_AGNOSTIC:
        return False
    return any(holds_state(value.type) for value in (*operation.operands, *operation.results))


def _is_ckks(operation: Operation) -> bool:
    return type(operation) in CKKS_OPERATIONS or any(map(holds_state, _types(operation)))


def _check(operation: Operation, module: ModuleOp, parameters: Parameters) -> None:
    """Refuse what can't be lowered, before anything is changed."""
    outermost = module.attributes[PARAMETERS]
    if (
        isinstance(operation, ModuleOp)
        and operation.attributes.get(PARAMETERS, outermost) != outermost
    ):
        raise PassFailure(
            operation,
            f"found a module with {PARAMETERS} of its own, expected those of the outermost one: "
            "convert the two apart",
        )
    require_states(operation, _types(operation), parameters)


def _lower(
    operations: Sequence[Operation], parameters: Parameters
) -> Mapping[Operation, Sequence[SSAValue]]:
    """Emit what each op is lowered to before it, and return its lowered results.

    The ops themselves stay until all are lowered, since rules read levels and scales in their
    types. A value that is not lowered itself is cast; the casts go once every type is converted.
    """
    rules = lowerings(parameters)
    lowered: dict[Operation, Sequence[SSAValue]] = {}
    values: dict[SSAValue, SSAValue] = {}
    for op in operations:
        rule = rules.get(type(op))
        if rule is None or not _is_lowered(op):
            continue
        emit = Emitter()
        operands: list[SSAValue] = []
        for operand in op.operands:
            value = values.get(operand, operand)
            if isinstance(value.type, StateType):
                value = emit(_cast(value, poly_type(value.type, parameters)))
            operands.append(value)
        results = rule.lower(op, operands, emit)
        lowered[op] = [results] if isinstance(results, SSAValue) else results
        values.update(zip(op.results, lowered[op], strict=True))
        for operation in emit.operations:
            operation.location = op.location
            if len(op.results) == 1:
                operation.results[0].name_hint = op.results[0].name_hint
        Rewriter.insert_op(emit.operations, InsertPoint.before(op))
    return lowered


def _is_lowered(operation: Operation) -> bool:
    """Return whether an op that has a rule works on ciphertexts, and may go.

    One of ckks that records how it runs stays as it is: the record belongs to the whole op.
    """
    if type(operation) in CKKS_OPERATIONS and has_implementation(operation):
        return False
    return any(isinstance(operand.type, StateType) for operand in operation.operands)


def _replace(lowered: Mapping[Operation, Sequence[SSAValue]]) -> None:
    """Erase ops, and give those that are left what they used of them."""
    for operation, values in lowered.items():
        for result, value in zip(operation.results, values, strict=True):
            result.replace_all_uses_with(value)
        Rewriter.erase_op(operation)


def _cast(value: SSAValue, type: Attribute) -> UnrealizedConversionCastOp:
    return UnrealizedConversionCastOp.create(operands=[value], result_types=[type])


def _convert(type: Attribute, parameters: Parameters) -> Attribute:
    if isinstance(type, StateType):
        return poly_type(type, parameters)
    if isinstance(type, TensorType):
        return TensorType(_convert(type.element_type, parameters), type.shape, type.encoding)
    if isinstance(type, PendingType):
        return PendingType([_convert(value, parameters) for value in type.values])
    return type


def _convert_types(operation: Operation, parameters: Parameters) -> None:
    """Change the types of the values of one op in place; the op and its location stay."""
    if isinstance(operation, MaterialOp) and holds_state(operation.result.type):
        operation.attributes[CLIENT_TYPE] = operation.result.type
    if isinstance(operation, FuncOp):
        _convert_signature(operation, parameters)
    values: list[SSAValue] = list(operation.results)
    values += [arg for region in operation.regions for block in region.blocks for arg in block.args]
    for value in values:
        converted = _convert(value.type, parameters)
        if converted != value.type:
            replacement = Rewriter.replace_value_with_new_type(value, converted)
            if isinstance(value, BlockArgument) and isinstance(replacement, BlockArgument):
                replacement.location = value.location


def _convert_signature(function: FuncOp, parameters: Parameters) -> None:
    inputs, outputs = function.function_type.inputs.data, function.function_type.outputs.data
    if not any(map(holds_state, [*inputs, *outputs])):
        return
    function.arg_attrs = _with_client_types(function.arg_attrs, inputs)
    function.res_attrs = _with_client_types(function.res_attrs, outputs)
    function.function_type = FunctionType.from_lists(
        [_convert(type, parameters) for type in inputs],
        [_convert(type, parameters) for type in outputs],
    )


def _with_client_types(
    attributes: ArrayAttr[DictionaryAttr] | None, types: tuple[Attribute, ...]
) -> ArrayAttr[DictionaryAttr] | None:
    if not any(map(holds_state, types)):
        return attributes
    old = [entry.data for entry in attributes] if attributes is not None else [{}] * len(types)
    return ArrayAttr(
        DictionaryAttr({**entry, CLIENT_TYPE: type} if holds_state(type) else dict(entry))
        for entry, type in zip(old, types, strict=True)
    )


def _cast_around(
    operation: Operation, operand_types: list[Attribute], parameters: Parameters
) -> None:
    """Give an op that stays whole operands of its own types, and its users lowered ones."""
    for index, (operand, wanted) in enumerate(zip(operation.operands, operand_types, strict=True)):
        if operand.type != wanted:
            before = _cast(operand, wanted)
            before.location = operation.location
            Rewriter.insert_op(before, InsertPoint.before(operation))
            operation.operands[index] = before.results[0]
    for result in operation.results:
        converted = _convert(result.type, parameters)
        if converted != result.type:
            after = _cast(result, converted)
            after.location = operation.location
            Rewriter.insert_op(after, InsertPoint.after(operation))
            result.replace_uses_with_if(
                after.results[0], lambda use, after=after: use.operation is not after
            )


def _drop_redundant_cast(cast: UnrealizedConversionCastOp) -> None:
    """Drop a cast to the type that its operand has, or had before another cast."""
    if len(cast.inputs) != 1 or len(cast.outputs) != 1:
        return
    (operand,), (result,) = cast.inputs, cast.outputs
    source = operand
    if isinstance(operand.owner, UnrealizedConversionCastOp):
        source = operand.owner.inputs[0]
    for value in (operand, source):
        if value.type == result.type:
            result.replace_all_uses_with(value)
            Rewriter.erase_op(cast)
            break
    # What it started from may have led nowhere else.
    before = operand.owner
    if isinstance(before, UnrealizedConversionCastOp) and not operand.uses:
        Rewriter.erase_op(before)
