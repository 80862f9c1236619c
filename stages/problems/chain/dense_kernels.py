"""Compiled kernels of chains whose tokens are rows of a matrix: products of rows, and rows added to rows.

Layouts as in `chain.dense`: row t of a block is `values[x + t * p:]` where x is that of its first token, and the weights of
label k are `w[k * p:]`. Eight columns at a time (`stages.problems.simd`), the last few one by one.
"""

from __future__ import annotations

import numpy as np

from gapwise.stages.problems.inner import inner
from gapwise.stages.problems.protocol import PLAIN, U
from gapwise.stages.problems.simd import (
    GROUP,
    WIDTH,
    add,
    broadcast,
    load,
    multiply,
    multiply_add,
    store,
    subtract,
    total,
    widened,
)

TOKENS, LABELS = 2, 3
"""Rows of tokens that are multiplied by rows of weights at a time: six sums, which fit into the registers."""


@inner(**PLAIN)
def dense_scores(values, x, T, K, p, w, transitions, theta):
    """theta <- node scores of T tokens, then the transitions."""
    for t in range(0, T, TOKENS):
        for k in range(0, K, LABELS):
            _tile(values, x, t, min(t + 1, T - 1), K, k, min(k + 1, K - 1), min(k + 2, K - 1), p, w, theta)
    for t in range(T):
        for k in range(K):
            theta[U(t * K + k)] += w[U(K * p + k)]
    for k in range(K):
        theta[U(k)] += w[U(K * p + K + k)]
        theta[U((T - 1) * K + k)] += w[U(K * p + 2 * K + k)]
    for j in range(K * K):
        theta[U(T * K + j)] = w[U(transitions + j)]


@inner(**PLAIN)
def _tile(values, x, s, t, K, a, b, c, p, w, theta):
    """Scores of tokens s and t for labels a, b and c, which may be equal."""
    sa = sb = sc = ta = tb = tc = broadcast(0.0)
    xs, xt, wa, wb, wc, whole = x + s * p, x + t * p, a * p, b * p, c * p, p - p % WIDTH
    for j in range(0, whole, WIDTH):
        vs, vt, va, vb, vc = (
            widened(values, xs + j),
            widened(values, xt + j),
            load(w, wa + j),
            load(w, wb + j),
            load(w, wc + j),
        )
        sa, sb, sc = multiply_add(vs, va, sa), multiply_add(vs, vb, sb), multiply_add(vs, vc, sc)
        ta, tb, tc = multiply_add(vt, va, ta), multiply_add(vt, vb, tb), multiply_add(vt, vc, tc)
    theta[U(s * K + a)] = total(sa) + _tail(values, xs, w, wa, whole, p)
    theta[U(s * K + b)] = total(sb) + _tail(values, xs, w, wb, whole, p)
    theta[U(s * K + c)] = total(sc) + _tail(values, xs, w, wc, whole, p)
    theta[U(t * K + a)] = total(ta) + _tail(values, xt, w, wa, whole, p)
    theta[U(t * K + b)] = total(tb) + _tail(values, xt, w, wb, whole, p)
    theta[U(t * K + c)] = total(tc) + _tail(values, xt, w, wc, whole, p)


@inner(**PLAIN)
def _tail(values, x, w, o, first, p):
    """Sum of products of columns first..p - 1."""
    result = 0.0
    for j in range(first, p):
        result += values[U(x + j)] * w[U(o + j)]
    return result


@inner(**PLAIN)
def _row_product(values, x, w, o, p):
    """<values[x:x + p], w[o:o + p]>."""
    sum0 = sum1 = sum2 = sum3 = broadcast(0.0)
    grouped, whole = p - p % GROUP, p - p % WIDTH
    for j in range(0, grouped, GROUP):
        sum0 = multiply_add(widened(values, x + j), load(w, o + j), sum0)
        sum1 = multiply_add(widened(values, x + j + WIDTH), load(w, o + j + WIDTH), sum1)
        sum2 = multiply_add(widened(values, x + j + 2 * WIDTH), load(w, o + j + 2 * WIDTH), sum2)
        sum3 = multiply_add(widened(values, x + j + 3 * WIDTH), load(w, o + j + 3 * WIDTH), sum3)
    for j in range(grouped, whole, WIDTH):
        sum0 = multiply_add(widened(values, x + j), load(w, o + j), sum0)
    return total(add(add(sum0, sum1), add(sum2, sum3))) + _tail(values, x, w, o, whole, p)


@inner(**PLAIN)
def _push_row(values, x, p, c, w, o):
    """w[o:o + p] += c values[x:x + p]."""
    every, whole = broadcast(c), p - p % WIDTH
    for j in range(0, whole, WIDTH):
        store(w, o + j, add(load(w, o + j), multiply(every, widened(values, x + j))))
    for j in range(whole, p):
        w[U(o + j)] += c * values[U(x + j)]


@inner(**PLAIN)
def _push_rows(values, x, p, c, w, a, b):
    """The same at a, and with -c at b."""
    every, whole = broadcast(c), p - p % WIDTH
    for j in range(0, whole, WIDTH):
        row = multiply(every, widened(values, x + j))
        store(w, a + j, add(load(w, a + j), row))
        store(w, b + j, subtract(load(w, b + j), row))
    for j in range(whole, p):
        entry = c * values[U(x + j)]
        w[U(a + j)] += entry
        w[U(b + j)] -= entry


@inner(**PLAIN)
def push_dense(values, x, T, K, p, c, delta, w, transitions):
    """w += c B delta."""
    for t in range(T):
        for k in range(K):
            step = c * delta[U(t * K + k)]
            if step != 0.0:
                _push_row(values, x + t * p, p, step, w, k * p)
                w[U(K * p + k)] += step
    for k in range(K):
        w[U(K * p + K + k)] += c * delta[U(k)]
        w[U(K * p + 2 * K + k)] += c * delta[U((T - 1) * K + k)]
    for j in range(K * K):
        w[U(transitions + j)] += c * delta[U(T * K + j)]


@inner(**PLAIN)
def push_dense_pair(values, x, T, K, p, c, y, z, w, transitions):
    """w += c B (m(y) - m(z))."""
    for t in range(T):
        a, b = np.int64(y[U(t)]), np.int64(z[U(t)])
        if a == b:
            continue
        _push_rows(values, x + t * p, p, c, w, a * p, b * p)
        w[U(K * p + a)] += c
        w[U(K * p + b)] -= c
        if t == 0:
            w[U(K * p + K + a)] += c
            w[U(K * p + K + b)] -= c
        if t == T - 1:
            w[U(K * p + 2 * K + a)] += c
            w[U(K * p + 2 * K + b)] -= c
    for t in range(1, T):
        w[U(transitions) + U(y[U(t - 1)]) * U(K) + U(y[U(t)])] += c
        w[U(transitions) + U(z[U(t - 1)]) * U(K) + U(z[U(t)])] -= c


@inner(**PLAIN)
def few_dense_scores(values, x, T, K, p, w, transitions, labels, slots, theta, scores):
    """scores[k] <- the score of labels[slots[k]], up to a common constant; theta (T K,) is workspace.

    A token with the same label in all labellings counts as 0; of others only the labels that occur are scored.
    """
    reference, o = U(slots[0]), U(transitions)
    for t in range(T):
        label, others, here = labels[reference, U(t)], 0, t * K
        for slot in slots:
            others += 1 if labels[U(slot), U(t)] != label else 0
            theta[U(here + np.int64(labels[U(slot), U(t)]))] = np.nan  # wanted
        if others == 0:
            theta[U(here + np.int64(label))] = 0.0
            continue
        for slot in slots:
            k = np.int64(labels[U(slot), U(t)])
            if not np.isnan(theta[U(here + k)]):
                continue
            score = _row_product(values, x + t * p, w, k * p, p) + w[U(K * p + k)]
            if t == 0:
                score += w[U(K * p + K + k)]
            if t == T - 1:
                score += w[U(K * p + 2 * K + k)]
            theta[U(here + k)] = score
    for s in range(slots.size):
        row, before = U(slots[U(s)]), U(labels[U(slots[U(s)]), U(0)])
        score = theta[before]
        for t in range(1, T):
            here = U(labels[row, U(t)])
            score += theta[U(t * K) + here] + w[o + before * U(K) + here]
            before = here
        scores[U(s)] = score
