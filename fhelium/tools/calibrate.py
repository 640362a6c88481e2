"""Measuring how long ops take on this machine, for `fhelium-run --calibrate`.

Each op is linked into a program of its own that runs it several times, each on random residues of
its own and with a result of its own. What a run costs beside its ops is the same for a program that
runs it once, and is taken off. Among other ops each takes longer, since they share the caches and
move the allocator on: by how much is measured on a program of several ops.
"""

import platform
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import inf

import torch
import torch.distributed
from rich.progress import track
from xdsl.dialects.builtin import ModuleOp, StringAttr, TensorType, f64
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from fhelium.analyses.calibration import OPERATIONS, Calibration, Sample
from fhelium.analyses.cost_model import VIEWS, CostModel, ProgramCosts, units_of
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
from fhelium.dialects.ckks.types import KeyKind, KeyType, PlaintextType
from fhelium.dialects.core import IMPLEMENTATION, ResourceOp
from fhelium.dialects.distributed import AllReduceAddCiphertextOp, GroupType
from fhelium.dialects.rns.types import BasisAttr, Form, PolyType
from fhelium.frontends.tracing import Vector, trace
from fhelium.passes.implementation_families import FAMILIES
from fhelium.scheme.encoding import encode
from fhelium.scheme.encryption import encrypt
from fhelium.scheme.keys import generate_relinearization_key, generate_secret_key
from fhelium.scheme.parameters import Parameters

Build = Callable[..., Operation]

REPEATS = 5
"""How often the longer of two programs runs an op more than the shorter one."""

SECONDS = 0.05
"""About how long an op is measured for."""

LEAST_ROUNDS, COLLECTIVE_ROUNDS, COMPANY_ROUNDS, MOST_ROUNDS = 5, 20, 40, 60
SWEEPS = 3

MOST_IN_COMPANY = 1.5
"""More than that is the doing of other processes."""


@dataclass(frozen=True)
class Case:
    """An op to measure: `build` makes it from arguments of `types`, and from the key or group."""

    types: tuple[Attribute, ...]
    build: Build
    resource: Attribute | None = None


def calibrate(parameters: Parameters, families: tuple[str, ...] = tuple(FAMILIES)) -> Calibration:
    """Measure the ops that programs with these parameters are made of, at a ladder of sizes.

    Collectives are measured where this process is in a group, and then on every rank.
    """
    cases = list(cases_of(parameters))
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        cases += list(collectives(parameters))
    bench = _Bench(parameters)
    samples: list[Sample] = []
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
    if sample.op == AllReduceAddCiphertextOp.name:
        return sample
    return replace(sample, seconds=float(f"{sample.seconds * factor:.4g}"))


def machine() -> str:
    """Return one line that says where times were measured."""
    ranks = torch.distributed.get_world_size() if torch.distributed.is_initialized() else 1
    return (
        f"measured on {platform.machine()} {platform.system()}, torch {torch.__version__} with "
        f"{torch.get_num_threads()} threads, {ranks} {'rank' if ranks == 1 else 'ranks'}"
    )


def cases_of(parameters: Parameters) -> Iterator[Case]:
    """Yield every op of `rns`, and encoding, at a ladder of limbs."""
    levels = sorted({0, parameters.max_level // 3, parameters.max_level})
    special = BasisAttr(p=range(len(parameters.special)))
    raised = [BasisAttr(parameters.q_limbs(each), special.p) for each in levels]
    ladder = [BasisAttr(q=parameters.q_limbs(each)) for each in levels]
    for basis in ladder:
        one, two, three = (PolyType(basis, n, Form.EVALUATION) for n in (1, 2, 3))
        yield Case((two, two), rns.AddOp)
        yield Case((two, two), rns.SubOp)
        yield Case((two,), rns.NegateOp)
        yield Case((two, one), rns.MulOp)
        yield Case((two, two), rns.MulOp)
        yield Case((two,), rns.SquareOp)
        yield Case((two,), lambda x: rns.AddConstantOp(x, 12345))
        yield Case((two,), lambda x: rns.MulConstantOp(x, 12345))
        for terms in (1, 8):
            yield Case((two, one), lambda x, w, n=terms: rns.WeightedSumOp([x] * n, [w] * n))
        yield Case((three,), lambda x: rns.ComponentsOp(x, 0, 2))
        yield Case((two,), lambda x, b=basis: rns.ProjectOp(x, b))
    first = PolyType(special, 1, Form.COEFFICIENT)
    for basis in (special, *ladder, *raised):
        for components in (1, 2):
            poly = PolyType(basis, components, Form.EVALUATION)
            yield Case((poly,), rns.InttOp)
            yield Case((poly.replace(form=Form.COEFFICIENT),), rns.NttOp)
            yield Case((poly,), lambda x: rns.AutomorphismOp(x, 5))
    for level, over in zip(levels, raised, strict=True):
        kept = BasisAttr(q=parameters.q_limbs(level))
        for digit in parameters.digit_limbs(level)[:1]:
            source = PolyType(BasisAttr(q=digit), 1, Form.COEFFICIENT)
            yield Case((source,), lambda x, b=over: rns.ModUpOp(x, b))
        for components in (1, 2):
            source = first.replace(components=components)
            yield Case((source,), lambda x, b=kept: rns.ModUpOp(x, b))
            whole = PolyType(over, components, Form.EVALUATION)
            yield Case((whole, whole.replace(basis=kept)), rns.ModDownOp)
        if level:
            group = BasisAttr(q=parameters.group_limbs(level))
            below = BasisAttr(q=parameters.q_limbs(level - 1))
            source = PolyType(group, 2, Form.COEFFICIENT)
            yield Case((source,), lambda x, b=below: rns.ModUpOp(x, b))
        yield Case((PolyType(kept, 2, Form.EVALUATION),), lambda x, b=over: rns.ScaleUpOp(x, b))
        digits = len(parameters.digit_limbs(level))
        yield Case(
            (PolyType(over, 1, Form.EVALUATION),),
            lambda key, x, n=digits: rns.KeyProductOp([x] * n, key),
            KeyType(KeyKind.RELINEARIZATION),
        )
        plaintext = PlaintextType(level, parameters.scale, Form.EVALUATION)
        yield Case(
            (TensorType(f64, [parameters.slots]),), lambda x, t=plaintext: ckks.EncodeOp(x, t)
        )


def collectives(parameters: Parameters) -> Iterator[Case]:
    """Yield the sum over ranks at a ladder of limbs."""
    for level in sorted({0, parameters.max_level // 2, parameters.max_level}):
        basis = BasisAttr(q=parameters.q_limbs(level))

        def build(group: SSAValue, x: SSAValue, basis: BasisAttr = basis) -> Operation:
            moduli = rns.ModuliOp(basis)
            return AllReduceAddCiphertextOp(x, group, moduli.result)

        yield Case((PolyType(basis, 2, Form.EVALUATION),), build, GroupType())


class _Bench:
    """What programs of one op run with: a key that is thrown away, and inputs."""

    def __init__(self, parameters: Parameters):
        self.parameters = parameters
        key = generate_relinearization_key(generate_secret_key(parameters))
        # Programs switch with one key after another, so each use has a copy of its own.
        kind = KeyType(KeyKind.RELINEARIZATION).resource_kind
        self.keys = [
            BoundResource(f"resource{i}", kind, replace(key, data=key.data.clone(), seed=None))
            for i in range(1 + REPEATS)
        ]

    def samples(self, family: str, case: Case) -> Iterator[Sample]:
        """Measure a case; nothing comes of one that the family has no implementation of."""
        once, often = (self._program(family, case, 1 + n) for n in (0, REPEATS))
        if once is None or often is None:
            return
        if isinstance(case.resource, GroupType):
            # Ranks first agree on what they run, so a run is the measure; each runs it as often.
            seconds = _fastest(self._run(once, case), COLLECTIVE_ROUNDS)
        else:
            seconds = _difference(self._run(once, case), self._run(often, case)) / REPEATS
        op = next(op for op in once.module.walk() if op.name in OPERATIONS and op.operands)
        units = units_of(op)
        if isinstance(op, ckks.EncodeOp):
            assert op.result.type.level is not None
            units = len(self.parameters.q_limbs(op.result.type.level))
        if isinstance(op, VIEWS):
            units = 1
        yield Sample(family, op.name, self.parameters.ring_degree, units, float(f"{seconds:.4g}"))

    def _program(self, family: str, case: Case, repeats: int) -> Program | None:
        types = case.types * repeats
        block = Block(arg_types=types)
        results: list[SSAValue] = []
        for number in range(repeats):
            first = number * len(case.types)
            arguments: list[SSAValue] = [*block.args[first : first + len(case.types)]]
            if case.resource is not None:
                resource = ResourceOp(f"resource{number}", case.resource)
                block.add_op(resource)
                arguments.insert(0, resource.result)
            op = case.build(*arguments)
            if family != "torch" and op.name not in FAMILIES[family]:
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
        function = FuncOp("main", (types, [result.type for result in results]), Region(block))
        return Program(ModuleOp([function], {PARAMETERS: self.parameters.to_attribute()}))

    def _run(self, program: Program, case: Case) -> Callable[[], object]:
        resources = self.keys
        if isinstance(case.resource, GroupType):
            group = ProcessGroupExecutionResource()
            resources = [
                BoundResource(key.symbol, PROCESS_GROUP_RESOURCE_KIND, group) for key in self.keys
            ]
        backend = OperationBackend(named_resources=ResourceBindings(resources))
        executable = backend.link(Compilation(program, pipeline=Pipeline()))
        inputs = [self._input(type) for type in program.function().function_type.inputs]
        return lambda: executable.run(*inputs)

    def _input(self, type: Attribute) -> torch.Tensor:
        if isinstance(type, TensorType):
            return torch.rand(type.get_shape(), dtype=torch.float64)
        assert isinstance(type, PolyType)
        limbs = basis_prime_ids(type.basis, self.parameters)
        shape = (type.components, self.parameters.ring_degree)
        rows = [torch.randint(self.parameters.primes[limb], shape) for limb in limbs]
        return torch.stack(rows, dim=1)


def _difference(short: Callable[[], object], long: Callable[[], object]) -> float:
    """Return by how many seconds the second takes longer, undisturbed; runs take turns."""
    start = time.perf_counter()
    short()
    long()
    rounds = max(LEAST_ROUNDS, int(SECONDS / (time.perf_counter() - start)))
    least = {short: inf, long: inf}
    for _ in range(min(rounds, MOST_ROUNDS)):
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
