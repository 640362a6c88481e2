"""The ops of `ckks_ops.py` by OpenFHE, for a comparison in the same run.

`pip install 'fhelium[openfhe]'` installs the package `openfhe`, whose wheels fit only the version
of Python that they were built for. It has no transforms of single polynomials, so `ntt` and `intt`
are left out. Its `encode` starts from a list of Python, and its `decrypt` decodes.
"""

import os
from collections.abc import Callable
from types import ModuleType
from typing import Any

FIRST_PRIME_BITS = 50

Run = Callable[[], object]


def openfhe_module(threads: int) -> ModuleType:
    """Import `openfhe` for so many threads. Raises `ImportError` with what to do."""
    os.environ["OMP_NUM_THREADS"] = str(threads)
    try:
        import openfhe  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise ImportError(
            f"found no usable openfhe ({error}), expected the optional package: pip install "
            "'fhelium[openfhe]', on the version of Python that its wheel was built for"
        ) from None
    return openfhe


def benchmarks(
    openfhe: Any, values: list[float], log_n: int, limbs: int, digits: int, scale_bits: int
) -> dict[str, Run]:
    """Return a function for each op, at the top level of a context like FHElium's.

    Rescaling is by hand (`FIXEDMANUAL`), key switching hybrid, the security level unchecked.
    """
    parameters = openfhe.CCParamsCKKSRNS()
    parameters.SetRingDim(1 << log_n)
    parameters.SetMultiplicativeDepth(limbs - 1)
    parameters.SetScalingModSize(scale_bits)
    parameters.SetFirstModSize(FIRST_PRIME_BITS)
    parameters.SetNumLargeDigits(digits)
    parameters.SetKeySwitchTechnique(openfhe.HYBRID)
    parameters.SetScalingTechnique(openfhe.FIXEDMANUAL)
    parameters.SetSecurityLevel(openfhe.HEStd_NotSet)
    context = openfhe.GenCryptoContext(parameters)
    for feature in (openfhe.PKE, openfhe.KEYSWITCH, openfhe.LEVELEDSHE):
        context.Enable(feature)
    keys = context.KeyGen()
    steps = list(range(1, 9))
    context.EvalMultKeyGen(keys.secretKey)
    context.EvalRotateKeyGen(keys.secretKey, steps)
    message = context.MakeCKKSPackedPlaintext(values)
    x = context.Encrypt(keys.publicKey, message)
    three_components = context.EvalMultNoRelin(x, x)
    product = context.EvalMult(x, message)
    fresh_steps = iter(range(steps[-1] + 1, 1 << (log_n - 1)))

    def rotate_many() -> list[object]:
        digits = context.EvalFastRotationPrecompute(x)
        cyclotomic_order = 2 << log_n
        return [context.EvalFastRotation(x, step, cyclotomic_order, digits) for step in steps]

    return {
        "encode": lambda: context.MakeCKKSPackedPlaintext(values),
        "encrypt": lambda: context.Encrypt(keys.publicKey, message),
        "decrypt": lambda: context.Decrypt(x, keys.secretKey),
        "add": lambda: context.EvalAdd(x, x),
        "mul_plain": lambda: context.EvalMult(x, message),
        "mul": lambda: context.EvalMultNoRelin(x, x),
        "relinearize": lambda: context.Relinearize(three_components),
        "rescale": lambda: context.Rescale(product),
        "mul_relin_rescale": lambda: context.Rescale(context.EvalMult(x, x)),
        "rotate": lambda: context.EvalRotate(x, 1),
        "rotate_many_8": rotate_many,
        # OpenFHE makes a key that it holds already only once.
        "rotation_keygen": lambda: context.EvalRotateKeyGen(keys.secretKey, [next(fresh_steps)]),
    }
