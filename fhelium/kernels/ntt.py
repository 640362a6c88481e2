"""The negacyclic number-theoretic transform, for all limbs at once.

For a prime q let psi be the primitive 2N-th root of unity x^((q-1)/2N) of the smallest x >= 2 that
gives one. Evaluation form holds at index i the value of the polynomial at psi^(2 r(i) + 1), where
r reverses the log2(N) bits of i. The product of two polynomials modulo X^N + 1 is the elementwise
product of their evaluation forms.

Both directions use Cooley-Tukey butterflies (Longa and Naehrig, "Speeding up the Number Theoretic
Transform", 2016, algorithm 1, for the forward one; decimation in time followed by a product with
psi^-k / N for the inverse), and both postpone every reduction to the end.

Bound of the lazy butterfly (u, v) -> (u + t, u - t), t = w v - k q: let |u|, |v| <= B q. The
quotient estimate fl(fl(v) fl(w / q)) has three roundings and |v w / q| < B 2^50, so k differs from
the true quotient by less than 1/2 + (3/8 + 2^-50) B, and B grows to at most 1.376 B + 1/2. From
B = 1 it stays below 530 after 17 stages (N = 2^17), so every value stays below 2^60 and the int64
differences are exact, although the products themselves wrap around.

The transform is split in two passes with a transposition between them, so that the innermost
dimension of every stage is contiguous and at least sqrt(N / 2) long.
"""

from dataclasses import dataclass

import torch

from fhelium.kernels import modular
from fhelium.kernels.ring import Ring, runs

Tensor = torch.Tensor


def ntt(ring: Ring, limbs: tuple[int, ...], x: Tensor) -> Tensor:
    """Transform coefficient form to evaluation form along the last dimension.

    `x` is int64 `[..., components, limbs, N]`, residues in [0, q); so is the result, which does not
    alias it.
    """
    ring.check(limbs, x)
    outer, inner = _split(ring.ring_degree)
    result = x.clone(memory_format=torch.contiguous_format)
    for positions, rows in runs(limbs):
        plan = _plan(ring, x.device).rows(rows)
        part = result[..., positions, :].contiguous()
        matrix = _stages(part.unflatten(-1, (outer, inner)), plan.forward_outer, plan.q)
        matrix = matrix.transpose(-1, -2).contiguous()
        matrix = _stages(matrix, plan.forward_inner, plan.q)
        part = matrix.transpose(-1, -2).reshape(part.shape)
        result[..., positions, :] = modular.reduce(part, plan.q)
    return result


def intt(ring: Ring, limbs: tuple[int, ...], x: Tensor) -> Tensor:
    """Transform evaluation form to coefficient form: the exact inverse of `ntt`."""
    ring.check(limbs, x)
    outer, inner = _split(ring.ring_degree)
    result = torch.empty_like(x, memory_format=torch.contiguous_format)
    for positions, rows in runs(limbs):
        plan = _plan(ring, x.device).rows(rows)
        part = x[..., positions, :]
        matrix = part.unflatten(-1, (outer, inner)).transpose(-1, -2)
        matrix = matrix.clone(memory_format=torch.contiguous_format)
        matrix = _stages(matrix, plan.inverse_inner, plan.q)
        matrix = matrix.transpose(-1, -2).contiguous()
        matrix = _stages(matrix, plan.inverse_outer, plan.q)
        part = modular.reduce(matrix.flatten(-2), plan.q)
        result[..., positions, :] = modular.multiply(part, plan.inverse_scale, plan.q)
    return result


@dataclass(frozen=True)
class _Stage:
    """One level of butterflies on `[..., limbs, blocks, 2, half, width]`.

    `w` and `w_over_q` are the twiddle factors, int64 and float64, `[limbs, blocks or 1, half or 1,
    width or 1]`.
    """

    blocks: int
    half: int
    w: Tensor
    w_over_q: Tensor

    def rows(self, rows: slice) -> "_Stage":
        return _Stage(self.blocks, self.half, self.w[rows], self.w_over_q[rows])


@dataclass(frozen=True)
class _Plan:
    """The tables of one ring on one device; every tensor has the ring's limbs first."""

    q: Tensor
    forward_outer: tuple[_Stage, ...]
    forward_inner: tuple[_Stage, ...]
    inverse_inner: tuple[_Stage, ...]
    inverse_outer: tuple[_Stage, ...]
    inverse_scale: Tensor

    def rows(self, rows: slice) -> "_Plan":
        def cut(stages: tuple[_Stage, ...]) -> tuple[_Stage, ...]:
            return tuple(stage.rows(rows) for stage in stages)

        return _Plan(
            self.q[rows],
            cut(self.forward_outer),
            cut(self.forward_inner),
            cut(self.inverse_inner),
            cut(self.inverse_outer),
            self.inverse_scale[rows],
        )


def _stages(matrix: Tensor, stages: tuple[_Stage, ...], q: Tensor) -> Tensor:
    """Apply the stages in place to a contiguous `[..., limbs, rows, width]` and return it."""
    q = q.view(-1, 1, 1, 1)
    for stage in stages:
        view = matrix.unflatten(-2, (stage.blocks, 2, stage.half))
        u, v = view.select(-3, 0), view.select(-3, 1)
        quotient = v.double().mul_(stage.w_over_q).round_().to(torch.int64)
        t = (v * stage.w).sub_(quotient.mul_(q))
        torch.sub(u, t, out=v)
        u.add_(t)
    return matrix


def _split(ring_degree: int) -> tuple[int, int]:
    """Return (outer, inner) with outer * inner = N, both near sqrt(N)."""
    bits = ring_degree.bit_length() - 1
    return 1 << (bits - bits // 2), 1 << (bits // 2)


def _plan(ring: Ring, device: torch.device) -> _Plan:
    return ring.cached(("ntt", device), lambda: _build_plan(ring, device))


def _build_plan(ring: Ring, device: torch.device) -> _Plan:
    degree, limbs = ring.ring_degree, len(ring.primes)
    outer, inner = _split(degree)
    q = ring.moduli(tuple(range(limbs)), device)
    roots = [primitive_root(prime, degree) for prime in ring.primes]
    inverses = [pow(root, -1, prime) for root, prime in zip(roots, ring.primes, strict=True)]
    forward = powers(ring, roots, device)[:, bit_reversal(degree, device)]
    inverse = powers(ring, inverses, device)
    scale = ring.constants([pow(degree, -1, prime) for prime in ring.primes], device)

    def stage(blocks: int, half: int, w: Tensor) -> _Stage:
        w = w.contiguous()
        return _Stage(blocks, half, w, w.double() / q.double().view(-1, 1, 1, 1))

    def doubling(end: int) -> list[int]:
        return [1 << i for i in range(end.bit_length() - 1)]

    return _Plan(
        q=q,
        # Stage `blocks` of the whole transform uses psi^r(blocks + i) for its block i.
        forward_outer=tuple(
            stage(b, outer // (2 * b), forward[:, b : 2 * b].reshape(limbs, b, 1, 1))
            for b in doubling(outer)
        ),
        forward_inner=tuple(
            stage(
                b,
                inner // (2 * b),
                forward[:, outer * b : 2 * outer * b]
                .reshape(limbs, outer, b)
                .transpose(1, 2)
                .unsqueeze(2),
            )
            for b in doubling(inner)
        ),
        # A stage over blocks of 2 h values multiplies value j of the upper half by psi^(-jN/h).
        inverse_inner=tuple(
            stage(inner // (2 * h), h, inverse[:, :: degree // h].reshape(limbs, 1, h, 1))
            for h in doubling(inner)
        ),
        inverse_outer=tuple(
            stage(
                outer // (2 * h),
                h,
                inverse[:, :: outer // h].reshape(limbs, 1, h, inner),
            )
            for h in doubling(outer)
        ),
        inverse_scale=modular.multiply(inverse, scale, q),
    )


def primitive_root(prime: int, ring_degree: int) -> int:
    """Return psi: the primitive 2N-th root of unity modulo `prime` that this module documents."""
    for x in range(2, 2000):
        root = pow(x, (prime - 1) // (2 * ring_degree), prime)
        if pow(root, ring_degree, prime) == prime - 1:
            return root
    raise ValueError(f"no primitive root of order {2 * ring_degree} modulo {prime}; is it prime?")


def powers(ring: Ring, bases: list[int], device: torch.device) -> Tensor:
    """Return base^0 to base^(N-1) modulo the prime of each limb, int64 `[limbs, N]`."""
    q = ring.moduli(tuple(range(len(ring.primes))), device)
    table = torch.ones_like(q)
    while table.shape[-1] < ring.ring_degree:
        step = [
            pow(base, table.shape[-1], prime)
            for base, prime in zip(bases, ring.primes, strict=True)
        ]
        factor = ring.constants(step, device)
        table = torch.cat([table, modular.multiply(table, factor, q)], dim=-1)
    return table


def bit_reversal(length: int, device: torch.device) -> Tensor:
    """Return r(0) to r(length - 1), int64: the indices with their log2(length) bits reversed."""
    table = torch.zeros(1, dtype=torch.int64, device=device)
    while table.shape[0] < length:
        table = torch.cat([2 * table, 2 * table + 1])
    return table
