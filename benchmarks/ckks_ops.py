"""How long the ops of CKKS take: `ckks_ops.py --log-n 14 --limbs 8 --digits 4 --threads 1`.

Programs of one op are linked once and run many times, for each family of implementations: `torch`,
the reference, and `cpu`, generated kernels. What the client does (`encode`, `encrypt`, `decrypt`,
which ends with decoding, and `rotation_keygen`) has one implementation, which is listed for both.
OpenFHE runs the same ops beside them when the package `openfhe` is installed; with `--peer openfhe`
it must be. All take turns, so that a busy machine slows all of them down. The table has medians,
and how many times longer than the family `cpu` the others take.
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import openfhe_peer
import torch
from rich.box import SIMPLE
from rich.console import Console
from rich.progress import track
from rich.table import Table

from fhelium.backend import (
    Compilation,
    OperationBackend,
    Pipeline,
    Program,
    default_pipeline,
    generate_program_keys,
)
from fhelium.scheme.ciphertext import Ciphertext, Plaintext
from fhelium.scheme.encoding import decode, encode
from fhelium.scheme.encryption import decrypt, encrypt
from fhelium.scheme.keys import SecretKey, generate_keys, generate_rotation_key
from fhelium.scheme.parameters import Parameters

Run = Callable[[], object]
Value = Ciphertext | Plaintext

FAMILIES = {
    "torch": default_pipeline(),
    "cpu": Pipeline.parse("cpu-default"),
}
SCALE_BITS = 40
STEPS = range(1, 9)

FUNCTIONS = {
    "intt": "(%x: !ct) -> !coefficients {\n %r = ckks.to_coefficient %x : !ct -> !coefficients",
    "ntt": "(%x: !coefficients) -> !ct {\n %r = ckks.to_evaluation %x : !coefficients -> !ct",
    "add": "(%x: !ct, %y: !ct) -> !ct {\n %r = ckks.add %x, %y : !ct",
    "mul_plain": "(%x: !ct, %y: !pt) -> !ct2 {\n %r = ckks.mul_plain %x, %y : (!ct, !pt) -> !ct2",
    "mul": "(%x: !ct, %y: !ct) -> !ct3 {\n %r = ckks.mul %x, %y : (!ct, !ct) -> !ct3",
    "relinearize": """(%x: !ct3) -> !ct2 {
      %key = fhelium.resource @relinearization : !ckks.key<relinearization>
      %r = ckks.relinearize %x with %key : !ct3 -> !ct2""",
    "rescale": "(%x: !ct2) -> !less {\n %r = ckks.rescale %x : !ct2 -> !less",
    "mul_relin_rescale": """(%x: !ct, %y: !ct) -> !less {
      %key = fhelium.resource @relinearization : !ckks.key<relinearization>
      %xy = ckks.mul %x, %y : (!ct, !ct) -> !ct3
      %z = ckks.relinearize %xy with %key : !ct3 -> !ct2
      %r = ckks.rescale %z : !ct2 -> !less""",
    "rotate": """(%x: !ct) -> !ct {
      %key = fhelium.resource @turn : !ckks.key<rotation, 1>
      %r = ckks.rotate %x by 1 with %key : !ct, !ckks.key<rotation, 1>""",
}
"""Each op as the arguments, results and body of a function."""


def rotate_many() -> str:
    """Return the function of `rotate_many_8`."""
    results = ", ".join(f"%r{step}" for step in STEPS)
    types = ", ".join("!ct" for _ in STEPS)
    keys = ", ".join(f"%key{step}" for step in STEPS)
    kinds = ", ".join(f"!ckks.key<rotation, {step}>" for step in STEPS)
    resources = "\n".join(
        f"%key{step} = fhelium.resource @turn_{step} : !ckks.key<rotation, {step}>"
        for step in STEPS
    )
    return f"""(%x: !ct) -> ({types}) {{
      {resources}
      {results} = ckks.rotate_many %x by {list(STEPS)} with {keys} : (!ct, {kinds}) -> ({types})
      func.return {results} : {types}"""


def program_of(op: str, parameters: Parameters) -> Program:
    """Return the program of one op at the top level."""
    top, scale = parameters.max_level, parameters.scale
    (dropped,) = parameters.group_limbs(top)
    less = scale**2 / parameters.q_primes[dropped]
    text = rotate_many() if op == "rotate_many_8" else FUNCTIONS[op]
    if op != "rotate_many_8":
        text += f"\n func.return %r : {text.split('->')[1].split('{')[0].strip()}"

    def state(kind: str, level: int, scale: float, rest: str) -> str:
        return f"!ckks.{kind}<level = {level}, scale = {scale!r}, {rest}>"

    return Program.parse(
        f"""
        !ct = {state("ciphertext", top, scale, "components = 2, form = evaluation")}
        !ct2 = {state("ciphertext", top, scale**2, "components = 2, form = evaluation")}
        !ct3 = {state("ciphertext", top, scale**2, "components = 3, form = evaluation")}
        !less = {state("ciphertext", top - 1, less, "components = 2, form = evaluation")}
        !coefficients = {state("ciphertext", top, scale, "components = 2, form = coefficient")}
        !pt = {state("plaintext", top, scale, "form = evaluation")}
        builtin.module attributes {{ckks.parameters = {parameters.to_attribute()}}} {{
          func.func @main{text}
          }}
        }}
        """,
        op,
    )


def linked(
    op: str, parameters: Parameters, secret_key: SecretKey
) -> dict[str, Callable[..., object]]:
    """Return the op's program, linked with each family."""
    program = program_of(op, parameters)
    program.verify()
    backend = OperationBackend(named_resources=generate_program_keys(program, secret_key))
    return {
        family: backend.link(Compilation(program), pipeline=pipeline).run
        for family, pipeline in FAMILIES.items()
    }


def benchmarks(parameters: Parameters) -> dict[str, Mapping[str, Run]]:
    """Return for each op, and each family, a function that runs it once."""
    secret_key, public_key = generate_keys(parameters)
    values = np.random.default_rng(0).uniform(-1, 1, parameters.slots)
    message = encode(values, parameters)
    x = encrypt(message, public_key)
    programs = {op: linked(op, parameters, secret_key) for op in (*FUNCTIONS, "rotate_many_8")}

    def result(op: str, *inputs: Value) -> Value:
        value = programs[op]["cpu"](*inputs)
        assert isinstance(value, Ciphertext)
        return value

    inputs: dict[str, tuple[Value, ...]] = {
        "ntt": (result("intt", x),),
        "intt": (x,),
        "add": (x, x),
        "mul_plain": (x, message),
        "mul": (x, x),
        "relinearize": (result("mul", x, x),),
        "rescale": (result("mul_plain", x, message),),
        "mul_relin_rescale": (x, x),
        "rotate": (x,),
        "rotate_many_8": (x,),
    }
    client: dict[str, Run] = {
        "encode": lambda: encode(values, parameters),
        "encrypt": lambda: encrypt(message, public_key),
        "decrypt": lambda: decode(decrypt(x, secret_key)),
        "rotation_keygen": lambda: generate_rotation_key(secret_key, 1),
    }

    def runs(op: str) -> dict[str, Run]:
        if op in client:
            return dict.fromkeys(FAMILIES, client[op])
        return {family: lambda run=run: run(*inputs[op]) for family, run in programs[op].items()}

    order = ("ntt", "intt", "encode", "encrypt", "decrypt", "add", "mul_plain", "mul")
    order += ("relinearize", "rescale", "mul_relin_rescale", "rotate", "rotate_many_8")
    return {op: runs(op) for op in (*order, "rotation_keygen")}


def measure(runs: Mapping[str, Run], seconds: float, most: int = 200) -> dict[str, list[float]]:
    """Return the times in milliseconds of each family, which take turns."""
    times: dict[str, list[float]] = {family: [] for family in runs}
    for run in runs.values():
        run()
    end = time.perf_counter() + seconds * len(runs)
    while len(times[next(iter(runs))]) < 3 or (
        time.perf_counter() < end and len(times[next(iter(runs))]) < most
    ):
        for family, run in runs.items():
            start = time.perf_counter()
            run()
            times[family].append(1e3 * (time.perf_counter() - start))
    return times


def with_peer(
    fhelium: dict[str, Mapping[str, Run]], options: argparse.Namespace, slots: int
) -> dict[str, Mapping[str, Run]]:
    """Add OpenFHE's runs to those of each op, where the package is there or has to be."""
    try:
        module = openfhe_peer.openfhe_module(options.threads)
    except ImportError as error:
        if options.peer:
            raise SystemExit(str(error)) from None
        return fhelium
    values = np.random.default_rng(0).uniform(-1, 1, slots).tolist()
    peer = openfhe_peer.benchmarks(
        module, values, options.log_n, options.limbs, options.digits, SCALE_BITS
    )
    return {
        op: {**runs, **({"openfhe": peer[op]} if op in peer else {})}
        for op, runs in fhelium.items()
    }


def show(rows: list[dict[str, object]], title: str) -> None:
    """Print a table: an op a line, a family a column, and the ratios to `cpu`."""
    families = list(dict.fromkeys(str(row["family"]) for row in rows))
    others = [family for family in families if family != "cpu"]
    headings = [f"{family}, ms" for family in families] + [f"{family} / cpu" for family in others]
    table = Table("op", *headings, title=title, box=SIMPLE)
    for column in table.columns[1:]:
        column.justify = "right"
    for op in dict.fromkeys(row["op"] for row in rows):
        medians = {row["family"]: float(str(row["median_ms"])) for row in rows if row["op"] == op}
        times = [f"{medians[family]:.3f}" if family in medians else "" for family in families]
        ratios = [
            f"{medians[family] / medians['cpu']:.1f}" if family in medians else ""
            for family in others
        ]
        table.add_row(str(op), *times, *ratios)
    Console().print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description="Time the ops of CKKS.")
    parser.add_argument("--log-n", type=int, default=14, help="log2 of the ring degree")
    parser.add_argument("--limbs", type=int, default=8, help="primes of Q")
    parser.add_argument("--digits", type=int, default=4, help="digits of a switching key")
    parser.add_argument("--threads", type=int, default=1, help="threads of torch and the kernels")
    parser.add_argument("--seconds", type=float, default=1.0, help="time for each op and family")
    parser.add_argument("--peer", choices=["openfhe"], help="fail when this peer is not installed")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results there")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    parameters = Parameters.build(
        ring_degree=1 << options.log_n,
        depth=options.limbs - 1,
        scale_bits=SCALE_BITS,
        digits=options.digits,
        insecure=True,
    )
    if len(parameters.q_primes) != options.limbs:
        parser.error(f"found {len(parameters.q_primes)} primes of Q, expected {options.limbs}")
    cases = with_peer(benchmarks(parameters), options, parameters.slots)
    rows: list[dict[str, object]] = []
    for op, runs in track(cases.items(), transient=True):
        for family, times in measure(runs, options.seconds).items():
            rows.append(
                {
                    "library": "openfhe" if family == "openfhe" else "fhelium",
                    "family": family,
                    "op": op,
                    "log_n": options.log_n,
                    "limbs": options.limbs,
                    "digits": options.digits,
                    "threads": options.threads,
                    "median_ms": statistics.median(times),
                    "minimum_ms": min(times),
                    "runs": len(times),
                }
            )
    threads = f"{options.threads} thread" + "s" * (options.threads != 1)
    size = f"N = 2^{options.log_n}, {options.limbs} primes, {options.digits} digits"
    show(rows, f"{size}, {threads}")
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
