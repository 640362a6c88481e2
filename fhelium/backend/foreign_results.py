"""Implementations that do not come with FHElium: fused regions call them, and results are checked.

What FHElium brings is tested to return what its ops say, so that its calls cost nothing more. One
of a third party is looked at on each call: a wrong kind, dtype, shape or device is an error of its
op, and not of the one that takes the result, which may be machine code. Residues are not read here,
which would take as long as an addition.
"""

from collections.abc import Callable
from dataclasses import replace

import torch
from xdsl.ir import Operation

from fhelium.backend.dispatch import OperationDispatch
from fhelium.backend.registry import OperationImplementation
from fhelium.backend.torch_family.fusion import TorchFusedImplementation
from fhelium.backend.values import check_result
from fhelium.dialects import rns
from fhelium.scheme.parameters import Parameters


def comes_with_fhelium(implementation: OperationImplementation) -> bool:
    """Return whether the class of an implementation is one of FHElium's own."""
    return type(implementation).__module__.startswith("fhelium.")


def call_inside_fused_regions(dispatches: dict[Operation, OperationDispatch]) -> None:
    """Let a fused region call its ops one by one where a third party's implementation runs one.

    A kernel for the whole region would leave that implementation out.
    """
    for operation, dispatch in list(dispatches.items()):
        fused = operation.parent_op()
        if comes_with_fhelium(dispatch.implementation) or not isinstance(fused, rns.FusedOp):
            continue
        around = dispatches.get(fused)
        if around is not None and comes_with_fhelium(around.implementation):
            dispatches[fused] = replace(
                around, implementation=TorchFusedImplementation(), requirements=()
            )


def with_checked_results(
    call: Callable[..., object], operation: Operation, name: str, parameters: Parameters | None
) -> Callable[..., object]:
    """Return a call of implementation `name` whose results are checked each time.

    It raises `TypeError` for another kind or dtype, and `ValueError` for another shape, or for a
    device that no operand is on; ops of `mem` move values.
    """
    types, moves = operation.result_types, operation.dialect_name() == "mem"

    def checked(*operands: object) -> object:
        results = call(*operands)
        if len(types) == 1 and isinstance(results, tuple):
            raise TypeError(
                f"result 0 of {name!r} is a tuple, expected a tensor: return the one result itself"
            )
        each = (results,) if len(types) == 1 else results
        assert isinstance(each, tuple)
        devices = () if moves else [x.device for x in operands if isinstance(x, torch.Tensor)]
        for i, (result, type) in enumerate(zip(each, types, strict=True)):
            check_result(result, type, parameters, f"result {i} of {name!r}", devices)
        return results

    return checked if types else call
