"""examples/digits.py: encrypted predictions are those of the plain polynomial model."""

import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "GLOO_SOCKET_IFNAME": "lo"}
    command = [sys.executable, "examples/digits.py", *arguments]
    return subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=250
    )


def check(output: str, model: str, samples: int, ranks: int = 1) -> None:
    """Compare what the example says of one model with what it has to say."""
    line = re.search(
        rf"digits: model={model} ranks={ranks} samples={samples} max_abs_error=(\S+) "
        rf"prediction_agreement={samples}/{samples}\n",
        output,
    )
    assert line is not None, output
    assert 0 < float(line.group(1)) < 2**-16
    part = output[output.index(f"{model}: SiLU") : line.end()]
    assert "128-bit classical security" in part
    accuracies = re.search(
        r"accuracy: plain (0\.9\d+|1\.0+), plain polynomial (\S+), encrypted (\S+)\n", part
    )
    assert accuracies is not None, part
    assert accuracies.group(2) == accuracies.group(3)
    assert float(accuracies.group(3)) > 0.9


def test_cnn_on_some_samples():
    done = run("--model", "cnn", "--samples", "40")
    assert done.returncode == 0, done.stdout + done.stderr
    check(done.stdout, "cnn", 40)
    assert "ms a sample" in done.stdout
    assert "32 samples in a ciphertext" in done.stdout


@pytest.mark.long
def test_both_models_on_the_test_split():
    done = run()
    assert done.returncode == 0, done.stdout + done.stderr
    check(done.stdout, "mlp", 450)
    check(done.stdout, "cnn", 450)


@pytest.mark.long
def test_mlp_on_two_ranks():
    done = run("--model", "mlp", "--ranks", "2")
    assert done.returncode == 0, done.stdout + done.stderr
    check(done.stdout, "mlp", 450, ranks=2)
    assert "--nproc 2" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--samples", "451"), "found 451 samples, expected 1 to 450: the test images"),
        (("--samples", "0"), "found 0 samples, expected 1 to 450"),
        (("--ranks", "0"), "found 0 ranks, expected at least 1"),
        (
            ("--samples", "3", "--ranks", "4"),
            "found 4 ranks and 3 samples, expected at least one sample a rank",
        ),
    ],
)
def test_refused(
    arguments: tuple[str, ...],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
):
    monkeypatch.syspath_prepend(str(ROOT / "examples"))  # for digits_models
    monkeypatch.setattr(sys, "argv", ["digits.py", *arguments])
    with pytest.raises(SystemExit) as refused:
        runpy.run_path(str(ROOT / "examples/digits.py"), run_name="__main__")
    assert refused.value.code == 2
    assert message in capsys.readouterr().err


@pytest.mark.long
def test_more_ranks_than_ciphertexts_are_refused():
    done = run("--model", "mlp", "--samples", "10", "--ranks", "2")
    assert done.returncode == 1
    assert "found 2 ranks and 1 ciphertext of 128 samples, expected at least one" in done.stderr
    assert done.stdout == ""  # before keys are made
