"""Marginals of chains: the forward-backward algorithm in the log domain.

The forward sweep keeps f_t(b) = log sum over the prefixes that end in label b, as Viterbi keeps their maximum. The backward
sweep turns it into conditional weights p(a | b) = exp(f_{t-1}(a) + transition(a, b) - log sum_a exp(...)), and carries the
weights of labels back through them. So the marginals are those of a Markov chain whatever rounding does: each position's
sum to 1, and those of pairs have those of labels as their sums.
"""

from __future__ import annotations

import numpy as np

from gapwise.stages.problems.inner import inner
from gapwise.stages.problems.protocol import PLAIN, U

FAINT = -50.0
"""Below this exponent, exp is less than the rounding error of a sum that has a term of 1."""

LEAST = 1e-25
"""Labels of less weight are not carried back: all of them together are less than rounding."""


@inner(**PLAIN)
def forward_backward(theta, T, labels, bonus, truth, first, mu, work):
    """mu <- mean of m(y) with weights exp(<theta, m(y)> + bonus x wrong labels); returns the log of their sum.

    theta and mu: nodes (T K,), then transitions. work (2 T K,) holds f, and f without
    each token's own score.
    """
    K, step = U(labels), U(T * labels)
    for t in range(T):
        here, true = U(t * labels), np.int64(truth[first + t])
        reached = step + here
        if t == 0:
            for b in range(K):
                work[reached + U(b)] = 0.0
        else:
            _log_sums(theta, step, K, here - K, here, reached, mu, work)
        for b in range(K):
            k = U(b)
            work[here + k] = work[reached + k] + theta[here + k] + bonus
        if true < labels:
            work[here + U(true)] -= bonus
    last = U((T - 1) * labels)
    top, total = -np.inf, 0.0
    for b in range(K):
        top = max(top, work[last + U(b)])
    for b in range(K):
        k = U(b)
        mu[last + k] = np.exp(work[last + k] - top)
        total += mu[last + k]
    for b in range(K):
        mu[last + U(b)] /= total
    for j in range(step, step + K * K):
        mu[j] = 0.0
    for t in range(T - 1, 0, -1):
        here = U(t * labels)
        _carry_back(theta, step, K, here - K, here, step + here, mu, work)
    return top + np.log(total)


@inner(**PLAIN)
def _log_sums(theta, step, K, before, here, reached, mu, work):
    """work[reached + b] <- log sum_a exp(work[before + a] + transition(a, b)); mu[here:] is workspace."""
    for b in range(K):
        k = U(b)
        work[reached + k], mu[here + k] = -np.inf, 0.0
    for a in range(K):
        x, row = work[before + U(a)], step + U(a) * K
        for b in range(K):
            k = U(b)
            work[reached + k] = max(work[reached + k], x + theta[row + k])
    for a in range(K):
        x, row = work[before + U(a)], step + U(a) * K
        for b in range(K):
            k = U(b)
            below = x + theta[row + k] - work[reached + k]
            if below > FAINT:
                mu[here + k] += np.exp(below)
    for b in range(K):
        k = U(b)
        work[reached + k] += np.log(mu[here + k])


@inner(**PLAIN)
def _carry_back(theta, step, K, before, here, reached, mu, work):
    """Weights of the labels before, and of the transitions, from the weights mu[here:] of the labels of a token."""
    for a in range(K):
        mu[before + U(a)] = 0.0
    for b in range(K):
        k = U(b)
        q = mu[here + k]
        if q < LEAST:
            continue
        for a in range(K):
            j = U(a)
            below = work[before + j] + theta[step + j * K + k] - work[reached + k]
            if below > FAINT:
                pair = q * np.exp(below)
                mu[before + j] += pair
                mu[step + j * K + k] += pair
