"""Compiled kernels of chains for moves between two labellings and for few labellings (`pairs`); layouts as in `chain`."""

from __future__ import annotations

import numpy as np
from numba import njit

from stages.problems.chain_kernels import U
from stages.problems.protocol import PLAIN


@njit(**PLAIN)
def _differing(y, z, T, places):
    """places[:count] <- the tokens where two labellings differ; count. Without a branch, which nothing could predict."""
    count = 0
    for t in range(T):
        places[count] = t
        count += 1 if y[t] != z[t] else 0
    return count


@njit(**PLAIN)
def pair_gram_norm2(y, z, T, K, gram, start, work):
    """||B (m(y) - m(z))||^2; only places where the labellings differ count. work (T + K * K,) is workspace."""
    total, many = 0.0, _differing(y, z, T, work)
    for j in range(many):
        here = U(work[U(j)])
        a, b, row = y[here], z[here], U(start) + here * U(T)
        total += 2.0 * gram[row + here]
        for k in range(j):
            s = U(work[U(k)])
            common = (1 if a == y[s] else 0) + (1 if b == z[s] else 0)
            common -= (1 if a == z[s] else 0) + (1 if b == y[s] else 0)
            total += 2.0 * common * gram[row + s]
    counts = work[T:]
    for t in range(1, T):
        counts[U(y[t - 1]) * U(K) + U(y[t])] = 0.0
        counts[U(z[t - 1]) * U(K) + U(z[t])] = 0.0
    for t in range(1, T):
        counts[U(y[t - 1]) * U(K) + U(y[t])] += 1.0
        counts[U(z[t - 1]) * U(K) + U(z[t])] -= 1.0
    for t in range(1, T):
        place = U(y[t - 1]) * U(K) + U(y[t])
        total += counts[place] * counts[place]
        counts[place] = 0.0
        place = U(z[t - 1]) * U(K) + U(z[t])
        total += counts[place] * counts[place]
        counts[place] = 0.0
    return max(total, 0.0)


@njit(**PLAIN)
def push_pair(ids, values, row_ptr, first, T, labels, c, y, z, w, transitions, work):
    """w += c B (m(y) - m(z))."""
    K, o = U(labels), U(transitions)
    for j in range(_differing(y, z, T, work)):
        here = U(work[U(j)])
        a, b, token = U(y[here]), U(z[here]), U(first) + here
        for r in range(U(row_ptr[token]), U(row_ptr[token + U(1)])):
            row, x = U(ids[U(r)]) * K, c * values[U(r)] if values.size else c
            w[row + a] += x
            w[row + b] -= x
    for t in range(1, T):
        w[o + U(y[t - 1]) * K + U(y[t])] += c
        w[o + U(z[t - 1]) * K + U(z[t])] -= c


@njit(**PLAIN)
def follow_pair(y, z, T, labels, gram, start, c, theta, work):
    """theta += c B' B (m(y) - m(z))."""
    K = U(labels)
    for j in range(_differing(y, z, T, work)):
        here = U(work[U(j)])
        a, b, row = U(y[here]), U(z[here]), U(start) + here * U(T)
        for s in range(U(T)):
            x = c * gram[row + U(s)]
            theta[U(s) * K + a] += x
            theta[U(s) * K + b] -= x
    for t in range(1, T):
        theta[(U(T) + U(y[t - 1])) * K + U(y[t])] += c
        theta[(U(T) + U(z[t - 1])) * K + U(z[t])] -= c


@njit(**PLAIN)
def few_scores(ids, values, row_ptr, first, T, labels_, w, transitions, labels, slots, theta, found):
    """The node and transition scores that the labellings labels[slots] look at; other entries of theta are arbitrary.

    found[k] <- the sum of those of labels[slots[k]]. A token that has one label in all of them counts as 0 in all.
    """
    K, o, p = np.int64(labels_), U(transitions), U(T) * U(labels_)
    first_slot = U(slots[0])
    for t in range(T):
        theta[U(t) * U(K) + U(labels[first_slot, U(t)])] = 0.0
    for slot in slots:
        for t in range(T):
            one, other = U(labels[first_slot, U(t)]), U(labels[U(slot), U(t)])
            mark = 0.0 if one == other else np.nan  # a score that is wanted; NaN stays NaN whatever is added
            theta[U(t) * U(K) + one] += mark
            theta[U(t) * U(K) + other] += mark
    for k in range(slots.size):
        s, total, before = U(slots[k]), 0.0, U(0)
        for t in range(T):
            label = U(labels[s, U(t)])
            score = theta[U(t) * U(K) + label]
            if np.isnan(score):
                score = _one_score(ids, values, row_ptr[first + t], row_ptr[first + t + 1], K, label, w)
                theta[U(t) * U(K) + label] = score
            total += score
            if t > 0:
                step = w[o + before * U(K) + label]
                theta[p + before * U(K) + label] = step
                total += step
            before = label
        found[k] = total


@njit(**PLAIN)
def _one_score(ids, values, start, stop, labels, label, w):
    """Score of one label of one token; four sums side by side, because additions wait for each other."""
    K, k, j, end = U(labels), U(label), U(start), U(stop)
    a, b, c, d = 0.0, 0.0, 0.0, 0.0
    if values.size == 0:
        while j + U(4) <= end:
            a += w[U(ids[j]) * K + k]
            b += w[U(ids[j + U(1)]) * K + k]
            c += w[U(ids[j + U(2)]) * K + k]
            d += w[U(ids[j + U(3)]) * K + k]
            j += U(4)
        while j < end:
            a += w[U(ids[j]) * K + k]
            j += U(1)
    else:
        while j < end:
            a += values[j] * w[U(ids[j]) * K + k]
            j += U(1)
    return (a + b) + (c + d)
