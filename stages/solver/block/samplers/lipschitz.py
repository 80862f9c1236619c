"""Lipschitz sampling: fixed probabilities in proportion to R_i^2, R_i the largest ||psi_i(y)|| (O16 App. C; Nesterov 2012).

With the 1-norm on the simplex of block i, the Lipschitz constant of the dual's gradient is R_i^2 / (lambda n^2). LJ13 App. A
bounds the curvature by four times that, so sampling by curvature draws the same blocks. R_i is estimated from a labelling at
hand, as in O16 3.1: here the max-oracle's answer at w = 0. Its n calls do not count, for the rival knows its constants.
"""

from __future__ import annotations

import numpy as np

from gapwise.stages.problems.inner import inner
from gapwise.stages.problems.protocol import INLINED, Problem
from gapwise.stages.solver.block.samplers import Sampler
from gapwise.stages.solver.oracles import vertices_at
from gapwise.stages.solver.radii import squared_norms

LEAST = 0.01
"""A block is drawn at least this share as often as on average: the labelling at w = 0 may be too near the truth."""


@inner(**INLINED)
def draw(S, flags, rng, order, k):
    """Takes one number of `rng`; by bisection in the running sums of the weights."""
    low, high, drawn = 0, S.sums.size - 1, rng.random() * S.sums[-1]
    while low < high:  # every structure's steps compile this, and NumPy's search takes a third of a second
        middle = (low + high) // 2
        if S.sums[middle] > drawn:
            high = middle
        else:
            low = middle + 1
    return low


def weights(problem: Problem) -> np.ndarray:
    """float64, (n,): R_i^2, but a hundredth of their mean at least; ones if all are zero."""
    vertices = vertices_at(problem, np.zeros(problem.d), range(problem.n))
    norm2 = squared_norms(problem, np.arange(problem.n), vertices.vertex)
    mean = float(np.mean(norm2))
    return np.maximum(norm2, LEAST * mean) if mean > 0.0 else np.ones(problem.n)


SAMPLER = Sampler(draw, weights=weights)
