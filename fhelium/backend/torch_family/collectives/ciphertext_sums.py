"""Sums of ciphertexts over ranks: a fold with the backend's addition, or one sum of integers.

Both give the same bits. The fold sends n - 1 payloads a rank, the sum of integers 2 (n - 1) / n.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar

import torch
from xdsl.ir import Operation

from fhelium.backend.invocation import OperationInvocation
from fhelium.backend.process_group import ProcessGroupExecutionResource
from fhelium.backend.resources import (
    PARAMETERS_RESOURCE_KIND,
    BoundResource,
    ResourceRequirement,
)
from fhelium.backend.torch_family.collectives.agreement import layout, require_equal_layouts
from fhelium.backend.torch_family.collectives.implementation import _OperandResourceImplementation
from fhelium.backend.torch_family.collectives.reductions import gather_and_fold
from fhelium.backend.torch_family.collectives.transport import all_reduce_sum
from fhelium.dialects import distributed
from fhelium.dialects.ckks.parameters import PARAMETERS
from fhelium.kernels import modular
from fhelium.scheme.parameters import Parameters

Tensor = torch.Tensor

LARGEST_SUM = 2**63 - 1
"""The largest int64."""


@dataclass(frozen=True)
class TorchCiphertextAddAllReduceImplementation(_OperandResourceImplementation):
    """Reduce ciphertext payloads with an injected Backend Tensor addition.

    Raises `TypeError` when `combine` is not callable.
    """

    combine: Callable[[Tensor, Tensor, Tensor], Tensor] = field(repr=False, compare=False)
    name: str = "torch-ciphertext-add-all-reduce"
    supports_in_place: bool = False
    operation_types: tuple[type[Operation], ...] = (distributed.AllReduceAddCiphertextOp,)

    def __post_init__(self) -> None:
        if not callable(self.combine):
            raise TypeError(
                f"combine is a {type(self.combine).__name__}, expected a callable such as "
                "prepare_ciphertext_add_combine returns"
            )

    def resource_requirements(
        self, invocation: OperationInvocation
    ) -> tuple[ResourceRequirement, ...]:
        """A ciphertext that is not lowered comes without moduli: those of the program are used."""
        return _requirements(invocation)

    def execute(
        self,
        invocation: OperationInvocation,
        inputs: tuple[Tensor, ...],
        resources: tuple[BoundResource, ...],
        *,
        in_place: bool,
    ) -> tuple[Tensor, ...]:
        """Add the payloads of all ranks modulo the primes: `inputs` are value and moduli.

        Raises `ValueError` when dtype or shape differs between ranks, and `RuntimeError` on every
        rank when the addition raises on one.
        """
        group = self._group(resources[:1], in_place)
        (value,), (moduli,) = _values_and_moduli(invocation, inputs, resources)
        return (
            gather_and_fold(self.name, value, group, lambda a, b: (self.combine(a, b, moduli),)),
        )


@dataclass(frozen=True)
class TorchCiphertextFoldAllReduceImplementation(TorchCiphertextAddAllReduceImplementation):
    """The same where the sum of integers is the default: only a program that names it gets it."""

    only_by_name: ClassVar[bool] = True


@dataclass(frozen=True)
class TorchCiphertextSumAllReduceImplementation(_OperandResourceImplementation):
    """Add residues as integers, by one native sum, and reduce once modulo each prime.

    Of n ranks, residues in [0, q) sum to at most n (q - 1), which is no overflow for up to 8192
    ranks and primes below 2^50. The group is known when the program runs: a larger sum is an error
    there, on every rank.
    """

    name: str = "torch-ciphertext-sum-all-reduce"
    supports_in_place: bool = False
    operation_types: tuple[type[Operation], ...] = (distributed.AllReduceAddCiphertextOp,)

    def resource_requirements(
        self, invocation: OperationInvocation
    ) -> tuple[ResourceRequirement, ...]:
        """A ciphertext that is not lowered comes without moduli: those of the program are used."""
        return _requirements(invocation)

    def execute(
        self,
        invocation: OperationInvocation,
        inputs: tuple[Tensor, ...],
        resources: tuple[BoundResource, ...],
        *,
        in_place: bool,
    ) -> tuple[Tensor, ...]:
        """Add the payloads of all ranks modulo the primes: `inputs` are value and moduli.

        Raises `ValueError` when the sum could overflow, or when dtype or shape differs between
        ranks, and `TypeError` for residues that are no int64.
        """
        group = self._group(resources[:1], in_place)
        (value,), (moduli,) = _values_and_moduli(invocation, inputs, resources)
        _check_bound(self.name, moduli, group)
        require_equal_layouts(self.name, value, group)
        _check_dtype(self.name, value)
        return (_reduced(all_reduce_sum(value, group), moduli),)


@dataclass(frozen=True)
class TorchCiphertextSumsAllReduceImplementation(_OperandResourceImplementation):
    """Add several payloads as one row of integers, and reduce each modulo its primes.

    The bound is that of one payload.
    """

    name: str = "torch-ciphertext-sums-all-reduce"
    supports_in_place: bool = False
    operation_types: tuple[type[Operation], ...] = (distributed.AllReduceAddCiphertextsOp,)

    def resource_requirements(
        self, invocation: OperationInvocation
    ) -> tuple[ResourceRequirement, ...]:
        """Ciphertexts that are not lowered come without moduli: those of the program are used."""
        return _requirements(invocation)

    def execute(
        self,
        invocation: OperationInvocation,
        inputs: tuple[Tensor, ...],
        resources: tuple[BoundResource, ...],
        *,
        in_place: bool,
    ) -> tuple[Tensor, ...]:
        """Add the payloads of all ranks: `inputs` are the values, and then the moduli of each.

        Raises `ValueError` when a sum could overflow, or when dtype or shape of a payload differs
        between ranks, and `TypeError` for residues that are no int64.
        """
        group = self._group(resources[:1], in_place)
        values, moduli = _values_and_moduli(invocation, inputs, resources)
        for each in moduli:
            _check_bound(self.name, each, group)
        # Payloads of other sizes may well have the same number of residues in all.
        layouts = ", ".join(layout(value) for value in values)
        row = torch.cat([value.reshape(-1) for value in values])
        require_equal_layouts(self.name, row, group, f" of {layouts}")
        for value in values:
            _check_dtype(self.name, value)
        sums = all_reduce_sum(row, group).split([value.numel() for value in values])
        return tuple(
            _reduced(total.reshape(value.shape), each)
            for total, value, each in zip(sums, values, moduli, strict=True)
        )


def _check_bound(name: str, moduli: Tensor, group: ProcessGroupExecutionResource) -> None:
    """Raise `ValueError` where a sum of residues of all ranks may be no int64."""
    largest = int(moduli.max())
    if group.size * (largest - 1) > LARGEST_SUM:
        raise ValueError(
            f"{name} got residues modulo {largest} on {group.size} ranks, expected at most "
            f"{LARGEST_SUM // (largest - 1)}, or the sum may overflow: assign "
            "torch-ciphertext-add-all-reduce"
        )


def _check_dtype(name: str, value: Tensor) -> None:
    """Raise `TypeError` for residues whose sum may be none of their dtype."""
    if value.dtype != torch.int64:
        raise TypeError(f"{name} got residues of {value.dtype}, expected torch.int64")


def _reduced(total: Tensor, moduli: Tensor) -> Tensor:
    return modular.reduce(total, moduli.reshape(-1, 1).to(total.device))


def _requirements(invocation: OperationInvocation) -> tuple[ResourceRequirement, ...]:
    if invocation.operand_count > invocation.result_count:
        return ()
    return (ResourceRequirement(PARAMETERS, PARAMETERS_RESOURCE_KIND),)


def _values_and_moduli(
    invocation: OperationInvocation,
    inputs: tuple[Tensor, ...],
    resources: tuple[BoundResource, ...],
) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
    """Return the payloads, and the primes of the level of each: given, or of the parameters."""
    count = invocation.result_count
    values, moduli = inputs[:count], inputs[count:]
    if not moduli:
        limbs = invocation.operand_prime_ids
        moduli = tuple(_program_moduli(resources[-1].value, each) for each in limbs)
    return values, moduli


def _program_moduli(parameters: object, limbs: tuple[int, ...] | None) -> Tensor:
    """Return the primes of a level, `[limbs, 1]` or `[limbs]`."""
    if not isinstance(parameters, Parameters) or limbs is None:
        raise ValueError(
            "the ciphertext all-reduce got no moduli, expected them as its second input, or the "
            "program's parameters and a known level"
        )
    return parameters.ring.moduli(limbs, torch.device("cpu"))
