"""Compiled kernels of chains: sparse scores, Viterbi, Gram norms, sparse updates. Layouts as in `chain`.

Indices are unsigned: with signed ones the compiler must allow for negative, wrapping indices and does not vectorise
(four times slower). Rows of K >= 8 labels are summed and compared eight labels at a time (`stages.problems.simd`).
"""

from __future__ import annotations

import numpy as np

from gapwise.stages.problems.inner import inner
from gapwise.stages.problems.prefetch import prefetch
from gapwise.stages.problems.protocol import FAST, PLAIN, U
from gapwise.stages.problems.simd import (
    GROUP,
    WIDTH,
    add,
    broadcast,
    columns,
    equal_bits,
    larger,
    load,
    lowest_bit,
    multiply,
    nonzero_bits,
    store,
    strided,
)

FEW = 4
"""Rows of a direction with at most this many non-zero labels are handled label by label."""

LARGE = 1 << 16
"""Weights beyond which they are fetched early: smaller ones stay in the caches (512 kB)."""

PREFETCHED = 3
"""Tokens from the one whose scores are computed to the one whose weights are fetched, be it of the next block."""


@inner(**PLAIN)
def token_scores(ids, values, start, stop, labels, w, theta, offset):
    """theta[offset:offset + K] <- sum of the weight rows ids[start:stop], each times its value if there are any."""
    K, o = U(labels), U(offset)
    if labels < WIDTH:
        for b in range(K):
            theta[o + U(b)] = 0.0
        for j in range(start, stop):
            r, x = U(ids[j]) * K, values[j] if values.size else 1.0
            for b in range(K):
                theta[o + U(b)] += x * w[r + U(b)]
        return
    for first in range(0, labels, GROUP):
        c0, c1, c2, c3 = columns(first, labels)
        sum0 = sum1 = sum2 = sum3 = broadcast(0.0)
        if values.size:
            for j in range(U(start), U(stop)):
                r, x = U(ids[U(j)]) * K, broadcast(np.float64(values[U(j)]))
                sum0, sum1 = add(sum0, multiply(x, load(w, r + c0))), add(sum1, multiply(x, load(w, r + c1)))
                sum2, sum3 = add(sum2, multiply(x, load(w, r + c2))), add(sum3, multiply(x, load(w, r + c3)))
        elif c2 == c3:
            for j in range(U(start), U(stop)):
                r = U(ids[U(j)]) * K
                sum0, sum1, sum2 = add(sum0, load(w, r + c0)), add(sum1, load(w, r + c1)), add(sum2, load(w, r + c2))
            sum3 = sum2
        else:
            for j in range(U(start), U(stop)):
                r = U(ids[U(j)]) * K
                sum0, sum1 = add(sum0, load(w, r + c0)), add(sum1, load(w, r + c1))
                sum2, sum3 = add(sum2, load(w, r + c2)), add(sum3, load(w, r + c3))
        store(theta, o + c0, sum0)
        store(theta, o + c1, sum1)
        store(theta, o + c2, sum2)
        store(theta, o + c3, sum3)


@inner(**PLAIN)
def fetch_weights(ids, row_ptr, token, labels, w):
    """Fetch the weight rows of a token's attributes; a loop of unknown length over the lines of a row would take longer."""
    last = U(labels - 1)
    for j in range(U(row_ptr[token]), U(row_ptr[token + 1])):
        row = U(ids[U(j)]) * U(labels)
        prefetch(w, row)
        prefetch(w, row + min(U(WIDTH), last))
        prefetch(w, row + min(U(2 * WIDTH), last))
        prefetch(w, row + last)
        for k in range(U(3 * WIDTH), last, U(WIDTH)):
            prefetch(w, row + U(k))


@inner(**PLAIN)
def tokens_scores(ids, values, row_ptr, first, T, K, w, theta):
    """theta <- scores (T, K) of the tokens first..first + T - 1."""
    last = row_ptr.size - 2 if w.size > LARGE else -1
    for t in range(T):
        if first + t + PREFETCHED <= last:
            fetch_weights(ids, row_ptr, first + t + PREFETCHED, K, w)
        token_scores(ids, values, row_ptr[first + t], row_ptr[first + t + 1], K, w, theta, t * K)


@inner(**PLAIN)
def chain_scores(ids, values, row_ptr, first, T, K, w, transitions, theta):
    """theta <- scores of the tokens first..first + T - 1, then the transitions."""
    tokens_scores(ids, values, row_ptr, first, T, K, w, theta)
    o, p = U(transitions), U(T * K)
    for j in range(U(K * K)):
        k = U(j)
        theta[p + k] = w[o + k]


@inner(**PLAIN)
def _best_predecessors(theta, step, labels, here, reached, bonus, best):
    """best[reached + b] <- max_a best[here - K + a] + transition(a, b), and best[here + b] <- the same with label b's score.

    That is theta[here + b] + bonus; theta[step:] holds the transitions (K, K).
    """
    K, p, h, q = U(labels), U(here - labels), U(here), U(reached)
    if labels < WIDTH:
        for b in range(K):
            best[q + U(b)] = -np.inf
        for j in range(K):
            x, r = best[p + U(j)], U(step) + U(j) * K
            for b in range(K):
                best[q + U(b)] = max(best[q + U(b)], x + theta[r + U(b)])
        for b in range(K):
            best[h + U(b)] = best[q + U(b)] + (theta[h + U(b)] + bonus)
        return
    every = broadcast(bonus)
    for first in range(0, labels, GROUP):
        c0, c1, c2, c3 = columns(first, labels)
        best0 = best1 = best2 = best3 = broadcast(-np.inf)
        if c2 == c3:
            for j in range(K):
                x, r = broadcast(best[p + U(j)]), U(step) + U(j) * K
                best0, best1 = larger(add(x, load(theta, r + c0)), best0), larger(add(x, load(theta, r + c1)), best1)
                best2 = larger(add(x, load(theta, r + c2)), best2)
            best3 = best2
        else:
            for j in range(K):
                x, r = broadcast(best[p + U(j)]), U(step) + U(j) * K
                best0, best1 = larger(add(x, load(theta, r + c0)), best0), larger(add(x, load(theta, r + c1)), best1)
                best2, best3 = larger(add(x, load(theta, r + c2)), best2), larger(add(x, load(theta, r + c3)), best3)
        store(best, q + c0, best0)
        store(best, q + c1, best1)
        store(best, q + c2, best2)
        store(best, q + c3, best3)
        store(best, h + c0, add(best0, add(load(theta, h + c0), every)))
        store(best, h + c1, add(best1, add(load(theta, h + c1), every)))
        store(best, h + c2, add(best2, add(load(theta, h + c2), every)))
        store(best, h + c3, add(best3, add(load(theta, h + c3), every)))


@inner(**PLAIN)
def _predecessor(theta, step, labels, label, here, top, best):
    """The first a with best[here + a] + transition(a, label) == top, else the last one. Branch-free: a loop mispredicts."""
    K, h, o = U(labels), U(here), U(step + label)
    if labels < WIDTH:
        a = 0
        while a < labels - 1 and best[here + a] + theta[step + a * labels + label] != top:
            a += 1
        return a
    wanted = broadcast(top)
    for first in range(0, labels, GROUP):
        c0, c1, c2, c3 = columns(first, labels)
        bits = equal_bits(add(load(best, h + c0), strided(theta, o + c0 * K, K)), wanted)
        bits |= equal_bits(add(load(best, h + c1), strided(theta, o + c1 * K, K)), wanted) << (c1 - c0)
        bits |= equal_bits(add(load(best, h + c2), strided(theta, o + c2 * K, K)), wanted) << (c2 - c0)
        if c2 != c3:
            bits |= equal_bits(add(load(best, h + c3), strided(theta, o + c3 * K, K)), wanted) << (c3 - c0)
        if bits != U(0):
            return np.int64(c0 + lowest_bit(bits))
    return labels - 1


@inner(**PLAIN)
def viterbi(theta, T, K, bonus, truth, first, y, best):
    """y <- argmax of theta plus `bonus` for every wrong label. best (2 T K,) is workspace.

    The forward sweep keeps only maxima: best[t] over the prefixes that end in each label, and best[T + t] the same without
    token t. The backward sweep picks as predecessor the first label that attains the maximum exactly.
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
        _best_predecessors(theta, step, K, here, reached + here, bonus, best)
        if true < K:
            best[here + true] = best[reached + here + true] + theta[here + true]
    label, last = 0, (T - 1) * K
    for k in range(1, K):
        if best[last + k] > best[last + label]:
            label = k
    y[T - 1] = label
    for t in range(T - 2, -1, -1):
        label = _predecessor(theta, step, K, label, t * K, best[reached + (t + 1) * K + label], best)
        y[t] = label


@inner(**FAST)
def _dot(x, first, second, size):
    total, a, b = 0.0, U(first), U(second)
    for j in range(U(size)):
        k = U(j)
        total += x[a + k] * x[b + k]
    return total


@inner(**FAST)
def _nonzeros(x, start, size):
    count, o = 0, U(start)
    for j in range(U(size)):
        count += 1 if x[o + U(j)] != 0.0 else 0
    return count


@inner(**PLAIN)
def tokens_norm2(delta, T, K, gram, start):
    """delta' (G (x) I_K) delta; the cost of a sparse row is that of its non-zeros."""
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
    return max(total, 0.0)


@inner(**PLAIN)
def transitions_norm2(delta, T, K):
    """||delta_transitions||^2."""
    return _dot(delta, T * K, T * K, K * K)


@inner(**PLAIN)
def push_tokens(ids, values, row_ptr, first, T, labels, c, delta, w):
    """w += c B delta, without the transitions: weight rows of each token's attributes."""
    K = U(labels)
    if WIDTH <= labels <= GROUP:
        for t in range(T):
            _push_token(ids, values, U(row_ptr[first + t]), U(row_ptr[first + t + 1]), labels, c, delta, U(t) * K, w)
        return
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


@inner(**PLAIN)
def push_rows(ids, values, row_ptr, first, T, labels, c, delta, w, transitions):
    """w += c B delta: weight rows of each token's attributes, then the transitions."""
    K = U(labels)
    push_tokens(ids, values, row_ptr, first, T, labels, c, delta, w)
    if WIDTH <= labels <= GROUP:
        o, p = U(transitions), U(T) * K
        for j in range(K * K):
            w[o + U(j)] += c * delta[p + U(j)]
        return
    for a in range(labels):
        o, p = U(transitions) + U(a) * K, U((T + a) * labels)
        if _nonzeros(delta, (T + a) * labels, labels) > 0:
            for b in range(K):
                k = U(b)
                w[o + k] += c * delta[p + k]


@inner(**PLAIN)
def _push_token(ids, values, start, stop, labels, c, delta, o, w):
    """The rows of one token, for 8 to 32 labels: the labels of `delta` that are not 0 four at a time, or all of them.

    Every sum has the terms that it has in the general case, in the same order; adding 0 changes none. The vectors of a
    row overlap, so all are loaded before one is stored.
    """
    K = U(labels)
    c0, c1, c2, c3 = columns(0, labels)
    bits = nonzero_bits(delta, o + c0) << c0 | nonzero_bits(delta, o + c1) << c1
    bits |= nonzero_bits(delta, o + c2) << c2 | nonzero_bits(delta, o + c3) << c3
    if bits == U(0):
        return
    k0 = k1 = k2 = k3 = lowest_bit(bits)
    x0, x1, x2, x3, count = c * delta[o + k0], 0.0, 0.0, 0.0, 1
    bits &= bits - U(1)
    if bits != U(0):
        k1, count = lowest_bit(bits), 2
        x1 = c * delta[o + k1]
        bits &= bits - U(1)
    if bits != U(0):
        k2, count = lowest_bit(bits), 3
        x2 = c * delta[o + k2]
        bits &= bits - U(1)
    if bits != U(0):
        k3 = lowest_bit(bits)
        x3 = c * delta[o + k3]
        bits &= bits - U(1)
    if bits != U(0):
        d0, d1, d2, d3 = load(delta, o + c0), load(delta, o + c1), load(delta, o + c2), load(delta, o + c3)
        for j in range(start, stop):
            row = U(ids[U(j)]) * K
            x = broadcast(c * values[U(j)] if values.size else c)
            w0, w1 = add(load(w, row + c0), multiply(x, d0)), add(load(w, row + c1), multiply(x, d1))
            w2, w3 = add(load(w, row + c2), multiply(x, d2)), add(load(w, row + c3), multiply(x, d3))
            store(w, row + c0, w0)
            store(w, row + c1, w1)
            store(w, row + c2, w2)
            store(w, row + c3, w3)
    elif count <= 2:
        for j in range(start, stop):
            row, x = U(ids[U(j)]) * K, values[U(j)] if values.size else 1.0
            w[row + k0] += x0 * x
            w[row + k1] += x1 * x
    else:
        for j in range(start, stop):
            row, x = U(ids[U(j)]) * K, values[U(j)] if values.size else 1.0
            w[row + k0] += x0 * x
            w[row + k1] += x1 * x
            w[row + k2] += x2 * x
            w[row + k3] += x3 * x
