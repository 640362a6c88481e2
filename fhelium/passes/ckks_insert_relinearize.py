"""`ckks-insert-relinearize`: bring products back to two components."""

from dataclasses import dataclass
from functools import partial
from typing import Literal

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass

from fhelium.analyses.encrypted_steps import (
    Kind,
    ciphertexts_of,
    encrypted_functions,
    steps_of,
)
from fhelium.analyses.key_resources import key_for
from fhelium.analyses.restoring_placement import Restoring, at_once, fewest, restore
from fhelium.analyses.state_assignment import assign_types, ciphertext_with
from fhelium.dialects import ckks
from fhelium.dialects.ckks.types import CiphertextType, KeyKind, KeyType, StateType
from fhelium.passes.failure import PassFailure

RELINEARIZATION = Restoring(
    raises=(Kind.MULTIPLY,),
    needs_rest=(Kind.MULTIPLY, Kind.MOVE, Kind.LEAVE, Kind.MESSAGE),
    restores=Kind.RELINEARIZE,
    op_name=ckks.RelinearizeOp.name,
)


@dataclass(frozen=True)
class CkksInsertRelinearizePass(ModulePass):
    """Place `ckks.relinearize`, and write on every ciphertext how many components it has.

    Products of two ciphertexts have three components. Rotations, conjugations, further products,
    results of functions and what `dist.send` sends take two; sums, products with plaintexts and
    numbers and collectives take any, but the same of all their operands.

    - `strategy=eager` relinearizes every product at once.
    - `strategy=lazy` relinearizes as few values as possible, each as late as that allows: a sum of
      products once, behind the sum. The number is the least there is without computing a value
      twice; it is found as a minimum cut.

    A relinearization that is there already stays. The key is `@relinearization`, unless the
    function names one. A function whose ciphertexts all have their components is left alone.
    """

    name = "ckks-insert-relinearize"

    strategy: Literal["eager", "lazy"] = "eager"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in encrypted_functions(op):
            if all(_components(value) is not None for value in ciphertexts_of(function)):
                continue
            steps = steps_of(function)
            if self.strategy == "lazy":
                placement = fewest(function, steps, RELINEARIZATION)
            else:
                placement = at_once(steps, RELINEARIZATION)
            restore(placement, partial(_relinearize, function))
            types: dict[SSAValue, StateType] = {}
            for value in ciphertexts_of(function):
                components = 3 if value in placement.raised else 2
                _check_assigned(function, value, components)
                types[value] = ciphertext_with(CiphertextType.of(value), components=components)
            assign_types(function, types)


def _components(value: SSAValue) -> int | None:
    return CiphertextType.of(value).components


def _check_assigned(function: FuncOp, value: SSAValue, expected: int) -> None:
    """Refuse to change how many components a value has by the text."""
    found = _components(value)
    if found is not None and found != expected:
        op = value.owner if isinstance(value.owner, Operation) else function
        raise PassFailure(
            op,
            f"found a ciphertext of {found} components from {op.name}, expected {expected} with "
            "what the pass places: leave components out for it to find",
        )


def _relinearize(function: FuncOp, value: SSAValue) -> ckks.RelinearizeOp:
    key = key_for(function, KeyType(KeyKind.RELINEARIZATION))
    return ckks.RelinearizeOp(value, key, CiphertextType.of(value))
