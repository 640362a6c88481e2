"""`fhelium-assign-implementations`: record which implementation runs an op."""

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from fhelium.dialects import rns
from fhelium.dialects.core import IMPLEMENTATION, IN_PLACE
from fhelium.frontends.diagnostics import nearest
from fhelium.passes import implementation_families
from fhelium.passes.failure import PassFailure
from fhelium.passes.implementation_families import FAMILIES, is_of_no_family
from fhelium.passes.option_checks import check_one_of


@dataclass(frozen=True)
class FheliumAssignImplementationsPass(ModulePass):
    """Record an implementation on ops: by target family, by op name, or on one named value.

    - `{target=torch}` gives each op the family's implementation of it, and leaves alone the ops
      that the family does not have; `op=` and `value=` narrow it down, to ops that it has.
    - `{target=cpu only="ckks.rotate","ckks.rescale"}` does so for these ops, where there are any.
    - `{op="rns.ntt" implementation="my-ntt"}` names the implementation of every such op.
    - `{value="score" implementation="my-add"}` names that of the op that defines `%score`.

    A recorded assignment is kept when it is the same, and refused when it differs, unless
    `overwrite=true`, which drops `fhelium.in_place` where the new one is not known to support it. A
    family without `op=` and `value=` also keeps what records an implementation of no family.

    An implementation of no family may keep its results, or return its operands: ops that would
    overwrite either lose `fhelium.in_place`, as `fhelium-assign-in-place` would not record it.
    """

    name = "fhelium-assign-implementations"

    target: str | None = None
    op: str | None = None
    value: str | None = None
    only: tuple[str, ...] = ()
    implementation: str | None = None
    overwrite: bool = False

    def __post_init__(self) -> None:
        if (self.target is None) == (self.implementation is None):
            raise ValueError("expected one of target=FAMILY and implementation=NAME, and not both")
        if self.implementation == "":
            raise ValueError("found an empty implementation name, expected a name")
        if self.implementation is not None and self.op is None and self.value is None:
            raise ValueError(
                "found implementation= alone, expected op=NAME or value=NAME beside it"
            )
        check_one_of(FAMILIES, target=self.target)
        unknown = sorted(set(self.only) - set(FAMILIES.get(self.target or "", {})))
        if unknown:
            raise ValueError(
                f"found only={','.join(unknown)}, expected target= beside it, and ops that the "
                "family has"
            )

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        assignments = list(self._assignments(op))
        for operation, name in assignments:
            recorded = operation.attributes.get(IMPLEMENTATION)
            if recorded is not None and recorded != StringAttr(name) and not self.overwrite:
                raise PassFailure(
                    operation,
                    f"{operation.name} records {IMPLEMENTATION} = {recorded}, expected none or "
                    f'"{name}": drop the assignment, or say overwrite=true',
                )
        for operation, name in assignments:
            replaced = operation.attributes.get(IMPLEMENTATION) not in (None, StringAttr(name))
            if replaced and name not in implementation_families.IN_PLACE:
                operation.attributes.pop(IN_PLACE, None)
            was_of_no_family = is_of_no_family(operation)
            operation.attributes[IMPLEMENTATION] = StringAttr(name)
            if is_of_no_family(operation) and not was_of_no_family:
                _leave_words_of(operation)

    def _assignments(self, module: ModuleOp) -> Iterator[tuple[Operation, str]]:
        operations = self._selected(module)
        if self.implementation is not None:
            yield from ((operation, self.implementation) for operation in operations)
            return
        assert self.target is not None
        family = FAMILIES[self.target]
        named = self.op is not None or self.value is not None
        for operation in operations:
            if self.only and operation.name not in self.only:
                continue
            if not named and not self.overwrite and is_of_no_family(operation):
                continue
            if operation.name in family:
                yield operation, family[operation.name]
            elif named:
                raise PassFailure(
                    operation,
                    f"found {operation.name}, expected an op that the family {self.target} has: "
                    "name an implementation for it, or leave it out",
                )

    def _selected(self, module: ModuleOp) -> list[Operation]:
        selected = [inner for inner in module.walk() if inner is not module]
        if self.op is not None:
            names = sorted({operation.name for operation in selected})
            selected = [operation for operation in selected if operation.name == self.op]
            if not selected:
                raise PassFailure(module, f"found no op {self.op}{_hint(self.op, names)}")
        if self.value is not None:
            names = [r.name_hint for o in selected for r in o.results if r.name_hint]
            selected = [o for o in selected if any(r.name_hint == self.value for r in o.results)]
            if not selected:
                hint = _hint(self.value, names, "%")
                raise PassFailure(module, f"found no value %{self.value}{hint}")
            if len(selected) > 1:
                raise PassFailure(
                    selected[1],
                    f"found {len(selected)} values %{self.value}, expected one: rename them apart, "
                    "or narrow the choice down with op=NAME",
                )
        return selected


def _leave_words_of(operation: Operation) -> None:
    """Drop `fhelium.in_place` from the ops that would overwrite operands or results of an op."""
    values = [*operation.operands, *operation.results]
    fused = operation.parent_op()
    if isinstance(fused, rns.FusedOp):
        values += [*fused.inputs, *fused.outputs]
    for value in values:
        for use in value.uses:
            if use.index == 0 and use.operation is not operation:
                use.operation.attributes.pop(IN_PLACE, None)


def _hint(name: str, names: list[str], sigil: str = "") -> str:
    similar = nearest(name, names)
    return " in the program" + (f": did you mean {sigil}{similar}?" if similar else "")
