"""Random encrypted programs in IR text, compiled and run, against numpy's complex numbers.

Every value of a program is decrypted and compared. All parameters are INSECURE, for tests alone.
"""

import random
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache
from math import prod

import numpy as np
import pytest
import torch
from xdsl.dialects.builtin import FloatData

from fhelium.backend import (
    BoundResource,
    Compilation,
    OperationBackend,
    Pipeline,
    Program,
    ResourceBindings,
)
from fhelium.dialects.fields import scale_text
from fhelium.kernels.ntt import intt
from fhelium.scheme.ciphertext import Ciphertext, Plaintext
from fhelium.scheme.encoding import decode, encode
from fhelium.scheme.encryption import decrypt, encrypt
from fhelium.scheme.keys import (
    SecretKey,
    generate_conjugation_key,
    generate_public_key,
    generate_relinearization_key,
    generate_rotation_key,
    generate_secret_key,
)
from fhelium.scheme.parameters import Parameters

CASES = {
    "N64-scale40-digits4": Parameters.build(ring_degree=64, depth=3, scale_bits=40, insecure=True),
    "N64-scale40-digits2-of-3-primes": Parameters.build(
        ring_degree=64, depth=4, scale_bits=40, digits=2, insecure=True
    ),
    "N32-scale90-2-primes-a-level-digits3": Parameters.build(
        ring_degree=32, depth=3, scale_bits=90, digits=3, insecure=True
    ),
    "N16-scale40-digits1": Parameters.build(
        ring_degree=16, depth=2, scale_bits=40, digits=1, insecure=True
    ),
}
STEPS = (1, -1, 3, -6, 7)
OPS = (
    *("add", "sub", "negate", "add_plain", "sub_plain", "mul", "square", "mul_plain"),
    *("weighted_sum", "add_scalar", "mul_scalar", "mul_integer", "relinearize", "rescale"),
    *("mod_switch", "rotate", "rotate_many", "conjugate", "to_coefficient", "to_evaluation"),
)
LARGEST = 8.0
"""Messages stay below this, so that they fit the modulus at level 0."""

TOLERANCE = 2.0**-22
"""Of a value below 1; noise is some 2^12 at scale 2^40, before products."""


@cache
def keys(name: str) -> tuple[SecretKey, ResourceBindings]:
    secret = generate_secret_key(CASES[name])
    bound = [
        BoundResource("relin", "relinearization-key", generate_relinearization_key(secret)),
        BoundResource("conj", "conjugation-key", generate_conjugation_key(secret)),
    ]
    bound += [
        BoundResource(f"turn{step}", "rotation-key", generate_rotation_key(secret, step))
        for step in STEPS
    ]
    return secret, ResourceBindings(bound)


@dataclass(frozen=True)
class Value:
    """A ciphertext of the program under construction, and what it must decrypt to."""

    name: str
    level: int
    scale: float
    components: int
    form: str
    message: np.ndarray

    @property
    def type(self) -> str:
        return (
            f"!ckks.ciphertext<level = {self.level}, scale = {scale_text(FloatData(self.scale))}, "
            f"components = {self.components}, form = {self.form}>"
        )

    @property
    def state(self) -> tuple[int, float, int, str]:
        return self.level, self.scale, self.components, self.form


@dataclass
class Author:
    """Writes a program op by op; each method appends one of a kind, or nothing if none fits."""

    parameters: Parameters
    rng: random.Random
    batch: tuple[int, ...]
    values: list[Value] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    materials: dict[str, Plaintext] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)
    count: int = 0

    def fresh_message(self, *batch: int) -> np.ndarray:
        generator = np.random.default_rng(self.rng.getrandbits(32))
        shape = (*batch, self.parameters.slots)
        return (generator.uniform(-1, 1, shape) + 1j * generator.uniform(-1, 1, shape)) / 2**0.5

    def name(self) -> str:
        self.count += 1
        return f"%v{self.count}"

    def pick(self, fits: Callable[[Value], bool] = lambda value: True) -> Value:
        """Return one of the newest values that fit, so that programs get deep."""
        candidates = [value for value in self.values if fits(value)]
        if not candidates:
            raise LookupError
        return self.rng.choice(candidates[-4:])

    def emit(
        self, op: str, text: str, types: str, like: Value, message: np.ndarray, **changes: object
    ) -> None:
        """Append `text` unless the message gets too large; NEW in `types` is the result's type."""
        value = replace(like, name=self.name(), message=message, **changes)
        limbs = self.parameters.q_limbs(value.level)
        modulus = prod(self.parameters.primes[limb] for limb in limbs)
        largest = float(np.abs(message).max())
        if largest < LARGEST and largest * value.scale * 8 < modulus:
            types = types.replace("NEW", value.type)
            self.lines.append(f"{value.name} = ckks.{op} {text} : {types}")
            self.values.append(value)
            self.used.add(op)

    def plaintext(self, like: Value, scale: float) -> tuple[str, str, np.ndarray]:
        """Append a material and return its name, type and message."""
        message = self.fresh_message(*self.rng.choice([(), self.batch]))
        name = f"w{len(self.materials)}"
        self.materials[name] = encode(message, self.parameters, level=like.level, scale=scale)
        state = f"level = {like.level}, scale = {scale_text(FloatData(scale))}"
        type = f"!ckks.plaintext<{state}, form = evaluation>"
        self.lines.append(f"%{name} = fhelium.material @{name} : {type}")
        return f"%{name}", type, message

    def at_rest(self, value: Value) -> bool:
        return value.form == "evaluation" and value.components == 2

    def small(self, value: Value) -> bool:
        """Whether a product with a value of the default scale can be rescaled."""
        return value.level > 0 and value.scale < 2 * self.parameters.scale

    def factor(self, value: Value) -> bool:
        return self.at_rest(value) and self.small(value)

    # One method an op.

    def linear(self, op: str, sign: int) -> None:
        a = self.pick()
        b = self.pick(lambda v: v.state == a.state)
        self.emit(op, f"{a.name}, {b.name}", a.type, a, a.message + sign * b.message)

    def linear_plain(self, op: str, sign: int) -> None:
        a = self.pick(lambda v: v.form == "evaluation")
        name, type, message = self.plaintext(a, a.scale)
        self.emit(op, f"{a.name}, {name}", f"{a.type}, {type}", a, a.message + sign * message)

    def add(self) -> None:
        self.linear("add", 1)

    def sub(self) -> None:
        self.linear("sub", -1)

    def add_plain(self) -> None:
        self.linear_plain("add_plain", 1)

    def sub_plain(self) -> None:
        self.linear_plain("sub_plain", -1)

    def negate(self) -> None:
        a = self.pick()
        self.emit("negate", a.name, a.type, a, -a.message)

    def mul(self) -> None:
        a = self.pick(self.factor)
        b = self.pick(lambda v: self.factor(v) and v.level == a.level)
        message, types = a.message * b.message, f"({a.type}, {b.type}) -> NEW"
        state = {"scale": a.scale * b.scale, "components": 3}
        self.emit("mul", f"{a.name}, {b.name}", types, a, message, **state)

    def square(self) -> None:
        a = self.pick(self.factor)
        state = {"scale": a.scale * a.scale, "components": 3}
        self.emit("square", a.name, f"{a.type} -> NEW", a, a.message**2, **state)

    def mul_plain(self) -> None:
        a = self.pick(lambda v: self.small(v) and v.form == "evaluation")
        divisor = float(self.parameters.to_attribute().rescale_divisor(a.level))
        scale = self.rng.choice([self.parameters.scale, divisor])
        name, type, message = self.plaintext(a, scale)
        types = f"({a.type}, {type}) -> NEW"
        product = a.message * message
        self.emit("mul_plain", f"{a.name}, {name}", types, a, product, scale=a.scale * scale)

    def weighted_sum(self) -> None:
        a = self.pick(self.factor)
        b = self.pick(lambda v: v.state == a.state)
        scale = self.parameters.scale
        (p, type, first), (q, _, second) = self.plaintext(a, scale), self.plaintext(b, scale)
        text = f"{a.name}, {b.name} by {p}, {q}"
        types = f"({a.type}, {b.type}, {type}, {type}) -> NEW"
        message = a.message * first + b.message * second
        self.emit("weighted_sum", text, types, a, message, scale=a.scale * scale)

    def add_scalar(self) -> None:
        a, number = self.pick(), round(self.rng.uniform(-1, 1), 4)
        self.emit("add_scalar", f"{a.name}, {number:f}", a.type, a, a.message + number)

    def mul_scalar(self) -> None:
        a, number = self.pick(self.small), round(self.rng.uniform(-1.5, 1.5), 4)
        text, types = f"{a.name}, {number:f}", f"{a.type} -> NEW"
        scale = a.scale * self.parameters.scale
        self.emit("mul_scalar", text, types, a, a.message * number, scale=scale)

    def mul_integer(self) -> None:
        a, number = self.pick(), self.rng.choice([-3, -1, 2, 3])
        self.emit("mul_integer", f"{a.name}, {number}", a.type, a, a.message * number)

    def relinearize(self) -> None:
        a = self.pick(lambda v: v.form == "evaluation" and v.components == 3)
        types = f"{a.type} -> NEW"
        self.emit("relinearize", f"{a.name} with %relin", types, a, a.message, components=2)

    def rescale(self) -> None:
        a = self.pick(lambda v: v.level > 0 and not self.small(v))
        scale = a.scale / self.parameters.to_attribute().rescale_divisor(a.level)
        state = {"level": a.level - 1, "scale": scale}
        self.emit("rescale", a.name, f"{a.type} -> NEW", a, a.message, **state)

    def mod_switch(self) -> None:
        a = self.pick(lambda v: v.level > 0)
        level = self.rng.randrange(a.level)
        self.emit("mod_switch", a.name, f"{a.type} -> NEW", a, a.message, level=level)

    def rotate(self) -> None:
        a, step = self.pick(self.at_rest), self.rng.choice(STEPS)
        text = f"{a.name} by {step} with %turn{STEPS.index(step)}"
        types = f"{a.type}, !ckks.key<rotation, {step}>"
        self.emit("rotate", text, types, a, np.roll(a.message, -step, axis=-1))

    def rotate_many(self) -> None:
        a, steps = self.pick(self.at_rest), self.rng.sample(STEPS, 2)
        turned = [
            replace(a, name=self.name(), message=np.roll(a.message, -step, axis=-1))
            for step in steps
        ]
        names = ", ".join(value.name for value in turned)
        used = ", ".join(f"%turn{STEPS.index(step)}" for step in steps)
        types = ", ".join([a.type, *(f"!ckks.key<rotation, {step}>" for step in steps)])
        self.lines.append(
            f"{names} = ckks.rotate_many {a.name} by {steps} with {used} : "
            f"({types}) -> ({a.type}, {a.type})"
        )
        self.values += turned
        self.used.add("rotate_many")

    def conjugate(self) -> None:
        a = self.pick(self.at_rest)
        self.emit("conjugate", f"{a.name} with %conj", a.type, a, a.message.conj())

    def to_coefficient(self) -> None:
        a = self.pick(lambda v: v.form == "evaluation")
        types = f"{a.type} -> NEW"
        self.emit("to_coefficient", a.name, types, a, a.message, form="coefficient")

    def to_evaluation(self) -> None:
        a = self.pick(lambda v: v.form == "coefficient")
        types = f"{a.type} -> NEW"
        self.emit("to_evaluation", a.name, types, a, a.message, form="evaluation")

    def write(self, ops: Sequence[str]) -> None:
        for op in ops:
            with suppress(LookupError):
                getattr(self, op)()

    def program(self) -> str:
        state = (self.parameters.max_level, self.parameters.scale, 2, "evaluation")
        for _ in range(2):
            self.values.append(Value(self.name(), *state, self.fresh_message(*self.batch)))
        header = ", ".join(f"{value.name}: {value.type}" for value in self.values)
        # Products first, so that there is something to relinearize and to rescale.
        self.write(["mul", "square", "mul_plain", "rescale", "relinearize", "rescale"])
        while self.used != set(OPS):
            self.write(self.rng.sample(OPS, len(OPS)))
        types = ", ".join(value.type for value in self.values)
        lines = [
            f"module attributes {{ckks.parameters = {self.parameters.to_attribute()}}} {{",
            f"func.func @main({header}) -> ({types}) {{",
            "%relin = fhelium.resource @relin : !ckks.key<relinearization>",
            "%conj = fhelium.resource @conj : !ckks.key<conjugation>",
            *(
                f'%turn{i} = fhelium.resource @"turn{step}" : !ckks.key<rotation, {step}>'
                for i, step in enumerate(STEPS)
            ),
            *self.lines,
            f"func.return {', '.join(value.name for value in self.values)} : {types}",
            "}",
            "}",
        ]
        return "\n".join(lines)


BATCHES = {0: (), 1: (2,), 2: (2, 3)}


LOWERED = Pipeline.parse("cse,convert-ckks-to-rns,canonicalize,cse,dce")
"""Without the rules that round or divide less often than the whole ops do."""


@pytest.mark.timeout(60)
@pytest.mark.parametrize("seed", BATCHES)
@pytest.mark.parametrize("name", CASES)
def test_random_programs(name: str, seed: int) -> None:
    parameters = CASES[name]
    secret, bound = keys(name)
    author = Author(parameters, random.Random(f"{name} {seed}"), BATCHES[seed])
    text = author.program()
    public = generate_public_key(secret)
    inputs = [encrypt(encode(value.message, parameters), public) for value in author.values[:2]]
    compilation = Compilation(Program.parse(text), author.materials)
    backend = OperationBackend(named_resources=bound)
    lowered, whole = (backend.link(compilation, pipeline=p) for p in (LOWERED, Pipeline()))
    assert {op.name.split(".")[0] for op in lowered.dispatch_table.operations} == {"rns"}
    assert {op.name.split(".")[0] for op in whole.dispatch_table.operations} == {"ckks"}
    results, others = lowered.run(*inputs), whole.run(*inputs)
    assert isinstance(results, tuple)
    assert isinstance(others, tuple)
    assert len(results) == len(others) == len(author.values)
    for value, result, other in zip(author.values, results, others, strict=True):
        assert isinstance(result, Ciphertext)
        assert (result.level, result.components, result.form) == (
            value.level,
            value.components,
            value.form,
        )
        assert torch.equal(result.data, other.data), f"{value.name} of\n{text}"
        assert int(result.data.min()) >= 0
        moduli = torch.tensor([parameters.primes[i] for i in result.limbs]).unsqueeze(-1)
        assert bool((result.data < moduli).all())
        error = float(np.abs(decode(decrypt(result, secret)) - value.message).max())
        assert error < TOLERANCE * LARGEST, f"{value.name} is off by {error:.2g} in\n{text}"


@pytest.mark.timeout(60)
def test_transforms_between_a_sum_and_a_projection_settle() -> None:
    """Rules that move a transform in and out of the same op once chased each other forever here."""
    parameters = CASES["N64-scale40-digits4"]
    secret, _ = keys("N64-scale40-digits4")
    message = np.full(parameters.slots, 0.5)
    top = Value("%a", parameters.max_level, parameters.scale, 2, "evaluation", message)
    moved, low = replace(top, form="coefficient"), replace(top, level=1)
    dropped = replace(low, form="coefficient")
    text = f"""module attributes {{ckks.parameters = {parameters.to_attribute()}}} {{
func.func @main(%a: {top.type}, %b: {moved.type}) -> {low.type} {{
  %c = ckks.to_coefficient %a : {top.type} -> {moved.type}
  %d = ckks.add %c, %b : {moved.type}
  %e = ckks.mod_switch %d : {moved.type} -> {dropped.type}
  %f = ckks.to_evaluation %e : {dropped.type} -> {low.type}
  func.return %f : {low.type}
}}
}}"""
    compilation = Compilation(Program.parse(text))
    a = encrypt(encode(message, parameters), secret)
    b = intt(parameters.ring, a.limbs, a.data)
    result = OperationBackend().link(compilation).run(a, b)
    assert isinstance(result, Ciphertext)
    assert np.abs(decode(decrypt(result, secret)) - 1.0).max() < TOLERANCE
