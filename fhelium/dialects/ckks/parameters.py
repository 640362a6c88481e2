"""The attribute `ckks.parameters`: what a program says about the scheme it runs under."""

from collections.abc import Sequence
from math import prod

from xdsl.dialects.builtin import ArrayAttr, FloatData, IntAttr, ModuleOp, StringAttr
from xdsl.ir import Attribute, Operation, ParametrizedAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from fhelium.dialects.fields import (
    count_text,
    parse_count,
    parse_fields,
    parse_scale,
    print_fields,
    scale_text,
)

PARAMETERS = "ckks.parameters"
"""Module attribute: the scheme's parameters."""


@irdl_attr_definition
class ParametersAttr(ParametrizedAttribute):
    """The scheme's parameters, on the module: a program that carries them is self-contained.

    `moduli` are the primes of Q grouped by level: a value at level l has the primes of the groups
    0 to l, and a rescale drops group l. `special` are the primes of P, `digits` the number of
    key-switching digits at the top level. `security = none` says in so many words that the
    parameters are below 128 bits, as in tests.
    """

    name = "ckks.parameters"

    ring_degree: IntAttr
    moduli: ArrayAttr[ArrayAttr[IntAttr]]
    special: ArrayAttr[IntAttr]
    digits: IntAttr
    scale: FloatData
    secret: StringAttr
    security: StringAttr

    @property
    def groups(self) -> tuple[tuple[int, ...], ...]:
        """The primes of Q, grouped by level."""
        return tuple(tuple(prime.data for prime in group) for group in self.moduli)

    @property
    def max_level(self) -> int:
        """The level of a fresh ciphertext."""
        return len(self.moduli) - 1

    def rescale_divisor(self, level: int) -> int:
        """The product of the primes that a rescale at `level` drops."""
        return prod(self.groups[level])

    def alias_name(self) -> str:
        return f"ckks_N{self.ring_degree.data}_L{self.max_level}"

    def verify(self) -> None:
        degree = self.ring_degree.data
        if not 8 <= degree <= 2**17 or degree & (degree - 1):
            raise VerifyException(
                f"found ring_degree {degree}, expected a power of two from 8 to 2^17"
            )
        if not self.moduli.data or not all(group.data for group in self.moduli):
            raise VerifyException("found an empty group in moduli, expected a prime in each level")
        if not self.special.data:
            raise VerifyException(
                "found no special primes, expected at least one to switch keys by"
            )
        primes = [prime for group in self.groups for prime in group]
        primes += [prime.data for prime in self.special]
        for prime in primes:
            if not 2 < prime < 2**50 or prime % (2 * degree) != 1:
                raise VerifyException(
                    f"found the modulus {prime}, expected a prime below 2^50 that is 1 modulo "
                    f"2 * ring_degree = {2 * degree}"
                )
        if len(set(primes)) != len(primes):
            raise VerifyException("found a prime twice in moduli and special: use each once")
        count = sum(len(group) for group in self.groups)
        if not 1 <= self.digits.data <= count:
            raise VerifyException(
                f"found {self.digits.data} digits, expected 1 to {count}, the number of primes in Q"
            )
        if self.secret.data != "ternary":
            raise VerifyException(f"found secret = {self.secret.data}, expected ternary")
        if self.security.data not in ("128", "none"):
            raise VerifyException(f"found security = {self.security.data}, expected 128 or none")

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        def parse_primes(p: AttrParser) -> ArrayAttr[IntAttr]:
            return ArrayAttr(
                p.parse_comma_separated_list(
                    p.Delimiter.SQUARE, lambda: parse_count(p, "modulus", 3)
                )
            )

        def parse_groups(p: AttrParser) -> ArrayAttr[ArrayAttr[IntAttr]]:
            return ArrayAttr(
                p.parse_comma_separated_list(p.Delimiter.SQUARE, lambda: parse_primes(p))
            )

        def parse_security(p: AttrParser) -> StringAttr:
            if p.parse_optional_keyword("none") is not None:
                return StringAttr("none")
            security = p.parse_optional_integer(allow_boolean=False)
            if security is None:
                p.raise_error("Expected 128 or none")
            return StringAttr(str(security))

        start = parser.pos
        parameters = parse_fields(
            parser,
            {
                "ring_degree": lambda p: parse_count(p, "ring_degree", 8),
                "moduli": parse_groups,
                "special": parse_primes,
                "digits": lambda p: parse_count(p, "digits", 1),
                "scale": parse_scale,
                "secret": lambda p: StringAttr(p.parse_identifier()),
                "security": parse_security,
            },
            required=True,
        )
        try:
            cls.new(parameters)
        except VerifyException as error:
            # The verifier of an attribute knows no position; the parser does.
            parser.raise_error(str(error), start)
        return parameters

    def print_parameters(self, printer: Printer) -> None:
        def primes_text(attribute: Attribute) -> str:
            assert isinstance(attribute, ArrayAttr)
            return f"[{', '.join(count_text(prime) for prime in attribute)}]"

        def groups_text(attribute: Attribute) -> str:
            assert isinstance(attribute, ArrayAttr)
            return f"[{', '.join(primes_text(group) for group in attribute)}]"

        def string_text(attribute: Attribute) -> str:
            assert isinstance(attribute, StringAttr)
            return attribute.data

        print_fields(
            printer,
            [
                ("ring_degree", self.ring_degree, count_text),
                ("moduli", self.moduli, groups_text),
                ("special", self.special, primes_text),
                ("digits", self.digits, count_text),
                ("scale", self.scale, scale_text),
                ("secret", self.secret, string_text),
                ("security", self.security, string_text),
            ],
        )


def parameters_of(operation: Operation) -> ParametersAttr | None:
    """Return the `ckks.parameters` of the innermost module around `operation` that has them."""
    parent: Operation | None = operation
    while parent is not None:
        if isinstance(parent, ModuleOp):
            attribute = parent.attributes.get(PARAMETERS)
            if isinstance(attribute, ParametersAttr):
                return attribute
        parent = parent.parent_op()
    return None
