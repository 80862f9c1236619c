"""Classifiers of single rows by scikit-learn: tokens, superpixels, digits, each by itself."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from gapwise.pipeline.practice.contest import (
    GAMMAS,
    Contestant,
    Labels,
    Part,
    Predict,
    Setting,
    by_validation,
    pickled,
)


class _Rows:
    """Rows of all units as one matrix: attributes as columns, with biases as ours, or numbers as they are."""

    def __init__(self, x: Sequence[Any]) -> None:
        self.names: Any = None
        if not isinstance(x[0], np.ndarray):
            from sklearn.feature_extraction.text import CountVectorizer

            self.names = CountVectorizer(analyzer=_attributes, binary=True, dtype=np.float64)
            self.names.fit(chain.from_iterable(x))

    def __call__(self, x: Sequence[Any]) -> Any:
        return np.concatenate(x) if self.names is None else self.names.transform(chain.from_iterable(x))


def _attributes(token: Sequence[str]) -> Sequence[str]:
    return token


def fit(make: Callable[[Setting], Any], part: Part, setting: Setting, folder: Path) -> tuple[Predict, int]:
    """Train a classifier on the rows that have a label."""
    from sklearn.exceptions import ConvergenceWarning

    rows, y = _Rows(part.x), np.concatenate([np.asarray(labels, object) for labels in part.y])
    known = np.array([label is not None for label in y])
    X, y = rows(part.x)[known], np.array(y[known].tolist())
    weight = {} if part.weight is None else {"sample_weight": np.concatenate(part.weight)[known]}
    if weight:
        weight["sample_weight"] = weight["sample_weight"] / weight["sample_weight"].mean()
    model = make(setting)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, y, **weight)

    def predict(x: Sequence[Any]) -> list[Labels]:
        return np.split(model.predict(rows(x)), np.cumsum([len(unit) for unit in x])[:-1])

    return predict, pickled((rows, model))


def _contestant(says: str, make: Callable[[Setting], Any], grid: Sequence[Setting], needs: str) -> Contestant:
    return Contestant(says, by_validation(lambda *given: fit(make, *given), grid), (needs,))


def _liblinear(setting: Setting) -> Any:
    from sklearn.svm import LinearSVC

    return LinearSVC(random_state=0, **setting)


def _logistic(setting: Setting) -> Any:
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(max_iter=200, **setting)


def _rbf(setting: Setting) -> Any:
    from sklearn.svm import SVC

    return SVC(**setting)


def _forest(setting: Setting) -> Any:
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(n_estimators=100, random_state=0, **setting)


COSTS = (1.0, 0.1, 0.01, 10.0, 0.001)
LIBLINEAR = _contestant("LIBLINEAR (LinearSVC)", _liblinear, [{"C": C} for C in COSTS], "sklearn.svm")
LOGISTIC = _contestant("logistic regression", _logistic, [{"C": C} for C in COSTS], "sklearn.linear_model")
RBF = _contestant(
    "SVM with RBF kernel (SVC)", _rbf,
    [{"C": C, "gamma": gamma} for C in (1.0, 10.0, 100.0) for gamma in GAMMAS], "sklearn.svm",
)  # fmt: skip
FOREST = _contestant(
    "random forest, 100 trees", _forest, [{"min_samples_leaf": k} for k in (1, 4, 16)], "sklearn.ensemble"
)
