"""Parameters to start from: one set for each ring degree from 2^13 to 2^16, at 128 bits.

Changing one breaks every key and ciphertext made with it, so they stay as they are.
"""

from collections.abc import Mapping
from types import MappingProxyType

from fhelium.scheme.parameters import Parameters

PRESETS: Mapping[str, Parameters] = MappingProxyType(
    {
        "N13": Parameters.build(ring_degree=8192, depth=3, scale_bits=38),
        "N14": Parameters.build(ring_degree=16384, depth=7, scale_bits=40, digits=4),
        "N15": Parameters.build(ring_degree=32768, depth=15, scale_bits=42, digits=4),
        "N16": Parameters.build(ring_degree=65536, depth=30, scale_bits=45, digits=5),
    }
)
"""By name: "N14" has N = 2^14. `docs/parameters.md` lists their depth, precision and sizes."""
