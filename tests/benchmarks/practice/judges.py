"""The figures of merit of the fields, from counts that add up over units (sentences, pictures, queries)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

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


def chunks_of(tags: Sequence[str]) -> set[tuple[int, int, str]]:
    """(first token, end, type) of the chunks of one sentence, as conlleval counts them."""
    chunks, first, kind = set(), 0, ""
    for t, tag in enumerate([*tags, "O"]):
        mark, _, own = tag.partition("-")
        if kind and (mark != "I" or own != kind):
            chunks.add((first, t, kind))
            kind = ""
        if mark != "O" and not kind:
            first, kind = t, own
    return chunks


def _chunks(truth: Sequence[str], labels: Sequence[str]) -> list[float]:
    true, predicted = chunks_of(truth), chunks_of(labels)
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


def _links(truth: tuple[set[Any], set[Any]], links: set[Any]) -> list[float]:
    sure, possible = truth
    return [len(links & sure), len(links & (sure | possible)), len(links), len(sure)]


def _order(relevance: np.ndarray, given: Sequence[float]) -> list[float]:
    """NDCG@10, and the share of pairs in the wrong order, where ties count half; of queries that have an order."""
    from sklearn.metrics import ndcg_score

    scores, preferred = np.asarray(given, float), relevance[:, None] > relevance[None]
    apart = (scores[:, None] - scores[None])[preferred]
    swapped = float(np.mean((apart < 0) + 0.5 * (apart == 0)))
    return [float(ndcg_score(relevance[None], scores[None], k=10)), swapped, 1]


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
ALIGNMENT = Judge(
    _links,
    (
        Figure("AER", lambda sums: float(1.0 - (sums[0] + sums[1]) / max(sums[2] + sums[3], 1.0)), -1),
        Figure("precision", _ratio(1, 2), 1),
        Figure("recall", _ratio(0, 3), 1),
    ),
)
ORDER = Judge(_order, (Figure("NDCG@10", _ratio(0, 2), 1), Figure("swapped pairs", _ratio(1, 2), -1)))
