"""The keys of a program, for a client that links it in its own process."""

from typing import cast

from fhelium.backend.resources import BoundResource, ResourceBindings
from fhelium.frontends.program import Program
from fhelium.passes.ckks_list_required_keys import required_keys
from fhelium.scheme.arguments import check_type
from fhelium.scheme.keys import SecretKey, SwitchingKind, generate_switching_key


def generate_program_keys(program: Program, secret_key: SecretKey) -> ResourceBindings:
    """Generate exactly the switching keys that `program` uses, bound under their symbols.

    Raises `PassFailure` when a symbol stands for two keys, and `ValueError` for a step that the
    parameters do not have. The command `fhelium-keys` does the same for files. Raises `TypeError`
    for anything but a program and a secret key.
    """
    check_type("generate_program_keys", program, Program, fix="as Program.parse returns")
    check_type("generate_program_keys", secret_key, SecretKey)
    return ResourceBindings(
        BoundResource(
            symbol,
            key.resource_kind,
            generate_switching_key(secret_key, cast(SwitchingKind, str(key.kind)), key.step),
        )
        for symbol, key in required_keys(program.module).items()
    )
