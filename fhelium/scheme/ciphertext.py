"""Ciphertexts and plaintexts: a polynomial tensor with the state that gives it meaning."""

from dataclasses import dataclass
from math import isfinite
from typing import ClassVar

import torch

from fhelium.scheme.arguments import check_type
from fhelium.scheme.key_identity import check_key_id
from fhelium.scheme.parameters import Parameters

FORMS = ("evaluation", "coefficient")


@dataclass(frozen=True, eq=False, repr=False)
class Polynomial:
    """A polynomial in the secret s over the limbs of one level.

    data: int64 `[..., components, limbs, N]`, residues in [0, q), each limb contiguous; leading
        dimensions are a batch. Residues are not scanned here: `files.load` does that.
    level: the number of rescales left; its limbs are `parameters.q_limbs(level)`.
    scale: what the message was multiplied by, finite and positive.
    form: "evaluation" or "coefficient".

    Raises `TypeError` for another type or dtype, `ValueError` for another shape, level, scale or
    form.
    """

    data: torch.Tensor
    parameters: Parameters
    level: int
    scale: float
    form: str = "evaluation"

    component_counts: ClassVar[tuple[int, ...]]

    def __post_init__(self) -> None:
        name = type(self).__name__
        if not isinstance(self.data, torch.Tensor) or self.data.dtype != torch.int64:
            found = getattr(self.data, "dtype", type(self.data).__name__)
            raise TypeError(f"{name} data must be a torch.int64 tensor, got {found}")
        if not isinstance(self.scale, int | float) or isinstance(self.scale, bool):
            raise TypeError(f"{name} scale must be a float, got {type(self.scale).__name__}")
        check_type(name, self.parameters, Parameters)
        self.parameters.check_level(self.level)
        if not (isfinite(self.scale) and self.scale > 0):
            raise ValueError(f"{name} scale is {self.scale}; expected a finite positive number")
        if self.form not in FORMS:
            raise ValueError(
                f'{name} form is {self.form!r}; expected "evaluation" or "coefficient"'
            )
        shape = tuple(self.data.shape)
        limbs = len(self.parameters.q_limbs(self.level))
        degree = self.parameters.ring_degree
        if (
            len(shape) < 3
            or shape[-3] not in self.component_counts
            or shape[-2:] != (limbs, degree)
        ):
            counts = " or ".join(str(count) for count in self.component_counts)
            raise ValueError(
                f"{name} data has shape {list(shape)}; at level {self.level} of these parameters "
                f"it is [..., {counts}, {limbs}, {degree}] (batch, components, limbs, N)"
            )
        if self.data.stride(-1) != 1:
            raise ValueError(f"{name} data has limbs that are not contiguous; call .contiguous()")

    @property
    def components(self) -> int:
        """The number of powers of s, from s^0 on."""
        return self.data.shape[-3]

    @property
    def batch_shape(self) -> torch.Size:
        """The leading dimensions."""
        return self.data.shape[:-3]

    @property
    def limbs(self) -> tuple[int, ...]:
        """The limbs of Q at this level."""
        return self.parameters.q_limbs(self.level)

    def __repr__(self) -> str:
        batch = f", batch={list(self.batch_shape)}" if self.batch_shape else ""
        return (
            f"{type(self).__name__}(N={self.parameters.ring_degree}, level={self.level}, "
            f"scale={self.scale:g}, components={self.components}, form={self.form}{batch})"
        )


@dataclass(frozen=True, eq=False, repr=False)
class Ciphertext(Polynomial):
    """An encrypted message: 2 components, or 3 after a product. `Polynomial` says the rest.

    key_id: the secret that decrypts it, by its random name (see `key_identity`); None when unknown.
    """

    key_id: str | None = None

    component_counts = (2, 3)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_key_id(self.key_id)


class Plaintext(Polynomial):
    """An encoded message: 1 component. `Polynomial` says the rest."""

    component_counts = (1,)
