"""Where the values of a program with several devices are, and where its ops need them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.dialects import arith, func, scf
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp
from xdsl.ir import Attribute, Block, Operation, OpResult, SSAValue
from xdsl.utils.exceptions import VerifyException

from fhelium.analyses.rank_dependence import captured
from fhelium.dialects.core import DEVICE, IN_PLACE, ResourceOp, ResourceType, is_data
from fhelium.dialects.distributed import GroupType, PendingType, RecvOp
from fhelium.dialects.memory import (
    DeviceType,
    MemorySpace,
    Placement,
    TransferOp,
    recorded_placement,
)
from fhelium.passes.failure import PassFailure

Need = tuple[SSAValue, Placement | None]
"""A value and where it is to be; None where it may stay."""

Needs = dict[Need, list[tuple[Operation, int]]]
"""The operands, by op and position, that a value is for."""

Forced = tuple[Operation, Placement | None]
"""An op that runs its regions on one device, and that device."""

UNPLACED = (TransferOp, arith.ConstantOp, func.FuncOp, func.ReturnOp, func.CallOp, scf.YieldOp)
"""Ops with data that other ops or attributes say the device of."""


def _is_key(type: Attribute) -> bool:
    return isinstance(type, ResourceType) and not isinstance(type, (DeviceType, GroupType))


@dataclass
class DevicePlan:
    """Where each value of a module is, and where each use needs it.

    `default` is the device of what comes from outside, if it is known. `others` are the types of
    resources that are called like no device of the module.
    """

    module: ModuleOp
    default: Placement | None
    others: dict[str, Attribute] = field(init=False)
    functions: dict[str, func.FuncOp] = field(init=False)
    called: set[str] = field(init=False)
    places: dict[SSAValue, Placement | None] = field(default_factory=dict)
    needs: Needs = field(default_factory=dict)
    keys: dict[object, Placement] = field(default_factory=dict)

    def __post_init__(self) -> None:
        ops = list(self.module.walk())
        resources = [op for op in ops if isinstance(op, ResourceOp)]
        named = {r.symbol_name for r in resources if isinstance(r.result.type, DeviceType)}
        self.others = {
            r.symbol_name: r.result.type for r in resources if r.symbol_name not in named
        }
        self.functions = {f.sym_name.data: f for f in ops if isinstance(f, func.FuncOp)}
        self.called = {c.callee.string_value() for c in ops if isinstance(c, func.CallOp)}
        for resource in resources:
            if _is_key(resource.result.type) and (place := self.recorded(resource)):
                self.use_key(resource, resource.result, place)

    def place_function(self, function: func.FuncOp) -> Needs:
        """Return what the ops of a function need elsewhere, or instead of a transfer's result."""
        name = function.sym_name.data
        self.recorded(function)
        if len(function.body.blocks) != 1:
            raise PassFailure(
                function,
                f"found {len(function.body.blocks)} blocks in @{name}, expected one: use scf for "
                "control flow",
            )
        block = function.body.block
        self.place(block.args, self.argument_places(function))
        self.needs = {}
        self.place_block(block, None)
        self.need_all(block.last_op, self.result_places(function))
        overwriting = next((op for op in function.walk() if IN_PLACE in op.attributes), None)
        if self.needs and overwriting is not None:
            raise PassFailure(
                overwriting,
                f"found {IN_PLACE} where values move, expected none yet, as a transfer may share "
                "words with its operand: run fhelium-assign-in-place after this pass",
            )
        return self.needs

    def argument_places(self, function: func.FuncOp) -> list[Placement | None]:
        return self.boundary(
            function, function.function_type.inputs, function.arg_attrs, "argument", self.default
        )

    def result_places(self, function: func.FuncOp) -> list[Placement | None]:
        """Return where results are to be; what nothing in the program calls may leave it open."""
        default = self.default if function.sym_name.data in self.called else None
        outputs = function.function_type.outputs
        return self.boundary(function, outputs, function.res_attrs, "result", default)

    def boundary(
        self,
        function: func.FuncOp,
        types: Iterable[Attribute],
        attributes: ArrayAttr[DictionaryAttr] | None,
        kind: str,
        default: Placement | None,
    ) -> list[Placement | None]:
        """Return where the arguments or results of a function are, by their attributes."""
        places: list[Placement | None] = []
        for number, type in enumerate(types):
            own = attributes.data[number].data if attributes is not None else {}
            what = f"{kind} {number} of @{function.sym_name.data}"
            place = self.checked(own, function, what)
            if place is not None and not is_data(type):
                raise PassFailure(
                    function, f"found {DEVICE} on {what} of type {type}, expected it on data alone"
                )
            places.append((place or default) if is_data(type) else None)
        return places

    def place_block(self, block: Block, forced: Forced | None) -> None:
        """Place the ops of a block; `forced` is an op around it that runs on one device."""
        for op in block.ops:
            own = self.recorded(op)
            if forced is not None:
                around, place = forced
                if own is not None and own != place:
                    raise PassFailure(
                        op,
                        f"found {DEVICE} = @{own.device} in a region of {around.name}, which runs "
                        f"on one device: write it on {around.name}",
                    )
                own = place
            match op:
                case func.ReturnOp() | scf.YieldOp():
                    pass
                case scf.ForOp():
                    self.place_loop(op, own, forced)
                case scf.IfOp():
                    self.place_branches(op, own, forced)
                case func.CallOp():
                    self.place_call(op)
                case TransferOp():
                    self.place_transfer(op)
                case arith.ConstantOp():
                    # Host code makes tensors on the CPU, which may be none of the devices.
                    self.place(op.results, [None])
                case RecvOp() if is_data(op.result.type):
                    if own is not None and forced is None:
                        raise PassFailure(
                            op,
                            f"found {DEVICE} on {op.name}, expected none: messages come where the "
                            "group communicates; write it on the ops that use the value",
                        )
                    self.place(op.results, [None])
                case _:
                    self.place_op(op, own)

    def place_op(self, op: Operation, own: Placement | None) -> None:
        """Place an op where it is assigned to, or where the first of its operands is."""
        inputs = _inputs(op)
        place = own or self.first_of(inputs)
        if place is None and not any(is_data(value.type) for value in inputs):
            place = self.default
        self.need_all(op, [place] * len(op.operands))
        made = place and place.device_only()
        self.place(op.results, [made] * len(op.results))
        for result in op.results:
            if _is_key(result.type) and made and not isinstance(op, ResourceOp):
                self.keys[result] = made
        for block in (block for region in op.regions for block in region.blocks):
            self.place(block.args, [made] * len(block.args))
            self.place_block(block, (op, made))

    def first_of(self, values: Iterable[SSAValue]) -> Placement | None:
        """Return the device of the first value whose device is known."""
        places = (self.places.get(value) for value in values)
        return next((place.device_only() for place in places if place is not None), None)

    def place_loop(self, loop: scf.ForOp, own: Placement | None, forced: Forced | None) -> None:
        carried = [own or self.first_of([value]) for value in loop.iter_args]
        self.need_all(loop, [None, None, None, *carried])
        self.place(loop.body.block.args[1:], carried)
        self.place_block(loop.body.block, forced)
        self.need_all(loop.body.block.last_op, carried, required=True)
        self.place(loop.results, carried)

    def place_transfer(self, transfer: TransferOp) -> None:
        device = transfer.device.owner
        if isinstance(device, ResourceOp):
            place = Placement(device.symbol_name, transfer.memory_space.data)
            self.place([transfer.result], [place])
        source = self.origin(transfer.input)
        if not is_replaceable(transfer) and source is not transfer.input:
            self.needs.setdefault((source, None), []).append((transfer, 0))

    def place_branches(
        self, branch: scf.IfOp, own: Placement | None, forced: Forced | None
    ) -> None:
        blocks = [block for region in branch.regions for block in region.blocks]
        for block in blocks:
            self.place_block(block, forced)
        ends = [block.last_op for block in blocks]
        yielded = [end.operands if end is not None else () for end in ends]
        places = [own or self.first_of(values) for values in zip(*yielded, strict=True)]
        for end in ends:
            self.need_all(end, places)
        self.place(branch.results, places)

    def place_call(self, call: func.CallOp) -> None:
        callee = self.functions[call.callee.string_value()]
        self.need_all(call, self.argument_places(callee), required=True)
        self.place(call.results, self.result_places(callee))

    def place(self, values: Sequence[SSAValue], places: Sequence[Placement | None]) -> None:
        for value, place in zip(values, places, strict=True):
            if is_data(value.type):
                self.places[value] = place

    def need_all(
        self,
        op: Operation | None,
        places: Sequence[Placement | None],
        required: bool = False,
    ) -> None:
        """Record where an op needs its operands; with `required`, None is a place to move to."""
        if op is None:
            return
        for index, (operand, place) in enumerate(zip(op.operands, places, strict=True)):
            at = self.places.get(operand)
            if _is_key(operand.type) and place is not None:
                self.use_key(op, operand, place)
            elif is_data(operand.type) and (wanted := place or at) is not None:
                if required and place is None:
                    raise PassFailure(
                        op,
                        f"found a value on @{wanted.device} for operand {index} of {op.name}, "
                        f"expected it on a device that is not known: write {DEVICE}, or give the "
                        "option default",
                    )
                self.need(op, index, wanted)

    def need(self, op: Operation, index: int, wanted: Placement) -> None:
        """Record one operand that has to move, or that had no need to."""
        operand = op.operands[index]
        source = self.origin(operand)
        at = self.places.get(source)
        if at is not None and at.serves(wanted):
            if source is not operand:
                self.needs.setdefault((source, None), []).append((op, index))
            return
        if isinstance(operand.type, PendingType):
            raise PassFailure(
                op,
                f"found a started collective that is used on @{wanted.device}, which can't move: "
                f"write {DEVICE} on the dist.start",
            )
        self.needs.setdefault((source, wanted), []).append((op, index))

    def origin(self, value: SSAValue) -> SSAValue:
        """Return what was moved, in transfers that are planned anew, to become a value."""
        while isinstance(value, OpResult) and is_replaceable(transfer := value.op):
            value = transfer.operands[0]
        return value

    def use_key(self, op: Operation, key: SSAValue, place: Placement) -> None:
        """Refuse a key that is needed on two devices."""
        owner = key.owner
        name = owner.symbol_name if isinstance(owner, ResourceOp) else None
        bound = self.keys.setdefault(name or key, place.device_only())
        if bound.device != place.device:
            what = f"key @{name}" if name else "a received key"
            raise PassFailure(
                op,
                f"found {what} on @{bound.device} and used on @{place.device}, but keys can't "
                "move: name a resource for each device, and bind the key there",
            )

    def recorded(self, op: Operation) -> Placement | None:
        """Return where an op is assigned to. Raises `PassFailure` for one that can't be."""
        place = self.checked(op.attributes, op, op.name)
        if place is None:
            return None
        types = [value.type for value in (*op.operands, *op.results)]
        if isinstance(op, UNPLACED) or not any(is_data(t) or _is_key(t) for t in types):
            raise PassFailure(
                op,
                f"found {DEVICE} on {op.name}, which has no device of its own: write it on the "
                "ops that compute data, or on arguments and results of functions",
            )
        return place

    def checked(
        self, attributes: Mapping[str, Attribute], op: Operation, what: str
    ) -> Placement | None:
        try:
            place = recorded_placement(attributes)
        except VerifyException as error:
            raise PassFailure(op, f"{what}: {error}") from error
        if place is not None:
            self.check_device(place, op, what)
        return place

    def check_device(self, place: Placement, op: Operation, what: str) -> None:
        """Refuse a name that only other resources have. A device need not have one yet."""
        if (other := self.others.get(place.device)) is not None:
            raise PassFailure(
                op,
                f"{what} names the device @{place.device}, found fhelium.resource @{place.device} "
                f": {other}, expected the name of a device: call one of them something else",
            )


def is_replaceable(op: Operation) -> bool:
    """Return whether a transfer says no more than where its value is needed."""
    return (
        isinstance(op, TransferOp)
        and isinstance(op.device.owner, ResourceOp)
        and op.memory_space.data == MemorySpace.DEFAULT
        and is_data(op.input.type)
        and not op.attributes
    )


def _inputs(op: Operation) -> list[SSAValue]:
    """Return the operands of an op, and what its regions use from around it, in order."""
    around = captured(op)
    inner = [value for region in op.regions for o in region.walk() for value in o.operands]
    return [*op.operands, *(value for value in inner if value in around)]
