"""Measuring how long ops take on this machine, for `fhelium-run --calibrate`.

Each op is linked into a program of its own that runs it several times, each on random residues of
its own and with a result of its own. None of them is in the caches when a run begins: the keys and
plaintexts of a program are larger than these, and drive out one another and what lies between. What
a run costs beside its ops is the same for a program that runs the op once, and is taken off; it has
samples of its own, from programs without ops. Freed memory stays with the process, as it does when
`fhelium-run` runs a program.
"""

import platform
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from math import inf
from statistics import median

import torch
import torch.distributed
from rich.progress import track
from xdsl.dialects.builtin import ModuleOp, StringAttr, TensorType
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from fhelium.analyses.calibration import (
    OPERATIONS,
    OWN_KERNELS,
    RUN,
    WHOLE,
    Calibration,
    Sample,
)
from fhelium.analyses.cost_model import CostModel, units_of
from fhelium.backend import (
    PROCESS_GROUP_RESOURCE_KIND,
    BoundResource,
    Compilation,
    OperationBackend,
    Pipeline,
    ProcessGroupExecutionResource,
    Program,
    ResourceBindings,
)
from fhelium.backend.invocation import basis_prime_ids
from fhelium.dialects import ckks, rns
from fhelium.dialects.ckks.parameters import PARAMETERS
from fhelium.dialects.ckks.types import CiphertextType, KeyType
from fhelium.dialects.core import IMPLEMENTATION, ResourceOp
from fhelium.dialects.distributed import GroupType
from fhelium.dialects.rns.types import Form, PolyType
from fhelium.passes.implementation_families import FAMILIES
from fhelium.scheme.ciphertext import Ciphertext
from fhelium.scheme.keys import generate_relinearization_key, generate_secret_key
from fhelium.scheme.parameters import Parameters
from fhelium.tools.calibration_cases import (
    STEPS,
    Case,
    cases_of,
    collectives,
    fused_cases,
    whole_cases,
)

REPEATS = 5
"""How often the longer of two programs runs an op more than the shorter one."""

SECONDS = 0.05
"""About how long an op is measured for."""

LEAST_ROUNDS, COLLECTIVE_ROUNDS, MOST_ROUNDS = 5, 20, 60
SWEEPS = 3

CACHES = 1 << 25
"""Bytes that are read before a run, so that caches hold nothing of the one before."""


def calibrate(parameters: Parameters, families: tuple[str, ...] = tuple(FAMILIES)) -> Calibration:
    """Measure the ops that programs with these parameters are made of, at a ladder of sizes.

    Collectives are measured where this process is in a group, and then on every rank.
    """
    cases = [*cases_of(parameters), *whole_cases(parameters), *fused_cases(parameters)]
    in_group = torch.distributed.is_available() and torch.distributed.is_initialized()
    if in_group:
        cases += list(collectives(parameters))
    bench = _Bench(parameters)
    samples: list[Sample] = []
    if "torch" in families:
        samples += [bench.run_sample(groups) for groups in ((), (GroupType(),))[: 1 + in_group]]
    for family in families:
        # What disturbs one sweep is gone by the next.
        sweeps = [
            [
                sample
                for case in track(cases, f"measuring {family}", transient=True)
                for sample in bench.samples(family, case)
            ]
            for _ in range(SWEEPS)
        ]
        samples += [
            min(found, key=lambda sample: sample.seconds) for found in zip(*sweeps, strict=True)
        ]
    return Calibration(machine(), tuple(samples))


def machine() -> str:
    """Return one line that says where times were measured."""
    ranks = torch.distributed.get_world_size() if torch.distributed.is_initialized() else 1
    return (
        f"measured on {platform.machine()} {platform.system()}, torch {torch.__version__} with "
        f"{torch.get_num_threads()} threads, {ranks} {'rank' if ranks == 1 else 'ranks'}"
    )


class _Bench:
    """What programs of one op run with: keys that are thrown away, and inputs."""

    def __init__(self, parameters: Parameters):
        self.parameters = parameters
        key = generate_relinearization_key(generate_secret_key(parameters))
        # Programs switch with one key after another, so there are several copies.
        count = max(1 + REPEATS, len(STEPS))
        self.keys = [replace(key, data=key.data.clone(), seed=None) for _ in range(count)]
        self._memory = torch.zeros(CACHES // 8, dtype=torch.int64)

    def samples(self, family: str, case: Case) -> Iterator[Sample]:
        """Measure a case; nothing comes of one that the family has no implementation of."""
        # Each rank runs collectives as often, and one wakes threads that a second finds awake.
        few, more, rounds = (
            (0, 1, COLLECTIVE_ROUNDS) if case.is_collective else (1, 1 + REPEATS, None)
        )
        short, long = (self._program(family, case, repeats) for repeats in (few, more))
        if short is None or long is None:
            return
        # Ranks that read memory for unequal times would wait for one another.
        between = _nothing if case.is_collective else self._fill_caches
        seconds = _difference(self._run(short), self._run(long), between, rounds) / (more - few)
        op = next(op for op in long.module.walk() if op.name in OPERATIONS and op.operands)
        yield self._sample(family, op.name, self._units(op), seconds)

    def run_sample(self, groups: tuple[GroupType, ...]) -> Sample:
        """Measure what a run costs beside its ops: checks of an input, and agreement in groups."""
        type = CiphertextType(0, self.parameters.scale, 2, Form.EVALUATION)
        block = Block([ResourceOp("group", each) for each in groups], arg_types=[type])
        block.add_op(ReturnOp(*block.args))
        run = self._run(self._program_of(block))
        return self._sample("torch", RUN, 1 + len(groups), _fastest(run, COLLECTIVE_ROUNDS))

    def _sample(self, family: str, name: str, units: int, seconds: float) -> Sample:
        return Sample(family, name, self.parameters.ring_degree, units, float(f"{seconds:.4g}"))

    def _units(self, op: Operation) -> int:
        if isinstance(op, tuple(ckks.OPERATIONS)):
            return CostModel(self.parameters, Calibration("", ())).of(op).ntts
        return units_of(op)

    def _program(self, family: str, case: Case, repeats: int) -> Program | None:
        # Both programs check as many inputs, so that their difference is that of ops alone.
        block = Block(arg_types=case.types * (1 + REPEATS))
        if case.is_collective:
            block.add_op(ResourceOp("group", GroupType()))
        results: list[SSAValue] = []
        for number in range(repeats):
            first = number * len(case.types)
            values: list[SSAValue] = []
            for index, type in enumerate(case.resources, number * len(case.resources)):
                name = "group" if case.is_collective else f"key{index % len(self.keys)}"
                resource = ResourceOp(name, type)
                block.add_op(resource)
                values.append(resource.result)
            op = case.build(*values, *block.args[first : first + len(case.types)])
            if not _is_measured(family, op):
                return None
            if op.name in FAMILIES[family]:
                op.attributes[IMPLEMENTATION] = StringAttr(FAMILIES[family][op.name])
            for operand in op.operands:
                if isinstance(operand.owner, rns.ModuliOp):
                    block.add_op(operand.owner)
            block.add_op(op)
            results.append(op.results[0])
        # All are returned, so that each goes to memory of its own.
        block.add_op(ReturnOp(*results))
        return self._program_of(block)

    def _program_of(self, block: Block) -> Program:
        """Return a program of one block, which ends with a return."""
        assert block.last_op is not None
        types = ([each.type for each in block.args], block.last_op.operand_types)
        function = FuncOp("main", types, Region(block))
        return Program(ModuleOp([function], {PARAMETERS: self.parameters.to_attribute()}))

    def _run(self, program: Program) -> Callable[[], object]:
        found = {op.symbol_name: op for op in program.module.walk() if isinstance(op, ResourceOp)}
        resources = ResourceBindings(
            self._bound(name, op.result.type) for name, op in found.items()
        )
        backend = OperationBackend(named_resources=resources)
        executable = backend.link(Compilation(program, pipeline=Pipeline()))
        inputs = [self._input(type) for type in program.function().function_type.inputs]
        return lambda: executable.run(*inputs)

    def _fill_caches(self) -> None:
        self._memory.sum()

    def _bound(self, name: str, type: Attribute) -> BoundResource:
        if not isinstance(type, KeyType):
            group = ProcessGroupExecutionResource()
            return BoundResource(name, PROCESS_GROUP_RESOURCE_KIND, group)
        key = self.keys[int(name.removeprefix("key"))]
        # The words are those of one key: which it is for makes no difference to the time.
        key = replace(key, kind=type.kind.value, step=type.step)
        return BoundResource(name, type.resource_kind, key)

    def _input(self, type: Attribute) -> torch.Tensor | Ciphertext:
        parameters = self.parameters
        match type:
            case TensorType():
                return torch.rand(type.get_shape(), dtype=torch.float64)
            case CiphertextType(
                level=int() as level, scale=float() as scale, components=int() as n
            ):
                return Ciphertext(
                    self._residues(n, parameters.q_limbs(level)), parameters, level, scale
                )
            case _:
                assert isinstance(type, PolyType)
                return self._residues(type.components, basis_prime_ids(type.basis, parameters))

    def _residues(self, components: int, limbs: tuple[int, ...]) -> torch.Tensor:
        shape = (components, self.parameters.ring_degree)
        rows = [torch.randint(self.parameters.primes[limb], shape) for limb in limbs]
        return torch.stack(rows, dim=1)


def _is_measured(family: str, op: Operation) -> bool:
    """Whether a family has the op, and takes another time for it than for what it is made of."""
    if op.name in WHOLE or isinstance(op, rns.FusedOp):
        return family in OWN_KERNELS
    return family == "torch" or op.name in FAMILIES[family]


def _nothing() -> None:
    pass


def _difference(
    short: Callable[[], object],
    long: Callable[[], object],
    between: Callable[[], None],
    rounds: int | None = None,
) -> float:
    """Return by how many seconds the second mostly takes longer; runs take turns.

    There are so many `rounds`, or as many as go into the time for an op; `between` comes before
    each run.
    """
    start = time.perf_counter()
    short()
    long()
    if rounds is None:
        rounds = max(LEAST_ROUNDS, int(SECONDS / (time.perf_counter() - start)))
        rounds = min(rounds, MOST_ROUNDS)
    times: dict[Callable[[], object], list[float]] = {short: [], long: []}
    for _ in range(rounds):
        for run, found in times.items():
            between()
            found.append(_fastest(run, 1))
    return max(median(times[long]) - median(times[short]), 1e-9)


def _fastest(run: Callable[[], object], rounds: int) -> float:
    """Return the seconds of the fastest of some runs."""
    least = inf
    for _ in range(rounds):
        start = time.perf_counter()
        run()
        least = min(least, time.perf_counter() - start)
    return least
