"""From numpy arrays to a decrypted result, without writing IR."""

import numpy as np

from fhelium.backend import Compilation, OperationBackend, generate_program_keys
from fhelium.client import PRESETS, Ciphertext, decode, decrypt, encode, encrypt, generate_keys
from fhelium.frontends.tracing import trace

parameters = PRESETS["N14"]
secret_key, public_key = generate_keys(parameters)

# The computation: a Python function on encrypted vectors, which becomes a program.
program = trace(lambda x, y: 0.5 * x * y + x.rotate(1) - y**3, parameters)
keys = generate_program_keys(program, secret_key)
executable = OperationBackend(named_resources=keys).link(Compilation(program))

x, y = np.random.default_rng().uniform(-1, 1, (2, parameters.slots))
encrypted = [encrypt(encode(values, parameters), public_key) for values in (x, y)]
result = executable.run(*encrypted)
assert isinstance(result, Ciphertext)
decrypted = decode(decrypt(result, secret_key)).real

error = np.abs(decrypted - (0.5 * x * y + np.roll(x, -1) - y**3)).max()
print(f"{parameters.slots} slots, largest error {error:.1e}")
assert error < 1e-5
