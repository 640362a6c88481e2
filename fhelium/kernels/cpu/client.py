"""What encoding, encryption and key generation need beside `operations`, compiled.

The functions have the arguments of their references, and all but `coefficients` the same bits.
They need a host with fused multiply-add and tensors on the CPU: `fhelium.kernels.selection` sees to
that.
"""

from collections.abc import Sequence
from functools import lru_cache
from math import frexp, prod

import numpy as np
import numpy.typing as npt
import torch

from fhelium.kernels import sampling
from fhelium.kernels.cpu import tables
from fhelium.kernels.cpu.catalogue import KernelSpec
from fhelium.kernels.cpu.fft import vector_width
from fhelium.kernels.cpu.fft_tables import embedding_tables
from fhelium.kernels.cpu.host import Host, host
from fhelium.kernels.cpu.launch import Rows, launch, launch_planes
from fhelium.kernels.cpu.loader import compiled
from fhelium.kernels.cpu.reduction import DIGIT_BITS, INTEGER_BITS, WORD_BITS
from fhelium.kernels.cpu.sampling import GROUP
from fhelium.kernels.embedding import Slots
from fhelium.kernels.ring import MAXIMUM_PRIME_BITS, Ring
from fhelium.kernels.sampling import Words

BLOCK_WORDS = 1 << 9
"""Words of each limb that one item of `centred_values` works on."""

Tensor = torch.Tensor
Limbs = tuple[int, ...]


def coefficients(slots: Slots, scale: float) -> Tensor:
    """Return the scaled and rounded coefficients; see `fhelium.kernels.embedding.coefficients`.

    A coefficient may round to the other neighbour where it lies within the error of float64 of the
    middle between two.
    """
    count, machine = slots.shape[-1], _host()
    slots = np.ascontiguousarray(slots)
    result = torch.empty((*slots.shape[:-1], 2 * count), dtype=torch.float64)
    memory = torch.empty_like(result)
    width = vector_width(count, machine.width)
    order, factors = embedding_tables(count, width)
    # Numbers of slots are powers of two, so this product with the scale is the only rounding.
    scales = np.array([scale / count])
    words = (slots.ctypes.data, order.ctypes.data, factors.ctypes.data, memory.data_ptr())
    kernel = compiled(KernelSpec("embedding", (count,), width), machine)
    scale_word = int(scales.view(np.int64)[0])
    items = prod(slots.shape[:-1])
    launch(kernel, items, (*words, result.data_ptr(), scale_word), result.numel())
    return result


def from_integers(ring: Ring, limbs: Limbs, integers: Tensor) -> Tensor:
    """Return small integers as residues; see `fhelium.kernels.basis.from_integers`."""
    return _for_each_limb("from_integers", (), limbs, integers, tables.moduli(ring, limbs))


def from_doubles(ring: Ring, limbs: Limbs, integers: Tensor) -> Tensor:
    """Return integral float64 as residues; see `fhelium.kernels.embedding.from_doubles`."""
    least, greatest = integers.aminmax() if integers.numel() else (0.0, 0.0)
    _, bits = frexp(max(-float(least), float(greatest)))
    digits = 1 + max(0, -(-(bits - INTEGER_BITS) // DIGIT_BITS))
    table = ring.cached(
        ("cpu-from-doubles", limbs),
        lambda: tables.with_constants(
            ring, limbs, ring.residues(limbs, 1 << DIGIT_BITS, tables.CPU)
        ),
    )
    return _for_each_limb("from_doubles", (digits,), limbs, integers.view(torch.int64), table)


def centred_values(ring: Ring, limbs: Limbs, x: Tensor) -> Tensor:
    """Return the centred integers behind x; see `fhelium.kernels.mixed_radix.centred_values`."""
    ring.check(limbs, x)
    result = torch.empty((*x.shape[:-2], x.shape[-1]), dtype=torch.float64)
    inverses = ring.cached(("cpu-mixed-radix", limbs), lambda: _inverses(ring, limbs))
    machine, block = _host(), min(BLOCK_WORDS, ring.ring_degree)
    blocks = ring.ring_degree // block
    # The kernel overwrites its input.
    source = Rows.of(x.clone(memory_format=torch.contiguous_format))
    words = (
        *(block, blocks, len(limbs), tables.moduli(ring, limbs).data_ptr(), inverses.data_ptr()),
        *(*source.words, result.data_ptr(), ring.ring_degree, 0),
    )
    kernel = compiled(KernelSpec("centred_values", (), min(machine.width, block)), machine)
    launch(kernel, source.polynomials * blocks, words, x.numel())
    return result


def _inverses(ring: Ring, limbs: Limbs) -> Tensor:
    """Return q_i^-1 modulo q_j for j > i, and zeros: float64 `[limbs, limbs]`."""
    primes = [ring.primes[limb] for limb in limbs]
    rows = [
        [pow(prime, -1, other) if j > i else 0 for j, other in enumerate(primes)]
        for i, prime in enumerate(primes)
    ]
    return torch.tensor(rows, dtype=torch.float64)


def multiply_add(
    ring: Ring, limbs: Limbs, x: Tensor, y: Tensor, z: Tensor, out: Tensor | None = None
) -> Tensor:
    """Return x + y z; see `fhelium.kernels.pointwise.multiply_add`."""
    for name, operand in (("x", x), ("y", y), ("z", z)):
        ring.check(limbs, operand, name)
    shape = torch.broadcast_shapes(x.shape, y.shape, z.shape)
    result = torch.empty(shape, dtype=torch.int64) if out is None else out
    launch_planes(_host(), "multiply_add", tables.moduli(ring, limbs), [x, y, z], result)
    return result


def gaussian(words: Words, signs: npt.NDArray[np.uint8], thresholds: Words) -> Tensor:
    """Return how many thresholds each word reaches, signed; see `fhelium.kernels.sampling`."""
    count, machine = len(words), _host()
    missing = -count % GROUP
    if missing:
        words = np.pad(words, (0, missing))
    signs = np.pad(signs, (0, len(words) // 8 - len(signs)))
    result = torch.empty(len(words), dtype=torch.int64)
    arguments = (
        *(words.ctypes.data, signs.ctypes.data, thresholds.ctypes.data, len(thresholds)),
        result.data_ptr(),
    )
    kernel = compiled(KernelSpec("gaussian", (), machine.width), machine)
    launch(kernel, len(words) // GROUP, arguments, len(words))
    return result[:count]


def reduce_words(primes: Sequence[int], words: Words) -> None:
    """Replace words by their residues; see `fhelium.kernels.sampling.reduce_words`."""
    if not 2 < min(primes) <= max(primes) < 1 << MAXIMUM_PRIME_BITS:
        sampling.reduce_words(primes, words)
        return
    residues = torch.from_numpy(words.view(np.int64))
    launch_planes(_host(), "from_words", _word_table(tuple(primes)), [residues], residues)


@lru_cache(maxsize=16)
def _word_table(primes: tuple[int, ...]) -> Tensor:
    """Return q, fl(1/q) and 2^32 modulo q for each prime."""
    rows = [(prime, 1 / prime, (1 << WORD_BITS) % prime) for prime in primes]
    return torch.tensor(rows, dtype=torch.float64)


def _host() -> Host:
    machine = host()
    assert machine is not None, "these kernels need fused multiply-add"
    return machine


def _for_each_limb(
    name: str, sizes: tuple[int, ...], limbs: Limbs, words: Tensor, table: Tensor
) -> Tensor:
    """Run a kernel that makes `[..., limbs, N]` of words `[..., N]`."""
    shape = (*words.shape[:-1], len(limbs), words.shape[-1])
    result = torch.empty(shape, dtype=torch.int64)
    launch_planes(_host(), name, table, [words.unsqueeze(-2)], result, sizes)
    return result
