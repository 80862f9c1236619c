"""Alpha-expansion for Potts models (Boykov, Veksler, Zabih, PAMI 2001): a labelling, without a bound.

For one label after another, each node may keep its label or take that one; the best such move is a minimum cut. With
x_p = 1 where node p takes label alpha, an edge of capacity c costs

    c [x_p != x_q]                                   if both ends have the same label, not alpha,
    c - (c/2) x_p - (c/2) x_q + (c/2) [x_p != x_q]   if their labels differ and neither is alpha,
    c (1 - x_q)                                      if p has alpha already.

A cycle visits every label; cycles end when one changes nothing.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from gapwise.stages.problems.images.maxflow import minimum_cut
from gapwise.stages.problems.images.trws import padded, value_of
from gapwise.stages.problems.protocol import PLAIN

CYCLES = 20
"""Bound on the number of cycles; three or four are usual."""


@njit(**PLAIN)
def expand(labels, known, capacity, arc_ptr, head, reverse, edge, scores, best, moved, cut, weights, side):
    """The score of the labelling in `best`, which comes in with the score `known` and is improved until no move helps.

    Parameters
    ----------
    scores : float64 array
        theta, in rows of ``padded(labels)`` columns.
    moved, side : uint8 arrays, one entry a node
    cut : tuple
        From `maxflow.workspace`.
    weights : float64 array, one entry an edge
    """
    nodes, columns = arc_ptr.size - 1, padded(labels)
    excess, score = cut[0], known
    for _ in range(CYCLES):
        before = score
        for alpha in range(labels):
            for p in range(nodes):
                excess[p] = scores[p * columns + np.int64(best[p])] - scores[p * columns + alpha]
            for p in range(nodes):
                for a in range(arc_ptr[p], arc_ptr[p + 1]):
                    q = head[a]
                    if q < p:
                        continue
                    c = max(capacity[edge[a]], 0.0)
                    if best[p] == alpha or best[q] == alpha:
                        weights[edge[a]] = 0.0
                        if best[p] != alpha:
                            excess[p] -= c
                        if best[q] != alpha:
                            excess[q] -= c
                    elif best[p] == best[q]:
                        weights[edge[a]] = c
                    else:
                        weights[edge[a]] = 0.5 * c
                        excess[p] -= 0.5 * c
                        excess[q] -= 0.5 * c
            minimum_cut(arc_ptr, head, reverse, edge, weights[: capacity.size], side[:nodes], cut)
            for p in range(nodes):
                moved[p] = np.uint8(alpha) if side[p] == 1 else best[p]
            value = value_of(labels, scores, capacity, arc_ptr, head, edge, moved[:nodes])
            if value > score:
                score = value
                for p in range(nodes):
                    best[p] = moved[p]
        if not score > before:
            break
    return score
