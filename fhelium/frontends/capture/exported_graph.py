"""What `torch.export` says of a model: its operators in order, its constants, and its lines."""

import linecache
import os
import re
import traceback
import types
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import torch
from torch.export.graph_signature import InputKind, OutputKind
from torch.fx import Node
from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode
from xdsl.dialects.builtin import FileLineColLoc, IntAttr, LocationAttr, StringAttr, UnknownLoc

from fhelium.frontends.diagnostics import Fault, ProgramError, SourceText, place_of_location

_FRAME = re.compile(r'^\s*File "(.+)", line (\d+), in ', re.MULTILINE)
_NOT_THE_MODEL = (f"{Path(torch.__file__).parent}{os.sep}", "<eval_with_key>", __file__)


class CaptureError(ProgramError):
    """A model that has no program, with every reason and its line."""


class _Function(torch.nn.Module):
    """A function as the module that `torch.export` asks for."""

    def __init__(self, function: Callable[..., object]):
        super().__init__()
        if isinstance(function, types.FunctionType):
            # torch.export remembers the lines of functions of this name alone.
            renamed = types.FunctionType(
                function.__code__.replace(co_name="forward"),
                function.__globals__,
                "forward",
                function.__defaults__,
                function.__closure__,
            )
            renamed.__kwdefaults__ = function.__kwdefaults__
            function = renamed
        self.function = function

    def forward(self, *inputs: torch.Tensor) -> object:
        return self.function(*inputs)


@dataclass(frozen=True, eq=False)
class ExportedGraph:
    """A model's operators, without side effects, in an order in which they can run."""

    nodes: Sequence[Node]
    constants: Mapping[str, tuple[str, torch.Tensor]]
    """By the name of its placeholder: a parameter, buffer or other tensor, and its own name."""
    inputs: Sequence[Node]
    outputs: Sequence[object]
    changed: Sequence[tuple[str, Node]]
    """Parameters and buffers that the model writes to, and what it writes."""
    training: bool
    sources: dict[str, SourceText] = field(default_factory=dict)

    def location(self, node: Node) -> LocationAttr:
        """Return the line of the model that a node comes from, where one is known."""
        frames = _FRAME.findall(node.meta.get("stack_trace") or "")
        own = [frame for frame in frames if not frame[0].startswith(_NOT_THE_MODEL)]
        if not own:
            return UnknownLoc()
        return _location(own[-1][0], int(own[-1][1]), self.sources)

    def fault(self, node: Node, message: str) -> Fault:
        """Return what is wrong with a node, at its line."""
        return Fault(message, place_of_location(self.location(node), self.sources))

    @cached_property
    def live(self) -> frozenset[Node]:
        """The nodes that an output depends on."""
        found: set[Node] = set()
        waiting = [output for output in self.outputs if isinstance(output, Node)]
        while waiting:
            node = waiting.pop()
            if node not in found:
                found.add(node)
                waiting.extend(node.all_input_nodes)
        return frozenset(found)


def module_path(node: Node) -> str:
    """Return the qualified name of the submodule that a node belongs to; "" for the model."""
    stack: Mapping[str, tuple[str, str]] = node.meta.get("nn_module_stack") or {}
    return next(reversed([path for path, _ in stack.values()]), "")


def export(
    model: torch.nn.Module | Callable[..., object], examples: Sequence[torch.Tensor]
) -> ExportedGraph:
    """Trace `model` on `examples`. Raises `CaptureError` when `torch.export` cannot."""
    module = model if isinstance(model, torch.nn.Module) else _Function(model)
    try:
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")
            # Two inputs that share memory would become one.
            apart = tuple(example.detach().clone() for example in examples)
            program = torch.export.export(module, apart, strict=False)
            program = program.run_decompositions({})
    except Exception as error:  # whatever the model itself raises, too
        raise CaptureError([_untraceable(error)]) from error
    signature = program.graph_signature
    held = {**program.state_dict, **program.constants}
    placeholders = {node.name: node for node in program.graph.nodes if node.op == "placeholder"}
    constants: dict[str, tuple[str, torch.Tensor]] = {}
    inputs: list[Node] = []
    for spec in signature.input_specs:
        if spec.kind == InputKind.USER_INPUT:
            inputs.append(placeholders[spec.arg.name])
        elif spec.target is not None and isinstance(value := held.get(spec.target), torch.Tensor):
            constants[spec.arg.name] = (spec.target, value.detach())
    (output,) = (node for node in program.graph.nodes if node.op == "output")
    results = list(_flat(output.args[0]))
    kinds = [spec.kind for spec in signature.output_specs]
    return ExportedGraph(
        nodes=[node for node in program.graph.nodes if node.op == "call_function"],
        constants=constants,
        inputs=inputs,
        outputs=[
            result
            for result, kind in zip(results, kinds, strict=True)
            if kind == OutputKind.USER_OUTPUT
        ],
        changed=[
            (spec.target or "?", result)
            for result, spec in zip(results, signature.output_specs, strict=True)
            if spec.kind in (OutputKind.BUFFER_MUTATION, OutputKind.PARAMETER_MUTATION)
            and isinstance(result, Node)
        ],
        training=module.training,
    )


def _flat(results: object) -> Iterator[object]:
    if isinstance(results, tuple | list):
        for each in results:
            yield from _flat(each)
    else:
        yield results


def _untraceable(error: Exception) -> Fault:
    """Return why a model cannot be traced, at the last line of its own that ran."""
    message = f"torch.export cannot trace the model: {_first_line(error)}"
    if isinstance(error, GuardOnDataDependentSymNode):
        message = (
            "found a choice by a value that is known only when the program runs, expected the same "
            "operators for all inputs: compute both sides, and add them with constant weights, or "
            f"return the value, so that the client chooses ({_first_line(error)})"
        )
    own = [
        (frame.filename, frame.lineno or 1)
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith(_NOT_THE_MODEL)
    ]
    if not own:
        return Fault(message)
    sources: dict[str, SourceText] = {}
    return Fault(message, place_of_location(_location(*own[-1], sources), sources))


def _location(file: str, line: int, sources: dict[str, SourceText]) -> LocationAttr:
    """Return where the text of a line begins, and keep its file in `sources`."""
    if file not in sources:
        sources[file] = SourceText(file, "".join(linecache.getlines(file)))
    text = sources[file].line(line) or ""
    column = len(text) - len(text.lstrip()) + 1
    return FileLineColLoc(StringAttr(file), IntAttr(line), IntAttr(column))


def _first_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
