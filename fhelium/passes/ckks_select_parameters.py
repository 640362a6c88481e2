"""`ckks-select-parameters`: the smallest secure parameters for a program."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import inf, log2
from typing import Literal

from xdsl.context import Context
from xdsl.dialects.builtin import FloatAttr, ModuleOp, TensorType
from xdsl.dialects.func import ReturnOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from fhelium.analyses.encrypted_steps import ciphertexts_of, encrypted_functions, states_of
from fhelium.analyses.slot_count import packed_slots
from fhelium.dialects import ckks
from fhelium.dialects.ckks.parameters import PARAMETERS
from fhelium.dialects.ckks.types import CiphertextType
from fhelium.dialects.secure.layouts import power_of_two
from fhelium.passes.ckks_annotate_error import MAY_OVERFLOW, PRECISION, CkksAnnotateErrorPass
from fhelium.passes.ckks_assign_scales import CkksAssignScalesPass
from fhelium.passes.failure import PassFailure
from fhelium.passes.option_checks import check_at_least, check_positive
from fhelium.scheme.choice import NoParametersError, choose
from fhelium.scheme.parameters import Parameters
from fhelium.scheme.security import MAXIMUM_LOG_QP

_MOST_TRIES = 8

_MOST_PRECISION = 40
"""Bits that float64 leaves room for at any depth."""


@dataclass(frozen=True)
class CkksSelectParametersPass(ModulePass):
    """Choose `ckks.parameters`: the smallest ring at 128-bit security that the program fits in.

    - `depth` is the number of levels; without it, the highest level that the program uses, which
      `ckks-assign-levels` has found. With it the pass may run at any time, before vectors are
      packed too.
    - `precision` is the number of bits after the point that results are to have, 20 by default.
    - `largest` bounds the magnitude of every value on the way, 1 by default.
    - `min-slots` is how many slots there have to be; the vectors that the program encodes and the
      steps that it rotates by count anyway. A program that was packed for a number of slots has
      exactly those.
    - `by=depth` takes the errors of a chain of products for those of the program, as
      `fhelium-params` does. `by=program` follows the program's own errors with
      `ckks-annotate-error`, and takes a greater scale until every result has the precision and no
      message overflows; it needs assigned levels, and its bounds are too careful for long sums.
    - `ranks` is the size of the groups that reductions fold over, for `by=program`.

    Parameters that are there already stay. Where there are none that will do, the pass says which
    depth or precision would.
    """

    name = "ckks-select-parameters"

    depth: int | None = None
    precision: int | float = 20.0
    largest: int | float = 1.0
    min_slots: int | None = None
    by: Literal["depth", "program"] = "depth"
    ranks: int | None = None

    def __post_init__(self) -> None:
        check_at_least(0, depth=self.depth)
        check_at_least(1, min_slots=self.min_slots, ranks=self.ranks)
        check_positive(precision=self.precision, largest=self.largest)

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if PARAMETERS in op.attributes:
            return
        functions = list(encrypted_functions(op))
        if not functions and self.depth is None:
            return
        depth = highest_level(op) if self.depth is None else self.depth
        if self.by == "program":
            parameters = self._for_program(ctx, op, depth)
        else:
            parameters = self._for_depth(op, depth)
        op.attributes[PARAMETERS] = parameters.to_attribute()

    def _for_depth(self, module: ModuleOp, depth: int) -> Parameters:
        """Return the smallest parameters for a chain of products."""
        packed = packed_slots(module)
        slots = max(self.min_slots or 1, packed or 1, *_slots_used(module))
        if packed is not None and slots > packed:
            raise PassFailure(
                module,
                f"found a program packed for {packed} slots, and one of {slots} is wanted: pack it "
                f"with secure-assign-layouts{{slots={power_of_two(slots)}}}",
            )
        degrees = [degree for degree in sorted(MAXIMUM_LOG_QP) if degree >= 2 * slots]
        if not degrees:
            raise PassFailure(
                module, f"found {slots} slots, expected at most {max(MAXIMUM_LOG_QP) // 2}"
            )
        reason = ""
        for degree in degrees:
            try:
                choice = choose(
                    depth=depth,
                    precision=self.precision,
                    largest=self.largest,
                    ring_degree=degree,
                )
            except NoParametersError as error:
                reason = str(error)
                continue
            except ValueError as error:
                raise PassFailure(module, str(error)) from error
            if packed is not None and degree != 2 * packed:
                raise PassFailure(
                    module,
                    f"found a program packed for {packed} slots, which needs N = {degree} at "
                    f"depth {depth} and {self.precision:g} bits: pack it with "
                    f"secure-assign-layouts{{slots={degree // 2}}}",
                )
            return choice.parameters
        raise PassFailure(module, f"{reason}{self._alternatives(depth, degrees[-1])}")

    def _alternatives(self, depth: int, degree: int) -> str:
        """Say roughly what there is instead at the largest degree, if anything."""
        limit, precision = MAXIMUM_LOG_QP[degree], min(self.precision, _MOST_PRECISION)
        try:
            shallow = choose(
                depth=1, precision=precision, largest=self.largest, ring_degree=degree
            ).parameters
        except NoParametersError:
            return ""
        # How many bits a scale has beyond the precision, and the chain beyond its levels.
        lost = log2(shallow.scale) - precision
        ends = shallow.log_qp - log2(shallow.scale)
        levels = int((limit - ends) / (precision + lost))
        bits = min(int((limit - ends) / max(depth, 1) - lost), _MOST_PRECISION)
        found = [f"{levels} levels at {precision:g} bits"]
        if bits > 0:
            found.append(f"{bits} bits at depth {depth}")
        return f". At N = {degree} there are about {' or '.join(found)}"

    def _for_program(self, ctx: Context, module: ModuleOp, depth: int) -> Parameters:
        """Return the smallest parameters with which the program's own errors are small enough."""
        wanted, bits, overflows = self, inf, False
        for _ in range(_MOST_TRIES):
            parameters = wanted._for_depth(module, depth)
            bits, overflows = _outcome(ctx, module, parameters, self.largest, self.ranks)
            if bits >= self.precision and not overflows:
                return parameters
            wanted = replace(
                wanted,
                precision=wanted.precision + max(0.0, self.precision - bits),
                largest=wanted.largest * (16 if overflows else 1),
            )
        raise PassFailure(
            module,
            f"found {bits:.1f} bits of precision{' and an overflow' if overflows else ''} after "
            f"{_MOST_TRIES} tries, expected {self.precision:g}: the program's sums or numbers are "
            "large, so scale them down, or say by=depth",
        )


def highest_level(module: ModuleOp) -> int:
    """Return the highest level of a module. Raises `PassFailure` where one is not assigned."""
    depth = 0
    for function in encrypted_functions(module):
        for value in ciphertexts_of(function):
            if CiphertextType.of(value).level is None:
                raise PassFailure(
                    value.owner if isinstance(value.owner, Operation) else function,
                    "found a ciphertext without a level, expected one on each, or the option "
                    "depth=: ckks-assign-levels finds them",
                )
        depth = max([depth, *(type.level or 0 for type in states_of(function))])
    return depth


def _slots_used(module: ModuleOp) -> Iterator[int]:
    """Yield how many slots each encoding and rotation takes at least."""
    for op in module.walk():
        match op:
            case ckks.EncodeOp() if isinstance(op.input.type, TensorType):
                yield op.input.type.get_shape()[-1]
            case ckks.RotateOp():
                yield abs(op.step.value.data) + 1
            case ckks.RotateManyOp():
                yield from (abs(step) + 1 for step in op.steps.get_values())
            case _:
                pass


def _outcome(
    ctx: Context, module: ModuleOp, parameters: Parameters, largest: float, ranks: int | None
) -> tuple[float, bool]:
    """Return the bits of the least precise result, and whether a message may overflow."""
    trial = module.clone()
    trial.attributes[PARAMETERS] = parameters.to_attribute()
    CkksAssignScalesPass().apply(ctx, trial)
    CkksAnnotateErrorPass(largest=largest, ranks=ranks).apply(ctx, trial)
    bits, overflows = inf, False
    for op in trial.walk():
        overflows |= MAY_OVERFLOW in op.attributes
        if isinstance(op, ReturnOp):
            for operand in op.operands:
                precision = (
                    operand.owner.attributes.get(PRECISION)
                    if isinstance(operand.owner, Operation)
                    else None
                )
                if isinstance(precision, FloatAttr):
                    bits = min(bits, precision.value.data)
    return bits, overflows
