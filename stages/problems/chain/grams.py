"""Norms of directions from inner products of tokens: they read no features.

A block of T tokens has its T x T Gram matrix G, with which ||B delta||^2 = sum_k delta_k' G delta_k without the
transitions: float32 numbers gram[start:start + T * T]. A block of more than `LONGEST` tokens has none (`Chain.norm2`).
"""

from __future__ import annotations

from gapwise.stages.problems.compiled import inner
from gapwise.stages.problems.protocol import PLAIN, U
from gapwise.stages.problems.simd import WIDTH, lowest_bit, nonzero_bits

BITS = 64


@inner(**PLAIN)
def nonzeros(x, start, size):
    """0 if x[start:start + size] is 0; bit j of at most 64 says whether x[start + j] is not."""
    bits, o = U(0), U(start)
    if size < WIDTH:
        for j in range(size):
            bits |= U(1 if x[o + U(j)] != 0.0 else 0) << U(j)
        return bits
    for j in range(0, size, WIDTH):
        k = U(min(j, size - WIDTH))
        bits |= nonzero_bits(x, o + k) << (k % U(BITS))
    return bits


@inner(**PLAIN)
def nodes_norm2(gram, start, delta, T, K):
    """||B delta||^2 without the transitions; numbers of delta that are 0 cost nothing."""
    total = 0.0
    for t in range(T):
        row, here = U(start + t * T), U(t)
        for first in range(0, K, BITS):
            bits = nonzeros(delta, t * K + first, min(BITS, K - first))
            while bits != U(0):
                k = U(first) + lowest_bit(bits)
                bits &= bits - U(1)
                x = delta[here * U(K) + k]
                cross = 0.5 * gram[row + here] * x
                for s in range(here):
                    cross += gram[row + s] * delta[s * U(K) + k]
                total += 2.0 * x * cross
    return max(total, 0.0)


@inner(**PLAIN)
def differing(y, z, T, positions):
    """positions[:count] <- the tokens where two labellings differ; returns count. Branch-free: a branch would mispredict."""
    count = 0
    for t in range(T):
        positions[count] = t
        count += 1 if y[t] != z[t] else 0
    return count


@inner(**PLAIN)
def pair_nodes_norm2(gram, start, y, z, T, K, work):
    """||B (m(y) - m(z))||^2 without the transitions. work (at least T,) is workspace."""
    total = 0.0
    for j in range(differing(y, z, T, work)):
        here = U(work[U(j)])
        a, b, row = y[here], z[here], U(start) + here * U(T)
        total += 2.0 * gram[row + here]
        for k in range(j):
            s = U(work[U(k)])
            common = (1 if a == y[s] else 0) + (1 if b == z[s] else 0)
            common -= (1 if a == z[s] else 0) + (1 if b == y[s] else 0)
            total += 2.0 * common * gram[row + s]
    return total


@inner(**PLAIN)
def add_edges_norm2(total, y, z, T, K, counts):
    """`total` plus the transitions' share of ||B (m(y) - m(z))||^2. counts (K * K,) is workspace."""
    for t in range(1, T):
        counts[U(y[t - 1]) * U(K) + U(y[t])] = 0.0
        counts[U(z[t - 1]) * U(K) + U(z[t])] = 0.0
    for t in range(1, T):
        counts[U(y[t - 1]) * U(K) + U(y[t])] += 1.0
        counts[U(z[t - 1]) * U(K) + U(z[t])] -= 1.0
    for t in range(1, T):
        for x in (y, z):
            pair = U(x[t - 1]) * U(K) + U(x[t])
            total += counts[pair] * counts[pair]
            counts[pair] = 0.0
    return max(total, 0.0)


@inner(**PLAIN)
def add_edges(y, z, T, K, c, out):
    """out (K, K) += c times the transitions of m(y) - m(z)."""
    for t in range(1, T):
        out[U(y[U(t - 1)]) * U(K) + U(y[U(t)])] += c
        out[U(z[U(t - 1)]) * U(K) + U(z[U(t)])] -= c
