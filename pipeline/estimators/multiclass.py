"""Crammer and Singer's multiclass SVM, as a classifier that scikit-learn knows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, Self

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.base import ClassifierMixin
from sklearn.utils import Tags
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from gapwise.pipeline.compute.local import Compute
from gapwise.pipeline.estimators.base import GapwiseEstimator
from gapwise.pipeline.estimators.choices import AUTO, Lambdas, Seed, refuse
from gapwise.pipeline.estimators.data import Data, Samples
from gapwise.pipeline.estimators.fitted import Fitted
from gapwise.stages.choice import PICKS
from gapwise.stages.confidence import refuse_without_lists
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
    lam, tolerance, eps, validation, pick, calibration, solver, max_passes, max_seconds, verify, warm_start, n_jobs,
    random_state
        Those of every estimator: see `GapwiseEstimator`. Held-out blocks have the classes in their shares.
    fit_intercept : bool
        Whether there is a bias per class: a feature that is always 1, and whose weight is regularised like the others.
    class_weight : "balanced", dict or None
        How much the hinge of an example counts, by its class, as in scikit-learn: {class: weight > 0}, others 1;
        "balanced": n / (K · examples of the class). Losses of held-out examples count likewise.
    costs : array-like, shape (K, K), optional
        Loss of predicting column k where row c is true, classes in sorted order; >= 0, with a zero diagonal.

    Attributes
    ----------
    classes_ : array, shape (K,)
    coef_ : array, shape (K, n_features)
        Weights of the model at `lambda_`.
    intercept_ : array, shape (K,)
        Scores of the classes without features.
    lambda_, path_, refit_, certificate_, calibration_
        As in `GapwiseEstimator`.
    n_features_in_ : int

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = MulticlassSVM(lam=0.01).fit(X, y)
    >>> round(model.score(X, y), 2)
    0.98
    >>> model.certificate_.holds
    True
    """

    _structure = "multiclass"

    def __init__(
        self,
        *,
        lam: Lambdas = AUTO,
        tolerance: float = 1e-3,
        eps: float | None = None,
        validation: float | int | None = 0.2,
        pick: str = PICKS[0],
        calibration: str | None = None,
        fit_intercept: bool = True,
        class_weight: Mapping[object, float] | Literal["balanced"] | None = None,
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
            lam=lam, tolerance=tolerance, eps=eps, validation=validation, pick=pick, calibration=calibration, solver=solver,
            max_passes=max_passes, max_seconds=max_seconds, verify=verify, warm_start=warm_start, n_jobs=n_jobs,
            random_state=random_state,
        )  # fmt: skip
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
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
        weight = self._class_weights(train)
        for split, data in (("train", train), ("test", held)):
            if data is not None:
                x, bias = (data.x, self._bias) if weight is None else (scaled(data.x, self._bias, weight[data.y]), None)
                write(sink, split, x, bias)
                sink.put(split, "labels", data.y)
        classes, self._sparse = self.classes_.size, isinstance(train.x, Csr)
        self._dtype = (train.x.values if isinstance(train.x, Csr) else train.x).dtype.name
        meta = {"classes": classes, "width": self.n_features_in_ + bool(self.fit_intercept)}
        if self.costs is None:
            return meta if weight is None else {**meta, "cost": weight[:, None] * (1.0 - np.eye(classes))}
        costs = np.asarray(self.costs, dtype=float)
        if costs.shape != (classes, classes) or np.diag(costs).any() or not (np.isfinite(costs) & (costs >= 0)).all():
            raise ValueError(
                f"costs: expected ({classes}, {classes}) numbers >= 0 with a zero diagonal, got {costs.tolist()}"
            )
        return {**meta, "cost": costs if weight is None else weight[:, None] * costs}

    def _class_weights(self, train: Data) -> np.ndarray | None:
        """(K,) weights of the classes; None: all count the same."""
        if self.class_weight is None:
            return None
        try:
            weights = compute_class_weight(self.class_weight, classes=self.classes_, y=self.classes_[train.y])
        except (ValueError, TypeError) as error:
            raise refuse(
                "class_weight", self.class_weight, f"'balanced', a dict of classes, or None ({error})"
            ) from error
        if not (np.isfinite(weights) & (weights > 0.0)).all():
            raise refuse("class_weight", self.class_weight, "weights > 0")
        return np.asarray(weights, float)

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

    def predict(self, X: Samples, lam: float | None = None, *, n_best: int | None = None) -> np.ndarray:
        """Classes, (n,), those of largest score; `lam` as in `decision_function`.

        With `n_best` the classes of the largest scores by falling score, (n, min(n_best, K)); of equals the first.
        """
        scores = self._scores(X, lam)
        if n_best is None:
            best = np.argmax(scores, axis=1)
        else:
            refuse_without_lists(self._structure, n_best)
            best = np.argsort(-scores, axis=1, kind="stable")[:, :n_best]
        labels: np.ndarray = self.classes_[best]
        return labels

    def margins(self, X: Samples, lam: float | None = None) -> np.ndarray:
        """(n,): by how much the second-best class scores less than the predicted one; `lam` as in `decision_function`."""
        scores = self._scores(X, lam)
        two = -np.partition(-scores, 1, axis=1)[:, :2]
        margins: np.ndarray = two[:, 0] - two[:, 1]
        return margins

    def probabilities(self, X: Samples) -> np.ndarray:
        """(n,): the calibrated probability that the class predicted at `lambda_` is right.

        ValueError unless `calibration` asked for that.
        """
        return self._probable(self.margins(X))


def scaled(x: np.ndarray | Csr, bias: float | None, weight: np.ndarray) -> np.ndarray | Csr:
    """Each row times its weight, with the constant column if there is one: with its losses scaled alike, so is its hinge."""
    if isinstance(x, Csr):
        rows = x if bias is None else x.with_constant(bias)
        by_entry = np.repeat(weight, np.diff(rows.row_ptr)).astype(rows.values.dtype)
        return rows._replace(values=rows.values * by_entry)
    constant = np.full((len(x), 0 if bias is None else 1), bias or 0.0, x.dtype)
    return np.concatenate([x, constant], axis=1) * weight[:, None].astype(x.dtype)


def _csr(X: sparse.sparray | sparse.spmatrix) -> Csr:
    """Rows with rising column numbers and without zeros."""
    rows = X.copy()
    rows.sum_duplicates()
    rows.eliminate_zeros()
    return Csr(rows.indptr.astype(np.int64), rows.indices.astype(np.int32), rows.data, rows.shape[1])
