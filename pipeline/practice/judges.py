"""The figures of merit of the fields, from counts that add up over units."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gapwise.pipeline.practice.contest import Figure, Judge, Labels


def _ratio(above: int, below: int) -> Any:
    return lambda sums: float(sums[above] / max(sums[below], 1.0))


def _wrong(truth: Labels, labels: Labels) -> list[float]:
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


def _chunks(truth: Labels, labels: Labels) -> list[float]:
    true, predicted = chunks_of(truth), chunks_of(labels)
    return [*_wrong(truth, labels), len(true & predicted), len(true), len(predicted)]


def _pixels(truth: np.ndarray, labels: Labels) -> list[float]:
    """By class: pixels that are right, pixels of the class, pixels that are labelled so."""
    each, labels = np.arange(len(truth)), np.asarray(labels, int)
    right = np.bincount(labels, truth[each, labels], truth.shape[1])
    return [*right, *truth.sum(axis=0), *np.bincount(labels, truth.sum(axis=1), truth.shape[1])]


def _accuracy(sums: np.ndarray) -> float:
    right, true, _ = sums.reshape(3, -1)
    return float(right.sum() / true.sum())


def _iou(sums: np.ndarray) -> float:
    right, true, labelled = sums.reshape(3, -1)[:, 1]
    return float(right / max(true + labelled - right, 1.0))


def _class_accuracy(sums: np.ndarray) -> float:
    right, true, _ = sums.reshape(3, -1)
    return float(np.mean(right[true > 0] / true[true > 0]))


def _links(truth: tuple[set[Any], set[Any]], links: Any) -> list[float]:
    sure, possible = truth
    return [len(links & sure), len(links & (sure | possible)), len(links), len(sure)]


def _order(relevance: np.ndarray, scores: Any) -> list[float]:
    """NDCG@10, and the share of pairs in the wrong order, where ties count half; of queries that have an order."""
    from sklearn.metrics import ndcg_score

    scores, preferred = np.asarray(scores, float), relevance[:, None] > relevance[None]
    apart = (scores[:, None] - scores[None])[preferred]
    swapped = float(np.mean((apart < 0) + 0.5 * (apart == 0)))
    return [float(ndcg_score(relevance[None], scores[None], k=10)), swapped, 1]


LETTERS = Judge(_wrong, (Figure("letter error", _ratio(0, 1), True), Figure("word error", _ratio(2, 3), True)))
CHUNKS = Judge(
    _chunks,
    (
        Figure("chunk F1", lambda sums: float(2 * sums[4] / max(sums[5] + sums[6], 1.0)), False),
        Figure("token error", _ratio(0, 1), True),
    ),
)
ERROR = Judge(_wrong, (Figure("error", _ratio(0, 1), True),))
HORSES = Judge(_pixels, (Figure("pixel accuracy", _accuracy, False), Figure("IoU", _iou, False)))
CLASSES = Judge(_pixels, (Figure("pixel accuracy", _accuracy, False), Figure("class accuracy", _class_accuracy, False)))
ALIGNMENT = Judge(
    _links,
    (
        Figure("AER", lambda sums: float(1.0 - (sums[0] + sums[1]) / max(sums[2] + sums[3], 1.0)), True),
        Figure("precision", _ratio(1, 2), False),
        Figure("recall", _ratio(0, 3), False),
    ),
)
ORDER = Judge(_order, (Figure("NDCG@10", _ratio(0, 2), False), Figure("swapped pairs", _ratio(1, 2), True)))
