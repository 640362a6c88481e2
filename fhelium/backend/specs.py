"""What the backend knows about each operation class: its effect, and what it must satisfy."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, get_args

from xdsl.ir import Dialect, Operation
from xdsl.traits import MemoryEffect, NoMemoryEffect, Pure, RecursiveMemoryEffect

from fhelium.dialects import get_all_dialects
from fhelium.dialects.ckks import EncryptOp
from fhelium.dialects.ckks.types import state_types
from fhelium.dialects.core import CheckpointOp
from fhelium.dialects.distributed import COLLECTIVES, StartOp, WaitOp

OperationEffect = Literal["pure", "rng-write", "mutation", "opaque"]
"""`pure` may be removed, duplicated and reordered; `opaque` may not, in any way."""

OperationCheck = Callable[[Operation], str | None]
"""Looks at an op before it is linked and returns what is wrong with it, or None."""


@dataclass(frozen=True)
class OperationSpec:
    """One operation class: its IR name, its effect, and the checks that it passes at link time.

    Raises `ValueError` for a name that is not the op's, an unknown effect, and one that contradicts
    the op's traits: passes believe the traits, a run believes the effect.
    """

    name: str
    operation_type: type[Operation]
    effect: OperationEffect
    checks: tuple[OperationCheck, ...] = ()

    def __post_init__(self) -> None:
        if self.effect not in get_args(OperationEffect):
            raise ValueError(
                f"{self.name} has the effect {self.effect!r}, expected one of "
                f"{', '.join(get_args(OperationEffect))}"
            )
        if self.name != self.operation_type.name:
            raise ValueError(
                f"{self.operation_type.__name__} is called {self.operation_type.name}, found the "
                f"name {self.name!r} in its OperationSpec: give it the op's name"
            )
        free = self.operation_type.get_traits_of_type(NoMemoryEffect)
        declared = self.operation_type.get_traits_of_type(MemoryEffect)
        acting = [t for t in declared if not isinstance(t, NoMemoryEffect | RecursiveMemoryEffect)]
        if free and self.effect != "pure":
            raise ValueError(
                f"{self.name} has the trait {type(free[0]).__name__} and the effect "
                f"{self.effect!r}, expected 'pure': passes remove and merge ops with that trait, "
                "so drop the trait, or the effect"
            )
        if acting and self.effect == "pure":
            raise ValueError(
                f"{self.name} has the trait {type(acting[0]).__name__} and the effect 'pure', "
                "expected another one: a run may compute a pure op once for all runs, so drop the "
                "trait, or the effect"
            )


class OperationSpecRegistry:
    """Specs by operation class. Raises `ValueError` when a class or a name comes twice."""

    def __init__(self, specs: Iterable[OperationSpec] = ()):
        self._specs: dict[type[Operation], OperationSpec] = {}
        names: set[str] = set()
        for spec in specs:
            if spec.operation_type in self._specs or spec.name in names:
                raise ValueError(f"{spec.name} has two specs: keep one of them")
            names.add(spec.name)
            self._specs[spec.operation_type] = spec

    def __iter__(self) -> Iterator[OperationSpec]:
        return iter(self._specs.values())

    def __len__(self) -> int:
        return len(self._specs)

    def __contains__(self, operation_type: object) -> bool:
        return operation_type in self._specs

    @property
    def operation_types(self) -> tuple[type[Operation], ...]:
        """Return operation classes in declaration order."""
        return tuple(self._specs)

    def resolve(self, operation_type: type[Operation]) -> OperationSpec:
        """Return the spec of one operation class. Raises `KeyError` when it has none."""
        if operation_type not in self._specs:
            raise KeyError(
                f"{getattr(operation_type, 'name', operation_type)} has no OperationSpec: add one "
                "with with_specs"
            )
        return self._specs[operation_type]

    def with_specs(self, specs: Iterable[OperationSpec]) -> "OperationSpecRegistry":
        """Return this registry extended by `specs`."""
        return OperationSpecRegistry([*self, *specs])


def state_is_assigned(operation: Operation) -> str | None:
    """Check that level, scale, components and form of every operand and result are known."""
    for value in (*operation.operands, *operation.results):
        for state in state_types(value.type):
            if missing := state.unassigned():
                return f"{operation.name} has a value of type {state}, {assignment_of(missing)}"
    return None


def assignment_of(fields: Iterable[str]) -> str:
    """Return what is expected of a type without these fields, and who assigns them."""
    return (
        f"expected an assigned {' and '.join(fields)}: run a scheduling pass, as ckks-default "
        "does, or write it in the text"
    )


EFFECTS: Mapping[type[Operation], OperationEffect] = MappingProxyType(
    {
        **dict.fromkeys((*COLLECTIVES, StartOp, WaitOp, CheckpointOp), "opaque"),
        EncryptOp: "rng-write",
    }
)
"""Effects of the project's ops that do not carry the trait `Pure`."""


def build_specs(
    dialects: Iterable[Dialect], effects: Mapping[type[Operation], OperationEffect]
) -> OperationSpecRegistry:
    """Return a spec for every op of `dialects`.

    Raises `ValueError` for an op that is neither `Pure` nor listed in `effects`.
    """
    specs: list[OperationSpec] = []
    for dialect in dialects:
        for operation_type in dialect.operations:
            pure = operation_type.has_trait(Pure())
            effect = "pure" if pure else effects.get(operation_type)
            if effect is None:
                raise ValueError(
                    f"{operation_type.name} declares no effect: give it the trait Pure, or list it "
                    "in fhelium.backend.specs.EFFECTS"
                )
            specs.append(
                OperationSpec(operation_type.name, operation_type, effect, (state_is_assigned,))
            )
    return OperationSpecRegistry(specs)


DEFAULT_OPERATION_SPECS = build_specs(
    [factory() for factory in get_all_dialects().values()], EFFECTS
)
"""Specs of every op of the project's dialects."""
