"""Oracles in Python for tests: pairs of labels that tend to agree, with all labellings in a table."""

from __future__ import annotations

import itertools
import math
import sys
import time
from typing import Any

import numpy as np

from gapwise.stages.problems.oracle import Oracle


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
            for position in range(2):
                self.table[:, k, y[position] * width : (y[position] + 1) * width] += x[:, position]
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


class Signs(Oracle):
    """Two labels as signs: features and loss compute with 2 y - 1, which a label 0 that is unsigned breaks."""

    d = 2

    def __init__(self, split: str, n: int = 3) -> None:
        rng = np.random.default_rng([len(split), n])
        self.x, self.truths = rng.normal(size=(n, 2)), rng.integers(2, size=(n, 2)).astype(np.uint8)

    def __len__(self) -> int:
        return len(self.x)

    def truth(self, i: int) -> np.ndarray:
        return self.truths[i]

    def features(self, i: int, y: np.ndarray) -> np.ndarray:
        return self.x[i] * (2 * y - 1)

    def loss(self, i: int, y: np.ndarray) -> float:
        return float(np.mean(np.abs(y - self.truths[i])))

    def max_oracle(self, i: int, theta: np.ndarray) -> np.ndarray:
        return (self.x[i] * theta + 0.25 * (1 - 2 * self.truths[i].astype(int)) > 0.0).astype(np.uint8)

    def decode(self, i: int, theta: np.ndarray) -> np.ndarray:
        return (self.x[i] * theta > 0.0).astype(np.uint8)


class ListedPairs(Pairs):
    """Its oracle returns the best labellings; `how`: what is wrong with the second one."""

    def __init__(self, split: str, how: str = "", **arguments: float) -> None:
        super().__init__(split, **arguments)  # type: ignore[arg-type]
        self.how = how

    def max_oracles(self, i: int, theta: np.ndarray, m: int) -> list[Any]:
        order = np.argsort(-(self._scores(i, theta) + self.losses[i]), kind="stable")[:m]
        rows: list[Any] = [self.all[k] for k in order]
        wrong = {"float": rows[1] + 0.5, "again": rows[0]} if m > 1 else {}
        if self.how == "reversed":
            return rows[::-1]
        if self.how == "many":
            return [*rows, rows[0]]
        return [rows[0], wrong[self.how], *rows[2:]] if self.how in wrong else rows


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


class Lying(Pairs):
    """Pairs whose methods answer wrongly in the way `how` names; `block`: only there (-1: everywhere)."""

    def __init__(self, split: str, how: str = "", block: int = -1, **arguments: float) -> None:
        super().__init__(split, **arguments)  # type: ignore[arg-type]
        self.how, self.block, self.calls = how, block, 0
        if how == "exits at once":
            sys.exit(0)
        if how == "many labels":
            self.labels = 50000

    def lies(self, i: int, how: str) -> bool:
        return self.how == how and self.block in (-1, i)

    def truth(self, i: int) -> Any:
        if self.lies(i, "truth is a float"):
            return self.truths[i] + 0.25
        return self.truths[i]

    def features(self, i: int, y: np.ndarray) -> Any:
        phi = super().features(i, y)
        if self.lies(i, "complex features"):
            return phi + 1j
        if self.lies(i, "NaN features"):
            return np.where(np.arange(self.d) == 1, np.nan, phi)
        if self.lies(i, "only the truth has features") and not np.array_equal(y, self.truths[i]):
            raise KeyError("no such labelling")
        return phi

    def loss(self, i: int, y: np.ndarray) -> Any:
        if self.lies(i, "NaN loss") and not np.array_equal(y, self.truths[i]):
            return np.nan
        if self.lies(i, "negative loss"):
            return -super().loss(i, y)
        return 0.0 if self.how == "no loss" else super().loss(i, y)

    def max_oracle(self, i: int, theta: np.ndarray) -> Any:
        self.calls += 1
        if self.lies(i, "truth") or self.how in ("all truth", "only the truth has features"):
            return self.truths[i]
        if self.lies(i, "least"):
            return self.all[np.argmin(self._scores(i, theta) + self.losses[i])]
        if self.lies(i, "without loss"):
            return self.decode(i, theta)
        if self.lies(i, "random"):
            return self.all[self.calls % 9]
        if self.lies(i, "float"):
            return super().max_oracle(i, theta) + 0.0
        if self.lies(i, "wraps"):
            return super().max_oracle(i, theta) + 65536
        if self.lies(i, "exit"):
            sys.exit(0)
        return self.all[np.argmax(self._scores(i, theta) + (0.0 if self.how == "no loss" else self.losses[i]))]

    def decode(self, i: int, theta: np.ndarray) -> Any:
        if self.how in ("all truth", "only the truth has features"):
            return self.truths[i]
        return super().decode(i, theta)


class Single(Pairs):
    """Pairs of which all or some blocks have only one labelling, or where no labelling has a loss."""

    def __init__(self, split: str, how: str, n: int = 3) -> None:
        super().__init__(split, n=n)
        self.how = how
        if how == "no loss":
            self.losses[:] = 0.0

    def max_oracle(self, i: int, theta: np.ndarray) -> np.ndarray:
        return self.truths[i] if self.alone(i) else super().max_oracle(i, theta)

    def decode(self, i: int, theta: np.ndarray) -> np.ndarray:
        return self.truths[i] if self.alone(i) else super().decode(i, theta)

    def features(self, i: int, y: np.ndarray) -> np.ndarray:
        if self.alone(i) and not np.array_equal(y, self.truths[i]):
            raise ValueError("no such labelling")
        return super().features(i, y)

    def least_loss(self, i: int) -> float:
        return math.inf if self.alone(i) else 0.0 if self.how == "no loss" else 0.5

    def alone(self, i: int) -> bool:
        return self.how == "all" or (self.how == "some" and i != 1)


class Greedy(Pairs):
    """An approximate oracle: the best labelling among those whose two labels agree, and the truth."""

    approximate = True

    def max_oracle(self, i: int, theta: np.ndarray) -> np.ndarray:
        values = self._scores(i, theta) + self.losses[i]
        known = [k for k, y in enumerate(self.all) if y[0] == y[1] or np.array_equal(y, self.truths[i])]
        if not theta.any():  # where only the loss counts it is exact, as paths need
            known = list(range(9))
        return self.all[max(known, key=lambda k: values[k])]


class GreedyBounded(Greedy):
    """With a bound: the maximum itself where the answer attains it, else 1/8 more; `less` lowers it."""

    less = 0.0

    def max_bound(self, i: int, theta: np.ndarray) -> float:
        values = self._scores(i, theta) + self.losses[i]
        most, (a, b) = float(values.max()), self.max_oracle(i, theta)
        return most + (0.125 if values[3 * a + b] < most else 0.0) - self.less
