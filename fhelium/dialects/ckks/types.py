"""Types of the `ckks` dialect: what a pass knows about encrypted values and keys."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import auto
from functools import lru_cache
from math import log2

from xdsl.dialects.builtin import (
    ArrayAttr,
    FloatData,
    IntAttr,
    NoneAttr,
)
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

from fhelium.dialects.fields import (
    count_text,
    parse_count,
    parse_fields,
    parse_scale,
    print_fields,
    scale_text,
)
from fhelium.dialects.rns.types import Form, FormAttr, SwitchingKeyType, form_text, parse_form

CLIENT_TYPE = "ckks.type"
"""What the client passes in or gets back, on lowered arguments, results and materials."""


def _int_attr(value: int | None) -> IntAttr | NoneAttr:
    return NoneAttr() if value is None else IntAttr(value)


def _scale_attr(value: float | None) -> FloatData | NoneAttr:
    return NoneAttr() if value is None else FloatData(float(value))


def _form_attr(value: Form | None) -> FormAttr | NoneAttr:
    return NoneAttr() if value is None else FormAttr(value)


def _parse_level(parser: AttrParser) -> IntAttr:
    return parse_count(parser, "level", 0)


# xDSL compares the dataclass fields of a type: without this, inherited parameters would not count.
@dataclass(frozen=True, init=False)
class StateType(ParametrizedAttribute, TypeAttribute):
    """What ciphertexts and plaintexts have in common: level, scale and form, each maybe absent."""

    level_attr: IntAttr | NoneAttr
    scale_attr: FloatData | NoneAttr
    form_attr: FormAttr | NoneAttr

    @property
    def level(self) -> int | None:
        """The number of rescales left, or None while no pass has assigned it."""
        return None if isinstance(self.level_attr, NoneAttr) else self.level_attr.data

    @property
    def scale(self) -> float | None:
        """The factor by which the message is multiplied, or None while unassigned."""
        return None if isinstance(self.scale_attr, NoneAttr) else self.scale_attr.data

    @property
    def form(self) -> Form | None:
        """Evaluation or coefficient form, or None while unassigned."""
        return None if isinstance(self.form_attr, NoneAttr) else self.form_attr.data

    def unassigned(self) -> tuple[str, ...]:
        """Names of the fields that no pass has assigned yet."""
        return tuple(
            name
            for name in ("level", "scale", "components", "form")
            if getattr(self, name, "absent") is None
        )

    def verify(self) -> None:
        if self.level is not None and self.level < 0:
            raise VerifyException(f"found level {self.level}, expected at least 0")
        if self.scale is not None and not 0 < self.scale < float("inf"):
            raise VerifyException(f"found scale {self.scale}, expected a positive number")

    def _alias(self, kind: str) -> str:
        level = "" if self.level is None else f"_L{self.level}"
        scale = "" if self.scale is None else f"_s{round(log2(self.scale))}"
        form = "_coeff" if self.form == Form.COEFFICIENT else ""
        return kind + level + scale + form


@lru_cache(maxsize=4096)
def state_types(attribute: Attribute) -> tuple[StateType, ...]:
    """Return the ciphertext and plaintext types inside a type, such as a tensor of ciphertexts."""
    match attribute:
        case StateType():
            return (attribute,)
        case ArrayAttr():
            parts = attribute.data
        case ParametrizedAttribute():
            parts = attribute.parameters
        case _:
            return ()
    return tuple(state for part in parts for state in state_types(part))


@irdl_attr_definition
class CiphertextType(StateType):
    """`!ckks.ciphertext<level = 3, scale = 2^40, components = 2, form = evaluation>`

    The payload is an int64 tensor `[..., components, limbs of the level, N]`.
    """

    name = "ckks.ciphertext"

    components_attr: IntAttr | NoneAttr

    def __init__(
        self,
        level: int | None = None,
        scale: float | None = None,
        components: int | None = None,
        form: Form | None = None,
    ):
        super().__init__(
            _int_attr(level), _scale_attr(scale), _form_attr(form), _int_attr(components)
        )

    @staticmethod
    def of(value: SSAValue) -> "CiphertextType":
        """Return the type of `value`. Raises `TypeError` when it is another."""
        if not isinstance(value.type, CiphertextType):
            raise TypeError(f"found a value of type {value.type}, expected a ciphertext")
        return value.type

    @property
    def components(self) -> int | None:
        """2 at rest, 3 after a product; None while unassigned."""
        return None if isinstance(self.components_attr, NoneAttr) else self.components_attr.data

    def alias_name(self) -> str:
        return self._alias("ct" if self.components in (None, 2) else f"ct{self.components}")

    def verify(self) -> None:
        super().verify()
        if self.components is not None and self.components < 2:
            raise VerifyException(f"found {self.components} components, expected at least 2")

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        return parse_fields(
            parser,
            {
                "level": _parse_level,
                "scale": parse_scale,
                "form": parse_form,
                "components": lambda p: parse_count(p, "components", 2),
            },
        )

    def print_parameters(self, printer: Printer) -> None:
        print_fields(
            printer,
            [
                ("level", self.level_attr, count_text),
                ("scale", self.scale_attr, scale_text),
                ("components", self.components_attr, count_text),
                ("form", self.form_attr, form_text),
            ],
        )


@irdl_attr_definition
class PlaintextType(StateType):
    """`!ckks.plaintext<level = 3, scale = 2^40, form = evaluation>`

    The payload is an int64 tensor `[..., 1, limbs of the level, N]`.
    """

    name = "ckks.plaintext"

    def __init__(
        self, level: int | None = None, scale: float | None = None, form: Form | None = None
    ):
        super().__init__(_int_attr(level), _scale_attr(scale), _form_attr(form))

    @staticmethod
    def of(value: SSAValue) -> "PlaintextType":
        """Return the type of `value`. Raises `TypeError` when it is another."""
        if not isinstance(value.type, PlaintextType):
            raise TypeError(f"found a value of type {value.type}, expected a plaintext")
        return value.type

    def alias_name(self) -> str:
        return self._alias("pt")

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        return parse_fields(
            parser, {"level": _parse_level, "scale": parse_scale, "form": parse_form}
        )

    def print_parameters(self, printer: Printer) -> None:
        print_fields(
            printer,
            [
                ("level", self.level_attr, count_text),
                ("scale", self.scale_attr, scale_text),
                ("form", self.form_attr, form_text),
            ],
        )


class KeyKind(StrEnum):
    """What a switching key switches from, back to the secret key s."""

    RELINEARIZATION = auto()
    ROTATION = auto()
    CONJUGATION = auto()


@irdl_attr_definition
class KeyKindAttr(EnumAttribute[KeyKind], SpacedOpaqueSyntaxAttribute):
    """The kind of a key; inside a key type just its name."""

    name = "ckks.key_kind"


@irdl_attr_definition
class KeyType(ParametrizedAttribute, SwitchingKeyType):
    """`!ckks.key<relinearization>`, `!ckks.key<rotation, 5>`, `!ckks.key<conjugation>`

    The payload is an int64 tensor `[digits, 2, limbs of Q and P, N]` in evaluation form.
    """

    name = "ckks.key"

    kind_attr: KeyKindAttr
    step_attr: IntAttr | NoneAttr

    def __init__(self, kind: KeyKind, step: int | None = None):
        super().__init__(KeyKindAttr(kind), _int_attr(step))

    @staticmethod
    def of(value: SSAValue) -> "KeyType":
        """Return the type of `value`. Raises `TypeError` when it is another."""
        if not isinstance(value.type, KeyType):
            raise TypeError(f"found a value of type {value.type}, expected a key")
        return value.type

    @property
    def kind(self) -> KeyKind:
        """What the key switches from."""
        return self.kind_attr.data

    @property
    def step(self) -> int | None:
        """By how many slots a rotation key rotates to the left; None for the other kinds."""
        return None if isinstance(self.step_attr, NoneAttr) else self.step_attr.data

    @property
    def resource_kind(self) -> str:
        return f"{self.kind.value}-key"

    @property
    def symbol(self) -> str:
        """How passes and frontends name such a key: `relinearization`, `rotation_minus_5`."""
        if self.step is None:
            return str(self.kind)
        return f"{self.kind}_{'minus_' if self.step < 0 else ''}{abs(self.step)}"

    def verify(self) -> None:
        if (self.kind == KeyKind.ROTATION) != (self.step is not None):
            raise VerifyException(
                f"found a {self.kind.value} key with step {self.step}, expected a step for a "
                "rotation key and for no other"
            )

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            kind = parser.parse_str_enum(KeyKind)
            if kind != KeyKind.ROTATION:
                if parser.parse_optional_punctuation(",") is not None:
                    parser.raise_error(f"found a step, expected none: drop it from a {kind} key")
                return (KeyKindAttr(kind), NoneAttr())
            parser.parse_punctuation(",", ": a rotation key has a step, as in <rotation, 5>")
            return (KeyKindAttr(kind), IntAttr(parser.parse_integer(allow_boolean=False)))

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(str(self.kind))
            if self.step is not None:
                printer.print_string(f", {self.step}")
