"""Classes that are the leaves of a tree: confusing two dogs is better than taking a dog for a car.

Every node v of the tree but the root has weights w_v, and a leaf's score is the sum over its path from the root,
⟨w, φ(x, y)⟩ = Σ_{v on the path to y} ⟨w_v, x⟩, so that related classes share what is common to them (Cai, Hofmann,
*Hierarchical Document Categorization with Support Vector Machines*, CIKM 2004). The loss is the distance of the two
leaves in the tree over the largest one. The oracle looks at every leaf.

Flat classes with such a loss need no code of one's own: `dataset=multiclass_arrays dataset.costs=tree.csv`.

    PYTHONPATH=tests/examples python -m pipeline dataset=python_oracle dataset.oracle=hierarchy:Hierarchy path.eps=0.05
"""

import numpy as np

from gapwise.stages.problems.oracle import Oracle

PARENT = {
    **{"animal": "", "dog": "animal", "hound": "dog", "pug": "dog", "cat": "animal"},
    **{"thing": "", "car": "thing", "ship": "thing"},
}
"""The node above each node; "" is the root."""
NODES = list(PARENT)
LEAVES = [node for node in NODES if node not in PARENT.values()]


def path_to(node):
    """The nodes from the root, without it, down to `node`."""
    return [] if node == "" else [*path_to(PARENT[node]), node]


PATHS = np.array([[node in path_to(leaf) for node in NODES] for leaf in LEAVES], float)  # (leaves, nodes)
DISTANCES = np.abs(PATHS[:, None] - PATHS[None]).sum(axis=2)


class Hierarchy(Oracle):
    """`n` points of `width` features around the mean of their class, which is the sum of a random vector per node."""

    labels = len(LEAVES)

    def __init__(self, split, n=40, width=4):
        self.d = len(NODES) * width
        means = PATHS @ np.random.default_rng(0).normal(size=(len(NODES), width))
        rng = np.random.default_rng([len(split), n])
        self.y = rng.integers(len(LEAVES), size=n)
        self.x = means[self.y] + 0.5 * rng.normal(size=(n, width))
        self.losses = DISTANCES / DISTANCES.max()

    def __len__(self):
        return len(self.y)

    def truth(self, i):
        return self.y[i : i + 1]

    def features(self, i, y):
        return np.outer(PATHS[y[0]], self.x[i]).ravel()

    def loss(self, i, y):
        return float(self.losses[self.y[i], y[0]])

    def least_loss(self, i):
        return float(np.partition(self.losses[self.y[i]], 1)[1])

    def max_oracle(self, i, theta):
        return [np.argmax(self.scores(i, theta) + self.losses[self.y[i]])]

    def decode(self, i, theta):
        return [np.argmax(self.scores(i, theta))]

    def scores(self, i, theta):
        """⟨w, φ(x_i, y)⟩ of every leaf y."""
        return PATHS @ (theta.reshape(len(NODES), -1) @ self.x[i])
