"""Aliases: legal names, told apart, defined before their use."""

import re
from io import StringIO

from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.context import Context
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    Builtin,
    DenseArrayBase,
    ModuleOp,
    StringAttr,
    TensorType,
    f64,
)
from xdsl.dialects.test import Test
from xdsl.dialects.test import TestOp as AnyOp
from xdsl.ir import Attribute, Dialect, ParametrizedAttribute, TypeAttribute
from xdsl.irdl import irdl_attr_definition, param_def
from xdsl.parser import Parser
from xdsl.printer import Printer

from fhelium.frontends.alias_printer import print_program
from fhelium.frontends.program import Program


class _Named(ParametrizedAttribute):
    wish: StringAttr = param_def()
    inner: Attribute = param_def()

    def alias_name(self) -> str | None:
        return self.wish.data or None


@irdl_attr_definition
class NamedType(_Named, TypeAttribute):
    name = "toy.type"


@irdl_attr_definition
class NamedAttr(_Named):
    name = "toy.attr"


TOY = Dialect("toy", [], [NamedType, NamedAttr])


def named(kind: type[NamedType] | type[NamedAttr], wish: str, inner: Attribute) -> Attribute:
    return kind.new([StringAttr(wish), inner])


def printed(module: ModuleOp, **options: bool) -> str:
    output = StringIO()
    print_program(module, output, **options)
    return output.getvalue()


def module_with(*attributes: Attribute) -> ModuleOp:
    types = [attribute for attribute in attributes if isinstance(attribute, TypeAttribute)]
    operations = [AnyOp(result_types=[TensorType(each, [4, DYNAMIC_INDEX])]) for each in types]
    named = {f"a{i}": each for i, each in enumerate(attributes)}
    return ModuleOp([AnyOp(attributes=named), *operations])


def parsed(text: str) -> ModuleOp:
    ctx = Context()
    for dialect in (Builtin, Test, TOY):
        ctx.load_dialect(dialect)
    return Parser(ctx, text).parse_module()


def test_definitions_come_before_what_mentions_them():
    inner = named(NamedType, "inner", StringAttr(""))
    outer = named(NamedAttr, "outer", inner)
    assert printed(module_with(outer)).splitlines()[:3] == [
        '!inner = !toy.type<"inner", "">',
        '#outer = #toy.attr<"outer", !inner>',
        "",
    ]


def test_an_attribute_may_want_no_alias():
    text = printed(module_with(named(NamedType, "", StringAttr("x"))))
    assert text.startswith("builtin.module {")
    assert '!toy.type<"", "x">' in text


def test_a_type_and_an_attribute_may_share_a_name():
    inner = StringAttr("p")
    text = printed(module_with(named(NamedType, "p", inner), named(NamedAttr, "p", inner)))
    assert text.startswith('!p = !toy.type<"p", "p">\n#p = #toy.attr<"p", "p">\n\n')


def test_without_aliases_the_text_is_xdsls():
    module = module_with(named(NamedType, "p", StringAttr("x")))
    expected = StringIO()
    Printer(expected).print_op(module)
    assert printed(module, aliases=False) == f"{expected.getvalue()}\n"


@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.booleans(),
            st.sampled_from(["a", "a_1", "a_1_1", "1x", "", "é b", "x.y", "_", "-", "L3 s2^40"]),
            st.integers(0, 2),
        ),
        max_size=8,
    )
)
def test_any_wish_becomes_a_legal_name_and_parses_back(wishes: list[tuple[bool, str, int]]):
    attributes: list[Attribute] = []
    for is_type, wish, number in wishes:
        inner = attributes[-1] if attributes and number else StringAttr(str(number))
        attributes.append(named(NamedType if is_type else NamedAttr, wish, inner))
    module = module_with(*attributes)
    text = printed(module)
    names = re.findall(r"^([!#]\S+) = ", text, re.MULTILINE)
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"[!#][A-Za-z_$][A-Za-z0-9_$]*", name) for name in names)
    again = parsed(text)
    assert again.is_structurally_equivalent(module)
    assert printed(again) == text


def test_whole_numbers_of_any_size_come_back_as_decimals():
    numbers = [1234567.0, 123456789.0, -(2.0**70), 1e300, 5e-324, 1e22, 0.1, 1.0]
    array = DenseArrayBase.from_list(f64, numbers)
    text = Program(ModuleOp([AnyOp(attributes={"a": array})])).text()
    assert "0x" not in text
    (operation,) = Program.parse(text).module.ops
    assert operation.attributes["a"] == array
