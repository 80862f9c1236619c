"""Compiled kernels of chains: sparse scores, Viterbi, Gram norms, sparse updates. Layouts as in `chain`.

Indices are unsigned: with signed ones the compiler must allow for negative, wrapping indices and does not vectorise
(four times slower). Eight rows enter each pass of an inner loop, whose result is then loaded, stored and checked for
overlap only once for all of them.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from stages.problems.protocol import FAST, PLAIN

U = np.uint64

FEW = 4
"""Rows of a direction with at most this many non-zero labels are handled label by label."""


@njit(**PLAIN)
def _binary_scores(ids, start, stop, labels, w, theta, offset):
    """theta[offset:offset + K] <- sum of the weight rows ids[start:stop]."""
    K, o, j = U(labels), U(offset), start
    for b in range(K):
        theta[o + U(b)] = 0.0
    while j + 8 <= stop:
        r0, r1, r2, r3 = U(ids[j]) * K, U(ids[j + 1]) * K, U(ids[j + 2]) * K, U(ids[j + 3]) * K
        r4, r5, r6, r7 = U(ids[j + 4]) * K, U(ids[j + 5]) * K, U(ids[j + 6]) * K, U(ids[j + 7]) * K
        for b in range(K):
            k = U(b)
            theta[o + k] += ((w[r0 + k] + w[r1 + k]) + (w[r2 + k] + w[r3 + k])) + (
                (w[r4 + k] + w[r5 + k]) + (w[r6 + k] + w[r7 + k])
            )
        j += 8
    while j < stop:
        r0 = U(ids[j]) * K
        for b in range(K):
            k = U(b)
            theta[o + k] += w[r0 + k]
        j += 1


@njit(**PLAIN)
def _valued_scores(ids, values, start, stop, labels, w, theta, offset):
    """theta[offset:offset + K] <- sum of the weight rows ids[start:stop], each times its value."""
    K, o = U(labels), U(offset)
    for b in range(K):
        theta[o + U(b)] = 0.0
    for j in range(start, stop):
        r0, x = U(ids[j]) * K, values[j]
        for b in range(K):
            k = U(b)
            theta[o + k] += x * w[r0 + k]


@njit(**PLAIN)
def chain_scores(ids, values, row_ptr, first, T, K, w, transitions, theta):
    """theta <- node scores of the tokens first..first + T - 1, then the transitions."""
    if values.size == 0:
        for t in range(T):
            _binary_scores(ids, row_ptr[first + t], row_ptr[first + t + 1], K, w, theta, t * K)
    else:
        for t in range(T):
            _valued_scores(ids, values, row_ptr[first + t], row_ptr[first + t + 1], K, w, theta, t * K)
    o, p = U(transitions), U(T * K)
    for j in range(U(K * K)):
        k = U(j)
        theta[p + k] = w[o + k]


@njit(**PLAIN)
def _larger(a, b):
    return a if a > b else b


@njit(**PLAIN)
def _best_predecessors(theta, step, labels, before, here, best):
    """here[b] <- max_a before[a] + transition(a, b); theta[step:] holds (K, K), `before`, `here` are places in best."""
    K, p, h = U(labels), U(before), U(here)
    x0, r0 = best[p], U(step)
    for j in range(K):
        b = U(j)
        best[h + b] = x0 + theta[r0 + b]
    a = U(1)
    while a + U(8) <= K:
        q, r0 = p + a, U(step) + a * K
        x0, x1, x2, x3 = best[q], best[q + U(1)], best[q + U(2)], best[q + U(3)]
        x4, x5, x6, x7 = best[q + U(4)], best[q + U(5)], best[q + U(6)], best[q + U(7)]
        r1, r2, r3 = r0 + K, r0 + U(2) * K, r0 + U(3) * K
        r4, r5, r6, r7 = r0 + U(4) * K, r0 + U(5) * K, r0 + U(6) * K, r0 + U(7) * K
        for j in range(K):
            b = U(j)
            low = _larger(
                _larger(x0 + theta[r0 + b], x1 + theta[r1 + b]), _larger(x2 + theta[r2 + b], x3 + theta[r3 + b])
            )
            high = _larger(
                _larger(x4 + theta[r4 + b], x5 + theta[r5 + b]), _larger(x6 + theta[r6 + b], x7 + theta[r7 + b])
            )
            best[h + b] = _larger(_larger(low, high), best[h + b])
        a += U(8)
    while a + U(2) <= K:
        q, r0 = p + a, U(step) + a * K
        x0, x1, r1 = best[q], best[q + U(1)], r0 + K
        for j in range(K):
            b = U(j)
            best[h + b] = _larger(_larger(x0 + theta[r0 + b], x1 + theta[r1 + b]), best[h + b])
        a += U(2)
    if a < K:
        x0, r0 = best[p + a], U(step) + a * K
        for j in range(K):
            b = U(j)
            best[h + b] = _larger(x0 + theta[r0 + b], best[h + b])


@njit(**PLAIN)
def viterbi(theta, T, K, bonus, truth, first, y, best):
    """y <- argmax of theta plus `bonus` for every wrong label; returns how many are wrong. best (2 T K,) is workspace.

    Only maxima are kept on the way forward: best[t] those of prefixes that end in each label, and best[T + t] the same
    without token t. On the way back the label before is the first one that attains the maximum, to the bit.
    """
    step, reached = T * K, T * K
    for t in range(T):
        here, true = t * K, np.int64(truth[first + t]) if bonus > 0.0 else K
        if t == 0:
            for k in range(K):
                best[k] = theta[k] + bonus
            if true < K:
                best[true] = theta[true]
            continue
        _best_predecessors(theta, step, K, here - K, reached + here, best)
        o, r = U(here), U(reached + here)
        for j in range(U(K)):
            b = U(j)
            best[o + b] = best[r + b] + (theta[o + b] + bonus)
        if true < K:
            best[here + true] = best[reached + here + true] + theta[here + true]
    label, last = 0, (T - 1) * K
    for k in range(1, K):
        if best[last + k] > best[last + label]:
            label = k
    y[T - 1] = label
    wrong = 1 if label != truth[first + T - 1] else 0
    for t in range(T - 2, -1, -1):
        top, here, a = best[reached + (t + 1) * K + label], t * K, 0
        while a < K - 1 and best[here + a] + theta[step + a * K + label] != top:
            a += 1
        label = a
        y[t] = label
        wrong += 1 if label != truth[first + t] else 0
    return wrong


@njit(**FAST)
def _dot(x, first, second, size):
    total, a, b = 0.0, U(first), U(second)
    for j in range(U(size)):
        k = U(j)
        total += x[a + k] * x[b + k]
    return total


@njit(**FAST)
def _nonzeros(x, start, size):
    count, o = 0, U(start)
    for j in range(U(size)):
        count += 1 if x[o + U(j)] != 0.0 else 0
    return count


@njit(**PLAIN)
def gram_norm2(delta, T, K, gram, start):
    """delta' (G (x) I_K) delta + ||delta_transitions||^2; rows with few non-zeros cost their non-zeros only."""
    total = 0.0
    for t in range(T):
        row, o = start + t * T, t * K
        count = _nonzeros(delta, o, K)
        if count > FEW:
            total += gram[row + t] * _dot(delta, o, o, K)
            for s in range(t):
                total += 2.0 * gram[row + s] * _dot(delta, o, s * K, K)
        elif count > 0:
            for k in range(K):
                x = delta[o + k]
                if x != 0.0:
                    cross = 0.5 * gram[row + t] * x
                    for s in range(t):
                        cross += gram[row + s] * delta[s * K + k]
                    total += 2.0 * x * cross
    return max(total, 0.0) + _dot(delta, T * K, T * K, K * K)


@njit(**PLAIN)
def push_rows(ids, values, row_ptr, first, T, labels, c, delta, w, transitions):
    """w += c B delta: weight rows of each token's attributes, then the transitions."""
    K = U(labels)
    for t in range(T):
        start, stop, o = row_ptr[first + t], row_ptr[first + t + 1], U(t * labels)
        count = _nonzeros(delta, t * labels, labels)
        if count > FEW:
            for j in range(start, stop):
                row = U(ids[j]) * K
                x = c * values[j] if values.size else c
                for b in range(K):
                    k = U(b)
                    w[row + k] += x * delta[o + k]
        elif count > 0:
            for b in range(K):
                k = U(b)
                x = c * delta[o + k]
                if x != 0.0:
                    for j in range(start, stop):
                        w[U(ids[j]) * K + k] += x * values[j] if values.size else x
    for a in range(labels):
        o, p = U(transitions) + U(a) * K, U((T + a) * labels)
        if _nonzeros(delta, (T + a) * labels, labels) > 0:
            for b in range(K):
                k = U(b)
                w[o + k] += c * delta[p + k]
