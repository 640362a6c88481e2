"""How large a modulus a ring degree can carry at 128-bit security."""

from collections.abc import Iterable
from math import fsum, log2

SECURITY_BITS = 128

# Standard deviation of the error in keys and fresh encryptions; the table below assumes it.
ERROR_DEVIATION = 3.19

# log2(QP) by N for a uniform ternary secret, 128 bits against classical attacks: Bossuat et al.,
# "Security Guidelines for Implementing Homomorphic Encryption" (2024).
MAXIMUM_LOG_QP = {8192: 214, 16384: 430, 32768: 868, 65536: 1747, 131072: 3523}

SOURCE = "Security Guidelines for Implementing HE, 2024"


class InsecureParametersError(ValueError):
    """The parameters do not reach 128-bit security, and nobody said `insecure=True`."""


def log_modulus(primes: Iterable[int]) -> float:
    """Return log2 of the product of `primes`."""
    return fsum(log2(prime) for prime in primes)


def insecurity(ring_degree: int, log_qp: float) -> str | None:
    """Return why a modulus of `log_qp` bits is not 128-bit secure at this degree, or None."""
    limit = MAXIMUM_LOG_QP.get(ring_degree)
    if limit is None:
        rows = ", ".join(str(degree) for degree in MAXIMUM_LOG_QP)
        return f"N = {ring_degree} has no row in the security table (it has N = {rows})"
    if log_qp > limit:
        return (
            f"log2(QP) = {log_qp:.1f} exceeds the {limit} bits that N = {ring_degree} carries "
            f"at {SECURITY_BITS}-bit security"
        )
    return None


def check_security(ring_degree: int, log_qp: float) -> None:
    """Raise `InsecureParametersError` when the parameters are not 128-bit secure."""
    reason = insecurity(ring_degree, log_qp)
    if reason is not None:
        raise InsecureParametersError(
            f"{reason}. Use a larger N or fewer and smaller primes; "
            "say insecure=True (in IR: security = none) only in tests, where nothing needs "
            "protection"
        )


def security_statement(ring_degree: int, log_qp: float) -> str:
    """Return one printable line on the security of a modulus of `log_qp` bits at this degree."""
    reason = insecurity(ring_degree, log_qp)
    if reason is not None:
        return f"insecure (tests only): {reason}"
    return (
        f"{SECURITY_BITS}-bit classical security: log2(QP) = {log_qp:.1f} of at most "
        f"{MAXIMUM_LOG_QP[ring_degree]} at N = {ring_degree} (uniform ternary secret; {SOURCE})"
    )
