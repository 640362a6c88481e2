"""Pictures of programs: well-formed whatever the program says, with a box a value."""

import io
import xml.etree.ElementTree as ET
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.dialects.test import TestOp
from xdsl.ir import Block, Region

from fhelium.dialects.core import ResourceOp
from fhelium.dialects.distributed import GroupType
from fhelium.frontends.program import Program
from fhelium.passes.pipeline import Pipeline
from fhelium.tools.dot_target import DotTarget, quoted
from fhelium.tools.drawing import Drawing
from fhelium.tools.svg_target import SvgTarget, layout

EXAMPLES = Path(__file__).parents[2] / "examples"
SVG = "{http://www.w3.org/2000/svg}"


def picture(module: ModuleOp) -> ET.Element:
    output = io.StringIO()
    SvgTarget().emit(Context(), module, output)
    return ET.fromstring(output.getvalue().encode())


@pytest.mark.parametrize("pipeline", ["", "convert-ckks-to-rns"])
@pytest.mark.parametrize("name", ["logistic_regression", "ciphertext_sum"])
def test_examples(name: str, pipeline: str):
    program = Program.from_file(EXAMPLES / f"{name}.mlir")
    if "parameters" in program.text():
        Pipeline.parse(pipeline).apply(program)
    drawing = Drawing(program.module)
    root = picture(program.module)
    assert len(root.findall(f"{SVG}g")) == len(drawing.nodes)
    assert all(float(root.attrib[size]) > 0 for size in ("width", "height"))
    boxes = layout(drawing)
    width = float(root.attrib["width"])
    for box in boxes.values():
        assert box.width / 2 <= box.x <= width - box.width / 2
    for edge in drawing.edges:
        assert boxes[edge.source].top + boxes[edge.source].height < boxes[edge.target].top
    rows: dict[float, list[tuple[float, float]]] = {}
    for box in boxes.values():
        rows.setdefault(box.top, []).append((box.x - box.width / 2, box.x + box.width / 2))
    for row in rows.values():
        ordered = sorted(row)
        assert all(a[1] < b[0] for a, b in pairwise(ordered))


def test_an_empty_program():
    assert picture(ModuleOp([])).tag == f"{SVG}svg"
    output = io.StringIO()
    DotTarget().emit(Context(), ModuleOp([]), output)
    assert output.getvalue().startswith("digraph program {")


@settings(max_examples=20)
@given(st.text(), st.text())
def test_names_are_text(function: str, symbol: str):
    op = TestOp(result_types=[])
    block = Block([ResourceOp(symbol, GroupType()), op, ReturnOp()])
    module = ModuleOp([FuncOp(function, ([], []), Region(block))])
    root = picture(module)
    assert len(root.findall(f"{SVG}g")) == 3
    output = io.StringIO()
    DotTarget().emit(Context(), module, output)
    lines = output.getvalue().split("\n")
    assert sum("label=" in line for line in lines) == 4
    assert lines[-2:] == ["}", ""]


@given(st.text())
def test_quoted_text_ends_where_it_should(text: str):
    found = quoted(text)
    assert found[0] == found[-1] == '"'
    inner, position = found[1:-1], 0
    while position < len(inner):
        assert inner[position] not in '"\n'
        position += 2 if inner[position] == "\\" else 1
    assert position == len(inner)
