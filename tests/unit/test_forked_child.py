"""A process may be forked at any time, and the child goes on by itself."""

import os
import subprocess
import sys

import pytest

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
