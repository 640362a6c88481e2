"""Ranks that stop, die or raise in any collective, also in a part of a group, on four real ranks.

One launch meets with several faults, each in a new group of the ranks that are left.
"""

import os
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
import torch
import torch.distributed
from collective_programs import CIPHERTEXT, LIMBS, PARAMETERS, residues
from conftest import OnRanks
from faulty_ranks import DEADLINE, LIMIT, Told, kill_self, survivors, tell, world
from test_spmd_guard import SUM, run_each

from fhelium.backend import (
    BoundResource,
    Compilation,
    OperationBackend,
    Program,
    ResourceBindings,
)
from fhelium.backend.rank_watch import RankWatch

RANKS = 4
INTEGERS = "tensor<?xi64>"
OWN = f"%own = tensor.extract %v[%i] : {INTEGERS}\n  "
"""Where a rank raises that is given another index."""

COMBINE = f"""combine {{
  ^bb0(%a: {INTEGERS}, %b: {INTEGERS}):
    %c = arith.addi %a, %b : {INTEGERS}
    dist.yield %c : {INTEGERS}
  }}"""
# The first rank and the last send to each other; those between have no message.
BETWEEN_TWO = """%is_first = arith.cmpi eq, %rank, %zero : index
  %is_last = arith.cmpi eq, %rank, %last : index
  scf.if %is_SENDER {
    dist.send %x to RECEIVER_RANK in %world : TYPE
  }
  scf.if %is_RECEIVER {
    %y = dist.recv from SENDER_RANK in %world : TYPE
  }"""
OPS = {
    "broadcast": "%y = dist.broadcast %x from LAST in %world : TYPE",
    "all_gather": "%y = dist.all_gather %x along 0 in %world : TYPE -> TYPE",
    "gather": "%y = dist.gather %x to 0 along 0 in %world : TYPE -> TYPE",
    "scatter": "%y = dist.scatter %x from LAST along 0 in %world : TYPE -> TYPE",
    "all_to_all": "%y = dist.all_to_all %x along 0 in %world : TYPE -> TYPE",
    "all_reduce": f"%y = dist.all_reduce %x in %world : TYPE {COMBINE}",
    "reduce": f"%y = dist.reduce %x to 0 in %world : TYPE {COMBINE}",
    "reduce_scatter": f"%y = dist.reduce_scatter %x along 0 in %world : TYPE -> TYPE {COMBINE}",
    "all_reduce_add_ciphertext": "%y = dist.all_reduce_add_ciphertext %x in %world : TYPE",
    "all_reduce_add_ciphertexts": "%y, %z = dist.all_reduce_add_ciphertexts %x, %x in %world : "
    "TYPE, TYPE",
    "barrier": "dist.barrier in %world",
    "recv": BETWEEN_TWO.replace("SENDER", "last").replace("RECEIVER", "first"),
    "send": BETWEEN_TWO.replace("SENDER", "first").replace("RECEIVER", "last"),
    "split": "%y = dist.split %world by %color, %rank",
    "part": f"""%part = dist.split %world by %color, %rank
  {OWN}%y = dist.all_reduce %x in %part : TYPE {COMBINE}""",
}
OF_CIPHERTEXTS = "all_reduce_add_ciphertext", "all_reduce_add_ciphertexts"
FAULTY_CALLS = {
    "broadcast": ("broadcast", 1),
    # Before this one are the comparison of programs and that of layouts.
    "all_gather": ("all_gather", 3),
    "barrier": ("all_gather", 2),
    "split": ("all_gather", 3),
    "all_reduce_add_ciphertext": ("all_reduce", 1),
    "all_reduce_add_ciphertexts": ("all_reduce", 1),
    "recv": ("isend", 1),
    # Not the header, but the payload: it is larger than what sockets hold.
    "send": ("irecv", 2),
}
"""In which call of torch.distributed a rank fails, the how many-eth; else in an exchange."""


def program(op: str, size: int) -> Program:
    """Return a program of one op: half of the ranks are of one color, half of the other."""
    last, kind = str(size - 1), CIPHERTEXT if op in OF_CIPHERTEXTS else INTEGERS
    body = OPS[op].replace("last_RANK", last).replace("first_RANK", "0")
    body = body.replace("LAST", last).replace("TYPE", kind)
    text = f"""
func.func @main(%x: {kind}, %v: {INTEGERS}, %i: index) -> i64 {{
  %world = fhelium.resource @world : !dist.group
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %last = arith.constant {last} : index
  %half = arith.constant {size // 2} : index
  %rank = dist.rank %world
  %low = arith.cmpi slt, %rank, %half : index
  %color = arith.select %low, %zero, %one : index
  {body if OWN in body else f"{OWN}{body}"}
  func.return %own : i64
}}"""
    parameters = PARAMETERS.to_attribute()
    return Program.parse(f"module attributes {{ckks.parameters = {parameters}}} {{{text}}}")


def run_in_new_group(op: str, members: tuple[int, ...], index: int = 0) -> Told:
    """Run the program of one op in a new group, which it calls @world."""
    name = f"{op} of {len(members)} at {RankWatch.of_default_group().position.run}"
    # A deadline that is set counts, and not only that with which a group is made.
    group = world(LIMIT).part(members, name)
    group.set_deadline(timedelta(seconds=DEADLINE))
    bound = ResourceBindings([BoundResource("world", "process-group", group)])
    backend = OperationBackend(named_resources=bound)
    executable = backend.link(Compilation(program(op, len(members))))
    x = torch.arange(1 << 21 if op == "send" else 7)
    if op in OF_CIPHERTEXTS:
        x = residues(group.rank, 2, LIMBS, 16)
    began = time.monotonic()
    told = tell(executable.run, x, torch.arange(3), index)
    assert time.monotonic() - began < LIMIT / 4
    return told


class ResumedError(OSError):
    """What a rank raises that was stopped."""


def stop_for_a_while(*arguments: Any, **options: Any) -> None:
    os.kill(os.getpid(), signal.SIGSTOP)
    raise ResumedError


def lose_last(op: str, members: tuple[int, ...], fault: Callable[..., None]) -> Told:
    """Run one op, in which the last member meets with `fault`. The first one wakes it up again."""
    store = torch.distributed.distributed_c10d._get_default_store()
    rank = torch.distributed.get_rank()
    # They wait for one another, so that none is late for the new group.
    place = f"{op} {members}"
    meet(f"before {place}", members)
    if rank == members[-1]:
        store.set(f"process of {place}", str(os.getpid()))
        name, number = FAULTY_CALLS.get(op, ("all_to_all_single", 1))
        call, calls = getattr(torch.distributed, name), []

        def faulty(*arguments: Any, **options: Any) -> Any:
            calls.append(name)
            return (fault if len(calls) == number else call)(*arguments, **options)

        setattr(torch.distributed, name, faulty)
        told = run_in_new_group(op, members)
        setattr(torch.distributed, name, call)
        return told
    told = run_in_new_group(op, members)
    meet(f"after {place}", members[:-1])
    if rank == members[0] and fault is stop_for_a_while:
        os.kill(int(store.get(f"process of {place}")), signal.SIGCONT)
    return told


def meet(name: str, members: Sequence[int]) -> None:
    """Wait for others at the store. A rank that does so is one that answers."""
    store = torch.distributed.distributed_c10d._get_default_store()
    store.set(f"{name} {torch.distributed.get_rank()}", "")
    store.wait([f"{name} {member}" for member in members], timedelta(seconds=LIMIT))


def lose_one_after_the_other(ops: Sequence[str]) -> dict[str, Told]:
    """In each op another rank is killed: the last one of those that are left."""
    told: dict[str, Told] = {}
    for size, op in zip(range(RANKS, 1, -1), ops, strict=False):
        members = tuple(range(size))
        if torch.distributed.get_rank() in members:
            told[op] = lose_last(op, members, kill_self)
    return told


def stop_again_and_again(ops: Sequence[str]) -> dict[str, Told]:
    """In each op the last rank is stopped, until the others have seen that it does not answer."""
    return {op: lose_last(op, tuple(range(RANKS)), stop_for_a_while) for op in ops}


NO_ANSWER = "no longer answers: killed, stopped, stuck or cut off ("


def told_of(op: str, rank: int, members: Sequence[int], reason: str) -> str:
    """Return how the error begins on a rank, if the last member is lost; empty if it has none."""
    name, victim, where = op, members[-1], "@world"
    if op in ("send", "recv"):
        names_victim = rank == members[0]
    elif op == "part":
        half = members[len(members) // 2 :]
        name, names_victim = "all_reduce", rank in half
        where = f"%part, a part of @world (ranks {', '.join(map(str, half))})"
    else:
        names_victim = True
    if not names_victim:
        return ""
    return f"dist.{name} in {where} failed on rank {rank}: rank {victim} {reason}"


def check(op: str, rank: int, members: Sequence[int], told: Told, reason: str = NO_ANSWER) -> None:
    expected = told_of(op, rank, members, reason)
    assert told[0] == ("LostRankError" if expected else "nothing"), (op, rank, told)
    assert told[1].startswith(expected), (op, rank, told)


STOPPED = [
    pytest.param(("recv", "send", "part"), id="some"),
    pytest.param(tuple(OPS)[:7], id="others", marks=pytest.mark.long),
    pytest.param((*tuple(OPS)[7:11], "split"), id="more", marks=pytest.mark.long),
]


@pytest.mark.parametrize("ops", STOPPED)
def test_a_rank_that_is_stopped_is_named_within_the_deadline(ops: Sequence[str]) -> None:
    found = survivors(stop_again_and_again, RANKS, [RANKS - 1], ops)
    assert sorted(found) == list(range(RANKS - 1))
    for op in ops:
        for rank, told in found.items():
            check(op, rank, range(RANKS), told[op])


KILLED = [
    ("all_to_all", "reduce_scatter", "all_reduce_add_ciphertext"),
    *(
        pytest.param(ops, marks=pytest.mark.long)
        for ops in [
            ("all_reduce_add_ciphertext", "recv", "send"),
            ("part", "all_gather", "broadcast"),
            ("split", "gather", "scatter"),
            ("reduce", "barrier", "all_reduce_add_ciphertexts"),
        ]
    ),
]


@pytest.mark.parametrize("ops", KILLED, ids=" ".join)
def test_ranks_that_are_killed_are_named(ops: Sequence[str]) -> None:
    victims = range(RANKS - len(ops), RANKS)
    found = survivors(lose_one_after_the_other, RANKS, victims, ops)
    assert sorted(found) == list(range(RANKS - len(ops)))
    for rank, told in found.items():
        for size, op in zip(range(RANKS, 1, -1), ops, strict=False):
            check(op, rank, range(size), told[op])


def differ_and_raise() -> dict[str, Told]:
    parameters = [p.to_attribute() for p in (PARAMETERS, replace(PARAMETERS, scale=2.0**39))]
    texts = [f"module attributes {{ckks.parameters = {p}}} {{ {SUM} }}" for p in parameters]
    members = tuple(range(RANKS))
    index = 9 if torch.distributed.get_rank() == RANKS - 1 else 0
    told = {"parameters": run_each(*texts)}
    for op in ("reduce_scatter", "part"):
        told[op] = run_in_new_group(op, members, index)
        meet(op, members)
    return told


def test_a_rank_of_four_that_differs_or_raises(on_ranks: OnRanks) -> None:
    found = on_ranks(differ_and_raise, RANKS)
    difference = "the ranks of @world do not run the same: rank 3 differs from rank 0 in its param"
    for rank, told in enumerate(found):
        assert told["parameters"][0] == "RankMismatchError"
        assert told["parameters"][1].startswith(difference)
        for op in ("reduce_scatter", "part"):
            if rank == RANKS - 1:
                reason = "index 9 is outside dimension 0 of size 3"
                assert told[op] == ("IndexError", reason)
            else:
                check(op, rank, range(RANKS), told[op], "raised IndexError: index 9 is outside dim")
