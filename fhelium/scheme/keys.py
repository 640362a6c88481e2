"""Secret, public and switching keys."""

from dataclasses import dataclass
from math import prod
from typing import Literal, NoReturn

import torch

from fhelium.kernels import pointwise
from fhelium.kernels.automorphism import automorphism
from fhelium.kernels.basis import from_integers
from fhelium.kernels.galois import conjugation_element, galois_element
from fhelium.kernels.ntt import ntt
from fhelium.scheme.parameters import Parameters
from fhelium.scheme.sampling import SEED_BYTES, RandomSource, expand_seed

SwitchingKind = Literal["relinearization", "rotation", "conjugation"]
SWITCHING_KINDS: tuple[SwitchingKind, ...] = ("relinearization", "rotation", "conjugation")


class SecretKey:
    """The secret polynomial s. It never shows its coefficients and refuses to be pickled.

    Keep it in a file with `files.save_secret_key`.
    """

    __slots__ = ("_coefficients", "_parameters")

    def __init__(self, parameters: Parameters, coefficients: torch.Tensor) -> None:
        shape = tuple(coefficients.shape)
        if coefficients.dtype != torch.int64 or shape != (parameters.ring_degree,):
            raise ValueError(
                f"a secret key has {parameters.ring_degree} torch.int64 coefficients, "
                f"got {list(shape)} of {coefficients.dtype}"
            )
        if bool((coefficients.abs() > 1).any()):
            raise ValueError("a ternary secret has coefficients -1, 0 and 1; found others")
        self._parameters = parameters
        self._coefficients = coefficients

    @property
    def parameters(self) -> Parameters:
        """The parameters that the key belongs to."""
        return self._parameters

    def coefficients(self) -> torch.Tensor:
        """Return the secret coefficients, int64 `[N]`, each -1, 0 or 1. Never print or log them."""
        return self._coefficients.clone()

    def polynomial(self, limbs: tuple[int, ...], device: torch.device) -> torch.Tensor:
        """Return s in evaluation form, int64 `[1, limbs, N]`. Never print or log it."""
        ring = self._parameters.ring
        residues = from_integers(ring, limbs, self._coefficients.to(device))
        return ntt(ring, limbs, residues.unsqueeze(-3))

    def __repr__(self) -> str:
        return f"SecretKey(N={self._parameters.ring_degree}, hidden)"

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError("a secret key is not pickled or copied; use files.save_secret_key")

    def __getstate__(self) -> NoReturn:
        raise TypeError("a secret key is not pickled or copied; use files.save_secret_key")


@dataclass(frozen=True, eq=False, repr=False)
class PublicKey:
    """An encryption of zero, (-a s + e, a): int64 `[2, limbs of Q, N]` in evaluation form.

    seed: what `uniform_half` makes a from, so that files need not hold it; None when a is no more
        than data.
    """

    data: torch.Tensor
    parameters: Parameters
    seed: bytes | None = None

    def __post_init__(self) -> None:
        limbs = len(self.parameters.q_primes)
        _check_data(self.data, (2, limbs, self.parameters.ring_degree), "a public key")
        _check_seed(self.seed)

    @staticmethod
    def uniform_half(parameters: Parameters, seed: bytes) -> torch.Tensor:
        """Return the a of `seed`, int64 `[1, limbs of Q, N]`: `expand_seed` for "public_key"."""
        a = expand_seed(seed, "public_key", parameters.q_primes, parameters.ring_degree)
        return a.unsqueeze(0)

    def __repr__(self) -> str:
        return f"PublicKey(N={self.parameters.ring_degree})"


@dataclass(frozen=True, eq=False, repr=False)
class SwitchingKey:
    """A key that turns a product with another secret s' into one with s.

    kind: "relinearization" (s' = s^2), "rotation" (s' = s(X^g) with g = 5^step) or "conjugation"
        (g = 2N - 1).
    step: how far a rotation key rotates to the left, not 0 and less than N/2 in size; None for the
        other kinds.
    data: int64 `[digits, 2, limbs of Q and P, N]` in evaluation form.
    seed: what `uniform_half` makes the a_j from, so that files need not hold them; None when they
        are no more than data.

    Row j is (-a_j s + e_j + g_j s', a_j) with g_j = P modulo the primes of digit j and 0 modulo
    all others (Han and Ki, "Better Bootstrapping for Approximate Homomorphic Encryption", CT-RSA
    2020, section 3).
    """

    kind: SwitchingKind
    step: int | None
    data: torch.Tensor
    parameters: Parameters
    seed: bytes | None = None

    def __post_init__(self) -> None:
        if self.kind not in SWITCHING_KINDS:
            raise ValueError(f"key kind is {self.kind!r}; expected one of {list(SWITCHING_KINDS)}")
        if self.kind == "rotation":
            _check_step(self.step, self.parameters)
        elif self.step is not None:
            raise ValueError(f"a {self.kind} key has no step, got {self.step!r}")
        parameters = self.parameters
        digits = len(parameters.digit_limbs(parameters.max_level))
        shape = (digits, 2, len(parameters.primes), parameters.ring_degree)
        _check_data(self.data, shape, f"a {self.kind} key")
        _check_seed(self.seed)

    @staticmethod
    def uniform_half(
        parameters: Parameters, kind: SwitchingKind, step: int | None, seed: bytes
    ) -> torch.Tensor:
        """Return the a_j of `seed`, int64 `[digits, 1, limbs of Q and P, N]`.

        Row j is `expand_seed` for the purpose "<kind> <step> <j>" or, without a step, "<kind> <j>".
        """
        name = kind if step is None else f"{kind} {step}"
        rows = [
            expand_seed(seed, f"{name} {digit}", parameters.primes, parameters.ring_degree)
            for digit in range(len(parameters.digit_limbs(parameters.max_level)))
        ]
        return torch.stack(rows).unsqueeze(1)

    @property
    def galois_element(self) -> int:
        """The g of X -> X^g: 1 for relinearization. Steps that differ by N/2 share one."""
        if self.kind == "relinearization":
            return 1
        if self.kind == "conjugation":
            return conjugation_element(self.parameters.ring_degree)
        return galois_element(self.step or 0, self.parameters.ring_degree)

    def __repr__(self) -> str:
        step = "" if self.step is None else f", step={self.step}"
        return f"SwitchingKey({self.kind}{step}, N={self.parameters.ring_degree})"


def generate_keys(
    parameters: Parameters, *, random: RandomSource | None = None
) -> tuple[SecretKey, PublicKey]:
    """Return a new secret key and a public key for it."""
    secret_key = generate_secret_key(parameters, random=random)
    return secret_key, generate_public_key(secret_key, random=random)


def generate_secret_key(parameters: Parameters, *, random: RandomSource | None = None) -> SecretKey:
    """Draw a uniform ternary secret. `random` is for tests; by default a fresh source."""
    random = random or RandomSource()
    return SecretKey(parameters, random.ternary((parameters.ring_degree,)))


def generate_public_key(secret_key: SecretKey, *, random: RandomSource | None = None) -> PublicKey:
    """Return a public key for `secret_key`."""
    random = random or RandomSource()
    parameters = secret_key.parameters
    limbs = parameters.q_limbs(parameters.max_level)
    seed = random.bytes(SEED_BYTES)
    a = PublicKey.uniform_half(parameters, seed)
    return PublicKey(_hide_zero(secret_key, limbs, a, random), parameters, seed)


def generate_switching_key(
    secret_key: SecretKey,
    kind: SwitchingKind,
    step: int | None = None,
    *,
    random: RandomSource | None = None,
) -> SwitchingKey:
    """Return the key of a kind; `step` is for rotations. Raises `ValueError` for unknown kinds."""
    if kind == "rotation":
        _check_step(step, secret_key.parameters)
        return generate_rotation_key(secret_key, step or 0, random=random)
    if step is not None:
        raise ValueError(f"a {kind} key has no step, got {step!r}")
    if kind == "relinearization":
        return generate_relinearization_key(secret_key, random=random)
    if kind == "conjugation":
        return generate_conjugation_key(secret_key, random=random)
    raise ValueError(f"key kind is {kind!r}; expected one of {list(SWITCHING_KINDS)}")


def generate_relinearization_key(
    secret_key: SecretKey, *, random: RandomSource | None = None
) -> SwitchingKey:
    """Return the key that brings three components back to two."""
    parameters = secret_key.parameters
    limbs = tuple(range(len(parameters.primes)))
    s = secret_key.polynomial(limbs, torch.device("cpu"))
    square = pointwise.multiply(parameters.ring, limbs, s, s)
    return _switching_key(secret_key, square, "relinearization", None, random)


def generate_rotation_key(
    secret_key: SecretKey, step: int, *, random: RandomSource | None = None
) -> SwitchingKey:
    """Return the key that rotates the slots to the left by `step`, as `numpy.roll(v, -step)`.

    Raises `ValueError` unless 0 < |step| < N/2.
    """
    _check_step(step, secret_key.parameters)
    g = galois_element(step, secret_key.parameters.ring_degree)
    return _galois_key(secret_key, g, "rotation", step, random)


def generate_conjugation_key(
    secret_key: SecretKey, *, random: RandomSource | None = None
) -> SwitchingKey:
    """Return the key that takes the complex conjugate of every slot."""
    g = conjugation_element(secret_key.parameters.ring_degree)
    return _galois_key(secret_key, g, "conjugation", None, random)


def encrypt_zero(
    secret_key: SecretKey,
    limbs: tuple[int, ...],
    batch_shape: tuple[int, ...] = (),
    *,
    random: RandomSource | None = None,
) -> torch.Tensor:
    """Return (-a s + e, a) for uniform a and Gaussian e: int64 `[*batch, 2, limbs, N]`, on the CPU.

    Evaluation form; every batch element has its own a and e.
    """
    random = random or RandomSource()
    ring = secret_key.parameters.ring
    primes = [ring.primes[limb] for limb in limbs]
    a = random.uniform(primes, (*batch_shape, 1), ring.ring_degree)
    return _hide_zero(secret_key, limbs, a, random)


def _hide_zero(
    secret_key: SecretKey, limbs: tuple[int, ...], a: torch.Tensor, random: RandomSource
) -> torch.Tensor:
    """Return (-a s + e, a) for a given a, `[*batch, 1, limbs, N]`."""
    ring = secret_key.parameters.ring
    e = ntt(ring, limbs, from_integers(ring, limbs, random.gaussian((*a.shape[:-2], a.shape[-1]))))
    a_s = pointwise.multiply(ring, limbs, a, secret_key.polynomial(limbs, a.device))
    return torch.cat([pointwise.subtract(ring, limbs, e, a_s), a], dim=-3)


def _galois_key(
    secret_key: SecretKey,
    g: int,
    kind: SwitchingKind,
    step: int | None,
    random: RandomSource | None,
) -> SwitchingKey:
    parameters = secret_key.parameters
    limbs = tuple(range(len(parameters.primes)))
    s = secret_key.polynomial(limbs, torch.device("cpu"))
    moved = automorphism(parameters.ring, limbs, s, g, "evaluation")
    return _switching_key(secret_key, moved, kind, step, random)


def _switching_key(
    secret_key: SecretKey,
    source: torch.Tensor,
    kind: SwitchingKind,
    step: int | None,
    random: RandomSource | None,
) -> SwitchingKey:
    """Return the key from the secret `source`, `[1, limbs of Q and P, N]`, to `secret_key`."""
    random = random or RandomSource()
    parameters, ring = secret_key.parameters, secret_key.parameters.ring
    limbs = tuple(range(len(parameters.primes)))
    p = prod(parameters.p_primes)
    seed = random.bytes(SEED_BYTES)
    a = SwitchingKey.uniform_half(parameters, kind, step, seed)
    rows: list[torch.Tensor] = []
    for j, digit in enumerate(parameters.digit_limbs(parameters.max_level)):
        gadget = ring.constants(
            [p % prime if limb in digit else 0 for limb, prime in enumerate(parameters.primes)],
            source.device,
        )
        shifted = pointwise.multiply(ring, limbs, source, gadget.expand_as(source))
        zero = _hide_zero(secret_key, limbs, a[j], random)
        rows.append(pointwise.add(ring, limbs, zero, shifted))
    return SwitchingKey(kind, step, torch.stack(rows), parameters, seed)


def _check_step(step: int | None, parameters: Parameters) -> None:
    if not isinstance(step, int) or isinstance(step, bool):
        raise TypeError(f"a rotation step is an int, got {step!r}")
    if not 0 < abs(step) < parameters.slots:
        raise ValueError(
            f"rotation step is {step}; expected 1 to {parameters.slots - 1} places to the left, "
            "or negative for the right"
        )


def _check_seed(seed: bytes | None) -> None:
    if seed is not None and not (isinstance(seed, bytes) and len(seed) == SEED_BYTES):
        raise ValueError(f"the seed of a key has {SEED_BYTES} bytes, or is None")


def _check_data(data: torch.Tensor, shape: tuple[int, ...], name: str) -> None:
    if not isinstance(data, torch.Tensor) or data.dtype != torch.int64:
        found = getattr(data, "dtype", type(data).__name__)
        raise TypeError(f"the data of {name} must be a torch.int64 tensor, got {found}")
    if tuple(data.shape) != shape:
        raise ValueError(
            f"the data of {name} has shape {list(data.shape)}; these parameters need {list(shape)}"
        )
