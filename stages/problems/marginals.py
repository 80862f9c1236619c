"""Marginals: means of a block's local statistics and loss under weights that are exponential in the scores.

A dual variable with a weight for every labelling, alpha(y) proportional to exp(c L_i(y) + <theta, m_i(y)>), cannot be
listed, but a structure that sums over its labellings as it maximises over them knows its means

    mu = sum_y alpha(y) m_i(y),        l = sum_y alpha(y) L_i(y),

and the log of the normaliser. It then has the method `protocol.Summable.marginals`. `solver.method=eg` needs it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from gapwise.stages.problems import capabilities, structures
from gapwise.stages.problems.capabilities import traits_of
from gapwise.stages.problems.protocol import PLAIN, Problem
from gapwise.stages.problems.stored import check_array

FAINT = -50.0
"""Below this exponent, exp is less than the rounding error of a sum that has a term of 1."""


class Scores(NamedTuple):
    """The dual point alpha_i(y) proportional to exp(loss_weight_i L_i(y) + <theta_i, m_i(y)>)."""

    theta: np.ndarray
    """float64, flat local vectors"""
    loss_weight: np.ndarray
    """float64, (n,)"""


def has_marginals(problem: Problem) -> bool:
    """Whether the structure of a problem has the method `marginals`."""
    return traits_of(problem).marginals


def structures_with_marginals() -> list[str]:
    """Names of the structures that have the method `marginals`, as the records of their modules say."""
    return [name for name in structures() if capabilities(name).marginals]


def check_scores(problem: Problem, theta: np.ndarray, loss_weight: np.ndarray) -> Scores:
    """The scores of a dual point; ValueError, naming the array, unless they fit the problem."""
    return Scores(
        check_array("dual_scores", theta, (int(problem.local_ptr[-1]),), np.float64, finite=True),
        check_array("dual_loss_weight", loss_weight, (problem.n,), np.float64, finite=True),
    )


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
