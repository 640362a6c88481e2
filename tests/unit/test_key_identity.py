"""Keys know the secret that they are made for: what belongs to another one is refused."""

from pathlib import Path

import numpy as np
import pytest
import torch

from fhelium.backend import (
    BoundResource,
    Compilation,
    LinkError,
    OperationBackend,
    Program,
    ProgramExecutable,
    ResourceBindings,
    generate_program_keys,
)
from fhelium.scheme import files
from fhelium.scheme.ciphertext import Ciphertext
from fhelium.scheme.encoding import decode, encode
from fhelium.scheme.encryption import decrypt, decrypt_to_publish, encrypt
from fhelium.scheme.key_identity import KeyOwner
from fhelium.scheme.keys import (
    PublicKey,
    SecretKey,
    SwitchingKey,
    generate_keys,
    generate_rotation_key,
    generate_secret_key,
)
from fhelium.scheme.parameters import Parameters
from fhelium.scheme.sampling import RandomSource
from fhelium.tools import run as run_tool

PROGRAM = """
!ct = !ckks.ciphertext<level = 1, scale = 2^40, components = 2, form = evaluation>

builtin.module attributes {ckks.parameters = PARAMETERS} {
  func.func @main(%x: !ct, %y: !ct) -> !ct {
    %left = fhelium.resource @left : !ckks.key<rotation, 1>
    %right = fhelium.resource @right : !ckks.key<rotation, -2>
    %a = ckks.rotate %x by 1 with %left : !ct, !ckks.key<rotation, 1>
    %b = ckks.rotate %y by -2 with %right : !ct, !ckks.key<rotation, -2>
    %sum = ckks.add %a, %b : !ct
    func.return %sum : !ct
  }
}
"""
# Insecure, for tests.
PARAMETERS = Parameters.build(ring_degree=32, depth=1, scale_bits=40, insecure=True)
SECRET, PUBLIC = generate_keys(PARAMETERS)
OTHER, OTHER_PUBLIC = generate_keys(PARAMETERS)
VALUES = np.linspace(-1, 1, PARAMETERS.slots)
X, FOREIGN = (encrypt(encode(VALUES, PARAMETERS), key) for key in (PUBLIC, OTHER_PUBLIC))


def short(key: SecretKey) -> str:
    """Return what messages call a key."""
    assert key.key_id is not None
    return key.key_id[:8]


def parsed(text: str = PROGRAM) -> Program:
    return Program.parse(text.replace("PARAMETERS", str(PARAMETERS.to_attribute())), "p.mlir")


def linked(secret_key: SecretKey = SECRET) -> ProgramExecutable:
    program = parsed()
    keys = generate_program_keys(program, secret_key)
    return OperationBackend(named_resources=keys).link(Compilation(program))


def without_name(x: Ciphertext) -> Ciphertext:
    return Ciphertext(x.data, x.parameters, x.level, x.scale)


def test_a_name_is_drawn_with_the_secret_and_passed_on() -> None:
    assert SECRET.key_id != OTHER.key_id
    assert len(bytes.fromhex(SECRET.key_id or "")) == 16
    rotation = generate_rotation_key(SECRET, 1)
    assert PUBLIC.key_id == rotation.key_id == X.key_id == SECRET.key_id
    assert encrypt(encode(VALUES, PARAMETERS), SECRET).key_id == SECRET.key_id
    # Not a function of the secret: two names for one.
    same = SecretKey(PARAMETERS, SECRET.coefficients(), "0" * 32)
    assert same.key_id != SECRET.key_id
    # A seed, which only tests have, gives the name too.
    seeded = [generate_secret_key(PARAMETERS, random=RandomSource(seed=bytes(32))) for _ in "ab"]
    assert seeded[0].key_id == seeded[1].key_id


@pytest.mark.parametrize("key_id", ["", "0" * 31, "0" * 33, "G" * 32, "A" * 32, 7, b"0" * 32])
def test_malformed_names(key_id: str) -> None:
    rotation = generate_rotation_key(SECRET, 1)
    for attempt in (
        lambda: SecretKey(PARAMETERS, SECRET.coefficients(), key_id),
        lambda: PublicKey(PUBLIC.data, PARAMETERS, key_id=key_id),
        lambda: SwitchingKey("rotation", 1, rotation.data, PARAMETERS, key_id=key_id),
        lambda: Ciphertext(X.data, PARAMETERS, 1, X.scale, key_id=key_id),
    ):
        with pytest.raises(ValueError, match="expected 32 hexadecimal digits or None"):
            attempt()


def test_files_keep_it(tmp_path: Path) -> None:
    saved = {"x": X, "left": generate_rotation_key(SECRET, 1), "public": PUBLIC}
    files.save(tmp_path / "values", {**saved, "old": without_name(X)})
    files.save_secret_key(tmp_path / "secret", SECRET)
    loaded = files.load(tmp_path / "values", PARAMETERS)
    for name in saved:
        value = loaded[name]
        assert isinstance(value, Ciphertext | SwitchingKey | PublicKey)
        assert value.key_id == SECRET.key_id
    old = loaded["old"]
    assert isinstance(old, Ciphertext)
    assert old.key_id is None
    assert files.load_secret_key(tmp_path / "secret", PARAMETERS).key_id == SECRET.key_id


def test_decrypting_with_another_key_is_refused() -> None:
    message = (
        f"the ciphertext is of the secret key {short(OTHER)}, expected {short(SECRET)} like the "
        "given key: use keys of one fhelium-keys run"
    )
    with pytest.raises(ValueError, match=message):
        decrypt(FOREIGN, SECRET)
    with pytest.raises(ValueError, match=message):
        decrypt_to_publish(FOREIGN, SECRET, error=1e-12, statistical_bits=1)


def test_a_link_refuses_keys_of_two_secrets() -> None:
    keys = [
        BoundResource("left", "rotation-key", generate_rotation_key(SECRET, 1)),
        BoundResource("right", "rotation-key", generate_rotation_key(OTHER, -2)),
    ]
    with pytest.raises(LinkError) as error:
        OperationBackend(named_resources=ResourceBindings(keys)).link(Compilation(parsed()))
    (fault,) = error.value.faults
    assert str(fault.place).startswith("p.mlir:7:")
    assert (
        f"resource @right is of the secret key {short(OTHER)}, expected {short(SECRET)} like "
        "resource @left" in fault.message
    )


def test_a_link_refuses_ciphertexts_of_another_secret_among_the_materials() -> None:
    program = parsed(
        PROGRAM.replace("%x: !ct, ", "").replace(
            "%left =", "%x = fhelium.material @stored : !ct\n    %left ="
        )
    )
    keys = generate_program_keys(program, SECRET)
    backend = OperationBackend(named_resources=keys)
    backend.link(Compilation(program, {"stored": X}))
    with pytest.raises(LinkError, match="material @stored is of the secret key"):
        backend.link(Compilation(program, {"stored": FOREIGN}))


def test_a_run_refuses_inputs_of_another_secret() -> None:
    executable = linked()
    with pytest.raises(ValueError, match=rf"input 1 is of the secret key {short(OTHER)}, expected"):
        executable.run(X, FOREIGN)
    with pytest.raises(ValueError, match="like resource @left: use keys of one fhelium-keys run"):
        executable.run(FOREIGN, FOREIGN)


def test_results_belong_to_the_secret_of_keys_and_inputs() -> None:
    executable = linked()
    for inputs in ((X, X), (without_name(X), X), (without_name(X), without_name(X))):
        result = executable.run(*inputs)
        assert isinstance(result, Ciphertext)
        assert result.key_id == SECRET.key_id
        expected = np.roll(VALUES, -1) + np.roll(VALUES, 2)
        assert np.abs(decode(decrypt(result, SECRET)) - expected).max() < 1e-6


def test_without_keys_inputs_are_held_against_each_other() -> None:
    text = PROGRAM[: PROGRAM.index("    %left")] + "    %s = ckks.add %x, %y : !ct\n"
    program = parsed(text + "    func.return %s : !ct\n  }\n}\n")
    executable = OperationBackend().link(Compilation(program))
    result = executable.run(X, without_name(X))
    assert isinstance(result, Ciphertext)
    assert result.key_id == SECRET.key_id
    unknown = executable.run(without_name(X), without_name(X))
    assert isinstance(unknown, Ciphertext)
    assert unknown.key_id is None
    # Bare tensors say nothing.
    assert isinstance(executable.run(X.data, FOREIGN.data), torch.Tensor)
    with pytest.raises(ValueError, match=r"input 1 is of .* like input 0"):
        executable.run(X, FOREIGN)


def test_an_owner_is_joined_by_what_nobody_knows() -> None:
    owner = KeyOwner().joined_by("a", None).joined_by("b", "1" * 32).joined_by("c", None)
    assert owner == KeyOwner("b", "1" * 32)


@pytest.mark.parametrize("mode", [[], ["--interpret"], ["--compare-levels"]])
def test_fhelium_run_says_which_files_do_not_go_together(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], mode: list[str]
) -> None:
    text = PROGRAM.replace("PARAMETERS", str(PARAMETERS.to_attribute()))
    (tmp_path / "p.mlir").write_text(text)
    keys = {bound.symbol: bound.value for bound in generate_program_keys(parsed(), OTHER)}
    files.save(tmp_path / "keys", keys)  # pyright: ignore[reportArgumentType]
    files.save(tmp_path / "inputs", {"x": X, "y": X})
    files.save_secret_key(tmp_path / "secret", OTHER)
    paths = [str(tmp_path / name) for name in ("p.mlir", "keys", "inputs", "secret")]
    arguments = [paths[0], "--keys", paths[1], "--inputs", paths[2], *mode]
    if mode:
        arguments += ["--secret-key", paths[3]]
    assert run_tool.main(arguments) == 1
    message = capsys.readouterr().err
    assert f"{'x: the ciphertext' if mode else 'input 0'} is of the secret key" in message
    assert f"{short(SECRET)}, expected {short(OTHER)} like" in message
