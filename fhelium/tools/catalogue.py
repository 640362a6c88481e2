"""What `fhelium-opt --help` lists: FHElium's things with descriptions, the others by name."""

import sys
import textwrap
from collections.abc import Callable, Iterable, Mapping

from xdsl.ir import Dialect

from fhelium.passes.named_pipelines import NAMED_PIPELINES
from fhelium.universe import FHELIUM_UNIVERSE

_COLUMNS = 100


def catalogue(
    dialects: Iterable[str], passes: Iterable[str], targets: Iterable[str], frontends: Iterable[str]
) -> str:
    """Return the lists of what there is, pipelines by name among it, given all available names."""
    ours = FHELIUM_UNIVERSE
    return "\n".join(
        [
            _section("dialects", ours.all_dialects, _dialect_description, dialects),
            _section("passes", ours.all_passes, _summary, passes),
            _pipelines(),
            _section("targets", ours.all_targets, _summary, targets),
            _section("frontends", ours.all_frontends, _summary, frontends),
        ]
    )


def _pipelines() -> str:
    lines = ["FHElium's pipelines:"]
    for name, text in NAMED_PIPELINES.items():
        # A break after each comma, since passes have no spaces between them.
        passes = textwrap.fill(
            text.replace(",", ", "),
            _COLUMNS,
            initial_indent=f"  {name:22}",
            subsequent_indent=" " * 24,
            break_on_hyphens=False,
        )
        lines.append(passes)
    return "\n".join(lines) + "\n"


def _section(
    title: str,
    ours: Mapping[str, Callable[[], object]],
    describe: Callable[[object], str],
    available: Iterable[str],
) -> str:
    lines = [f"FHElium's {title}:"] if ours else []
    for name, factory in sorted(ours.items()):
        text = describe(factory())
        if len(name) > 20:
            lines.append(f"  {name}")
            name = ""
        lines.append(
            textwrap.fill(text, _COLUMNS, initial_indent=f"  {name:22}", subsequent_indent=" " * 24)
        )
    others = ", ".join(sorted(set(available) - set(ours)))
    lines.append(f"xDSL's {title}:")
    lines.append(
        textwrap.fill(
            others,
            _COLUMNS,
            initial_indent="  ",
            subsequent_indent="  ",
            break_on_hyphens=False,
            break_long_words=False,
        )
    )
    return "\n".join(lines) + "\n"


def _first_line(docstring: str | None) -> str:
    return (docstring or "").strip().partition("\n")[0]


def _summary(item: object) -> str:
    return _first_line(item.__doc__)


def _dialect_description(item: object) -> str:
    # A dialect is an instance without a docstring; its module, or its package, has one.
    assert isinstance(item, Dialect)
    definition = next(iter([*item.operations, *item.attributes]))
    module = ".".join(definition.__module__.split(".")[:3])
    return _first_line(sys.modules[module].__doc__)
