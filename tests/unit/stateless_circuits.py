"""Random ckks circuits without state: what scheduling starts from. For tests alone."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from clients import Values, message
from hypothesis import strategies as st


@dataclass(frozen=True)
class Wire:
    """An encrypted value: its name in the text, what it is in the clear, and how deep it is."""

    name: str
    plain: Values
    depth: int


@dataclass
class Stateless:
    """A program text under construction, beside its inputs and values in the clear."""

    slots: int
    most: int
    lines: list[str] = field(default_factory=list)
    wires: list[Wire] = field(default_factory=list)
    vectors: list[npt.NDArray[np.float64]] = field(default_factory=list)
    inputs: list[Values] = field(default_factory=list)
    keys: set[str] = field(default_factory=set)

    def key(self, kind: str, step: int | None = None) -> str:
        name = kind if step is None else f"{kind}_{step}".replace("-", "minus_")
        type = kind if step is None else f"{kind}, {step}"
        line = f"%{name} = fhelium.resource @{name} : !ckks.key<{type}>"
        self.keys.add(line)
        return f"%{name}"

    def emit(self, text: str, plain: Values, depth: int) -> None:
        name = f"%w{len(self.wires)}"
        self.lines.append(f"{name} = {text}")
        self.wires.append(Wire(name, plain, depth))

    def plaintext(self, number: int) -> str:
        """Return an encoding, which others may use too."""
        line = f"%p{number} = ckks.encode %v{number} : !vector -> !ckks.plaintext"
        if line not in self.lines:
            self.lines.append(line)
        return f"%p{number}"

    def apply(self, name: str, x: Wire, y: Wire, number: int, scalar: float, step: int) -> None:
        """Append an op, unless it is too deep."""
        depth = max(x.depth, y.depth)
        vector = self.vectors[number]
        match name:
            case "add" | "sub":
                plain = x.plain + y.plain if name == "add" else x.plain - y.plain
                self.emit(f"ckks.{name} {x.name}, {y.name} : !ct", plain, depth)
            case "negate":
                self.emit(f"ckks.negate {x.name} : !ct", -x.plain, x.depth)
            case "mul" if depth < self.most:
                text = f"ckks.mul {x.name}, {y.name} : (!ct, !ct) -> !ct"
                self.emit(text, x.plain * y.plain, depth + 1)
            case "square" if x.depth < self.most:
                text = f"ckks.square {x.name} : !ct -> !ct"
                self.emit(text, x.plain * x.plain, x.depth + 1)
            case "mul_scalar" if x.depth < self.most:
                text = f"ckks.mul_scalar {x.name}, {scalar} : !ct -> !ct"
                self.emit(text, scalar * x.plain, x.depth + 1)
            case "add_scalar":
                self.emit(f"ckks.add_scalar {x.name}, {scalar} : !ct", x.plain + scalar, x.depth)
            case "mul_plain" if x.depth < self.most:
                text = f"ckks.mul_plain {x.name}, {self.plaintext(number)} : (!ct, !pt) -> !ct"
                self.emit(text, x.plain * vector, x.depth + 1)
            case "add_plain" | "sub_plain":
                plain = x.plain + vector if name == "add_plain" else x.plain - vector
                text = f"ckks.{name} {x.name}, {self.plaintext(number)} : !ct, !pt"
                self.emit(text, plain, x.depth)
            case "weighted_sum" if depth < self.most:
                weights = f"{self.plaintext(number)}, {self.plaintext(0)}"
                types = "(!ct, !ct, !pt, !pt) -> !ct"
                text = f"ckks.weighted_sum {x.name}, {y.name} by {weights} : {types}"
                self.emit(text, x.plain * vector + y.plain * self.vectors[0], depth + 1)
            case "rotate":
                key = self.key("rotation", step)
                text = (
                    f"ckks.rotate {x.name} by {step} with {key} : !ct, !ckks.key<rotation, {step}>"
                )
                self.emit(text, np.roll(x.plain, -step), x.depth)
            case "conjugate":
                text = f"ckks.conjugate {x.name} with {self.key('conjugation')} : !ct"
                self.emit(text, x.plain.conj(), x.depth)
            case _:
                pass

    def text(self, results: list[Wire]) -> str:
        arguments = [f"%w{i}: !ct" for i in range(len(self.inputs))]
        arguments += [f"%v{i}: !vector" for i in range(len(self.vectors))]
        types = ", ".join(["!ct"] * len(results))
        body = [*sorted(self.keys), *self.lines]
        body.append(f"func.return {', '.join(wire.name for wire in results)} : {types}")
        return (
            f"!ct = !ckks.ciphertext\n!pt = !ckks.plaintext\n!vector = tensor<{self.slots}xf64>\n"
            f"func.func @main({', '.join(arguments)}) -> ({types}) {{\n  "
            + "\n  ".join(body)
            + "\n}\n"
        )


OPS = [
    "add", "sub", "mul", "mul_plain", "mul_scalar", "rotate", "square", "negate", "add_scalar",
    "add_plain", "sub_plain", "weighted_sum", "conjugate",
]  # fmt: skip


@st.composite
def stateless(draw: st.DrawFn, slots: int, most: int) -> tuple[Stateless, list[Wire]]:
    """Draw a circuit on two ciphertexts and two vectors, and the wires that are its results."""
    circuit = Stateless(slots, most)
    for number in range(2):
        circuit.inputs.append(message(number, slots))
        circuit.wires.append(Wire(f"%w{number}", circuit.inputs[-1], 0))
        circuit.vectors.append(message(10 + number, slots).real)
    for _ in range(draw(st.integers(1, 14))):
        wires = st.sampled_from(circuit.wires[::-1])
        circuit.apply(
            draw(st.sampled_from(OPS)),
            draw(wires),
            draw(wires),
            draw(st.integers(0, 1)),
            draw(st.sampled_from([0.5, -0.3, 1.0, -2.0, 0.0])),
            draw(st.sampled_from([1, 5, -3, slots // 2])),
        )
    results = draw(st.lists(st.sampled_from(circuit.wires[::-1]), min_size=1, max_size=2))
    return circuit, results
