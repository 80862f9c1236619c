"""Compiled kernels of chains for moves between two labellings and for few labellings; see
`stages.problems.moves`, and `chain` for layouts."""

from __future__ import annotations

import numpy as np

from gapwise.stages.problems.chain.kernels import LARGE, fetch_weights, token_scores
from gapwise.stages.problems.inner import inner
from gapwise.stages.problems.protocol import PLAIN, U
from gapwise.stages.problems.simd import GROUP


@inner(**PLAIN)
def _differing(y, z, T, positions):
    """positions[:count] <- the tokens where two labellings differ; returns count. Branch-free: a branch would mispredict."""
    count = 0
    for t in range(T):
        positions[count] = t
        count += 1 if y[t] != z[t] else 0
    return count


@inner(**PLAIN)
def pair_tokens_norm2(y, z, T, gram, start, work):
    """||B (m(y) - m(z))||^2 without the transitions, summed over the tokens where the labellings differ."""
    total = 0.0
    for j in range(_differing(y, z, T, work)):
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
def add_transitions_norm2(total, y, z, T, K, counts):
    """`total` plus the transitions' share of ||B (m(y) - m(z))||^2. counts (K * K,) is workspace."""
    for t in range(1, T):
        counts[U(y[t - 1]) * U(K) + U(y[t])] = 0.0
        counts[U(z[t - 1]) * U(K) + U(z[t])] = 0.0
    for t in range(1, T):
        counts[U(y[t - 1]) * U(K) + U(y[t])] += 1.0
        counts[U(z[t - 1]) * U(K) + U(z[t])] -= 1.0
    for t in range(1, T):
        pair = U(y[t - 1]) * U(K) + U(y[t])
        total += counts[pair] * counts[pair]
        counts[pair] = 0.0
        pair = U(z[t - 1]) * U(K) + U(z[t])
        total += counts[pair] * counts[pair]
        counts[pair] = 0.0
    return max(total, 0.0)


@inner(**PLAIN)
def pair_gram_norms(grams, i, labels, slots, k, row_of, T, K, whole, square, squared, first, width, work):
    """Distances of atom k of block i to the others whose rows are known, into its own row; see `moves.pair_norms`.

    With r one of those, g = B' B (m(y) - m(r)) and f(z) = <g, m(z)>, the distance of y to z is

        ||B (m(y) - m(z))||^2 = f(y) - f(r) + ||B (m(r) - m(z))||^2 - 2 (f(z) - f(r)).

    So g, which takes as long as one distance, gives all of them. Where all values and the block's weight are 1 (`whole`)
    these are sums of integers, the same as those of `pair_norm2` to the last bit. Other blocks take those, whose rounding
    does not depend on which distances are known, and so do long ones, which have no g. work: (T K + K K,). `square` is the
    square of the block's weight.
    """
    gram, start = grams.values, grams.ptr[i]
    whole = whole and grams.ptr[i + 1] - start == T * T
    row, known = U(first + row_of[slots[k]] * width), -1
    for j in range(slots.size):
        if j != k and row_of[slots[j]] >= 0:
            known = j
            if not whole:
                y, z = labels[slots[min(j, k)]], labels[slots[max(j, k)]]
                norm2 = grams.pair_rows_norm2(i, y[:T], z[:T], T, K, work)
                norm2 = add_transitions_norm2(norm2, y[:T], z[:T], T, K, work[T:])
                squared[row + U(row_of[slots[j]])] = square * norm2
    if known < 0 or not whole:
        return
    work[:] = 0.0
    y, r = labels[slots[k]], labels[slots[known]]
    for t in range(T):
        if y[U(t)] != r[U(t)]:
            for q in range(U(T)):
                x, o = gram[U(start) + U(t) * U(T) + U(q)], U(q) * U(K)
                work[o + U(y[U(t)])] += x
                work[o + U(r[U(t)])] -= x
    for t in range(1, T):
        work[(U(T) + U(y[t - 1])) * U(K) + U(y[t])] += 1.0
        work[(U(T) + U(r[t - 1])) * U(K) + U(r[t])] -= 1.0
    known_row, at_r = U(first + row_of[slots[known]] * width), _inner(work, r, T, K)
    own = _inner(work, y, T, K) - at_r
    for j in range(slots.size):
        other = row_of[slots[j]]
        if j != k and other >= 0:
            at_z = _inner(work, labels[slots[j]], T, K)
            squared[row + U(other)] = max(own + squared[known_row + U(other)] - 2.0 * (at_z - at_r), 0.0)


@inner(**PLAIN)
def _inner(theta, y, T, K):
    """<theta, m(y)>."""
    before = U(y[0])
    total = theta[before]
    for t in range(1, T):
        here = U(y[U(t)])
        total += theta[U(t) * U(K) + here] + theta[(U(T) + before) * U(K) + here]
        before = here
    return total


@inner(**PLAIN)
def push_pair_tokens(ids, values, row_ptr, first, T, labels, c, y, z, w, work):
    """w += c B (m(y) - m(z)), without the transitions."""
    K = U(labels)
    for j in range(_differing(y, z, T, work)):
        here = U(work[U(j)])
        a, b, token = U(y[here]), U(z[here]), U(first) + here
        for r in range(U(row_ptr[token]), U(row_ptr[token + U(1)])):
            row, x = U(ids[U(r)]) * K, c * values[U(r)] if values.size else c
            w[row + a] += x
            w[row + b] -= x


@inner(**PLAIN)
def push_pair(ids, values, row_ptr, first, T, labels, c, y, z, w, transitions, work):
    """w += c B (m(y) - m(z))."""
    K, o = U(labels), U(transitions)
    push_pair_tokens(ids, values, row_ptr, first, T, labels, c, y, z, w, work)
    for t in range(1, T):
        w[o + U(y[t - 1]) * K + U(y[t])] += c
        w[o + U(z[t - 1]) * K + U(z[t])] -= c


@inner(**PLAIN)
def follow_tokens(y, z, T, labels, gram, start, c, theta, work):
    """theta += c B' B (m(y) - m(z)), without the transitions."""
    K = U(labels)
    for j in range(_differing(y, z, T, work)):
        here = U(work[U(j)])
        a, b, row = U(y[here]), U(z[here]), U(start) + here * U(T)
        for s in range(U(T)):
            x = c * gram[row + U(s)]
            theta[U(s) * K + a] += x
            theta[U(s) * K + b] -= x


@inner(**PLAIN)
def follow_transitions(y, z, T, labels, c, theta):
    """theta += c times the transitions of m(y) - m(z)."""
    K = U(labels)
    for t in range(1, T):
        theta[(U(T) + U(y[t - 1])) * K + U(y[t])] += c
        theta[(U(T) + U(z[t - 1])) * K + U(z[t])] -= c


@inner(**PLAIN)
def few_scores(ids, values, row_ptr, first, T, K, w, transitions, labels, slots, theta, scores):
    """scores[k] <- the score of labels[slots[k]], up to a common constant; theta (T K,) is workspace.

    A token with the same label in all labellings counts as 0. For other tokens, few labels are all scored, eight at a
    time; of many labels only those that occur.
    """
    o, reference, large, scored = U(transitions), U(slots[0]), w.size > LARGE and K <= GROUP, -1
    for t in range(T + 1):
        if t < T:
            label, others = labels[reference, U(t)], 0
            for slot in slots:
                others += 1 if labels[U(slot), U(t)] != label else 0
            if others == 0:
                theta[U(t) * U(K) + U(label)] = 0.0
                continue
            if large:
                fetch_weights(ids, row_ptr, first + t, K, w)
        if scored >= 0:
            start, stop = row_ptr[first + scored], row_ptr[first + scored + 1]
            if K <= GROUP:
                token_scores(ids, values, start, stop, K, w, theta, scored * K)
            else:
                _some_scores(ids, values, start, stop, K, labels, slots, scored, w, theta)
        scored = t
    for k in range(slots.size):
        s, before = U(slots[k]), U(labels[U(slots[k]), 0])
        total = theta[before]
        for t in range(1, T):
            here = U(labels[s, U(t)])
            total += theta[U(t) * U(K) + here] + w[o + before * U(K) + here]
            before = here
        scores[k] = total


@inner(**PLAIN)
def _some_scores(ids, values, start, stop, labels_, labels, slots, t, w, theta):
    """theta[t K + k] <- the score of token t for every label k that it has in labels[slots]."""
    K, o = U(labels_), U(t) * U(labels_)
    for slot in slots:
        theta[o + U(labels[U(slot), U(t)])] = np.nan  # wanted
    for slot in slots:
        entry = o + U(labels[U(slot), U(t)])
        if not np.isnan(theta[entry]):
            continue
        total = 0.0
        for j in range(start, stop):
            x = w[U(ids[j]) * K + entry - o]
            total += x * values[j] if values.size else x
        theta[entry] = total
