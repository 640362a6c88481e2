"""`fhelium-params`: text that pastes into a program, reasons, refusals; and the document of it."""

import subprocess
import sys
from pathlib import Path

import pytest

from fhelium.dialects.ckks.parameters import parameters_of
from fhelium.frontends.program import Program
from fhelium.scheme.parameters import Parameters
from fhelium.scheme.presets import PRESETS
from fhelium.tools.params import main, preset_table

DOCUMENT = Path(__file__).parents[2] / "docs/parameters.md"


def parsed(text: str) -> Parameters:
    """The parameters that a program with this attribute has."""
    program = Program.parse(f"builtin.module attributes {{ckks.parameters = {text}}} {{}}")
    program.verify()
    attribute = parameters_of(program.module)
    assert attribute is not None
    return Parameters.from_attribute(attribute)


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(arguments)
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_attribute_pastes_into_a_program(capsys: pytest.CaptureFixture[str]):
    code, out, _ = run(capsys, "--depth", "7", "--precision", "20")
    assert code == 0
    assert out.startswith("#ckks.parameters<ring_degree = 16384, ")
    assert out.count("\n") == 1
    parameters = parsed(out)
    assert (parameters.max_level, parameters.scale) == (7, 2.0**42)
    assert not parameters.insecure
    assert run(capsys, "--depth", "7", "--precision", "20")[1] == out


def test_reasons(capsys: pytest.CaptureFixture[str]):
    _, _, err = run(capsys, "--depth", "7", "--precision", "20")
    found = dict(line.split("  ", 1) for line in err.splitlines())
    assert list(found) == [
        "ring degree",
        "scale",
        "first group",
        "digits",
        "special",
        "security",
        "sizes",
    ]
    assert "16384, the smallest that is secure" in found["ring degree"]
    assert "2 bits are left" in found["ring degree"]
    assert "the smallest that will do: 21.0 bits after the point at depth 7" in found["scale"]
    assert "4 of up to 2 primes, the fewest that fit" in found["digits"]
    assert "log2(QP) = 428.0 of at most 430" in found["security"]
    assert "switching key 10.5 MB" in found["sizes"]


def test_more_reasons(capsys: pytest.CaptureFixture[str]):
    _, _, err = run(capsys, "--depth", "3", "--precision", "30", "--explain")
    assert "passed over  N = 8192: needs log2(QP) = " in err
    levels = [line for line in err.splitlines() if line.startswith("level ")]
    assert len(levels) == 4
    assert levels[0].startswith("level 3 ")
    assert levels[0].endswith("after encryption")
    assert levels[3].startswith("level 0 ")
    assert levels[3].endswith("after product 3")


def test_what_is_given_is_kept_and_named_as_given(capsys: pytest.CaptureFixture[str]):
    given = ["--ring-degree", "32768", "--scale-bits", "45", "--digits", "2", "--max-value", "8"]
    code, out, err = run(capsys, "--depth", "4", "--precision", "10", *given)
    assert code == 0
    parameters = parsed(out)
    assert (parameters.ring_degree, parameters.scale, parameters.digits) == (32768, 2.0**45, 2)
    assert err.count("as given") == 3


@pytest.mark.parametrize("name", PRESETS)
def test_presets(capsys: pytest.CaptureFixture[str], name: str):
    code, out, err = run(capsys, "--preset", name)
    assert (code, err) == (0, "")
    assert parsed(out) == PRESETS[name]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--depth", "300", "--precision", "20"], "exceed the 3523 bits of log2(QP)"),
        (
            ["--depth", "7", "--precision", "20", "--ring-degree", "8192"],
            "N = 8192: needs log2(QP) = 377 at the scale 2^41, and carries 214 at 128-bit "
            "security. Use less depth or precision, or another ring degree",
        ),
        (["--depth", "1", "--precision", "60"], "encoded and decoded in float64"),
        (["--depth", "-1", "--precision", "20"], "depth is -1; expected 0 or more"),
        (["--depth", "1", "--precision", "nan"], "precision is nan; expected a finite positive"),
        (["--depth", "1", "--precision", "9", "--max-value", "0"], "largest value is 0; expected"),
        (["--depth", "1", "--precision", "9", "--ring-degree", "4096"], "ring degree is 4096; tho"),
    ],
)
def test_refusals(capsys: pytest.CaptureFixture[str], arguments: list[str], message: str):
    code, out, err = run(capsys, *arguments)
    assert (code, out) == (1, "")
    assert err.startswith("fhelium-params: error: ")
    assert message in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--depth", "3"], "--depth and --precision say what the parameters are for"),
        (["--precision", "3"], "--depth and --precision say what the parameters are for"),
        (["--depth", "x", "--precision", "3"], "argument --depth: invalid int value: 'x'"),
        (["--preset", "N17"], "argument --preset: invalid choice: 'N17'"),
    ],
)
def test_bad_command_lines(capsys: pytest.CaptureFixture[str], arguments: list[str], message: str):
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    assert message in capsys.readouterr().err


def test_table_in_the_documentation_is_current(capsys: pytest.CaptureFixture[str]):
    table = "\n".join(preset_table()) + "\n"
    assert run(capsys, "--list") == (0, table, "")
    assert table in DOCUMENT.read_text()


def test_starts_without_torch():
    code = (
        "import sys; from fhelium.tools.params import main; "
        "main(['--depth', '1', '--precision', '10']); sys.exit('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], timeout=60, capture_output=True)
    assert done.returncode == 0, done.stderr
