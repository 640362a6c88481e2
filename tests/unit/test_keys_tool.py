"""`fhelium-keys`: exactly the keys of a program, whole sets of files, and every refusal."""

import os
import stat
from pathlib import Path

import numpy as np
import pytest
import torch

from fhelium.scheme import files
from fhelium.scheme.ciphertext import Ciphertext
from fhelium.scheme.encoding import decode, encode
from fhelium.scheme.encryption import decrypt, encrypt
from fhelium.scheme.files import load, load_secret_key, save, save_secret_key
from fhelium.scheme.keys import PublicKey, SecretKey, SwitchingKey, generate_secret_key
from fhelium.scheme.parameters import Parameters
from fhelium.tools import run as run_tool
from fhelium.tools.keys import EVALUATION_KEYS, PUBLIC_KEY, SECRET_KEY, main

# 128-bit security: secret keys are loaded without anyone's consent to less.
PARAMETERS = Parameters.build(ring_degree=8192, depth=1, scale_bits=40)

PROGRAM = """
!ct = !ckks.ciphertext<level = 1, scale = 2^40, components = 2, form = evaluation>

builtin.module attributes {ckks.parameters = PARAMETERS} {
  func.func @main(%x: !ct) -> !ct {
    %left = fhelium.resource @left : !ckks.key<rotation, 1>
    %right = fhelium.resource @right : !ckks.key<rotation, -2>
    %spare = fhelium.resource @spare : !ckks.key<relinearization>
    %a = ckks.rotate %x by 1 with %left : !ct, !ckks.key<rotation, 1>
    %b = ckks.rotate %x by -2 with %right : !ct, !ckks.key<rotation, -2>
    %sum = ckks.add %a, %b : !ct
    func.return %sum : !ct
  }
}
"""


class Workplace:
    """A folder with a program, and a folder for keys."""

    def __init__(self, folder: Path, capfd: pytest.CaptureFixture[str]):
        self.folder, self.capfd = folder, capfd
        self.out = folder / "keys"
        self.program(PROGRAM)

    def program(self, text: str, parameters: Parameters = PARAMETERS) -> None:
        text = text.replace("PARAMETERS", str(parameters.to_attribute()))
        (self.folder / "program.mlir").write_text(text)

    def run(self, *arguments: str) -> str:
        """Run with success and return what was printed."""
        given = [str(self.folder / "program.mlir"), "--out", str(self.out), *arguments]
        assert main(given) == 0
        captured = self.capfd.readouterr()
        assert captured.err == ""
        return captured.out

    def fails(self, *arguments: str) -> str:
        """Run with exit code 1, every file as it was, and return the message."""
        before = self.contents()
        given = [str(self.folder / "program.mlir"), "--out", str(self.out), *arguments]
        assert main(given) == 1
        captured = self.capfd.readouterr()
        assert captured.err.startswith("fhelium-keys: ")
        assert "Traceback" not in captured.err
        assert "wrote" not in captured.out
        assert self.contents() == before
        return captured.err

    def contents(self) -> dict[Path, bytes]:
        return {path: path.read_bytes() for path in self.folder.rglob("*") if path.is_file()}

    def secret_key(self) -> SecretKey:
        return load_secret_key(self.out / SECRET_KEY)


@pytest.fixture
def work(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Workplace:
    return Workplace(tmp_path, capfd)


def test_exactly_the_keys_of_the_program(work: Workplace):
    printed = work.run()
    assert sorted(os.listdir(work.out)) == sorted([SECRET_KEY, PUBLIC_KEY, EVALUATION_KEYS])
    keys = load(work.out / EVALUATION_KEYS, PARAMETERS)
    assert {
        name: (key.kind, key.step) for name, key in keys.items() if isinstance(key, SwitchingKey)
    } == {"left": ("rotation", 1), "right": ("rotation", -2)}
    public_key = load(work.out / PUBLIC_KEY, PARAMETERS)["public_key"]
    assert isinstance(public_key, PublicKey)
    found = decode(decrypt(encrypt(encode([0.5], PARAMETERS), public_key), work.secret_key()), 1)
    assert abs(found[0] - 0.5) < 1e-4
    assert "128-bit classical security" in printed
    assert (
        f"wrote {work.out / EVALUATION_KEYS}: 0.79 MB, @left (rotation by 1), @right (" in printed
    )
    assert f"wrote {work.out / SECRET_KEY}: 0.01 MB, the secret key: keep it" in printed


def test_modes(work: Workplace):
    previous = os.umask(0o022)
    try:
        work.run()
    finally:
        os.umask(previous)
    modes = {name: stat.S_IMODE((work.out / name).stat().st_mode) for name in os.listdir(work.out)}
    assert modes == {SECRET_KEY: 0o600, PUBLIC_KEY: 0o644, EVALUATION_KEYS: 0o644}


def test_program_runs_with_the_keys(work: Workplace):
    work.run()
    values = np.linspace(-1, 1, PARAMETERS.slots)
    x = encrypt(encode(values, PARAMETERS), work.secret_key())
    save(work.folder / "inputs", {"x": x})
    arguments = [str(work.folder / "program.mlir"), "--inputs", str(work.folder / "inputs")]
    arguments += ["--keys", str(work.out / EVALUATION_KEYS)]
    assert run_tool.main([*arguments, "--output", str(work.folder / "result")]) == 0
    result = load(work.folder / "result", PARAMETERS)["result"]
    assert isinstance(result, Ciphertext)
    expected = np.roll(values, -1) + np.roll(values, 2)
    assert np.abs(decode(decrypt(result, work.secret_key())) - expected).max() < 1e-4


def test_keys_for_a_secret_key_that_is_there(work: Workplace):
    secret_key = generate_secret_key(PARAMETERS)
    place = work.folder / "mine"
    save_secret_key(place, secret_key)
    printed = work.run("--secret-key", str(place))
    assert sorted(os.listdir(work.out)) == sorted([PUBLIC_KEY, EVALUATION_KEYS])
    assert SECRET_KEY not in printed
    public_key = load(work.out / PUBLIC_KEY, PARAMETERS)["public_key"]
    assert isinstance(public_key, PublicKey)
    assert public_key.key_id == secret_key.key_id
    found = decode(decrypt(encrypt(encode([0.5], PARAMETERS), public_key), secret_key), 1)
    assert abs(found[0] - 0.5) < 1e-4


def test_a_secret_key_is_not_replaced_by_accident(work: Workplace):
    work.run()
    place = str(work.out / SECRET_KEY)
    first = work.secret_key().coefficients()
    message = work.fails()
    assert f"{place} exists: make keys for it with --secret-key {place}, or replace it" in message
    save_secret_key(work.folder / "other", generate_secret_key(PARAMETERS))
    message = work.fails("--secret-key", str(work.folder / "other"))
    assert "exists and is not" in message
    assert "choose another --out, so that keys of two secrets do not mix" in message
    # The same key may stay where it is.
    before = (work.out / PUBLIC_KEY).read_bytes()
    work.run("--secret-key", place)
    assert torch.equal(work.secret_key().coefficients(), first)
    assert (work.out / PUBLIC_KEY).read_bytes() != before
    work.run("--force")
    assert not torch.equal(work.secret_key().coefficients(), first)


def test_nothing_secret_is_printed(work: Workplace):
    printed = work.run() + work.fails()
    coefficients = work.secret_key().coefficients().tolist()
    assert str(coefficients[:8])[1:-1] not in printed
    keys = load(work.out / EVALUATION_KEYS, PARAMETERS)
    for key in keys.values():
        assert isinstance(key, SwitchingKey)
        assert key.seed is not None
        assert key.seed.hex() not in printed


def test_a_program_without_keys(work: Workplace):
    work.program("builtin.module attributes {ckks.parameters = PARAMETERS} {}")
    printed = work.run()
    assert sorted(os.listdir(work.out)) == sorted([PUBLIC_KEY, SECRET_KEY])
    assert f"no {EVALUATION_KEYS}: the program uses no switching keys" in printed


def test_insecure_parameters_are_named_so(work: Workplace, parameters: Parameters):
    work.program(PROGRAM.replace("level = 1", "level = 2"), parameters)
    assert "insecure (tests only)" in work.run()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("func.func @main() { func.return }", "found no ckks.parameters on the module, expected"),
        (
            PROGRAM.replace(
                "%b = ckks.rotate %x by -2 with %right : !ct, !ckks.key<rotation, -2>",
                "%again = fhelium.resource @left : !ckks.key<rotation, 2>\n"
                "    %b = ckks.rotate %x by 2 with %again : !ct, !ckks.key<rotation, 2>",
            ),
            "program.mlir:10:14: error: found the key @left of type !ckks.key<rotation, 2>, and",
        ),
        ("module attributes {ckks.parameters = ", "error: "),
    ],
)
def test_programs_that_will_not_do(work: Workplace, text: str, message: str):
    work.program(text)
    assert message in work.fails()
    assert not work.out.exists()


def test_rotations_out_of_range(work: Workplace):
    program = PROGRAM.replace("-2", "4096")
    work.program(program)
    message = work.fails()
    assert "4096" in message
    assert not work.out.exists()


def test_insecure_parameters_that_claim_security(work: Workplace, parameters: Parameters):
    attribute = str(parameters.to_attribute()).replace("security = none", "security = 128")
    work.program(PROGRAM.replace("PARAMETERS", attribute))
    assert "ckks.parameters: N = 64 has no row in the security table" in work.fails()


def test_files_that_will_not_do(work: Workplace):
    assert "No such file" in work.fails("--secret-key", str(work.folder / "absent"))
    other = Parameters.build(ring_degree=8192, depth=1, scale_bits=39)
    save_secret_key(work.folder / "other", generate_secret_key(other))
    message = work.fails("--secret-key", str(work.folder / "other"))
    assert "belongs to other parameters" in message
    save(work.folder / "tensor", {"x": torch.zeros(1)})
    assert "holds no secret key" in work.fails("--secret-key", str(work.folder / "tensor"))
    (work.folder / "keys").write_text("a file")
    assert "keys" in work.fails()


def test_a_folder_in_the_place_of_a_file(work: Workplace):
    (work.out / EVALUATION_KEYS).mkdir(parents=True)
    assert f"{work.out / EVALUATION_KEYS} is a folder: choose another --out" in work.fails()


def test_a_full_disk_leaves_no_part_of_a_set(work: Workplace, monkeypatch: pytest.MonkeyPatch):
    work.run()
    original = files.save

    def full(path: Path, values: dict[str, files.Storable]) -> None:
        if path.name == EVALUATION_KEYS:
            raise OSError(28, "No space left on device")
        original(path, values)

    monkeypatch.setattr(files, "save", full)
    assert "No space left on device" in work.fails("--force")
    assert sorted(os.listdir(work.out)) == sorted([SECRET_KEY, PUBLIC_KEY, EVALUATION_KEYS])
