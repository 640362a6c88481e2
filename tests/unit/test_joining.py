"""What `fhelium-run` refuses before ranks meet: numbers on its command line and of a launcher."""

import socket
import time
from datetime import timedelta
from pathlib import Path

import pytest
import torch.distributed
from conftest import OnRanks

from fhelium.tools import joining
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
    assert "rank 0: error: RANK is set, and the other ranks cannot be met at 127.0.0" in message
    assert "EADDRINUSE" in message
    assert HOW in message


def test_other_ranks_that_do_not_come(
    program: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    here = {**LAUNCHED, "MASTER_PORT": str(port)}
    began = time.monotonic()
    message = said(program, here, capfd, monkeypatch)
    # Those of the command line, not the minutes that torch would wait.
    assert 0.5 < time.monotonic() - began < 20
    assert message.endswith(
        f"rank 0: error: rank 1 did not come to 127.0.0.1:{port} within 0.5 seconds: start all 2 "
        "ranks, with a --timeout in which they come\n"
    )
    message = said(program, {**here, "WORLD_SIZE": "12"}, capfd, monkeypatch)
    assert f"error: ranks 1, 2, 3, 4, 5, 6, 7, 8 and 3 more did not come to 127.0.0.1:{port}" in (
        message
    )
    message = said(program, {**here, "RANK": "1"}, capfd, monkeypatch)
    expected = f"error: RANK is set, and the other ranks cannot be met at 127.0.0.1:{port}: "
    assert expected in message
    assert message.endswith(f"; {HOW}, and give them a --timeout in which all come\n")


RESTARTED = {"TORCHELASTIC_RESTART_COUNT": "1", "LOCAL_WORLD_SIZE": "1"}


def test_a_store_of_ranks_before_on_several_machines(
    program: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Static rendezvous of torchrun shares one store between all starts."""
    environment = {**LAUNCHED, **RESTARTED, "TORCHELASTIC_USE_AGENT_STORE": "True"}
    message = said(program, environment, capfd, monkeypatch)
    assert "error: torchrun has started the ranks of several machines again, with a st" in message
    assert message.endswith(
        "expected a new store: set TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1, and start torchrun with "
        "--rdzv-backend c10d --rdzv-endpoint HOST:PORT --rdzv-id NAME\n"
    )


def test_a_new_store_is_used_as_it_is(
    program: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The number of restarts may differ between machines, so it is in no name."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = {**LAUNCHED, **RESTARTED, "MASTER_PORT": str(port)}
    message = said(
        program, {**environment, "TORCHELASTIC_USE_AGENT_STORE": "False"}, capfd, monkeypatch
    )
    assert "error: rank 1 did not come to " in message
    meeting = joining.Meeting(0, 1, "127.0.0.1", port)
    store = joining.store_of(meeting, timedelta(seconds=5))
    assert not isinstance(store, torch.distributed.PrefixStore)  # pyright: ignore
    monkeypatch.setenv("TORCHELASTIC_USE_AGENT_STORE", "True")
    again = joining.store_of(meeting, timedelta(seconds=5))
    assert isinstance(again, torch.distributed.PrefixStore)  # pyright: ignore


def test_messages_from_cuda_travel_by_nccl(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[object] = []
    cuda = torch.device("cuda:1")
    monkeypatch.delenv("RANK", raising=False)
    monkeypatch.setattr(torch.cuda, "set_device", seen.append)
    monkeypatch.setattr(
        torch.distributed, "init_process_group", lambda transport, **_: seen.append(transport)
    )
    for devices in ([], [torch.device("cpu")], [torch.device("cpu"), cuda, torch.device("cuda:2")]):
        joining.join_ranks(1, wanted=True, devices=devices)
    assert seen == ["gloo", "gloo", 1, "cpu:gloo,cuda:nccl"]


def test_a_machine_without_such_a_device(monkeypatch: pytest.MonkeyPatch) -> None:
    def set_device(number: int) -> None:
        raise AssertionError("Torch not compiled with CUDA enabled")

    monkeypatch.setattr(torch.cuda, "set_device", set_device)
    with pytest.raises(
        joining.JoiningError,
        match="argument --device: found cuda:3, expected a device of this machine: Torch not com",
    ):
        joining.transport_for([torch.device("cuda:3")])


def test_ranks_with_different_transports() -> None:
    store = torch.distributed.HashStore()  # pyright: ignore[reportPrivateImportUsage]
    store.set("fhelium/here/1", "gloo")
    meeting = joining.Meeting(0, 2, "127.0.0.1", 29500)
    joining.wait_for_all(store, meeting, timedelta(seconds=5), "gloo")
    with pytest.raises(
        joining.JoiningError,
        match="rank 1 talks by gloo and rank 0 by cpu:gloo,cuda:nccl, expected one way: give all",
    ):
        joining.wait_for_all(store, meeting, timedelta(seconds=5), "cpu:gloo,cuda:nccl")


def told_of_differences() -> str:
    rank = torch.distributed.get_rank()
    joining.check_alike(lambda: {"program": "the same", "--trace": None})
    try:
        joining.check_alike(lambda: {"program": f"found {rank == 1}", "--trace": rank == 2})
    except joining.JoiningError as error:
        return str(error)
    return "nothing"


def test_every_rank_hears_who_was_started_differently(on_ranks: OnRanks) -> None:
    told = "rank 1 differs from rank 0 in program; rank 2 differs from rank 0 in --trace"
    for found in on_ranks(told_of_differences, 4):
        assert found == (
            f"the ranks were started differently: {told}: start all ranks with one program and the "
            "same options"
        )
