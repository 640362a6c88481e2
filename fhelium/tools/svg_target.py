"""`fhelium-opt -t svg`: the graph of a program as a picture, laid out without other tools."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import IO
from xml.sax.saxutils import escape, quoteattr

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.target import Target

from fhelium.tools.drawing import Drawing, Node

CHARACTER, LINE, MARGIN = 6.6, 15, 8
BESIDE, BELOW = 24, 44
SWEEPS = 8


@dataclass(frozen=True)
class Box:
    """Where a box stands: its centre from the left, its top, and its size."""

    x: float
    top: float
    width: float
    height: float


@dataclass(frozen=True)
class SvgTarget(Target):
    """Draw the program as an SVG picture, coloured by level (hue) and scale (shade).

    Ops stand below what they use, as far up as they can. The pointer on a box shows its type.
    """

    name = "svg"

    def emit(self, ctx: Context, module: ModuleOp, output: IO[str]) -> None:
        drawing = Drawing(module)
        boxes = layout(drawing)
        width = max((box.x + box.width / 2 for box in boxes.values()), default=0) + 140
        height = max((box.top + box.height for box in boxes.values()), default=0) + BELOW
        height = max(height, LINE * (len(drawing.legend) + 2))
        output.write(
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
            'font-family="sans-serif" font-size="11" text-anchor="middle">\n'
            '<rect width="100%" height="100%" fill="white"/>\n'
        )
        for edge in drawing.edges:
            output.write(_arrow(boxes[edge.source], boxes[edge.target], edge.faint))
        for node in drawing.nodes:
            output.write(_box(node, boxes[node.identity]))
        for row, (text, color) in enumerate(drawing.legend):
            x, y = width - 100, LINE * (row + 1)
            output.write(
                f'<rect x="{x:.0f}" y="{y}" width="12" height="12" fill="{color}" '
                f'stroke="#444"/><text x="{x + 18:.0f}" y="{y + 10}" text-anchor="start">'
                f"{_text(text)}</text>\n"
            )
        output.write("</svg>\n")


def layout(drawing: Drawing) -> Mapping[int, Box]:
    """Return where each box goes: rows by longest path, and in a row near what it uses."""
    before: dict[int, list[int]] = {node.identity: [] for node in drawing.nodes}
    after: dict[int, list[int]] = {node.identity: [] for node in drawing.nodes}
    for edge in drawing.edges:
        before[edge.target].append(edge.source)
        after[edge.source].append(edge.target)
    # Boxes are numbered in program order, and a use comes behind what it uses.
    row: dict[int, int] = {}
    for identity in before:
        row[identity] = max((row[each] + 1 for each in before[identity]), default=0)
    # What uses nothing, as a material, stands just above its first use.
    for identity, users in after.items():
        if users and not before[identity]:
            row[identity] = min(row[each] for each in users) - 1
    nodes = sorted(drawing.nodes, key=lambda node: row[node.identity])
    rows = [list(found) for _, found in groupby(nodes, key=lambda node: row[node.identity])]
    place = {node.identity: float(i) for found in rows for i, node in enumerate(found)}
    for sweep in range(SWEEPS):
        neighbours, order = (after, reversed(rows)) if sweep % 2 else (before, iter(rows))
        for found in order:
            wish = {
                node.identity: _mean([place[each] for each in neighbours[node.identity]])
                if neighbours[node.identity]
                else place[node.identity]
                for node in found
            }
            found.sort(key=lambda node: wish[node.identity])
            place.update({node.identity: float(i) for i, node in enumerate(found)})
    boxes: dict[int, Box] = {}
    widest = max((sum(_width(node) + BESIDE for node in found) for found in rows), default=0)
    top = float(BELOW)
    for found in rows:
        x = (widest - sum(_width(node) + BESIDE for node in found)) / 2 + BESIDE
        height = max(_height(node) for node in found)
        for node in found:
            width = _width(node)
            boxes[node.identity] = Box(x + width / 2, top, width, _height(node))
            x += width + BESIDE
        top += height + BELOW
    return boxes


def _mean(places: list[float]) -> float:
    return sum(places) / len(places)


def _width(node: Node) -> float:
    return max(len(line) for line in node.lines) * CHARACTER + 2 * MARGIN


def _height(node: Node) -> float:
    return len(node.lines) * LINE + MARGIN


def _box(node: Node, box: Box) -> str:
    left, radius = box.x - box.width / 2, 8 if node.rounded else 0
    lines = "".join(
        f'<text x="{box.x:.1f}" y="{box.top + LINE * (i + 1):.1f}">{_text(line)}</text>'
        for i, line in enumerate(node.lines)
    )
    return (
        f'<g><title>{_text(node.tooltip)}</title><rect x="{left:.1f}" y="{box.top:.1f}" '
        f'width="{box.width:.1f}" height="{box.height:.1f}" rx="{radius}" '
        f'fill={quoteattr(node.color)} stroke="#444"/>{lines}</g>\n'
    )


def _arrow(source: Box, target: Box, faint: bool) -> str:
    start, end = source.top + source.height, target.top
    bend = (start + end) / 2
    style = 'stroke="#aaa" stroke-dasharray="4 3"' if faint else 'stroke="#444"'
    return (
        f'<path d="M {source.x:.1f} {start:.1f} C {source.x:.1f} {bend:.1f} {target.x:.1f} '
        f'{bend:.1f} {target.x:.1f} {end:.1f}" fill="none" {style}/>'
        f'<path d="M {target.x - 3:.1f} {end - 6:.1f} L {target.x:.1f} {end:.1f} '
        f'L {target.x + 3:.1f} {end - 6:.1f}" fill="none" stroke="#444"/>\n'
    )


def _text(text: str) -> str:
    """Return text for XML: no markup, and none of the characters that XML has no way to write."""
    return escape("".join(c if c.isprintable() else "?" for c in text))
