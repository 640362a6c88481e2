"""Every verifier error of a program, where xDSL's own verifier stops at the first."""

from collections.abc import Iterator
from io import StringIO

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, ErasedSSAValue, Operation, Region, SSAValue
from xdsl.irdl.dominance import DominanceInfo
from xdsl.printer import Printer
from xdsl.traits import IsolatedFromAbove, IsTerminator, NoTerminator
from xdsl.utils.exceptions import VerifyException

from fhelium.frontends.diagnostics import Fault, Sources, one_line, place_of, place_of_value

# IsolatedFromAbove's own message prints whole operations; _Checker says it better.
_ISOLATION_MESSAGE = "Operation using value defined out of its IsolatedFromAbove parent"
_SHOWN = 200


def verification_faults(
    module: ModuleOp, sources: Sources | None = None, *, show_operations: bool = False
) -> list[Fault]:
    """Return all that is wrong with `module`, in program order; an empty list when it is valid.

    Each operation is verified on its own (`verify_`), and so are the shape of each block and the
    visibility of each operand. `sources` provides the lines that a report shows;
    `show_operations` adds a note with the operation itself, for IR that no longer is its source.
    """
    return list(_Checker(module, sources or {}, show_operations).faults())


def _short_text(operation: Operation) -> str:
    output = StringIO()
    # The generic form: a custom one may stumble over an invalid operation.
    Printer(output, print_generic_format=True).print_op(operation)
    line = output.getvalue().partition("\n")[0]
    return line if len(line) <= _SHOWN else line[:_SHOWN] + "..."


class _Checker:
    def __init__(self, module: ModuleOp, sources: Sources, show_operations: bool):
        self.sources = sources
        self.show_operations = show_operations
        self.operations = list(module.walk())
        self.order = {operation: index for index, operation in enumerate(self.operations)}
        self.dominance: dict[Region, DominanceInfo] = {}

    def faults(self) -> Iterator[Fault]:
        crash: Exception | None = None
        found = False
        for operation in self.operations:
            messages = [*self.block_faults(operation), *self.operand_faults(operation)]
            try:
                operation.verify_()
            except VerifyException as error:
                if not str(error).startswith(_ISOLATION_MESSAGE):
                    messages.append(self.fault(operation, one_line(error)))
            except Exception as error:
                # A verifier may stumble over a neighbour that is itself at fault; when
                # none is, the verifier has a bug.
                crash = crash or error
            found = found or bool(messages)
            yield from messages
        if crash is not None and not found:
            raise crash

    def fault(self, operation: Operation, message: str) -> Fault:
        place = place_of(operation, self.sources)
        named = f"'{operation.name}'"
        fault = Fault(message if named in message else f"{named}: {message}", place)
        if self.show_operations:
            fault = fault.with_note(f"the operation is now {_short_text(operation)}")
        return fault

    def block_faults(self, operation: Operation) -> Iterator[Fault]:
        """Blocks end with a terminator, and branch within their region."""
        for region in operation.regions:
            several = region.first_block is not region.last_block
            needs_terminator = several or not operation.has_trait(NoTerminator)
            for block in region.blocks:
                last = block.last_op
                if needs_terminator and last is None:
                    yield self.fault(
                        operation,
                        f"found an empty block in '{operation.name}', expected it to end with a "
                        "terminator: add one",
                    )
                elif needs_terminator and last is not None and not last.has_trait(IsTerminator):
                    yield self.fault(
                        last,
                        f"found '{last.name}' at the end of a block of '{operation.name}', "
                        "expected a terminator: add one after it",
                    )
        block = operation.parent_block()
        # The trait IsTerminator says so itself.
        terminates = operation.has_trait(IsTerminator, value_if_unregistered=False)
        at_end = block is not None and block.last_op is operation
        if operation.successors and not at_end and not terminates:
            yield self.fault(
                operation,
                f"found '{operation.name}', which branches, inside a block, expected it at the "
                "end: move it there",
            )
        for successor in operation.successors:
            if block is None or successor.parent is not block.parent:
                yield self.fault(
                    operation,
                    f"found a branch of '{operation.name}' to a block of another region, expected "
                    "a block of its own",
                )

    def operand_faults(self, operation: Operation) -> Iterator[Fault]:
        """Operands are defined before their use, and visible from there."""
        for index, operand in enumerate(operation.operands):
            problem = self.operand_problem(operation, operand)
            if problem is None:
                continue
            hint = "" if operand.name_hint is None else f" (%{operand.name_hint})"
            fault = self.fault(operation, f"operand {index}{hint} of '{operation.name}' {problem}")
            if not isinstance(operand, ErasedSSAValue):
                definition = place_of_value(operand, self.sources)
                if definition is not None:
                    fault = fault.with_note("it is defined here", definition)
            yield fault

    def operand_problem(self, user: Operation, operand: SSAValue) -> str | None:
        if isinstance(operand, ErasedSSAValue):
            return "is a value whose operation was erased: replace its uses before erasing it"
        owner = operand.owner
        block = owner if isinstance(owner, Block) else owner.parent_block()
        region = None if block is None else block.parent
        if isinstance(owner, Operation) and owner not in self.order:
            return "is a value of an operation outside of the program: insert that operation"
        if block is None or region is None:
            return "is a value of an operation outside of any block"
        # The operation that holds the use (or is it) in the region of the definition.
        inside, isolated = user, None
        while (inside_block := inside.parent_block()) is not None and (
            inside_block.parent is not region
        ):
            parent = inside.parent_op()
            if parent is None:
                break
            inside = parent
            if isolated is None and inside.has_trait(
                IsolatedFromAbove, value_if_unregistered=False
            ):
                isolated = inside
        if inside_block is None or inside_block.parent is not region:
            return "is defined in a region that does not enclose this use: move the definition out"
        if isolated is not None:
            return (
                f"is defined outside of '{isolated.name}', which sees nothing of its "
                "surroundings: pass the value in as an argument"
            )
        if inside_block is not block:
            info = self.dominance.get(region)
            if info is None:
                info = self.dominance[region] = DominanceInfo(region)
            if not info.dominates(block, inside_block):
                return "is defined in a block that does not dominate this use"
        # The body of a module is a graph region: order does not matter there.
        elif (
            isinstance(owner, Operation)
            and self.order[owner] >= self.order[inside]
            and (owner is inside or not isinstance(region.parent, ModuleOp))
        ):
            return "is used before its definition: move the definition up"
        return None
