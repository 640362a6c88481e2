"""`fhelium-opt -t dot`: the graph of a program, for Graphviz."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.target import Target

from fhelium.tools.drawing import Drawing, Group, Node


@dataclass(frozen=True)
class DotTarget(Target):
    """Draw the program as Graphviz text, coloured by level (hue) and scale (shade).

    `fhelium-opt -t dot program.mlir | dot -Tpdf -o program.pdf`
    """

    name = "dot"

    def emit(self, ctx: Context, module: ModuleOp, output: IO[str]) -> None:
        drawing = Drawing(module)
        output.write(
            "digraph program {\n"
            '  node [shape=box, style=filled, fontname="sans-serif", fontsize=11];\n'
        )
        for line in _group(drawing.root, "  "):
            output.write(line + "\n")
        for edge in drawing.edges:
            style = " [style=dashed, color=gray60]" if edge.faint else ""
            output.write(f"  n{edge.source} -> n{edge.target}{style};\n")
        output.write("}\n")


def _group(group: Group, indent: str) -> Iterator[str]:
    for node in group.nodes:
        yield f"{indent}{_node(node)}"
    for inner in group.groups:
        # Boxes are numbered from 1, so their least number names a group; an empty one is left out.
        identity = min((node.identity for node in inner.walk()), default=0)
        if identity:
            yield f"{indent}subgraph cluster_{identity} {{"
            yield f"{indent}  label={quoted(inner.title)};"
            yield from _group(inner, indent + "  ")
            yield f"{indent}}}"


def _node(node: Node) -> str:
    style = ', style="filled,rounded"' if node.rounded else ""
    label, tooltip = quoted("\n".join(node.lines)), quoted(node.tooltip)
    return f'n{node.identity} [label={label}, tooltip={tooltip}, fillcolor="{node.color}"{style}];'


def quoted(text: str) -> str:
    """Return a string of the language: nothing in it ends the string or is an escape."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return '"' + "".join(c if c.isprintable() else "?" for c in escaped) + '"'
