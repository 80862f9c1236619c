"""A structure of one's own in twenty lines: ranking k items by brute force over their orders."""

import itertools

import numpy as np

import gapwise


class Ranking(gapwise.StructuredModel):
    d, labels = 3, 4  # weights; the item at each place is one of 4
    orders = np.array(list(itertools.permutations(range(4))))

    def features(self, x, y):  # items (4, d) weighted by their place
        return np.array([3, 1, -1, -3]) @ x[y]

    def loss(self, y, other):
        return float(np.mean(y != other))

    def max_oracle(self, x, y, w):
        return max(self.orders, key=lambda z: self.loss(y, z) + w @ self.features(x, z))

    def decode(self, x, w):
        return np.argsort(-(x @ w))


rng = np.random.default_rng(0)
X = list(rng.normal(size=(30, 4, 3)))
y = [np.argsort(-(x @ [1.0, -2.0, 0.5])) for x in X]
model = gapwise.StructuredSVM(Ranking(), lam=0.01, tolerance=0.05).fit(X[:20], y[:20])
print(f"{model.score(X[20:], y[20:]):.2f} of the places right, {model.certificate_}")
