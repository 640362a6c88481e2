"""A sequence of passes that prints as its own text."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from xdsl.context import Context
from xdsl.passes import ModulePass
from xdsl.universe import Universe

from fhelium.frontends.pipeline import apply_pass, passes_from_text
from fhelium.frontends.program import Program, program_context
from fhelium.passes import get_all_passes


def available_passes() -> dict[str, Callable[[], type[ModulePass]]]:
    """Return the passes of FHElium, xDSL and installed plugins by name."""
    return {**Universe.get_multiverse().all_passes, **get_all_passes()}


@dataclass(frozen=True)
class Pipeline:
    """Passes that run one after the other; `str` gives the text that `parse` reads."""

    passes: tuple[ModulePass, ...] = ()

    @staticmethod
    def parse(text: str) -> "Pipeline":
        """Return the pipeline of a text such as `cse,convert-ckks-to-rns`.

        Raises `SpecError` (a `ValueError`) for unknown passes and options.
        """
        return Pipeline(passes_from_text(text, available_passes()))

    def __str__(self) -> str:
        return ",".join(str(each.pipeline_pass_spec()) for each in self.passes)

    def apply(self, program: Program, ctx: Context | None = None) -> None:
        """Rewrite `program` in place and verify it after each pass.

        Raises `ProgramError`, which names the pass and the place.
        """
        ctx = ctx or program_context()
        for each in self.passes:
            apply_pass(ctx, program.module, each, program.sources)


@cache
def default_pipeline() -> Pipeline:
    """Return what a program is lowered by unless the caller says otherwise."""
    return Pipeline.parse("canonicalize,cse,convert-ckks-to-rns,canonicalize,cse,dce")
