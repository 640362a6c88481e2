"""How payloads are cut between ranks, and which device they travel by; no rank but this one."""

from typing import Any, cast

import pytest
import torch
from collective_programs import KINDS, PARAMETERS, module
from hypothesis import given
from hypothesis import strategies as st

from fhelium.backend import (
    BoundResource,
    OperationInvocation,
    ProcessGroupExecutionResource,
    TorchCiphertextSumAllReduceImplementation,
)
from fhelium.backend.invocation import describe
from fhelium.backend.torch_family.collectives import ciphertext_sums, transport
from fhelium.backend.torch_family.collectives.shares import Pieces, result_fault, share_sizes
from fhelium.dialects import distributed
from fhelium.dialects.distributed import CombiningOp


@given(st.integers(0, 50), st.integers(1, 9))
def test_shares_are_those_of_torch(total: int, ranks: int) -> None:
    expected = [len(each) for each in torch.arange(total).tensor_split(ranks)]
    assert share_sizes(total, ranks) == expected


@given(
    st.lists(st.integers(1, 3), max_size=2),
    st.integers(1, 3),
    st.integers(1, 4),
    st.sampled_from([2, 4, 8]),
    st.integers(1, 9),
)
def test_pieces_of_polynomials(
    batch: list[int], components: int, limbs: int, degree: int, ranks: int
) -> None:
    shape = (*batch, components, limbs, degree)
    value = torch.arange(torch.Size(shape).numel()).reshape(shape)
    pieces = Pieces(value, ranks, polynomial=True)
    returned: list[torch.Tensor] = []
    for rank, piece in enumerate(pieces.cut()):
        assert piece.shape == pieces.piece_shape(rank)
        expanded = pieces.expand(piece)
        assert expanded.shape[1:] == (components, limbs, degree), "kernels see whole polynomials"
        # Limb i of a piece holds residues of limb i of the payload.
        numbers = expanded.movedim(-2, 0).flatten(1)[:, : piece.shape[1]]
        assert torch.equal(numbers // degree % limbs, torch.arange(limbs)[:, None].expand_as(piece))
        returned.append(pieces.contract(expanded, piece.shape[1]))
    assert torch.equal(pieces.join(returned), value)
    sizes = [pieces.piece_shape(rank)[1] for rank in range(ranks)]
    assert max(sizes) - min(sizes) <= 1


@given(st.lists(st.integers(0, 4), max_size=3), st.integers(1, 9))
def test_pieces_of_tensors(shape: list[int], ranks: int) -> None:
    value = torch.arange(torch.Size(shape).numel()).reshape(shape)
    pieces = Pieces(value, ranks, polynomial=False)
    returned = [
        pieces.contract(pieces.expand(piece), piece.shape[1]).clone() for piece in pieces.cut()
    ]
    assert torch.equal(pieces.join(returned), value)


@pytest.mark.parametrize(
    "value",
    [
        torch.tensor(True),
        torch.zeros(0, 3),
        torch.arange(24.0).reshape(2, 3, 4).transpose(0, 2),
        torch.tensor([1 + 2j, 3 - 4j]).conj(),
        torch.arange(5).expand(2, 5),
        torch.arange(4)[1::2][:1],
        torch.ones(3, dtype=torch.bfloat16),
    ],
    ids=lambda value: f"{value.dtype}-{tuple(value.shape)}",
)
def test_payloads_as_bytes(value: torch.Tensor) -> None:
    data = transport.as_bytes(value)
    assert data.dtype == torch.uint8
    assert data.shape == (value.numel() * value.element_size(),)
    assert torch.equal(transport.from_bytes(data, value, value.shape), value)


REGION = """
func.func @main(%x: TYPE, %group: !dist.group) {
  %n = arith.constant 3 : i64
  %true = arith.constant true
  %r = dist.all_reduce %x in %group : TYPE combine {
  ^bb0(%a: TYPE, %b: TYPE):
    BODY
    dist.yield %c : TYPE
  }
  func.return
}"""
POLY1 = "!rns.poly<basis = Q[0:2], components = 1, form = evaluation>"


@pytest.mark.parametrize(
    ("type", "body", "expected"),
    [
        (KINDS["ciphertext"].type, "%c = ckks.sub %a, %b : TYPE", True),
        (KINDS["ciphertext"].type, "%d = ckks.negate %b : TYPE %c = ckks.add %a, %d : TYPE", True),
        (KINDS["poly"].type, "%c = rns.add %a, %b : (TYPE, TYPE) -> TYPE", True),
        (POLY1, "%c = rns.mul %a, %b : (TYPE, TYPE) -> TYPE", True),
        (POLY1, "%c = rns.mul_constant %a, 3 : TYPE", True),
        ("tensor<4xi64>", "%c = arith.muli %a, %b : TYPE", True),
        ("index", "%c = arith.addi %a, %b : TYPE", False),
        # A constant goes to one residue of each polynomial, in coefficient form.
        (POLY1, "%c = rns.add_constant %a, 3 : TYPE", False),
        (POLY1, "%c = rns.automorphism %a, 3 : TYPE", False),
        # A value from around the region is not cut.
        (KINDS["poly"].type, "%c = rns.add %a, %x : (TYPE, TYPE) -> TYPE", False),
        (KINDS["ciphertext"].type, "%c = arith.select %true, %a, %b : TYPE", False),
    ],
)
def test_elementwise_regions(type: str, body: str, expected: bool) -> None:
    program = module(REGION.replace("BODY", body).replace("TYPE", type))
    (op,) = (op for op in program.module.walk() if isinstance(op, CombiningOp))
    assert op.is_elementwise is expected


RECEIVED = "func.func @main(%g: !dist.group) {{ %x = dist.recv from 0 in %g : {} func.return }}"
CT = KINDS["ciphertext"].type


@pytest.mark.parametrize(
    ("type", "dtype", "shape", "fault"),
    [
        ("i8", torch.int64, (), None),
        ("i8", torch.int8, (), "expected a torch.int64"),
        ("f32", torch.float64, (), None),
        ("f64", torch.float64, (1,), "expected the shape ()"),
        ("tensor<?x2xui8>", torch.uint8, (5, 2), None),
        ("tensor<?x2xui8>", torch.int8, (5, 2), "expected a torch.uint8"),
        ("tensor<?x2xui8>", torch.uint8, (5, 2, 1), "expected the shape (?, 2)"),
        ("!rns.moduli<Q[0:2]>", torch.int64, (2, 1), None),
        ("!rns.moduli<Q[0:2]>", torch.int64, (2,), "expected the shape (2, 1)"),
        (CT, torch.int64, (2, 5, 16), None),
        (CT, torch.int64, (7, 2, 5, 16), None),
        (CT, torch.float64, (2, 5, 16), "expected a torch.int64"),
        (CT, torch.int64, (2, 4, 16), "expected 5 limbs"),
        (CT, torch.int64, (5,), "expected the shape (batch..., components, limbs, N)"),
        (f"tensor<2x{CT}>", torch.int64, (2, 2, 5, 16), None),
        (f"tensor<2x{CT}>", torch.int64, (2, 7, 2, 5, 16), None),
        (f"tensor<?x{CT}>", torch.int64, (0, 2, 5, 16), None),
        (f"tensor<2x{CT}>", torch.int64, (3, 2, 5, 16), "expected the shape (2, batch..., comp"),
        (f"tensor<2x{CT}>", torch.int64, (2, 5, 16), "expected the shape (2, batch..., comp"),
        (f"tensor<2x{CT}>", torch.int32, (2, 2, 5, 16), "expected a torch.int64"),
    ],
)
def test_results_have_the_layout_of_their_type(
    type: str, dtype: torch.dtype, shape: tuple[int, ...], fault: str | None
) -> None:
    program = module(RECEIVED.format(type))
    (op,) = (op for op in program.module.walk() if isinstance(op, distributed.RecvOp))
    result = torch.empty(shape, dtype=dtype, device="meta")
    found = result_fault(describe(op, PARAMETERS), result, 0, 0)
    if fault is None:
        assert found is None
    else:
        assert f"the result is a {dtype} {shape}, {fault}" in str(found)


class FakeGroup(ProcessGroupExecutionResource):
    """A group of another transport than this machine may have."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, transports: str):
        object.__setattr__(self, "group", None)
        monkeypatch.setattr(torch.distributed, "get_backend_config", lambda group: transports)
        monkeypatch.setattr(torch.cuda, "current_device", lambda: 1)


@pytest.mark.parametrize(
    ("transports", "own", "cpu", "cuda"),
    [
        ("cpu:gloo,cuda:gloo", "cpu", "cpu", "cuda:0"),
        ("cuda:nccl", "cuda:1", "cuda:1", "cuda:0"),
        ("cpu:gloo,cuda:nccl", "cuda:1", "cpu", "cuda:0"),
        ("cpu:gloo", "cpu", "cpu", "cpu"),
    ],
)
def test_the_device_by_which_payloads_travel(
    monkeypatch: pytest.MonkeyPatch, transports: str, own: str, cpu: str, cuda: str
) -> None:
    group = FakeGroup(monkeypatch, transports)
    assert group.device == torch.device(own)
    assert group.carrier(torch.device("cpu")) == torch.device(cpu)
    assert group.carrier(torch.device("cuda:0")) == torch.device(cuda)


class OnCuda(torch.Tensor):
    """A tensor that counts as one on CUDA; what is computed from it does too."""


class NcclGroup:
    """A group of one whose payloads travel on CUDA."""

    size, rank, group = 1, 0, None

    def carrier(self, device: torch.device) -> torch.device:
        assert device.type == "cpu"
        return torch.device("cuda", 1)

    def global_rank(self, rank: int) -> int:
        return rank


@pytest.mark.parametrize("name", ["broadcast", "all_gather", "exchange", "all_reduce_sum"])
def test_payloads_travel_by_the_carrier_and_come_back(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """The messages of a group of NCCL, without CUDA."""
    to = torch.Tensor.to
    moves: list[str] = []

    def move(tensor: torch.Tensor, device: torch.device, **options: Any) -> torch.Tensor:
        moves.append(device.type)
        copy = to(tensor, torch.device("cpu"), **options)
        return copy.as_subclass(OnCuda if device.type == "cuda" else torch.Tensor)

    carried: list[Any] = []

    def record(*arguments: Any, group: Any) -> None:
        carried.extend(each[0] if isinstance(each, list) else each for each in arguments)

    monkeypatch.setattr(torch.Tensor, "to", move)
    for each in ("broadcast", "all_gather", "all_to_all_single", "all_reduce"):
        monkeypatch.setattr(torch.distributed, each, record)
    value = torch.arange(6).reshape(2, 3)
    arguments: dict[str, tuple[Any, ...]] = {
        "broadcast": (value, 0),
        "all_gather": (value,),
        "exchange": ([value], [value.shape]),
        "all_reduce_sum": (value,),
    }
    result = getattr(transport, name)(*arguments[name], cast("Any", NcclGroup()))
    result = result[0] if isinstance(result, list) else result
    tensors = [each for each in carried if isinstance(each, torch.Tensor)]
    assert tensors
    assert all(isinstance(each, OnCuda) for each in tensors)
    assert list(dict.fromkeys(moves)) == ["cuda", "cpu"]
    assert type(result) is torch.Tensor
    assert result.dtype == torch.int64
    assert tuple(result.shape) in ((2, 3), (1, 2, 3))


class ManyRanks(NcclGroup):
    """A group of as many ranks as a sum may have, which all hold the same."""

    def __init__(self, size: int):
        self.size = size

    def carrier(self, device: torch.device) -> torch.device:
        return device


@given(
    st.sampled_from([97, (1 << 50) - 27, 1125899906826241]),
    st.integers(1, 8192),
    st.floats(0, 1),
)
def test_sums_of_integers_at_the_edge_of_their_bound(
    prime: int, ranks: int, fraction: float
) -> None:
    residue = min(prime - 1, int(fraction * prime))
    values = torch.tensor([0, 1, residue, prime - 1]).reshape(1, 1, 4)
    group: Any = ManyRanks(ranks)
    bound = BoundResource.__new__(BoundResource)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(ciphertext_sums, "require_equal_layouts", lambda *arguments: [])
        patched.setattr(ciphertext_sums, "all_reduce_sum", lambda value, group: value * group.size)
        patched.setattr(
            TorchCiphertextSumAllReduceImplementation, "_group", lambda *arguments: group
        )
        invocation = OperationInvocation(distributed.AllReduceAddCiphertextOp, 2, 1)
        (total,) = TorchCiphertextSumAllReduceImplementation().execute(
            invocation, (values, torch.tensor([[prime]])), (bound,), in_place=False
        )
    assert total.flatten().tolist() == [int(v) * ranks % prime for v in values.flatten()]
