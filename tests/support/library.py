"""Tiny data in the forms that users of the library have, and a model of one's own."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from gapwise.pipeline.estimators.structured_model import StructuredModel

TAGS = {"the": "D", "dog": "N", "runs": "V", "a": "D", "cat": "N", "sleeps": "V"}


def sentences(n: int = 12, seed: int = 0) -> tuple[list[Any], list[Any]]:
    """Sequences of feature dicts, and their tags."""
    rng = np.random.default_rng(seed)
    words = [rng.choice(list(TAGS), size=rng.integers(1, 5)).tolist() for _ in range(n)]
    X = [[{"word": word, "suffix": [word[-1:], word[-2:]], "short": len(word) < 4} for word in some] for some in words]
    return X, [[TAGS[word] for word in some] for some in words]


def blobs(n: int = 18, classes: int = 3, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Points (n, 4) of classes that overlap a little."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % classes
    return rng.normal(size=(n, 4)) + 2.0 * np.eye(classes, 4)[y], y


def graphs(n: int = 6, seed: int = 0) -> tuple[list[Any], list[Any]]:
    """Chains of superpixels with features, and their labels."""
    rng = np.random.default_rng(seed)
    y = [np.arange(5) > rng.integers(1, 4) for _ in range(n)]
    edges = np.array([(k, k + 1) for k in range(4)])
    return [{"unary": rng.normal(size=(5, 2)) + labels[:, None], "edges": edges} for labels in y], y


class Bits(StructuredModel):
    """Three bits, an input for each, and a weight for neighbours that agree."""

    d = 4
    every = np.array(list(itertools.product((0, 1), repeat=3)))
    agree = np.sum(every[:, 1:] == every[:, :-1], axis=1)

    def features(self, x: np.ndarray, y: np.ndarray) -> Any:
        return np.append(x * y, np.sum(y[1:] == y[:-1]))

    def loss(self, y: np.ndarray, other: np.ndarray) -> float:
        return float(np.mean(y != other))

    def max_oracle(self, x: np.ndarray, y: np.ndarray, w: np.ndarray) -> Any:
        return self.every[np.argmax(self.scores(x, w) + np.mean(self.every != y, axis=1))]

    def decode(self, x: np.ndarray, w: np.ndarray) -> Any:
        return self.every[np.argmax(self.scores(x, w))]

    def scores(self, x: np.ndarray, w: np.ndarray) -> Any:
        return self.every @ (w[:3] * x) + (w[3] * self.agree if w.size == 4 else 0.0)


def bits(n: int = 6, seed: int = 0) -> tuple[list[Any], list[Any]]:
    """Inputs (3,) and bits (3,) of `Bits`."""
    rng = np.random.default_rng(seed)
    y = rng.integers(2, size=(n, 3))
    return list(2.0 * y - 1.0 + 0.3 * rng.normal(size=(n, 3))), list(y)
