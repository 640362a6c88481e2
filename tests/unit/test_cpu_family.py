"""The `cpu` family in linked programs: chosen by name, with the bits of the `torch` family."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import pytest
import torch
from circuits import Circuit, Wire, circuits
from clients import Client, client_of, message, results_of
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_cpu_transforms import needs_fma
from test_differential import parameter_sets
from test_run_tool import Workplace
from xdsl.ir import Operation

from fhelium.backend import (
    RING_RESOURCE_KIND,
    BoundResource,
    Compilation,
    OperationBackend,
    OperationImplementationRegistry,
    OperationInvocation,
    Pipeline,
    ResourceRequirement,
    complete_registry,
    default_pipeline,
    default_registry,
    generate_program_keys,
)
from fhelium.backend.cpu_family.ciphertexts import KERNELS as CIPHERTEXT_KERNELS
from fhelium.backend.cpu_family.ciphertexts import cpu_ciphertext_contributions
from fhelium.backend.cpu_family.fusion import CpuFusedImplementation
from fhelium.backend.cpu_family.residues import KERNELS, cpu_contributions
from fhelium.client import Ciphertext, encode, encrypt, generate_keys
from fhelium.dialects import ckks, rns
from fhelium.dialects.ckks.types import CiphertextType
from fhelium.dialects.rns.types import Form
from fhelium.frontends.tracing import trace
from fhelium.kernels.cpu import loader
from fhelium.kernels.ring import Ring
from fhelium.passes.implementation_families import FAMILIES, IN_PLACE
from fhelium.scheme.parameters import Parameters
from fhelium.tools.run import main

WHOLE = (
    "canonicalize,cse,ckks-fuse-rescales,fhelium-assign-implementations{target=%s},"
    "convert-ckks-to-rns,dce"
)
IN_PLACE_ON_CPU = (
    f"{default_pipeline()},fhelium-assign-implementations{{target=cpu}},fhelium-assign-in-place"
)
WHOLE_IN_PLACE = f"{WHOLE % 'cpu'},fhelium-assign-in-place"
ON_CPU = f"{default_pipeline()},fhelium-assign-implementations{{target=cpu}}"


def test_the_table_of_names_is_the_registry() -> None:
    contributions = (
        *cpu_contributions(),
        *cpu_ciphertext_contributions(),
        CpuFusedImplementation(),
    )
    names = {op.name: each.name for each in contributions for op in each.operation_types}
    assert names == FAMILIES["cpu"]
    assert {each.name for each in contributions if each.supports_in_place} == IN_PLACE
    for operation in (*KERNELS, *CIPHERTEXT_KERNELS):
        assert complete_registry().available(operation) == (
            FAMILIES["torch"][operation.name],
            FAMILIES["cpu"][operation.name],
        )
    assert set(rns.OPERATIONS) - set(KERNELS) == {rns.ModuliOp, rns.ComponentsOp, rns.ProjectOp}
    assert set(ckks.OPERATIONS) - set(CIPHERTEXT_KERNELS) == {
        ckks.ModSwitchOp,
        *(ckks.EncodeOp, ckks.EncryptOp, ckks.DecryptOp, ckks.DecodeOp),
    }


def test_torch_stays_the_default() -> None:
    backend = OperationBackend()
    assert backend.registry is complete_registry()
    found = backend.registry.resolve_type(rns.NttOp, requested=None)
    assert found is default_registry().resolve_type(rns.NttOp, requested=None)
    chosen = backend.registry.resolve_type(rns.NttOp, requested="cpu-rns-ntt")
    assert chosen.name == "cpu-rns-ntt"


def test_a_family_that_is_chosen_by_name_alone_is_no_default() -> None:
    alone = OperationImplementationRegistry(cpu_contributions())
    with pytest.raises(
        ValueError,
        match=r"rns.ntt has no default among its operation implementations: 'cpu-rns-ntt'; choose "
        r"one with fhelium-assign-implementations",
    ):
        alone.resolve_type(rns.NttOp, requested=None)


@dataclass(frozen=True)
class Negation:
    """An implementation of someone else, which does not run in place."""

    name: str = "my-negate"
    operation_types: tuple[type[Operation], ...] = (rns.NegateOp, ckks.NegateOp)
    supports_in_place: bool = False
    only_by_name: bool = True
    seen: list[str] = field(default_factory=list, compare=False)

    def resource_requirements(
        self, invocation: OperationInvocation
    ) -> tuple[ResourceRequirement, ...]:
        return (ResourceRequirement("ckks.ring", RING_RESOURCE_KIND),)

    def execute(
        self,
        invocation: OperationInvocation,
        inputs: tuple[torch.Tensor, ...],
        resources: tuple[BoundResource, ...],
        /,
        *,
        in_place: bool,
    ) -> tuple[torch.Tensor, ...]:
        self.seen.append(invocation.operation_type.name)
        limbs, ring = invocation.operand_prime_ids[0], resources[-1].value
        assert limbs is not None
        assert isinstance(ring, Ring)
        primes = [ring.primes[limb] for limb in limbs]
        return (-inputs[0] % torch.tensor(primes).view(-1, 1),)


ASSIGN_NEGATION = 'fhelium-assign-implementations{{op="{}" implementation="my-negate"{}}}'
FIRST = f"{ASSIGN_NEGATION.format('ckks.negate', '')},cpu-default"
INSIDE = ASSIGN_NEGATION.format("rns.negate", " overwrite=true")
LAST = f"{IN_PLACE_ON_CPU},{INSIDE}"


@needs_fma
@pytest.mark.parametrize(
    ("pipeline", "name"), [(FIRST, "ckks.negate"), (LAST, "rns.negate")], ids=["first", "last"]
)
def test_implementations_of_others_go_with_the_family(
    parameters: Parameters, pipeline: str, name: str
) -> None:
    program = trace(lambda x, y: -(x * y), parameters)
    secret_key, public_key = generate_keys(parameters)
    keys = generate_program_keys(program, secret_key)
    inputs = [
        encrypt(encode(message(seed, parameters.slots), parameters), public_key) for seed in (0, 1)
    ]
    expected = OperationBackend(named_resources=keys).link(Compilation(program)).run(*inputs)
    negation = Negation()
    registry = complete_registry().with_implementations([negation])
    backend = OperationBackend(registry, named_resources=keys)
    found = backend.link(Compilation(program), pipeline=Pipeline.parse(pipeline)).run(*inputs)
    assert isinstance(found, Ciphertext)
    assert isinstance(expected, Ciphertext)
    assert torch.equal(found.data, expected.data)
    assert negation.seen == [name]


@needs_fma
def test_an_implementation_of_others_runs_inside_a_fused_region(parameters: Parameters) -> None:
    program = trace(lambda x, y: -(x + y), parameters)
    client = client_of(parameters)
    inputs = client.inputs(program, [message(seed, parameters.slots) for seed in (0, 1)])
    negation = Negation()
    registry = complete_registry().with_implementations([negation])
    pipeline = Pipeline.parse(f"cpu-default,{INSIDE}")
    executable = OperationBackend(registry).link(Compilation(program), pipeline=pipeline)
    expected = OperationBackend().link(Compilation(program))
    [found], [right] = (results_of(each.run(*inputs)) for each in (executable, expected))
    assert torch.equal(found.data, right.data)
    assert negation.seen


@needs_fma
@pytest.mark.parametrize("name", ["my-negate", "cpu-rns-negate"])
def test_the_default_of_others_runs_inside_a_fused_region(
    parameters: Parameters, name: str
) -> None:
    """Whatever the op records: nothing, or a name that is ours elsewhere."""
    program = trace(lambda x, y: -(x + y), parameters)
    client = client_of(parameters)
    inputs = client.inputs(program, [message(seed, parameters.slots) for seed in (0, 1)])
    negation = Negation(name, (rns.NegateOp,), only_by_name=False)
    ours = complete_registry().implementations
    rest = [each for each in ours if rns.NegateOp not in each.operation_types]
    assign = 'fhelium-assign-implementations{{op="{}" implementation="{}"}}'.format
    recorded = [] if name == "my-negate" else [assign("rns.negate", name)]
    fused = assign("rns.fused", "cpu-rns-fused")
    pipeline = Pipeline.parse(",".join(["rns-default", "rns-fuse", *recorded, fused]))
    backend = OperationBackend(OperationImplementationRegistry([*rest, negation]))
    executable = backend.link(Compilation(program), pipeline=pipeline)
    [found] = results_of(executable.run(*inputs))
    [right] = results_of(OperationBackend().link(Compilation(program)).run(*inputs))
    assert torch.equal(found.data, right.data)
    assert negation.seen
    operations = executable.manifest["operations"]
    assert isinstance(operations, list)
    names = ["torch-rns-fused", "torch-rns-add", name]
    assert [each["implementation"] for each in operations] == names


class Memo(Negation):
    """It computes once, and returns that again."""

    known: ClassVar[list[torch.Tensor]] = []

    def execute(self, *arguments: Any, **options: Any) -> tuple[torch.Tensor, ...]:
        if not self.known:
            self.known.extend(super().execute(*arguments, **options))
        return (self.known[0],)


class Unchanged(Negation):
    """It returns its operand."""

    def execute(
        self,
        invocation: OperationInvocation,
        inputs: tuple[torch.Tensor, ...],
        *arguments: Any,
        **options: Any,
    ) -> tuple[torch.Tensor, ...]:
        return inputs[:1]


@needs_fma
@pytest.mark.parametrize("kind", [Memo, Unchanged])
@pytest.mark.parametrize("pipeline", ["cpu-default", IN_PLACE_ON_CPU], ids=["default", "lowered"])
def test_results_of_others_are_not_overwritten(
    parameters: Parameters, kind: type[Negation], pipeline: str
) -> None:
    program = trace(lambda x: (-x) * 0.5, parameters)
    [x] = client_of(parameters).inputs(program, [message(0, parameters.slots)])
    assert isinstance(x, Ciphertext)
    before = x.data.clone()
    Memo.known.clear()
    registry = complete_registry().with_implementations([kind()])
    executable = OperationBackend(registry).link(
        Compilation(program), pipeline=Pipeline.parse(f"{pipeline},{INSIDE}")
    )
    first, second = (results_of(executable.run(x))[0].data.clone() for _ in range(2))
    assert torch.equal(first, second)
    assert torch.equal(x.data, before)


@settings(
    deadline=None,
    max_examples=5,
    print_blob=True,
    suppress_health_check=[
        HealthCheck.too_slow,
        HealthCheck.data_too_large,
        HealthCheck.large_base_example,
    ],
)
@given(circuits(parameter_sets(1 << 6), longest=20))
def test_random_circuits_have_the_bits_of_torch(circuit: Circuit) -> None:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        client = client_of(circuit.parameters)
        program = circuit.program()
        inputs = [
            client.input(plain, type, number) for number, (type, plain) in enumerate(circuit.inputs)
        ]
        before = [value.data.clone() for value in inputs]
        # A division that is fused rounds once, so lowered and whole ops differ in their last bits.
        for reference, pipelines in (
            (str(default_pipeline()), (ON_CPU, IN_PLACE_ON_CPU)),
            (WHOLE % "torch", (WHOLE % "cpu", WHOLE_IN_PLACE)),
        ):
            expected, *found = (
                results_of(
                    client.backend.link(
                        Compilation(program), pipeline=Pipeline.parse(pipeline)
                    ).run(*inputs)
                )
                for pipeline in (reference, *pipelines)
            )
            for results in found:
                for result, right in zip(results, expected, strict=True):
                    assert torch.equal(result.data, right.data)
        for value, data in zip(inputs, before, strict=True):
            assert torch.equal(value.data, data)
    finally:
        torch.set_num_threads(threads)


@needs_fma
@settings(deadline=None, max_examples=1, database=None, derandomize=True)
@given(st.data())
@pytest.mark.parametrize(
    ("pipeline", "scale_bits"),
    [("cpu-default", 33), (ON_CPU, 34), (IN_PLACE_ON_CPU, 35), (WHOLE_IN_PLACE, 36)],
)
def test_kernels_are_loaded_as_a_program_is_linked(
    pipeline: str, scale_bits: int, data: st.DataObject
) -> None:
    """A run compiles and loads nothing, whatever its batch."""
    # Parameters of this case alone: what others have loaded must not help.
    parameters = Parameters.build(
        ring_degree=32, depth=3, scale_bits=scale_bits, digits=2, insecure=True
    )
    client = Client(parameters)
    circuit = Circuit(parameters, (), (1, -1))
    top = CiphertextType(parameters.max_level, parameters.scale, 2, Form.EVALUATION)
    plain = message(0, parameters.slots)
    circuit.wires.append(Wire(circuit.argument(top, plain), plain, 1.0))
    for name in (
        *("negate", "add", "sub", "add_scalar", "add_plain", "sub_plain", "mul_integer", "square"),
        *("mul", "relinearize", "rescale", "rotate", "rotate_many", "conjugate", "mul_scalar"),
        *("mul_plain", "weighted_sum", "to_coefficient", "to_evaluation", "rescale", "mod_switch"),
    ):
        circuit.apply(name, circuit.moves()[name][0], data.draw)
    inputs = [client.input(plain, type, i) for i, (type, plain) in enumerate(circuit.inputs)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loader, "_compiled", {})
        executable = client.backend.link(
            Compilation(circuit.program()), pipeline=Pipeline.parse(pipeline)
        )
        linked = set(loader._compiled)
        assert linked
        first = executable.run(*inputs)
        assert set(loader._compiled) == linked
        batch = executable.run(*(torch.stack([each.data] * 3) for each in inputs))
        assert set(loader._compiled) == linked
    assert isinstance(batch, tuple)
    for one, several in zip(results_of(first), batch, strict=True):
        assert torch.equal(torch.stack([one.data] * 3), several)


def test_fhelium_run_takes_the_family(
    tmp_path: Path, parameters: Parameters, capfd: pytest.CaptureFixture[str]
) -> None:
    work = Workplace(tmp_path, parameters)
    assert main(work.arguments()) == 0
    expected = work.decrypted(work.path("result"))
    assert main(work.arguments("--pipeline", ON_CPU, "--print-dispatch")) == 0
    assert (work.decrypted(work.path("result")) == expected).all()
    printed = capfd.readouterr().out
    for name in ("cpu-rns-ntt", "cpu-rns-key-product", "cpu-rns-mod-up", "torch-rns-project"):
        assert name in printed
