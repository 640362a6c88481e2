"""A package of a third party: its entry points bring a dialect, a pass and implementations."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from fhelium.scheme import files

PACKAGE = '''
"""A dialect, a pass and implementations, for fhelium-opt, xdsl-opt and fhelium-run."""

from dataclasses import dataclass

from xdsl.dialects.builtin import I64, TensorType
from xdsl.ir import Dialect
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def, result_def, traits_def
from xdsl.passes import ModulePass
from xdsl.traits import Pure
from xdsl.universe import Universe


@irdl_op_definition
class TwiceOp(IRDLOperation):
    """Twice a tensor."""

    name = "probe.twice"
    x = operand_def(TensorType[I64])
    result = result_def(TensorType[I64])
    traits = traits_def(Pure())
    assembly_format = "$x `:` type($x) `->` type($result) attr-dict"


@dataclass(frozen=True)
class ProbeTwiceTwicePass(ModulePass):
    """Compute twice of what is computed twice."""

    name = "probe-twice-twice"

    def apply(self, ctx, op):
        for each in list(op.walk()):
            if isinstance(each, TwiceOp):
                again = TwiceOp.create(operands=[each.x], result_types=[each.result.type])
                each.parent_block().insert_op_before(again, each)
                each.operands[0] = again.result


PROBE = Universe(
    all_dialects={"probe": lambda: Dialect("probe", [TwiceOp])},
    all_passes={"probe-twice-twice": lambda: ProbeTwiceTwicePass},
)


@dataclass(frozen=True)
class Twice:
    name: str = "probe-twice"
    operation_types: tuple = (TwiceOp,)
    supports_in_place: bool = False

    def resource_requirements(self, invocation):
        return ()

    def execute(self, invocation, inputs, resources, /, *, in_place):
        return (2 * inputs[0],)


def extended(registry):
    """Return a registry that runs probe.twice too."""
    from fhelium.backend import OperationImplementationRegistry, OperationSpec

    specs = registry.operation_specs.with_specs([OperationSpec("probe.twice", TwiceOp, "pure")])
    mine = (*registry.implementations, Twice())
    return OperationImplementationRegistry(mine, operation_specs=specs)


def wrong(registry):
    return None
'''
ENTRY_POINTS = """
[xdsl.universe]
probe = probe_package:PROBE

[fhelium.implementations]
probe = probe_package:extended
"""
PROGRAM = """
func.func @main(%x: tensor<2xi64>) -> tensor<2xi64> {
  %y = probe.twice %x : tensor<2xi64> -> tensor<2xi64>
  func.return %y : tensor<2xi64>
}
"""


class Site:
    """A folder on the path with a package that is installed there."""

    def __init__(self, folder: Path):
        self.folder = folder
        (folder / "probe_package.py").write_text(PACKAGE)
        information = folder / "probe_package-1.0.dist-info"
        information.mkdir()
        (information / "METADATA").write_text("Metadata-Version: 2.1\nName: probe\nVersion: 1.0\n")
        self.entry_points = information / "entry_points.txt"
        self.entry_points.write_text(ENTRY_POINTS)
        (folder / "program.mlir").write_text(PROGRAM)
        files.save(folder / "inputs", {"x": torch.tensor([3, -4])})

    def run(self, tool: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(Path(sys.executable).parent / tool), "program.mlir", *arguments],
            cwd=self.folder,
            env={**os.environ, "PYTHONPATH": str(self.folder)},
            capture_output=True,
            text=True,
            timeout=120,
        )


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


@pytest.mark.parametrize("tool", ["fhelium-opt", "xdsl-opt"])
def test_its_dialect_and_pass_are_on_every_command_line(site: Site, tool: str) -> None:
    done = site.run(tool, "-p", "probe-twice-twice")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("probe.twice") == 2


def test_its_implementations_run(site: Site) -> None:
    done = site.run("fhelium-run", "--inputs", "inputs", "--output", "result", "--print-dispatch")
    assert done.returncode == 0, done.stderr
    assert "probe-twice" in done.stdout
    result = files.load(site.folder / "result")["result"]
    assert isinstance(result, torch.Tensor)
    assert result.tolist() == [6, -8]
    done = site.run(
        *("fhelium-run", "--inputs", "inputs", "--output", "result"),
        *("--pipeline", "probe-twice-twice"),
    )
    assert done.returncode == 0, done.stderr
    assert torch.equal(
        torch.as_tensor(files.load(site.folder / "result")["result"]), torch.tensor([12, -16])
    )


def test_an_entry_point_that_returns_no_registry_is_named(site: Site) -> None:
    site.entry_points.write_text(ENTRY_POINTS.replace(":extended", ":wrong"))
    done = site.run("fhelium-run", "--inputs", "inputs")
    assert done.returncode == 1
    assert (
        "the entry point probe_package:wrong of fhelium.implementations returned a NoneType, "
        "expected an OperationImplementationRegistry" in done.stderr
    )
