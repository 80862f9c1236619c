"""The best labelling of an image by one minimum cut, and the best one in which a superpixel has the other label.

The latter are the max-marginals of a model of two classes (the min-marginals of its energy: Kohli and Torr, 2008): one more
cut for each superpixel, which an infinite terminal capacity forces to the other side. Here the capacity is finite, larger
than all others together, so no cut gains by breaking it.
"""

from __future__ import annotations

import numpy as np

from gapwise.stages.problems.compiled import inner
from gapwise.stages.problems.images.graph import NEGATIVE, arcs_of
from gapwise.stages.problems.images.kernels import labelling_value
from gapwise.stages.problems.images.maxflow import minimum_cut, workspace
from gapwise.stages.problems.protocol import JIT, PLAIN


@inner(**PLAIN)
def terminals(theta, truth, cost, augmented, size, excess):
    """Terminal capacities: minus the gain of labelling p foreground. ValueError if the scores do not make a cut problem."""
    finite, largest, least = True, 0.0, 0.0
    for p in range(size):
        gain = 2.0 * theta[p]
        if augmented:
            gain += cost[p] * (1.0 - 2.0 * truth[p])
        excess[p] = -gain
        finite &= abs(gain) < np.inf
    for e in range(size, theta.size):
        finite &= abs(theta[e]) < np.inf
        largest = max(largest, theta[e])
        least = min(least, theta[e])
    if not finite:
        raise ValueError("segmentation: a score is not finite; look for nan or infinity in the weights")
    if least < -NEGATIVE * largest:
        raise ValueError(
            "segmentation: an edge score is negative, so this is not a cut; clip the pairwise weights to >= 0"
        )


@inner(**PLAIN)
def best_labelling(images, truth, i, start, stop, theta, augmented, y, scratch):
    """y <- the best labelling of block i, whose superpixels are start to stop - 1, with or without the loss."""
    terminals(theta, truth[start:stop], images.loss_if_wrong[start:stop], augmented, stop - start, scratch[0])
    rows, head, reverse, edge = arcs_of(images, i, start, stop)
    minimum_cut(rows, head, reverse, edge, theta[stop - start :], y, scratch)


@inner(**JIT)
def forced_workspace(nodes, edges):
    """Arrays for `forced_scores`: those of a cut, and a labelling."""
    excess, residual, distance, queue = workspace(nodes, edges)
    return excess, residual, distance, queue, np.empty(nodes, np.uint8)


@inner(**PLAIN)
def forced_scores(images, truth, i, start, stop, theta, y, out, scratch):
    """y <- the best labelling of block i; out (S, 2) <- score of the best labelling with each label of each superpixel."""
    size, cost, work = stop - start, images.loss_if_wrong, scratch[:4]
    other = scratch[4][:size]
    edges, force = images.edges[images.edge_ptr[i] : images.edge_ptr[i + 1]], 1.0
    best_labelling(images, truth, i, start, stop, theta, False, y, work)
    best = labelling_value(theta, y, edges)
    for j in range(theta.size):
        force += 2.0 * abs(theta[j])
    rows, head, reverse, edge = arcs_of(images, i, start, stop)
    for p in range(size):
        terminals(theta, truth[start:stop], cost[start:stop], False, size, scratch[0])
        scratch[0][p] = force if y[p] == 1 else -force
        minimum_cut(rows, head, reverse, edge, theta[size:], other, work)
        out[p, np.int64(y[p])] = best
        out[p, 1 - np.int64(y[p])] = labelling_value(theta, other, edges)
