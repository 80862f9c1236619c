"""Compiled kernels of superpixel segmentation: feature rows times weights and back, the Gram form, a labelling's value.

Rows are float32 or uint8 codes, sums are float64 (layouts as in `segmentation`).
"""

from __future__ import annotations

import numpy as np
from numba import njit

from gapwise.stages.problems.compiled import inner
from gapwise.stages.problems.protocol import FAST, JIT, PLAIN, U, dot
from gapwise.stages.problems.simd import LINE, prefetch

# Scores take one row at a time: they are bound by memory, and one stream reads faster than several at once (40 us per image
# against 50 to 70 us for 2 to 8 rows per inner loop). A push finds its rows in a cache, so eight rows share the loads
# and stores of w. Each row is sliced first, because indices with offsets compile to slower loops.

PIECE = 1280
"""Bytes of a row that are multiplied between two prefetches."""

PREFETCHED = 8192
"""How many bytes before they are read rows are asked for: the processor foresees less, and begins anew at every page."""


GROUP = 4
"""Rows, and labels, whose products are summed at the same time: 16 sums for eight numbers read."""


@inner(**PLAIN)
def rows_dot(x, scale, first, w, out):
    """out[k] <- scale <x[first + k], w> for all k."""
    size, end = w.size, (first + out.size) * w.size
    piece, fetched, line = PIECE // x.itemsize, PREFETCHED // x.itemsize, LINE // x.itemsize
    for k in range(out.size):
        row, later, total = x[first + k], (first + k) * size + fetched, 0.0
        for start in range(0, size, piece):
            stop = min(start + piece, size)
            for j in range(later + start, min(later + stop, end), line):
                prefetch(x, j)
            total += dot(row[start:stop], w[start:stop])
        out[k] = scale * total


@inner(**FAST)
def axpy4(a, p, b, q, c, r, d, s, w):
    for j in range(w.size):
        w[j] += (a * p[j] + b * q[j]) + (c * r[j] + d * s[j])


@inner(**FAST)
def axpy8(a, p, b, q, c, r, d, s, e, t, f, u, g, v, h, x, w):
    for j in range(w.size):
        w[j] += ((a * p[j] + b * q[j]) + (c * r[j] + d * s[j])) + ((e * t[j] + f * u[j]) + (g * v[j] + h * x[j]))


@inner(**PLAIN)
def _nonzero(delta, k):
    """The first place from k on where delta is not zero; delta.size if all are."""
    while k < delta.size and delta[k] == 0.0:
        k += 1
    return k


@inner(**PLAIN)
def _row(x, first, step, delta, k, other):
    """step delta[k] and row k; past the end 0 and row `other`."""
    if k < delta.size:
        return step * delta[k], x[first + k]
    return 0.0, x[first + other]


@inner(**PLAIN)
def rows_add(x, first, step, delta, w):
    """w += step sum_k delta[k] x[first + k]; skips zero entries and takes the others eight or four per pass over w."""
    k = _nonzero(delta, 0)
    while k < delta.size:
        k1 = _nonzero(delta, k + 1)
        k2 = _nonzero(delta, k1 + 1)
        k3 = _nonzero(delta, k2 + 1)
        k4 = _nonzero(delta, k3 + 1)
        a, p = _row(x, first, step, delta, k, k)
        b, q = _row(x, first, step, delta, k1, k)
        c, r = _row(x, first, step, delta, k2, k)
        d, s = _row(x, first, step, delta, k3, k)
        if k4 >= delta.size:
            axpy4(a, p, b, q, c, r, d, s, w)
            return
        k5 = _nonzero(delta, k4 + 1)
        k6 = _nonzero(delta, k5 + 1)
        k7 = _nonzero(delta, k6 + 1)
        e, t = _row(x, first, step, delta, k4, k)
        f, u = _row(x, first, step, delta, k5, k)
        g, v = _row(x, first, step, delta, k6, k)
        h, y = _row(x, first, step, delta, k7, k)
        axpy8(a, p, b, q, c, r, d, s, e, t, f, u, g, v, h, y, w)
        k = _nonzero(delta, k7 + 1)


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
def without_cut(total, of_edges, y, edges):
    """`total` less the scores of the edges (E, 2) whose ends have different labels."""
    for e in range(of_edges.size):
        if y[U(edges[e, 0])] != y[U(edges[e, 1])]:
            total -= of_edges[e]
    return total


@inner(**FAST)
def labelling_value(theta, y, edges):
    """<theta, m_i(y)>; edges (E, 2) are those of the block."""
    total = 0.0
    for p in range(y.size):
        total += theta[p] * (2.0 * y[p] - 1.0)
    return without_cut(total, theta[y.size :], y, edges)


@inner(**PLAIN)
def add_cut(y, c, edges, of_edges):
    """of_edges -= c [y_p != y_q] on edges (E, 2) of the block."""
    for e in range(of_edges.size):
        if y[U(edges[e, 0])] != y[U(edges[e, 1])]:
            of_edges[e] -= c


@inner(**PLAIN)
def add_labelling(y, c, edges, out):
    """out += c m_i(y); edges (E, 2) are those of the block."""
    for p in range(y.size):
        out[p] += c * (2.0 * y[p] - 1.0)
    add_cut(y, c, edges, out[y.size :])


@njit(**FAST)
def products(x0, x1, x2, x3, a, b, c, d):
    """<x, a>, <x, b>, <x, c>, <x, d> of four rows x, label by label; every number is read once."""
    p0 = p1 = p2 = p3 = q0 = q1 = q2 = q3 = r0 = r1 = r2 = r3 = s0 = s1 = s2 = s3 = 0.0
    for j in range(x0.size):
        v0, v1, v2, v3 = x0[j], x1[j], x2[j], x3[j]
        e, f, g, h = a[j], b[j], c[j], d[j]
        p0, p1, p2, p3 = p0 + v0 * e, p1 + v1 * e, p2 + v2 * e, p3 + v3 * e
        q0, q1, q2, q3 = q0 + v0 * f, q1 + v1 * f, q2 + v2 * f, q3 + v3 * f
        r0, r1, r2, r3 = r0 + v0 * g, r1 + v1 * g, r2 + v2 * g, r3 + v3 * g
        s0, s1, s2, s3 = s0 + v0 * h, s1 + v1 * h, s2 + v2 * h, s3 + v3 * h
    return p0, p1, p2, p3, q0, q1, q2, q3, r0, r1, r2, r3, s0, s1, s2, s3


@njit(**PLAIN)
def label_scores(x, first, size, labels, w, out, of_row, of_label):
    """out[of_row p + of_label k] <- <x[first + p], w_k> with w_k = w[k D:(k + 1) D], D the width of x."""
    width = x.shape[1]
    grouped = labels // GROUP * GROUP
    for p in range(0, size, GROUP):
        # where rows or labels do not fill a group, the last is read several times
        rows, last = first + p, first + size - 1
        x0, x1, x2, x3 = x[rows], x[min(rows + 1, last)], x[min(rows + 2, last)], x[min(rows + 3, last)]
        for k in range(0, grouped, GROUP):
            begin = k * width
            a, b = w[begin : begin + width], w[begin + width : begin + 2 * width]
            c, d = w[begin + 2 * width : begin + 3 * width], w[begin + 3 * width : begin + 4 * width]
            sums = products(x0, x1, x2, x3, a, b, c, d)
            for j in range(GROUP):
                for r in range(min(GROUP, size - p)):
                    out[of_row * (p + r) + of_label * (k + j)] = sums[GROUP * j + r]
        for k in range(grouped, labels):
            a = w[k * width : (k + 1) * width]
            for r in range(min(GROUP, size - p)):
                out[of_row * (p + r) + of_label * k] = dot(x[rows + r], a)
