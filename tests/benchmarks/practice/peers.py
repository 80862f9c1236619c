"""Packages behind scikit-learn's interface. A unit's target is (labels, truth); `fit` reads the labels."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator

Units = Sequence[Any]


class Rows(BaseEstimator):
    """A classifier of single rows, each by itself: tokens with their attributes, digits, superpixels weighed by pixels."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def fit(self, x: Units, y: Units) -> Self:
        """Train on the rows that have a label."""
        from sklearn.exceptions import ConvergenceWarning

        self.columns_ = None
        if not isinstance(_rows(x[0]), np.ndarray):
            from sklearn.feature_extraction.text import CountVectorizer

            self.columns_ = CountVectorizer(analyzer=list, binary=True, dtype=np.float64)
            self.columns_.fit(chain.from_iterable(x))
        labels = np.concatenate([np.asarray(own, object) for own, _ in y])
        known = np.array([label is not None for label in labels])
        weight = {}
        if isinstance(x[0], tuple):
            area = np.concatenate([pixels for _, pixels in x])[known]
            weight["sample_weight"] = area / area.mean()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            self.model.fit(self._matrix(x)[known], np.array(labels[known].tolist()), **weight)
        return self

    def predict(self, x: Units) -> list[Any]:
        """Labels of each unit's rows."""
        return np.split(self.model.predict(self._matrix(x)), np.cumsum([len(_rows(unit)) for unit in x])[:-1])

    def _matrix(self, x: Units) -> Any:
        if self.columns_ is None:
            return np.concatenate([_rows(unit) for unit in x])
        return self.columns_.transform(chain.from_iterable(x))


def _rows(unit: Any) -> Any:
    return unit[0] if isinstance(unit, tuple) else unit


class CRFsuite(BaseEstimator):
    """A conditional random field by python-crfsuite, over the attributes that we get, and the three biases of `ChainSVM`."""

    def __init__(self, algorithm: str = "lbfgs", params: dict[str, float] | None = None) -> None:
        self.algorithm = algorithm
        self.params = params

    def fit(self, x: Units, y: Units) -> Self:
        """Train one model."""
        import pycrfsuite

        trainer = pycrfsuite.Trainer(algorithm=self.algorithm, params=dict(self.params or {}), verbose=False)
        for sequence, (labels, _) in zip(x, y, strict=True):
            trainer.append(_items(sequence), list(labels))
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "model"
            trainer.train(str(file))
            self.model_ = file.read_bytes()
        return self

    def predict(self, x: Units) -> list[list[str]]:
        """Labels of each sequence."""
        import pycrfsuite

        tagger: Any = pycrfsuite.Tagger()
        tagger.open_inmemory(self.model_)
        return [tagger.tag(_items(sequence)) for sequence in x]


def _items(sequence: Sequence[Sequence[str]]) -> list[list[str]]:
    items = [[*token, "bias"] for token in sequence]
    items[0].append("BOS")
    items[-1].append("EOS")
    return items
