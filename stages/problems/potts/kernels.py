"""Feature rows times the weights of all labels, for Potts segmentation."""

from __future__ import annotations

from numba import njit

from stages.problems.protocol import FAST, PLAIN, dot


@njit(**FAST)
def dot4(x, a, b, c, d):
    """<x, a>, <x, b>, <x, c>, <x, d>: x is read, and made float64, once."""
    p = q = r = s = 0.0
    for j in range(x.size):
        v = x[j]
        p += v * a[j]
        q += v * b[j]
        r += v * c[j]
        s += v * d[j]
    return p, q, r, s


@njit(**PLAIN)
def label_scores(x, first, size, labels, w, out):
    """out[k size + p] <- <x[first + p], w_k> with w_k = w[k D:(k + 1) D], D the width of x."""
    width = x.shape[1]
    k = 0
    while k + 4 <= labels:
        a, b = w[k * width : (k + 1) * width], w[(k + 1) * width : (k + 2) * width]
        c, d = w[(k + 2) * width : (k + 3) * width], w[(k + 3) * width : (k + 4) * width]
        for p in range(size):
            found = dot4(x[first + p], a, b, c, d)
            for j in range(4):
                out[(k + j) * size + p] = found[j]
        k += 4
    while k < labels:
        a = w[k * width : (k + 1) * width]
        for p in range(size):
            out[k * size + p] = dot(x[first + p], a)
        k += 1
