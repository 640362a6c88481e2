"""A client with seeded keys, and what is known of the programs that it runs. For tests alone."""

import hashlib
from collections.abc import Iterable, Sequence
from functools import cache

import numpy as np
import numpy.typing as npt
from xdsl.dialects.builtin import FloatAttr
from xdsl.ir import Operation, SSAValue

from fhelium.backend import BoundResource, OperationBackend, ResourceBindings, ResourceRequirement
from fhelium.dialects.ckks.types import CiphertextType, PlaintextType, StateType
from fhelium.dialects.rns.types import Form
from fhelium.frontends.program import Program
from fhelium.kernels.ntt import intt
from fhelium.passes.ckks_annotate_error import MAY_OVERFLOW, PRECISION
from fhelium.passes.pipeline import Pipeline
from fhelium.scheme.ciphertext import Ciphertext, Plaintext
from fhelium.scheme.encoding import decode, encode
from fhelium.scheme.encryption import decrypt, encrypt
from fhelium.scheme.keys import (
    generate_conjugation_key,
    generate_public_key,
    generate_relinearization_key,
    generate_rotation_key,
    generate_secret_key,
)
from fhelium.scheme.parameters import Parameters
from fhelium.scheme.sampling import RandomSource

Values = npt.NDArray[np.complex128]

ANNOTATE = Pipeline.parse("ckks-annotate-error")


def seeded(*parts: object) -> RandomSource:
    """Return a source that depends on `parts` alone, so that a failure comes again."""
    return RandomSource(seed=hashlib.sha256(repr(parts).encode()).digest())


def message(seed: int, *shape: int) -> Values:
    """Return complex values in the unit disc, some on its border."""
    rng = np.random.default_rng(seed)
    radius = np.minimum(1.0, rng.uniform(0, 1.2, shape))
    return radius * np.exp(2j * np.pi * rng.uniform(size=shape))


class Client:
    """Keys for one set of parameters, made when they are first needed, and a backend with them."""

    def __init__(self, parameters: Parameters):
        self.parameters = parameters
        self.secret_key = generate_secret_key(parameters, random=seeded("secret"))
        self.public_key = generate_public_key(self.secret_key, random=seeded("public"))
        self.keys: dict[str, BoundResource] = {}
        self.backend = OperationBackend(materializer=self)

    def materialize(self, requirements: tuple[ResourceRequirement, ...], /) -> ResourceBindings:
        return ResourceBindings(
            [self.key(need.symbol, need.kind) for need in requirements if "-key" in need.kind]
        )

    def key(self, symbol: str, kind: str) -> BoundResource:
        """Return the key of a kind; the name of a rotation key is like rotation_minus_5."""
        if symbol not in self.keys:
            secret_key, random = self.secret_key, seeded(symbol)
            if kind == "public-key":
                key = self.public_key
            elif kind == "secret-key":
                key = secret_key
            elif kind == "relinearization-key":
                key = generate_relinearization_key(secret_key, random=random)
            elif kind == "conjugation-key":
                key = generate_conjugation_key(secret_key, random=random)
            else:
                step = int(symbol.removeprefix("rotation_").replace("minus_", "-"))
                key = generate_rotation_key(secret_key, step, random=random)
            self.keys[symbol] = BoundResource(symbol, kind, key)
        return self.keys[symbol]

    def input(self, values: Values, type: CiphertextType | PlaintextType, seed: object = 0):
        """Return `values` as an input of a type, encrypted with the public key."""
        plaintext = encode(values, self.parameters, level=type.level, scale=type.scale)
        if isinstance(type, CiphertextType):
            return encrypt(plaintext, self.public_key, random=seeded("encryption", seed))
        if type.form == Form.COEFFICIENT:
            data = intt(self.parameters.ring, plaintext.limbs, plaintext.data)
            return Plaintext(data, self.parameters, plaintext.level, plaintext.scale, "coefficient")
        return plaintext

    def inputs(self, program: Program, plain: Iterable[Values]) -> list[object]:
        """Return values as the first inputs of a program, in ciphertexts of the types it asks."""
        arguments = program.function().body.block.args
        return [
            self.input(values, CiphertextType.of(argument), number)
            for number, (values, argument) in enumerate(zip(plain, arguments, strict=False))
        ]

    def values(self, result: object) -> Values:
        """Return what a ciphertext decrypts to."""
        assert isinstance(result, Ciphertext)
        return decode(decrypt(result, self.secret_key))


@cache
def client_of(parameters: Parameters) -> Client:
    """Return the one client of a set of parameters."""
    return Client(parameters)


def results_of(result: object) -> tuple[Ciphertext, ...]:
    """Return what `ProgramExecutable.run` returned as a tuple."""
    results = result if isinstance(result, tuple) else (result,)
    ciphertexts = tuple(each for each in results if isinstance(each, Ciphertext))
    assert len(ciphertexts) == len(results)
    return ciphertexts


def unassigned(program: Program) -> list[StateType]:
    """Return the types of values that lack a field."""
    types = [type for op in program.module.walk() for type in op.result_types]
    blocks = [b for op in program.module.walk() for r in op.regions for b in r.blocks]
    types += [type for block in blocks for type in block.arg_types]
    return [type for type in types if isinstance(type, StateType) and type.unassigned()]


def annotated_results(program: Program, name: str = "main") -> tuple[Sequence[SSAValue], bool]:
    """Return the results of a function with their errors, and whether a message may overflow."""
    annotated = program.clone()
    ANNOTATE.apply(annotated)
    end = annotated.function(name).body.block.last_op
    assert end is not None
    overflows = any(MAY_OVERFLOW in op.attributes for op in annotated.module.walk())
    return end.operands, overflows


def annotated_bits(program: Program, name: str = "main") -> list[float]:
    """Return the estimated bits of precision of each result of a function."""
    bits: list[float] = []
    for value in annotated_results(program, name)[0]:
        assert isinstance(value.owner, Operation)
        attribute = value.owner.attributes[PRECISION]
        assert isinstance(attribute, FloatAttr)
        assert MAY_OVERFLOW not in value.owner.attributes
        bits.append(attribute.value.data)
    return bits
