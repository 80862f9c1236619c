"""Any structure whose joint features, loss and oracles are Python functions of one example."""

from __future__ import annotations

import contextlib
import hashlib
import inspect
import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from gapwise.pipeline.compute.local import Compute
from gapwise.pipeline.estimators.base import GapwiseEstimator
from gapwise.pipeline.estimators.data import Data, Samples, listed, pairs, part
from gapwise.pipeline.estimators.examples import LENT, Lent
from gapwise.pipeline.estimators.structured_model import StructuredModel
from gapwise.stages.choice.held_out import Held
from gapwise.stages.datasets import Blocks, open_dataset
from gapwise.stages.problems import build
from gapwise.stages.problems.answers import labelling, signed
from gapwise.stages.problems.protocol import Problem
from gapwise.storage.backend import Location


@dataclass(eq=False, repr=False)
class StructuredSVM(GapwiseEstimator):
    """Structured SVM over a `StructuredModel`, the user's own Python code (the structure `python_oracle`).

    Parameters
    ----------
    oracle : StructuredModel
        Features, loss, and the two oracles of one example.
    lam, tolerance, eps, validation, pick, criterion, calibration
        As for every estimator: see `GapwiseEstimator`.
    solver, max_passes, max_seconds, verify, warm_start, n_jobs, random_state
        As for every estimator: see `GapwiseEstimator`. Python holds a lock, so threads gain nothing here; for oracles on
        several processes run the pipeline (`dataset=python_oracle`).

    Attributes
    ----------
    coef_ : array, shape (d,)
        w at `lambda_`.
    lambda_, path_, refit_, certificate_
        As in `GapwiseEstimator`.

    Examples
    --------
    The sign of a number, as a structure with one entry:

    >>> from gapwise import StructuredModel
    >>> class Sign(StructuredModel):
    ...     d = 1
    ...
    ...     def features(self, x, y):
    ...         return [x if y[0] else -x]
    ...
    ...     def loss(self, y, other):
    ...         return float(y[0] != other[0])
    ...
    ...     def max_oracle(self, x, y, w):
    ...         return max(([0], [1]), key=lambda z: self.loss(y, z) + w @ self.features(x, z))
    ...
    ...     def decode(self, x, w):
    ...         return [int(w[0] * x > 0)]
    >>> model = StructuredSVM(Sign(), lam=0.1).fit([-1.0, 2.0, 3.0], [[0], [1], [1]])
    >>> [labels.tolist() for labels in model.predict([-5.0, 5.0])]
    [[0], [1]]
    """

    _structure = "python_oracle"

    oracle: StructuredModel | None = None

    def fit(self, X: Samples, y: Samples, *, run_dir: str | Location | None = None) -> Self:
        """Try the oracle on a few examples, solve and verify.

        Parameters
        ----------
        X : list
            Inputs, in any form that `oracle` knows. Of a DataFrame each row is an input.
        y : list
            True labellings, each a row of integers.
        run_dir : path or URL, optional
            Where the state is committed: the same call goes on after a kill, to the same bits. What is not seen: edits of
            code outside the oracle's own class and its bases.

        Raises
        ------
        ValueError
            If the oracle's answers cannot be used or are not the largest; names method and block (example).
        """
        return self._fit(X, y, None, run_dir)

    @property
    def _model(self) -> StructuredModel:
        """`oracle`; ValueError if it is none."""
        if not isinstance(self.oracle, StructuredModel):
            raise ValueError(f"oracle: expected an object of a subclass of StructuredModel, got {self.oracle!r}")
        return self.oracle

    def _checked(self, X: Samples, y: Samples, sample_weight: npt.ArrayLike | None = None) -> Data:
        _ = self._model  # what is wrong with the oracle is said first
        return pairs(X, y, "examples")

    @contextlib.contextmanager
    def _problems(self, train: Data, held: Data | None, compute: Compute) -> Iterator[tuple[Problem, Held | None]]:
        number = next(_numbers)
        test = held or train
        LENT[number] = {"train": Lent(self._model, train.x, train.y), "test": Lent(self._model, test.x, test.y)}
        try:
            options = {"oracle": "gapwise.pipeline.estimators.examples:Examples", "arguments": {"number": number}}
            sink = Blocks(self._structure)
            try:
                meta = open_dataset(self._structure, options).featurize(sink, map, lambda *_: None)
            except ValueError as error:
                raise ValueError(str(error).replace("dataset.oracle: Examples.", "oracle.")) from error
            first = build(self._structure, sink.arrays("train"), meta)
            yield first, None if held is None else Held.of(self._structure, sink.arrays("test"), meta)
        finally:
            del LENT[number]

    @contextlib.contextmanager
    def _divided(self, data: Data, chosen: np.ndarray, compute: Compute) -> Iterator[tuple[Problem, Problem, Held]]:
        every = part(data, np.argsort(chosen, kind="stable"))
        parts = (every, None), (part(data, ~chosen), part(data, chosen))
        with self._problems(*parts[0], compute) as (whole, _), self._problems(*parts[1], compute) as (train, held):
            assert held is not None
            yield whole, train, held

    def _own_digest(self, data: Data) -> bytes:
        from joblib import hash as hash_of  # arrays by their bytes, objects by their pickles; scikit-learn brings it

        text = hashlib.sha256(hash_of([self.oracle, data.x]).encode())
        for kind in type(self.oracle).__mro__:
            with contextlib.suppress(OSError, TypeError):  # classes of a console have no source
                text.update(inspect.getsource(kind).encode())
        return text.digest()

    def problem(self, X: Samples, y: Samples) -> Problem:
        """Always raises: the problem calls back into this object, so it lives no longer than a fit.

        Parameters
        ----------
        X, y : list
            Not used.

        Raises
        ------
        ValueError
            Always; set `lam`, or use ``fit(..., run_dir=...)``.
        """
        raise ValueError("problem: a StructuredSVM's problem exists only within fit; set lam, or use fit(…, run_dir=…)")

    def predict(self, X: Samples, lam: float | None = None) -> list[np.ndarray]:
        """Labellings of new inputs by `oracle.decode`.

        Parameters
        ----------
        X : list
            Inputs, in any form that `oracle` knows.
        lam : float, optional
            Any lambda that the path certifies; by default `lambda_`.

        Returns
        -------
        list of int arrays
            A labelling for each input.

        Raises
        ------
        ValueError
            If an answer of `oracle.decode` is no labelling; names the example.
        """
        check_is_fitted(self, "lambda_")
        w, model = self._weights if lam is None else self._weights_at(lam), self._model
        labellings = []
        for i, x in enumerate(listed("X", X, "examples")):
            ids = model.coordinates(x)
            try:
                decoded = model.decode(x, w.copy() if ids is None else w[np.asarray(ids, np.int64)])
                labellings.append(labelling(decoded, model.labels))
            except ValueError as error:
                raise ValueError(f"oracle.decode: example {i}: {error}") from error
        return labellings

    def score(self, X: Samples, y: Samples) -> float:
        """1 minus the mean loss.

        Parameters
        ----------
        X : list
            Inputs, in any form that `oracle` knows.
        y : list
            True labellings, each a row of integers.

        Returns
        -------
        float
            At most 1, in units of `oracle.loss`.
        """
        data = pairs(X, y, "examples")
        losses = [self._model.loss(signed(a), b) for a, b in zip(data.y, self.predict(data.x), strict=True)]
        return 1.0 - float(np.mean(losses))


_numbers = itertools.count()
