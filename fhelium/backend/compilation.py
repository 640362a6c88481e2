"""A program on its way to an executable: its IR, its materials and its pipeline."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from fhelium.frontends.program import Program
from fhelium.passes.pipeline import Pipeline, default_pipeline
from fhelium.scheme.arguments import check_type


@dataclass(frozen=True, eq=False)
class Compilation:
    """Hold one Program, the values of its materials by name, and how to lower it.

    A material is a `Plaintext`, a `Ciphertext` or a tensor; those that are not given are taken from
    `Program.materials`. Linking clones the program, so one compilation can be linked many times.
    The executable runs the function `@main`. Raises `TypeError` for other objects.
    """

    program: Program
    materials: Mapping[str, object] = field(default_factory=dict, repr=False)
    pipeline: Pipeline = field(default_factory=default_pipeline)

    def __post_init__(self) -> None:
        check_type("Compilation", self.program, Program, fix="as Program.parse returns")
        check_type("Compilation", self.materials, Mapping, fix="values by name")
        check_type("Compilation", self.pipeline, Pipeline, fix="as Pipeline.parse returns")
        materials = {**self.program.materials, **self.materials}
        object.__setattr__(self, "materials", MappingProxyType(materials))
