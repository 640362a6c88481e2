"""`fhelium.compile`: a torch model, or a function on tensors, as a program on secrets."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from inspect import Parameter, signature
from types import MappingProxyType
from typing import Any

import torch
from torch._ops import HigherOrderOperator
from torch.fx import Node
from torch.fx.node import map_arg
from xdsl.dialects.builtin import TensorType as PublicTensorType
from xdsl.dialects.builtin import f64
from xdsl.ir import SSAValue

from fhelium.dialects.core import MaterialOp
from fhelium.dialects.secure.types import TensorType
from fhelium.frontends.capture.approximation import FUNCTIONS, Approximation
from fhelium.frontends.capture.builder import (
    Argument,
    Builder,
    Call,
    Constant,
    PublicInput,
    RefusedError,
    Secret,
)
from fhelium.frontends.capture.exported_graph import (
    CaptureError,
    ExportedGraph,
    export,
    module_path,
)
from fhelium.frontends.capture.operators import INSTEAD, RULES
from fhelium.frontends.diagnostics import Fault, nearest, one_line
from fhelium.frontends.input_names import name_inputs
from fhelium.frontends.program import Program

_GENERAL = "docs/capture.md lists the operators that have a meaning on secrets"
_UNWRITTEN = ("empty", "empty_like", "empty_permuted", "empty_strided", "new_empty")


def compile(
    model: torch.nn.Module | Callable[..., object],
    example_inputs: Sequence[torch.Tensor],
    *,
    secret: Sequence[str | int] | None = None,
    batched: bool = False,
    activations: Mapping[str, Approximation] | None = None,
    pipeline: str | None = None,
) -> Program:
    """Return the program of `model`, with its weights as `Program.materials`.

    `example_inputs` are tensors of the shapes of one sample; their values do not matter. `secret`
    names the inputs that are encrypted, by parameter or position: all of them, unless it says less.
    The others are inputs of type `tensor<...xf64>`. With `batched`, the first dimension of each
    secret example is a batch of one, as many modules want it; the program leaves it out.

    `activations` says which polynomial stands for an activation, under the name of the function
    (relu, silu, gelu, sigmoid, tanh) or of a submodule, which counts first. `pipeline` lowers the
    program as `Pipeline.parse` reads it; without, it is in the dialect `secure`. Where values get
    larger than 1, say how large: `secure-select-parameters{largest=8},secure-default`.

    Raises `CaptureError` (a `ProgramError`) that lists every operator with no meaning on secrets,
    its line in the model and what to use instead; `TypeError` and `ValueError` for arguments that
    do not fit; `SpecError` and `ProgramError` from the pipeline.
    """
    for position, example in enumerate(_checked_examples(example_inputs)):
        if not example.is_floating_point():
            raise TypeError(
                f"example input {position} has dtype {example.dtype}, expected a floating-point one"
            )
        if not example.numel():
            raise ValueError(
                f"example input {position} has the shape {list(example.shape)}, expected sizes of "
                "at least 1: give a sample that is not empty"
            )
    names = _input_names(model, len(example_inputs))
    secrets = _secret_positions(secret, names)
    chosen = dict(activations or {})
    _check_activations(chosen, model)
    if batched:
        for position in sorted(secrets):
            shape = list(example_inputs[position].shape)
            if len(shape) < 2 or shape[0] != 1:
                raise ValueError(
                    f"input '{names[position]}' has the example shape {shape}, expected a batch of "
                    "one in front, as in [1, 64]: give one sample, or leave `batched` out"
                )
    graph = export(model, example_inputs)
    program = _Capture(graph, Builder(batched, chosen)).program(names, secrets)
    program.verify()
    if pipeline is not None:
        from fhelium.passes.pipeline import Pipeline

        Pipeline.parse(pipeline).apply(program)
    return program


def _checked_examples(examples: object) -> Sequence[torch.Tensor]:
    if not isinstance(examples, tuple | list):
        raise TypeError(
            f"found example_inputs of type {type(examples).__name__}, expected a tuple of tensors: "
            "(x,) for one"
        )
    if not examples:
        raise ValueError(
            "found no example inputs, expected at least one tensor: what is encrypted comes in as "
            "an input"
        )
    for each in examples:
        if not isinstance(each, torch.Tensor):
            raise TypeError(f"found a {type(each).__name__} in example_inputs, expected tensors")
    return examples


def _input_names(model: torch.nn.Module | Callable[..., object], count: int) -> list[str]:
    """Return the parameters that the examples go to, and names for those of a `*parameter`."""
    function = model.forward if isinstance(model, torch.nn.Module) else model
    names: list[str] = []
    try:
        parameters = list(signature(function).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    for parameter in parameters:
        if parameter.kind in (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD):
            names.append(parameter.name)
    for position in range(len(names), count):
        name = f"input_{position}"
        while name in names:
            name = f"_{name}"
        names.append(name)
    return names[:count]


def _secret_positions(secret: Sequence[str | int] | None, names: Sequence[str]) -> set[int]:
    if secret is None:
        return set(range(len(names)))
    if isinstance(secret, str | int):
        raise TypeError(
            f"found secret = {secret!r}, expected a list of names or positions: [{secret!r}]"
        )
    positions: set[int] = set()
    for each in secret:
        if isinstance(each, str) and each in names:
            positions.add(names.index(each))
        elif isinstance(each, int) and not isinstance(each, bool) and 0 <= each < len(names):
            positions.add(each)
        else:
            similar = nearest(str(each), names)
            hint = "" if similar is None else f": did you mean '{similar}'?"
            raise ValueError(f"found secret input {each!r}, expected one of {list(names)}{hint}")
    if not positions:
        raise ValueError("found no secret input, expected at least one: nothing would be encrypted")
    return positions


def _check_activations(
    activations: Mapping[str, Approximation], model: torch.nn.Module | Callable[..., object]
) -> None:
    modules = dict(model.named_modules()) if isinstance(model, torch.nn.Module) else {}
    known = {name.removesuffix("_tanh"): None for name in FUNCTIONS} | dict.fromkeys(modules)
    for name, approximation in activations.items():
        if name not in known or not name:
            similar = nearest(name, known)
            hint = "" if similar is None else f": did you mean '{similar}'?"
            raise ValueError(
                f"found an approximation of '{name}', expected a function of "
                f"{', '.join(sorted(n for n in known if n not in modules))} or a submodule{hint}"
            )
        if not isinstance(approximation, Approximation):
            raise TypeError(
                f"found {approximation!r} for '{name}', expected an Approximation(degree=..., "
                "interval=(a, b))"
            )


class _Capture:
    """One model on its way to a program: what each node stands for, and what is wrong so far."""

    def __init__(self, graph: ExportedGraph, builder: Builder):
        self.graph, self.builder = graph, builder
        self.values: dict[Node, Argument] = {}
        self.refused_public: set[Node] = set()
        """What is computed of public inputs alone, which has one fault where it starts."""
        self.faults: list[Fault] = []

    def program(self, names: Sequence[str], secrets: set[int]) -> Program:
        self.add_inputs(secrets)
        for node in self.graph.nodes:
            if node in self.graph.live and all(
                each in self.values for each in node.all_input_nodes
            ):
                self.capture(node)
        if not self.faults or not self.graph.training:
            self.faults += [self.changed(*each) for each in self.graph.changed]
        results = self.results() if not self.faults else []
        if self.faults:
            raise CaptureError(self.faults)
        program = Program(
            self.builder.module(results),
            MappingProxyType(dict(self.graph.sources)),
            MappingProxyType(dict(self.builder.materials)),
        )
        name_inputs(program.function(), names)
        return program

    def add_inputs(self, secrets: set[int]) -> None:
        block = self.builder.block
        for position, node in enumerate(self.graph.inputs):
            shape = tuple(node.meta["val"].shape)
            secret = position in secrets
            if secret:
                type = TensorType(self.builder.program_shape(shape))
            else:
                type = PublicTensorType(f64, shape)
            argument = block.insert_arg(type, position)
            self.values[node] = (Secret if secret else PublicInput)(argument, shape)
        others = {each for node in self.graph.nodes for each in node.all_input_nodes}
        for node in others:
            if node.op == "get_attr":  # a branch, or the body of a loop
                self.values[node] = node.target
            elif node.name in self.graph.constants:
                name, tensor = self.graph.constants[node.name]
                self.values[node] = Constant(name, _widened(tensor))

    def changed(self, name: str, node: Node) -> Fault:
        """Return what is wrong with a model that writes to a parameter or buffer of its own."""
        advice = "return the new value as a result, and pass it in as an input"
        if self.graph.training:
            advice = "call model.eval() first"
        message = f"the model changes its '{name}', expected no state of its own: {advice}"
        return self.graph.fault(node, message)

    def capture(self, node: Node) -> None:
        """Find what a node stands for; a node without a value is the fault of it or another."""
        self.builder.location = self.graph.location(node)
        try:
            self.values[node] = self.value(node)
        except RefusedError as refusal:
            where = f" in '{path}'" if (path := module_path(node)) else ""
            message = f"torch operator {_operator_name(node)}{where}: {refusal}"
            if not self.is_public(node) or self.refused_public.isdisjoint(node.all_input_nodes):
                self.faults.append(self.graph.fault(node, message))
            self.stand_in(node)

    def stand_in(self, node: Node) -> None:
        """Give a refused node a value, so that the nodes after it show their own faults."""
        result = node.meta.get("val")
        if isinstance(result, torch.Tensor) and all(isinstance(n, int) for n in result.shape):
            shape = tuple(result.shape)
            if self.is_public(node):
                type = PublicTensorType(f64, shape)
                self.values[node] = PublicInput(MaterialOp("refused", type).result, shape)
                self.refused_public.add(node)
                return
            with suppress(RefusedError):
                type = TensorType(self.builder.program_shape(shape))
                self.values[node] = Secret(MaterialOp("refused", type).result, shape)

    def kinds(self, node: Node) -> set[type]:
        return {type(self.values[each]) for each in node.all_input_nodes}

    def is_public(self, node: Node) -> bool:
        """Whether a node computes something of public inputs, and of no secret."""
        kinds = self.kinds(node)
        return PublicInput in kinds and Secret not in kinds

    def value(self, node: Node) -> Argument:
        kinds = self.kinds(node)
        instead = INSTEAD.get(_operator_name(node), _GENERAL)
        if _is_random(node) and instead is _GENERAL:
            raise RefusedError(
                "found random values, expected the same in every run: draw them before, and pass "
                "them in as an input or keep them in a buffer"
            )
        if not kinds & {Secret, PublicInput} and not isinstance(node.target, HigherOrderOperator):
            return self.constant(node)
        if self.is_public(node):
            raise RefusedError(
                "found a public input alone, expected a secret operand too: compute what is public "
                "before, and pass in the result"
            )
        rule = RULES.get(str(node.target))
        if rule is None:
            raise RefusedError(f"found no meaning of it on secrets: {instead}")
        arguments = {name: self.argument(each) for name, each in _arguments(node).items()}
        return rule(Call(node, self.builder, arguments, self.argument))

    def constant(self, node: Node) -> Argument:
        """Compute now what depends on no input."""
        args = map_arg(node.args, self.plain)
        kwargs = map_arg(node.kwargs, self.plain)
        assert isinstance(args, tuple)
        assert isinstance(kwargs, dict)
        assert callable(node.target)
        try:
            result = node.target(*args, **kwargs)
        except Exception as error:
            raise RefusedError(
                f"its constant operands have no result: {one_line(error)}"
            ) from error
        if not isinstance(result, torch.Tensor):
            return result
        if _operator_name(node) in _UNWRITTEN:
            result.fill_(torch.nan)  # refused where it is used before something is written
        operands = [self.argument(each) for each in node.all_input_nodes]
        named = [each.name for each in operands if isinstance(each, Constant)]
        name = f"{named[0]}.{node.name}" if len(named) == 1 else node.name
        return Constant(name, _widened(result))

    def argument(self, argument: object) -> Argument:
        return self.values.get(argument) if isinstance(argument, Node) else argument

    def plain(self, node: Node) -> Any:
        value = self.values[node]
        return value.tensor if isinstance(value, Constant) else value

    def results(self) -> list[SSAValue]:
        results: list[SSAValue] = []
        for position, output in enumerate(self.graph.outputs):
            value = self.argument(output)
            if isinstance(value, Secret):
                results.append(value.value)
            else:
                self.faults.append(
                    Fault(f"result {position} depends on no secret input: return only what does")
                )
        return results


def _operator_name(node: Node) -> str:
    """Return the operator of a node without its library and overload, such as `conv2d`."""
    return str(node.target).removeprefix("aten.").partition(".")[0]


def _is_random(node: Node) -> bool:
    return torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ())


def _widened(tensor: torch.Tensor) -> torch.Tensor:
    """Return a tensor in float64, where the program computes."""
    return tensor.detach().to("cpu", torch.float64) if tensor.is_floating_point() else tensor


def _arguments(node: Node) -> dict[str, object]:
    """Return the arguments of a node by the names of its operator's schema, defaults included."""
    schema = getattr(node.target, "_schema", None)
    if schema is None:
        return dict(zip(("self", "index"), node.args, strict=False))
    names = [argument.name for argument in schema.arguments]
    defaults = {
        argument.name: argument.default_value
        for argument in schema.arguments
        if argument.has_default_value()
    }
    return {**defaults, **dict(zip(names, node.args, strict=False)), **node.kwargs}
