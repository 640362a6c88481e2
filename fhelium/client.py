"""What the owner of the data needs: parameters, keys, encryption and files, in one place.

    from fhelium.client import PRESETS, decode, decrypt, encode, encrypt, generate_keys

    parameters = PRESETS["N13"]
    secret_key, public_key = generate_keys(parameters)
    x = encrypt(encode([0.5, -0.25], parameters), public_key)
    print(decode(decrypt(x, secret_key), 2).real)

Keys for the computation come from `generate_relinearization_key`, `generate_rotation_key` and
`generate_conjugation_key`, or all that a program asks for from the command `fhelium-keys`. `save`
and `load` read and write everything but secret keys, which have `save_secret_key` and
`load_secret_key`. Results that others will see are decrypted by `decrypt_to_publish`.

`pack` and `unpack` bring samples to the slots of a packed program and back.

Every name is documented where it is defined, in `fhelium.scheme`.
"""

from fhelium.scheme.ciphertext import Ciphertext, Plaintext
from fhelium.scheme.encoding import decode, encode, largest_value
from fhelium.scheme.encryption import decrypt, decrypt_to_publish, encrypt
from fhelium.scheme.files import FileFormatError, load, load_secret_key, save, save_secret_key
from fhelium.scheme.keys import (
    PublicKey,
    SecretKey,
    SwitchingKey,
    generate_conjugation_key,
    generate_keys,
    generate_public_key,
    generate_relinearization_key,
    generate_rotation_key,
    generate_secret_key,
)
from fhelium.scheme.packing import pack, unpack
from fhelium.scheme.parameters import Parameters
from fhelium.scheme.presets import PRESETS
from fhelium.scheme.security import InsecureParametersError

__all__ = [
    "PRESETS",
    "Ciphertext",
    "FileFormatError",
    "InsecureParametersError",
    "Parameters",
    "Plaintext",
    "PublicKey",
    "SecretKey",
    "SwitchingKey",
    "decode",
    "decrypt",
    "decrypt_to_publish",
    "encode",
    "encrypt",
    "generate_conjugation_key",
    "generate_keys",
    "generate_public_key",
    "generate_relinearization_key",
    "generate_rotation_key",
    "generate_secret_key",
    "largest_value",
    "load",
    "load_secret_key",
    "pack",
    "save",
    "save_secret_key",
    "unpack",
]
