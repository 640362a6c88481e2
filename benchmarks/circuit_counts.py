"""Count what the pipelines make of four circuits, beside the best counts known by hand.

Writes docs/comparison.md; `--check` writes nothing, and exits with 1 when it is out of date.
"""

import argparse
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import torch

import fhelium
from fhelium import Approximation
from fhelium.analyses.circuit_counts import CircuitCounts
from fhelium.frontends.program import Program
from fhelium.passes.pipeline import Pipeline

PAGE = Path(__file__).parents[1] / "docs" / "comparison.md"

FRONT = "canonicalize,secure-select-parameters,secure-pack"
SCHEDULES = ("ckks-default", "ckks-lazy")

INTRODUCTION = """\
*Key switches* are products with a key: rotations and relinearizations. *Hoisted* are those
rotations that need no decomposition of their own. *Rescales* include those that bring a value to
the scale of a lower level. *By hand* has the fewest known, at the levels that it states."""


@dataclass(frozen=True)
class ByHand:
    """The best counts known: what the literature has, or what follows from it."""

    key_switches: int
    rescales: int
    levels: int
    rotation_keys: int


@dataclass(frozen=True)
class Circuit:
    """A circuit of the comparison."""

    name: str
    program: Callable[[], Program]
    by_hand: ByHand
    because: str


def dot_product() -> Program:
    """Return the dot product of two secret vectors of 1,024 elements."""
    return Program.parse("""
        func.func @main(%x: !secure.tensor<1024>, %y: !secure.tensor<1024>) -> !secure.tensor<1> {
          %products = secure.mul %x, %y : !secure.tensor<1024>, !secure.tensor<1024>
          %sum = secure.sum %products over [0] : !secure.tensor<1024> -> !secure.tensor<1>
          func.return %sum : !secure.tensor<1>
        }""")


def matrix_product() -> Program:
    """Return the product of a public 128x128 matrix and a secret vector."""
    return Program.parse("""
        func.func @main(%x: !secure.tensor<128>) -> !secure.tensor<128> {
          %w = fhelium.material @w : tensor<128x128xf64>
          %y = secure.matvec %w, %x
            : tensor<128x128xf64>, !secure.tensor<128> -> !secure.tensor<128>
          func.return %y : !secure.tensor<128>
        }""")


def polynomial() -> Program:
    """Return a polynomial of degree 15 with no zero coefficient."""
    coefficients = ", ".join(str(0.5 / (i + 1)) for i in range(16))
    return Program.parse(f"""
        func.func @main(%x: !secure.tensor<64>) -> !secure.tensor<64> {{
          %y = secure.polynomial %x, [{coefficients}] in monomial : !secure.tensor<64>
          func.return %y : !secure.tensor<64>
        }}""")


def mlp() -> Program:
    """Return the MLP of examples/digits.py, untrained, on the interval that it has when trained."""
    layers = torch.nn.Sequential(torch.nn.Linear(64, 32), torch.nn.SiLU(), torch.nn.Linear(32, 10))
    silu = Approximation(degree=4, interval=(-7, 7), method="least_squares")
    return fhelium.compile(layers.eval(), (torch.zeros(64),), activations={"silu": silu})


CIRCUITS = (
    Circuit(
        "dot product of two secret vectors of 1,024",
        dot_product,
        ByHand(key_switches=11, rescales=1, levels=1, rotation_keys=10),
        "one relinearization, and log2(1024) = 10 rotations that each halve what is left to add "
        "(Halevi and Shoup, Algorithms in HElib, CRYPTO 2014).",
    ),
    Circuit(
        "public 128x128 matrix times secret vector",
        matrix_product,
        ByHand(key_switches=21, rescales=1, levels=1, rotation_keys=21),
        "128 diagonals by baby and giant steps: n1 + n2 - 2 rotations where n1 n2 is at least 128, "
        "which is least for 11 times 12 (Halevi and Shoup, Faster homomorphic linear "
        "transformations in HElib, CRYPTO 2018). All rotations and products come before the one "
        "rescale. `secure-pack` takes 16 times 8: a rotation more, but the 15 baby steps share one "
        "decomposition, so there are 8 decompositions and not 11.",
    ),
    Circuit(
        "polynomial of degree 15",
        polynomial,
        ByHand(key_switches=7, rescales=11, levels=4, rotation_keys=0),
        "four cubics q0 to q3 in (q0 + q1 x^4) + (q2 + q3 x^4) x^8, after Paterson and Stockmeyer "
        "(SIAM J. Comput., 1973), in the fewest levels, ceil(log2(16)). So that no level goes to "
        "coefficients alone, the leading term of a cubic is (c x) x^2. Relinearized are x^2, x^4, "
        "x^8, q1, q3, the second bracket and the whole: 7. Rescaled are those, and c x for each "
        "cubic: 11. With two levels more, Horner's rule on x^4 needs 6 products: x^2, x^3, x^4, "
        "and three by x^4.",
    ),
    Circuit(
        "MLP 64-32-10, SiLU of degree 4",
        mlp,
        ByHand(key_switches=20, rescales=5, levels=5, rotation_keys=13),
        "32 diagonals of the first matrix (n1 + n2 - 2 = 10 rotations), and one more to add the "
        "halves of its rows (Juvekar and others, GAZELLE, USENIX Security 2018, section 4); 16 of "
        "the second, padded to 16 rows (6 rotations, and one to add halves): 18. SiLU's polynomial "
        "is even but for x, so it takes x^2 and (c x^2) x^2: 2 relinearizations, and 3 rescales in "
        "3 levels; a rescale and a level go to each matrix. Keys: both matrices can share steps; "
        "13 is what is found, and no better count is known.",
    ),
)


@cache
def counts(circuit: Circuit, schedule: str) -> CircuitCounts:
    """Return the counts of a circuit, packed and scheduled."""
    program = circuit.program()
    Pipeline.parse(f"{FRONT},{schedule}").apply(program)
    return CircuitCounts.of(program.module)


def page() -> str:
    """Return the text of comparison.md."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield "# What the pipelines yield, and what is known by hand"
    yield ""
    yield "<!-- Generated by benchmarks/circuit_counts.py: change that, then run it. -->"
    yield ""
    yield f"Each circuit is packed by `{FRONT}` and then scheduled."
    yield from INTRODUCTION.splitlines()
    yield ""
    yield "| circuit | by | key switches | hoisted | rescales | levels | rotation keys |"
    yield "|---|---|---|---|---|---|---|"
    for circuit in CIRCUITS:
        for schedule in SCHEDULES:
            c = counts(circuit, schedule)
            yield (
                f"| {circuit.name} | `{schedule}` | {c.key_switches} | {c.hoisted} | {c.rescales} "
                f"| {c.levels} | {c.rotation_keys} |"
            )
        h = circuit.by_hand
        yield (
            f"| | by hand | {h.key_switches} | | {h.rescales} | {h.levels} | {h.rotation_keys} |"
        )
    yield ""
    yield "How the counts by hand come about:"
    yield ""
    for circuit in CIRCUITS:
        yield f"- **{circuit.name}**: {circuit.because}"
    yield ""
    yield "`python benchmarks/circuit_counts.py` writes this page."


def main() -> None:
    parser = argparse.ArgumentParser(description="Write docs/comparison.md.")
    parser.add_argument("--check", action="store_true", help="only say whether it is current")
    check = parser.parse_args().check
    text = page()
    if not check:
        PAGE.write_text(text)
    elif not PAGE.exists() or PAGE.read_text() != text:
        sys.exit(f"{PAGE.name} is out of date: run python benchmarks/circuit_counts.py")


if __name__ == "__main__":
    main()
