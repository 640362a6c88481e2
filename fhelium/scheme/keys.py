"""Secret, public and switching keys."""

from dataclasses import dataclass
from math import prod
from typing import Literal, NoReturn

import torch

from fhelium.kernels.galois import conjugation_element, galois_element
from fhelium.kernels.selection import kernels_for
from fhelium.scheme.arguments import check_type
from fhelium.scheme.key_identity import KEY_ID_BYTES, check_key_id
from fhelium.scheme.parameters import Parameters
from fhelium.scheme.sampling import SEED_BYTES, RandomSource, expand_seed

SwitchingKind = Literal["relinearization", "rotation", "conjugation"]
SWITCHING_KINDS: tuple[SwitchingKind, ...] = ("relinearization", "rotation", "conjugation")


class SecretKey:
    """The secret polynomial s. It never shows its coefficients and refuses to be pickled.

    Keep it in a file with `files.save_secret_key`. Its `key_id` is a random name that tells keys of
    different secrets apart (see `key_identity`).
    """

    __slots__ = ("_coefficients", "_key_id", "_parameters")

    def __init__(
        self, parameters: Parameters, coefficients: torch.Tensor, key_id: str | None = None
    ) -> None:
        shape = tuple(coefficients.shape)
        if coefficients.dtype != torch.int64 or shape != (parameters.ring_degree,):
            raise ValueError(
                f"a secret key has {parameters.ring_degree} torch.int64 coefficients, "
                f"got {list(shape)} of {coefficients.dtype}"
            )
        if bool((coefficients.abs() > 1).any()):
            raise ValueError("a ternary secret has coefficients -1, 0 and 1; found others")
        check_key_id(key_id)
        self._parameters = parameters
        self._coefficients = coefficients
        self._key_id = key_id

    @property
    def parameters(self) -> Parameters:
        """The parameters that the key belongs to."""
        return self._parameters

    @property
    def key_id(self) -> str | None:
        """The random name of this secret, which is public; None for one from an older file."""
        return self._key_id

    def coefficients(self) -> torch.Tensor:
        """Return the secret coefficients, int64 `[N]`, each -1, 0 or 1. Never print or log them."""
        return self._coefficients.clone()

    def polynomial(self, limbs: tuple[int, ...], device: torch.device) -> torch.Tensor:
        """Return s in evaluation form, int64 `[1, limbs, N]`. Never print or log it."""
        ring = self._parameters.ring
        kernels = kernels_for(ring.ring_degree, device)
        residues = kernels.from_integers(ring, limbs, self._coefficients.to(device))
        return kernels.ntt(ring, limbs, residues.unsqueeze(-3))

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
    key_id: the secret that it is made for, by its random name; None when unknown.
    """

    data: torch.Tensor
    parameters: Parameters
    seed: bytes | None = None
    key_id: str | None = None

    def __post_init__(self) -> None:
        limbs = len(self.parameters.q_primes)
        _check_data(self.data, (2, limbs, self.parameters.ring_degree), "a public key")
        _check_seed(self.seed)
        check_key_id(self.key_id)

    @staticmethod
    def uniform_half(
        parameters: Parameters, seed: bytes, out: torch.Tensor | None = None
    ) -> torch.Tensor:
        """Return the a of `seed`, int64 `[1, limbs of Q, N]`: `expand_seed` for "public_key".

        It is written to `out` if there is one.
        """
        primes, degree = parameters.q_primes, parameters.ring_degree
        if out is None:
            out = torch.empty(1, len(primes), degree, dtype=torch.int64)
        expand_seed(seed, "public_key", primes, degree, out[0])
        return out

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
    key_id: the secret s that it leads to, by its random name; None when unknown.

    Row j is (-a_j s + e_j + g_j s', a_j) with g_j = P modulo the primes of digit j and 0 modulo
    all others (Han and Ki, "Better Bootstrapping for Approximate Homomorphic Encryption", CT-RSA
    2020, section 3).
    """

    kind: SwitchingKind
    step: int | None
    data: torch.Tensor
    parameters: Parameters
    seed: bytes | None = None
    key_id: str | None = None

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
        check_key_id(self.key_id)

    @staticmethod
    def uniform_half(
        parameters: Parameters,
        kind: SwitchingKind,
        step: int | None,
        seed: bytes,
        out: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Return the a_j of `seed`, int64 `[digits, 1, limbs of Q and P, N]`.

        Row j is `expand_seed` for the purpose "<kind> <step> <j>" or, without a step, "<kind> <j>".
        It is written to `out` if there is one.
        """
        name = kind if step is None else f"{kind} {step}"
        primes, degree = parameters.primes, parameters.ring_degree
        if out is None:
            digits = len(parameters.digit_limbs(parameters.max_level))
            out = torch.empty(digits, 1, len(primes), degree, dtype=torch.int64)
        for digit, row in enumerate(out):
            expand_seed(seed, f"{name} {digit}", primes, degree, row[0])
        return out

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
    """Return a new secret key and a public key for it. Raises `TypeError` for other parameters."""
    secret_key = generate_secret_key(parameters, random=random)
    return secret_key, generate_public_key(secret_key, random=random)


def generate_secret_key(parameters: Parameters, *, random: RandomSource | None = None) -> SecretKey:
    """Draw a uniform ternary secret. `random` is for tests; by default a fresh source.

    Raises `TypeError` for anything but parameters.
    """
    check_type(
        "generate_secret_key", parameters, Parameters, fix='such as fhelium.client.PRESETS["N13"]'
    )
    random = random or RandomSource()
    coefficients = random.ternary((parameters.ring_degree,))
    return SecretKey(parameters, coefficients, random.bytes(KEY_ID_BYTES).hex())


def generate_public_key(secret_key: SecretKey, *, random: RandomSource | None = None) -> PublicKey:
    """Return a public key for `secret_key`."""
    check_type("generate_public_key", secret_key, SecretKey)
    random = random or RandomSource()
    parameters = secret_key.parameters
    limbs = parameters.q_limbs(parameters.max_level)
    seed = random.bytes(SEED_BYTES)
    data = torch.empty(2, len(limbs), parameters.ring_degree, dtype=torch.int64)
    PublicKey.uniform_half(parameters, seed, data[1:])
    s = secret_key.polynomial(limbs, data.device)
    _hide_zero(parameters, limbs, data, s, random)
    return PublicKey(data, parameters, seed, secret_key.key_id)


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
    check_type("generate_relinearization_key", secret_key, SecretKey)
    parameters = secret_key.parameters
    limbs = tuple(range(len(parameters.primes)))
    s = secret_key.polynomial(limbs, torch.device("cpu"))
    kernels = kernels_for(parameters.ring_degree, s.device)
    square = kernels.multiply(parameters.ring, limbs, s, s)
    return _switching_key(secret_key, s, square, "relinearization", None, random)


def generate_rotation_key(
    secret_key: SecretKey, step: int, *, random: RandomSource | None = None
) -> SwitchingKey:
    """Return the key that rotates the slots to the left by `step`, as `numpy.roll(v, -step)`.

    Raises `ValueError` unless 0 < |step| < N/2.
    """
    check_type("generate_rotation_key", secret_key, SecretKey)
    _check_step(step, secret_key.parameters)
    g = galois_element(step, secret_key.parameters.ring_degree)
    return _galois_key(secret_key, g, "rotation", step, random)


def generate_conjugation_key(
    secret_key: SecretKey, *, random: RandomSource | None = None
) -> SwitchingKey:
    """Return the key that takes the complex conjugate of every slot."""
    check_type("generate_conjugation_key", secret_key, SecretKey)
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
    parameters, ring = secret_key.parameters, secret_key.parameters.ring
    primes, degree = [ring.primes[limb] for limb in limbs], ring.ring_degree
    data = torch.empty(*batch_shape, 2, len(limbs), degree, dtype=torch.int64)
    data[..., 1:, :, :] = random.uniform(primes, (*batch_shape, 1), degree)
    s = secret_key.polynomial(limbs, data.device)
    _hide_zero(parameters, limbs, data, s, random)
    return data


def _hide_zero(
    parameters: Parameters,
    limbs: tuple[int, ...],
    data: torch.Tensor,
    s: torch.Tensor,
    random: RandomSource,
) -> None:
    """Write -a s + e before the a that `data`, `[*batch, 2, limbs, N]`, has behind it."""
    ring, degree = parameters.ring, parameters.ring_degree
    kernels = kernels_for(degree, data.device)
    minus_s = kernels.negate(ring, limbs, s)
    noise = random.gaussian((*data.shape[:-3], 1, degree))
    e = kernels.ntt(ring, limbs, kernels.from_integers(ring, limbs, noise))
    a, out = data[..., 1:, :, :], data[..., :1, :, :]
    kernels.multiply_add(ring, limbs, e, a, minus_s, out)


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
    kernels = kernels_for(parameters.ring_degree, s.device)
    moved = kernels.automorphism(parameters.ring, limbs, s, g, "evaluation")
    return _switching_key(secret_key, s, moved, kind, step, random)


def _switching_key(
    secret_key: SecretKey,
    s: torch.Tensor,
    source: torch.Tensor,
    kind: SwitchingKind,
    step: int | None,
    random: RandomSource | None,
) -> SwitchingKey:
    """Return the key from the secret `source` to s; both are `[1, limbs of Q and P, N]`."""
    random, parameters = random or RandomSource(), secret_key.parameters
    ring = parameters.ring
    limbs = tuple(range(len(parameters.primes)))
    digits = parameters.digit_limbs(parameters.max_level)
    kernels = kernels_for(ring.ring_degree, source.device)
    seed = random.bytes(SEED_BYTES)
    data = torch.empty(len(digits), 2, len(limbs), ring.ring_degree, dtype=torch.int64)
    SwitchingKey.uniform_half(parameters, kind, step, seed, data[:, 1:])
    message = kernels.multiply_constant(ring, limbs, source, prod(parameters.p_primes))
    for rows, digit in zip(data, digits, strict=True):
        _hide_zero(parameters, limbs, rows, s, random)
        # The limbs of a digit are consecutive.
        part = slice(digit[0], digit[-1] + 1)
        rows[:1, part] = kernels.add(ring, digit, rows[:1, part], message[:, part])
    return SwitchingKey(kind, step, data, parameters, seed, secret_key.key_id)


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
