"""The figures of merit of the fields, from counts that add up over units (sentences, pictures)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from seqeval.metrics.sequence_labeling import get_entities

RESAMPLES = 1000


class Figure(NamedTuple):
    """A figure of merit."""

    name: str
    of: Callable[[np.ndarray], float]
    """from the sum of the counts of all units"""
    sign: int
    """-1 where less is better"""


@dataclass(frozen=True)
class Judge:
    """How predictions become figures; settings are chosen by the first."""

    counts: Callable[[Any, Any], Sequence[float]]
    """of one unit, from its truth and its predicted labels"""
    figures: tuple[Figure, ...]

    def table(self, truth: Sequence[Any], predicted: Sequence[Any]) -> np.ndarray:
        """Counts (units, k)."""
        return np.array([self.counts(*pair) for pair in zip(truth, predicted, strict=True)], float)

    def score(self, model: Any, x: Sequence[Any], y: Sequence[Any]) -> float:
        """The first figure of a model on units, more is better: scikit-learn's `scoring`."""
        lead = self.figures[0]
        return lead.sign * lead.of(self.table([truth for _, truth in y], model.predict(x)).sum(axis=0))

    def resampled(self, table: np.ndarray) -> dict[str, float]:
        """Standard errors of the figures, from bootstrap samples of the units."""
        n = len(table)
        drawn = np.random.default_rng(0).multinomial(n, np.full(n, 1.0 / n), RESAMPLES) @ table
        return {figure.name: float(np.std([figure.of(sums) for sums in drawn], ddof=1)) for figure in self.figures}


def _ratio(above: int, below: int) -> Callable[[np.ndarray], float]:
    return lambda sums: float(sums[above] / max(sums[below], 1.0))


def _wrong(truth: Sequence[Any], labels: Sequence[Any]) -> list[float]:
    wrong = sum(a != b for a, b in zip(truth, labels, strict=True))
    return [wrong, len(truth), wrong > 0, 1]


def _chunks(truth: Sequence[str], labels: Sequence[str]) -> list[float]:
    true, predicted = set(get_entities(list(truth))), set(get_entities(list(labels)))
    return [*_wrong(truth, labels), len(true & predicted), len(true), len(predicted)]


def _pixels(truth: np.ndarray, labels: Sequence[int]) -> list[float]:
    """By class: pixels that are right, pixels of the class, pixels that are labelled so."""
    each, given = np.arange(len(truth)), np.asarray(labels, int)
    right = np.bincount(given, truth[each, given], truth.shape[1])
    return [*right, *truth.sum(axis=0), *np.bincount(given, truth.sum(axis=1), truth.shape[1])]


def _accuracy(sums: np.ndarray) -> float:
    right, true, _ = sums.reshape(3, -1)
    return float(right.sum() / true.sum())


def _iou(sums: np.ndarray) -> float:
    right, true, labelled = sums.reshape(3, -1)[:, 1]
    return float(right / max(true + labelled - right, 1.0))


def _class_accuracy(sums: np.ndarray) -> float:
    right, true, _ = sums.reshape(3, -1)
    return float(np.mean(right[true > 0] / true[true > 0]))


LETTERS = Judge(_wrong, (Figure("letter error", _ratio(0, 1), -1), Figure("word error", _ratio(2, 3), -1)))
ERROR = Judge(_wrong, (Figure("error", _ratio(0, 1), -1),))
CHUNKS = Judge(
    _chunks,
    (
        Figure("chunk F1", lambda sums: float(2 * sums[4] / max(sums[5] + sums[6], 1.0)), 1),
        Figure("token error", _ratio(0, 1), -1),
    ),
)
HORSES = Judge(_pixels, (Figure("pixel accuracy", _accuracy, 1), Figure("IoU", _iou, 1)))
CLASSES = Judge(_pixels, (Figure("pixel accuracy", _accuracy, 1), Figure("class accuracy", _class_accuracy, 1)))
