"""Collectives in programs without state: scheduled, run on two ranks, and compared with numpy."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from fhelium.dialects.ckks.types import CiphertextType
from fhelium.frontends.program import Program
from fhelium.passes.pipeline import Pipeline
from fhelium.scheme import files
from fhelium.scheme.ciphertext import Ciphertext
from fhelium.scheme.encoding import decode, encode
from fhelium.scheme.encryption import decrypt, encrypt
from fhelium.scheme.keys import (
    generate_relinearization_key,
    generate_rotation_key,
    generate_secret_key,
)
from fhelium.scheme.parameters import Parameters

Values = npt.NDArray[np.float64]

# INSECURE: for tests alone.
PARAMETERS = Parameters.build(ring_degree=64, depth=4, scale_bits=40, digits=2, insecure=True)
SLOTS = PARAMETERS.slots

PROGRAM = f"""
!ct = !ckks.ciphertext
!pt = !ckks.plaintext
!v = tensor<{SLOTS}xf64>
builtin.module attributes {{ckks.parameters = {PARAMETERS.to_attribute()}}} {{
  func.func @main(%x: !ct, %y: !ct, %v: !v) -> (!ct, !ct, !ct, !ct, !ct, !ct, !ct, !ct) {{
    %world = fhelium.resource @world : !dist.group
    %key = fhelium.resource @rotation_3 : !ckks.key<rotation, 3>
    dist.barrier in %world
    %xy = ckks.mul %x, %y : (!ct, !ct) -> !ct
    %all = dist.all_gather %xy along 0 in %world : !ct -> !ct
    %square = ckks.mul %all, %all : (!ct, !ct) -> !ct
    %turned = ckks.rotate %square by 3 with %key : !ct, !ckks.key<rotation, 3>
    %own = ckks.mul %turned, %x : (!ct, !ct) -> !ct
    %share = dist.reduce_scatter %own along 0 in %world : !ct -> !ct combine {{
    ^bb0(%a: !ct, %b: !ct):
      %c = ckks.add %a, %b : !ct
      dist.yield %c : !ct
    }}
    %one = dist.all_to_all %own along 0 in %world : !ct -> !ct
    %total = dist.reduce %xy to 1 in %world : !ct combine {{
    ^bb0(%a: !ct, %b: !ct):
      %c = ckks.sub %a, %b : !ct
      dist.yield %c : !ct
    }}
    %whole = dist.gather %xy to 0 along 0 in %world : !ct -> !ct
    %mine = dist.scatter %whole from 0 along 0 in %world : !ct -> !ct
    %rank = dist.rank %world
    %i0 = arith.constant 0 : index
    %i1 = arith.constant 1 : index
    %is0 = arith.cmpi eq, %rank, %i0 : index
    %is1 = arith.cmpi eq, %rank, %i1 : index
    %told = scf.if %is1 -> (!ct) {{
      %received = dist.recv from 0 in %world tag 4 : !ct
      %product = ckks.mul %received, %x : (!ct, !ct) -> !ct
      scf.yield %product : !ct
    }} else {{
      scf.yield %x : !ct
    }}
    scf.if %is0 {{
      dist.send %share to 1 in %world tag 4 : !ct
    }}
    %p = ckks.encode %v : !v -> !pt
    %first = dist.broadcast %p from 0 in %world : !pt
    %scaled = ckks.mul_plain %x, %first : (!ct, !pt) -> !ct
    %rows = dist.all_gather %p along 0 in %world : !pt -> !pt
    %moved = ckks.add_plain %all, %rows : !ct, !pt
    func.return %turned, %share, %one, %total, %mine, %told, %scaled, %moved
        : !ct, !ct, !ct, !ct, !ct, !ct, !ct, !ct
  }}
}}
"""

PIPELINES = ["ckks-default", "ckks-lazy"]


def expected(x: Values, y: Values, v: Values, rank: int) -> list[Values]:
    """What each rank's results decrypt to, from the `[ranks, slots]` inputs of all of them."""
    xy = x * y
    turned = np.roll(xy**2, -3, axis=-1)
    share = turned * x.sum(axis=0)
    return [
        turned,
        share[rank : rank + 1],
        turned[rank] * x,
        xy[0] - xy[1] if rank == 1 else xy[0],
        xy[rank : rank + 1],
        share[:1] * x[1] if rank == 1 else x[0],
        x[rank] * v[0],
        xy + v,
    ]


def scheduled(text: str, pipeline: str) -> Program:
    program = Program.parse(text)
    Pipeline.parse(pipeline).apply(program)
    program.verify()
    return program


@pytest.mark.parametrize("pipeline", PIPELINES)
def test_two_ranks(tmp_path: Path, pipeline: str):
    """The rank that receives comes first in the text; all types have to fit there."""
    rng = np.random.default_rng(5)
    x, y, v = rng.uniform(-1, 1, (3, 2, SLOTS))
    secret_key = generate_secret_key(PARAMETERS)
    relinearization = generate_relinearization_key(secret_key)
    rotation = generate_rotation_key(secret_key, 3)
    keys = {"relinearization": relinearization, "rotation_3": rotation}
    files.save(tmp_path / "keys.safetensors", keys)
    (tmp_path / "program.mlir").write_text(PROGRAM)
    arguments = scheduled(PROGRAM, pipeline).function().body.block.args
    for rank in range(2):
        inputs: dict[str, Ciphertext] = {}
        for name, values, argument in zip("xy", (x, y), arguments, strict=False):
            type = CiphertextType.of(argument)
            plaintext = encode(values[rank], PARAMETERS, level=type.level, scale=type.scale)
            inputs[name] = encrypt(plaintext, secret_key)
        files.save(tmp_path / f"inputs-{rank}.safetensors", {"v": v[rank], **inputs})
    command = [sys.executable, "-m", "fhelium.tools.run", "program.mlir", "--nproc", "2"]
    command += ["--pipeline", f"{pipeline},rns-default", "--keys", "keys.safetensors"]
    command += ["--inputs", "inputs-{rank}.safetensors", "--output", "out-{rank}.safetensors"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    for rank in range(2):
        results = files.load(tmp_path / f"out-{rank}.safetensors", PARAMETERS)
        for number, truth in enumerate(expected(x, y, v, rank)):
            result = results[f"result{number}"]
            assert isinstance(result, Ciphertext)
            found = decode(decrypt(result, secret_key))
            assert found.shape == truth.shape, (rank, number)
            assert np.abs(found - truth).max() < 1e-6, (rank, number)
