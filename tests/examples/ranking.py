"""Ranking: order the documents of a query so that relevant ones come first (the ranking SVM).

A block is a query with R relevant and S other documents. A labelling has one entry for each pair of a relevant and another
document: 1 if the pair is in the wrong order. With P = R S pairs,

    φ(x, y) = (1/P) Σ_pairs (1 − 2 y_rs) (x_r − x_s),        L(y) = (1/P) Σ_pairs y_rs,

so the loss is 1 − AUC. The maximum falls apart into pairs: y_rs = 1 where 1 > 2 ⟨w, x_r − x_s⟩. Rows of pairs that no order
of the documents gives need not be ruled out: some order attains the maximum (Joachims, *A Support Vector Method for
Multivariate Performance Measures*, ICML 2005, section 4.3).

    PYTHONPATH=tests/examples python -m pipeline dataset=python_oracle dataset.oracle=ranking:Ranking path.eps=0.02
"""

import numpy as np

from gapwise.stages.problems.oracle import Oracle


class Ranking(Oracle):
    """`n` queries with `relevant` and `others` documents of `d` features each, drawn at random."""

    labels = 2

    def __init__(self, split, n=30, relevant=3, others=5, d=6):
        rng = np.random.default_rng([len(split), n])
        self.d, taste = d, np.linspace(-1.0, 1.0, d)
        documents = rng.normal(size=(n, relevant + others, d))
        order = np.argsort(-(documents @ taste + rng.normal(size=documents.shape[:2])), axis=1)
        documents = np.take_along_axis(documents, order[:, :, None], axis=1)  # the most relevant ones first
        first, rest = documents[:, :relevant, None], documents[:, None, relevant:]
        self.differences = (first - rest).reshape(n, relevant * others, d)

    def __len__(self):
        return len(self.differences)

    def truth(self, i):
        return np.zeros(self.differences.shape[1], int)

    def features(self, i, y):
        return (1.0 - 2.0 * y) @ self.differences[i] / y.size

    def loss(self, i, y):
        return float(np.mean(y))

    def least_loss(self, i):
        return 1.0 / self.differences.shape[1]

    def max_oracle(self, i, theta):
        return (2.0 * (self.differences[i] @ theta) < 1.0).astype(int)

    def decode(self, i, theta):
        return (self.differences[i] @ theta < 0.0).astype(int)
