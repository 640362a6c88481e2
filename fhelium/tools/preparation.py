"""What a program still needs before it can be linked or keys be made for it, and which command
does that.
"""

import shlex
from collections.abc import Iterator

from xdsl.ir import Attribute

from fhelium.dialects.ckks.types import state_types
from fhelium.dialects.secure import TensorType
from fhelium.frontends.program import Program


class UnpreparedError(ValueError):
    """A program that is to be packed or scheduled first, with the command, in one line."""


def check_prepared(program: Program, file: str) -> None:
    """Refuse a program of secret tensors, and one with ciphertexts whose state is not assigned.

    file: where the program came from. Raises `UnpreparedError`.
    """
    types = set(_types(program))
    if any(isinstance(type, TensorType) for type in types):
        found, expected, pipeline = "secret tensors", "ciphertexts", "secure-default"
    elif any(state.unassigned() for type in types for state in state_types(type)):
        found, expected = "values without a level or scale", "one on each"
        pipeline = "ckks-default"
    else:
        return
    raise UnpreparedError(
        f"found {found} in {file}, expected {expected}: run fhelium-opt {shlex.quote(file)} "
        f"-p {pipeline} -o prepared.mlir, and take prepared.mlir"
    )


def _types(program: Program) -> Iterator[Attribute]:
    for op in program.module.walk():
        yield from op.result_types
        for region in op.regions:
            for block in region.blocks:
                yield from block.arg_types
