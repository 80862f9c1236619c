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

from gapwise.stages.datasets.alignment.tokens import normal

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


class PairsSVM(BaseEstimator):
    """Ranking by LIBLINEAR: a classifier of differences between documents of a query (Joachims, KDD 2002)."""

    most = 200
    """Pairs of a query at most, drawn evenly."""

    def __init__(self, C: float = 1.0) -> None:
        self.C = C

    def fit(self, x: Units, y: Units) -> Self:
        """LinearSVC without intercept; every other difference with its sign turned."""
        from sklearn.svm import LinearSVC

        rng, rows = np.random.default_rng(0), []
        for unit, (relevance, _) in zip(x, y, strict=True):
            better, worse = np.nonzero(relevance[:, None] > relevance[None])
            drawn = rng.permutation(better.size)[: self.most]
            rows.append(unit[better[drawn]] - unit[worse[drawn]])
        pairs = np.concatenate(rows)
        sign = np.where(np.arange(len(pairs)) % 2, 1.0, -1.0)
        self.coef_ = LinearSVC(C=self.C, fit_intercept=False, random_state=0).fit(pairs * sign[:, None], sign).coef_[0]
        return self

    def predict(self, x: Units) -> list[np.ndarray]:
        """Scores of each query's documents."""
        return [unit @ self.coef_ for unit in x]


class IBMModel(BaseEstimator):
    """IBM Model 1 by nltk in both directions, over parallel text and the pairs; links choose how the two are joined."""

    ways = ("intersection", "union", "grow-diag-final-and")
    iterations = 5

    def __init__(self, text: Units, judge: Any) -> None:
        self.text = text
        self.judge = judge

    def fit(self, x: Units, y: Units) -> Self:
        """EM looks at no links, so held-out pairs need no other model."""
        from nltk.translate import AlignedSent, IBMModel1

        pairs = [_normal(pair) for pair in [*self.text, *x]]
        self.to_french_ = IBMModel1([AlignedSent(f, e) for e, f in pairs], self.iterations)
        self.to_english_ = IBMModel1([AlignedSent(e, f) for e, f in pairs], self.iterations)
        self.way_ = max(self.ways, key=lambda way: self.judge.score(self.joined_by(way), x, y))
        self.setting_ = {"way": self.way_}
        return self

    def joined_by(self, way: str) -> Self:
        """The same with its directions joined in another way."""
        self.way_ = way
        return self

    def predict(self, x: Units) -> list[set[tuple[int, int]]]:
        """Links (English, French) of each pair."""
        return [self._joined(*_normal(pair)) for pair in x]

    def _joined(self, e: list[str], f: list[str]) -> set[tuple[int, int]]:
        from nltk.translate.gdfa import grow_diag_final_and

        forward = {(j, k) for k, j in _aligned(self.to_french_, f, e)}
        back = set(_aligned(self.to_english_, e, f))
        if self.way_ == "grow-diag-final-and":
            texts = [" ".join(f"{j}-{k}" for j, k in sorted(links)) for links in (forward, back)]
            return set(grow_diag_final_and(len(e), len(f), *texts))
        return forward & back if self.way_ == "intersection" else forward | back

    def __getstate__(self) -> dict[str, Any]:
        """What a user would save: the tables."""
        models = (self.to_french_, self.to_english_)
        tables = [{word: dict(row) for word, row in model.translation_table.items()} for model in models]
        return {"tables": tables, "way": self.way_}


def _normal(pair: tuple[Sequence[str], Sequence[str]]) -> tuple[list[str], list[str]]:
    e, f = pair
    return [normal(word) for word in e], [normal(word) for word in f]


def _aligned(model: Any, target: list[str], source: list[str]) -> list[tuple[int, int]]:
    """(target, source) of every target word that has a source word."""
    from nltk.translate import AlignedSent

    sentence = AlignedSent(target, source)
    model.align(sentence)
    return [(t, s) for t, s in sentence.alignment if s is not None]
