"""Oracles in Python for tests: pairs of labels that tend to agree, with all labellings in a table."""

from __future__ import annotations

import itertools
import time

import numpy as np

from stages.problems.python_oracle import Oracle


class Pairs(Oracle):
    """n pairs over three labels: `width` inputs for each of the two positions, and one weight for agreeing.

    `delay`: seconds that each call of the max-oracle sleeps.
    """

    labels = 3

    def __init__(self, split: str, n: int = 4, width: int = 2, delay: float = 0.0) -> None:
        rng = np.random.default_rng([len(split), n, width])
        self.delay, self.d = delay, 3 * width + 1
        self.all = np.array(list(itertools.product(range(3), repeat=2)))
        self.truths = rng.integers(3, size=(n, 2))
        x = rng.normal(size=(n, 2, width)) + np.eye(3, width)[self.truths]
        self.table = np.zeros((n, 9, self.d))
        for k, y in enumerate(self.all):
            for place in range(2):
                self.table[:, k, y[place] * width : (y[place] + 1) * width] += x[:, place]
            self.table[:, k, -1] = y[0] == y[1]
        self.losses = (self.all[None] != self.truths[:, None]).mean(axis=2)

    def __len__(self) -> int:
        return len(self.truths)

    def truth(self, i: int) -> np.ndarray:
        return self.truths[i]

    def features(self, i: int, y: np.ndarray) -> np.ndarray:
        return self.table[i, 3 * int(y[0]) + int(y[1])]

    def loss(self, i: int, y: np.ndarray) -> float:
        return float(self.losses[i, 3 * int(y[0]) + int(y[1])])

    def least_loss(self, i: int) -> float:
        return 0.5

    def max_oracle(self, i: int, theta: np.ndarray) -> np.ndarray:
        if self.delay:
            time.sleep(self.delay)
        return self.all[np.argmax(self._scores(i, theta) + self.losses[i])]

    def decode(self, i: int, theta: np.ndarray) -> np.ndarray:
        return self.all[np.argmax(self._scores(i, theta))]

    def _scores(self, i: int, theta: np.ndarray) -> np.ndarray:
        return (self.table[i] * theta).sum(axis=1)


class SparsePairs(Pairs):
    """Each block touches only some of many weights, and the last one may not be negative."""

    many = 9

    def __init__(self, split: str, **arguments: float) -> None:
        super().__init__(split, **arguments)  # type: ignore[arg-type]
        rng = np.random.default_rng(len(split))
        few, self.d = self.d, self.many
        self.lower, self.upper = [-np.inf] * (self.d - 1) + [0.0], [np.inf] * self.d
        inner = [np.sort(rng.choice(self.d - 1, few - 1, replace=False)) for _ in self.truths]
        self.ids = [np.append(row, self.d - 1) for row in inner]

    def coordinates(self, i: int) -> np.ndarray:
        return self.ids[i]
