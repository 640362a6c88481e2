"""The functions of the reference kernels, with the same arguments and the same bits, compiled.

Tensors that are not on the CPU, and hosts without fused multiply-add, get the reference itself.
"""

import torch

from fhelium.kernels import ntt as reference_ntt
from fhelium.kernels.cpu import tables
from fhelium.kernels.cpu.catalogue import KernelSpec
from fhelium.kernels.cpu.compiler import compiled
from fhelium.kernels.cpu.host import Host, host
from fhelium.kernels.cpu.launch import Rows, launch
from fhelium.kernels.cpu.schedule import Schedule
from fhelium.kernels.ring import Ring

Tensor = torch.Tensor
Limbs = tuple[int, ...]


def ntt(ring: Ring, limbs: Limbs, x: Tensor) -> Tensor:
    """Transform coefficient form to evaluation form; see `fhelium.kernels.ntt.ntt`."""
    return _transform(ring, limbs, x, inverse=False)


def intt(ring: Ring, limbs: Limbs, x: Tensor) -> Tensor:
    """Transform evaluation form to coefficient form: the exact inverse of `ntt`."""
    return _transform(ring, limbs, x, inverse=True)


def _host(*tensors: Tensor) -> Host | None:
    """Return the host if kernels can run on these tensors."""
    return host() if all(tensor.is_cpu for tensor in tensors) else None


def _transform(ring: Ring, limbs: Limbs, x: Tensor, *, inverse: bool) -> Tensor:
    ring.check(limbs, x)
    machine = _host(x)
    if machine is None:
        return (reference_ntt.intt if inverse else reference_ntt.ntt)(ring, limbs, x)
    schedule = Schedule.for_host(ring.ring_degree, machine.width)
    name = "intt" if inverse else "ntt"
    kernel = compiled(KernelSpec(name, (schedule.degree,), schedule.width), machine)
    table = tables.transform_table(ring, schedule, inverse)
    row = tables.rows(ring, limbs)
    result = torch.empty(x.shape, dtype=torch.int64)
    source, target = Rows.of(x), Rows.of(result)
    words = (
        *(source.address, target.address, table.data_ptr(), row.data_ptr()),
        *(source.polynomials, source.polynomial_stride, source.limb_stride),
        *(target.polynomial_stride, target.limb_stride),
    )
    launch(kernel, source.polynomials * len(limbs) if x.numel() else 0, words)
    return result
