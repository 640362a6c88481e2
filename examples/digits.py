"""Recognize handwritten digits under encryption: an MLP and a small CNN on scikit-learn's digits.

This script is the client. It trains the models on plain images, compiles them with polynomials for
their activations, encrypts the test images, many in each ciphertext, and compares what comes back
with the plain models. With `--ranks`, processes share the ciphertexts; they get the program, its
weights and evaluation keys by files, and never the secret key.
"""

import argparse
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from digits_models import (
    MODELS,
    TEST_IMAGES,
    Images,
    accuracy,
    approximation_for,
    digits,
    polynomial_model,
    scores,
    trained,
)
from xdsl.rewriter import InsertPoint, Rewriter

import fhelium
from fhelium.analyses.circuit_counts import CircuitCounts
from fhelium.backend import (
    Compilation,
    OperationBackend,
    Pipeline,
    Program,
    ResourceBindings,
    generate_program_keys,
)
from fhelium.client import (
    Ciphertext,
    Parameters,
    PublicKey,
    SecretKey,
    decode,
    decrypt,
    encode,
    encrypt,
    generate_keys,
    load,
    pack,
    save,
    unpack,
)
from fhelium.dialects.ckks.parameters import parameters_of
from fhelium.dialects.ckks.types import CiphertextType
from fhelium.dialects.core import ResourceOp
from fhelium.dialects.distributed import GatherOp, GroupType
from fhelium.frontends.input_names import input_names
from fhelium.frontends.packed_values import packed_inputs, packed_results
from fhelium.scheme.keys import SwitchingKey
from fhelium.scheme.packing import layout_of

SCHEDULE = "canonicalize,secure-select-parameters{{precision=16 largest={}}},secure-pack,ckks-lazy"

LINK = "cpu-default"
"""How the scheduled program is linked: its ops as calls of the generated CPU kernels."""

WORK = Path("build/digits")


def main() -> None:
    parser = argparse.ArgumentParser(description="Recognize handwritten digits, encrypted.")
    parser.add_argument("--model", choices=[*MODELS, "all"], default="all")
    parser.add_argument("--samples", type=int, default=TEST_IMAGES, help="how many test images")
    parser.add_argument("--ranks", type=int, default=1, help="number of processes (default: 1)")
    args = parser.parse_args()
    if not 1 <= args.samples <= TEST_IMAGES:
        parser.error(f"found {args.samples} samples, expected 1 to {TEST_IMAGES}: the test images")
    if args.ranks < 1:
        parser.error(f"found {args.ranks} ranks, expected at least 1")
    if args.ranks > args.samples:
        parser.error(
            f"found {args.ranks} ranks and {args.samples} samples, expected at least one sample a "
            "rank: more samples, or fewer ranks"
        )
    for name in MODELS if args.model == "all" else [args.model]:
        recognize(name, args.samples, args.ranks)


def recognize(name: str, samples: int, ranks: int) -> None:
    """Train a model, run it under encryption, and print what comes of it."""
    data = digits()
    images, labels = data.test[:samples], data.test_labels[:samples]
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # the batches are too small for more
    model = trained(name, data)
    torch.set_num_threads(threads)
    approximation = approximation_for(model, data)
    polynomial = polynomial_model(model, approximation)

    bound = max(approximation.interval[1], float(np.abs(scores(polynomial, data.train)).max()))
    program = fhelium.compile(
        model,
        (torch.zeros(1, 64),),
        batched=True,
        activations={"silu": approximation},
        pipeline=SCHEDULE.format(int(np.ceil(bound))),
    )
    check_ranks(program, samples, ranks)
    parameters = parameters_of_program(program)
    secret_key, public_key = generate_keys(parameters)
    keys = generate_program_keys(program, secret_key)
    describe(name, approximation, program, parameters, keys)

    start = time.perf_counter()
    encrypted = encrypt_images(images, program, public_key)
    encryption = time.perf_counter() - start
    if ranks == 1:
        executable = OperationBackend(named_resources=keys).link(
            Compilation(program, pipeline=Pipeline.parse(LINK))
        )
        executable.run(replace(encrypted, data=encrypted.data[:1]))  # compiles the kernels
        start = time.perf_counter()
        result = executable.run(encrypted)
        seconds = time.perf_counter() - start
        print(
            f"  time: encryption {encryption:.2f} s, run {seconds:.2f} s, "
            f"{1000 * seconds / samples:.1f} ms a sample"
        )
    else:
        result = run_on_ranks(program, encrypted, keys, ranks)
    assert isinstance(result, Ciphertext)
    found = decrypt_scores(result, program, secret_key)[:samples]

    expected = scores(polynomial, images)
    print(
        f"  accuracy: plain {accuracy(scores(model, images), labels):.4f}, "
        f"plain polynomial {accuracy(expected, labels):.4f}, "
        f"encrypted {accuracy(found, labels):.4f}"
    )
    agreement = int((found.argmax(axis=1) == expected.argmax(axis=1)).sum())
    print(
        f"digits: model={name} ranks={ranks} samples={samples} "
        f"max_abs_error={np.abs(found - expected).max():.2e} "
        f"prediction_agreement={agreement}/{samples}"
    )


def check_ranks(program: Program, samples: int, ranks: int) -> None:
    """Exit where there are not enough ciphertexts for all ranks, before any key is made."""
    (packed,) = packed_inputs(program)
    assert packed is not None
    batch = layout_of(packed).batch
    count = -(-samples // batch)
    if ranks > count:
        sys.exit(
            f"digits.py: error: found {ranks} ranks and {count} ciphertext{'s' * (count > 1)} of "
            f"{batch} samples, expected at least one ciphertext a rank: more samples, or fewer "
            "ranks"
        )


def parameters_of_program(program: Program) -> Parameters:
    """Return the parameters that the pipeline has chosen."""
    attribute = parameters_of(program.module)
    assert attribute is not None
    return Parameters.from_attribute(attribute)


def describe(
    name: str,
    approximation: fhelium.Approximation,
    program: Program,
    parameters: Parameters,
    keys: ResourceBindings,
) -> None:
    """Print what was compiled."""
    (packed,) = packed_inputs(program)
    assert packed is not None
    counts = CircuitCounts.of(program.module)
    memory = sum(key.value.data.nbytes for key in keys if isinstance(key.value, SwitchingKey))
    a, b = approximation.interval
    print(f"{name}: SiLU as a polynomial of degree {approximation.degree} on [{a:.2f}, {b:.2f}]")
    print(
        f"  parameters: scale 2^{np.log2(parameters.scale):g}, {parameters.digits} digits, "
        f"{parameters.security_bits_statement()}"
    )
    print(
        f"  program: {counts.levels} levels, {counts.key_switches} key switches, of them "
        f"{counts.rotations} rotations ({counts.hoisted} hoisted), {counts.rescales} rescales"
    )
    print(
        f"  keys: {counts.rotation_keys} for rotations, all together {memory / 1e6:.0f} MB; "
        f"{layout_of(packed).batch} samples in a ciphertext"
    )


def encrypt_images(images: Images, program: Program, public_key: PublicKey) -> Ciphertext:
    """Return all images in one value: a batch of ciphertexts, each with a batch of images."""
    (packed,), (state,) = packed_inputs(program), program.function().function_type.inputs
    assert packed is not None
    assert isinstance(state, CiphertextType)
    batch = layout_of(packed).batch
    slots = [pack(images[i : i + batch], packed) for i in range(0, len(images), batch)]
    plaintext = encode(np.stack(slots), public_key.parameters, level=state.level, scale=state.scale)
    return encrypt(plaintext, public_key)


def decrypt_scores(result: Ciphertext, program: Program, secret_key: SecretKey) -> Images:
    """Return the scores of all images, `[images, 10]`."""
    (packed,) = packed_results(program)
    assert packed is not None
    slots = decode(decrypt(result, secret_key)).real
    return np.concatenate([unpack(each, packed) for each in slots])


def run_on_ranks(
    program: Program, encrypted: Ciphertext, keys: ResourceBindings, ranks: int
) -> Ciphertext:
    """Run the program by `fhelium-run` on several ranks, each on its part of the ciphertexts."""
    WORK.mkdir(parents=True, exist_ok=True)
    gathering(program).save(WORK / "program")
    switching = {key.symbol: key.value for key in keys if isinstance(key.value, SwitchingKey)}
    save(WORK / "keys.safetensors", switching)
    for rank, part in enumerate(torch.tensor_split(encrypted.data, ranks)):
        (name,) = input_names(program)
        save(WORK / f"inputs-{rank}.safetensors", {name: replace(encrypted, data=part)})
    command = [sys.executable, "-m", "fhelium.tools.run", str(WORK / "program.mlir")]
    command += ["--nproc", str(ranks), "--time", "--pipeline", LINK]
    command += ["--inputs", str(WORK / "inputs-{rank}.safetensors")]
    command += ["--materials", str(WORK / "program.safetensors")]
    command += ["--keys", str(WORK / "keys.safetensors")]
    command += ["--output", str(WORK / "result.safetensors")]
    print("  running:", " ".join(command[1:]), flush=True)
    code = subprocess.run(command, check=False).returncode
    if code != 0:
        sys.exit(code)
    result = load(WORK / "result.safetensors", encrypted.parameters)["result"]
    assert isinstance(result, Ciphertext)
    return result


def gathering(program: Program) -> Program:
    """Return the program with a `dist.gather` at its end: rank 0 has the results of all ranks."""
    program = program.clone()
    end = program.function().body.block.last_op
    assert end is not None
    (result,) = end.operands
    world = ResourceOp("world", GroupType())
    whole = GatherOp(result, 0, 0, world, result.type)
    Rewriter.insert_op([world, whole], InsertPoint.before(end))
    end.operands[0] = whole.result
    return program


if __name__ == "__main__":
    main()
