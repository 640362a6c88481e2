"""Writing a `secure` program: secret values, constants as materials, and where they come from."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite, prod

import torch
from torch.fx import Node
from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, FloatAttr, LocationAttr, ModuleOp, f64
from xdsl.dialects.builtin import TensorType as PublicTensorType
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Operation, Region, SSAValue

from fhelium.dialects.core import MaterialOp
from fhelium.dialects.secure.linear import ReshapeOp
from fhelium.dialects.secure.types import LARGEST, TensorType, reshape_hint, shape_text
from fhelium.frontends.capture.approximation import Approximation
from fhelium.frontends.capture.exported_graph import module_path

Shape = tuple[int, ...]


class RefusedError(Exception):
    """Why an operator of the model has no place in a program; who catches it adds the line."""


@dataclass(frozen=True)
class Secret:
    """A value of the model that depends on a secret input, and the torch shape that it has."""

    value: SSAValue
    shape: Shape


@dataclass(frozen=True)
class PublicInput:
    """An input of the program that is not secret, known only when it runs."""

    value: SSAValue
    shape: Shape


@dataclass(frozen=True)
class Constant:
    """A tensor of the model that is known now, and the name that it should have."""

    name: str
    tensor: torch.Tensor

    def real(self) -> torch.Tensor:
        """Return the values in float64. Raises `RefusedError` for complex ones."""
        if self.tensor.is_complex():
            raise RefusedError(
                f"found {self.name} with complex values, expected real ones: give the real and the "
                "imaginary part as tensors of their own"
            )
        return self.tensor.to(torch.float64)


Value = Secret | PublicInput | Constant
Argument = object
"""A `Value`, or what else an operator takes: numbers, lists of them, None."""


@dataclass
class Builder:
    """The body of `@main` as it grows.

    With `batched`, the first dimension of every secret value is a batch of one, which the program
    leaves out: it computes on one sample.
    """

    batched: bool
    activations: Mapping[str, Approximation]
    block: Block = field(default_factory=Block)
    materials: dict[str, torch.Tensor] = field(default_factory=dict)
    location: LocationAttr | None = None
    folded: set[Node] = field(default_factory=set)
    """Batch norms that are already part of the layer before them."""
    _material_values: dict[str, SSAValue] = field(default_factory=dict)

    def program_shape(self, shape: Sequence[int]) -> Shape:
        """Return the shape in the program of a secret value of a torch shape.

        Raises `RefusedError` when the batch dimension is gone.
        """
        if self.batched and shape:
            if shape[0] != 1:
                raise RefusedError(
                    f"found a result of shape {shape_text(shape)}, expected the batch dimension of "
                    "1 in front: keep it, with flatten(1) for instance, or capture one sample "
                    "without it"
                )
            shape = shape[1:]
        return tuple(shape) or (1,)

    def emit(self, operation: Operation) -> SSAValue:
        """Append an op at the current line of the model and return its result."""
        if self.location is not None:
            operation.location = self.location
        self.block.add_op(operation)
        return operation.results[0]

    def reshaped(self, value: SSAValue, shape: Sequence[int]) -> SSAValue:
        """Return a secret value in another shape."""
        if TensorType.of(value).shape == tuple(shape):
            return value
        return self.emit(ReshapeOp(value, TensorType(shape)))

    def public(self, constant: Constant) -> SSAValue:
        """Return a known tensor as a material, the same one for the same name and values."""
        tensor = constant.real().contiguous().clone()
        if not bool(torch.isfinite(tensor).all()):
            raise RefusedError(f"found {constant.name} with infinite values or NaN: they cannot be")
        name, count = constant.name, 0
        while name in self.materials:
            if torch.equal(self.materials[name], tensor):
                return self._material_values[name]
            count += 1
            name = f"{constant.name}_{count}"
        operation = MaterialOp(name, PublicTensorType(f64, tensor.shape))
        if (largest := float(tensor.abs().max())) > 1:
            operation.attributes[LARGEST] = FloatAttr(largest, f64)
        material = self.emit(operation)
        self.materials[name], self._material_values[name] = tensor, material
        return material

    def splat(self, number: float, shape: Sequence[int]) -> SSAValue:
        """Return a public tensor of one number."""
        if not isfinite(number):
            raise RefusedError("found an infinite number or NaN, expected a finite one")
        type = PublicTensorType(f64, shape)
        return self.emit(ConstantOp(DenseIntOrFPElementsAttr.from_list(type, [float(number)])))

    def module(self, results: Sequence[SSAValue]) -> ModuleOp:
        """Return the finished program, which returns `results`."""
        self.block.add_op(ReturnOp(*results))
        inputs = [argument.type for argument in self.block.args]
        outputs = [result.type for result in results]
        main = FuncOp("main", (inputs, outputs), Region(self.block))
        return ModuleOp([main])


@dataclass(frozen=True)
class Call:
    """One operator of the model, with its arguments as values of the program."""

    node: Node
    builder: Builder
    arguments: Mapping[str, Argument]
    known: Callable[[Node], Argument]
    """What a node before this one stands for."""

    @property
    def shape(self) -> Shape:
        """The torch shape of the result."""
        return tuple(self.node.meta["val"].shape)

    @property
    def program_shape(self) -> Shape:
        """The shape of the result in the program."""
        return self.builder.program_shape(self.shape)

    def secret(self, name: str) -> Secret:
        """Return a secret argument. Raises `RefusedError` for another."""
        value = self.arguments[name]
        if isinstance(value, Secret):
            return value
        raise RefusedError(f"found {_described(value)} for '{name}', expected a secret value")

    def constant(self, name: str) -> Constant:
        """Return an argument that is known now. Raises `RefusedError` for another."""
        value = self.arguments[name]
        if isinstance(value, Constant):
            return value
        raise RefusedError(
            f"found {_described(value)} for '{name}', expected a constant of the model"
        )

    def optional_constant(self, name: str) -> Constant | None:
        """Return an argument that is known now, or None where there is none."""
        return None if self.arguments[name] is None else self.constant(name)

    def numbers(self, name: str, count: int) -> tuple[int, ...]:
        """Return an argument of `count` integers, where one stands for all."""
        given = self.arguments[name]
        found = list(given) if isinstance(given, list | tuple) else [given]
        values = tuple(each for each in found if isinstance(each, int))
        if len(values) != len(found) or len(values) not in (1, count):
            raise RefusedError(f"found {name} = {given}, expected {count} known integers")
        return values * count if len(values) == 1 else values

    def public_operand(self, value: Argument, name: str, shape: Shape) -> SSAValue:
        """Return what meets a secret of the result's shape as a public tensor of `shape`."""
        builder = self.builder
        if isinstance(value, int | float) and not isinstance(value, bool):
            return builder.splat(value, shape)
        if isinstance(value, Constant):
            if value.tensor.numel() == 1:
                return builder.splat(value.real().item(), shape)
            full = torch.broadcast_to(value.tensor, self.shape).reshape(shape)
            return builder.public(Constant(value.name, full))
        if isinstance(value, PublicInput):
            if value.shape != shape:
                raise RefusedError(
                    f"found the public input of shape {list(value.shape)} with a secret of shape "
                    f"{list(shape)}, expected the same, as nothing broadcasts a public input"
                    f"{reshape_hint(value.shape, shape)}"
                )
            return value.value
        raise RefusedError(f"found {_described(value)} for '{name}', expected a number or a tensor")

    def whole(self, secret: Secret) -> SSAValue:
        """Return a secret operand that already has the shape of the result."""
        if secret.shape != self.shape:
            raise RefusedError(
                f"found a secret of shape {shape_text(secret.shape) or '()'} that broadcasts to "
                f"{shape_text(self.shape)}, expected the shape of the result: repeat one number by "
                "torch.ones(n, 1) @ x.reshape(1), or repeat in the client"
            )
        return secret.value

    def vector(self, secret: Secret) -> SSAValue:
        """Return a secret operand as a vector. Raises `RefusedError` for several of them."""
        length = secret.shape[-1] if secret.shape else 1
        if prod(secret.shape) != length:
            raise RefusedError(
                f"found a secret of shape {shape_text(secret.shape)}, expected one vector: capture "
                "one sample, or flatten it"
            )
        return self.builder.reshaped(secret.value, (length,))

    def result(self, value: SSAValue) -> Secret:
        """Return the result, in its shape in the program."""
        value = self.builder.reshaped(value, self.program_shape)
        if value.name_hint is None:
            value.name_hint = self.node.name
        return Secret(value, self.shape)

    def path(self) -> str:
        """Return where the operator is in the model."""
        return module_path(self.node)


def _described(value: Argument) -> str:
    match value:
        case Secret():
            return "a secret value"
        case PublicInput():
            return "a public input"
        case Constant(name=name):
            return f"the constant {name}"
        case _:
            return f"{value!r}"
