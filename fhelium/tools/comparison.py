"""A program beside its meaning: what a run computes against an interpreter, value by value.

Every value of the body of `@main` becomes one more result of it, so the run that is looked at takes
the pipeline, the implementations and the keys of any other run. What a loop, a branch or a call
computes inside is seen in its results. Messages need the secret key, and stay in this process: of
values only errors are kept.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from xdsl.dialects import arith, tensor
from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    FloatAttr,
    FunctionType,
    IndexType,
    IntegerAttr,
    IntegerType,
)
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.rewriter import Rewriter

from fhelium.backend import BoundResource, Compilation, OperationBackend, Pipeline, Program
from fhelium.dialects.ckks.types import CiphertextType, PlaintextType, StateType
from fhelium.dialects.core import MaterialOp, element_of
from fhelium.dialects.rns.types import PolyType
from fhelium.interpreters import ckks as on_slots
from fhelium.interpreters import rns as on_residues
from fhelium.passes.ckks_annotate_error import PRECISION, CkksAnnotateErrorPass
from fhelium.scheme.ciphertext import Ciphertext, Plaintext
from fhelium.scheme.encoding import decode, encode
from fhelium.scheme.encryption import decrypt, encrypt
from fhelium.scheme.keys import SecretKey, SwitchingKey

MARGIN_BITS = 1.0
"""Estimates of errors are never optimistic by more than a bit."""

Slots = NDArray[np.complex128]
Value = Ciphertext | Plaintext | torch.Tensor


@dataclass(frozen=True)
class ComparedValue:
    """A result of an op of the body of `@main`, and how far it is from what it should be.

    At the level `ckks`, `error` is the largest one in any slot, and `bound` what the error analysis
    allows. At the level `rns`, they count residues that differ; none may.
    """

    operation: Operation
    value: SSAValue
    error: float
    bound: float

    @property
    def exceeds(self) -> bool:
        """Whether something is wrong; what is no number is."""
        return not self.error <= self.bound


def first_excess(values: Sequence[ComparedValue]) -> ComparedValue | None:
    """Return the first value in program order whose error exceeds its bound."""
    return next((value for value in values if value.exceeds), None)


@dataclass(frozen=True)
class Comparison:
    """How to run a program of the level `ckks`, and to read what it computes.

    secret_key: for encrypting the inputs and decrypting every value.
    """

    backend: OperationBackend
    secret_key: SecretKey
    pipeline: Pipeline

    def of(self, program: Program, inputs: Sequence[ArrayLike]) -> list[ComparedValue]:
        """Compare a program whose states are all assigned, on the vectors in its slots.

        `inputs` are arrays `[..., slots]`, or public numbers as they are; the materials of
        `program` are plain: vectors for plaintexts, arrays for other tensors. Raises
        `ProgramError`, `PassFailure`, and what running it raises.
        """
        observed = program.clone()
        values = observe(observed, CiphertextType)
        arrays = [np.asarray(each) for each in inputs]
        bounds = self._bounds(observed, arrays, values)
        expected = _last(on_slots.evaluate(observed, *arrays), len(values))
        types = observed.function().function_type.inputs
        encrypted = [self.encrypted(x, type) for x, type in zip(arrays, types, strict=True)]
        materials = self._materials(observed)
        executable = self.backend.link(Compilation(observed, materials, self.pipeline))
        found = _last(executable.run(*encrypted), len(values))
        return [
            ComparedValue(value.owner, value, self._error(result, clear), bound)
            for value, result, clear, bound in zip(values, found, expected, bounds, strict=True)
            if isinstance(value.owner, Operation)
        ]

    def encrypted(self, numbers: NDArray[Any], type: Attribute) -> Value:
        """Return a vector, or public numbers, as what an argument or material of `type` takes."""
        state = element_of(type)
        if not isinstance(state, StateType):
            return torch.from_numpy(np.array(numbers))
        parameters = self.secret_key.parameters
        slots = np.asarray(numbers, dtype=np.complex128)
        plaintext = encode(slots, parameters, level=state.level, scale=state.scale)
        if isinstance(state, PlaintextType):
            return plaintext
        return encrypt(plaintext, self.secret_key)

    def _bounds(
        self, program: Program, inputs: Sequence[NDArray[Any]], values: Sequence[SSAValue]
    ) -> list[float]:
        given = [*inputs, *(np.asarray(each) for each in program.materials.values())]
        known = [each for each in given if each.dtype.kind in "fc"]  # integers are no message
        largest = max((float(np.abs(each).max(initial=0.0)) for each in known), default=1.0)
        annotated = program.clone()
        originals = list(program.module.walk())
        operations = list(annotated.module.walk())
        replace_known(annotated, inputs)
        Pipeline((CkksAnnotateErrorPass(largest=largest, ranks=1),)).apply(annotated)
        bits: dict[object, float] = {}
        for original, op in zip(originals, operations, strict=True):
            attribute = op.attributes.get(PRECISION)
            if isinstance(attribute, FloatAttr):
                bits[original] = attribute.value.data
        return [2.0 ** (MARGIN_BITS - bits[value.owner]) for value in values]

    def _materials(self, program: Program) -> Mapping[str, object]:
        return {
            op.symbol_name: self.encrypted(
                np.asarray(program.materials[op.symbol_name]), op.result.type
            )
            for op in program.module.walk()
            if isinstance(op, MaterialOp) and op.symbol_name in program.materials
        }

    def _error(self, result: object, expected: Slots) -> float:
        assert isinstance(result, Ciphertext)
        found = decode(decrypt(result, self.secret_key))
        return float(np.abs(found - expected).max())


def compare_residues(
    program: Program, inputs: Sequence[Value], backend: OperationBackend
) -> list[ComparedValue]:
    """Compare a program of the level `rns` with exact arithmetic on Python integers.

    `inputs`, the materials of `program` and the keys of `backend` are those of any run. Slow: see
    `fhelium.interpreters.rns`.
    """
    observed = program.clone()
    values = observe(observed, PolyType)
    keys = key_residues(backend.named_resources)
    plain = [each if isinstance(each, torch.Tensor) else each.data for each in inputs]
    results = on_residues.evaluate(observed, *(each.numpy() for each in plain), keys=keys)
    expected = _last(results, len(values))
    executable = backend.link(Compilation(observed, observed.materials, Pipeline()))
    found = _last(executable.run(*plain), len(values))
    compared: list[ComparedValue] = []
    for value, result, clear in zip(values, found, expected, strict=True):
        assert isinstance(result, torch.Tensor)
        assert isinstance(value.owner, Operation)
        differing = float((result.numpy() != clear).sum())
        compared.append(ComparedValue(value.owner, value, differing, 0.0))
    return compared


def replace_known(program: Program, inputs: Sequence[NDArray[Any]]) -> None:
    """Write integers among the inputs, and the lengths of others, out as constants: the error of a
    loop depends on how often it runs.
    """
    block = program.function().body.block
    arguments, first = block.args, block.first_op
    assert first is not None
    for argument, array in zip(arguments, inputs, strict=True):
        if isinstance(argument.type, IndexType | IntegerType):
            number = IntegerAttr(int(array), argument.type, truncate_bits=True)
            constant = arith.ConstantOp(number)
            block.insert_op_before(constant, first)
            argument.replace_all_uses_with(constant.result)
    for op in list(program.module.walk()):
        if isinstance(op, tensor.DimOp) and op.source in arguments:
            dimension = op.index.owner
            if isinstance(dimension, arith.ConstantOp) and isinstance(dimension.value, IntegerAttr):
                shape = inputs[arguments.index(op.source)].shape
                length = IntegerAttr(shape[dimension.value.value.data], IndexType())
                constant = arith.ConstantOp(length)
                Rewriter.replace_op(op, constant)


def observe(program: Program, kind: type[Attribute]) -> list[SSAValue]:
    """Make every value of `kind` in the body of `@main` one more result of it; return them."""
    function = program.function()
    block = function.body.block
    end = block.last_op
    assert isinstance(end, ReturnOp)
    values: list[SSAValue] = [
        result for op in block.ops for result in op.results if isinstance(result.type, kind)
    ]
    before = len(end.operands)
    end.operands = [*end.operands, *values]
    _extend_signature(function, before, [value.type for value in values])
    return values


def key_residues(resources: Iterable[BoundResource]) -> dict[str, NDArray[np.int64]]:
    """Return the residues of the switching keys by name, as an interpreter takes them."""
    return {
        bound.symbol: bound.value.data.numpy()
        for bound in resources
        if isinstance(bound.value, SwitchingKey)
    }


def _last(results: object, count: int) -> tuple[Any, ...]:
    """Return the last results of a run, which returns no tuple where there is one result."""
    found = results if isinstance(results, tuple) else (results,)
    return found[len(found) - count :]


def _extend_signature(function: FuncOp, before: int, types: Sequence[Attribute]) -> None:
    old = function.function_type
    function.function_type = FunctionType.from_lists(
        list(old.inputs.data), [*old.outputs.data, *types]
    )
    if function.res_attrs is not None:
        assert len(function.res_attrs.data) == before
        added = [DictionaryAttr({}) for _ in types]
        function.res_attrs = ArrayAttr([*function.res_attrs.data, *added])
