"""A call of each generated kernel, and the words that it moves: the material of `roofline.py`.

Kernels are launched by the library's own functions, so that what is measured is what they run. The
words are those that a kernel has to read and to write, each once, tables included, as the
docstrings of the kernels say.
"""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from unittest import mock

import numpy as np
import torch
from kernel_counts import Operations, count
from machine_rates import Run, seconds
from residues import random_residues

import fhelium.kernels.cpu.launch
from fhelium.backend.cpu_family import fusion
from fhelium.backend.cpu_family.fusion import FusedCall
from fhelium.kernels.cpu import ciphertexts, client, operations, tables
from fhelium.kernels.cpu.catalogue import KernelSpec
from fhelium.kernels.cpu.ciphertexts import KeySwitch
from fhelium.kernels.cpu.fft import vector_width
from fhelium.kernels.cpu.fft_tables import embedding_tables
from fhelium.kernels.cpu.fused import Code, Recipe
from fhelium.kernels.cpu.host import Host
from fhelium.kernels.cpu.launch import launch
from fhelium.kernels.cpu.loader import CompiledKernel, compiled
from fhelium.kernels.cpu.schedule import Schedule
from fhelium.kernels.ring import Ring
from fhelium.scheme.parameters import Parameters

Tensor = torch.Tensor
Launch = Callable[[CompiledKernel, int, Sequence[int], int], None]

SCALE = 2.0**40
CALLERS = (operations, ciphertexts, client, fusion, fhelium.kernels.cpu.launch)
"""The modules that launch kernels."""


@dataclass(frozen=True)
class Case:
    """A kernel, an op that launches it, and the polynomials of N words that it has to move."""

    kernel: str
    run: Run
    polynomials: float

    def at_launch(self, act: Launch) -> None:
        """Run the op, with `act` in place of the first launch of the kernel."""
        found = False

        def stand_in(kernel: CompiledKernel, items: int, words: Sequence[int], size: int) -> None:
            nonlocal found
            if found or kernel.spec.name != self.kernel:
                launch(kernel, items, words, size)
            else:
                found = True
                act(kernel, items, words, size)

        with ExitStack() as stack:
            for module in CALLERS:
                stack.enter_context(mock.patch.object(module, "launch", stand_in))
            self.run()
        assert found, f"the op launches no kernel {self.kernel}"

    def operations(self, machine: Host) -> Operations:
        """Return what the kernel computes."""
        counts: list[Operations] = []

        def act(kernel: CompiledKernel, items: int, words: Sequence[int], size: int) -> None:
            counts.append(count(kernel.spec, machine, words, items))

        self.at_launch(act)
        return counts[0]

    def times(self, rounds: int, before: Run) -> list[float]:
        """Return the seconds that the kernel takes, each time after a call of `before`."""
        result: list[float] = []

        def act(kernel: CompiledKernel, items: int, words: Sequence[int], size: int) -> None:
            before()
            result.append(seconds(lambda: launch(kernel, items, words, size)))

        for _ in range(rounds):
            self.at_launch(act)
        return result


@dataclass(frozen=True)
class Reference(Case):
    """An op without a kernel, to compare with: it is timed whole, and nothing of it is counted."""

    def operations(self, machine: Host) -> Operations:
        """Return nothing."""
        return Operations()

    def times(self, rounds: int, before: Run) -> list[float]:
        """Return the seconds that the op takes, each time after a call of `before`."""
        result: list[float] = []
        for _ in range(rounds):
            before()
            result.append(seconds(self.run))
        return result


@dataclass(frozen=True)
class Cases:
    """A case for each kernel, on random residues over all primes of Q."""

    parameters: Parameters
    machine: Host

    @property
    def ring(self) -> Ring:
        return self.parameters.ring

    @property
    def limbs(self) -> tuple[int, ...]:
        return self.parameters.q_limbs(self.parameters.max_level)

    @cached_property
    def table(self) -> float:
        """The tables of a transform modulo one prime, in polynomials."""
        degree = self.ring.ring_degree
        return Schedule.for_host(degree, self.machine.width).table_words / degree

    def all(self) -> list[Case]:
        """Return a sum by torch, and then all kernels."""
        x, y, z = (random_residues(self.ring, self.limbs, 2) for _ in range(3))
        triad = Reference("triad", lambda: torch.add(x, y, alpha=2, out=z), 6 * len(self.limbs))
        kernels = (self.pointwise, self.conversions, self.key_switching, self.client)
        return [triad, *(case for make in kernels for case in make())]

    def pointwise(self) -> list[Case]:
        """Return the transforms, and kernels that go over words; x and y have two components."""
        ring, limbs, planes = self.ring, self.limbs, len(self.limbs)
        x, y, plain = (random_residues(ring, limbs, components) for components in (2, 2, 1))
        digits = len(self.parameters.digit_limbs(self.parameters.max_level))
        terms = [random_residues(ring, limbs, 2) for _ in range(digits)]
        weights = [random_residues(ring, limbs, 1) for _ in range(digits)]
        # -(x p), as the documentation has it.
        recipe = Recipe((2, 1), ((Code.MULTIPLY, 0, 1), (Code.NEGATE, 2, 0)), (3,))
        spec = KernelSpec("fused", recipe.words, min(self.machine.width, ring.ring_degree))
        kernel, table = compiled(spec, self.machine), tables.moduli(ring, limbs)
        fused = FusedCall(ring, limbs, recipe, kernel, table, ())
        return [
            Case("ntt", lambda: operations.ntt(ring, limbs, x), planes * (4 + self.table)),
            Case("intt", lambda: operations.intt(ring, limbs, x), planes * (4 + self.table)),
            Case("add", lambda: operations.add(ring, limbs, x, y), 6 * planes),
            Case("subtract", lambda: operations.subtract(ring, limbs, x, y), 6 * planes),
            Case("negate", lambda: operations.negate(ring, limbs, x), 4 * planes),
            # Component 0 alone: the kernel leaves the other one where it is.
            Case(
                "add_constant",
                lambda: operations.add_constant(ring, limbs, x, 3, "evaluation", in_place=True),
                2 * planes,
            ),
            Case("scale", lambda: operations.multiply_constant(ring, limbs, x, 3), 4 * planes),
            Case("multiply", lambda: operations.multiply(ring, limbs, x, y), 7 * planes),
            Case("square", lambda: operations.square(ring, limbs, x), 5 * planes),
            Case("fused", lambda: fused([x, plain], ()), 5 * planes),
            Case(
                "weighted_sum",
                lambda: operations.weighted_sum(ring, limbs, terms, weights),
                planes * (3 * digits + 2),
            ),
            Case(
                "gather",
                lambda: operations.automorphism(ring, limbs, x, 5, "evaluation"),
                4 * planes + 1,
            ),
        ]

    def conversions(self) -> list[Case]:
        """Return the conversions between bases: of one digit, and of two components."""
        ring, limbs, special = self.ring, self.limbs, self.parameters.p_limbs
        digit, *_ = self.parameters.digit_limbs(self.parameters.max_level)
        every = (*limbs, *special)
        source, x, remainder = (
            random_residues(ring, digit, 1),
            random_residues(ring, every, 2),
            random_residues(ring, limbs, 2),
        )
        return [
            Case("mod_up", lambda: operations.mod_up(ring, digit, every, source), len(every)),
            Case(
                "mod_down",
                lambda: operations.mod_down(ring, every, limbs, x, remainder),
                6 * len(limbs),
            ),
        ]

    def key_switching(self) -> list[Case]:
        """Return the kernels of a rotation, whose temporaries come from memory here, too."""
        ring, limbs, special = self.ring, self.limbs, self.parameters.p_limbs
        top, planes = self.parameters.max_level, len(limbs)
        digits, p = self.parameters.digit_limbs(top), len(special)
        d, targets = len(digits), planes + p
        plan = KeySwitch(ring, self.machine, digits, special, limbs)
        x, key = (
            random_residues(ring, limbs, 2),
            random_residues(ring, tuple(range(len(ring.primes))), d, 2),
        )

        def rotate() -> Tensor:
            return plan.rotate(x, 5, key)

        # y and -v, the component and the term, the permutation, the key, the result, the tables.
        key_switch = planes + d + 2 * planes + 1 + targets * (2 * d + 2 + self.table)
        return [
            Case("split", rotate, planes * (2 + self.table)),
            Case("overflow", rotate, planes + d),
            Case("key_switch", rotate, key_switch),
            # In place, with y of the special limbs and -v of both components.
            Case("divide", rotate, planes * (4 + self.table) + 2 * (p + 1)),
        ]

    def client(self) -> list[Case]:
        """Return the kernels of encoding, encryption and decryption."""
        ring, limbs, planes, degree = self.ring, self.limbs, len(self.limbs), self.ring.ring_degree
        primes = [ring.primes[limb] for limb in limbs]
        x, y, z = (random_residues(ring, limbs, 2) for _ in range(3))
        small = torch.randint(-100, 100, (degree,))
        large = torch.randint(-(1 << 60), 1 << 60, (degree,)).double()
        rng = np.random.default_rng(0)
        words = rng.integers(1 << 64, size=(planes, degree), dtype=np.uint64)
        signs, thresholds = words[0].view(np.uint8)[: degree // 8], np.sort(words[0, :27])
        slots = rng.uniform(-1, 1, degree).view(np.complex128)
        order, factors = embedding_tables(
            degree // 2, vector_width(degree // 2, self.machine.width)
        )
        return [
            Case("multiply_add", lambda: client.multiply_add(ring, limbs, x, y, z), 8 * planes),
            Case("from_integers", lambda: client.from_integers(ring, limbs, small), planes + 1),
            Case("from_doubles", lambda: client.from_doubles(ring, limbs, large), planes + 1),
            Case("from_words", lambda: client.reduce_words(primes, words.copy()), 2 * planes),
            Case(
                "embedding",
                lambda: client.coefficients(slots, SCALE),
                2 + (order.size + factors.size) / degree,
            ),
            Case(
                "centred_values", lambda: client.centred_values(ring, limbs, x[:1]), 2 * planes + 1
            ),
            Case("gaussian", lambda: client.gaussian(words[0], signs, thresholds), 2 + 1 / 64),
        ]
