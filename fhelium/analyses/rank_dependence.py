"""Which values may differ between the ranks of a group, and where they begin to.

A value is the same on all ranks of a group when nothing that it is computed from may differ. What
it is computed from is followed backwards: through pure ops, the results and arguments of control
flow (with the conditions and bounds that choose between them), calls, and local buffers. Ranks
begin to differ at `dist.rank`, at what each rank is given by itself (arguments of `@main`,
materials, resources) and at ops of which nothing is known; collectives that give every rank the
same result make them equal again.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace

from xdsl.dialects import func, memref, scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from fhelium.analyses.call_graph import CallGraph
from fhelium.dialects import distributed
from fhelium.dialects.core import MaterialOp, ResourceOp
from fhelium.dialects.effects import is_effect_free

AGREEING = (
    distributed.BroadcastOp,
    distributed.AllReduceOp,
    distributed.AllReduceAddCiphertextOp,
    distributed.AllReduceAddCiphertextsOp,
    distributed.AllGatherOp,
    distributed.GroupSizeOp,
)
"""Ops whose result is the same on all ranks of their group."""


@dataclass(frozen=True)
class Origin:
    """A value at which ranks begin to differ, and why they do."""

    value: SSAValue
    reason: str
    advice: str = ""
    """What to do about it, where `dist.broadcast` would not help."""


GroupKey = str | SSAValue
"""A group: the name of a resource, or a value that stands for a group of its own."""


def group_key(group: SSAValue) -> GroupKey:
    """Return what tells a group from others: equal keys are the same group on each rank."""
    return group.owner.symbol_name if isinstance(group.owner, ResourceOp) else group


def value_name(value: SSAValue) -> str:
    """Return how a message calls a value."""
    if value.name_hint:
        return f"%{value.name_hint}"
    owner = value.owner
    return "an argument" if isinstance(owner, Block) else f"the result of {owner.name}"


def captured(operation: Operation) -> set[SSAValue]:
    """Return the values from around `operation` that its regions use."""
    own: set[SSAValue] = set()
    used: set[SSAValue] = set()
    for inner in operation.walk():
        own.update(inner.results)
        own.update(arg for region in inner.regions for block in region.blocks for arg in block.args)
        if inner is not operation:
            used.update(inner.operands)
    return used - own


def computed_inside(operation: Operation) -> list[SSAValue]:
    """Return what the regions of `operation` compute, and what they hand on."""
    inside = [inner for inner in operation.walk() if inner is not operation]
    return [value for inner in inside for value in (inner.results or inner.operands)]


@dataclass
class RankDependence:
    """The question for a whole module, whose calls are followed by name.

    What is found to be the same is remembered. So a module may change between two questions, but
    only in ways that leave equal what was equal.
    """

    module: ModuleOp
    inputs_are_equal: bool = False
    """Whether all ranks are given the same arguments of `@main`, materials and resources."""
    calls: CallGraph = field(init=False)
    alike: "dict[Lineage, set[_Followed]]" = field(init=False, repr=False, default_factory=dict)
    """What is known to be the same on all ranks of a group, and so is all that it comes from."""

    def __post_init__(self) -> None:
        self.calls = CallGraph(self.module)

    def origin(self, value: SSAValue, group: SSAValue) -> Origin | None:
        """Return where ranks of `group` may begin to differ in `value`, or None: it is the same."""
        lineage = Lineage.of(group)
        alike = self.alike.setdefault(lineage, set())
        followed: list[_Followed] = []
        for each, found in self._back_from([value], lineage, alike, ()):
            if isinstance(found, Origin):
                return found
            followed.append(each)
        alike.update(followed)
        return None

    def arguments_behind(
        self, values: Iterable[SSAValue], group: "Lineage", function: func.FuncOp
    ) -> set[BlockArgument]:
        """Return the arguments of a function from which values in it are computed.

        Ranks of `group` differ in none of the values.
        """
        arguments = function.body.block.args
        back = self._back_from(values, group, set(), set(arguments))
        followed = {each.value for each, _ in back}
        return {argument for argument in arguments if argument in followed}

    def _back_from(
        self,
        values: Iterable[SSAValue],
        group: "Lineage",
        known: "Collection[_Followed]",
        ends: Collection[SSAValue],
    ) -> "Iterator[tuple[_Followed, Origin | list[_Followed]]]":
        """Yield values, and all that they come from and is not `known`, each with its sources.

        Nothing is yielded twice, and what `ends` come from only if others do.
        """
        first = [_Followed(value, here=True) for value in values]
        waiting = [each for each in first if each not in known]
        seen = set(waiting)
        for each in waiting:
            found = [] if each.value in ends else self.sources(each, group)
            yield each, found
            if isinstance(found, Origin):
                continue
            for source in found:
                if source not in seen and source not in known:
                    seen.add(source)
                    waiting.append(source)

    def sources(self, followed: "_Followed", group: "Lineage") -> "Origin | list[_Followed]":
        """Return what a value is computed from, one step back, or why it may differ."""
        value, owner = followed.value, followed.value.owner
        if followed.here and value in group.colors:
            return []
        if isinstance(owner, Block):
            found = self.argument(value, owner, followed.call)
        elif isinstance(owner, func.CallOp):
            found = self.call_result(value, owner)
        else:
            found = self.result(value, owner, group, followed.here)
        if isinstance(found, Origin):
            return found
        if isinstance(owner, func.CallOp):
            return [_Followed(source, call=owner) for source in found]
        if isinstance(owner, Block) and isinstance(owner.parent_op(), func.FuncOp):
            return [_Followed(source) for source in found]
        return [replace(followed, value=source) for source in found]

    def argument(
        self, value: SSAValue, block: Block, call: func.CallOp | None
    ) -> Origin | Iterable[SSAValue]:
        """The sources of a block argument; `call` is the one call that it is of, if known."""
        parent, region = block.parent_op(), block.parent_region()
        index = block.args.index(value)  # pyright: ignore[reportArgumentType]
        if region is None or block is not region.blocks[0]:
            return Origin(value, "it comes from a branch of unstructured control flow")
        match parent:
            case func.FuncOp() if call is not None:
                return [call.operands[index]]
            case func.FuncOp():
                if self.calls.is_entry(parent):
                    if self.inputs_are_equal:
                        return []
                    name = parent.sym_name.data
                    return Origin(value, f"each rank passes its own argument to @{name}")
                return [call.operands[index] for call in self.calls.callers[parent.sym_name.data]]
            case scf.ForOp() if index == 0:
                return (parent.lb, parent.ub, parent.step)
            case scf.ForOp():
                return (parent.iter_args[index - 1], yielded(block).operands[index - 1])
            case scf.WhileOp() if block is parent.before_region.block:
                back = yielded(parent.after_region.block)
                return (parent.arguments[index], back.operands[index])
            case scf.WhileOp():
                return [yielded(parent.before_region.block).operands[1 + index]]
            case distributed.CombiningOp():
                # Values of other ranks, which every rank folds in one order.
                return []
            case Operation() if is_effect_free(parent):
                return (*parent.operands, *computed_inside(parent))
            case _:
                name = "the module" if parent is None else parent.name
                return Origin(value, f"{name} passes it, and may do so differently on each rank")

    def call_result(self, value: SSAValue, call: func.CallOp) -> Origin | Iterable[SSAValue]:
        """The sources of a result of a call: what the function returns there."""
        name = call.callee.string_value()
        callee = self.calls.functions.get(name)
        if callee is None or len(callee.body.blocks) != 1:
            return Origin(value, f"@{name} has no body with one block, so nothing is known of it")
        return [yielded(callee.body.block).operands[call.results.index(value)]]  # pyright: ignore[reportArgumentType]

    def result(
        self, value: SSAValue, op: Operation, group: "Lineage", here: bool
    ) -> Origin | Iterable[SSAValue]:
        """The sources of a result of any other op."""
        index = op.results.index(value)  # pyright: ignore[reportArgumentType]
        match op:
            case distributed.RankOp():
                return Origin(value, "dist.rank differs on every rank")
            case _ if isinstance(op, AGREEING):
                return self.agreed(value, op, group, here)
            case distributed.WaitOp():
                return [yielded(op.start.body.block).operands[index]]
            case MaterialOp() | ResourceOp() if self.inputs_are_equal:
                return []
            case MaterialOp():
                return Origin(value, f"each rank loads its own material @{op.symbol_name}")
            case ResourceOp() if isinstance(op.result.type, distributed.GroupType):
                # What ranks learn of a group, its size, their number in it, comes from other ops.
                return []
            case ResourceOp():
                return Origin(
                    value,
                    f"each rank binds its own resource @{op.symbol_name}",
                    f"bind the same @{op.symbol_name} on all ranks, and link with --no-verify-spmd",
                )
            case scf.IfOp():
                ends = [yielded(region.block) for region in op.regions if region.blocks]
                return (op.cond, *(end.operands[index] for end in ends))
            case scf.ForOp():
                end = yielded(op.body.block)
                return (op.lb, op.ub, op.step, op.iter_args[index], end.operands[index])
            case scf.WhileOp():
                end = yielded(op.before_region.block)
                return (end.operands[0], end.operands[1 + index])
            case memref.LoadOp():
                return self.contents(value, op)
            case _ if is_effect_free(op):
                return (*op.operands, *computed_inside(op))
            case _:
                return Origin(value, f"{op.name} may give another result on each rank")

    def agreed(
        self, value: SSAValue, op: Operation, group: "Lineage", here: bool
    ) -> Origin | Iterable[SSAValue]:
        """The sources of a result that is the same on all ranks of its own group."""
        assert isinstance(op, AGREEING)
        if group.agrees_within(op.group, here):
            return computed_inside(op)
        key = group_key(op.group)
        if isinstance(key, str) or key not in group.groups:
            return Origin(value, f"{op.name} makes it equal within another group only")
        part = value_name(key)
        if made_once(key.owner):
            return Origin(value, f"{op.name} made it equal within the {part} of another call only")
        around = key.owner.parent_op()
        name = "" if around is None else around.name
        return Origin(
            value,
            f"{op.name} makes it equal within {part}, which is split inside {name} and may be "
            "another part each time",
            f"move dist.split and what uses {part} into a function, which {name} calls",
        )

    def contents(self, value: SSAValue, load: memref.LoadOp) -> Origin | list[SSAValue]:
        """The sources of what is loaded from a buffer: everything that is ever stored in it.

        That is known for a buffer that is only loaded from, stored to and freed in its function.
        """
        buffer = load.memref
        uses = [use.operation for use in buffer.uses]
        stores = [op for op in uses if isinstance(op, memref.StoreOp)]
        kept = isinstance(buffer.owner, memref.AllocOp | memref.AllocaOp) and all(
            isinstance(op, memref.LoadOp | memref.DeallocOp | memref.StoreOp) for op in uses
        )
        if not kept or any(op.value is buffer for op in stores):
            return Origin(value, "it comes from memory that other ops may write")
        sources = [*load.indices]
        for store in stores:
            sources += [store.value, *store.indices]
            for around in ancestors(store):
                match around:
                    case scf.IfOp():
                        sources.append(around.cond)
                    case scf.ForOp():
                        sources += [around.lb, around.ub, around.step]
                    case scf.WhileOp():
                        sources.append(yielded(around.before_region.block).operands[0])
                    case func.FuncOp():
                        break
                    case _:
                        return Origin(value, f"it is stored inside {around.name}")
        return sources


@dataclass(frozen=True)
class _Followed:
    """A value on the way back to where ranks begin to differ.

    Only the last call on the way is kept, so that there are few: behind an argument of its
    function, all calls of the function around count.
    """

    value: SSAValue
    here: bool = False
    """Whether the value belongs to the same call of its function as the group."""

    call: func.CallOp | None = None
    """The call of its function that the value belongs to, if its result led here."""


@dataclass(frozen=True)
class Lineage:
    """A group, the groups that it was split from, and the colors by which it was."""

    groups: frozenset[GroupKey]
    colors: frozenset[SSAValue]

    @staticmethod
    def of(group: SSAValue) -> "Lineage":
        groups: set[GroupKey] = {group_key(group)}
        colors: set[SSAValue] = set()
        while isinstance(split := group.owner, distributed.SplitOp):
            if made_once(split):
                colors.add(split.color)
            group = split.group
            groups.add(group_key(group))
        return Lineage(frozenset(groups), frozenset(colors))

    def agrees_within(self, other: SSAValue, here: bool) -> bool:
        """Return whether what all ranks of `other` agree on is the same within this group too."""
        key = group_key(other)
        if key not in self.groups:
            return False
        # A group that is split anew in each call or iteration has other ranks each time.
        return isinstance(key, str) or (here and made_once(key.owner))


def made_once(owner: Operation | Block) -> bool:
    """Return whether a value is made once in each call of its function."""
    parent = owner.parent_op()
    return isinstance(parent, func.FuncOp | ModuleOp) or parent is None


def ancestors(operation: Operation) -> Iterator[Operation]:
    """Yield the ops around an op, from the inside."""
    parent = operation.parent_op()
    while parent is not None:
        yield parent
        parent = parent.parent_op()


def yielded(block: Block) -> Operation:
    """Return the terminator of a block, whose operands it hands on."""
    assert block.last_op is not None
    return block.last_op
