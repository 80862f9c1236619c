"""Viterbi's algorithm, scores of labellings, and the forward-backward algorithm in the log domain, which sums where Viterbi
maximises. All take node scores (T, K) and transition scores (K, K), flat.

Indices are unsigned: with signed ones the compiler must allow for negative, wrapping indices and does not vectorise
(four times slower). Rows of K >= 8 labels are compared eight labels at a time (`stages.problems.simd`).
"""

from __future__ import annotations

import numpy as np

from gapwise.stages.problems.compiled import inner
from gapwise.stages.problems.protocol import PLAIN, U
from gapwise.stages.problems.simd import (
    GROUP,
    WIDTH,
    add,
    add4,
    broadcast,
    broadcast4,
    columns,
    equal_bits,
    larger4,
    load,
    load4,
    lowest_bit,
    store4,
    strided,
)

FAINT = -50.0
"""Below this exponent, exp is less than the rounding error of a sum that has a term of 1."""

LEAST = 1e-25
"""Labels of less weight are not carried back: all of them together are less than rounding."""


@inner(**PLAIN)
def path_score(nodes, edges, y, T, K):
    """Sum of the scores of y's labels and transitions."""
    before = U(y[0])
    total = nodes[before]
    for t in range(1, T):
        here = U(y[U(t)])
        total += nodes[U(t * K) + here] + edges[before * U(K) + here]
        before = here
    return total


@inner(**PLAIN)
def viterbi(nodes, edges, T, K, y, best):
    """y <- the labelling of largest score. best (2 T K,) is workspace.

    The forward sweep keeps only maxima: best[t] over the prefixes that end in each label, and best[T + t] the same without
    token t. The backward sweep picks as predecessor the first label that attains the maximum exactly.
    """
    reached = T * K
    for k in range(K):
        best[k] = nodes[k]
    for t in range(1, T):
        _best_predecessors(nodes, edges, K, t * K, reached + t * K, best)
    label, last = 0, (T - 1) * K
    for k in range(1, K):
        if best[last + k] > best[last + label]:
            label = k
    y[T - 1] = label
    for t in range(T - 2, -1, -1):
        label = predecessor(edges, K, label, t * K, best[reached + (t + 1) * K + label], best)
        y[t] = label


@inner(**PLAIN)
def _best_predecessors(nodes, edges, labels, here, reached, best):
    """best[reached + b] <- max_a best[here - K + a] + edges[a, b], and best[here + b] <- the same plus nodes[here + b]."""
    K, p, h, q = U(labels), U(here - labels), U(here), U(reached)
    if labels < WIDTH:
        for b in range(K):
            best[q + U(b)] = -np.inf
        for a in range(K):
            x, r = best[p + U(a)], U(a) * K
            for b in range(K):
                best[q + U(b)] = max(best[q + U(b)], x + edges[r + U(b)])
        for b in range(K):
            best[h + U(b)] = best[q + U(b)] + nodes[h + U(b)]
        return
    for first in range(0, labels, GROUP):
        c, top = columns(first, labels), broadcast4(-np.inf)
        for a in range(K):
            top = larger4(add4(broadcast4(best[p + U(a)]), load4(edges, U(a) * K, c)), top)
        store4(best, q, c, top)
        store4(best, h, c, add4(top, load4(nodes, h, c)))


@inner(**PLAIN)
def predecessor(edges, labels, label, here, top, best):
    """The first a with best[here + a] + edges[a, label] == top. Without branches, which the processor would mispredict."""
    K, h, found, bits = U(labels), U(here), 0, U(0)
    if WIDTH <= labels <= 8 * WIDTH:
        for first in range(0, labels, WIDTH):
            c = U(min(first, labels - WIDTH))
            bits |= equal_bits(add(load(best, h + c), strided(edges, c * K + U(label), K)), broadcast(top)) << c
        return np.int64(lowest_bit(bits))
    for k in range(labels):
        a = labels - 1 - k
        found = a if best[U(here + a)] + edges[U(a * labels + label)] == top else found
    return found


@inner(**PLAIN)
def forward_backward(nodes, edges, T, labels, mu, work):
    """mu <- mean of m(y) with weights exp(score of y); returns the log of their sum. mu: nodes (T K,), then transitions.

    The forward sweep keeps f_t(b) = log sum over the prefixes that end in label b, and in work[T K:] the same without token
    t; work is (2 T K,). The backward sweep turns it into weights p(a | b) = exp(f_{t-1}(a) + edges[a, b] - log sum_a
    exp(...)), and carries those of labels back through them. So the marginals are those of a Markov chain whatever rounding
    does: each token's sum to 1, and those of pairs have those of labels as their sums.
    """
    K, step = U(labels), U(T * labels)
    for b in range(K):
        work[U(b)] = nodes[U(b)]
    for t in range(1, T):
        _log_sums(nodes, edges, K, U(t * labels), step + U(t * labels), mu, work)
    last, top, total = U((T - 1) * labels), -np.inf, 0.0
    for b in range(K):
        top = max(top, work[last + U(b)])
    for b in range(K):
        k = last + U(b)
        mu[k] = np.exp(work[k] - top)
        total += mu[k]
    for b in range(K):
        mu[last + U(b)] /= total
    for j in range(K * K):
        mu[step + U(j)] = 0.0
    for t in range(T - 1, 0, -1):
        _carry_back(edges, K, U(t * labels), step, mu, work)
    return top + np.log(total)


@inner(**PLAIN)
def _log_sums(nodes, edges, K, here, reached, mu, work):
    """work[reached + b] <- log sum_a exp(work[here - K + a] + edges[a, b]), and work[here + b] <- that plus nodes[here + b].

    mu[here:] is workspace.
    """
    for b in range(K):
        work[reached + U(b)], mu[here + U(b)] = -np.inf, 0.0
    for a in range(K):
        x, row = work[here - K + U(a)], U(a) * K
        for b in range(K):
            work[reached + U(b)] = max(work[reached + U(b)], x + edges[row + U(b)])
    for a in range(K):
        x, row = work[here - K + U(a)], U(a) * K
        for b in range(K):
            below = x + edges[row + U(b)] - work[reached + U(b)]
            if below > FAINT:
                mu[here + U(b)] += np.exp(below)
    for b in range(K):
        k = U(b)
        work[reached + k] += np.log(mu[here + k])
        work[here + k] = work[reached + k] + nodes[here + k]


@inner(**PLAIN)
def _carry_back(edges, K, here, step, mu, work):
    """Weights of the labels before, and mu[step:] += those of the transitions, from the weights mu[here:] of a token."""
    before, reached = here - K, step + here
    for a in range(K):
        mu[before + U(a)] = 0.0
    for b in range(K):
        k = U(b)
        q = mu[here + k]
        if q < LEAST:
            continue
        for a in range(K):
            j = U(a)
            below = work[before + j] + edges[j * K + k] - work[reached + k]
            if below > FAINT:
                pair = q * np.exp(below)
                mu[before + j] += pair
                mu[step + j * K + k] += pair
