"""Which secret a key or ciphertext belongs to: a random name, drawn together with the secret.

A `key_id` is 32 hexadecimal digits that say nothing of the secret. Keys take it from the secret key
that they are made for, ciphertexts from the key that encrypts them; files keep it. None stands for
an object of which nobody knows, such as one from an older file: it goes with every key.
"""

import re
from dataclasses import dataclass

KEY_ID_BYTES = 16

ONE_SECRET = "use keys of one fhelium-keys run, and what was encrypted with them"
"""What helps where objects belong to several secrets."""


def check_key_id(key_id: object) -> None:
    """Raise `ValueError` unless this is the name of a secret, or None."""
    if key_id is None:
        return
    if not isinstance(key_id, str) or not re.fullmatch(f"[0-9a-f]{{{2 * KEY_ID_BYTES}}}", key_id):
        raise ValueError(
            f"key_id is {key_id!r}; expected {2 * KEY_ID_BYTES} hexadecimal digits or None"
        )


@dataclass(frozen=True)
class KeyOwner:
    """The secret that several objects belong to, and the first of them that says so."""

    what: str = "nothing"
    key_id: str | None = None

    def joined_by(self, what: str, key_id: str | None) -> "KeyOwner":
        """Return the owner of these objects and one more. Raises `ValueError` for another owner."""
        if self.key_id is None:
            return KeyOwner(what, key_id)
        if key_id not in (None, self.key_id):
            raise ValueError(
                f"{what} is of the secret key {key_id[:8]}, expected {self.key_id[:8]} like "
                f"{self.what}: {ONE_SECRET}"
            )
        return self
