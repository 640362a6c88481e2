"""Implementations and live resources, and linking a program against them."""

from contextlib import suppress
from copy import copy
from typing import TYPE_CHECKING

from xdsl.ir import Operation
from xdsl.utils.exceptions import VerifyException

from fhelium.backend.compilation import Compilation
from fhelium.backend.dispatch import OperationDispatch
from fhelium.backend.invocation import describe
from fhelium.backend.registry import (
    OperationImplementationRegistry,
    RegionImplementation,
    requested_implementation,
)
from fhelium.backend.resources import (
    PROGRAM_RESOURCE_KINDS,
    BackendWorkspace,
    ResourceBindings,
    ResourceMaterializer,
    ResourceRequirement,
)
from fhelium.backend.trace import Trace
from fhelium.dialects.ckks.parameters import parameters_of
from fhelium.dialects.core import ResourceOp, ResourceType, recorded_in_place
from fhelium.dialects.distributed import CollectiveOp
from fhelium.frontends.diagnostics import one_line
from fhelium.passes.pipeline import Pipeline
from fhelium.scheme.arguments import check_type
from fhelium.scheme.parameters import Parameters

if TYPE_CHECKING:
    from fhelium.backend.executable import ProgramExecutable


class OperationBackend:
    """Own operation implementations and one live Backend workspace.

    `registry=None` takes the implementations that come with FHElium. `named_resources` replaces
    the workspace's table, and `materializer` its materializer.
    """

    def __init__(
        self,
        registry: OperationImplementationRegistry | None = None,
        workspace: BackendWorkspace | None = None,
        *,
        named_resources: ResourceBindings | None = None,
        materializer: ResourceMaterializer | None = None,
    ):
        if registry is None:
            from fhelium.backend.default import complete_registry

            registry = complete_registry()
        for value, kind in (
            (registry, OperationImplementationRegistry),
            (workspace, BackendWorkspace),
            (named_resources, ResourceBindings),
        ):
            if value is not None:
                check_type("OperationBackend", value, kind)
        workspace = workspace or BackendWorkspace()
        self.verifies_spmd = True
        self.trace: Trace | None = None
        self.registry = registry
        self.workspace = BackendWorkspace(
            workspace.named_resources if named_resources is None else named_resources,
            workspace.materializer if materializer is None else materializer,
        )

    @property
    def named_resources(self) -> ResourceBindings:
        """Return named low-level resources configured before linking."""
        return self.workspace.named_resources

    def with_named_resources(
        self, resources: ResourceBindings, *, override: bool = True
    ) -> "OperationBackend":
        """Return this implementation set with an extended resource table."""
        extended = copy(self)
        extended.workspace = self.workspace.with_named_resources(resources, override=override)
        return extended

    def without_spmd_verification(self) -> "OperationBackend":
        """Return a backend like this one that links what `dist-verify-spmd` refuses too."""
        trusting = copy(self)
        trusting.verifies_spmd = False
        return trusting

    def with_trace(self, trace: Trace) -> "OperationBackend":
        """Return a backend like this one whose programs write spans as they run."""
        traced = copy(self)
        traced.trace = trace
        return traced

    def violations(self, operation: Operation) -> tuple[str, ...]:
        """Return what the checks of its spec say against an op."""
        specs = self.registry.operation_specs
        checks = specs.resolve(type(operation)).checks if type(operation) in specs else ()
        return tuple(fault for check in checks if (fault := check(operation)) is not None)

    def dispatch(
        self,
        operation: Operation,
        parameters: Parameters | None = None,
        *,
        implementation: str | None = None,
        in_place: bool = False,
    ) -> OperationDispatch:
        """Resolve the call of one op, without binding its resources.

        Raises `ValueError` or `KeyError`, like the registry, and for a resource operand that is no
        `fhelium.resource`. `violations` are another matter.
        """
        requested = requested_implementation(operation, implementation)
        try:
            in_place = in_place or recorded_in_place(operation)
        except VerifyException as error:
            raise ValueError(str(error)) from None
        chosen = self.registry.resolve(operation, requested=requested, in_place=in_place)
        invocation = describe(operation, parameters)
        try:
            declared = chosen.resource_requirements(invocation)
        except Exception as error:
            raise ValueError(
                f"{chosen.name!r} cannot say what {operation.name} needs: "
                f"{type(error).__name__}: {one_line(error)}"
            ) from error
        if not isinstance(declared, tuple) or any(
            not isinstance(need, ResourceRequirement) for need in declared
        ):
            raise ValueError(
                f"{chosen.name!r} needs for {operation.name} a {type(declared).__name__}, expected "
                "a tuple of ResourceRequirement: mend its resource_requirements, which returns () "
                "where nothing is needed"
            )
        return OperationDispatch(
            invocation=invocation,
            implementation=chosen,
            requirements=(*operand_requirements(operation), *declared),
            effect=self.registry.effect(type(operation)),
            in_place=in_place,
            prepared_regions=bool(operation.regions) and isinstance(chosen, RegionImplementation),
        )

    def diagnostics(
        self, operation: Operation, *, implementation: str | None = None, in_place: bool = False
    ) -> tuple[str, ...]:
        """Report implementation or resource binding failures.

        Resource operands are looked up too. What a materializer would make is not a failure.
        """
        messages = list(self.violations(operation))
        attribute = parameters_of(operation)
        parameters = None
        requirements: tuple[ResourceRequirement, ...] = ()
        try:
            parameters = None if attribute is None else Parameters.from_attribute(attribute)
            requirements = self.dispatch(
                operation, parameters, implementation=implementation, in_place=in_place
            ).requirements
        except (KeyError, ValueError) as error:
            messages.append(message_of(error))
            with suppress(ValueError):
                requirements = operand_requirements(operation)
        for requirement in dict.fromkeys(requirements):
            made_on_link = requirement.kind in PROGRAM_RESOURCE_KINDS and parameters is not None
            missing = requirement.symbol not in self.named_resources
            if missing and (made_on_link or self.workspace.materializer is not None):
                continue
            try:
                self.named_resources.resolve(requirement)
            except (KeyError, ValueError) as error:
                messages.append(message_of(error))
        return tuple(messages)

    def link(
        self, compilation: Compilation, *, pipeline: Pipeline | None = None
    ) -> "ProgramExecutable":
        """Link one Compilation with this workspace into an executable.

        `pipeline=None` takes the compilation's own. On groups of several ranks the lowered program
        has to pass `dist-verify-spmd`; see `without_spmd_verification`. Raises `LinkError`, which
        lists every fault with its op and place.
        """
        from fhelium.backend.linking import link

        check_type("link", compilation, Compilation, fix="as in link(Compilation(program))")
        pipeline = compilation.pipeline if pipeline is None else pipeline
        check_type("link", pipeline, Pipeline, fix="as Pipeline.parse returns")
        return link(self, compilation, pipeline)


def operand_requirements(operation: Operation) -> tuple[ResourceRequirement, ...]:
    """Return the requirements behind the resource operands of an op, in operand order.

    Raises `ValueError` for a resource that does not come from `fhelium.resource`, as one that is
    passed in as an argument: it could be bound to anything.
    """
    requirements: list[ResourceRequirement] = []
    for operand in operation.operands:
        if not isinstance(operand.type, ResourceType) or isinstance(operand.owner, CollectiveOp):
            continue
        if not isinstance(operand.owner, ResourceOp):
            raise ValueError(
                f"{operation.name} has an operand of the resource type {operand.type} that is no "
                "result of fhelium.resource: name the resource in the function that uses it"
            )
        requirements.append(
            ResourceRequirement(operand.owner.symbol_name, operand.type.resource_kind)
        )
    return tuple(requirements)


def message_of(error: Exception) -> str:
    """Return the text of an exception; that of a `KeyError` without the quotes around it."""
    return str(error.args[0]) if isinstance(error, KeyError) and error.args else str(error)
