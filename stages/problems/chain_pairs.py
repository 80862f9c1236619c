"""Compiled kernels of chains for moves between two labellings and for few labellings (`pairs`); layouts as in `chain`."""

from __future__ import annotations

import numpy as np
from numba import njit

from stages.problems.chain_kernels import U
from stages.problems.protocol import PLAIN


@njit(**PLAIN)
def pair_gram_norm2(y, z, T, K, gram, start, counts):
    """||B (m(y) - m(z))||^2; only places where the labellings differ count. counts (K * K or more,) is workspace."""
    total = 0.0
    for t in range(T):
        a, b, row = y[t], z[t], U(start + t * T)
        if a == b:
            continue
        total += 2.0 * gram[row + U(t)]
        for s in range(t):
            if y[s] != z[s]:
                common = (1 if a == y[s] else 0) + (1 if b == z[s] else 0)
                common -= (1 if a == z[s] else 0) + (1 if b == y[s] else 0)
                if common != 0:
                    total += 2.0 * common * gram[row + U(s)]
    for t in range(1, T):
        counts[U(y[t - 1]) * U(K) + U(y[t])] = 0.0
        counts[U(z[t - 1]) * U(K) + U(z[t])] = 0.0
    for t in range(1, T):
        counts[U(y[t - 1]) * U(K) + U(y[t])] += 1.0
        counts[U(z[t - 1]) * U(K) + U(z[t])] -= 1.0
    for t in range(1, T):
        for place in (U(y[t - 1]) * U(K) + U(y[t]), U(z[t - 1]) * U(K) + U(z[t])):
            total += counts[place] * counts[place]
            counts[place] = 0.0
    return max(total, 0.0)


@njit(**PLAIN)
def push_pair(ids, values, row_ptr, first, T, labels, c, y, z, w, transitions):
    """w += c B (m(y) - m(z))."""
    K, o = U(labels), U(transitions)
    for t in range(T):
        a, b = U(y[t]), U(z[t])
        if a != b:
            for j in range(row_ptr[first + t], row_ptr[first + t + 1]):
                row, x = U(ids[j]) * K, c * values[j] if values.size else c
                w[row + a] += x
                w[row + b] -= x
        if t > 0 and (a != b or y[t - 1] != z[t - 1]):
            w[o + U(y[t - 1]) * K + a] += c
            w[o + U(z[t - 1]) * K + b] -= c


@njit(**PLAIN)
def follow_pair(y, z, T, K, gram, start, c, theta):
    """theta += c B' B (m(y) - m(z))."""
    for t in range(T):
        if y[t] != z[t]:
            for s in range(T):
                x = c * gram[start + t * T + s]
                theta[s * K + y[t]] += x
                theta[s * K + z[t]] -= x
        if t > 0 and (y[t] != z[t] or y[t - 1] != z[t - 1]):
            theta[(T + np.int64(y[t - 1])) * K + y[t]] += c
            theta[(T + np.int64(z[t - 1])) * K + z[t]] -= c


@njit(**PLAIN)
def few_scores(ids, values, row_ptr, first, T, labels_, w, transitions, labels, slots, theta):
    """The node and transition scores that the labellings labels[slots] look at; other entries of theta are arbitrary."""
    K = np.int64(labels_)
    for t in range(T):
        for s in slots:
            theta[t * K + labels[s, t]] = np.nan
        for s in slots:
            label = np.int64(labels[s, t])
            if np.isnan(theta[t * K + label]):
                theta[t * K + label] = _one_score(ids, values, row_ptr[first + t], row_ptr[first + t + 1], K, label, w)
            if t > 0:
                place = np.int64(labels[s, t - 1]) * K + label
                theta[T * K + place] = w[transitions + place]


@njit(**PLAIN)
def _one_score(ids, values, start, stop, labels, label, w):
    """Score of one label of one token; four sums side by side, because additions wait for each other."""
    K, k, j = U(labels), U(label), start
    a, b, c, d = 0.0, 0.0, 0.0, 0.0
    if values.size == 0:
        while j + 4 <= stop:
            a += w[U(ids[j]) * K + k]
            b += w[U(ids[j + 1]) * K + k]
            c += w[U(ids[j + 2]) * K + k]
            d += w[U(ids[j + 3]) * K + k]
            j += 4
        while j < stop:
            a += w[U(ids[j]) * K + k]
            j += 1
    else:
        while j < stop:
            a += values[j] * w[U(ids[j]) * K + k]
            j += 1
    return (a + b) + (c + d)
