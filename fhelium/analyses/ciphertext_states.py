"""What a pass that needs levels and scales requires of every ciphertext and plaintext."""

from collections.abc import Iterable

from xdsl.ir import Attribute, Operation
from xdsl.utils.exceptions import VerifyException

from fhelium.dialects.ckks.checks import expect_room
from fhelium.dialects.ckks.parameters import PARAMETERS
from fhelium.dialects.ckks.types import state_types
from fhelium.passes.failure import PassFailure
from fhelium.scheme.parameters import Parameters


def holds_state(type: Attribute) -> bool:
    """Return whether a type is, or holds, a ciphertext or plaintext."""
    return bool(state_types(type))


def require_states(
    operation: Operation, types: Iterable[Attribute], parameters: Parameters
) -> None:
    """Refuse an op with a state in `types` that is not assigned, or that no modulus is for."""
    for type in types:
        for state in state_types(type):
            if missing := state.unassigned():
                raise PassFailure(
                    operation,
                    f"found {operation.name} with a value of type {state}, expected an assigned "
                    f"{' and '.join(missing)}: run ckks-default before, or write it in the text",
                )
            assert state.level is not None
            assert state.scale is not None
            if state.level > parameters.max_level:
                raise PassFailure(
                    operation,
                    f"found {operation.name} with a value at level {state.level}, expected at most "
                    f"{parameters.max_level}, the top level of {PARAMETERS}",
                )
            try:
                expect_room(state.scale, state.level, parameters.moduli)
            except VerifyException as error:
                raise PassFailure(operation, str(error)) from None
