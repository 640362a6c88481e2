"""How lit runs the IR tests."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_code_on_the_python_path_is_what_is_tested(tmp_path: Path):
    """A second checkout tests itself, with the environment that the first is installed in."""
    trace = tmp_path / "seen"
    (tmp_path / "sitecustomize.py").write_text(f"open({str(trace)!r}, 'a').write('.')\n")
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "PYTHONPATH": str(tmp_path)}
    test = ROOT / "tests/filecheck/dialects/secure/canonicalize-assigned.mlir"
    # lit itself starts without it, so that what is seen is the tools that it runs.
    lit = [sys.executable, "-I", "-c", "from lit.main import main; main()", "-sv", str(test)]
    done = subprocess.run(lit, env=environment, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stdout + done.stderr
    assert trace.exists()
