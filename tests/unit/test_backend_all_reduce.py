"""The ciphertext all-reduce by its routes, on encrypted data: the same bits, and the right sum."""

import gc
import weakref
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from conftest import OnRanks
from test_backend_third_party import backend_of

from fhelium.backend import (
    BoundResource,
    Compilation,
    OperationBackend,
    Pipeline,
    ProcessGroupExecutionResource,
    Program,
    ResourceBindings,
    TorchCiphertextAddAllReduceImplementation,
    default_registry,
    prepare_ciphertext_add_combine,
)
from fhelium.dialects import distributed, rns
from fhelium.scheme.ciphertext import Ciphertext
from fhelium.scheme.encoding import decode, encode
from fhelium.scheme.encryption import decrypt, encrypt
from fhelium.scheme.keys import (
    SecretKey,
    SwitchingKey,
    generate_relinearization_key,
    generate_secret_key,
)
from fhelium.scheme.parameters import Parameters
from fhelium.scheme.sampling import RandomSource

SPECIALIZED = "convert-ckks-to-rns"
FOLDED = (
    'fhelium-assign-implementations{op="dist.all_reduce_add_ciphertext" '
    'implementation="torch-ciphertext-add-all-reduce"}'
)
ROUTES = {
    "folded": (f"{SPECIALIZED},{FOLDED}", "dist.all_reduce_add_ciphertext"),
    "folded-unlowered": (FOLDED, "dist.all_reduce_add_ciphertext"),
    "assigned": (
        f"{SPECIALIZED},fhelium-assign-implementations{{target=torch}}",
        "dist.all_reduce_add_ciphertext",
    ),
    "specialized": (SPECIALIZED, "dist.all_reduce_add_ciphertext"),
    "default": (None, "dist.all_reduce_add_ciphertext"),
    "generic-on-ckks": ("dist-lower-ciphertext-all-reduce,convert-ckks-to-rns", "dist.all_reduce"),
    "generic-on-rns": ("convert-ckks-to-rns,dist-lower-ciphertext-all-reduce", "dist.all_reduce"),
    "unlowered": ("", "dist.all_reduce_add_ciphertext"),
    "generic-unlowered": ("dist-lower-ciphertext-all-reduce", "dist.all_reduce"),
}


def secret_and_values(parameters: Parameters, ranks: int) -> tuple[SecretKey, np.ndarray]:
    """The same key and data on every rank. Seeded randomness is for tests alone."""
    key = generate_secret_key(parameters, random=RandomSource(seed=b"k" * 32))
    rng = np.random.default_rng(7)
    return key, rng.uniform(-1, 1, (ranks, 3, parameters.slots))


def all_reduce_on_this_rank(parameters: Parameters) -> dict[str, torch.Tensor]:
    """Sum one batch of three ciphertexts a rank by every route."""
    group = ProcessGroupExecutionResource()
    key, values = secret_and_values(parameters, group.size)
    x = encrypt(encode(values[group.rank], parameters), key)
    ciphertext = (
        f"!ckks.ciphertext<level = {x.level}, scale = 2^40, components = 2, form = evaluation>"
    )
    text = f"""module attributes {{ckks.parameters = {parameters.to_attribute()}}} {{
  func.func @main(%x: {ciphertext}) -> {ciphertext} {{
    %world = fhelium.resource @world : !dist.group
    %sum = dist.all_reduce_add_ciphertext %x in %world : {ciphertext}
    func.return %sum : {ciphertext}
  }}
}}"""
    world = ResourceBindings([BoundResource("world", "process-group", group)])
    backend = OperationBackend(named_resources=world)
    compilation = Compilation(Program.parse(text))
    sums: dict[str, torch.Tensor] = {}
    for name, (pipeline, expected) in ROUTES.items():
        executable = backend.link(
            compilation, pipeline=None if pipeline is None else Pipeline.parse(pipeline)
        )
        (reduction,) = (
            dispatch.implementation.name
            for op, dispatch in executable.dispatch_table.operations.items()
            if op.name == expected
        )
        if expected == "dist.all_reduce":
            assert reduction == "torch-generic-all-reduce"
        else:
            kind = "add" if name.startswith("folded") else "sum"
            assert reduction == f"torch-ciphertext-{kind}-all-reduce"
        before = x.data.clone()
        result = executable.run(x)
        assert isinstance(result, Ciphertext)
        assert torch.equal(x.data, before)
        sums[name] = result.data
    return sums


@pytest.fixture(scope="module", params=[1, 2, 3, 4], ids=lambda ranks: f"{ranks}-ranks")
def sums(
    request: pytest.FixtureRequest, on_ranks: OnRanks, parameters: Parameters
) -> list[dict[str, torch.Tensor]]:
    return on_ranks(all_reduce_on_this_rank, request.param, parameters)


def test_every_route_on_every_rank_gives_the_same_bits(sums: list[dict[str, Any]]) -> None:
    every = [result for results in sums for result in results.values()]
    assert len(every) == len(ROUTES) * len(sums)
    assert all(torch.equal(a, b) for a, b in pairwise(every))


def test_the_sum_decrypts_to_the_sum(
    sums: list[dict[str, torch.Tensor]], parameters: Parameters
) -> None:
    key, values = secret_and_values(parameters, len(sums))
    total = Ciphertext(sums[0]["default"], parameters, parameters.max_level, 2.0**40)
    found = decode(decrypt(total, key))
    assert np.abs(found - values.sum(axis=0)).max() < 2.0**-25


def two_operands(parameters: Parameters, limbs: int) -> tuple[torch.Tensor, ...]:
    moduli = torch.tensor(parameters.primes[:limbs])
    top = (moduli - 1).reshape(limbs, 1).expand(2, limbs, parameters.ring_degree).clone()
    return top, top.clone(), moduli


@pytest.mark.parametrize("basis", ["Q", "QP"])
def test_the_combine_adds_modulo_the_primes_it_is_given(parameters: Parameters, basis: str) -> None:
    combine = prepare_ciphertext_add_combine(OperationBackend(), modulus_basis=basis)
    for limbs in (1, 2, len(parameters.primes)):
        a, b, moduli = two_operands(parameters, limbs)
        expected = (moduli - 2).reshape(limbs, 1).expand_as(a)
        assert torch.equal(combine(a, b, moduli), expected)
        assert torch.equal(combine(a, b, moduli.unsqueeze(-1)), expected)
        batch = combine(a.expand(3, 2, *a.shape), b.expand(3, 2, *b.shape), moduli)
        assert torch.equal(batch[2, 1], expected)
        assert a.max() == moduli.max() - 1, "operands are untouched"


@pytest.mark.parametrize("modulus", [15, 37])
def test_the_combine_takes_primes_that_have_a_transform(modulus: int) -> None:
    combine = prepare_ciphertext_add_combine(OperationBackend())
    x = torch.ones(2, 1, 16, dtype=torch.int64)
    with pytest.raises(ValueError, match=rf"prime {modulus} \(limb 0\) is "):
        combine(x, x, torch.tensor([modulus]))


def test_preparing_a_combine_resolves_the_addition_once(parameters: Parameters) -> None:
    with pytest.raises(ValueError, match='modulus_basis is \'P\', expected "Q" or "QP"'):
        prepare_ciphertext_add_combine(OperationBackend(), modulus_basis="P")
    with pytest.raises(KeyError, match=r"rns.add has no operation implementation .*mine"):
        prepare_ciphertext_add_combine(OperationBackend(), implementation="mine")
    with pytest.raises(ValueError, match=r"rns.add has no operation implementation; available: n"):
        prepare_ciphertext_add_combine(backend_of())
    (add,) = (i for i in default_registry().implementations if rns.AddOp in i.operation_types)
    calls: list[Any] = []

    class Counted:
        name, operation_types, supports_in_place = "counted", (rns.AddOp,), False

        def resource_requirements(self, invocation: Any) -> Any:
            return add.resource_requirements(invocation)

        def execute(
            self, invocation: Any, inputs: Any, resources: Any, /, *, in_place: bool
        ) -> Any:
            calls.append((invocation, in_place))
            return add.execute(invocation, inputs, resources, in_place=in_place)

    backend = OperationBackend(default_registry().with_implementations([Counted()]))
    with pytest.raises(ValueError, match="'torch-rns-add', 'counted'"):
        prepare_ciphertext_add_combine(backend)
    combine = prepare_ciphertext_add_combine(backend, implementation="counted")
    a, b, moduli = two_operands(parameters, 2)
    combine(a, b, moduli)
    ((invocation, in_place),) = calls
    assert invocation.operation_type is rns.AddOp
    assert (invocation.operand_count, invocation.result_count, in_place) == (2, 1, False)
    assert invocation.operand_bases == ("Q", "Q")
    assert invocation.operand_components == (2, 2)


def test_a_combine_owns_no_key_and_no_engine(parameters: Parameters) -> None:
    key = generate_relinearization_key(generate_secret_key(parameters))
    named = ResourceBindings([BoundResource("relin", "relinearization-key", key)])
    backend = OperationBackend(named_resources=named)
    combine = prepare_ciphertext_add_combine(backend)
    seen: dict[int, Any] = {}
    waiting: list[Any] = [cell.cell_contents for cell in combine.__closure__ or ()]  # type: ignore
    while waiting:
        each = waiting.pop()
        if id(each) in seen or isinstance(each, type) or callable(each) or isinstance(each, dict):
            continue
        seen[id(each)] = each
        waiting.extend(gc.get_referents(each))
    assert not any(isinstance(each, SwitchingKey | OperationBackend) for each in seen.values())
    implementation = TorchCiphertextAddAllReduceImplementation(combine)
    assert implementation.operation_types == (distributed.AllReduceAddCiphertextOp,)
    del backend, named
    a, b, moduli = two_operands(parameters, 2)
    assert torch.equal(implementation.combine(a, b, moduli)[:, 0], (moduli - 2)[:1].expand(2, 64))


def test_a_combine_owns_no_key_of_the_client(parameters: Parameters) -> None:
    class Watched(SecretKey):
        __slots__ = ("__weakref__",)

    plain = generate_secret_key(parameters)
    key = Watched(parameters, plain.coefficients())
    alive = weakref.ref(key)
    named = ResourceBindings([BoundResource("secret", "secret-key", key)])
    combine = prepare_ciphertext_add_combine(OperationBackend(named_resources=named))
    del key, named
    gc.collect()
    assert callable(combine)
    assert alive() is None
