"""A user's own compiled structure, in a module outside Gapwise: the sign of <w, x>."""

from typing import NamedTuple

import numpy as np
from sign_helper import twice

from gapwise.stages.problems.protocol import dot


class Sign(NamedTuple):
    """Blocks are single vectors, labels 0 and 1."""

    n: int
    d: int
    local_ptr: np.ndarray
    label_ptr: np.ndarray
    truth: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    x: np.ndarray
    cost: float

    @classmethod
    def read(cls, split, n=20, shift=1.0):
        """Two clouds of points around +shift and -shift."""
        rng = np.random.default_rng(len(split))
        truth = rng.integers(2, size=n).astype(np.uint8)
        x = rng.normal(size=(n, 3)) + shift * (2.0 * truth[:, None] - 1.0)
        steps, none = np.arange(n + 1), np.empty(0)
        return cls(n, 3, steps, steps, truth, none, none, x, 1.0)

    def measures(self, predictions):
        """Number of wrong signs."""
        return {"wrong_signs": np.sum(predictions != self.truth)}

    @property
    def labels(self):
        return 2

    @property
    def unconstrained(self):
        return True

    def scores(self, i, w, theta):
        theta[0] = dot(self.x[i], w)

    def max_oracle(self, i, theta, y, scratch):
        wrong = 1 - self.truth[i]
        gain = self.cost + twice(theta[0]) * (wrong - 1.0 * self.truth[i])
        y[0] = wrong if gain > 0.0 else self.truth[i]
        return self.loss(i, y)

    def decode(self, i, theta, y, scratch):
        y[0] = 1 if theta[0] > 0.0 else 0

    def value(self, i, theta, y):
        return theta[0] * (twice(y[0]) - 1.0)

    def add(self, i, y, c, out):
        out[0] += c * (twice(y[0]) - 1.0)

    def norm2(self, i, delta):
        return delta[0] * delta[0] * dot(self.x[i], self.x[i])

    def push(self, i, c, delta, w):
        for j in range(w.size):
            w[j] += c * delta[0] * self.x[i, j]

    def loss(self, i, y):
        return self.cost if y[0] != self.truth[i] else 0.0

    def least_loss(self, i):
        return self.cost

    def scratch(self):
        return (np.empty(0),)
