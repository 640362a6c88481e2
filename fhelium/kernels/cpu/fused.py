"""Chains of pointwise ops in one pass: every input is read once, and only results are written.

What lies between stays in registers, as residues that are reduced only where their bound, which
`residues` tracks while the kernel is written, leaves no room. For words of n components of inputs
and m of results a kernel moves 8 (n + m) bytes, however many ops it does. Products of ciphertexts
are such a chain of one step.

A kernel is described by numbers alone, so that its description can be a name in the cache, and
nothing that a program says reaches the code.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from fractions import Fraction
from functools import cached_property

from xdsl.dialects.builtin import ModuleOp, f64
from xdsl.ir import SSAValue

from fhelium.kernels.cpu.builder import KernelBuilder
from fhelium.kernels.cpu.elementwise import ROWS_WORDS, operand_pointer, split_item
from fhelium.kernels.cpu.gather import gathered
from fhelium.kernels.cpu.residues import LIMIT, Modulus, Residue, load_residue, to_doubles
from fhelium.kernels.cpu.sizes import Components, SizeError

OPERAND_WORDS = ROWS_WORDS + 1
"""Arguments of an input or a result: address, and the words between entries, limbs, components."""

LARGEST = 256
"""Values of one component that a kernel has at most. It bounds the time that compiling takes."""

REDUCED = Fraction(1)
"""The bound of residues in [0, q), and the largest that a factor may have."""


class Code(IntEnum):
    """What a step computes from values a and b.

    Missing components of a sum count as zero. b is the number of a constant for `ADD_CONSTANT` (to
    component 0) and `SCALE`, that of a permutation for `GATHER`, and 0 where there is only one
    value.
    """

    ADD = 0
    SUBTRACT = 1
    NEGATE = 2
    MULTIPLY = 3
    SQUARE = 4
    ADD_CONSTANT = 5
    SCALE = 6
    GATHER = 7


BINARY = frozenset({Code.ADD, Code.SUBTRACT, Code.MULTIPLY})
WITH_CONSTANT = frozenset({Code.ADD_CONSTANT, Code.SCALE})


@dataclass(frozen=True)
class Recipe:
    """What one kernel computes: the components of its inputs, its steps, and its results.

    Values are numbered: inputs first, then the values of steps (code, a, b) in order. Raises
    `ValueError` for a step of another kind, or of values that are not there yet, and `SizeError`
    for more than `LARGEST` values.
    """

    components: tuple[int, ...]
    steps: tuple[tuple[int, int, int], ...]
    results: tuple[int, ...]

    def __post_init__(self) -> None:
        inputs = len(self.components)
        if not self.results or any(count < 1 for count in self.components):
            raise ValueError(
                "found a kernel without results, or an input without components, expected at least "
                "one of both: name a value as a result, and give each input 1 or more"
            )
        for number, (code, a, b) in enumerate(self.steps, inputs):
            if code not in tuple(Code):
                raise ValueError(
                    f"found the code {code}, expected 0 to {max(Code)}: write the code of one of "
                    f"{', '.join(each.name for each in Code)}, in this order"
                )
            values = (a, b) if code in BINARY else (a,)
            limit = inputs if code == Code.GATHER else number
            if not all(0 <= value < limit for value in values):
                raise ValueError(
                    f"found a step {Code(code).name} {a} {b} that makes value {number}, expected "
                    f"values below {limit}: name "
                    + ("an input" if code == Code.GATHER else "inputs or values of earlier steps")
                )
            if code not in BINARY and not 0 <= b < len(self.steps):
                raise ValueError(
                    f"found the number {b} in a step {Code(code).name}, expected one below that of "
                    f"steps, {len(self.steps)}: count constants and permutations from 0, and write "
                    "0 where there is none"
                )
        if not all(0 <= value < inputs + len(self.steps) for value in self.results):
            raise ValueError(
                f"found the results {self.results}, expected values of the kernel: name them by 0 "
                f"to {inputs + len(self.steps) - 1}, inputs first and then steps"
            )
        if (count := sum(self.value_components)) > LARGEST:
            raise SizeError(
                f"found {count} values of one component, expected at most {LARGEST}: cut the kernel"
            )

    @property
    def words(self) -> tuple[int, ...]:
        """The recipe as numbers: inputs, their components, steps, three words each, results."""
        steps = [word for step in self.steps for word in step]
        return (len(self.components), *self.components, len(self.steps), *steps, *self.results)

    @staticmethod
    def of_words(words: Sequence[int]) -> "Recipe":
        """Return the recipe of `words`. Raises `ValueError` where they are none."""
        numbers = list(words)
        inputs = numbers.pop(0) if numbers else 0
        components = tuple(numbers[:inputs])
        count = numbers[inputs] if 0 <= inputs < len(numbers) else -1
        rest = numbers[inputs + 1 :]
        if not 0 <= 3 * count < len(rest):
            raise ValueError(
                f"found {len(words)} sizes, expected inputs, the components of each, steps, "
                "three words for each, and results: write the number of inputs, and that of steps, "
                "before them"
            )
        steps = tuple((rest[i], rest[i + 1], rest[i + 2]) for i in range(0, 3 * count, 3))
        return Recipe(components, steps, tuple(rest[3 * count :]))

    @cached_property
    def value_components(self) -> tuple[int, ...]:
        """The number of components of each value."""
        counts = list(self.components)
        for code, a, b in self.steps:
            match code:
                case Code.ADD | Code.SUBTRACT:
                    counts.append(max(counts[a], counts[b]))
                case Code.MULTIPLY:
                    counts.append(counts[a] + counts[b] - 1)
                case Code.SQUARE:
                    counts.append(2 * counts[a] - 1)
                case _:
                    counts.append(counts[a])
        return tuple(counts)

    @property
    def constants(self) -> int:
        """How many constants each limb has."""
        return max((b + 1 for code, _, b in self.steps if code in WITH_CONSTANT), default=0)

    @property
    def permutations(self) -> int:
        """How many permutations there are."""
        return max((b + 1 for code, _, b in self.steps if code == Code.GATHER), default=0)

    def sources(self, value: int) -> frozenset[int]:
        """Return the inputs that a value depends on."""
        found: list[frozenset[int]] = [frozenset([i]) for i in range(len(self.components))]
        for code, a, b in self.steps:
            found.append(found[a] | found[b] if code in BINARY else found[a])
        return found[value]


def build_fused(*words: int) -> ModuleOp:
    """Return the kernel of a recipe, given by its words and then the vector width."""
    *numbers, width = words
    return build_recipe("fused", Recipe.of_words(numbers), width)


def build_multiply(first: Components, second: Components, width: int) -> ModuleOp:
    """Return x y of polynomials in s with `first` and `second` components."""
    return build_recipe("multiply", Recipe((first, second), ((Code.MULTIPLY, 0, 1),), (2,)), width)


def build_square(components: Components, width: int) -> ModuleOp:
    """Return x x, with each cross term once."""
    return build_recipe("square", Recipe((components,), ((Code.SQUARE, 0, 0),), (1,)), width)


def build_recipe(name: str, recipe: Recipe, width: int) -> ModuleOp:
    """Return the kernel of a recipe.

    Arguments: 0 N, 1 the table of q, 1/q and the constants of each limb, 2 the size of the batch,
    then `OPERAND_WORDS` for each input and each result, then the permutations (int64). Item i of
    the work is entry i modulo the batch of limb i / batch.
    """
    b = KernelBuilder(name, width)
    degree, table, count = b.integer_argument(0), b.pointer_argument(1), b.integer_argument(2)
    counts = [*recipe.components, *(recipe.value_components[value] for value in recipe.results)]
    behind = 3 + OPERAND_WORDS * len(counts)
    permutations = [b.pointer_argument(behind + i) for i in range(recipe.permutations)]
    with b.loop(b.begin, b.end) as work:
        limb, entry = split_item(b, work.index, count)
        row = b.at(table, b.multiply(limb, 2 + recipe.constants))
        m = Modulus.load(b, row, 0)
        constants = [b.load_splat(row, 2 + i, f64) for i in range(recipe.constants)]
        pointers: list[list[SSAValue]] = []
        for i, components in enumerate(counts):
            word = 3 + OPERAND_WORDS * i
            start = operand_pointer(b, word, entry, limb)
            step = b.integer_argument(word + ROWS_WORDS)
            pointers.append([b.at(start, b.multiply(step, c)) for c in range(components)])
        inputs = len(recipe.components)
        with b.loop(0, degree, width) as loop:
            steps = _Steps(m, recipe, pointers[:inputs], constants, permutations, loop.index)
            values = steps.run()
            for value, result in zip(recipe.results, pointers[inputs:], strict=True):
                for residue, pointer in zip(values[value], result, strict=True):
                    b.store(m.canonical(residue), pointer, loop.index)
    return b.finish()


Value = list[Residue]
"""One vector of each component."""


@dataclass(frozen=True)
class _Steps:
    """The body of the loop over the words: all steps, on the vectors at one place."""

    m: Modulus
    recipe: Recipe
    inputs: Sequence[Sequence[SSAValue]]
    constants: Sequence[SSAValue]
    permutations: Sequence[SSAValue]
    index: SSAValue

    def run(self) -> Mapping[int, Value]:
        """Write the steps and return the values by number."""
        values: dict[int, Value] = {}
        for value in self._read_in_place():
            pointers = self.inputs[value]
            values[value] = [load_residue(self.m.builder, p, self.index) for p in pointers]
        for number, step in enumerate(self.recipe.steps, len(self.inputs)):
            values[number] = self._step(step, values)
        return values

    def _read_in_place(self) -> list[int]:
        """Return the inputs that are used at the place of the result, each to be loaded once."""
        used = {*self.recipe.results}
        for code, a, b in self.recipe.steps:
            if code != Code.GATHER:
                used.update((a, b) if code in BINARY else (a,))
        return sorted(value for value in used if value < len(self.inputs))

    def _step(self, step: tuple[int, int, int], values: Mapping[int, Value]) -> Value:
        code, a, b = step
        m = self.m
        match code:
            case Code.ADD:
                common, rest = _paired(values[a], values[b])
                return [m.add(*_fitting(m, x, y)) for x, y in common] + rest
            case Code.SUBTRACT:
                x, y = values[a], values[b]
                common, rest = _paired(x, y)
                if len(y) > len(x):
                    rest = [self._negated(residue) for residue in rest]
                return [m.subtract(*_fitting(m, x, y)) for x, y in common] + rest
            case Code.NEGATE:
                return [self._negated(residue) for residue in values[a]]
            case Code.MULTIPLY:
                return _product(m, values[a], values[b])
            case Code.SQUARE:
                return _square(m, values[a])
            case Code.ADD_CONSTANT:
                first, *others = values[a]
                constant = Residue(self.constants[b], REDUCED)
                return [m.add(*_fitting(m, first, constant)), *others]
            case Code.SCALE:
                return [m.multiply(residue, self.constants[b]) for residue in values[a]]
            case _:
                return [self._gathered(pointer, b) for pointer in self.inputs[a]]

    def _negated(self, residue: Residue) -> Residue:
        return Residue(self.m.builder.fneg(residue.value), residue.bound)

    def _gathered(self, pointer: SSAValue, permutation: int) -> Residue:
        b = self.m.builder
        integers = gathered(b, pointer, self.permutations[permutation], self.index)
        return Residue(to_doubles(b, integers), REDUCED)


def _paired(x: Value, y: Value) -> tuple[list[tuple[Residue, Residue]], Value]:
    """Return the components that both have, and those that only one has."""
    common = list(zip(x, y, strict=False))
    return common, (x if len(x) > len(y) else y)[len(common) :]


def _fitting(m: Modulus, x: Residue, y: Residue) -> tuple[Residue, Residue]:
    """Return x and y, reduced as far as their sum and difference need to be exact."""
    if x.bound + y.bound < LIMIT:
        return x, y
    return _fitting(m, m.reduce(x), y) if x.bound >= y.bound else _fitting(m, x, m.reduce(y))


def _factors(m: Modulus, x: Value) -> Value:
    """Return x as second factors of products."""
    return [each if each.bound <= REDUCED else m.reduce(each) for each in x]


def _product(m: Modulus, x: Value, y: Value) -> Value:
    """Return the product of polynomials in s; the side with less to reduce is reduced."""
    x, y = sorted((x, y), key=lambda side: -sum(each.bound > REDUCED for each in side))
    y = _factors(m, y)
    components: list[list[Residue]] = [[] for _ in range(len(x) + len(y) - 1)]
    for i, a in enumerate(x):
        for j, w in enumerate(y):
            components[i + j].append(m.multiply(a, w.value))
    return [_total(m, terms) for terms in components]


def _square(m: Modulus, x: Value) -> Value:
    """Return the square of a polynomial in s, with each cross term once."""
    x = _factors(m, x)
    components: list[list[Residue]] = [[] for _ in range(2 * len(x) - 1)]
    for i, a in enumerate(x):
        for j, w in enumerate(x[i:], i):
            term = m.multiply(a, w.value)
            components[i + j].append(term if i == j else m.add(term, term))
    return [_total(m, terms) for terms in components]


def _total(m: Modulus, terms: Sequence[Residue]) -> Residue:
    total = terms[0]
    for term in terms[1:]:
        total = m.accumulate(total, term)
    return total
