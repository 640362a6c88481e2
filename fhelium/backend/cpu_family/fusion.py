"""Fused regions of the `rns` dialect as one generated kernel each."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, reduce
from math import prod
from typing import Any

import torch
from xdsl.ir import Operation

from fhelium.backend.invocation import OperationInvocation
from fhelium.backend.registry import PreparedCall
from fhelium.backend.resources import RING_RESOURCE_KIND, BoundResource, ResourceRequirement
from fhelium.backend.torch_family.fusion import TorchFusedImplementation, run_region
from fhelium.backend.torch_family.residues import RING
from fhelium.dialects import rns
from fhelium.dialects.rns.fusion import Outline, Step
from fhelium.kernels.automorphism import evaluation_permutation
from fhelium.kernels.cpu import tables
from fhelium.kernels.cpu.buffers import POOL
from fhelium.kernels.cpu.catalogue import KernelSpec
from fhelium.kernels.cpu.fused import Code, Recipe
from fhelium.kernels.cpu.host import Host, host
from fhelium.kernels.cpu.launch import Entries, launch
from fhelium.kernels.cpu.loader import CompiledKernel, compiled
from fhelium.kernels.cpu.sizes import SizeError
from fhelium.kernels.ring import Ring
from fhelium.passes.implementation_families import FAMILIES

Tensor = torch.Tensor

CODES: dict[type[Operation], Code] = {
    rns.AddOp: Code.ADD,
    rns.SubOp: Code.SUBTRACT,
    rns.NegateOp: Code.NEGATE,
    rns.MulOp: Code.MULTIPLY,
    rns.SquareOp: Code.SQUARE,
    rns.AddConstantOp: Code.ADD_CONSTANT,
    rns.MulConstantOp: Code.SCALE,
    rns.AutomorphismOp: Code.GATHER,
}
"""Ops that are one step of a kernel."""


@dataclass
class Translation:
    """A recipe under construction, and the integers that its kernel takes as tables.

    Operations on them, so that programs with other constants and rotations share the kernel.
    """

    components: tuple[int, ...]
    steps: list[tuple[int, int, int]] = field(default_factory=list)
    constants: list[int] = field(default_factory=list)
    elements: list[int] = field(default_factory=list)

    @staticmethod
    def of(outline: Outline, components: tuple[int, ...]) -> tuple["Translation", Recipe]:
        """Return the translation of a region, and the recipe of its kernel."""
        translation = Translation(components)
        values = list(range(len(components)))
        for step in outline.steps:
            values.append(translation.step(step, [values[number] for number in step.operands]))
        results = tuple(values[number] for number in outline.yielded)
        return translation, Recipe(components, tuple(translation.steps), results)

    def step(self, step: Step, operands: Sequence[int]) -> int:
        """Add an op and return the number of its value."""
        if step.operation is rns.WeightedSumOp:
            half = len(operands) // 2
            pairs = zip(operands[:half], operands[half:], strict=True)
            products = [self.add(Code.MULTIPLY, *pair) for pair in pairs]
            return reduce(lambda total, term: self.add(Code.ADD, total, term), products)
        code = CODES[step.operation]
        if step.integer is None:
            return self.add(code, *operands)
        numbers = self.elements if code == Code.GATHER else self.constants
        numbers.append(step.integer)
        return self.add(code, operands[0], len(numbers) - 1)

    def add(self, code: Code, a: int, b: int = 0) -> int:
        self.steps.append((int(code), a, b))
        return len(self.components) + len(self.steps) - 1


@dataclass(frozen=True)
class FusedCall:
    """A fused region on a ring: its kernel, with the tables that it reads."""

    ring: Ring
    limbs: tuple[int, ...]
    recipe: Recipe
    kernel: CompiledKernel
    table: Tensor
    permutations: tuple[Tensor, ...]

    @staticmethod
    def of(
        ring: Ring,
        machine: Host,
        limbs: tuple[int, ...],
        outline: Outline,
        components: tuple[int, ...],
    ) -> "FusedCall":
        """Return the call of a region whose inputs have these numbers of components."""
        translation, recipe = Translation.of(outline, components)
        spec = KernelSpec("fused", recipe.words, min(machine.width, ring.ring_degree))
        cpu = torch.device("cpu")
        columns = [ring.residues(limbs, value, cpu) for value in translation.constants]
        table = tables.moduli(ring, limbs)
        if columns:
            table = tables.with_constants(ring, limbs, torch.cat(columns, dim=1))
        permutations = tuple(evaluation_permutation(ring, g, cpu) for g in translation.elements)
        return FusedCall(ring, limbs, recipe, compiled(spec, machine), table, permutations)

    @cached_property
    def narrow_sources(self) -> tuple[tuple[int, ...], ...]:
        """The inputs of each result that does not depend on all of them."""
        every = len(self.recipe.components)
        found = [self.recipe.sources(value) for value in self.recipe.results]
        return tuple(tuple(sorted(sources)) for sources in found if len(sources) < every)

    def batch(self, inputs: Sequence[Tensor]) -> tuple[int, ...] | None:
        """Return the batch of all results, or None where one kernel does not make them.

        That is where results differ in their batch, or an input is not what its type says.
        """
        for count, x in zip(self.recipe.components, inputs, strict=True):
            self.ring.check(self.limbs, x)
            if not x.is_cpu or x.shape[-3] != count:
                return None
        shapes = [x.shape[:-3] for x in inputs]
        batch = shapes[0] if len({*shapes}) == 1 else torch.broadcast_shapes(*shapes)
        for sources in self.narrow_sources:
            if torch.broadcast_shapes(*(shapes[i] for i in sources)) != batch:
                return None
        return tuple(batch)

    def __call__(self, inputs: Sequence[Tensor], batch: tuple[int, ...]) -> list[Tensor]:
        """Return the results; `batch` is what `batch` said."""
        counts = self.recipe.value_components
        tail, degree = (len(self.limbs), self.ring.ring_degree), self.ring.ring_degree
        results = [POOL.empty(*batch, counts[value], *tail) for value in self.recipe.results]
        items, size = prod(batch) * len(self.limbs), sum(result.numel() for result in results)
        operands = [Entries.of(x, batch) for x in (*inputs, *results)]
        words = [degree, self.table.data_ptr(), prod(batch)]
        for operand in operands:
            words += operand.words
        words += [permutation.data_ptr() for permutation in self.permutations]
        launch(self.kernel, items, words, size)
        return results


@dataclass(frozen=True)
class CpuFusedImplementation(TorchFusedImplementation):
    """Run a fused region by one kernel; where none can run, op by op."""

    name: str = FAMILIES["cpu"][rns.FusedOp.name]
    only_by_name: bool = True
    """It runs an op that asks for it, and leaves the others to the `torch` family."""

    def resource_requirements(
        self, invocation: OperationInvocation
    ) -> tuple[ResourceRequirement, ...]:
        """Ask for the ring."""
        return (ResourceRequirement(RING, RING_RESOURCE_KIND),)

    def prepare(
        self,
        invocation: OperationInvocation,
        resources: tuple[BoundResource, ...],
        /,
        *,
        in_place: bool,
    ) -> PreparedCall:
        """Return the op as a function of its operands, and then of its region."""
        call = _fused_call(invocation, resources)
        single = invocation.result_count == 1

        def run(*arguments: Any) -> Tensor | tuple[Tensor, ...]:
            *inputs, region = arguments
            batch = None if call is None else call.batch(inputs)
            if call is None or batch is None:
                results = run_region(region, inputs)
            else:
                results = tuple(call(inputs, batch))
            return results[0] if single else results

        return run

    def execute_regions(
        self,
        invocation: OperationInvocation,
        inputs: tuple[Tensor, ...],
        resources: tuple[BoundResource, ...],
        regions: tuple[Callable[..., tuple[Tensor, ...]], ...],
        *,
        in_place: bool,
    ) -> tuple[Tensor, ...]:
        """Bind the kernel and run it."""
        results = self.prepare(invocation, resources, in_place=in_place)(*inputs, *regions)
        return results if isinstance(results, tuple) else (results,)


def _fused_call(
    invocation: OperationInvocation, resources: tuple[BoundResource, ...]
) -> FusedCall | None:
    """Return the call of a region; None where none can run, or there is no input."""
    machine, ring = host(), resources[-1].value
    assert isinstance(ring, Ring)
    if machine is None or not invocation.operand_count:
        return None
    outline, limbs = invocation.attributes["outline"], invocation.operand_prime_ids[0]
    assert isinstance(outline, Outline)
    assert limbs is not None
    components = tuple(count or 0 for count in invocation.operand_components)
    try:
        return FusedCall.of(ring, machine, limbs, outline, components)
    except SizeError:
        return None
