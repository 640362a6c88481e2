"""What a scheduled program comes to, in the numbers by which circuits are compared."""

from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp

from fhelium.dialects import ckks
from fhelium.passes.ckks_list_required_keys import required_keys
from fhelium.passes.ckks_select_parameters import highest_level


@dataclass(frozen=True)
class CircuitCounts:
    """Numbers of a program whose loops are unrolled.

    key_switches: products with a switching key: rotations, conjugations and relinearizations.
    rotations: those of the key switches that rotate.
    hoisted: rotations that need no decomposition of their own, since they share one.
    rescales: divisions by the primes of a level, those that bring a dropped value to its scale
        among them.
    levels: the highest level of any ciphertext.
    rotation_keys: keys for different steps.
    """

    key_switches: int
    rotations: int
    hoisted: int
    rescales: int
    levels: int
    rotation_keys: int

    @staticmethod
    def of(module: ModuleOp) -> "CircuitCounts":
        """Count a program whose levels are assigned, before its whole ops are fused or lowered.

        Raises `PassFailure` where a level is not assigned.
        """
        ops = list(module.walk())
        steps = [len(op.steps) for op in ops if isinstance(op, ckks.RotateManyOp)]
        rotations = sum(isinstance(op, ckks.RotateOp) for op in ops) + sum(steps)
        others = sum(isinstance(op, ckks.RelinearizeOp | ckks.ConjugateOp) for op in ops)
        keys = required_keys(module).values()
        return CircuitCounts(
            key_switches=rotations + others,
            rotations=rotations,
            hoisted=sum(steps) - len(steps),
            rescales=sum(isinstance(op, ckks.RescaleOp) for op in ops),
            levels=highest_level(module),
            rotation_keys=len({key for key in keys if key.step is not None}),
        )
