"""Which automorphism X -> X^g does what to the slots of a message. Imports no torch."""


def galois_element(step: int, ring_degree: int) -> int:
    """Return 5^step modulo 2N: the automorphism that rotates the slots to the left by `step`.

    Slot j of the result is slot j + step of the input, as in `numpy.roll(values, -step)`.
    """
    return pow(5, step % (ring_degree // 2), 2 * ring_degree)


def conjugation_element(ring_degree: int) -> int:
    """Return 2N - 1: the automorphism that takes the complex conjugate of every slot."""
    return 2 * ring_degree - 1
