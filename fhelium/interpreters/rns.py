"""The `rns` dialect on Python integers: the definition of what its ops compute, to the bit.

A value is an array `[..., components, limbs, N]` of Python integers in [0, q), as in the payloads
of the backend, and a switching key `[digits, 2, limbs of Q and P, N]`. Nothing is shared with the
kernels: sums and products are those of unbounded integers, base conversion goes through the
integer itself, and transforms are recursive. Encoding alone is the client's. It is slow: for rings
up to about N = 2^12.
"""

from collections.abc import Callable, Mapping
from functools import cache
from math import prod

import numpy as np
from numpy.typing import ArrayLike, NDArray
from xdsl.dialects.builtin import IndexType, IntegerType
from xdsl.interpreter import (
    Interpreter,
    InterpreterFunctions,
    PythonValues,
    ReturnedValues,
    TerminatorValue,
    impl,
    impl_terminator,
    register_impls,
)
from xdsl.ir import Attribute

from fhelium.dialects import ckks, rns
from fhelium.dialects.ckks.parameters import parameters_of
from fhelium.dialects.core import ResourceOp
from fhelium.dialects.rns.types import BasisAttr, Form, PolyType
from fhelium.frontends.program import Program
from fhelium.interpreters.materials import MaterialFunctions
from fhelium.interpreters.packing import PackingFunctions
from fhelium.interpreters.structure import call, interpreter_of, scalar_input
from fhelium.scheme.parameters import Parameters

Residues = NDArray[np.object_]
Transform = Callable[[NDArray[np.object_], int], NDArray[np.object_]]


@register_impls
class RnsFunctions(InterpreterFunctions):
    """One function an op; `keys` are switching keys by symbol."""

    def __init__(self, parameters: Parameters, keys: Mapping[str, ArrayLike]):
        super().__init__()
        self.parameters, self.keys = parameters, keys

    @impl(ResourceOp)
    def resource(
        self, interpreter: Interpreter, op: ResourceOp, args: PythonValues
    ) -> PythonValues:
        key = self.keys.get(op.symbol_name)
        return (None if key is None else integers(key),)

    @impl(ckks.EncodeOp)
    def encode(
        self, interpreter: Interpreter, op: ckks.EncodeOp, args: PythonValues
    ) -> PythonValues:
        from fhelium.scheme.encoding import encode  # needs torch

        level, scale = op.result.type.level, op.result.type.scale
        plaintext = encode(np.asarray(args[0]), self.parameters, level=level, scale=scale)
        return (integers(plaintext.data),)

    @impl(rns.ModuliOp)
    def moduli(
        self, interpreter: Interpreter, op: rns.ModuliOp, args: PythonValues
    ) -> PythonValues:
        return (self._primes(op.result.type.basis),)

    @impl(rns.AddOp)
    def add(self, interpreter: Interpreter, op: rns.AddOp, args: PythonValues) -> PythonValues:
        x, y = _same_length(*args)
        return ((x + y) % self._primes_of(op.result.type),)

    @impl(rns.SubOp)
    def sub(self, interpreter: Interpreter, op: rns.SubOp, args: PythonValues) -> PythonValues:
        x, y = _same_length(*args)
        return ((x - y) % self._primes_of(op.result.type),)

    @impl(rns.NegateOp)
    def negate(
        self, interpreter: Interpreter, op: rns.NegateOp, args: PythonValues
    ) -> PythonValues:
        return (-args[0] % self._primes_of(op.result.type),)

    @impl(rns.MulOp)
    def mul(self, interpreter: Interpreter, op: rns.MulOp, args: PythonValues) -> PythonValues:
        return (_product(args[0], args[1]) % self._primes_of(op.result.type),)

    @impl(rns.SquareOp)
    def square(
        self, interpreter: Interpreter, op: rns.SquareOp, args: PythonValues
    ) -> PythonValues:
        return (_product(args[0], args[0]) % self._primes_of(op.result.type),)

    @impl(rns.WeightedSumOp)
    def weighted_sum(
        self, interpreter: Interpreter, op: rns.WeightedSumOp, args: PythonValues
    ) -> PythonValues:
        half = len(op.terms)
        total = sum(x * w for x, w in zip(args[:half], args[half:], strict=True))
        return (total % self._primes_of(op.result.type),)

    @impl(rns.AddConstantOp)
    def add_constant(
        self, interpreter: Interpreter, op: rns.AddConstantOp, args: PythonValues
    ) -> PythonValues:
        total = args[0].copy()
        constant = op.constant.value.data
        if PolyType.of(op.input).form == Form.EVALUATION:
            total[..., 0, :, :] += constant
        else:
            total[..., 0, :, 0] += constant
        return (total % self._primes_of(op.result.type),)

    @impl(rns.MulConstantOp)
    def mul_constant(
        self, interpreter: Interpreter, op: rns.MulConstantOp, args: PythonValues
    ) -> PythonValues:
        return (args[0] * op.constant.value.data % self._primes_of(op.result.type),)

    @impl(rns.ComponentsOp)
    def components(
        self, interpreter: Interpreter, op: rns.ComponentsOp, args: PythonValues
    ) -> PythonValues:
        return (args[0][..., op.start.value.data : op.stop.value.data, :, :],)

    @impl(rns.NttOp)
    def ntt(self, interpreter: Interpreter, op: rns.NttOp, args: PythonValues) -> PythonValues:
        return (self._each_limb(evaluations, args[0], op.result.type),)

    @impl(rns.InttOp)
    def intt(self, interpreter: Interpreter, op: rns.InttOp, args: PythonValues) -> PythonValues:
        return (self._each_limb(coefficients, args[0], op.result.type),)

    @impl(rns.AutomorphismOp)
    def automorphism(
        self, interpreter: Interpreter, op: rns.AutomorphismOp, args: PythonValues
    ) -> PythonValues:
        g, type = op.galois_element.value.data, op.result.type
        assert isinstance(type, PolyType)
        if type.form == Form.COEFFICIENT:
            return (_moved(args[0], g) % self._primes_of(type),)
        # By way of the coefficients, as the op is defined.
        moved = _moved(self._each_limb(coefficients, args[0], type), g) % self._primes_of(type)
        return (self._each_limb(evaluations, moved, type),)

    @impl(rns.ProjectOp)
    def project(
        self, interpreter: Interpreter, op: rns.ProjectOp, args: PythonValues
    ) -> PythonValues:
        limbs = self._limbs(PolyType.of(op.input).basis)
        kept = [limbs.index(limb) for limb in self._limbs(op.result.type.basis)]
        return (args[0][..., kept, :],)

    @impl(rns.ModUpOp)
    def mod_up(self, interpreter: Interpreter, op: rns.ModUpOp, args: PythonValues) -> PythonValues:
        source = self._primes(PolyType.of(op.input).basis)
        return (centred(args[0], source) % self._primes_of(op.result.type),)

    @impl(rns.ScaleUpOp)
    def scale_up(
        self, interpreter: Interpreter, op: rns.ScaleUpOp, args: PythonValues
    ) -> PythonValues:
        source, target = (
            self._limbs(type.basis) for type in (PolyType.of(op.input), op.result.type)
        )
        factor = prod(self.parameters.primes[limb] for limb in target if limb not in source)
        shape = (*args[0].shape[:-2], len(target), args[0].shape[-1])
        result = np.zeros(shape, dtype=object)
        result[..., [target.index(limb) for limb in source], :] = args[0] * factor
        return (result % self._primes_of(op.result.type),)

    @impl(rns.ModDownOp)
    def mod_down(
        self, interpreter: Interpreter, op: rns.ModDownOp, args: PythonValues
    ) -> PythonValues:
        source, target = (
            self._limbs(PolyType.of(value).basis) for value in (op.input, op.remainder)
        )
        primes = self.parameters.primes
        divisor = prod(primes[limb] for limb in source if limb not in target)
        inverse = np.array([[pow(divisor, -1, primes[limb])] for limb in target], dtype=object)
        kept = args[0][..., [source.index(limb) for limb in target], :]
        return ((kept - args[1]) * inverse % self._primes_of(op.result.type),)

    @impl(rns.KeyProductOp)
    def key_product(
        self, interpreter: Interpreter, op: rns.KeyProductOp, args: PythonValues
    ) -> PythonValues:
        *digits, key = args
        if key is None:
            assert isinstance(op.key.owner, ResourceOp)
            raise KeyError(f"the switching key @{op.key.owner.symbol_name} is not given")
        rows = key[..., list(self._limbs(op.result.type.basis)), :]
        total = sum(digit * row for digit, row in zip(digits, rows, strict=False))
        return (total % self._primes_of(op.result.type),)

    @impl(rns.FusedOp)
    def fused(self, interpreter: Interpreter, op: rns.FusedOp, args: PythonValues) -> PythonValues:
        return interpreter.run_ssacfg_region(op.body, args, op.name)

    @impl_terminator(rns.YieldOp)
    def end_of_fused(
        self, interpreter: Interpreter, op: rns.YieldOp, args: PythonValues
    ) -> tuple[TerminatorValue, PythonValues]:
        return ReturnedValues(args), ()

    def _limbs(self, basis: BasisAttr) -> tuple[int, ...]:
        special = len(self.parameters.q_primes)
        return (*basis.q, *(special + limb for limb in basis.p))

    def _primes(self, basis: BasisAttr) -> Residues:
        primes = [[self.parameters.primes[limb]] for limb in self._limbs(basis)]
        return np.array(primes, dtype=object)

    def _primes_of(self, type: Attribute) -> Residues:
        assert isinstance(type, PolyType)
        return self._primes(type.basis)

    def _each_limb(self, transform: Transform, x: Residues, type: PolyType) -> Residues:
        primes = [self.parameters.primes[limb] for limb in self._limbs(type.basis)]
        limbs = [transform(x[..., i, :], prime) for i, prime in enumerate(primes)]
        return np.stack(limbs, axis=-2)


def evaluations(x: Residues, prime: int) -> Residues:
    """Return the values of polynomials `[..., N]` modulo X^N + 1 and `prime`.

    Entry i is the value at psi^(2 r(i) + 1), where r reverses the bits of i and psi is `root`.
    """
    degree = x.shape[-1]
    psi = root(prime, degree)
    twisted = x * _powers(psi, degree, prime) % prime
    return _fourier(twisted, psi * psi % prime, prime)[..., _reversal(degree)]


def coefficients(x: Residues, prime: int) -> Residues:
    """Return what `evaluations` takes to `x`."""
    degree = x.shape[-1]
    inverse = pow(root(prime, degree), -1, prime)
    ordered = x[..., _reversal(degree)]
    twisted = _fourier(ordered, inverse * inverse % prime, prime)
    return twisted * pow(degree, -1, prime) * _powers(inverse, degree, prime) % prime


@cache
def root(prime: int, degree: int) -> int:
    """Return the primitive 2N-th root of unity: x^((q - 1) / 2N) for the least such x from 2 up."""
    candidates = (pow(x, (prime - 1) // (2 * degree), prime) for x in range(2, prime))
    return next(psi for psi in candidates if pow(psi, degree, prime) == prime - 1)


def centred(x: Residues, primes: Residues) -> Residues:
    """Return the integer in [-D/2, D/2) of residues `[..., limbs, N]`, as `[..., 1, N]`."""
    product = prod(int(q) for (q,) in primes)
    factors = [product // q * pow(product // q, -1, q) for (q,) in primes]
    whole = (x * np.array(factors, dtype=object)[:, None]).sum(axis=-2, keepdims=True) % product
    return np.where(2 * whole > product, whole - product, whole)


def integers(x: ArrayLike) -> Residues:
    """Return an array of Python integers."""
    return np.asarray(x).astype(object)


def _fourier(x: Residues, w: int, prime: int) -> Residues:
    """Return the sums over j of x[j] w^(i j): even and odd places apart, then put together."""
    length = x.shape[-1]
    if length == 1:
        return x
    halves = np.stack([x[..., ::2], x[..., 1::2]], axis=-2)
    halves = _fourier(halves, w * w % prime, prime)
    even, odd = halves[..., 0, :], halves[..., 1, :] * _powers(w, length // 2, prime)
    return np.concatenate([even + odd, even - odd], axis=-1) % prime


@cache
def _powers(base: int, count: int, prime: int) -> Residues:
    powers = [1]
    while len(powers) < count:
        powers.append(powers[-1] * base % prime)
    return np.array(powers, dtype=object)


@cache
def _reversal(length: int) -> list[int]:
    bits = length.bit_length() - 1
    return [int(f"{i:0{bits}b}"[::-1], 2) if bits else 0 for i in range(length)]


def _moved(x: Residues, g: int) -> Residues:
    """Return x(X^g): coefficient j goes to g j, and X^N = -1."""
    degree = x.shape[-1]
    result = np.empty_like(x)
    for j in range(degree):
        place = g * j % (2 * degree)
        result[..., place % degree] = x[..., j] if place < degree else -x[..., j]
    return result


def _product(x: Residues, y: Residues) -> Residues:
    """Return the product as polynomials in the secret, not reduced."""
    a, b = x.shape[-3], y.shape[-3]
    parts = np.zeros((*x.shape[:-3], a + b - 1, *x.shape[-2:]), dtype=object)
    for i in range(a):
        for j in range(b):
            parts[..., i + j, :, :] += x[..., i, :, :] * y[..., j, :, :]
    return parts


def _same_length(x: Residues, y: Residues) -> tuple[Residues, Residues]:
    count = max(x.shape[-3], y.shape[-3])

    def padded(z: Residues) -> Residues:
        missing = np.zeros((*z.shape[:-3], count - z.shape[-3], *z.shape[-2:]), dtype=object)
        return np.concatenate([z, missing], axis=-3)

    return padded(x), padded(y)


def evaluate(
    program: Program,
    *inputs: ArrayLike,
    keys: Mapping[str, ArrayLike] | None = None,
    function: str = "main",
) -> tuple[Residues, ...]:
    """Run a function of an `rns` program on residues and return its results.

    Inputs and `Program.materials` are integer arrays of the shapes of payloads, or one number for
    the type of one; `keys` are the tensors of switching keys by symbol. Raises `ValueError` for
    inputs of another number, what is no such number, and for a program without parameters,
    `KeyError` for a key that is missing, and xDSL's `InterpretationError` for ops of other
    dialects.
    """
    body = program.function(function).body.block
    if len(inputs) != len(body.args):
        raise ValueError(f"found {len(inputs)} inputs, expected {len(body.args)}")
    attribute = parameters_of(program.module)
    if attribute is None:
        raise ValueError("found no ckks.parameters on the module, expected the primes of its limbs")
    materials = {name: _material(value) for name, value in program.materials.items()}
    interpreter = interpreter_of(
        program.module,
        MaterialFunctions(materials),
        PackingFunctions(),
        RnsFunctions(Parameters.from_attribute(attribute), keys or {}),
    )
    values = (
        scalar_input(np.asarray(each), argument.type, position)
        if isinstance(argument.type, IndexType | IntegerType)
        else integers(each)
        for position, (each, argument) in enumerate(zip(inputs, body.args, strict=True))
    )
    return call(interpreter, function, tuple(values))


def _material(value: object) -> object:
    array = np.asarray(getattr(value, "data", value))
    return integers(array) if array.dtype.kind == "i" else array
