"""Kernels for the host's CPU, generated as IR in xDSL's `llvm` dialect.

In the order in which a kernel comes to life: `builder` writes IR, `residues` is exact arithmetic on
vectors of float64 with bounds that are tracked as it is written, `transforms`, `elementwise`,
`products`, `conversion` and `gather` build the kernels, `digits`, `key_switching` and `fused` fuse
them for whole ops, and `schedule` orders the transforms; those of the client are in `fft`,
`reduction`, `mixed_radix` and `sampling`. `catalogue` names them and checks their `sizes`,
`compiler` makes machine code for the `host` and `cache` keeps it, named by the `sources`. None of
these imports torch. `loader` brings the code into the process, `launch` calls it on `threads` with
the `tables` of a ring (`fft_tables` for `fft`), `buffers` lends and recycles memory, `operations`
and `client` have the functions of the reference kernels beside this folder, and `ciphertexts` the
ops that take several.
"""

# First of all: it has to see the sources before they are imported.
import fhelium.kernels.cpu.sources  # noqa: F401
