"""Feature rows times the weights of all labels, for Potts segmentation."""

from __future__ import annotations

from numba import njit

from gapwise.stages.problems.protocol import FAST, PLAIN, dot

GROUP = 4
"""Rows, and labels, whose products are summed at the same time: 16 sums for eight numbers read."""


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
def label_scores(x, first, size, labels, w, out):
    """out[k size + p] <- <x[first + p], w_k> with w_k = w[k D:(k + 1) D], D the width of x."""
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
                    out[(k + j) * size + p + r] = sums[GROUP * j + r]
        for k in range(grouped, labels):
            a = w[k * width : (k + 1) * width]
            for r in range(min(GROUP, size - p)):
                out[k * size + p + r] = dot(x[rows + r], a)
