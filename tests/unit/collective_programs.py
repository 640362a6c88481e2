"""Programs that run every collective on one kind of payload, and what each rank must get.

Truth is computed on one rank: payloads are functions of the rank, so every rank knows them all.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import accumulate, pairwise
from typing import Any

import torch

from fhelium.backend import (
    BoundResource,
    Compilation,
    OperationBackend,
    Pipeline,
    ProcessGroupExecutionResource,
    Program,
    ResourceBindings,
)
from fhelium.backend.invocation import ELEMENT_DTYPES
from fhelium.scheme.parameters import Parameters

Tensor = torch.Tensor
Group = ProcessGroupExecutionResource

PARAMETERS = Parameters.build(ring_degree=16, depth=4, scale_bits=40, digits=2, insecure=True)
"""Five limbs, so that up to five ranks can share them. INSECURE: for tests alone."""

LIMBS = len(PARAMETERS.q_primes)
MODULI = torch.tensor(PARAMETERS.q_primes).unsqueeze(-1)

STATE = f"level = {PARAMETERS.max_level}, scale = 2^40"
CIPHERTEXT = f"!ckks.ciphertext<{STATE}, components = 2, form = evaluation>"
PLAINTEXT = f"!ckks.plaintext<{STATE}, form = evaluation>"


def poly(first: int, last: int) -> str:
    """The type of residue polynomials over a range of limbs."""
    return f"!rns.poly<basis = Q[{first}:{last}], components = 2, form = evaluation>"


def residues(rank: int, *shape: int) -> Tensor:
    """Residues that differ from rank to rank, `[..., limbs, N]`, as a view with other strides."""
    generator = torch.Generator().manual_seed(rank)
    rows = torch.randint(0, 1 << 62, (*reversed(shape),), generator=generator)
    view = rows.permute(*reversed(range(len(shape))))
    return view % MODULI if len(shape) > 1 else view


def strided(rank: int, *shape: int) -> Tensor:
    """Small integers that differ from rank to rank, as a view with gaps and other strides."""
    generator = torch.Generator().manual_seed(rank)
    wide = torch.randint(-9, 9, (*reversed(shape), 2), generator=generator)
    return wide[..., 1].permute(*reversed(range(len(shape))))


@dataclass(frozen=True)
class Kind:
    """A kind of payload: its type as a whole and as a share, and its value on each rank.

    `value` has one layout on every rank, `ragged` another size of dimension 0 on each. `combine` is
    the op of an elementwise region, with the function that it computes.
    """

    type: str
    value: Callable[[int], Tensor]
    ragged: Callable[[int], Tensor]
    combine: str
    function: Callable[[Tensor, Tensor], Tensor]

    def joined(self, values: Sequence[Tensor]) -> Tensor:
        """Values joined along dimension 0; ciphertexts without a batch are batches of one."""
        tensors = self.type.startswith("tensor")
        return torch.cat([v if tensors or v.ndim > 3 else v.unsqueeze(0) for v in values])


def subtract(a: Tensor, b: Tensor) -> Tensor:
    return (a - b) % MODULI


KINDS = {
    "ciphertext": Kind(
        CIPHERTEXT,
        lambda rank: residues(rank, 2, LIMBS, 16),
        lambda rank: residues(rank, rank + 1, 2, LIMBS, 16),
        "ckks.sub %a, %b : {type}",
        subtract,
    ),
    "batch": Kind(
        CIPHERTEXT,
        lambda rank: residues(rank, 5, 2, LIMBS, 16),
        lambda rank: residues(rank, 3 * (rank % 2), 2, LIMBS, 16),
        "ckks.sub %a, %b : {type}",
        subtract,
    ),
    "plaintext": Kind(
        PLAINTEXT,
        lambda rank: residues(rank, 7, 1, LIMBS, 16),
        lambda rank: residues(rank, 2 - rank % 2, 1, LIMBS, 16),
        # No op adds plaintexts: a region may keep one of the two.
        "arith.select %true, %b, %a : {type}",
        lambda a, b: b,
    ),
    "poly": Kind(
        poly(0, LIMBS),
        lambda rank: residues(rank, 2, 3, 2, LIMBS, 16),
        lambda rank: residues(rank, rank, 2, 2, LIMBS, 16),
        "rns.sub %a, %b : ({type}, {type}) -> {type}",
        subtract,
    ),
    "ciphertexts": Kind(
        # No op combines tensors of ciphertexts either.
        f"tensor<?x{CIPHERTEXT}>",
        lambda rank: residues(rank, 4, 2, LIMBS, 16),
        lambda rank: residues(rank, rank + 1, 2, LIMBS, 16),
        "arith.select %true, %b, %a : {type}",
        lambda a, b: b,
    ),
    "integers": Kind(
        "tensor<?x3xi64>",
        lambda rank: strided(rank, 7, 3),
        lambda rank: strided(rank, rank + 2, 3),
        "arith.subi %a, %b : {type}",
        lambda a, b: a - b,
    ),
    "floats": Kind(
        "tensor<?x3xf64>",
        lambda rank: strided(rank, 7, 3).double() / 7,
        lambda rank: strided(rank, 5 * (rank % 2), 3).double() / 7,
        "arith.mulf %a, %b : {type}",
        lambda a, b: a * b,
    ),
    "key": Kind(
        # The residues of a switching key as data, cut and joined by digits.
        "tensor<?x2x?x?xi64>",
        lambda rank: residues(rank, 3, 2, LIMBS, 16),
        lambda rank: residues(rank, rank + 1, 2, LIMBS, 16),
        "arith.addi %a, %b : {type}",
        lambda a, b: a + b,
    ),
}

ELEMENTS = {
    str(element): Kind(
        f"tensor<?x{element}>",
        lambda rank, dtype=dtype: strided(rank, 7).to(dtype),
        lambda rank, dtype=dtype: strided(rank, rank + 1).to(dtype),
        "arith.select %true, %b, %a : {type}",
        lambda a, b: b,
    )
    for element, dtype in ELEMENT_DTYPES.items()
}
"""Tensors of all that torch has numbers for."""

BODY = """
  %world = fhelium.resource @world : !dist.group
  dist.barrier in %world
  %broadcast = dist.broadcast %x from LAST in %world : TYPE
  %all_gather = dist.all_gather %x along 0 in %world : TYPE -> TYPE
  %ragged_gather = dist.all_gather %ragged along 0 in %world : TYPE -> TYPE
  %gather = dist.gather %ragged to LAST along 0 in %world : TYPE -> TYPE
  %scatter = dist.scatter %all_gather from LAST along 0 in %world : TYPE -> TYPE
  %of_gather = dist.scatter %gather from LAST along 0 in %world : TYPE -> TYPE
  %all_to_all = dist.all_to_all %ragged along 0 in %world : TYPE -> TYPE
  %all_reduce = dist.all_reduce %x in %world : TYPE combine {
  ^bb0(%a: TYPE, %b: TYPE):
    %c = COMBINE
    dist.yield %c : TYPE
  }
  %folded = dist.all_reduce %x in %world : TYPE combine {
  ^bb0(%a: TYPE, %b: TYPE):
    %c = COMBINE
    %captured = arith.select %true, %c, %broadcast : TYPE
    dist.yield %captured : TYPE
  }
  %reduce = dist.reduce %x to LAST in %world : TYPE combine {
  ^bb0(%a: TYPE, %b: TYPE):
    %c = COMBINE
    dist.yield %c : TYPE
  }
  %folded_on_root = dist.reduce %x to LAST in %world : TYPE combine {
  ^bb0(%a: TYPE, %b: TYPE):
    %c = COMBINE
    %captured = arith.select %true, %c, %broadcast : TYPE
    dist.yield %captured : TYPE
  }
  %reduce_scatter = dist.reduce_scatter %x along 0 in %world : TYPE -> TYPE combine {
  ^bb0(%a: TYPE, %b: TYPE):
    %c = COMBINE
    dist.yield %c : TYPE
  }
"""

RESULTS = (
    *("broadcast", "all_gather", "ragged_gather", "gather", "scatter", "of_gather", "all_to_all"),
    *("all_reduce", "folded", "reduce", "folded_on_root", "reduce_scatter", "passed"),
)


def chain(size: int) -> str:
    """Ops that pass a value from the first rank to the last, one to the next."""
    lines = ["%passed0 = arith.select %true, %x, %x : TYPE"]
    for rank in range(size):
        lines.append(f"%i{rank} = arith.constant {rank} : index")
        lines.append(f"%is{rank} = arith.cmpi eq, %rank, %i{rank} : index")
    for sender in range(size - 1):
        receiver = sender + 1
        lines += [
            f"scf.if %is{sender} {{",
            f"  dist.send %passed{sender} to {receiver} in %world tag {7 * sender} : TYPE",
            "}",
            f"%passed{receiver} = scf.if %is{receiver} -> (TYPE) {{",
            f"  %r = dist.recv from {sender} in %world tag {7 * sender} : TYPE",
            "  scf.yield %r : TYPE",
            "} else {",
            f"  scf.yield %passed{sender} : TYPE",
            "}",
        ]
    lines.append(f"%passed = arith.select %true, %passed{size - 1}, %x : TYPE")
    return "\n".join(lines)


def module(body: str) -> Program:
    """A program under the parameters."""
    text = f"module attributes {{ckks.parameters = {PARAMETERS.to_attribute()}}} {{{body}}}"
    return Program.parse(text)


def run(
    program: Program,
    group: Group,
    *inputs: Any,
    pipeline: Pipeline | None = None,
) -> Any:
    """Run a program on this rank, in a group that it calls `@world`."""
    world = ResourceBindings([BoundResource("world", "process-group", group)])
    backend = OperationBackend(named_resources=world)
    return backend.link(Compilation(program), pipeline=pipeline).run(*inputs)


def kind_program(kind: Kind, size: int) -> Program:
    """The program of all collectives on one kind of payload."""
    names, types = ", ".join(f"%{name}" for name in RESULTS), ", ".join(["TYPE"] * len(RESULTS))
    body = f"""
func.func @main(%x: TYPE, %ragged: TYPE) -> ({types}) {{
  %true = arith.constant true
  {BODY}
  %rank = dist.rank %world
  {chain(size)}
  func.return {names} : {types}
}}"""
    body = body.replace("COMBINE", kind.combine.format(type="TYPE"))
    return module(body.replace("TYPE", kind.type).replace("LAST", str(size - 1)))


def shares(whole: Tensor, size: int, axis: int = 0) -> list[Tensor]:
    """The shares of ranks: torch's own rule for pieces of nearly one size."""
    return list(whole.tensor_split(size, dim=axis))


def expected_results(kind: Kind, rank: int, size: int) -> dict[str, Tensor]:
    """What each result of `kind_program` is on one rank."""
    values = [kind.value(r) for r in range(size)]
    ragged = [kind.ragged(r) for r in range(size)]
    total = reduce(kind.function, values)
    whole, uneven = kind.joined(values), kind.joined(ragged)
    root = size - 1
    return {
        "broadcast": values[root],
        "all_gather": whole,
        "ragged_gather": uneven,
        "gather": uneven if rank == root else torch.zeros_like(uneven),
        "scatter": shares(whole, size)[rank],
        "of_gather": shares(uneven, size)[rank],
        "all_to_all": torch.cat([shares(kind.joined([each]), size)[rank] for each in ragged]),
        "all_reduce": total,
        "folded": total,
        "reduce": total if rank == root else values[rank],
        "folded_on_root": total if rank == root else values[rank],
        "reduce_scatter": shares(kind.joined([total]), size)[rank],
        "passed": values[0],
    }


def kind_faults(kind: Kind, pipeline: str | None) -> dict[str, str]:
    """Run the program of one kind, and return what is wrong with each result, or nothing."""
    group = Group()
    x, ragged = kind.value(group.rank), kind.ragged(group.rank)
    before = x.clone(), ragged.clone()
    chosen = None if pipeline is None else Pipeline.parse(pipeline)
    results = run(kind_program(kind, group.size), group, x, ragged, pipeline=chosen)
    expected = expected_results(kind, group.rank, group.size)
    assert torch.equal(x, before[0])
    assert torch.equal(ragged, before[1])
    faults: dict[str, str] = {}
    for result, found in zip(RESULTS, results, strict=True):
        wanted = expected[result]
        same = found.dtype == wanted.dtype and torch.equal(found, wanted)
        faults[result] = "" if same else f"found {found}, expected {wanted}"
        # `passed` may be the value itself: no collective stands between.
        if result != "passed" and found.numel():
            shared = found.untyped_storage().data_ptr() in (
                x.untyped_storage().data_ptr(),
                ragged.untyped_storage().data_ptr(),
            )
            faults[result] += " an alias of the operand" if shared else ""
    return faults


def limb_ranges(size: int) -> list[tuple[int, int]]:
    """The limbs of each rank."""
    counts = [LIMBS // size + (rank < LIMBS % size) for rank in range(size)]
    return list(pairwise(accumulate(counts, initial=0)))
