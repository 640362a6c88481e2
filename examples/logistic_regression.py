"""Score the breast-cancer data set under encryption, on several ranks.

This script is the client: it trains a model on plain data, encrypts the samples, hands files to the
ranks, and decrypts what comes back. The ranks run `logistic_regression.mlir` by `fhelium-run`; they
see ciphertexts, weights and one evaluation key, and never the secret key.
"""

import argparse
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from rich.progress import track
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler
from xdsl.dialects.builtin import TensorType

from fhelium.backend import Program, default_pipeline
from fhelium.dialects.ckks.parameters import parameters_of
from fhelium.dialects.ckks.types import CiphertextType, PlaintextType
from fhelium.dialects.core import MaterialOp
from fhelium.scheme.ciphertext import Ciphertext
from fhelium.scheme.encoding import decode, encode
from fhelium.scheme.encryption import decrypt, encrypt
from fhelium.scheme.files import load, save
from fhelium.scheme.keys import (
    generate_public_key,
    generate_relinearization_key,
    generate_secret_key,
)
from fhelium.scheme.parameters import Parameters

PROGRAM = Path(__file__).with_suffix(".mlir")
WORK = Path("build/demo")


def sigmoid3(z: np.ndarray) -> np.ndarray:
    """Return the polynomial that the program evaluates, in plain float64."""
    return 0.5 + 0.15012 * z - 0.001593 * z**3


def train() -> tuple[np.ndarray, np.ndarray, float, np.ndarray]:
    """Return samples, weights, bias and true labels; the scores stay within [-8, 8]."""
    samples, labels = load_breast_cancer(return_X_y=True)
    samples = StandardScaler().fit_transform(samples)
    model = LogisticRegression(C=0.01).fit(samples, labels)
    return samples, model.coef_[0], float(model.intercept_[0]), labels


def element_types(program: Program) -> dict[str, CiphertextType | PlaintextType]:
    """Return the state in which the program takes its columns and its materials."""
    values = {"columns": program.function().body.block.args[0]}
    values |= {
        op.symbol_name: op.result for op in program.module.walk() if isinstance(op, MaterialOp)
    }
    types: dict[str, CiphertextType | PlaintextType] = {}
    for name, value in values.items():
        kind = value.type.element_type if isinstance(value.type, TensorType) else value.type
        assert isinstance(kind, CiphertextType | PlaintextType)
        types[name] = kind
    return types


def main() -> None:
    parser = argparse.ArgumentParser(description="Score the breast-cancer data set, encrypted.")
    parser.add_argument("--ranks", type=int, default=2, help="number of processes (default: 2)")
    ranks = parser.parse_args().ranks

    samples, weights, bias, labels = train()
    count, features = samples.shape
    if not 1 <= ranks <= features:
        parser.error(f"found {ranks} ranks, expected 1 to {features}: one feature at least a rank")
    WORK.mkdir(parents=True, exist_ok=True)

    program = Program.from_file(PROGRAM)
    program.verify()
    lowered = program.clone()
    default_pipeline().apply(lowered)
    (WORK / "before.mlir").write_text(program.text())
    (WORK / "after.mlir").write_text(lowered.text())
    print(
        f"program: {PROGRAM.name}; IR before lowering: {WORK / 'before.mlir'}, "
        f"after {default_pipeline()}: {WORK / 'after.mlir'}"
    )

    attribute = parameters_of(program.module)
    assert attribute is not None
    parameters = Parameters.from_attribute(attribute)
    print(parameters.security_bits_statement())
    secret_key = generate_secret_key(parameters)
    public_key = generate_public_key(secret_key)
    save(WORK / "keys.safetensors", {"relinearization": generate_relinearization_key(secret_key)})

    types = element_types(program)

    def encoded(name: str, values: np.ndarray):
        return encode(values, parameters, level=types[name].level, scale=types[name].scale)

    columns = [
        encrypt(encoded("columns", column), public_key)
        for column in track(samples.T, description="encrypting the feature columns")
    ]
    for rank, share in enumerate(np.array_split(np.arange(features), ranks)):
        batch = torch.stack([columns[i].data for i in share])
        save(
            WORK / f"inputs-{rank}.safetensors",
            {"columns": replace(columns[share[0]], data=batch)},
        )
        constant = np.repeat(weights[share, None], parameters.slots, axis=1)
        save(
            WORK / f"materials-{rank}.safetensors",
            {
                "weights": encoded("weights", constant),
                "bias": encoded("bias", np.full(parameters.slots, bias)),
            },
        )

    command = [sys.executable, "-m", "fhelium.tools.run", str(PROGRAM), "--nproc", str(ranks)]
    command += ["--inputs", str(WORK / "inputs-{rank}.safetensors")]
    command += ["--materials", str(WORK / "materials-{rank}.safetensors")]
    command += ["--keys", str(WORK / "keys.safetensors")]
    command += ["--output", str(WORK / "result.safetensors"), "--print-dispatch", "--time"]
    print("running:", " ".join(command[1:]), flush=True)
    code = subprocess.run(command, check=False).returncode
    if code != 0:
        sys.exit(code)

    result = load(WORK / "result.safetensors", parameters)["result"]
    assert isinstance(result, Ciphertext)
    scores = decode(decrypt(result, secret_key), count).real
    plain = sigmoid3(samples @ weights + bias)
    error = np.abs(scores - plain).max()
    agreement = int(((scores > 0.5) == (plain > 0.5)).sum())
    correct = int(((scores > 0.5) == labels.astype(bool)).sum())
    print(f"accuracy under encryption: {correct}/{count} against the true labels")
    print(
        f"demo: ranks={ranks} samples={count} max_abs_error={error:.2e} "
        f"label_agreement={agreement}/{count}"
    )


if __name__ == "__main__":
    main()
