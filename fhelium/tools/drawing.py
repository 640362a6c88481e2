"""A program as a graph to draw: a box an op and block argument, an arrow a use.

The hue of a box is the level of its value, from blue at level 0 to red at the highest level of the
program, and the darker it is, the larger the scale. Grey boxes hold no ciphertext or plaintext. An
op with regions is an arrow ahead of them, and what its regions yield stands for its results.
"""

import colorsys
from collections.abc import Iterator
from dataclasses import dataclass, field
from math import log2

from xdsl.dialects.builtin import ModuleOp, SymbolRefAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.traits import IsTerminator

from fhelium.dialects.ckks.types import CiphertextType, StateType, state_types
from fhelium.dialects.core import MaterialOp, ResourceOp, ResourceType
from fhelium.dialects.rns.types import PolyType

MAXIMUM_TEXT = 60
GREY, WHITE = "#e4e4e4", "#ffffff"


@dataclass(frozen=True)
class Node:
    """A box: lines of text, what the pointer shows on it, and the colour that fills it."""

    identity: int
    lines: tuple[str, ...]
    tooltip: str
    color: str
    rounded: bool


@dataclass(frozen=True)
class Edge:
    """An arrow; a faint one leads from a key or into a region."""

    source: int
    target: int
    faint: bool


@dataclass
class Group:
    """The boxes of a function, or of the regions of an op, and the groups inside."""

    title: str
    nodes: list[Node] = field(default_factory=list)
    groups: list["Group"] = field(default_factory=list)

    def walk(self) -> Iterator[Node]:
        """Yield the boxes of this group and of those inside."""
        yield from self.nodes
        for group in self.groups:
            yield from group.walk()


class Drawing:
    """The graph of a module. No text of it is escaped: whoever prints it must do that."""

    def __init__(self, module: ModuleOp):
        states = [state for value in _values(module) for state in _states(value.type)]
        self.top_level = max((s.level for s in states if s.level is not None), default=0)
        self.top_scale = max((log2(s.scale) for s in states if s.scale is not None), default=1.0)
        self.root = Group("")
        self.edges: list[Edge] = []
        self._count = 0
        self._sources: dict[SSAValue, tuple[int, ...]] = {}
        self._block(module.body.block, self.root, None)

    @property
    def nodes(self) -> list[Node]:
        """All boxes, in the order of the program."""
        return sorted(self.root.walk(), key=lambda node: node.identity)

    @property
    def legend(self) -> list[tuple[str, str]]:
        """What the colours of the levels that there may be mean: text and colour."""
        return [
            (f"level {level}", self.color(level, self.top_scale))
            for level in range(self.top_level, -1, -1)
        ]

    def color(self, level: int, scale_bits: float) -> str:
        """Return the colour of a level and scale, as #rrggbb."""
        hue = 0.62 * (1 - level / self.top_level) if self.top_level else 0.62
        share = min(1.0, max(0.0, scale_bits / self.top_scale)) if self.top_scale else 0.0
        red, green, blue = colorsys.hls_to_rgb(hue, 0.93 - 0.2 * share, 0.75)
        return f"#{round(red * 255):02x}{round(green * 255):02x}{round(blue * 255):02x}"

    def _block(self, block: Block, group: Group, owner: int | None) -> list[int]:
        """Add a block; return what its terminator became, and make arrows from `owner` to it."""
        for argument in block.args:
            node = self._node(group, (_name(argument) or "argument",), argument, rounded=True)
            self._sources[argument] = (node,)
            if owner is not None:
                self.edges.append(Edge(owner, node, faint=True))
        ends: list[int] = []
        for operation in block.ops:
            if isinstance(operation, FuncOp):
                inner = Group(f"@{_short(operation.sym_name.data)}")
                group.groups.append(inner)
                for each in operation.body.blocks:
                    self._block(each, inner, None)
                continue
            node = self._operation(operation, group)
            if operation.has_trait(IsTerminator):
                ends.append(node)
        return ends

    def _operation(self, operation: Operation, group: Group) -> int:
        result = operation.results[0] if operation.results else None
        lines = [" ".join(filter(None, [operation.name, _symbol(operation)]))]
        if result is not None and (name := _name(result)):
            lines.insert(0, name)
        node = self._node(group, tuple(lines), result, rounded=False)
        edges = (
            Edge(source, node, isinstance(operand.type, ResourceType))
            for operand in operation.operands
            for source in self._sources.get(operand, ())
        )
        self.edges += dict.fromkeys(edges)  # one arrow for a value that is used twice
        sources = [node]
        if any(region.blocks for region in operation.regions):
            inner = Group(operation.name)
            group.groups.append(inner)
            blocks = [block for region in operation.regions for block in region.blocks]
            sources = [end for block in blocks for end in self._block(block, inner, node)]
        for value in operation.results:
            self._sources[value] = tuple(sources)
        return node

    def _node(
        self, group: Group, lines: tuple[str, ...], value: SSAValue | None, *, rounded: bool
    ) -> int:
        state = None if value is None else next(_states(value.type), None)
        color, tooltip = GREY, "" if value is None else str(value.type)
        if isinstance(state, StateType):
            color = WHITE
            if state.level is not None:
                bits = 0.0 if state.scale is None else log2(state.scale)
                color = self.color(state.level, bits)
            lines = (*lines, _state_text(state))
        elif value is not None and isinstance(value.type, PolyType):
            poly = value.type
            lines = (*lines, f"{len(poly.basis)} limbs x {poly.components}, {poly.form}")
        self._count += 1
        lines = tuple(map(_short, lines))
        group.nodes.append(Node(self._count, lines, _short(tooltip, 400), color, rounded))
        return self._count


def _values(module: ModuleOp) -> Iterator[SSAValue]:
    for operation in module.walk():
        yield from operation.results
        for region in operation.regions:
            for block in region.blocks:
                yield from block.args


def _states(type: Attribute) -> Iterator[StateType]:
    return iter(state_types(type))


def _state_text(state: StateType) -> str:
    parts: list[str] = []
    if state.level is not None:
        parts.append(f"level {state.level}")
    if state.scale is not None:
        parts.append(f"scale 2^{log2(state.scale):.4g}")
    if isinstance(state, CiphertextType) and state.components not in (None, 2):
        parts.append(f"{state.components} components")
    return ", ".join(parts) or "no state yet"


def _name(value: SSAValue) -> str:
    return f"%{value.name_hint}" if value.name_hint else ""


def _symbol(operation: Operation) -> str:
    if isinstance(operation, ResourceOp | MaterialOp):
        return f"@{operation.symbol_name}"
    for attribute in operation.properties.values():
        if isinstance(attribute, SymbolRefAttr):
            return f"@{attribute.string_value()}"
    return ""


def _short(text: str, limit: int = MAXIMUM_TEXT) -> str:
    return text if len(text) <= limit else f"{text[: limit - 3]}..."
