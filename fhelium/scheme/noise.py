"""How large the error of an encrypted value is, from the ops that made it. Imports no torch.

An error is a polynomial, and what a user sees of it is its value in a slot. A polynomial whose N
coefficients have variance V, independently, has in every slot a complex value of variance N V; the
slots of a product are the products of the slots. So variances are followed from op to op, as in
Costache, Curtis, Hales, Murphy, Ogilvie and Player, "On the precision loss in approximate
homomorphic encryption" (SAC 2023), instead of worst cases, as in Cheon, Kim, Kim and Song
(ASIACRYPT 2017, lemmas 1 to 3), which are many bits too careful.

What is a bound and no average: messages count with their largest magnitude, and the errors of two
operands add up in full unless the caller knows them to be independent (a square doubles its error,
it does not just multiply it by sqrt(2)).

Everything is in units of the message: an error of the polynomial, divided by the scale.
"""

from dataclasses import dataclass
from math import factorial, hypot, inf, isfinite, log, log2, prod, sqrt

from fhelium.scheme.parameters import Parameters
from fhelium.scheme.security import ERROR_DEVIATION

# Variances of one coefficient: rounding to an integer, the uniform ternary secret, and the
# ephemeral of public-key encryption.
_ROUNDING = 1 / 12
_SECRET = 2 / 3
_EPHEMERAL = 1 / 2

# What the transforms of `encode` and `decode` lose in float64, relative to the largest message.
_FLOAT_ERROR = 2.0**-51

# The chance that some slot is worse than `bits` says, for errors that are Gaussian in a slot.
_CHANCE = 2.0**-20

_MOST_STATISTICAL_BITS = 256
_MOST_PUBLICATIONS = 1 << 64


@dataclass(frozen=True)
class Estimate:
    """What is known of a value: the largest magnitude of its message, and its error.

    largest: a bound on |message| in every slot.
    deviation: sqrt(E |error|^2) in a slot.
    """

    largest: float
    deviation: float

    def bits(self, parameters: Parameters) -> float:
        """Return the bits after the point that are right in every slot once decoded.

        -log2 of an error that the worst of the N/2 slots exceeds with a chance of 2^-20 when errors
        are Gaussian in a slot. A product of two noises, as of a rounding and the secret, has longer
        tails: the worst slot may lie beyond, but one bit beyond with a chance below 2^-10 only.
        Infinite when there is no error at all.
        """
        deviation = hypot(self.deviation, _FLOAT_ERROR * self.largest)
        return -log2(deviation * sqrt(log(parameters.slots / _CHANCE))) if deviation else inf


def encode(parameters: Parameters, scale: float, largest: float = 1.0) -> Estimate:
    """Return the estimate of a plaintext: every coefficient is rounded to an integer."""
    rounding = _slot_deviation(parameters, _ROUNDING, scale)
    return Estimate(largest, hypot(rounding, _FLOAT_ERROR * largest))


def constant(value: float, scale: float) -> Estimate:
    """Return the estimate of a scalar that is rounded to an integer at `scale`."""
    return Estimate(abs(value), 0.5 / scale)


def encrypt(
    parameters: Parameters, scale: float, largest: float = 1.0, *, public: bool = True
) -> Estimate:
    """Return the estimate of a fresh ciphertext.

    The noise is v e + e_0 + e_1 s with a public key, and e with the secret key, for errors e of
    deviation 3.19, an ephemeral v and the secret s.
    """
    terms = 1 + parameters.ring_degree * (_EPHEMERAL + _SECRET) if public else 1
    noise = _slot_deviation(parameters, terms * ERROR_DEVIATION**2, scale)
    plaintext = encode(parameters, scale, largest)
    return Estimate(largest, hypot(noise, plaintext.deviation))


def add(x: Estimate, y: Estimate, *, independent: bool = False) -> Estimate:
    """Return the estimate of a sum or difference at equal scales."""
    total = _combined(x.deviation, y.deviation, independent)
    return Estimate(x.largest + y.largest, total)


def multiply(x: Estimate, y: Estimate, *, independent: bool = False) -> Estimate:
    """Return the estimate of a product, with a plaintext or scalar too, before any rescale."""
    first, second = x.largest * y.deviation, y.largest * x.deviation
    product = x.deviation * y.deviation
    total = _combined(_combined(first, second, independent), product, independent)
    return Estimate(x.largest * y.largest, total)


def switch_key(x: Estimate, parameters: Parameters, level: int, scale: float) -> Estimate:
    """Return the estimate after a relinearization, rotation or conjugation at `level` and `scale`.

    A digit modulo D_j is uniform; its product with the key's error is divided by P, and both
    components are rounded then (Han and Ki, CT-RSA 2020, section 3).
    """
    degree = parameters.ring_degree
    p = prod(parameters.p_primes)
    # Ratios of large integers, which do not fit float64 themselves.
    ratios = [
        prod(parameters.primes[limb] for limb in digit) / p
        for digit in parameters.digit_limbs(level)
    ]
    digits = degree * _ROUNDING * ERROR_DEVIATION**2 * sum(ratio**2 for ratio in ratios)
    variance = digits + _rounding_of_components(parameters, 2)
    noise = _slot_deviation(parameters, variance, scale)
    return Estimate(x.largest, hypot(x.deviation, noise))


def rescale(x: Estimate, parameters: Parameters, scale: float, *, components: int = 2) -> Estimate:
    """Return the estimate after a rescale to `scale`: every component is rounded."""
    variance = _rounding_of_components(parameters, components)
    return Estimate(x.largest, hypot(x.deviation, _slot_deviation(parameters, variance, scale)))


def flood(
    x: Estimate, parameters: Parameters, *, statistical_bits: int, publications: int = 1
) -> Estimate:
    """Return the estimate of what `decrypt_to_publish` gives for twice the deviation of `x`."""
    noise = flooding_deviation(
        2 * x.deviation, statistical_bits=statistical_bits, publications=publications
    )
    return Estimate(x.largest, hypot(x.deviation, sqrt(parameters.ring_degree) * noise))


def flooding_deviation(error: float, *, statistical_bits: int, publications: int = 1) -> float:
    """Return the deviation of the coefficients of noise that hides an error.

    error: a bound on the root mean square of the error over the slots. That is the Euclidean norm
        of its coefficients, which Parseval's theorem relates so.

    sqrt(12 publications) 2^(statistical_bits / 2) error: Li, Micciancio, Schultz and Sorrell,
    "Securing Approximate Homomorphic Encryption Using Differential Privacy" (CRYPTO 2022). A
    discrete Gaussian of deviation sigma and the same one shifted by e have a Kullback-Leibler
    divergence of at most |e|^2 / (2 sigma^2) (Canonne, Kamath and Steinke, NeurIPS 2020), and
    divergences of adaptive publications add up. So all of them together differ from results without
    any error by at most 2^-statistical_bits / 24.

    Raises `TypeError` and `ValueError` for malformed arguments.
    """
    for name, value in (("statistical_bits", statistical_bits), ("publications", publications)):
        if not isinstance(value, int) or isinstance(value, bool):
            raise TypeError(f"{name} must be an int, got {type(value).__name__}")
    if not 1 <= statistical_bits <= _MOST_STATISTICAL_BITS:
        raise ValueError(
            f"statistical_bits is {statistical_bits}; expected 1 to {_MOST_STATISTICAL_BITS}"
        )
    if not 1 <= publications <= _MOST_PUBLICATIONS:
        raise ValueError(f"publications is {publications}; expected 1 to 2^64")
    if not isinstance(error, int | float) or isinstance(error, bool):
        raise TypeError(f"error must be a float, got {type(error).__name__}")
    if not (isfinite(error) and error > 0):
        raise ValueError(f"error is {error}; expected a finite positive bound, in message units")
    return sqrt(12.0 * publications) * 2.0 ** (statistical_bits / 2) * error


def _slot_deviation(parameters: Parameters, coefficient_variance: float, scale: float) -> float:
    return sqrt(parameters.ring_degree * coefficient_variance) / scale


def _rounding_of_components(parameters: Parameters, components: int) -> float:
    """Variance of a coefficient of r_0 + r_1 s + r_2 s^2 for roundings r_i.

    In a slot E |s^i|^2 is i! (E |s|^2)^i. Each power beyond the first counts one bit more, because
    the tail of its product with a rounding is longer by that than `Estimate.bits` allows for.
    """
    secret = parameters.ring_degree * _SECRET
    powers = [factorial(i) * 4 ** max(i - 1, 0) * secret**i for i in range(components)]
    return _ROUNDING * sum(powers)


def _combined(first: float, second: float, independent: bool) -> float:
    return hypot(first, second) if independent else first + second
