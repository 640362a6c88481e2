"""Linking: from a compilation to an executable, or to a list of everything that stands in the way.

Clone the program, run the pipeline, resolve every executable op, then bind resources and materials.
"""

import gc
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import NoReturn, TypeVar

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from fhelium.backend.aliasing import Aliases, used_after
from fhelium.backend.backend import OperationBackend, message_of
from fhelium.backend.compilation import Compilation
from fhelium.backend.dispatch import OperationDispatch, ProgramDispatchTable
from fhelium.backend.executable import ProgramExecutable
from fhelium.backend.foreign_results import call_inside_fused_regions
from fhelium.backend.host_code import STRUCTURE, is_host_op
from fhelium.backend.nesting import too_deep
from fhelium.backend.resources import (
    PARAMETERS_RESOURCE_KIND,
    RING_RESOURCE_KIND,
    BoundResource,
    ResourceBindings,
    ResourceRequirement,
)
from fhelium.backend.specs import assignment_of, state_is_assigned
from fhelium.backend.spmd_guard import group_sizes
from fhelium.backend.traced_executable import TracedExecutable
from fhelium.backend.values import check_residues, checked_payload
from fhelium.dialects.ckks.parameters import parameters_of
from fhelium.dialects.ckks.types import CLIENT_TYPE, KeyType, state_types
from fhelium.dialects.core import MaterialOp, ResourceOp, ResourceType
from fhelium.frontends.diagnostics import Fault, ProgramError, place_of
from fhelium.frontends.program import Program
from fhelium.frontends.verification import verification_faults
from fhelium.passes.dist_verify_spmd import DistVerifySpmdPass, verify_spmd
from fhelium.passes.failure import PassFailure
from fhelium.passes.pipeline import Pipeline, failure_fault
from fhelium.scheme.ciphertext import Ciphertext
from fhelium.scheme.key_identity import KeyOwner
from fhelium.scheme.keys import PublicKey, SecretKey, SwitchingKey
from fhelium.scheme.parameters import Parameters

NOT_CALLED = frozenset((ResourceOp, MaterialOp, *STRUCTURE))
"""Ops of the project that host code expresses by itself, whatever implementations there are."""

OperationT = TypeVar("OperationT", bound=Operation)


class LinkError(ProgramError):
    """A program that cannot be linked, with every reason and its place."""


@contextmanager
def _without_collection() -> Iterator[None]:
    """Stop Python's cyclic garbage collector, if it runs, for as long as a link takes.

    IR is one graph that is alive and grows: the collector would walk it again and again, in up to
    a third of the time of a link, and find little. Ops that passes erase are collected afterwards.
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


@_without_collection()
def link(
    backend: OperationBackend, compilation: Compilation, pipeline: Pipeline
) -> ProgramExecutable:
    """Return an executable of `compilation`. Raises `ProgramError` and `LinkError`."""
    _check_nesting(compilation.program)
    compilation.program.verify()
    program = _lowered(compilation.program, pipeline)
    if program is not None:
        return _Linker(backend, compilation, program).link()
    program = compilation.program.clone()
    linker = _Linker(backend, compilation, program)
    try:
        pipeline.apply(program)
    except ProgramError as error:
        linker.refuse(error)
    return linker.link()


def _check_nesting(program: Program) -> None:
    """Refuse what host code cannot nest. Raises `LinkError`."""
    if (found := too_deep(program.module)) is not None:
        operation, message = found
        raise LinkError([Fault(message, place_of(operation, program.sources))])


def _lowered(original: Program, pipeline: Pipeline) -> Program | None:
    """Return what the pipeline makes of a program, verified once; None when anything is wrong.

    What is wrong is then found by verifying after each pass, which takes as long as the passes.
    """
    program = original.clone()
    try:
        pipeline.apply(program, verify=False)
    except Exception:
        return None
    return None if verification_faults(program.module) else program


@dataclass
class _Linker:
    """One link under way: what is resolved so far, and what is wrong so far."""

    backend: OperationBackend
    compilation: Compilation
    program: Program
    faults: list[Fault] = field(default_factory=list)
    owner: KeyOwner = field(default_factory=KeyOwner)

    def refuse(self, error: ProgramError) -> NoReturn:
        """Raise what stopped the pipeline, and what can be said of the program as it was left."""
        self.faults.extend(error.faults)
        said = {fault.place for fault in error.faults}
        self.parameters = self.program_parameters()
        for operation in self.program.module.walk():
            unassigned = state_is_assigned(operation)
            if unassigned and place_of(operation, self.program.sources) not in said:
                self.fault(operation, unassigned)
        if self.backend.workspace.materializer is None:
            self.bind_resources(self.each(ResourceOp), {})
        self.bind_materials(self.each(MaterialOp))
        raise LinkError(self.faults) from error

    @cached_property
    def operations(self) -> list[Operation]:
        return [op for op in self.program.module.walk() if op is not self.program.module]

    def each(self, kind: type[OperationT]) -> list[OperationT]:
        return [op for op in self.operations if isinstance(op, kind)]

    def link(self) -> ProgramExecutable:
        _check_nesting(self.program)
        self.program.function("main")
        self.parameters = self.program_parameters()
        operations = self.operations
        for operation in operations:
            self.check_structure(operation)
        specs = self.backend.registry.operation_specs
        executable = [op for op in operations if type(op) in specs and type(op) not in NOT_CALLED]
        order = {operation: position for position, operation in enumerate(operations)}
        dispatches: dict[Operation, OperationDispatch] = {}
        for operation in executable:
            for violation in self.backend.violations(operation):
                self.fault(operation, violation)
            try:
                dispatch = self.backend.dispatch(operation, self.parameters)
            except (KeyError, ValueError) as error:
                self.fault(operation, message_of(error))
                continue
            dispatches[operation] = dispatch
            if dispatch.in_place and (later := used_after(operation, order)) is not None:
                self.fault(
                    operation,
                    f"{operation.name} is to overwrite its first operand, which {later.name} still "
                    "uses: drop fhelium.in_place, or let this be the last use",
                )
        call_inside_fused_regions(dispatches)
        self.check_materials_are_kept(dispatches)
        resource_ops = self.each(ResourceOp)
        bound = self.bind_resources(resource_ops, dispatches)
        materials = self.bind_materials(self.each(MaterialOp))
        if self.backend.verifies_spmd:
            self.check_spmd(bound)
        if self.faults:
            raise LinkError(self.faults)
        resources = tuple(bound)
        position = {resource.symbol: index for index, resource in enumerate(resources)}
        try:
            trace = self.backend.trace
            kind = ProgramExecutable if trace is None else partial(TracedExecutable, trace=trace)
            return kind(
                program=self.program,
                dispatch_table=ProgramDispatchTable(dispatches),
                resources=resources,
                resource_indices={
                    operation: tuple(position[need.symbol] for need in dispatch.requirements)
                    for operation, dispatch in dispatches.items()
                },
                bound_resources={op: resources[position[op.symbol_name]] for op in resource_ops},
                bound_materials=materials,
            )
        except ProgramError as error:
            raise LinkError(error.faults) from error

    def check_spmd(self, bound: ResourceBindings) -> None:
        """Refuse a program whose ranks, where there are several, may not issue the same.

        As it was compiled its messages have levels and scales, and once lowered residues alone.
        """
        sizes = group_sizes(bound)
        if max(sizes.values(), default=1) == 1:
            return
        for program in (self.compilation.program, self.program):
            try:
                verify_spmd(program.module, sizes)
            except PassFailure as error:
                module, sources = program.module, program.sources
                self.faults.append(failure_fault(DistVerifySpmdPass.name, error, module, sources))
                return

    def check_materials_are_kept(self, dispatches: Mapping[Operation, OperationDispatch]) -> None:
        """Refuse ops that would overwrite a material, which the next run needs."""
        overwriting = [op for op, d in dispatches.items() if d.in_place and op.operands]
        if not overwriting:
            return
        aliases = Aliases(self.each(FuncOp))
        origins = aliases.origins(op.operands[0] for op in overwriting)
        if not any(isinstance(value.owner, MaterialOp) for value in origins):
            return
        for operation in overwriting:
            for value in aliases.origins([operation.operands[0]]):
                if isinstance(value.owner, MaterialOp):
                    self.fault(
                        operation,
                        f"{operation.name} is to overwrite material @{value.owner.symbol_name}, "
                        "which other runs use: drop fhelium.in_place",
                    )

    def fault(self, operation: Operation, message: str) -> None:
        self.faults.append(Fault(message, place_of(operation, self.program.sources)))

    def program_parameters(self) -> Parameters | None:
        module = self.program.module
        attribute = parameters_of(module)
        if attribute is None:
            return None
        try:
            return Parameters.from_attribute(attribute)
        except ValueError as error:
            self.fault(module, f"ckks.parameters: {error}")
            raise LinkError(self.faults) from None

    def check_structure(self, operation: Operation) -> None:
        """Refuse ops that neither host code nor any implementation can run."""
        known = type(operation) in self.backend.registry.operation_specs
        if isinstance(operation, ModuleOp) or not (known or is_host_op(operation)):
            self.fault(
                operation,
                f"{operation.name} has no implementation and is no host op: lower it with a pass, "
                "or register an implementation and an OperationSpec",
            )
        if isinstance(operation, FuncOp):
            self.check_function(operation)

    def check_function(self, function: FuncOp) -> None:
        name = f"function @{function.sym_name.data}"
        if function.parent_op() is not self.program.module:
            self.fault(function, f"{name} is inside another op: move it to the top of the module")
        if len(function.body.blocks) != 1:
            self.fault(
                function,
                f"{name} has {len(function.body.blocks)} blocks, expected one: use scf for control "
                "flow",
            )
        for passed in (*function.function_type.inputs, *function.function_type.outputs):
            if isinstance(passed, ResourceType):
                self.fault(
                    function,
                    f"{name} passes the resource type {passed}: name the resource with "
                    "fhelium.resource where it is used",
                )
            for state in state_types(passed):
                if missing := state.unassigned():
                    self.fault(
                        function,
                        f"{name} has the type {state}, {assignment_of(missing)}",
                    )

    def bind_resources(
        self, resource_ops: list[ResourceOp], dispatches: Mapping[Operation, OperationDispatch]
    ) -> ResourceBindings:
        """Bind what the program and the implementations need, from the workspace outwards."""
        # Users in order, each once; nearly every op needs the ring.
        needs: dict[ResourceRequirement, dict[Operation, None]] = {}
        for op in resource_ops:
            assert isinstance(op.result.type, ResourceType)
            need = ResourceRequirement(op.symbol_name, op.result.type.resource_kind)
            needs.setdefault(need, {})[op] = None
        for operation, dispatch in dispatches.items():
            for need in dispatch.requirements:
                needs.setdefault(need, {})[operation] = None
        available = self.backend.named_resources
        made = [r for r in (self.program_resource(need) for need in needs) if r is not None]
        available = available.overlay(
            ResourceBindings(r for r in made if r.symbol not in available)
        )
        available = available.overlay(self.materialized(needs, available))
        bound: list[BoundResource] = []
        for need, users in needs.items():
            try:
                resource = available.resolve(need)
            except (KeyError, ValueError) as error:
                named = [op for op in users if isinstance(op, ResourceOp)]
                for user in named or list(users)[:1]:
                    self.fault(user, message_of(error))
                continue
            for user in users:
                if isinstance(user, ResourceOp):
                    self.check_key(user, resource)
            own = self.program_resource(need)
            if own is not None and own.value != resource.value:
                self.fault(
                    next(iter(users)),
                    f"resource @{resource.symbol} belongs to other parameters than the program's: "
                    "leave it unbound, and the program's own are taken",
                )
            if all(resource.symbol != other.symbol for other in bound):
                bound.append(resource)
        return ResourceBindings(bound)

    def program_resource(self, need: ResourceRequirement) -> BoundResource | None:
        """Parameters and ring come from the program itself."""
        if self.parameters is None:
            return None
        if need.kind == PARAMETERS_RESOURCE_KIND:
            return BoundResource(need.symbol, need.kind, self.parameters)
        if need.kind == RING_RESOURCE_KIND:
            return BoundResource(need.symbol, need.kind, self.parameters.ring)
        return None

    def materialized(
        self, needs: Iterable[ResourceRequirement], available: ResourceBindings
    ) -> ResourceBindings:
        """Ask the materializer once for all that is missing, and check what it returns."""
        materializer = self.backend.workspace.materializer
        missing = tuple(need for need in needs if need.symbol not in available)
        if materializer is None or not missing:
            return ResourceBindings()
        made = materializer.materialize(missing)
        if not isinstance(made, ResourceBindings):
            self.fault(
                self.program.module,
                f"the materializer returned a {type(made).__name__}, expected ResourceBindings",
            )
            return ResourceBindings()
        return ResourceBindings(r for r in made if r.symbol not in available)

    def check_key(self, operation: ResourceOp, resource: BoundResource) -> None:
        """A key fits when its parameters, its secret and, for a rotation, its step do."""
        key_type, key = operation.result.type, resource.value
        if not isinstance(key, SwitchingKey | PublicKey | SecretKey):
            return
        if self.parameters is not None and key.parameters.digest != self.parameters.digest:
            self.fault(
                operation,
                f"resource @{resource.symbol} is a key for other parameters than the program's: "
                "generate it with the program's #ckks.parameters",
            )
            return
        try:
            self.owner = self.owner.joined_by(f"resource @{resource.symbol}", key.key_id)
        except ValueError as error:
            self.fault(operation, str(error))
        if not isinstance(key_type, KeyType) or not isinstance(key, SwitchingKey):
            return
        if key_type.step is not None and key.step != key_type.step:
            self.fault(
                operation,
                f"resource @{resource.symbol} rotates by {key.step}, expected {key_type.step}: "
                "bind the key of that step",
            )

    def bind_materials(self, material_ops: list[MaterialOp]) -> dict[Operation, object]:
        bound: dict[Operation, object] = {}
        for operation in material_ops:
            name = operation.symbol_name
            if name not in self.compilation.materials:
                given = ", ".join("@" + each for each in self.compilation.materials) or "none"
                self.fault(operation, f"material @{name} is not bound; bound: {given}")
                continue
            type = operation.attributes.get(CLIENT_TYPE, operation.result.type)
            what = f"material @{name}"
            try:
                payload = checked_payload(
                    self.compilation.materials[name], type, self.parameters, what
                )
                check_residues(payload, type, self.parameters, what)
                value = self.compilation.materials[name]
                if isinstance(value, Ciphertext):
                    self.owner = self.owner.joined_by(what, value.key_id)
                bound[operation] = payload
            except (TypeError, ValueError) as error:
                self.fault(operation, str(error))
        return bound
