"""A linked program: host code, prepared calls and everything that they are bound to."""

import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import cast

import torch
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation

from fhelium.backend.aliasing import Aliases, terminator_of
from fhelium.backend.checkpoints import Checkpoints, identity_of
from fhelium.backend.dispatch import OperationDispatch, ProgramDispatchTable
from fhelium.backend.foreign_results import comes_with_fhelium, with_checked_results
from fhelium.backend.host_code import HostCode
from fhelium.backend.prologue import prologue_of
from fhelium.backend.resources import BoundResource, made_resources
from fhelium.backend.spmd_guard import SpmdGuard, input_signature, program_identity
from fhelium.backend.stages import Stage
from fhelium.backend.torch_family.collectives.asynchronous import CommunicationThread
from fhelium.backend.values import ReducedInputs, checked_payload, wrapped_result
from fhelium.dialects.ckks.parameters import parameters_of
from fhelium.dialects.ckks.types import CLIENT_TYPE
from fhelium.dialects.core import MaterialOp, ResourceOp
from fhelium.dialects.distributed import CollectiveOp, RankOp, StartOp
from fhelium.dialects.memory import TransferOp
from fhelium.frontends.diagnostics import Fault, ProgramError, one_line, place_of
from fhelium.frontends.input_names import input_names
from fhelium.frontends.program import Program
from fhelium.scheme.ciphertext import Ciphertext, Plaintext
from fhelium.scheme.key_identity import KeyOwner
from fhelium.scheme.keys import PublicKey, SecretKey, SwitchingKey
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

    What `@main` computes from materials alone (`prepare` in `host_source`) is computed here, once,
    and what the rest uses of it stays in memory: an encoded material takes 8 bytes a coefficient
    and limb. Raises `ProgramError` when that fails, or an implementation cannot bind its call.
    """

    program: Program
    dispatch_table: ProgramDispatchTable
    resources: tuple[BoundResource, ...]
    resource_indices: Mapping[Operation, tuple[int, ...]]
    bound_resources: Mapping[Operation, BoundResource]
    bound_materials: Mapping[Operation, object] = field(repr=False)
    host_source: str = field(init=False, repr=False, compare=False)
    _main: Callable[..., object] = field(init=False, repr=False, compare=False)
    _stages: Sequence[tuple[Stage, Callable[..., object]]] = field(
        init=False, repr=False, compare=False
    )
    _signature: "_Signature" = field(init=False, repr=False, compare=False)
    _origins: Mapping[int, Operation] = field(init=False, repr=False, compare=False)
    _device: torch.device | None = field(init=False, repr=False, compare=False)
    _moves_values: bool = field(init=False, repr=False, compare=False)
    _reduced: ReducedInputs = field(
        init=False, repr=False, compare=False, default_factory=ReducedInputs
    )
    _key_owner: KeyOwner = field(init=False, repr=False, compare=False)
    _guard: SpmdGuard | None = field(init=False, repr=False, compare=False)
    _communication: CommunicationThread | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        for name in ("resource_indices", "bound_resources", "bound_materials"):
            object.__setattr__(self, name, MappingProxyType(dict(getattr(self, name))))
        functions = [op for op in self.program.module.ops if isinstance(op, FuncOp)]
        entry = self.program.function("main")
        object.__setattr__(self, "_signature", _Signature.of(entry))
        dispatches = self.dispatch_table.operations
        owner = KeyOwner()
        for resource in self.resources:
            if isinstance(key := resource.value, SwitchingKey | PublicKey | SecretKey):
                owner = owner.joined_by(f"resource @{resource.symbol}", key.key_id)
        object.__setattr__(self, "_key_owner", owner)
        guard = SpmdGuard.of(self.resources, lambda: self._identity)
        object.__setattr__(self, "_guard", guard)
        starts = any(isinstance(op, StartOp) for op in self.program.module.walk())
        communication = CommunicationThread() if starts else None
        object.__setattr__(self, "_communication", communication)
        aliases = Aliases(functions)
        code = HostCode(
            calls={op: self._bind(op, dispatch) for op, dispatch in dispatches.items()},
            materials=self.bound_materials,
            region_calls=frozenset(op for op, d in dispatches.items() if d.prepared_regions),
            start=self._start,
            prologue=prologue_of(entry, aliases, dispatches),
            returned=frozenset(aliases.origins(terminator_of(entry.body.block).operands)),
        )
        source = code.generate(functions, entry)
        object.__setattr__(self, "host_source", source)
        object.__setattr__(self, "_origins", code.origins)
        try:
            # The text holds numbered names, helper names and numbers only: see host_code.
            exec(compile(source, HOST_FILE, "exec"), code.namespace)
        except Exception as error:
            raise self._prologue_failure(error) from error
        for name in code.used_once:
            del code.namespace[name]
        object.__setattr__(self, "_main", code.namespace["main"])
        stages = [(stage, code.namespace[f"stage_{i}"]) for i, stage in enumerate(code.stages)]
        object.__setattr__(self, "_stages", stages)
        object.__setattr__(self, "_device", self._bound_device())
        moves = any(isinstance(op, TransferOp) for op in self.dispatch_table.operations)
        object.__setattr__(self, "_moves_values", moves)

    def _bind(self, operation: Operation, dispatch: OperationDispatch) -> Callable[..., object]:
        resources = tuple(self.resources[i] for i in self.resource_indices[operation])
        made = tuple(made_resources(operation))
        try:
            call = dispatch.bind_around(resources, made) if made else dispatch.bind(resources)
        except Exception as error:
            raise self._unprepared(operation, dispatch, error) from error
        implementation = dispatch.implementation
        if not comes_with_fhelium(implementation):
            parameters = self._signature.parameters
            call = with_checked_results(call, operation, implementation.name, parameters)
        collective = isinstance(operation, CollectiveOp)
        if collective and self._guard is not None:
            call = self._guard.watched(operation, call)
        call = self._observed(operation, call)
        if collective and self._communication and not isinstance(operation.parent_op(), StartOp):
            call = self._communication.in_order(call, self._observed_wait)
        return call

    def _start(self, body: Callable[[], object]) -> Callable[[], object]:
        """Start a collective of the program, and return what waits for it."""
        assert self._communication is not None
        return self._observed_wait(self._communication.start(body))

    def _observed(self, operation: Operation, call: Callable[..., object]) -> Callable[..., object]:
        """Return a prepared call, for a subclass that watches calls."""
        return call

    def _observed_wait(self, wait: Callable[[], object]) -> Callable[[], object]:
        """Return the wait for a started collective, for a subclass that watches waits."""
        return wait

    @contextmanager
    def _running(self) -> Iterator[None]:
        """Surround one run. Other ranks hear of a failure before started collectives end here."""
        with (
            nullcontext() if self._communication is None else self._communication.run(),
            nullcontext() if self._guard is None else self._guard.run(),
        ):
            yield

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
            "materials": sorted(self._named_materials()),
        }

    @property
    def input_names(self) -> tuple[str, ...]:
        """The names of the inputs that `run` takes: those of the arguments in the text.

        Raises `ProgramError` when two have the same; `run` takes them by position.
        """
        return input_names(self.program)

    def run(self, *inputs: object) -> object:
        """Run the program on one input an argument of its function.

        An input is a tensor, a number, or the client's `Ciphertext` or `Plaintext`; when one of
        them is of the latter two kinds, so are the results. Returns the result, or a tuple of
        several. Before anything runs, raises `TypeError` for another number of inputs, kind or
        dtype, and `ValueError` for another state, shape, device, other parameters, ciphertexts of
        another secret than the keys or, on the CPU, residues outside [0, q). What an op raises gets
        a note that names the op and its place.

        On several ranks, raises `RankMismatchError` on all of them when they do not run the same,
        `LostRankError` when another rank does not come to a collective within its deadline, and
        `UnfinishedRunError` when a run in one of the groups failed before.
        """
        with self._running():
            return self._run(inputs, self._main)

    def run_in_stages(self, checkpoints: Checkpoints, *inputs: object) -> object:
        """Run like `run`, from the last checkpoint that all ranks have reached before.

        After each stage of the program, what lives on is written to the folder of `checkpoints`.
        What is there counts when it is of this program, these inputs, materials and keys. Raises
        `ValueError` for a program without `fhelium.checkpoint`, and `OSError`.
        """
        if not self._stages:
            raise ValueError(
                "the program has no fhelium.checkpoint, expected one at least in the body of "
                "@main: run it without checkpoints, or say where its stages end"
            )

        def stages(*payloads: object) -> object:
            bound = [resource.value for resource in self.resources]
            materials = [material for _, material in sorted(self._named_materials().items())]
            parameters = self._signature.parameters
            identity = identity_of(self._identity, [*payloads, *materials, *bound])
            return checkpoints.run(self._stages, payloads, identity, parameters)

        with self._running():
            return self._run(inputs, stages)

    def _named_materials(self) -> dict[str, object]:
        return {cast("MaterialOp", op).symbol_name: v for op, v in self.bound_materials.items()}

    @cached_property
    def _identity(self) -> Mapping[str, str]:
        """What the ranks of a run have in common, by name."""
        dispatches = self.dispatch_table.operations.values()
        names = [dispatch.implementation.name for dispatch in dispatches]
        return program_identity(self.program, names)

    def _run(self, inputs: tuple[object, ...], main: Callable[..., object]) -> object:
        signature = self._signature
        if len(inputs) != len(signature.inputs):
            raise TypeError(f"the program takes {len(signature.inputs)} inputs, got {len(inputs)}")
        payloads = [
            checked_payload(value, type, signature.parameters, f"input {i}")
            for i, (value, type) in enumerate(zip(inputs, signature.inputs, strict=True))
        ]
        owner = self._key_owner
        for i, value in enumerate(inputs):
            if isinstance(value, Ciphertext):
                owner = owner.joined_by(f"input {i}", value.key_id)
        self._check_devices(payloads)
        for i, (payload, type) in enumerate(zip(payloads, signature.inputs, strict=True)):
            self._reduced.check(payload, type, signature.parameters, f"input {i}")
        if self._guard is not None:
            self._check_group_sizes()
            self._guard.agree(
                {
                    f"input {i}": input_signature(payload, type)
                    for i, (payload, type) in enumerate(
                        zip(payloads, signature.inputs, strict=True)
                    )
                },
                owner.key_id,
            )
        try:
            results = main(*payloads)
        except Exception as error:
            if (operation := self._failed_operation(error)) is not None:
                self._note_place(error, operation)
            raise
        given = any(isinstance(value, Ciphertext | Plaintext) for value in inputs)
        if not given or results is None:
            return results
        if not isinstance(results, tuple):
            return wrapped_result(results, signature.outputs[0], signature.parameters, owner.key_id)
        return tuple(
            wrapped_result(result, type, signature.parameters, owner.key_id)
            for result, type in zip(results, signature.outputs, strict=True)
        )

    def _check_group_sizes(self) -> None:
        """Let `@main` fail here where a group that it names is not of the size that it asks for.

        All ranks of the group do, and none has sent a message, so that it can run other programs.
        """
        for operation, call in self._sized_ranks:
            try:
                call()
            except ValueError as error:
                self._note_place(error, operation)
                raise

    @cached_property
    def _sized_ranks(self) -> Sequence[tuple[RankOp, Callable[..., object]]]:
        """The ops of `@main` that ask for a size of a group that the program names."""
        found: list[tuple[RankOp, Callable[..., object]]] = []
        for op in self.program.function("main").body.block.ops:
            if not isinstance(op, RankOp) or op.size is None:
                continue
            if isinstance(op.group.owner, ResourceOp):
                resources = tuple(self.resources[i] for i in self.resource_indices[op])
                found.append((op, self.dispatch_table.operations[op].bind(resources)))
        return found

    def _note_place(self, error: Exception, operation: Operation) -> None:
        place = self._place(operation)
        error.add_note(f"in {operation.name}" + (f" at {place}" if place else ""))

    def _unprepared(
        self, operation: Operation, dispatch: OperationDispatch, error: Exception
    ) -> ProgramError:
        """Return what went wrong as an implementation bound its call."""
        message = (
            f"{dispatch.implementation.name!r} cannot prepare {operation.name}: "
            f"{type(error).__name__}: {one_line(error)}"
        )
        return ProgramError([Fault(message, place_of(operation, self.program.sources))])

    def _prologue_failure(self, error: Exception) -> ProgramError:
        """Return what went wrong as materials were computed on."""
        operation = self._failed_operation(error)
        name = "the program" if operation is None else operation.name
        message = f"{name} failed on materials: {type(error).__name__}: {one_line(error)}"
        return ProgramError([Fault(message, place_of(operation, self.program.sources))])

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
