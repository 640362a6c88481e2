"""A process may be forked at any time, and the child goes on by itself."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from fhelium.kernels.forks import flag_of_linux

# The alarm ends a child that waits for ever, and the parent prints how it ended.
SCRIPT = """
import os, signal
from fhelium.client import *

parameters = Parameters.build(ring_degree=4096, depth=1, scale_bits=30, insecure=True)
secret, public = generate_keys(parameters)
encrypt(encode([0.5], parameters), public)
child = os.fork()
if child == 0:
    signal.alarm(20)
    generate_rotation_key(secret, 1)
    os._exit(0)
print(os.waitpid(child, 0)[1])
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_child_makes_keys_after_torch_has_computed_on_threads() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stdout) == (0, "0\n"), done.stderr


# Only the child imports FHElium, after its parent has used torch's pool.
LATE_SCRIPT = """
import os, signal
import torch

torch.set_num_threads(2)
torch.ones(1 << 22).add_(1)
child = os.fork()
if child == 0:
    signal.alarm(20)
    from fhelium.kernels.cpu.threads import thread_count
    from fhelium.kernels.ring import Ring

    torch.ones(1 << 22).add_(1)
    os._exit(0 if thread_count(8, 1 << 30) == 1 else 1)
print(os.waitpid(child, 0)[1])
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux marks forked processes")
def test_a_child_computes_when_it_is_the_first_to_import_fhelium() -> None:
    done = subprocess.run(
        [sys.executable, "-c", LATE_SCRIPT], capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stdout) == (0, "0\n"), done.stderr


def test_a_started_program_is_not_forked() -> None:
    program = "from fhelium.kernels.forks import is_forked\nprint(is_forked())"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "False\n"), done.stderr


@pytest.mark.parametrize(
    ("text", "forked"),
    [
        ("7 (a) b (c)) R 1 2 3 0 -1 4194368 0 0", True),
        ("7 (python) R 1 2 3 0 -1 4194304 0 0", False),
        *(("", False), ("7 (python) R 1 2", False), ("7 (python) R 1 2 3 0 -1 x", False)),
    ],
)
def test_the_mark_of_linux(tmp_path: Path, text: str, forked: bool) -> None:
    (tmp_path / "stat").write_text(text)
    assert flag_of_linux(tmp_path / "stat") is forked
    assert flag_of_linux(tmp_path / "missing") is False
