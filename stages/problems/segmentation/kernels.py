"""Compiled kernels of superpixel segmentation: feature rows times weights and back, the Gram form, a labelling's value.

Rows are float32 or uint8 codes, sums are float64 (layouts as in `segmentation`).
"""

from __future__ import annotations

import numpy as np

from stages.problems.inner import inner
from stages.problems.prefetch import LINE, prefetch
from stages.problems.protocol import FAST, JIT, PLAIN, U, dot

# Scores take one row at a time: they are bound by memory, and one stream reads faster than several at once (40 us per image
# against 50 to 70 us for 2 to 8 rows per inner loop). A push finds its rows in the cache, so four rows share the loads
# and stores of w. Each row is sliced first, because indices with offsets compile to slower loops.

PIECE = 1280
"""Bytes of a row that are multiplied between two looks ahead."""

AHEAD = 8192
"""How many bytes before they are read rows are asked for: the processor foresees less, and begins anew at every page."""


@inner(**FAST)
def axpy4(a, p, b, q, c, r, d, s, w):
    for j in range(w.size):
        w[j] += (a * p[j] + b * q[j]) + (c * r[j] + d * s[j])


@inner(**PLAIN)
def rows_dot(x, scale, first, w, out):
    """out[k] <- scale <x[first + k], w> for all k."""
    size, end = w.size, (first + out.size) * w.size
    piece, ahead, line = PIECE // x.itemsize, AHEAD // x.itemsize, LINE // x.itemsize
    for k in range(out.size):
        row, later, total = x[first + k], (first + k) * size + ahead, 0.0
        for start in range(0, size, piece):
            stop = min(start + piece, size)
            for j in range(later + start, min(later + stop, end), line):
                prefetch(x, j)
            total += dot(row[start:stop], w[start:stop])
        out[k] = scale * total


@inner(**PLAIN)
def rows_add(x, first, step, delta, w):
    """w += step sum_k delta[k] x[first + k]; skips zero entries and takes the others four per pass over w."""
    a = b = c = 0.0  # coefficients of up to three waiting rows, the latest last
    p = q = r = first
    waiting = 0
    for k in range(delta.size):
        if delta[k] != 0.0:
            d, s = step * delta[k], first + k
            if waiting == 3:
                axpy4(a, x[p], b, x[q], c, x[r], d, x[s], w)
                a = b = c = 0.0
                waiting = 0
            else:
                a, p, b, q, c, r = b, q, c, r, d, s
                waiting += 1
    if waiting > 0:
        axpy4(a, x[p], b, x[q], c, x[r], 0.0, x[r], w)


@inner(**JIT)
def rows_norm2(x, first, delta):
    """||sum_k delta[k] x[first + k]||^2."""
    moved = np.zeros(x.shape[1])
    rows_add(x, first, 1.0, delta, moved)
    return dot(moved, moved)


@inner(**PLAIN)
def gram_form(gram, delta):
    """delta' G delta for a symmetric G stored flat; reads the lower triangle only and skips rows where delta is zero."""
    total, row = 0.0, 0
    for r in range(delta.size):
        v = delta[r]
        if v != 0.0:
            total += v * (2.0 * dot(gram[row : row + r], delta[:r]) + gram[row + r] * v)
        row += delta.size
    return total


@inner(**FAST)
def labelling_value(theta, y, edges):
    """<theta, m_i(y)>; edges (E, 2) are those of the block."""
    total, of_edges = 0.0, theta[y.size :]
    for p in range(y.size):
        total += theta[p] * (2.0 * y[p] - 1.0)
    for e in range(of_edges.size):
        if y[U(edges[e, 0])] != y[U(edges[e, 1])]:
            total -= of_edges[e]
    return total


@inner(**PLAIN)
def add_labelling(y, c, edges, out):
    """out += c m_i(y); edges (E, 2) are those of the block."""
    of_edges = out[y.size :]
    for p in range(y.size):
        out[p] += c * (2.0 * y[p] - 1.0)
    for e in range(of_edges.size):
        if y[U(edges[e, 0])] != y[U(edges[e, 1])]:
            of_edges[e] -= c
