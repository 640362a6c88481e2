"""A linked program: host code, prepared calls and everything that they are bound to."""

import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, cast

import torch
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation

from fhelium.backend.dispatch import OperationDispatch, ProgramDispatchTable
from fhelium.backend.host_code import HostCode
from fhelium.backend.registry import RegionImplementation
from fhelium.backend.resources import BoundResource
from fhelium.backend.values import checked_payload, wrapped_result
from fhelium.dialects.ckks.parameters import parameters_of
from fhelium.dialects.ckks.types import CLIENT_TYPE
from fhelium.dialects.core import MaterialOp
from fhelium.dialects.memory import TransferOp
from fhelium.frontends.diagnostics import place_of
from fhelium.frontends.program import Program
from fhelium.scheme.ciphertext import Ciphertext, Plaintext
from fhelium.scheme.keys import SwitchingKey
from fhelium.scheme.parameters import Parameters

Tensor = torch.Tensor

HOST_FILE = "<fhelium host code>"
"""What tracebacks call the generated Python."""


@dataclass(frozen=True, eq=False)
class ProgramExecutable:
    """Execute host control flow prepared from one linked Program.

    Calls and external bindings are resolved once. Generated local variables preserve dataflow, and
    flat-block temporaries are released at last use. `host_source` exposes the prepared control flow
    without serializing its bound objects. Tensor storage and aliases retain ordinary PyTorch
    ownership.
    """

    program: Program
    dispatch_table: ProgramDispatchTable
    resources: tuple[BoundResource, ...]
    resource_indices: Mapping[Operation, tuple[int, ...]]
    bound_resources: Mapping[Operation, BoundResource]
    bound_materials: Mapping[Operation, object] = field(repr=False)
    host_source: str = field(init=False, repr=False, compare=False)
    _main: Callable[..., object] = field(init=False, repr=False, compare=False)
    _signature: "_Signature" = field(init=False, repr=False, compare=False)
    _origins: Mapping[int, Operation] = field(init=False, repr=False, compare=False)
    _device: torch.device | None = field(init=False, repr=False, compare=False)
    _moves_values: bool = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        for name in ("resource_indices", "bound_resources", "bound_materials"):
            object.__setattr__(self, name, MappingProxyType(dict(getattr(self, name))))
        functions = [op for op in self.program.module.ops if isinstance(op, FuncOp)]
        entry = self.program.function("main")
        code = HostCode(
            calls={op: self._prepare(op, d) for op, d in self.dispatch_table.operations.items()},
            materials=self.bound_materials,
        )
        source = code.generate(functions, entry)
        # The text holds numbered names, helper names and numbers only: see host_code.
        exec(compile(source, HOST_FILE, "exec"), code.namespace)
        object.__setattr__(self, "host_source", source)
        object.__setattr__(self, "_origins", code.origins)
        object.__setattr__(self, "_main", code.namespace["main"])
        object.__setattr__(self, "_signature", _Signature.of(entry))
        object.__setattr__(self, "_device", self._bound_device())
        moves = any(isinstance(op, TransferOp) for op in self.dispatch_table.operations)
        object.__setattr__(self, "_moves_values", moves)

    def _prepare(self, operation: Operation, dispatch: OperationDispatch) -> Callable[..., object]:
        """Return the call of one op on its operands, followed by its regions."""
        resources = tuple(self.resources[i] for i in self.resource_indices[operation])
        invocation, in_place = dispatch.invocation, dispatch.in_place
        count, results = invocation.operand_count, invocation.result_count
        implementation = dispatch.implementation

        def checked(outputs: tuple[Tensor, ...]) -> object:
            if not isinstance(outputs, tuple):
                raise TypeError(
                    f"{implementation.name!r} returned a {type(outputs).__name__}, expected a "
                    f"tuple of {results} tensors"
                )
            if len(outputs) != results:
                raise ValueError(
                    f"{implementation.name!r} returned {len(outputs)} results, expected {results}"
                )
            return outputs[0] if results == 1 else outputs

        if dispatch.prepared_regions:
            assert isinstance(implementation, RegionImplementation)
            execute_regions = implementation.execute_regions

            def call_regions(*arguments: Any) -> object:
                inputs, regions = arguments[:count], arguments[count:]
                return checked(
                    execute_regions(invocation, inputs, resources, regions, in_place=in_place)
                )

            return call_regions
        execute = implementation.execute

        def call(*inputs: Any) -> object:
            # Regions that the implementation does not take come last; it ignores them.
            return checked(execute(invocation, inputs[:count], resources, in_place=in_place))

        return call

    def _place(self, operation: Operation) -> str:
        place = place_of(operation, self.program.sources)
        return "" if place is None else str(place)

    def _bound_device(self) -> torch.device | None:
        """The device of keys and materials, if there are any."""
        bound = [r.value.data for r in self.resources if isinstance(r.value, SwitchingKey)]
        bound += [value for value in self.bound_materials.values() if isinstance(value, Tensor)]
        return bound[0].device if bound else None

    @property
    def manifest(self) -> Mapping[str, object]:
        """What runs and what it needs, as JSON-serializable values; no live object."""
        return {
            "operations": [
                {
                    "operation": operation.name,
                    "implementation": dispatch.implementation.name,
                    "effect": dispatch.effect,
                    "in_place": dispatch.in_place,
                    "location": self._place(operation),
                }
                for operation, dispatch in self.dispatch_table.operations.items()
            ],
            "resources": [{"symbol": r.symbol, "kind": r.kind} for r in self.resources],
            "materials": sorted(
                {cast("MaterialOp", op).symbol_name for op in self.bound_materials}
            ),
        }

    @property
    def input_names(self) -> tuple[str, ...]:
        """The names of the inputs that `run` takes: those of the arguments in the text."""
        arguments = self.program.function("main").body.block.args
        return tuple(arg.name_hint or f"arg{i}" for i, arg in enumerate(arguments))

    def run(self, *inputs: object) -> object:
        """Run the program on one input an argument of its function.

        An input is a tensor, a number, or the client's `Ciphertext` or `Plaintext`; when one of
        them is of the latter two kinds, so are the results. Returns the result, or a tuple of
        several. Before anything runs, raises `TypeError` for another number of inputs, kind or
        dtype, and `ValueError` for another state, shape, device or other parameters. What an op
        raises gets a note that names the op and its place.
        """
        signature = self._signature
        if len(inputs) != len(signature.inputs):
            raise TypeError(f"the program takes {len(signature.inputs)} inputs, got {len(inputs)}")
        payloads = [
            checked_payload(value, type, signature.parameters, f"input {i}")
            for i, (value, type) in enumerate(zip(inputs, signature.inputs, strict=True))
        ]
        self._check_devices(payloads)
        try:
            results = self._main(*payloads)
        except Exception as error:
            if (operation := self._failed_operation(error)) is not None:
                place = self._place(operation)
                error.add_note(f"in {operation.name}" + (f" at {place}" if place else ""))
            raise
        given = any(isinstance(value, Ciphertext | Plaintext) for value in inputs)
        if not given or results is None:
            return results
        if not isinstance(results, tuple):
            return wrapped_result(results, signature.outputs[0], signature.parameters)
        return tuple(
            wrapped_result(result, type, signature.parameters)
            for result, type in zip(results, signature.outputs, strict=True)
        )

    def _failed_operation(self, error: Exception) -> Operation | None:
        """Return the op whose line of host code raised, the innermost one of several."""
        frames = list(traceback.walk_tb(error.__traceback__))
        for frame, line in reversed(frames):
            if frame.f_code.co_filename == HOST_FILE:
                return self._origins.get(line)
        return None

    def _check_devices(self, payloads: list[object]) -> None:
        """Inputs are on one device, that of keys and materials, unless the program moves values."""
        if self._moves_values:
            return
        device = self._device
        for position, payload in enumerate(payloads):
            if not isinstance(payload, Tensor):
                continue
            device = device or payload.device
            if payload.device != device:
                raise ValueError(
                    f"input {position} is on {payload.device}, expected {device} like the keys, "
                    "materials and other inputs: move it, or write mem.transfer"
                )


@dataclass(frozen=True)
class _Signature:
    """What the client of a function passes in and gets back."""

    inputs: tuple[Attribute, ...]
    outputs: tuple[Attribute, ...]
    parameters: Parameters | None

    @staticmethod
    def of(function: FuncOp) -> "_Signature":
        attribute = parameters_of(function)

        def client_types(
            types: tuple[Attribute, ...], attributes: ArrayAttr[DictionaryAttr] | None
        ) -> tuple[Attribute, ...]:
            if attributes is None:
                return types
            return tuple(
                entry.data.get(CLIENT_TYPE, type)
                for type, entry in zip(types, attributes, strict=True)
            )

        return _Signature(
            client_types(function.function_type.inputs.data, function.arg_attrs),
            client_types(function.function_type.outputs.data, function.res_attrs),
            None if attribute is None else Parameters.from_attribute(attribute),
        )
