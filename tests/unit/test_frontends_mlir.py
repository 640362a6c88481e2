"""Parsing MLIR text: locations, and errors where the mistake is."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import FileLineColLoc, ModuleOp
from xdsl.ir import Operation

from fhelium.frontends.diagnostics import ProgramError, ProgramSyntaxError, SourceText
from fhelium.frontends.mlir import parse_program_bytes, parse_program_text
from fhelium.frontends.program import Program, program_context

CONTEXT = program_context()

PROGRAM = """\
!ct = !ckks.ciphertext<level = 3, scale = 2^40, components = 2, form = evaluation>
#map = affine_map<(d0) -> (d0 + 1)>
module attributes {a.list = [1 : i8, "x\\0A", @s::@t], a.dense = dense<[1, 2]> : tensor<2xi32>} {
  func.func @main(%x: !ct, %k: i1) -> !ct attributes {m = #map} {
    %s = ckks.add %x, %x : !ct
    %t:2 = "test.op"(%s) ({
    ^bb0(%y: tensor<4x!ct>):
      "test.termop"(%y) : (tensor<4x!ct>) -> ()
    }) {f = 1.5e10 : f32} : (!ct) -> (!ct, i32)
    cf.cond_br %k, ^a, ^b(%s : !ct)
  ^a:
    func.return %t#0 : !ct
  ^b(%z: !ct):
    func.return %z : !ct
  }
}
"""


def parse(text: str) -> ModuleOp:
    return parse_program_text(text, "f.mlir", CONTEXT)


def errors(text: str) -> list[str]:
    with pytest.raises(ProgramSyntaxError) as caught:
        parse(text)
    return str(caught.value).splitlines()


def place(operation: Operation) -> tuple[str, int, int]:
    location = operation.location
    assert isinstance(location, FileLineColLoc)
    return location.filename.data, location.line.data, location.column.data


def test_operations_and_block_arguments_know_where_they_stand():
    module = parse(PROGRAM)
    places = {operation.name: place(operation) for operation in module.walk()}
    assert places["builtin.module"] == ("f.mlir", 3, 1)
    assert places["func.func"] == ("f.mlir", 4, 3)
    assert places["ckks.add"] == ("f.mlir", 5, 10)
    assert places["test.op"] == ("f.mlir", 6, 12)
    assert places["test.termop"] == ("f.mlir", 8, 7)
    (function,) = module.ops
    argument = function.regions[0].blocks[0].args[1]
    assert str(argument.location) == 'loc("f.mlir":4:28)'


def test_the_text_can_give_another_location():
    module = parse('"test.op"() : () -> () loc("x.py":7:8)\n"test.op"() : () -> () loc(unknown)\n')
    first, second = module.ops
    assert place(first) == ("x.py", 7, 8)
    assert place(second) == ("f.mlir", 2, 1)


@pytest.mark.parametrize("text", ["", "  \n\n", "// only a comment\n", "!a = i32\n"])
def test_a_text_without_operations_is_an_empty_module(text: str):
    assert not parse(text).body.block.ops


def test_an_implicit_module_stands_for_the_whole_file():
    assert place(parse('"test.op"() : () -> ()')) == ("f.mlir", 0, 0)


def test_without_an_implicit_module_there_must_be_one():
    with pytest.raises(
        ProgramSyntaxError, match=r"expected one builtin\.module around the program"
    ):
        parse_program_text('"test.op"() : () -> ()', "f", CONTEXT, implicit_module=False)
    parse_program_text("module {}", "f", CONTEXT, implicit_module=False)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("%0 = arith.constant 1 :", "1:23: error: found the end of the text, expected type"),
        ("%0 = 5", "1:6: error: found '5', expected operation name"),
        ('"test.op"(%a : () -> ()', "1:14: error: found ':', expected ')'"),
        ("^bb0:", "1:1: error: found '^bb0', expected an operation or an alias definition"),
        ("module {\n  5\n}", "2:3: error: found '5', expected an operation, a block label or '}'"),
        (
            '"test.op"() {a = "' + "x" * 200,
            "1:18: error: found a string that does not end on its line",
        ),
        (
            '%a, %b = "test.op"() : () -> i32',
            "1:1: error: Operation has 1 results, but was given 2",
        ),
        ("!a = i32\n!a = i32", "2:4: error: re-declaration of alias '!a'"),
        ("%0 = arith.constant " + "9" * 5000 + " : i32", "1:6: error: Exceeds the limit"),
    ],
)
def test_errors_say_what_was_found_and_expected(text: str, message: str):
    (line,) = errors(text)
    assert line.startswith(f"f.mlir:{message}")


def test_a_failure_of_the_parser_itself_is_an_error_at_the_operation():
    (line,) = errors('"test.op"() {a = dense<1> : tensor<2xi641>} : () -> ()')
    assert line.startswith("f.mlir:1:1: error: malformed text: its parser fails with NotImpl")


def test_a_nesting_too_deep_is_an_error():
    depth = 5000
    (line,) = errors('"test.op"() {a = ' + "[" * depth + "]" * depth + "} : () -> ()")
    assert line == "f.mlir:1:1: error: found a nesting too deep to parse: flatten it"


def test_text_in_another_encoding_is_an_error_at_its_byte():
    with pytest.raises(ProgramSyntaxError) as caught:
        parse_program_bytes(b"// caf\xe9\n", "latin.mlir", CONTEXT)
    assert str(caught.value) == (
        "latin.mlir:1:7: error: found the byte 0xe9, expected UTF-8 text: save the file as UTF-8"
    )


@pytest.mark.parametrize(
    ("text", "is_heir"),
    [
        ('"test.op"() : () -> !lwe.lwe_ciphertext<x>', True),
        ('"test.op"() {p = #ckks.scheme_param<logN = 13>} : () -> ()', True),
        ("%0 = lwe.radd %a, %b : !lwe.x", True),
        ('"test.op"() : () -> !other.type', False),
    ],
)
def test_heirs_text_gets_a_note(text: str, is_heir: bool):
    with pytest.raises(ProgramSyntaxError) as caught:
        parse(text)
    assert ("note: this looks like HEIR's text" in caught.value.report()) == is_heir


def test_a_report_shows_the_line_and_a_caret_under_the_mistake():
    with pytest.raises(ProgramSyntaxError) as caught:
        parse('\t"test.op"() {a = "é"} : () -> ()\n\tqqqq.bar "é"\r\n')
    assert caught.value.report() == (
        "f.mlir:2:2: error: found operation 'qqqq.bar' of the unknown dialect 'qqqq'\n"
        '\tqqqq.bar "é"\n\t^^^^^^^^\n'
    )


def test_a_report_cuts_long_lines():
    with pytest.raises(ProgramSyntaxError) as caught:
        parse('"test.op"() {a = "' + "x" * 9000 + '"} : () -> !nothing')
    _, line, caret, _ = caught.value.report().split("\n")
    assert len(line) <= 160
    assert line[caret.index("^") :].startswith("!nothing")


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_any_damage_to_a_text_is_an_error_with_a_place(data: st.DataObject):
    start = data.draw(st.integers(0, len(PROGRAM)))
    end = data.draw(st.integers(start, min(len(PROGRAM), start + 12)))
    insert = data.draw(st.text('%^!#@"(){}<>[]:=,->x0. \n\\éß²', max_size=4))
    text = PROGRAM[:start] + insert + PROGRAM[end:]
    source = SourceText("f.mlir", text)
    try:
        program = Program(parse(text), {"f.mlir": source})
        program.verify()
    except ProgramError as error:
        faults = error.faults
    else:
        again = program.text()
        assert Program(parse(again)).text() == again
        return
    assert faults
    for fault in faults:
        assert fault.place is not None
        assert "\n" not in fault.message
        assert source.line(fault.place.line) == fault.place.source_line
