"""A package of a third party: its entry points bring a dialect, a pass and implementations."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from fhelium import backend
from fhelium.dialects import rns
from fhelium.scheme import files
from fhelium.scheme.encoding import encode
from fhelium.scheme.encryption import encrypt
from fhelium.scheme.keys import generate_secret_key
from fhelium.scheme.parameters import Parameters

PACKAGE = '''
"""A dialect, a pass and implementations, for fhelium-opt, xdsl-opt and fhelium-run."""

from dataclasses import dataclass

from xdsl.dialects.builtin import I64, TensorType
from xdsl.ir import Dialect
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def, result_def, traits_def
from xdsl.passes import ModulePass
from xdsl.traits import Pure
from xdsl.universe import Universe

from fhelium.dialects.ckks import NegateOp


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


@dataclass(frozen=True)
class Negate:
    """Negation that forgets to reduce, for the programs that name it."""

    name: str = "probe-negate"
    operation_types: tuple = (NegateOp,)
    supports_in_place: bool = False
    only_by_name: bool = True

    def resource_requirements(self, invocation):
        return ()

    def execute(self, invocation, inputs, resources, /, *, in_place):
        return (-inputs[0],)


def negating(registry):
    return extended(registry).with_implementations([Negate()])


def wrong(registry):
    return None


def failing(registry):
    raise ValueError("no such\\ntable")


class Half:
    name = "half"
    operation_types = (TwiceOp,)
    supports_in_place = False


def incomplete(registry):
    return extended(registry).with_implementations([Half()])
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


NEGATION = """
#p = {parameters}
!ct = !ckks.ciphertext<level = 1, scale = 2^40, components = 2, form = evaluation>
builtin.module attributes {{ckks.parameters = #p}} {{
  func.func @main(%x: !ct) -> (!ct, !ct) {{
    %y = ckks.negate %x : !ct
    %z = ckks.negate %x {{fhelium.implementation = "probe-negate"}} : !ct
    func.return %y, %z : !ct, !ct
  }}
}}
"""


def negating_site(site: Site) -> None:
    """Let the package bring a second negation, and the program take it once."""
    site.entry_points.write_text(ENTRY_POINTS.replace(":extended", ":negating"))
    parameters = Parameters.build(ring_degree=32, depth=1, scale_bits=40, insecure=True)
    (site.folder / "program.mlir").write_text(NEGATION.format(parameters=parameters.to_attribute()))
    x = encrypt(encode([0.25], parameters, level=1), generate_secret_key(parameters))
    files.save(site.folder / "inputs", {"x": x})


def test_results_with_residues_that_are_not_reduced_are_not_written(site: Site) -> None:
    negating_site(site)
    done = site.run("fhelium-run", "--inputs", "inputs", "--output", "result")
    assert done.returncode == 1
    assert done.stderr.startswith("fhelium-run: error: result1 has residues from -")
    assert done.stderr.endswith(
        ": an implementation of an op before it returns residues that it does not reduce\n"
    )
    assert not (site.folder / "result").exists()


def test_levels_are_compared_with_its_implementations(site: Site) -> None:
    negating_site(site)
    files.save(site.folder / "numbers", {"x": torch.full((16,), 0.25, dtype=torch.float64)})
    done = site.run("fhelium-run", "--inputs", "numbers", "--compare-levels")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (
            "probe_package:wrong",
            "returned a NoneType, expected an OperationImplementationRegistry",
        ),
        ("nosuch:extended", "failed: ModuleNotFoundError: No module named 'nosuch'"),
        ("probe_package:lost", "failed: AttributeError: module 'probe_package' has no attribute"),
        ("probe_package:failing", "failed: ValueError: no such table"),
        (
            "probe_package:incomplete",
            "failed: TypeError: implementation 'half' of probe.twice has no resource_requirements "
            "and no execute: define resource_requirements and execute in its class Half",
        ),
    ],
)
def test_a_broken_entry_point_is_named_with_its_package(
    site: Site, function: str, said: str
) -> None:
    site.entry_points.write_text(ENTRY_POINTS.replace("probe_package:extended", function))
    done = site.run("fhelium-run", "--inputs", "inputs")
    assert done.returncode == 1
    error = (
        f"fhelium-run: error: the entry point probe = {function} of fhelium.implementations of the "
        f"package probe {said}"
    )
    assert done.stderr.startswith(error)
    assert done.stderr.endswith(": mend the package, or uninstall it\n")
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("chosen", ["torch-rns-negate", "my-negate"])
def test_the_implementation_that_the_guide_shows(chosen: str) -> None:
    guide = Path(__file__).parents[2] / "docs" / "architecture.md"
    code = re.search(r"```python\n(class MyNegate:.*?)```", guide.read_text(), re.DOTALL)
    assert code is not None
    names: dict[str, Any] = {**vars(backend), "rns": rns, "torch": torch}
    exec(code[1], names)
    registry = backend.complete_registry().with_implementations([names["MyNegate"]()])
    parameters = Parameters.build(ring_degree=32, depth=1, scale_bits=40, insecure=True)
    text = NEGATION.format(parameters=parameters.to_attribute())
    program = backend.Program.parse(re.sub(r"\{fhelium.implementation.*\}", "", text))
    pipeline = str(backend.default_pipeline())
    if chosen == "my-negate":
        pipeline += ',fhelium-assign-implementations{op="rns.negate" implementation="my-negate"}'
    executable = backend.OperationBackend(registry).link(
        backend.Compilation(program, pipeline=backend.Pipeline.parse(pipeline))
    )
    used = {each.implementation.name for each in executable.dispatch_table.operations.values()}
    assert chosen in used
    x = encrypt(encode([0.25], parameters, level=1), generate_secret_key(parameters))
    results = executable.run(x)
    assert isinstance(results, tuple)
    primes = torch.tensor(parameters.primes[:2])[:, None]
    assert torch.equal(results[0].data, -x.data % primes)
