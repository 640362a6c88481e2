"""How many slots the ciphertexts of a program have, as far as it says so."""

from xdsl.dialects.builtin import IntegerAttr, ModuleOp

from fhelium.dialects.ckks.parameters import PARAMETERS, ParametersAttr
from fhelium.dialects.secure.layouts import SLOTS


def packed_slots(module: ModuleOp) -> int | None:
    """Return how many slots the vectors of a module were packed for, or None."""
    slots = module.attributes.get(SLOTS)
    return slots.value.data if isinstance(slots, IntegerAttr) else None


def ring_slots(module: ModuleOp) -> int | None:
    """Return how many slots the `ckks.parameters` of a module have, or None without any."""
    parameters = module.attributes.get(PARAMETERS)
    return parameters.ring_degree.data // 2 if isinstance(parameters, ParametersAttr) else None


def slots_of(module: ModuleOp) -> int | None:
    """Return by how many slots rotations are cyclic, or None while that is not known."""
    slots = ring_slots(module)
    return packed_slots(module) if slots is None else slots
