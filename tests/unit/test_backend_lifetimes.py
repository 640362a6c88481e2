"""Temporaries are released at last use: which tensors are alive as each op starts.

Every probe writes down the labels of the tensors that probes made and that are still alive, at the
moment it is called. Without the `del` lines of the host code each of these tests fails.
"""

import random
import re
import weakref
from dataclasses import dataclass, field

import pytest
import torch
from test_backend_control_flow import WORLD, LocalFold
from test_backend_third_party import Probe, Tensors, linked

from fhelium.backend import OperationInvocation
from fhelium.backend.host_code import HostCode


@dataclass
class Watch:
    """The labels of the tensors that are alive, and what was alive when each probe was called."""

    alive: list[str] = field(default_factory=list)
    log: list[tuple[str, str]] = field(default_factory=list)

    def probe(self, invocation: OperationInvocation, inputs: Tensors, in_place: bool) -> Tensors:
        label = str(invocation.attributes["label"])
        self.log.append((label, "".join(sorted(self.alive))))
        outputs = tuple(torch.zeros(2, dtype=torch.int64) for _ in range(invocation.result_count))
        for position, output in enumerate(outputs):
            name = label if position == 0 else label.upper()
            self.alive.append(name)
            weakref.finalize(output, self.alive.remove, name)
        return outputs


T = "tensor<2xi64>"


PROBE = re.compile(
    r"^ *(?P<results>-|%\w+(?:, %\w+)*) : (?P<label>[a-z])(?P<operands>(?: %\w+)*)$", re.M
)
"""A line such as `%a, %b : c %x %y`: the probe c of two values, with two results."""


def expanded(text: str) -> str:
    """Write out the lines that call a probe, and the type `T`."""

    def call(match: re.Match[str]) -> str:
        results, operands = match["results"].strip("-"), match["operands"].split()
        left, right = ", ".join(["T"] * results.count("%")), ", ".join(["T"] * len(operands))
        head = f"{results} = " if results else ""
        return (
            f'{head}"probe.op"({", ".join(operands)}) {{label = "{match["label"]}"}} '
            f": ({right}) -> ({left})"
        )

    return re.sub(r"\bT\b", T, PROBE.sub(call, text))


def watched(text: str) -> tuple[list[tuple[str, str]], str]:
    """Run a program; return the log, and what is alive while the caller holds the results."""
    watch = Watch()
    executable = linked(expanded(text), Probe(watch.probe), LocalFold(), named_resources=WORLD)
    results = executable.run(torch.zeros(2, dtype=torch.int64))
    left = "".join(sorted(watch.alive))
    del results
    assert watch.alive == [], "nothing outlives the results"
    return watch.log, left


STRAIGHT_LINE = """
func.func @main(%x: T) -> T {
  %a : a %x
  %b : b %a
  %c : c %a %b
  %d, %e : d %c
  %u : u %d
  - : s %d
  %f : f %e
  func.return %f : T
}"""

LOOP = """
func.func @main(%x: T) -> (T, T) {
  %lo = arith.constant 0 : index
  %one = arith.constant 1 : index
  %hi = arith.constant 3 : index
  %a : a %x
  %b : b %x
  %c : c %x
  %r = scf.for %i = %lo to %hi step %one iter_args(%p = %a) -> (T) {
    %d : d %p
    %e : e %d %b
    %f : f %e
    scf.yield %f : T
  }
  %g : g %r
  %h : h %c
  func.return %g, %h : T, T
}"""

SWAP = """
func.func @main(%x: T) -> T {
  %lo = arith.constant 0 : index
  %one = arith.constant 1 : index
  %hi = arith.constant 2 : index
  %a : a %x
  %b : b %x
  %r, %s = scf.for %i = %lo to %hi step %one iter_args(%p = %a, %q = %b) -> (T, T) {
    %c : c %q
    scf.yield %c, %p : T, T
  }
  %d : d %s
  func.return %d : T
}"""

NESTED = """
func.func @main(%x: T) -> T {
  %lo = arith.constant 0 : index
  %one = arith.constant 1 : index
  %hi = arith.constant 2 : index
  %a : a %x
  %r = scf.for %i = %lo to %hi step %one iter_args(%p = %a) -> (T) {
    %b : b %x
    %s = scf.for %j = %lo to %hi step %one iter_args(%q = %p) -> (T) {
      %c : c %q %b
      scf.yield %c : T
    }
    %d : d %s
    scf.yield %d : T
  }
  func.return %r : T
}"""

BRANCH = """
func.func @main(%x: T) -> T {
  %true = arith.constant true
  %a : a %x
  %b : b %x
  %r = scf.if %true -> (T) {
    %c : c %a
    %d : d %c
    %e : e %d
    scf.yield %e : T
  } else {
    scf.yield %b : T
  }
  %f : f %r
  %g : g %f
  func.return %g : T
}"""

CALL = """
func.func @callee(%p: T, %unused: T) -> (T, T) {
  %b : b %p
  %c : c %b
  %d : d %c
  func.return %c, %d : T, T
}
func.func @main(%x: T) -> T {
  %a : a %x
  %r, %s = func.call @callee(%a, %a) : (T, T) -> (T, T)
  %e : e %r
  %f : f %s
  func.return %f : T
}"""

COMBINE = """
func.func @main(%x: T) -> T {
  %world = fhelium.resource @world : !dist.group
  %a : a %x
  %b : b %x
  %r = dist.all_reduce %a in %world : T combine {
  ^bb0(%p: T, %q: T):
    %c : c %p %q %b
    %d : d %c
    %e : e %d
    dist.yield %e : T
  }
  %f : f %r
  %g : g %f
  func.return %g : T
}"""

# What each probe finds alive, in the order of the calls, and what is left with the results.
CASES: dict[str, tuple[str, str, str]] = {
    "straight-line": (STRAIGHT_LINE, "a: b:a c:ab d:c u:Dd s:Dd f:D", "f"),
    "loop": (
        LOOP,
        "a: b:a c:ab d:abc e:bcd f:bce d:bcf e:bcd f:bce d:bcf e:bcd f:bce g:cf h:cg",
        "gh",
    ),
    "swap": (SWAP, "a: b:a c:ab c:ac d:c", "d"),
    "nested": (NESTED, "a: b:a c:ab c:bc d:c b:d c:bd c:bc d:c", "d"),
    "branch": (BRANCH, "a: b:a c:ab d:abc e:abd f:e g:f", "g"),
    "call": (CALL, "a: b:a c:ab d:ac e:cd f:d", "f"),
    "combine": (COMBINE, "a: b:a c:ab d:abc e:abd f:e g:f", "g"),
}


@pytest.mark.parametrize("name", CASES)
def test_temporaries_are_released_at_last_use(name: str) -> None:
    text, expected, left = CASES[name]
    log, alive = watched(text)
    assert " ".join(f"{label}:{found}" for label, found in log) == expected
    assert alive == left


@pytest.mark.parametrize("name", CASES)
def test_without_del_the_watch_would_notice(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(HostCode, "delete", lambda self, values: None)
    text, expected, _ = CASES[name]
    log, _ = watched(text)
    assert " ".join(f"{label}:{found}" for label, found in log) != expected


@pytest.mark.parametrize("seed", range(10))
def test_random_straight_lines_hold_exactly_what_is_still_needed(seed: int) -> None:
    rng = random.Random(seed)
    labels = "abcdefghijklmnopqrstuvwxyz"
    operands = [
        [rng.choice(labels[:position]) for _ in range(rng.randint(0, 3) if position else 0)]
        for position in range(len(labels))
    ]
    returned = rng.choices(labels, k=2)
    lines = [
        f"%{label} : {label} {' '.join('%' + each for each in used)}".rstrip()
        for label, used in zip(labels, operands, strict=True)
    ]
    text = "func.func @main(%x0: T) -> (T, T) {\n" + "\n".join(lines)
    text += f"\nfunc.return %{returned[0]}, %{returned[1]} : T, T\n}}"
    log, left = watched(text)
    for position, (label, alive) in enumerate(log):
        needed = {each for used in operands[position:] for each in used} | set(returned)
        assert set(alive) == needed & set(labels[:position]), label
    assert set(left) == set(returned)
