"""Types of the `rns` dialect: the basis of a residue polynomial, its components and its form."""

from abc import ABC
from collections.abc import Iterable, Sequence
from enum import auto
from functools import lru_cache
from itertools import pairwise

from xdsl.dialects.builtin import ArrayAttr, IntAttr
from xdsl.dialects.utils import EnumAttribute
from xdsl.ir import (
    Attribute,
    ParametrizedAttribute,
    SpacedOpaqueSyntaxAttribute,
    SSAValue,
    TypeAttribute,
)
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.str_enum import StrEnum

from fhelium.dialects.core import ResourceType
from fhelium.dialects.fields import count_text, parse_count, parse_fields, print_fields


class Form(StrEnum):
    """How a polynomial is held: its values at the roots of X^N + 1 (NTT), or its coefficients."""

    EVALUATION = auto()
    COEFFICIENT = auto()


@irdl_attr_definition
class FormAttr(EnumAttribute[Form], SpacedOpaqueSyntaxAttribute):
    """A form; inside a type just its name."""

    name = "rns.form"


def parse_form(parser: AttrParser) -> FormAttr:
    """Parse `evaluation` or `coefficient`."""
    return FormAttr(parser.parse_str_enum(Form))


def form_text(attribute: Attribute) -> str:
    """Return the text that `parse_form` reads."""
    assert isinstance(attribute, FormAttr)
    return str(attribute.data)


def _hash_once(attribute: ParametrizedAttribute) -> int:
    """Return a hash, computed once: types are looked up all the time, and have a part a limb."""
    # In the instance itself: irdl takes a cached_property for a parameter.
    memory = vars(attribute)
    if "hash" not in memory:
        memory["hash"] = hash(attribute.parameters)
    return memory["hash"]


@irdl_attr_definition
class BasisAttr(ParametrizedAttribute):
    """The primes that a polynomial has limbs for: `Q[0:4] P[0:2]`, indices into the parameters.

    Both lists increase strictly; `a:b` stands for a, a+1, ..., b-1.
    """

    name = "rns.basis"

    q_attr: ArrayAttr[IntAttr]
    p_attr: ArrayAttr[IntAttr]

    def __init__(self, q: Iterable[int] = (), p: Iterable[int] = ()):
        super().__init__(ArrayAttr([IntAttr(i) for i in q]), ArrayAttr([IntAttr(i) for i in p]))

    @property
    def q(self) -> tuple[int, ...]:
        """Indices of the primes of Q."""
        return tuple(i.data for i in self.q_attr)

    @property
    def p(self) -> tuple[int, ...]:
        """Indices of the special primes."""
        return tuple(i.data for i in self.p_attr)

    @property
    def limbs(self) -> frozenset[tuple[str, int]]:
        """The primes as a set of ("Q" or "P", index)."""
        return frozenset([("Q", i) for i in self.q] + [("P", i) for i in self.p])

    def __len__(self) -> int:
        return len(self.q_attr) + len(self.p_attr)

    def __hash__(self) -> int:
        return _hash_once(self)

    def verify(self) -> None:
        if len(self) == 0:
            raise VerifyException("found an empty basis, expected at least one prime of Q or P")
        for name, indices in (("Q", self.q), ("P", self.p)):
            if any(i < 0 for i in indices) or any(a >= b for a, b in pairwise(indices)):
                raise VerifyException(
                    f"found {name}{list(indices)}, expected indices that increase from 0 upwards"
                )

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            return parse_basis(parser).parameters

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(basis_text(self))


def parse_basis(parser: AttrParser) -> BasisAttr:
    """Parse `Q[0:4] P[0:2]`; either part may be absent, not both."""
    start = parser.pos

    def parse_range() -> range:
        position = parser.pos
        first = parser.parse_integer(allow_boolean=False, allow_negative=False)
        end = first + 1
        if parser.parse_optional_punctuation(":") is not None:
            end = parser.parse_integer(allow_boolean=False, allow_negative=False)
        if not first < end <= 4096:
            parser.raise_error(
                f"found the range {first}:{end}, expected first < end <= 4096", position
            )
        return range(first, end)

    def parse_part(keyword: str) -> list[int]:
        if parser.parse_optional_keyword(keyword) is None:
            return []
        ranges = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parse_range)
        return [i for indices in ranges for i in indices]

    q, p = parse_part("Q"), parse_part("P")
    for indices in (q, p):
        if any(a >= b for a, b in pairwise(indices)):
            parser.raise_error(f"found the limbs {indices}, expected indices that increase", start)
    if not q and not p:
        parser.raise_error("found no limbs, expected a basis such as Q[0:4] P[0:2]", start)
    return BasisAttr(q, p)


def basis_text(attribute: Attribute) -> str:
    """Return the text that `parse_basis` reads."""
    assert isinstance(attribute, BasisAttr)
    parts = [("Q", attribute.q), ("P", attribute.p)]
    return " ".join(f"{name}[{_ranges(indices)}]" for name, indices in parts if indices)


def _ranges(indices: Sequence[int]) -> str:
    runs: list[list[int]] = []
    for i in indices:
        if runs and runs[-1][1] == i:
            runs[-1][1] = i + 1
        else:
            runs.append([i, i + 1])
    return ", ".join(f"{a}:{b}" if b - a > 1 else str(a) for a, b in runs)


@irdl_attr_definition
class PolyType(ParametrizedAttribute, TypeAttribute):
    """Residue polynomials: `!rns.poly<basis = Q[0:4], components = 2, form = evaluation>`.

    The payload is an int64 tensor `[..., components, limbs, N]` with residues in [0, q); leading
    dimensions are a batch. Several components are a polynomial in the secret key: component i is
    the coefficient of s^i.
    """

    name = "rns.poly"

    basis: BasisAttr
    components_attr: IntAttr
    form_attr: FormAttr

    def __init__(self, basis: BasisAttr, components: int, form: Form):
        super().__init__(basis, IntAttr(components), FormAttr(form))

    @staticmethod
    def of(value: SSAValue) -> "PolyType":
        """Return the type of `value`. Raises `TypeError` when it is another."""
        if not isinstance(value.type, PolyType):
            raise TypeError(f"found a value of type {value.type}, expected residue polynomials")
        return value.type

    @property
    def components(self) -> int:
        """The number of components, at least 1."""
        return self.components_attr.data

    @property
    def form(self) -> Form:
        """Evaluation or coefficient form."""
        return self.form_attr.data

    def replace(
        self,
        *,
        basis: BasisAttr | None = None,
        components: int | None = None,
        form: Form | None = None,
    ) -> "PolyType":
        """Return this type with some of its fields replaced."""
        return _poly_type(basis or self.basis, components or self.components, form or self.form)

    def __hash__(self) -> int:
        return _hash_once(self)

    def alias_name(self) -> str:
        form = "" if self.form == Form.EVALUATION else "_coeff"
        parts = [("Q", self.basis.q), ("P", self.basis.p)]
        limbs = "_".join(
            f"{name}{_ranges(i).replace(':', 'to').replace(', ', '_')}" for name, i in parts if i
        )
        return f"poly{self.components}_{limbs}{form}"

    def verify(self) -> None:
        if self.components < 1:
            raise VerifyException(f"found {self.components} components, expected at least 1")

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        return parse_fields(
            parser,
            {
                "basis": parse_basis,
                "components": lambda p: parse_count(p, "components", 1),
                "form": parse_form,
            },
            required=True,
        )

    def print_parameters(self, printer: Printer) -> None:
        print_fields(
            printer,
            [
                ("basis", self.basis, basis_text),
                ("components", self.components_attr, count_text),
                ("form", self.form_attr, form_text),
            ],
        )


@lru_cache(maxsize=4096)
def _poly_type(basis: BasisAttr, components: int, form: Form) -> PolyType:
    """Return one object for equal types: a program has few, and they are compared all the time."""
    return PolyType(basis, components, form)


class SwitchingKeyType(ResourceType, ABC):
    """A switching key, whatever the scheme says that it switches from.

    The payload is an int64 tensor `[digits, 2, limbs of Q and P, N]` in evaluation form.
    """


@irdl_attr_definition
class ModuliType(ParametrizedAttribute, TypeAttribute):
    """The primes of a basis as data: an int64 tensor `[limbs, 1]`."""

    name = "rns.moduli"

    basis: BasisAttr

    @staticmethod
    def of(value: SSAValue) -> "ModuliType":
        """Return the type of `value`. Raises `TypeError` when it is another."""
        if not isinstance(value.type, ModuliType):
            raise TypeError(f"found a value of type {value.type}, expected moduli")
        return value.type

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            return (parse_basis(parser),)

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(basis_text(self.basis))
