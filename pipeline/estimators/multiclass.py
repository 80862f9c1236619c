"""Crammer and Singer's multiclass SVM, as a classifier that scikit-learn knows."""

from __future__ import annotations

from typing import Self

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.base import ClassifierMixin
from sklearn.utils import Tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from gapwise.pipeline.compute.local import Compute
from gapwise.pipeline.estimators.base import GapwiseEstimator
from gapwise.pipeline.estimators.choices import AUTO, Lambdas, Seed
from gapwise.pipeline.estimators.data import Data, Samples
from gapwise.pipeline.estimators.fitted import Fitted
from gapwise.stages.choice import PICKS
from gapwise.stages.datasets import Blocks
from gapwise.stages.datasets.arrays.rows import Csr
from gapwise.stages.datasets.multiclass_arrays import write
from gapwise.stages.problems.facts import Json
from gapwise.stages.problems.multiclass_sparse import class_weights
from gapwise.storage.backend import Location


class MulticlassSVM(ClassifierMixin, GapwiseEstimator):
    """Multiclass SVM of Crammer and Singer (the structure `multiclass`), with a certificate.

    One weight vector per class; the loss of predicting class k for class c is ``costs[c, k]``, 1 by default. With two
    classes this is LinearSVC(loss="hinge", C=2 / (n lam)), whose weights are the difference of the two.

    Parameters
    ----------
    lam, tolerance, eps, validation, pick, solver, max_passes, max_seconds, verify, warm_start, n_jobs, random_state
        Those of every estimator: see `GapwiseEstimator`. Held-out blocks have the classes in their shares.
    fit_intercept : bool
        Whether there is a bias per class: a feature that is always 1, and whose weight is regularised like the others.
    costs : array-like, shape (K, K), optional
        Loss of predicting column k where row c is true, classes in sorted order; >= 0, with a zero diagonal.

    Attributes
    ----------
    classes_ : array, shape (K,)
    coef_ : array, shape (K, n_features)
        Weights of the model at `lambda_`.
    intercept_ : array, shape (K,)
        Scores of the classes without features.
    lambda_, path_, refit_, certificate_
        As in `GapwiseEstimator`.
    n_features_in_ : int
    """

    _structure = "multiclass"

    def __init__(
        self,
        *,
        lam: Lambdas = AUTO,
        tolerance: float = 1e-3,
        eps: float | None = None,
        validation: float | None = 0.2,
        pick: str = PICKS[0],
        fit_intercept: bool = True,
        costs: npt.ArrayLike | None = None,
        solver: str = "auto",
        max_passes: float | None = None,
        max_seconds: float | None = None,
        verify: bool = True,
        warm_start: bool = False,
        n_jobs: int | None = None,
        random_state: Seed = 0,
    ) -> None:
        super().__init__(
            lam=lam, tolerance=tolerance, eps=eps, validation=validation, pick=pick, solver=solver,
            max_passes=max_passes, max_seconds=max_seconds, verify=verify, warm_start=warm_start, n_jobs=n_jobs,
            random_state=random_state,
        )  # fmt: skip
        self.fit_intercept = fit_intercept
        self.costs = costs

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def fit(self, X: Samples, y: Samples, *, run_dir: str | Location | None = None) -> Self:
        """Solve and verify.

        Parameters
        ----------
        X : array or sparse matrix, shape (n, n_features)
            float32 is kept, anything else becomes float64. Sparse matrices stay sparse (structure `multiclass_sparse`).
        y : array-like, shape (n,)
            Classes, at least two.
        run_dir : path or URL, optional
            Where the state is committed: the same call goes on after a kill, to the same bits.

        Raises
        ------
        ValueError
            If data or a parameter cannot be used.
        """
        return self._fit(self._checked(X, y), run_dir)

    def _checked(self, X: Samples, y: Samples) -> Data:
        rows, outputs = validate_data(
            self, X, y, accept_sparse="csr", dtype=[np.float64, np.float32], multi_output=True
        )
        targets = column_or_1d(outputs, warn=True)
        check_classification_targets(targets)
        self.classes_, labels = np.unique(targets, return_inverse=True)
        if self.classes_.size < 2:
            raise ValueError(f"y: expected at least two classes, got one class only: {self.classes_[0]!r}")
        return Data(_csr(rows) if sparse.issparse(rows) else rows, labels)

    def _structure_of(self, data: Data) -> str:
        return "multiclass_sparse" if isinstance(data.x, Csr) else "multiclass"

    def _groups(self, data: Data) -> np.ndarray:
        return np.asarray(data.y)

    def _learn(self, sink: Blocks, train: Data, held: Data | None, compute: Compute) -> Json:
        for split, data in (("train", train), ("test", held)):
            if data is not None:
                write(sink, split, data.x, self._bias)
                sink.put(split, "labels", data.y)
        classes, self._sparse = self.classes_.size, isinstance(train.x, Csr)
        self._dtype = (train.x.values if isinstance(train.x, Csr) else train.x).dtype.name
        meta = {"classes": classes, "width": self.n_features_in_ + bool(self.fit_intercept)}
        if self.costs is None:
            return meta
        costs = np.asarray(self.costs, dtype=float)
        if costs.shape != (classes, classes) or np.diag(costs).any() or not (np.isfinite(costs) & (costs >= 0)).all():
            raise ValueError(
                f"costs: expected ({classes}, {classes}) numbers >= 0 with a zero diagonal, got {costs.tolist()}"
            )
        return {**meta, "cost": costs}

    @property
    def _bias(self) -> float | None:
        """Value of the constant column."""
        return 1.0 if self.fit_intercept else None

    def _portable(self) -> tuple[Json, dict[str, np.ndarray]]:
        arrays = {"width": self.n_features_in_, "bias": self._bias, "dtype": self._dtype}
        facts = {"dataset": "multiclass_arrays", "structure": "multiclass_sparse" if self._sparse else "multiclass"}
        sizes = {"classes": self.classes_.size, "width": self.n_features_in_ + bool(self.fit_intercept)}
        form = {"label_column": None, "first_index": None, "integers": self.classes_.dtype.kind in "iu"}
        names = [name.item() if name.dtype.kind in "iub" else str(name) for name in self.classes_]
        return {**facts, **sizes, "class_names": names, "arrays": arrays, **form}, {}

    def _keep(self, fitted: Fitted) -> None:
        super()._keep(fitted)
        self.coef_, self.intercept_ = self._model(self._weights)

    def _model(self, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Weights (K, n_features) and biases (K,)."""
        rows = class_weights(w, self.classes_.size) if self._sparse else w.reshape(self.classes_.size, -1)
        return (rows[:, :-1], rows[:, -1]) if self.fit_intercept else (rows, np.zeros(len(rows)))

    def decision_function(self, X: Samples, lam: float | None = None) -> np.ndarray:
        """Scores of the classes, (n, K); of two classes the difference, (n,), positive for the second.

        `lam`: any lambda that the path certifies; by default `lambda_`.
        """
        scores = self._scores(X, lam)
        return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores

    def _scores(self, X: Samples, lam: float | None) -> np.ndarray:
        check_is_fitted(self, "path_")
        rows = validate_data(self, X, accept_sparse="csr", dtype=[np.float64, np.float32], reset=False)
        coef, intercept = self._model(self._weights if lam is None else self._weights_at(lam))
        scores: np.ndarray = rows @ coef.T + intercept
        return scores

    def predict(self, X: Samples, lam: float | None = None) -> np.ndarray:
        """Classes, (n,), those of largest score; `lam` as in `decision_function`."""
        best = np.argmax(self._scores(X, lam), axis=1)
        labels: np.ndarray = self.classes_[best]
        return labels


def _csr(X: sparse.sparray | sparse.spmatrix) -> Csr:
    """Rows with rising column numbers and without zeros."""
    rows = X.copy()
    rows.sum_duplicates()
    rows.eliminate_zeros()
    return Csr(rows.indptr.astype(np.int64), rows.indices.astype(np.int32), rows.data, rows.shape[1])
