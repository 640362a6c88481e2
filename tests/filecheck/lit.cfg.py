"""How lit runs the IR tests: `lit -s tests/filecheck`, with the environment's `bin` on the PATH."""
# lit provides `config`.
# ruff: noqa: F821
# pyright: reportUndefinedVariable=false

import hashlib
import os
import tempfile

import lit.formats

config.name = "FHElium"
config.test_source_root = os.path.dirname(os.path.abspath(__file__))
# Temporary files of tests stay out of the source tree, and apart for each checkout.
_checkout = hashlib.sha256(config.test_source_root.encode()).hexdigest()[:12]
config.test_exec_root = os.path.join(tempfile.gettempdir(), f"fhelium-filecheck-{_checkout}")
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir"]
config.environment["PATH"] = os.environ["PATH"]
if "PYTHONPATH" in os.environ:
    # A second checkout, or a package of one's own, is tested with the environment of the first.
    config.environment["PYTHONPATH"] = os.environ["PYTHONPATH"]

_split = "fhelium-opt --split-input-file"
# lit replaces text, in this order: a name comes before those that it begins with.
config.substitutions += [
    # The text that comes out parses back to itself; through the generic form too.
    ("%generic-roundtrip", f"{_split} %s --print-op-generic | {_split} | filecheck %s"),
    ("%roundtrip", f"{_split} %s | {_split} | filecheck %s"),
    # Errors as output, for CHECK lines.
    ("%diagnose", f"{_split} %s --parsing-diagnostics --verify-diagnostics | filecheck %s"),
    ("%opt", "fhelium-opt"),
]
