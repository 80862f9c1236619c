"""Ranking by LIBLINEAR: a linear classifier of differences between documents of a query (Joachims, KDD 2002)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gapwise.pipeline.practice.contest import Contestant, Labels, Part, Predict, Setting, by_validation, pickled

MOST = 200
"""Pairs of a query at most, drawn evenly."""


def _differences(x: np.ndarray, relevance: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Better documents minus worse ones (pairs, D), every other one with its sign turned by `fit`."""
    better, worse = np.nonzero(relevance[:, None] > relevance[None])
    drawn = rng.permutation(better.size)[:MOST]
    differences: np.ndarray = x[better[drawn]] - x[worse[drawn]]
    return differences


def fit(part: Part, setting: Setting, folder: Path) -> tuple[Predict, int]:
    """LinearSVC without intercept."""
    from sklearn.svm import LinearSVC

    rng = np.random.default_rng(0)
    rows = np.concatenate([_differences(x, relevance, rng) for x, relevance in zip(part.x, part.y, strict=True)])
    sign = np.where(np.arange(len(rows)) % 2, 1.0, -1.0)
    model: Any = LinearSVC(fit_intercept=False, random_state=0, **setting).fit(rows * sign[:, None], sign)

    def predict(x: Sequence[Any]) -> list[Labels]:
        return [unit @ model.coef_[0] for unit in x]

    return predict, pickled(model)


PAIRS = Contestant(
    "LIBLINEAR on pairs",
    by_validation(fit, [{"C": C} for C in (1.0, 0.1, 0.01, 10.0, 0.001, 0.0001)]),
    ("sklearn.svm",),
)
