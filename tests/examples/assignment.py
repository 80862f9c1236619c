"""Assignment: match the rows of one set of points with those of another, by SciPy's solver.

A block is two sets of k points; a labelling gives the partner y_r of every row r, and no two rows share one. With features
f_rc of matching r with c, here the squared distance in each coordinate,

    φ(x, y) = −Σ_r f_{r, y_r},        L(y) = (1/k) Σ_r [y_r ≠ truth_r],

both are sums over the matched pairs, so `scipy.optimize.linear_sum_assignment` finds the maximum exactly. Other solvers fit
in the same place; those of OR-tools take integer costs, whose rounding would make the oracle an approximate one.

A row of labels with a partner twice is no matching: `features` refuses it, as an oracle has to.

    PYTHONPATH=tests/examples python -m pipeline dataset=python_oracle dataset.oracle=assignment:Assignment path.eps=0.05
"""

import numpy as np
from scipy.optimize import linear_sum_assignment

from gapwise.stages.problems.oracle import Oracle


class Assignment(Oracle):
    """`n` pairs of sets of `k` points in `d` dimensions; the second set is the first, shuffled and moved at random.

    The movement differs between dimensions, and how far to trust each of them is what is learnt. Weights are >= 0.
    """

    def __init__(self, split, n=25, k=6, d=5):
        rng = np.random.default_rng([len(split), n])
        self.d, self.labels, self.lower, self.upper = d, k, np.zeros(d), np.full(d, np.inf)
        points = rng.normal(size=(n, k, d))
        moved = points + rng.normal(size=(n, k, d)) * np.linspace(0.1, 2.0, d)
        self.partner = np.array([rng.permutation(k) for _ in range(n)])
        others = np.empty_like(moved)
        for i in range(n):
            others[i, self.partner[i]] = moved[i]
        self.f = -((points[:, :, None] - others[:, None]) ** 2)  # (n, k, k, d)

    def __len__(self):
        return len(self.partner)

    def truth(self, i):
        return self.partner[i]

    def features(self, i, y):
        if np.unique(y).size != y.size:
            raise ValueError(f"{y} is no matching: two rows have the same partner")
        return self.f[i, np.arange(y.size), y].sum(axis=0)

    def loss(self, i, y):
        return float(np.mean(y != self.partner[i]))

    def least_loss(self, i):
        return 2.0 / self.labels  # one wrong partner takes another one's

    def max_oracle(self, i, theta):
        wrong = 1.0 - np.eye(self.labels)[self.partner[i]]  # (k, k): whether the match is wrong
        return linear_sum_assignment(self.f[i] @ theta + wrong / self.labels, maximize=True)[1]

    def decode(self, i, theta):
        return linear_sum_assignment(self.f[i] @ theta, maximize=True)[1]
