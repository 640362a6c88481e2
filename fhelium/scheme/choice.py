"""The smallest secure parameters for a wanted depth and precision. Imports no torch."""

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass
from math import ceil, inf, isfinite, log2

from fhelium.scheme import noise
from fhelium.scheme.noise import Estimate
from fhelium.scheme.parameters import Parameters
from fhelium.scheme.security import MAXIMUM_LOG_QP, InsecureParametersError

# Bits of group 0 above the scale and the largest message: a sign, and a factor of 8 to spare.
HEADROOM_BITS = 4

MAXIMUM_SCALE_BITS = 128


class NoParametersError(ValueError):
    """No secure parameters have the wanted depth and precision."""


@dataclass(frozen=True)
class Choice:
    """Parameters, and what made them the smallest that will do.

    estimates: of a fresh ciphertext, then after 1, 2 and so on up to `depth` products.
    passed_over: why each smaller ring degree will not do.
    """

    parameters: Parameters
    estimates: tuple[Estimate, ...]
    passed_over: tuple[str, ...]

    @property
    def precision(self) -> float:
        """Bits after the point that are left at the end, in every slot."""
        return self.estimates[-1].bits(self.parameters)


def choose(
    *,
    depth: int,
    precision: float,
    largest: float = 1.0,
    digits: int | None = None,
    ring_degree: int | None = None,
    scale_bits: int | None = None,
) -> Choice:
    """Return the smallest parameters at 128 bits for `depth` products in a row.

    precision: bits after the point that every slot has at the end, as `product_chain` estimates
        them.
    largest: a bound on the magnitude of every value on the way.
    digits, ring_degree, scale_bits: what to take instead of choosing it.

    The ring degree is the smallest that is secure, the scale the smallest power of two that gives
    the precision, and the digits are the fewest that fit, which makes keys small. The same
    arguments always give the same primes.

    Raises `ValueError` for malformed arguments, and `NoParametersError`, a `ValueError`, when there
    are no such parameters, with what stands in the way.
    """
    _check(depth, precision, largest, digits, ring_degree, scale_bits)
    passed_over: list[str] = []
    for degree in sorted(MAXIMUM_LOG_QP) if ring_degree is None else [ring_degree]:
        try:
            parameters = _for_degree(degree, depth, precision, largest, digits, scale_bits)
        except NoParametersError as error:
            passed_over.append(f"N = {degree}: {error}")
            continue
        estimates = product_chain(parameters, depth, largest)
        return Choice(parameters, tuple(estimates), tuple(passed_over))
    given = [
        f", or another {name}"
        for name, value in (("scale", scale_bits), ("ring degree", ring_degree), ("digits", digits))
        if value is not None
    ]
    raise NoParametersError(
        f"no parameters for depth {depth} and {precision:g} bits of precision on values up to "
        f"{largest:g}: {passed_over[-1]}. Use less depth or precision{''.join(given)}"
    )


def product_chain(parameters: Parameters, depth: int, largest: float = 1.0) -> list[Estimate]:
    """Return the estimates of x, x y_1, x y_1 y_2 and so on, relinearized and rescaled.

    x and every y are fresh, encrypted with a public key; no value exceeds `largest`, nor a y the
    smaller of that and 1. Errors add up in full, and every level is taken to have the default
    scale. A power x^(2^depth) by repeated squares is more sensitive to the error of x: it doubles
    at each, so that up to depth - log2(depth + 1) more bits are lost.
    """
    scale = parameters.scale
    estimates = [noise.encrypt(parameters, scale, largest)]
    factor = noise.encrypt(parameters, scale, min(largest, 1.0))
    for level in range(parameters.max_level, parameters.max_level - depth, -1):
        product = noise.multiply(estimates[-1], factor)
        product = noise.switch_key(product, parameters, level, scale * scale)
        estimates.append(noise.rescale(product, parameters, scale))
    return estimates


def _check(
    depth: int,
    precision: float,
    largest: float,
    digits: int | None,
    ring_degree: int | None,
    scale_bits: int | None,
) -> None:
    if depth < 0:
        raise ValueError(f"depth is {depth}; expected 0 or more products in a row")
    for name, value in (("precision", precision), ("largest value", largest)):
        if not (isfinite(value) and value > 0):
            raise ValueError(f"{name} is {value:g}; expected a finite positive number")
    if ring_degree is not None and ring_degree not in MAXIMUM_LOG_QP:
        degrees = ", ".join(str(degree) for degree in sorted(MAXIMUM_LOG_QP))
        raise ValueError(f"ring degree is {ring_degree}; those with known security are {degrees}")
    if digits is not None and digits < 1:
        raise ValueError(f"digits is {digits}; expected 1 or more")
    if scale_bits is not None and not 1 <= scale_bits <= MAXIMUM_SCALE_BITS:
        raise ValueError(f"scale is 2^{scale_bits}; expected 2^1 to 2^{MAXIMUM_SCALE_BITS}")


def _for_degree(
    degree: int,
    depth: int,
    precision: float,
    largest: float,
    digits: int | None,
    scale_bits: int | None,
) -> Parameters:
    """Return the parameters of one ring degree. Raises `NoParametersError` with the reason."""
    limit = MAXIMUM_LOG_QP[degree]
    # No scale has fewer bits than the precision or than N: refuse a hopeless depth at once.
    least = max(precision, log2(degree)) if scale_bits is None else scale_bits
    if depth * least > limit:
        raise NoParametersError(
            f"{depth} levels of {least:.0f} bits or more exceed the {limit} bits of log2(QP) that "
            "it carries at 128-bit security"
        )
    if scale_bits is None:
        scale_bits = _smallest_scale(degree, depth, precision, largest)
    parameters = _build(degree, depth, scale_bits, largest, digits, insecure=True)
    reached = product_chain(parameters, depth, largest)[-1].bits(parameters)
    if reached < precision:
        raise NoParametersError(
            f"the scale 2^{scale_bits} gives {reached:.1f} bits of precision at depth {depth}"
        )
    try:
        # The most digits need the smallest P: where they do not fit, nothing does.
        parameters = _build(degree, depth, scale_bits, largest, digits)
    except InsecureParametersError:
        raise NoParametersError(
            f"needs log2(QP) = {parameters.log_qp:.0f} at the scale 2^{scale_bits}, and carries "
            f"{limit} at 128-bit security"
        ) from None
    if digits is not None:
        return parameters
    for fewer in _useful_digits(len(parameters.q_primes)):
        try:
            candidate = _build(degree, depth, scale_bits, largest, fewer)
        except InsecureParametersError:
            continue
        if product_chain(candidate, depth, largest)[-1].bits(candidate) >= precision:
            return candidate
    return parameters


def _smallest_scale(degree: int, depth: int, precision: float, largest: float) -> int:
    def reached(bits: int) -> float:
        try:
            parameters = _build(degree, depth, bits, largest, insecure=True)
        except NoParametersError:
            # A scale so small that there are not enough primes near it.
            return -inf
        return product_chain(parameters, depth, largest)[-1].bits(parameters)

    if (limit := reached(MAXIMUM_SCALE_BITS)) < precision:
        raise NoParametersError(
            f"no scale gives more than {limit:.1f} bits of precision at depth {depth}: messages "
            "are encoded and decoded in float64"
        )
    scales = range(1, MAXIMUM_SCALE_BITS + 1)
    return scales[bisect_left(scales, precision, key=reached)]


def _build(
    degree: int,
    depth: int,
    scale_bits: int,
    largest: float,
    digits: int | None = None,
    *,
    insecure: bool = False,
) -> Parameters:
    try:
        return Parameters.build(
            ring_degree=degree,
            depth=depth,
            scale_bits=scale_bits,
            first_bits=scale_bits + max(0, ceil(log2(largest))) + HEADROOM_BITS,
            digits=digits,
            insecure=insecure,
        )
    except InsecureParametersError:
        raise
    except ValueError as error:
        raise NoParametersError(str(error)) from error


def _useful_digits(count: int) -> Iterable[int]:
    """Yield the numbers of digits, fewest first, that `count` primes can be cut into evenly."""
    yield from sorted({ceil(count / width) for width in range(1, count + 1)})
