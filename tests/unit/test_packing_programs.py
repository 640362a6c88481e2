"""Packed programs compute what they did before, on plain numbers, for the number of rotations that
is known to be best.

The layouts of `secure-assign-layouts` are met with what clients put there: every position that a
layout leaves unspecified holds garbage in the inputs.
"""

from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.polynomial import chebyshev, polynomial
from xdsl.dialects.builtin import DictionaryAttr, IntegerAttr
from xdsl.dialects.func import FuncOp

from fhelium.analyses.polynomial_evaluation import choose, count
from fhelium.client import pack, unpack
from fhelium.dialects.secure import ConvertLayoutOp, LayoutAttr, PolynomialOp, TensorType
from fhelium.dialects.secure.arithmetic import Basis
from fhelium.dialects.secure.linear import shape_of_conv2d
from fhelium.frontends.packed_values import packed_inputs, packed_results
from fhelium.frontends.program import Program
from fhelium.interpreters import ckks as on_slots
from fhelium.interpreters import secure as on_tensors
from fhelium.passes.convert_secure_to_ckks import COST
from fhelium.passes.pipeline import Pipeline

ASSIGN = "secure-lower-convolutions,secure-expand-polynomials,cse,secure-assign-layouts"
LOWER = "secure-pack"
UNMINIMIZED = f"{ASSIGN},convert-secure-to-ckks,cse,dce"

Shape = tuple[int, ...]


def tensor(shape: Shape) -> str:
    return "x".join(map(str, shape))


def program(body: str, **materials: np.ndarray) -> Program:
    named = "\n".join(
        f"%{name} = fhelium.material @{name} : tensor<{tensor(value.shape)}xf64>"
        for name, value in materials.items()
    )
    head, _, rest = body.partition("{")
    parsed = Program.parse(f"func.func @main{head}{{\n{named}\n{rest}")
    parsed.verify()
    return Program(parsed.module, parsed.sources, materials)


def lowered(source: Program, pipeline: str = LOWER) -> Program:
    result = source.clone()
    Pipeline.parse(pipeline).apply(result)
    # Its text is all that a client has.
    parsed = Program.parse(str(result))
    return Program(parsed.module, parsed.sources, source.materials)


def check(source: Program, pipeline: str = LOWER, seed: int = 0) -> Program:
    """Compare a program with what it lowers to, on a full batch and garbage between elements."""
    packed = lowered(source, pipeline)
    generator = np.random.default_rng(seed)
    types = [type for type in packed_inputs(packed) if type is not None]
    layout = types[0].layout
    assert isinstance(layout, LayoutAttr)
    samples = [generator.uniform(-1, 1, (layout.batch, *type.shape)) for type in types]
    inputs = []
    for type, values in zip(types, samples, strict=True):
        slots = pack(values, type)
        nowhere = pack(np.ones_like(values), type) == 0
        inputs.append(np.where(nowhere, generator.normal(size=slots.shape), slots))
    results = on_slots.evaluate(packed, *inputs)
    for sample in {0, layout.batch - 1}:
        expected = on_tensors.evaluate(source, *(values[sample] for values in samples))
        for slots, type, wanted in zip(results, packed_results(packed), expected, strict=True):
            assert type is not None
            np.testing.assert_allclose(unpack(slots.real, type)[sample], wanted, atol=1e-9)
    return packed


def cost(packed: Program) -> Mapping[str, int]:
    attribute = packed.function().attributes[COST]
    assert isinstance(attribute, DictionaryAttr)
    return {k: v.value.data for k, v in attribute.data.items() if isinstance(v, IntegerAttr)}


def product(rows: int, columns: int, seed: int = 0) -> Program:
    w = np.random.default_rng(seed).normal(size=(rows, columns))
    body = f"""(%x: !secure.tensor<{columns}>) -> !secure.tensor<{rows}> {{
      %y = secure.matvec %w, %x
        : tensor<{rows}x{columns}xf64>, !secure.tensor<{columns}> -> !secure.tensor<{rows}>
      func.return %y : !secure.tensor<{rows}>
    }}"""
    return program(body, w=w)


@given(st.integers(1, 70), st.integers(1, 70))
@settings(max_examples=12, deadline=None)
def test_products(rows: int, columns: int):
    check(product(rows, columns))


COSTS = {
    # rows, columns: rotations, decompositions, products with plaintexts
    (128, 128): (22, 8, 128),  # 15 baby steps on one decomposition, 7 giant steps
    (64, 64): (15, 6, 64),  # one rotation more than the fewest, and a decomposition less
    (10, 64): (8, 6, 16),  # 16 diagonals, and 2 rotations to add up 64 / 16 parts
    (64, 10): (6, 4, 16),  # the operand repeats: 16 diagonals, and nothing to add up
    (1, 64): (6, 6, 1),  # a dot product: as many as a sum takes
}


@pytest.mark.parametrize(("shape", "expected"), COSTS.items(), ids=str)
def test_cost_of_products(shape: tuple[int, int], expected: tuple[int, int, int]):
    found = cost(check(product(*shape)))
    assert (found["rotations"], found["decompositions"], found["plain_products"]) == expected
    assert found["key_switches"] == found["rotations"]


def convolution(
    image: Shape, channels: int, window: int, stride: int, padding: int, groups: int = 1
) -> Program:
    shape = (channels, image[0] // groups, window, window)
    k = np.random.default_rng(0).normal(size=shape)
    out = shape_of_conv2d(shape, image, (stride, stride), (padding, padding))
    body = f"""(%x: !secure.tensor<{tensor(image)}>) -> !secure.tensor<{tensor(out)}> {{
      %y = secure.conv2d %k, %x stride [{stride}, {stride}] padding [{padding}, {padding}]
        groups {groups} : tensor<{tensor(shape)}xf64>, !secure.tensor<{tensor(image)}>
        -> !secure.tensor<{tensor(out)}>
      func.return %y : !secure.tensor<{tensor(out)}>
    }}"""
    return program(body, k=k)


@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("padding", [0, 1, 2])
@pytest.mark.parametrize(
    ("image", "channels", "groups"), [((1, 8, 8), 4, 1), ((2, 5, 6), 4, 2), ((3, 4, 1), 1, 1)]
)
def test_convolutions(image: Shape, channels: int, groups: int, stride: int, padding: int):
    window = 3 if min(image[1:]) + 2 * padding >= 3 else 1
    check(convolution(image, channels, window, stride, padding, groups))


def test_cost_of_convolutions():
    """One diagonal an entry of the kernel: 2 baby steps and 2 giant steps for 3x3 on one image."""
    found = cost(check(convolution((1, 8, 8), 4, 3, 1, 1)))
    assert (found["rotations"], found["plain_products"]) == (4, 9)
    # A stride skips pixels, and moves none.
    found = cost(check(convolution((1, 8, 8), 4, 3, 2, 1)))
    assert (found["rotations"], found["plain_products"]) == (4, 9)
    # Channels repeat after 4, so they differ by 4 steps: 8 within a channel, and 3 between them.
    found = cost(check(convolution((4, 8, 8), 8, 3, 1, 1)))
    assert (found["rotations"], found["plain_products"]) == (8 + 3, 4 * 9)


SUMS = [
    "(%x: !secure.tensor<4x8>) -> !secure.tensor<1> { %y = secure.sum %x"
    " : !secure.tensor<4x8> -> !secure.tensor<1> func.return %y : !secure.tensor<1> }",
    "(%x: !secure.tensor<3x5x7>) -> !secure.tensor<5> { %y = secure.sum %x over [0, 2]"
    " : !secure.tensor<3x5x7> -> !secure.tensor<5> func.return %y : !secure.tensor<5> }",
    "(%x: !secure.tensor<4x6>, %z: !secure.tensor<4>) -> !secure.tensor<4> {"
    " %s = secure.sum %x over [1] : !secure.tensor<4x6> -> !secure.tensor<4>"
    " %y = secure.add %s, %z : !secure.tensor<4>, !secure.tensor<4>"
    " func.return %y : !secure.tensor<4> }",
    "(%x: !secure.tensor<2x8>) -> !secure.tensor<2> {"
    " %s = secure.sum %x over [1] : !secure.tensor<2x8> -> !secure.tensor<2>"
    " %y = secure.rotate %s by 1 : !secure.tensor<2> func.return %y : !secure.tensor<2> }",
    # The sums of rows lie apart, so a sum over what they are reshaped to has to move them.
    "(%x: !secure.tensor<6x3>) -> !secure.tensor<2> {"
    " %s = secure.sum %x over [1] : !secure.tensor<6x3> -> !secure.tensor<6>"
    " %r = secure.reshape %s : !secure.tensor<6> -> !secure.tensor<3x2>"
    " %y = secure.sum %r over [0] : !secure.tensor<3x2> -> !secure.tensor<2>"
    " func.return %y : !secure.tensor<2> }",
]


@pytest.mark.parametrize("body", SUMS, ids=range(len(SUMS)))
@pytest.mark.parametrize("pipeline", [LOWER, UNMINIMIZED], ids=["minimized", "as assigned"])
def test_sums(body: str, pipeline: str):
    check(program(body), pipeline)


@given(st.integers(1, 20), st.integers(-40, 40))
@settings(max_examples=12, deadline=None)
def test_rotations(length: int, step: int):
    type = f"!secure.tensor<{length}>"
    check(
        program(
            f"(%x: {type}) -> {type} {{ %y = secure.rotate %x by {step} : {type} "
            f"func.return %y : {type} }}"
        )
    )


def test_elementwise():
    b = np.random.default_rng(0).normal(size=(2, 3))
    t = "!secure.tensor<2x3>"
    body = f"""(%x: {t}, %y: {t}) -> ({t}, {t}) {{
      %two = arith.constant dense<2.0> : tensor<2x3xf64>
      %c = arith.constant dense<[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]> : tensor<2x3xf64>
      %0 = secure.mul %x, %y : {t}, {t}
      %1 = secure.sub %0, %b : {t}, tensor<2x3xf64>
      %2 = secure.add %1, %c : {t}, tensor<2x3xf64>
      %3 = secure.mul %2, %b : {t}, tensor<2x3xf64>
      %4 = secure.mul %3, %two : {t}, tensor<2x3xf64>
      %5 = secure.sub %4, %two : {t}, tensor<2x3xf64>
      %6 = secure.negate %5 : {t}
      %7 = secure.sub %6, %x : {t}, {t}
      %8 = secure.mul %7, %7 : {t}, {t}
      func.return %8, %x : {t}, {t}
    }}"""
    check(program(body, b=b))


LAYOUTS = [
    LayoutAttr(64, 2, 8, [6], [1]),
    LayoutAttr(64, 2, 16, [6], [1]),
    LayoutAttr(64, 2, 16, [6], [2]),
    LayoutAttr(64, 2, 32, [2, 3], [4, 1]),
    LayoutAttr(64, 2, 8, [3, 2], [1, 3]),
]


@pytest.mark.parametrize("source", LAYOUTS, ids=range(len(LAYOUTS)))
@pytest.mark.parametrize("target", LAYOUTS, ids=range(len(LAYOUTS)))
def test_conversions(source: LayoutAttr, target: LayoutAttr):
    before, after = TensorType([6], source), TensorType([6], target)
    text = program(
        f"(%x: {before}) -> {after} {{ %y = secure.convert_layout %x : {before} -> {after} "
        f"func.return %y : {after} }}"
    )
    check(text, "convert-secure-to-ckks")


def residual() -> Program:
    """A strided convolution, whose output has gaps, and a product that meets it."""
    generator = np.random.default_rng(0)
    shapes = {"k": (4, 1, 3, 3), "u": (64, 64), "w": (10, 64), "b": (4, 4, 4)}
    body = """(%x: !secure.tensor<1x8x8>, %z: !secure.tensor<64>) -> !secure.tensor<10> {
      %c = secure.conv2d %k, %x stride [2, 2] padding [1, 1]
        : tensor<4x1x3x3xf64>, !secure.tensor<1x8x8> -> !secure.tensor<4x4x4>
      %d = secure.matvec %u, %z : tensor<64x64xf64>, !secure.tensor<64> -> !secure.tensor<64>
      %e = secure.reshape %d : !secure.tensor<64> -> !secure.tensor<4x4x4>
      %f = secure.add %c, %e : !secure.tensor<4x4x4>, !secure.tensor<4x4x4>
      %g = secure.add %f, %b : !secure.tensor<4x4x4>, tensor<4x4x4xf64>
      %h = secure.mul %g, %g : !secure.tensor<4x4x4>, !secure.tensor<4x4x4>
      %i = secure.reshape %h : !secure.tensor<4x4x4> -> !secure.tensor<64>
      %y = secure.matvec %w, %i : tensor<10x64xf64>, !secure.tensor<64> -> !secure.tensor<10>
      func.return %y : !secure.tensor<10>
    }"""
    return program(body, **{name: generator.normal(size=s) / 8 for name, s in shapes.items()})


def test_conversions_are_spared():
    assigned = lowered(residual(), ASSIGN)
    assert any(isinstance(op, ConvertLayoutOp) for op in assigned.module.walk())
    before, after = cost(check(residual(), UNMINIMIZED)), cost(check(residual()))
    assert after["rotations"] < before["rotations"]
    assert after["plain_products"] < before["plain_products"]


@st.composite
def laid_out_programs(draw: st.DrawFn) -> str:
    """Draw ops on vectors of 6 elements in several layouts, with a conversion where two meet."""
    layouts = [LAYOUTS[0], LAYOUTS[2], LAYOUTS[4]]
    values = [("%x", draw(st.sampled_from(layouts))), ("%z", draw(st.sampled_from(layouts)))]
    arguments = ", ".join(f"{name}: {TensorType([6], layout)}" for name, layout in values)
    lines: list[str] = []

    def emit(op: str, types: str, layout: LayoutAttr) -> str:
        name = f"%v{len(lines)}"
        lines.append(f"{name} = secure.{op} : {types}")
        values.append((name, layout))
        return name

    for _ in range(draw(st.integers(2, 7))):
        name, layout = draw(st.sampled_from(values))
        type, target = TensorType([6], layout), draw(st.sampled_from(layouts))
        match draw(st.sampled_from(["binary", "negate", "rotate", "matvec", "convert"])):
            case "binary":
                other, found = draw(st.sampled_from(values))
                if found != layout:
                    types = f"{TensorType([6], found)} -> {type}"
                    other = emit(f"convert_layout {other}", types, layout)
                op = draw(st.sampled_from(["add", "sub"]))
                emit(f"{op} {name}, {other}", f"{type}, {type}", layout)
            case "negate":
                emit(f"negate {name}", str(type), layout)
            case "rotate":
                emit(f"rotate {name} by 1", str(type), layout)
            case "matvec":
                types = f"tensor<6x6xf64>, {type} -> {TensorType([6], target)}"
                emit(f"matvec %w, {name}", types, target)
            case _:
                types = f"{type} -> {TensorType([6], target)}"
                emit(f"convert_layout {name}", types, target)
    name, layout = values[-1]
    type = TensorType([6], layout)
    return f"({arguments}) -> {type} {{ {' '.join(lines)} func.return {name} : {type} }}"


@given(laid_out_programs())
@settings(max_examples=10, deadline=None)
def test_what_works_in_other_layouts(text: str):
    source = program(text, w=np.random.default_rng(0).normal(size=(6, 6)) / 4)
    packed = check(source, "secure-minimize-conversions,convert-secure-to-ckks,cse,dce")
    before = lowered(source, "convert-secure-to-ckks,cse,dce")
    assert cost(packed)["plain_products"] <= cost(before)["plain_products"]


def test_two_paths_to_one_op():
    """Products spare much without the conversion, which both operands of a difference come from."""
    dense, apart = LayoutAttr(128, 2, 8, [6], [1]), LayoutAttr(128, 2, 64, [6], [11])
    a, c = TensorType([6], dense), TensorType([6], apart)
    products = "\n".join(
        f"%p{i} = secure.matvec %w, %r : tensor<6x6xf64>, {c} -> {a}" for i in range(10)
    )
    body = f"""(%x: {a}) -> ({a}, {c}, {", ".join([str(a)] * 10)}) {{
      %x1 = secure.rotate %x by 1 : {a}
      %r = secure.convert_layout %x1 : {a} -> {c}
      {products}
      %n = secure.negate %r : {c}
      %s = secure.sub %r, %n : {c}, {c}
      %t = secure.rotate %s by 1 : {c}
      func.return %x1, %t, {", ".join(f"%p{i}" for i in range(10))}
        : {a}, {c}, {", ".join([str(a)] * 10)}
    }}"""
    source = program(body, w=np.random.default_rng(0).normal(size=(6, 6)))
    check(source, "secure-minimize-conversions,convert-secure-to-ckks")


def test_network():
    """A convolution, an activation, average pooling as a convolution, and two dense layers."""
    generator = np.random.default_rng(0)
    pool = np.zeros((4, 4, 2, 2))
    pool[range(4), range(4)] = 0.25
    shapes = {"k": (4, 1, 3, 3), "w": (16, 64), "b": (16,), "v": (10, 16)}
    materials = {name: generator.normal(size=s) / 4 for name, s in shapes.items()}
    rows = ", ".join(str(each.tolist()) for each in pool)
    body = f"""(%x: !secure.tensor<1x8x8>) -> !secure.tensor<10> {{
      %pool = arith.constant dense<[{rows}]> : tensor<4x4x2x2xf64>
      %0 = secure.conv2d %k, %x padding [1, 1]
        : tensor<4x1x3x3xf64>, !secure.tensor<1x8x8> -> !secure.tensor<4x8x8>
      %1 = secure.polynomial %0, [0.5, 0.25, 0.1, -0.01] in chebyshev on [-4.0, 4.0]
        : !secure.tensor<4x8x8>
      %2 = secure.conv2d %pool, %1 stride [2, 2]
        : tensor<4x4x2x2xf64>, !secure.tensor<4x8x8> -> !secure.tensor<4x4x4>
      %3 = secure.reshape %2 : !secure.tensor<4x4x4> -> !secure.tensor<64>
      %4 = secure.matvec %w, %3 : tensor<16x64xf64>, !secure.tensor<64> -> !secure.tensor<16>
      %5 = secure.add %4, %b : !secure.tensor<16>, tensor<16xf64>
      %6 = secure.polynomial %5, [0.0, 0.5, 0.25, 0.0, 0.1] in monomial : !secure.tensor<16>
      %7 = secure.matvec %v, %6 : tensor<10x16xf64>, !secure.tensor<16> -> !secure.tensor<10>
      func.return %7 : !secure.tensor<10>
    }}"""
    packed = check(program(body, **materials))
    # Pooling has the diagonals of its window alone: those between channels are known to be zero.
    assert cost(packed)["plain_products"] <= 9 + 4 + 16 + 16


MULTIPLICATIONS = {3: 2, 7: 5, 15: 8, 31: 13}
"""Products of secrets for a polynomial of each degree with no zero coefficients."""


@pytest.mark.parametrize("basis", list(Basis))
@pytest.mark.parametrize("degree", [*range(1, 10), 15, 16, 20, 31, 63])
def test_polynomials(degree: int, basis: Basis):
    coefficients = np.random.default_rng(degree).uniform(0.1, 1.0, degree + 1).tolist()
    depth, ops = count(coefficients, basis, choose(coefficients, basis))
    assert depth == (degree + 1 - 1).bit_length() == int(np.ceil(np.log2(degree + 1)))
    assert ops.multiplications == MULTIPLICATIONS.get(degree, ops.multiplications)
    check_polynomial(coefficients, basis, (-1.0, 1.0))


@given(
    st.lists(st.sampled_from([0.0, 1.0, -0.5, 2.0]), min_size=2, max_size=18),
    st.sampled_from(list(Basis)),
    st.sampled_from([(-1.0, 1.0), (-4.0, 4.0), (0.0, 2.0), (-1.0, 7.0)]),
)
@settings(max_examples=30, deadline=None)
def test_polynomials_with_zeros(
    coefficients: list[float], basis: Basis, domain: tuple[float, float]
):
    if any(coefficients[1:]):
        check_polynomial(coefficients, basis, domain)


def check_polynomial(coefficients: list[float], basis: Basis, domain: tuple[float, float]) -> None:
    text = program(
        "(%x: !secure.tensor<8>) -> !secure.tensor<8> { func.return %x : !secure.tensor<8> }"
    )
    block = text.function().body.block
    op = PolynomialOp(block.args[0], coefficients, basis, domain)
    assert block.last_op is not None
    block.insert_op_before(op, block.last_op)
    block.last_op.operands[0] = op.result
    text.verify()
    Pipeline.parse("secure-expand-polynomials").apply(text)
    x = np.linspace(*domain, 8)
    (found,) = on_tensors.evaluate(text, x)
    if basis == Basis.CHEBYSHEV:
        a, b = domain
        expected = chebyshev.chebval((2 * x - a - b) / (b - a), coefficients)
    else:
        expected = polynomial.polyval(x, coefficients)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


def test_types_of_inputs_and_results():
    source = program(
        "(%x: !secure.tensor<3>, %n: i64) -> (i64, !secure.tensor<3>) {"
        " func.return %n, %x : i64, !secure.tensor<3> }"
    )
    layout = LayoutAttr(4096, 1024, 4, [3], [1])
    assert packed_inputs(source) == (TensorType([3]), None)
    for pipeline in ("secure-assign-layouts", LOWER):
        packed = lowered(source, pipeline)
        assert packed_inputs(packed) == (TensorType([3], layout), None)
        assert packed_results(packed) == (None, TensorType([3], layout))
    assert isinstance(packed.function(), FuncOp)


def test_inputs_of_the_interpreter():
    packed = lowered(product(4, 4))
    with pytest.raises(ValueError, match="found 0 inputs, expected 1"):
        on_slots.evaluate(packed)
    with pytest.raises(ValueError, match=r"found inputs of .* slots, expected vectors of one"):
        on_slots.evaluate(packed, 1.0)
