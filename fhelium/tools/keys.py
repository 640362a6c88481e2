"""`fhelium-keys`: make the keys that a program needs.

A secret key, a public key, and one file of exactly the switching keys that the program's ops use,
which `fhelium-run --keys` takes.
"""

import argparse
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import cast

from fhelium.dialects.ckks.parameters import parameters_of
from fhelium.dialects.ckks.types import KeyType
from fhelium.frontends.diagnostics import Fault, ProgramError, place_of
from fhelium.frontends.program import Program
from fhelium.passes.ckks_list_required_keys import required_keys
from fhelium.passes.failure import PassFailure
from fhelium.scheme import files
from fhelium.scheme.keys import (
    SecretKey,
    SwitchingKind,
    generate_public_key,
    generate_secret_key,
    generate_switching_key,
)
from fhelium.scheme.parameters import Parameters
from fhelium.tools.preparation import check_prepared

SECRET_KEY = "secret_key.safetensors"
PUBLIC_KEY = "public_key.safetensors"
EVALUATION_KEYS = "evaluation_keys.safetensors"


class UsageError(ValueError):
    """Something that the command line asks for and that can't be done, in one line."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the tool and return its exit code: 0, 1 for an error, 2 for a bad command line."""
    args = argument_parser().parse_args(arguments)
    try:
        make_keys(args.file, Path(args.out), args.secret_key, args.force)
    except ProgramError as error:
        return fail(error.report())
    except (ValueError, OSError) as error:
        return fail(f"error: {error}")
    return 0


def fail(message: str) -> int:
    """Print a message to standard error."""
    print(f"fhelium-keys: {message.rstrip()}", file=sys.stderr)
    return 1


def argument_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = argparse.ArgumentParser(
        prog="fhelium-keys",
        description="Make the keys that a program needs: a secret key, a public key, and the "
        "switching keys that its ops use.",
        epilog=f"The files are {SECRET_KEY}, {PUBLIC_KEY} and {EVALUATION_KEYS}. Whoever has the "
        "first can decrypt: keep it, and give away the other two.",
    )
    parser.add_argument("file", help="the program, as MLIR text")
    parser.add_argument("--out", metavar="DIR", required=True, help="where the files go")
    parser.add_argument(
        "--secret-key", metavar="FILE", help="make keys for this secret key, and write no new one"
    )
    parser.add_argument(
        "--force",
        action="store_true",
        help="replace a secret key in DIR; what was encrypted for it is lost then",
    )
    return parser


def make_keys(file: str, folder: Path, secret_key_file: str | None, force: bool) -> None:
    """Do what the command line says, and print what was written.

    Raises `ProgramError`, `ValueError` and `OSError`, and leaves every file then as it was.
    """
    program = Program.from_file(file)
    program.verify()
    check_prepared(program, file)
    parameters, keys = needed(program)
    check_secret_key_place(folder / SECRET_KEY, secret_key_file, force)
    print(f"parameters: N = {parameters.ring_degree}, {parameters.security_bits_statement()}")
    if secret_key_file is None:
        secret_key = generate_secret_key(parameters)
    else:
        secret_key = files.load_secret_key(secret_key_file, parameters)
    folder.mkdir(parents=True, exist_ok=True)
    # Written beside their places and moved together, so that a full disk leaves no part of a set.
    with tempfile.TemporaryDirectory(prefix=".fhelium-keys-", dir=folder) as staging:
        names = write(Path(staging), secret_key, keys, with_secret=secret_key_file is None)
        for name in names:
            os.replace(Path(staging) / name, folder / name)
    for name in names:
        size = (folder / name).stat().st_size
        print(f"wrote {folder / name}: {size / 1e6:.2f} MB, {contents(name, keys)}")
    if not keys:
        print(f"no {EVALUATION_KEYS}: the program uses no switching keys")


def needed(program: Program) -> tuple[Parameters, dict[str, KeyType]]:
    """Return the parameters of a program and the switching keys that it uses, by symbol."""
    attribute = parameters_of(program.module)
    if attribute is None:
        raise UsageError(
            "found no ckks.parameters on the module, expected some: fhelium-params prints them"
        )
    try:
        parameters = Parameters.from_attribute(attribute)
    except ValueError as error:
        raise UsageError(f"ckks.parameters: {error}") from None
    try:
        keys = required_keys(program.module)
    except PassFailure as failure:
        place = place_of(failure.operation, program.sources)
        raise ProgramError([Fault(failure.message, place)]) from None
    for symbol, key in keys.items():
        if key.step is not None and not 0 < abs(key.step) < parameters.slots:
            raise UsageError(
                f"found the key @{symbol} for a rotation by {key.step}, expected 1 to "
                f"{parameters.slots - 1} places to the left, or negative for the right"
            )
    return parameters, keys


def check_secret_key_place(place: Path, secret_key_file: str | None, force: bool) -> None:
    """Refuse to replace or to leave behind a secret key that the new keys do not belong to."""
    for name in (SECRET_KEY, PUBLIC_KEY, EVALUATION_KEYS):
        if place.with_name(name).is_dir():
            raise UsageError(f"{place.with_name(name)} is a folder: choose another --out")
    if not place.exists() or force:
        return
    if secret_key_file is None:
        raise UsageError(
            f"{place} exists: make keys for it with --secret-key {place}, or replace it with "
            "--force, after which nothing that was encrypted for it can be decrypted"
        )
    if not os.path.exists(secret_key_file) or not os.path.samefile(place, secret_key_file):
        raise UsageError(
            f"{place} exists and is not {secret_key_file}: choose another --out, so that keys of "
            "two secrets do not mix"
        )


def write(
    folder: Path, secret_key: SecretKey, keys: dict[str, KeyType], *, with_secret: bool
) -> list[str]:
    """Write the files to a folder and return their names, the secret key last."""
    names = [PUBLIC_KEY]
    files.save(folder / PUBLIC_KEY, {"public_key": generate_public_key(secret_key)})
    if keys:
        names.append(EVALUATION_KEYS)
        made = {
            symbol: generate_switching_key(secret_key, kind_of(key), key.step)
            for symbol, key in keys.items()
        }
        files.save(folder / EVALUATION_KEYS, made)
    if with_secret:
        names.append(SECRET_KEY)
        files.save_secret_key(folder / SECRET_KEY, secret_key)
    return names


def kind_of(key: KeyType) -> SwitchingKind:
    """Return the scheme's name of a kind of key."""
    return cast(SwitchingKind, str(key.kind))


def contents(name: str, keys: dict[str, KeyType]) -> str:
    """Return what a file holds, in words."""
    if name == SECRET_KEY:
        return "the secret key: keep it, for whoever has it can decrypt"
    if name == PUBLIC_KEY:
        return "the public key"
    return ", ".join(
        f"@{symbol} ({kind_of(key)}{'' if key.step is None else f' by {key.step}'})"
        for symbol, key in keys.items()
    )


if __name__ == "__main__":
    sys.exit(main())
