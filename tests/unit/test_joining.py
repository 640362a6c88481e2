"""What `fhelium-run` refuses before ranks meet: numbers on its command line and of a launcher."""

import socket
from pathlib import Path

import pytest
import torch.distributed

from fhelium.tools.run import main

PROGRAM = "func.func @main(%x: index) -> index { func.return %x : index }"
HOW = "start the ranks with --nproc or torchrun, or unset RANK"


@pytest.fixture
def program(tmp_path: Path) -> str:
    path = tmp_path / "program.mlir"
    path.write_text(PROGRAM)
    return str(path)


@pytest.mark.parametrize(
    ("option", "found"),
    [
        ("--timeout=inf", "inf, expected 0.001 to 1e+09 seconds"),
        ("--timeout=-inf", "-inf, expected 0.001 to 1e+09 seconds"),
        ("--timeout=nan", "nan, expected 0.001 to 1e+09 seconds"),
        ("--timeout=1e20", "1e+20, expected 0.001 to 1e+09 seconds"),
        ("--timeout=-1", "-1, expected 0.001 to 1e+09 seconds"),
        ("--timeout=0", "0, expected 0.001 to 1e+09 seconds"),
        ("--timeout=0.0009", "0.0009, expected 0.001 to 1e+09 seconds"),
        ("--nproc=0", "0, expected 1 to 1024"),
        ("--nproc=-2", "-2, expected 1 to 1024"),
        ("--nproc=99999999999", "99999999999, expected 1 to 1024"),
    ],
)
@pytest.mark.parametrize("launched", [False, True])
def test_numbers_on_the_command_line(
    program: str,
    option: str,
    found: str,
    launched: bool,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if launched:
        monkeypatch.setenv("RANK", "0")
    with pytest.raises(SystemExit) as ended:
        main([program, option])
    assert ended.value.code == 2
    name = option.partition("=")[0]
    assert f"fhelium-run: error: argument {name}: found {found}\n" in capfd.readouterr().err


LAUNCHED = {"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29500"}


def said(
    program: str,
    environment: dict[str, str],
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> str:
    """Return the only line of a run that fails."""
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    # A test with a fault would wait for other ranks: not for long.
    assert main([program, "--timeout", "0.5"]) == 1
    assert not torch.distributed.is_initialized()
    return capfd.readouterr().err


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("RANK", "2", "a whole number from 0 to 1"),
        ("RANK", "-1", "a whole number from 0 to 1"),
        ("RANK", "first", "a whole number from 0 to 1"),
        ("RANK", "0.0", "a whole number from 0 to 1"),
        ("RANK", "", "a whole number from 0 to 1"),
        ("WORLD_SIZE", None, "a whole number from 1 to 1048576"),
        ("WORLD_SIZE", "", "a whole number from 1 to 1048576"),
        ("WORLD_SIZE", "0", "a whole number from 1 to 1048576"),
        ("WORLD_SIZE", "two", "a whole number from 1 to 1048576"),
        ("WORLD_SIZE", "9" * 30, "a whole number from 1 to 1048576"),
        ("WORLD_SIZE", "9" * 5000, "a whole number from 1 to 1048576"),
        ("MASTER_PORT", None, "a whole number from 1 to 65535"),
        ("MASTER_PORT", "http", "a whole number from 1 to 65535"),
        ("MASTER_PORT", "0", "a whole number from 1 to 65535"),
        ("MASTER_PORT", "65536", "a whole number from 1 to 65535"),
        ("MASTER_PORT", "-1", "a whole number from 1 to 65535"),
        ("MASTER_ADDR", None, "a host"),
        ("MASTER_ADDR", "", "a host"),
    ],
)
def test_what_a_launcher_says(
    program: str,
    name: str,
    value: str | None,
    expected: str,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    launched = {**LAUNCHED, name: value}
    monkeypatch.delenv(name, raising=False)
    message = said(
        program, {n: v for n, v in launched.items() if v is not None}, capfd, monkeypatch
    )
    found = "not set" if value is None or name == "MASTER_ADDR" else repr(value)
    assert message.endswith(f": error: {name} is {found}, expected {expected}: {HOW}\n")
    assert message.count("\n") == 1


def test_a_port_that_is_taken(
    program: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        launched = {**LAUNCHED, "MASTER_PORT": str(taken.getsockname()[1])}
        message = said(program, launched, capfd, monkeypatch)
    assert "rank 0: error: RANK is set, and the other ranks cannot be met: " in message
    assert "EADDRINUSE" in message
    assert HOW in message


def test_other_ranks_that_do_not_come(
    program: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    message = said(program, {**LAUNCHED, "MASTER_PORT": str(port)}, capfd, monkeypatch)
    assert "error: RANK is set, and the other ranks cannot be met: " in message
    assert HOW in message
