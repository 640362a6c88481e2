"""How deep the regions of a program may nest: host code nests as deep, and is Python."""

from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

MOST_REGIONS = 99
"""CPython takes fewer than 100 levels of indentation; the body of a function is the first."""

MOST_LOOPS = 20
"""CPython takes so many loops inside each other in one function."""

ADVICE = (
    "host code is Python, which nests no deeper: move what is inside to a function, and call it"
)


def too_deep(module: ModuleOp) -> tuple[Operation, str] | None:
    """Return the first op that is inside more regions or loops than host code can nest, and why.

    Without recursion: such a program may be deeper than Python's stack.
    """
    waiting: list[tuple[Operation, int, int]] = [(module, -1, 0)]
    while waiting:
        op, regions, loops = waiting.pop()
        loops += isinstance(op, scf.ForOp)
        if regions > MOST_REGIONS:
            found = f"{op.name} inside {regions} regions"
            return op, f"found {found}, expected at most {MOST_REGIONS}: {ADVICE}"
        if loops > MOST_LOOPS:
            return op, f"found {loops} nested loops, expected at most {MOST_LOOPS}: {ADVICE}"
        inside = [inner for region in op.regions for b in region.blocks for inner in b.ops]
        waiting += [(inner, regions + 1, loops) for inner in reversed(inside)]
    return None
