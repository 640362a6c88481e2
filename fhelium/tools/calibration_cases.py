"""The ops that `fhelium-run --calibrate` measures, at a ladder of sizes."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import prod

from xdsl.dialects.builtin import TensorType, f64
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from fhelium.dialects import ckks, rns
from fhelium.dialects.ckks.types import CiphertextType, KeyKind, KeyType, PlaintextType
from fhelium.dialects.distributed import AllReduceAddCiphertextOp, GroupType
from fhelium.dialects.rns.types import BasisAttr, Form, PolyType
from fhelium.scheme.parameters import Parameters

Build = Callable[..., Operation]

STEPS = (1, 2, 3, 4, 5, 6, 7, 8)
"""Rotations of one ciphertext that are measured together."""


@dataclass(frozen=True)
class Case:
    """An op to measure: `build` makes it from keys or a group, and from arguments of `types`."""

    types: tuple[Attribute, ...]
    build: Build
    resources: tuple[Attribute, ...] = ()

    @property
    def is_collective(self) -> bool:
        """Whether ranks talk."""
        return GroupType() in self.resources


def cases_of(parameters: Parameters) -> Iterator[Case]:
    """Yield every op of `rns`, and encoding, at a ladder of limbs."""
    levels = sorted({0, parameters.max_level // 3, parameters.max_level})
    special = BasisAttr(p=range(len(parameters.special)))
    raised = [BasisAttr(parameters.q_limbs(each), special.p) for each in levels]
    ladder = [BasisAttr(q=parameters.q_limbs(each)) for each in levels]
    for basis in ladder:
        one, two, three = (PolyType(basis, n, Form.EVALUATION) for n in (1, 2, 3))
        yield Case((two, two), rns.AddOp)
        yield Case((two, two), rns.SubOp)
        yield Case((two,), rns.NegateOp)
        yield Case((two, one), rns.MulOp)
        yield Case((two, two), rns.MulOp)
        yield Case((two,), rns.SquareOp)
        yield Case((two,), lambda x: rns.AddConstantOp(x, 12345))
        yield Case((two,), lambda x: rns.MulConstantOp(x, 12345))
        for terms in (1, 8):
            yield Case(
                (*[two] * terms, *[one] * terms),
                lambda *xs: rns.WeightedSumOp(xs[: len(xs) // 2], xs[len(xs) // 2 :]),
            )
        yield Case((three,), lambda x: rns.ComponentsOp(x, 0, 2))
        yield Case((two,), lambda x, b=basis: rns.ProjectOp(x, b))
    first = PolyType(special, 1, Form.COEFFICIENT)
    for basis in (special, *ladder, *raised):
        for components in (1, 2):
            poly = PolyType(basis, components, Form.EVALUATION)
            yield Case((poly,), rns.InttOp)
            yield Case((poly.replace(form=Form.COEFFICIENT),), rns.NttOp)
            yield Case((poly,), lambda x: rns.AutomorphismOp(x, 5))
    for level, over in zip(levels, raised, strict=True):
        kept = BasisAttr(q=parameters.q_limbs(level))
        for digit in parameters.digit_limbs(level)[:1]:
            source = PolyType(BasisAttr(q=digit), 1, Form.COEFFICIENT)
            yield Case((source,), lambda x, b=over: rns.ModUpOp(x, b))
        for components in (1, 2):
            source = first.replace(components=components)
            yield Case((source,), lambda x, b=kept: rns.ModUpOp(x, b))
            whole = PolyType(over, components, Form.EVALUATION)
            yield Case((whole, whole.replace(basis=kept)), rns.ModDownOp)
        if level:
            group = BasisAttr(q=parameters.group_limbs(level))
            below = BasisAttr(q=parameters.q_limbs(level - 1))
            source = PolyType(group, 2, Form.COEFFICIENT)
            yield Case((source,), lambda x, b=below: rns.ModUpOp(x, b))
        yield Case((PolyType(kept, 2, Form.EVALUATION),), lambda x, b=over: rns.ScaleUpOp(x, b))
        digits = len(parameters.digit_limbs(level))
        yield Case(
            (PolyType(over, 1, Form.EVALUATION),),
            lambda key, x, n=digits: rns.KeyProductOp([x] * n, key),
            (KeyType(KeyKind.RELINEARIZATION),),
        )
        plaintext = PlaintextType(level, parameters.scale, Form.EVALUATION)
        yield Case(
            (TensorType(f64, [parameters.slots]),), lambda x, t=plaintext: ckks.EncodeOp(x, t)
        )


def whole_cases(parameters: Parameters) -> Iterator[Case]:
    """Yield the ops of `ckks` that a family may have kernels of its own for, at three levels."""
    relinearization = (KeyType(KeyKind.RELINEARIZATION),)
    rotations = [KeyType(KeyKind.ROTATION, step) for step in STEPS]
    for level in sorted({0, parameters.max_level // 3, parameters.max_level}):
        two, three = (CiphertextType(level, parameters.scale, n, Form.EVALUATION) for n in (2, 3))
        yield Case((two,), lambda key, x: ckks.RotateOp(x, 1, key), (rotations[0],))
        yield Case((two,), lambda key, x: ckks.ConjugateOp(x, key), (KeyType(KeyKind.CONJUGATION),))
        for count in (2, len(STEPS)):
            yield Case(
                (two,),
                lambda *values: ckks.RotateManyOp(
                    values[-1], STEPS[: len(values) - 1], values[:-1]
                ),
                tuple(rotations[:count]),
            )
        yield Case((three,), lambda key, x, t=two: ckks.RelinearizeOp(x, key, t), relinearization)
        if level:
            scale = parameters.scale / prod(parameters.moduli[level])
            below = CiphertextType(level - 1, scale, 2, Form.EVALUATION)
            yield Case((two,), lambda x, t=below: ckks.RescaleOp(x, t))
            yield Case(
                (three,),
                lambda key, x, t=below: ckks.RelinearizeRescaleOp(x, key, t),
                relinearization,
            )


def fused_cases(parameters: Parameters) -> Iterator[Case]:
    """Yield a fused region that mostly moves words, and one that multiplies them as well."""

    def difference(x: SSAValue, y: SSAValue) -> Operation:
        block = Block(arg_types=[x.type, y.type])
        total = rns.AddOp(*block.args)
        steps = [total, rns.SubOp(total, block.args[0])]
        return _fused(block, steps, [x, y])

    def products(*values: SSAValue) -> Operation:
        block = Block(arg_types=[value.type for value in values])
        *factors, term = block.args
        half = len(factors) // 2
        product = rns.WeightedSumOp(factors[:half], factors[half:])
        return _fused(block, [product, rns.AddOp(product, term)], values)

    for level in sorted({0, parameters.max_level // 3, parameters.max_level}):
        basis = BasisAttr(q=parameters.q_limbs(level))
        one, two = (PolyType(basis, n, Form.EVALUATION) for n in (1, 2))
        yield Case((two, two), difference)
        for terms in (1, 4):
            yield Case((*[two] * terms, *[one] * terms, two), products)


def _fused(block: Block, steps: Sequence[Operation], values: Sequence[SSAValue]) -> Operation:
    result = steps[-1].results[0]
    block.add_ops([*steps, rns.YieldOp(result)])
    return rns.FusedOp(values, [result.type], Region(block))


def collectives(parameters: Parameters) -> Iterator[Case]:
    """Yield the sum over ranks at a ladder of limbs."""
    for level in sorted({0, parameters.max_level // 2, parameters.max_level}):
        basis = BasisAttr(q=parameters.q_limbs(level))

        def build(group: SSAValue, x: SSAValue, basis: BasisAttr = basis) -> Operation:
            moduli = rns.ModuliOp(basis)
            return AllReduceAddCiphertextOp(x, group, moduli.result)

        yield Case((PolyType(basis, 2, Form.EVALUATION),), build, (GroupType(),))
