"""Random ckks programs with loops and branches, beside what they compute. For tests alone.

A program is drawn as statements on named values. Each gives its text, and changes the numbers in a
dictionary by name, so that the truth is numpy's and no interpreter's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from clients import Values, message
from hypothesis import strategies as st

Numbers = dict[str, Values]
Effect = Callable[[Numbers], None]

STEPS = (1, -3, 7)
SCALARS = (0.5, -0.3, 2.0, 1.0)
LEAVES = ("add", "sub", "mul", "mul_plain", "add_plain", "mul_scalar", "add_scalar", "square",
          "negate", "rotate")  # fmt: skip


@dataclass
class Structured:
    """A program text under construction, and what its statements do to numbers."""

    draw: st.DrawFn
    slots: int
    nesting: int = 2
    count: int = 0
    head: list[str] = field(default_factory=list)

    def name(self) -> str:
        self.count += 1
        return f"%v{self.count}"

    def block(self, scope: list[str], depth: int, most: int) -> tuple[list[str], list[Effect]]:
        """Draw statements; what they define joins `scope`."""
        lines, effects = list[str](), list[Effect]()
        for _ in range(self.draw(st.integers(1, most))):
            kinds = ["leaf"] * 4 + (["for", "if"] if depth < self.nesting else [])
            match self.draw(st.sampled_from(kinds)):
                case "for":
                    text, effect = self.loop(scope, depth + 1)
                case "if":
                    text, effect = self.branch(scope, depth + 1)
                case _:
                    text, effect = self.leaf(scope)
            lines += ["  " + line for line in text]
            effects.append(effect)
        return lines, effects

    def leaf(self, scope: list[str]) -> tuple[list[str], Effect]:
        draw, name = self.draw, self.name()
        x, y = draw(st.sampled_from(scope[::-1])), draw(st.sampled_from(scope[::-1]))
        p, c, step = draw(st.integers(0, 1)), draw(st.sampled_from(SCALARS)), 0
        match draw(st.sampled_from(LEAVES)):
            case "add":
                text, of = f"add {x}, {y} : !ct", lambda n: n[x] + n[y]
            case "sub":
                text, of = f"sub {x}, {y} : !ct", lambda n: n[x] - n[y]
            case "mul":
                text, of = f"mul {x}, {y} : (!ct, !ct) -> !ct", lambda n: n[x] * n[y]
            case "mul_plain":
                text = f"mul_plain {x}, %p{p} : (!ct, !pt) -> !ct"
                of = lambda n: n[x] * n[f"%vector{p}"]  # noqa: E731
            case "add_plain":
                text, of = f"add_plain {x}, %p{p} : !ct, !pt", lambda n: n[x] + n[f"%vector{p}"]
            case "mul_scalar":
                text, of = f"mul_scalar {x}, {c} : !ct -> !ct", lambda n: c * n[x]
            case "add_scalar":
                text, of = f"add_scalar {x}, {c} : !ct", lambda n: n[x] + c
            case "square":
                text, of = f"square {x} : !ct -> !ct", lambda n: n[x] * n[x]
            case "negate":
                text, of = f"negate {x} : !ct", lambda n: -n[x]
            case _:
                step = draw(st.sampled_from(STEPS))
                text = f"rotate {x} by {step} with %k{STEPS.index(step)} : !ct, "
                text += f"!ckks.key<rotation, {step}>"
                of = lambda n: np.roll(n[x], -step)  # noqa: E731
        scope.append(name)
        return [f"{name} = ckks.{text}"], lambda n: n.update({name: of(n)})

    def loop(self, scope: list[str], depth: int) -> tuple[list[str], Effect]:
        """A loop that carries one or two values, and may use neither."""
        draw = self.draw
        trips, carried = draw(st.integers(1, 3)), draw(st.integers(1, 2))
        starts = [draw(st.sampled_from(scope)) for _ in range(carried)]
        arguments = [self.name() for _ in starts]
        inner = [*scope, *arguments]
        lines, effects = self.block(inner, depth, 3)
        ends = [draw(st.sampled_from(inner[len(scope) :][::-1])) for _ in starts]
        results = [self.name() for _ in starts]
        scope += results
        types = ", ".join(["!ct"] * carried)
        pairs = ", ".join(f"{a} = {s}" for a, s in zip(arguments, starts, strict=True))

        def run(numbers: Numbers) -> None:
            values = [numbers[each] for each in starts]
            for _ in range(trips):
                numbers |= dict(zip(arguments, values, strict=True))
                for effect in effects:
                    effect(numbers)
                values = [numbers[each] for each in ends]
            numbers |= dict(zip(results, values, strict=True))

        text = [
            f"{', '.join(results)} = scf.for %i{self.count} = %zero to %c{trips} step %c1 "
            f"iter_args({pairs}) -> ({types}) {{",
            *lines,
            f"  scf.yield {', '.join(ends)} : {types}",
            "}",
        ]
        return text, run

    def branch(self, scope: list[str], depth: int) -> tuple[list[str], Effect]:
        result, sides = self.name(), list[tuple[list[str], list[Effect], str]]()
        for _ in range(2):
            inner = list(scope)
            lines, effects = self.block(inner, depth, 2)
            sides.append((lines, effects, self.draw(st.sampled_from(inner[::-1]))))
        (then, then_do, then_end), (other, other_do, other_end) = sides
        scope.append(result)

        def run(numbers: Numbers) -> None:
            taken, end = (then_do, then_end) if numbers["%flag"].any() else (other_do, other_end)
            for effect in taken:
                effect(numbers)
            numbers[result] = numbers[end]

        text = [f"{result} = scf.if %flag -> (!ct) {{", *then, f"  scf.yield {then_end} : !ct"]
        text += ["} else {", *other, f"  scf.yield {other_end} : !ct", "}"]
        return text, run


@dataclass(frozen=True)
class Drawn:
    """A program text, its inputs, and its results."""

    text: str
    inputs: tuple[Values, ...]
    vectors: tuple[Values, ...]
    flag: bool
    results: tuple[Values, ...]


@st.composite
def structured(draw: st.DrawFn, slots: int) -> Drawn:
    """Draw a program of two ciphertexts, one of which nothing may use, two vectors and a flag."""
    flag = draw(st.booleans())
    numbers: Numbers = {f"%x{i}": message(i, slots) for i in range(2)}
    vectors = tuple(message(10 + i, slots).real.astype(np.complex128) for i in range(2))
    numbers |= {f"%vector{i}": vector for i, vector in enumerate(vectors)}
    numbers["%flag"] = np.full(1, flag, dtype=np.complex128)
    inputs = tuple(numbers[f"%x{i}"] for i in range(2))
    scope = ["%x0", "%x1"]
    lines, effects = Structured(draw, slots).block(scope, 0, 5)
    for effect in effects:
        effect(numbers)
    ends = draw(st.lists(st.sampled_from(scope[::-1]), min_size=1, max_size=2))
    types = ", ".join(["!ct"] * len(ends))
    head = [
        *(f"%c{n} = arith.constant {n} : index" for n in (1, 2, 3)),
        "%zero = arith.constant 0 : index",
        *(
            f"%k{i} = fhelium.resource @rotation_{str(s).replace('-', 'minus_')} : "
            f"!ckks.key<rotation, {s}>"
            for i, s in enumerate(STEPS)
        ),
        *(f"%p{i} = ckks.encode %vector{i} : tensor<{slots}xf64> -> !pt" for i in range(2)),
    ]
    arguments = "%x0: !ct, %x1: !ct, %vector0: !vector, %vector1: !vector, %flag: i1"
    text = (
        f"!ct = !ckks.ciphertext\n!pt = !ckks.plaintext\n!vector = tensor<{slots}xf64>\n"
        f"func.func @main({arguments}) -> ({types}) {{\n  "
        + "\n  ".join(head)
        + "\n"
        + "\n".join(lines)
        + f"\n  func.return {', '.join(ends)} : {types}\n}}\n"
    )
    return Drawn(text, inputs, vectors, flag, tuple(numbers[end] for end in ends))
