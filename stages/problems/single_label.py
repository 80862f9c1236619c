"""What structures have in common whose blocks are one label each: multiclass over dense rows, sparse rows, or kernels."""

from __future__ import annotations

from numba import njit

from gapwise.stages.problems.protocol import PLAIN


@njit(**PLAIN)
def best_label(theta):
    """The label of the largest score in theta (K,); the first of equals."""
    best = 0
    for k in range(1, theta.size):
        if theta[k] > theta[best]:
            best = k
    return best


@njit(**PLAIN)
def worst_label(theta, cost):
    """The label of the largest score plus cost, both (K,); the first of equals."""
    best = 0
    for k in range(1, theta.size):
        if theta[k] + cost[k] > theta[best] + cost[best]:
            best = k
    return best


@njit(**PLAIN)
def sum_of_squares(delta):
    """||delta||^2, summed in order."""
    total = 0.0
    for k in range(delta.size):
        total += delta[k] * delta[k]
    return total
