"""Measuring how long ops take on this machine, for `fhelium-run --calibrate`.

Each op is linked into a program of its own that runs it several times, each on random residues of
its own and with a result of its own. What a run costs beside its ops is the same for a program that
runs it once, and is taken off; it has samples of its own, from programs without ops. Among other
ops each takes longer, since they share the caches and move the allocator on: by how much is
measured on a program of several ops.
"""

import platform
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from math import inf

import torch
import torch.distributed
from rich.progress import track
from xdsl.dialects.builtin import ModuleOp, StringAttr, TensorType
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from fhelium.analyses.calibration import (
    ALL_REDUCE,
    OPERATIONS,
    OWN_KERNELS,
    RUN,
    WHOLE,
    Calibration,
    Sample,
)
from fhelium.analyses.cost_model import CostModel, units_of
from fhelium.analyses.program_costs import ProgramCosts
from fhelium.backend import (
    PROCESS_GROUP_RESOURCE_KIND,
    BoundResource,
    Compilation,
    OperationBackend,
    Pipeline,
    ProcessGroupExecutionResource,
    Program,
    ResourceBindings,
    default_pipeline,
    generate_program_keys,
)
from fhelium.backend.invocation import basis_prime_ids
from fhelium.dialects import ckks, rns
from fhelium.dialects.ckks.parameters import PARAMETERS
from fhelium.dialects.ckks.types import CiphertextType, KeyType
from fhelium.dialects.core import IMPLEMENTATION, ResourceOp
from fhelium.dialects.distributed import GroupType
from fhelium.dialects.rns.types import Form, PolyType
from fhelium.frontends.tracing import Vector, trace
from fhelium.passes.implementation_families import FAMILIES
from fhelium.scheme.ciphertext import Ciphertext
from fhelium.scheme.encoding import encode
from fhelium.scheme.encryption import encrypt
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

LEAST_ROUNDS, COLLECTIVE_ROUNDS, COMPANY_ROUNDS, MOST_ROUNDS = 5, 20, 40, 60
SWEEPS = 3

MOST_IN_COMPANY = 1.5
"""More than that is the doing of other processes."""


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
        alone = [
            min(found, key=lambda sample: sample.seconds) for found in zip(*sweeps, strict=True)
        ]
        factor = in_company(parameters, family, [*samples, *alone])
        samples += [_in_company(sample, factor) for sample in alone]
    return Calibration(machine(), tuple(samples))


def in_company(parameters: Parameters, family: str, samples: Sequence[Sample]) -> float:
    """Return how many times longer a program of several ops takes than its ops alone do."""
    if parameters.max_level == 0:
        return 1.0
    program = trace(_rotations_and_product, parameters)
    secret_key = generate_secret_key(parameters)
    keys = generate_program_keys(program, secret_key)
    assign = f"fhelium-assign-implementations{{target={family}}}"
    pipeline = Pipeline.parse(f"{default_pipeline()},{assign}")
    backend = OperationBackend(named_resources=keys)
    executable = backend.link(Compilation(program, pipeline=pipeline))
    ones = [1.0] * parameters.slots
    inputs = [encrypt(encode(ones, parameters), secret_key) for _ in range(2)]
    model = CostModel(parameters, Calibration("", tuple(samples)), family)
    lowered = executable.program
    alone = ProgramCosts(lowered.module, model).total(lowered.function())
    together = 1000 * _fastest(lambda: executable.run(*inputs), COMPANY_ROUNDS)
    return min(max(together / alone.milliseconds, 1.0), MOST_IN_COMPANY)


def _rotations_and_product(x: Vector, y: Vector) -> Vector:
    return (x + x.rotate(1) + y.rotate(2)) * y


def _in_company(sample: Sample, factor: float) -> Sample:
    if sample.op == ALL_REDUCE:
        return sample
    return replace(sample, seconds=float(f"{sample.seconds * factor:.4g}"))


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

    def samples(self, family: str, case: Case) -> Iterator[Sample]:
        """Measure a case; nothing comes of one that the family has no implementation of."""
        once, often = (self._program(family, case, 1 + n) for n in (0, REPEATS))
        if once is None or often is None:
            return
        # Each rank runs collectives as often.
        rounds = COLLECTIVE_ROUNDS if case.is_collective else None
        seconds = _difference(self._run(once), self._run(often), rounds) / REPEATS
        op = next(op for op in once.module.walk() if op.name in OPERATIONS and op.operands)
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


def _difference(
    short: Callable[[], object], long: Callable[[], object], rounds: int | None = None
) -> float:
    """Return by how many seconds the second takes longer, undisturbed; runs take turns.

    There are so many `rounds`, or as many as go into the time for an op.
    """
    start = time.perf_counter()
    short()
    long()
    if rounds is None:
        rounds = max(LEAST_ROUNDS, int(SECONDS / (time.perf_counter() - start)))
        rounds = min(rounds, MOST_ROUNDS)
    least = {short: inf, long: inf}
    for _ in range(rounds):
        for run in least:
            least[run] = min(least[run], _fastest(run, 1))
    return max(least[long] - least[short], 1e-9)


def _fastest(run: Callable[[], object], rounds: int) -> float:
    """Return the seconds of the fastest of some runs."""
    least = inf
    for _ in range(rounds):
        start = time.perf_counter()
        run()
        least = min(least, time.perf_counter() - start)
    return least
