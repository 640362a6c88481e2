"""Collectives in the interpreters, whose groups have one rank."""

import numpy as np
import pytest
from collective_programs import KINDS, RESULTS, expected_results, kind_program, module, poly
from xdsl.utils.exceptions import InterpretationError

from fhelium.frontends.program import Program
from fhelium.interpreters import ckks, rns
from fhelium.passes.pipeline import Pipeline


@pytest.mark.parametrize("name", KINDS)
def test_what_one_rank_gets(name: str):
    """The same as from the backend in a group of one: a value without a batch becomes one."""
    kind = KINDS[name]
    program = kind_program(kind, 1)
    Pipeline.parse("convert-ckks-to-rns").apply(program)
    found = rns.evaluate(program, kind.value(0), kind.ragged(0))
    expected = expected_results(kind, 0, 1)
    for result, array in zip(RESULTS, found, strict=True):
        truth = expected[result].numpy()
        assert array.shape == truth.shape, result
        np.testing.assert_array_equal(array.astype(truth.dtype), truth, err_msg=result)


BODY = """
!ct = !ckks.ciphertext
!pt = !ckks.plaintext
func.func @main(%x: !ct, %p: !pt) -> (!ct, !ct, !pt, !ct) {
  %world = fhelium.resource @world : !dist.group
  %zero = arith.constant 0 : index
  %part = dist.split %world by %zero, %zero
  dist.barrier in %part
  %square = ckks.mul %x, %x : (!ct, !ct) -> !ct
  %all = dist.all_gather %square along 0 in %part : !ct -> !ct
  %pending = dist.start {
    %one = dist.all_to_all %all along 0 in %world : !ct -> !ct
    dist.yield %one : !ct
  } : !dist.pending<!ct>
  %share = dist.scatter %p from 0 along 0 in %world : !pt -> !pt
  %rank = dist.rank %part
  %one = arith.constant 1 : index
  %other = arith.cmpi eq, %rank, %one : index
  %told = scf.if %other -> (!ct) {
    %received = dist.recv from 0 in %world : !ct
    scf.yield %received : !ct
  } else {
    scf.yield %x : !ct
  }
  LINE
  %moved = dist.wait %pending : !ct
  func.return %all, %moved, %share, %told : !ct, !ct, !pt, !ct
}
"""


def test_programs_before_they_are_scheduled():
    x, p = np.linspace(-1, 1, 8), np.arange(8.0)
    found = ckks.evaluate(Program.parse(BODY.replace("LINE", "")), x, p)
    for array, expected in zip(found, ([x**2], [x**2], [p], x), strict=True):
        np.testing.assert_array_equal(array, expected)


REFUSED = {
    "dist.send %x to 1 in %world : !ct": "a message for or from rank 1",
    "%y = dist.recv from 1 in %world : !ct": "a message for or from rank 1",
    "%y = dist.broadcast %x from 2 in %world : !ct": "root 2",
    "%y = dist.gather %x to 1 along 0 in %world : !ct -> !ct": "root 1",
    "%t = arith.constant dense<1.0> : tensor<4xf64>\n"
    "%y = dist.all_gather %t along 0 in %world : tensor<4xf64> -> tensor<8xf64>": (
        r"shape \[4\] for tensor<8xf64>"
    ),
}


@pytest.mark.parametrize("line", REFUSED)
def test_what_names_other_ranks(line: str):
    program = Program.parse(BODY.replace("LINE", line))
    message = f"found {REFUSED[line]}, expected a program for a single rank, 0: an interpreter is"
    with pytest.raises(InterpretationError, match=message):
        ckks.evaluate(program, np.ones(8), np.ones(8))


def test_limbs_that_other_ranks_have():
    share, whole = poly(0, 2), poly(0, 4)
    program = module(f"""
func.func @main(%x: {share}) -> {whole} {{
  %world = fhelium.resource @world : !dist.group
  %y = dist.all_gather %x along limbs in %world : {share} -> {whole}
  func.return %y : {whole}
}}""")
    with pytest.raises(InterpretationError, match=r"found a share of type .* of !rns\.poly"):
        rns.evaluate(program, np.zeros((2, 2, 16), dtype=np.int64))
    (found,) = rns.evaluate(
        Program.parse(str(program.module).replace(whole, share)), x := np.ones((2, 2, 16), int)
    )
    np.testing.assert_array_equal(found, x)
