"""A grid of two labels with a Potts term, solved exactly by the minimum cut that comes with Gapwise.

A block is a noisy picture of H × W pixels with a few channels. With E the pairs of neighbours,

    ⟨w, φ(x, y)⟩ = Σ_p ⟨u, (1, x_p)⟩ (2 y_p − 1)/2 − v Σ_{pq in E} [y_p ≠ y_q],        v ≥ 0,

and the loss is the share of wrong pixels, so the best labelling with or without it is a minimum cut (`minimum_cut` in
`stages/problems/images/maxflow.py`): the capacity of an edge is v, and of a pixel's arc to source or sink the
difference between its two labels' scores.

    PYTHONPATH=tests/examples python -m pipeline dataset=python_oracle dataset.oracle=potts_grid:Grid path.eps=0.05

Pictures with superpixels and features of their own need no code: `dataset=images`.
"""

import numpy as np
from numba import njit

from gapwise.stages.problems.images.maxflow import adjacency, minimum_cut, workspace
from gapwise.stages.problems.oracle import Oracle


@njit(cache=True)
def cut(arc_ptr, head, reverse, edge, capacity, terminals):
    """Labels (S,): 1 on the source's side, of pixels with these terminal capacities (S,), positive towards label 1."""
    work, sink_side = workspace(terminals.size, capacity.size), np.empty(terminals.size, np.uint8)
    work[0][:] = terminals
    minimum_cut(arc_ptr, head, reverse, edge, capacity, sink_side, work)
    return 1 - sink_side.astype(np.int64)


def neighbours(height, width):
    """Pairs of pixels (E, 2) that share a side."""
    pixel = np.arange(height * width).reshape(height, width)
    across, down = (pixel[:, :-1], pixel[:, 1:]), (pixel[:-1], pixel[1:])
    return np.concatenate([np.stack([a.ravel(), b.ravel()], axis=1) for a, b in (across, down)])


class Grid(Oracle):
    """`n` pictures of a rectangle, whose `channels` are more or less noisy."""

    labels = 2

    def __init__(self, split, n=20, height=6, width=7, channels=2):
        rng = np.random.default_rng([len(split), n])
        self.d = channels + 2  # a constant, the channels, the Potts weight
        self.lower, self.upper = [-np.inf] * (self.d - 1) + [0.0], [np.inf] * self.d
        masks = np.zeros((n, height, width), int)
        for mask in masks:
            top, left = rng.integers(height // 2), rng.integers(width // 2)
            mask[top : top + height // 2 + 1, left : left + width // 2 + 1] = 1
        self.y = masks.reshape(n, -1)
        noise = rng.normal(size=(n, height * width, channels)) * np.arange(1, channels + 1)
        self.x = np.concatenate([np.ones((*self.y.shape, 1)), 2.0 * self.y[:, :, None] - 1.0 + noise], axis=2)
        self.edges = neighbours(height, width)
        self.graph = adjacency(self.edges, np.array([0, len(self.edges)]), np.array([0, height * width]))

    def __len__(self):
        return len(self.y)

    def truth(self, i):
        return self.y[i]

    def features(self, i, y):
        unary = (y - 0.5) @ self.x[i]
        return np.append(unary, -np.sum(y[self.edges[:, 0]] != y[self.edges[:, 1]]))

    def loss(self, i, y):
        return float(np.mean(y != self.y[i]))

    def least_loss(self, i):
        return 1.0 / self.y.shape[1]

    def max_oracle(self, i, theta):
        return self.best(i, theta, (1.0 - 2.0 * self.y[i]) / self.y.shape[1])

    def decode(self, i, theta):
        return self.best(i, theta, np.zeros(self.y.shape[1]))

    def best(self, i, theta, extra):
        """The best labelling; `extra` (S,) is what label 1 gains over label 0 besides its score."""
        terminals = self.x[i] @ theta[:-1] + extra
        return cut(*self.graph, np.full(len(self.edges), max(theta[-1], 0.0)), terminals)
