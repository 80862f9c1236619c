"""Any structure whose joint features, loss and oracles are Python functions of one example."""

from __future__ import annotations

import contextlib
import hashlib
import inspect
import itertools
from collections.abc import Iterator, Sequence
from typing import Any, Self

import joblib
import numpy as np
from sklearn.utils.validation import check_is_fitted

from gapwise.pipeline.compute.local import Compute
from gapwise.pipeline.estimators.base import GapwiseEstimator
from gapwise.pipeline.estimators.data import Data, same_length
from gapwise.pipeline.estimators.examples import LENT, Lent
from gapwise.stages.datasets import Blocks, open_dataset
from gapwise.stages.problems import build
from gapwise.stages.problems.answers import labelling
from gapwise.stages.problems.protocol import Problem
from gapwise.storage.backend import Location


class StructuredModel:
    """What a user says of one example (x, y): the `oracle` of a `StructuredSVM`.

    The adapter `pipeline.estimators.examples.Examples` turns it and the data into a `gapwise.Oracle`, the one interface
    through which the solver calls a user's Python: block i is the example (x[i], y[i]).

    x is whatever the user has. A labelling y is a row of integers 0, ..., labels - 1, whose length may depend on x. Methods
    must always return the same for the same arguments and must not keep `w`: certificates and resuming rely on that.

    Attributes
    ----------
    d : int
        Number of weights.
    labels : int
        Entries of a labelling are 0, ..., labels - 1.
    lower, upper : sequence of float
        Bounds on w, of length d; empty: none. A path needs each to be 0 or infinite.
    approximate : bool
        Whether `max_oracle` may miss the maximum; the certificate is then an estimate.
    """

    d: int
    labels: int = 2
    lower: Any = ()
    upper: Any = ()
    approximate: bool = False

    def features(self, x: Any, y: np.ndarray) -> Any:
        """Joint features phi(x, y), (d,), or their entries at `coordinates(x)`."""
        raise NotImplementedError

    def loss(self, y: np.ndarray, other: np.ndarray) -> float:
        """Task loss >= 0 of predicting `other` where y is true; 0 for y itself."""
        raise NotImplementedError

    def max_oracle(self, x: Any, y: np.ndarray, w: np.ndarray) -> Any:
        """The labelling z of largest loss(y, z) + <w, features(x, z)>; w at `coordinates(x)` if there are any."""
        raise NotImplementedError

    def decode(self, x: Any, w: np.ndarray) -> Any:
        """The labelling z of largest <w, features(x, z)>."""
        raise NotImplementedError

    def least_loss(self, x: Any, y: np.ndarray) -> float:
        """A lower bound on the loss of all labellings but y; 0 if none is known."""
        return 0.0

    def coordinates(self, x: Any) -> Any:
        """Indices of the weights that x can touch, without repeats; None, for every x or for none: all."""
        return None


class StructuredSVM(GapwiseEstimator):
    """Structured SVM over a `StructuredModel`, the user's own Python code (the structure `python_oracle`).

    Parameters
    ----------
    oracle : StructuredModel
        Features, loss, and the two oracles of one example.
    lam, tolerance, eps, validation, solver, max_passes, max_seconds, verify, warm_start, n_jobs, random_state
        Those of every estimator: see `GapwiseEstimator`. Python holds a lock, so threads gain nothing here; for oracles on
        several processes run the pipeline (`dataset=python_oracle`).

    Attributes
    ----------
    coef_ : array, shape (d,)
        w at `lambda_`.
    lambda_, path_, certificate_
        As in `GapwiseEstimator`.
    """

    _structure = "python_oracle"

    def __init__(
        self,
        oracle: Any = None,
        *,
        lam: Any = "1/n",
        tolerance: float = 1e-3,
        eps: float | None = None,
        validation: float | None = 0.2,
        solver: str = "auto",
        max_passes: float | None = None,
        max_seconds: float | None = None,
        verify: bool = True,
        warm_start: bool = False,
        n_jobs: int | None = None,
        random_state: Any = 0,
    ) -> None:
        super().__init__(
            lam=lam, tolerance=tolerance, eps=eps, validation=validation, solver=solver, max_passes=max_passes,
            max_seconds=max_seconds, verify=verify, warm_start=warm_start, n_jobs=n_jobs, random_state=random_state,
        )  # fmt: skip
        self.oracle = oracle

    def fit(self, X: Any, y: Any, *, run_dir: str | Location | None = None) -> Self:
        """Try the oracle on a few examples, solve and verify.

        Parameters
        ----------
        X : list
            Inputs, in any form that `oracle` knows.
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
        return self._fit(self._checked(X, y), run_dir)

    def _checked(self, X: Any, y: Any) -> Data:
        if not isinstance(self.oracle, StructuredModel):
            raise ValueError(f"oracle: expected an object of a subclass of StructuredModel, got {self.oracle!r}")
        same_length(X, y, "examples")
        return Data(X, y)

    @contextlib.contextmanager
    def _problems(self, train: Data, held: Data | None, compute: Compute) -> Iterator[tuple[Problem, Problem | None]]:
        number = next(_numbers)
        LENT[number] = {"train": Lent(self.oracle, *train), "test": Lent(self.oracle, *(held or train))}
        try:
            options = {"oracle": "gapwise.pipeline.estimators.examples:Examples", "arguments": {"number": number}}
            sink = Blocks(self._structure)
            try:
                meta = open_dataset(self._structure, options).featurize(sink, map, lambda *_: None)
            except ValueError as error:
                raise ValueError(str(error).replace("dataset.oracle: Examples.", "oracle.")) from error
            first = build(self._structure, sink.arrays("train"), meta)
            yield first, None if held is None else build(self._structure, sink.arrays("test"), meta)
        finally:
            del LENT[number]

    def _own_digest(self, data: Data) -> bytes:
        text = hashlib.sha256(joblib.hash([self.oracle, list(data.x)]).encode())
        for kind in type(self.oracle).__mro__:
            with contextlib.suppress(OSError, TypeError):  # classes of a console have no source
                text.update(inspect.getsource(kind).encode())
        return text.digest()

    def problem(self, X: Any, y: Any) -> Problem:
        """Always raises: the problem calls back into this object, so it lives no longer than a fit."""
        raise ValueError("problem: a StructuredSVM's problem exists only within fit; set lam, or use fit(…, run_dir=…)")

    def predict(self, X: Any, lam: float | None = None) -> list[np.ndarray]:
        """Labellings of new inputs by `oracle.decode`; `lam`: any lambda that the path certifies, by default `lambda_`."""
        check_is_fitted(self, "path_")
        w = self._weights if lam is None else self._weights_at(lam)
        found = []
        for i, x in enumerate(X):
            ids = self.oracle.coordinates(x)
            try:
                found.append(labelling(self.oracle.decode(x, w.copy() if ids is None else w[ids]), self.oracle.labels))
            except ValueError as error:
                raise ValueError(f"oracle.decode: example {i}: {error}") from error
        return found

    def score(self, X: Any, y: Sequence[Any]) -> float:
        """1 minus the mean loss."""
        same_length(X, y, "examples")
        pairs = zip(y, self.predict(X), strict=True)
        return 1.0 - float(np.mean([self.oracle.loss(np.asarray(true), found) for true, found in pairs]))


_numbers = itertools.count()
