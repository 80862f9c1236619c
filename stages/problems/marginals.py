"""Marginals: means of a block's local statistics and loss under weights that are exponential in the scores.

A dual variable with a weight for every labelling, alpha(y) proportional to exp(c L_i(y) + <theta, m_i(y)>), cannot be
listed, but a structure that sums over its labellings as it maximises over them knows its means

    mu = sum_y alpha(y) m_i(y),        l = sum_y alpha(y) L_i(y),

and the log of the normaliser. It then has the method `protocol.Summable.marginals`. `solver.method=eg` needs it.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from gapwise.stages.problems.protocol import PLAIN

FAINT = -50.0
"""Below this exponent, exp is less than the rounding error of a sum that has a term of 1."""


@njit(**PLAIN)
def softmax(x):
    """x <- exp(x) / sum exp(x); returns log sum exp(x)."""
    top = -np.inf
    for k in range(x.size):
        top = max(top, x[k])
    total = 0.0
    for k in range(x.size):
        x[k] = np.exp(x[k] - top)
        total += x[k]
    for k in range(x.size):
        x[k] /= total
    return top + np.log(total)


@njit(**PLAIN)
def class_marginals(theta, c, cost, weight, mu):
    """mu (K,) <- weights of single labels with scores theta and losses weight * cost (K,); returns (log sum, mean loss)."""
    for k in range(mu.size):
        mu[k] = theta[k] + c * weight * cost[k]
    log_sum = softmax(mu)
    loss = 0.0
    for k in range(mu.size):
        loss += mu[k] * cost[k]
    return log_sum, weight * loss
