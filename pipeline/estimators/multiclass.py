"""Crammer and Singer's multiclass SVM, linear or over a kernel, as a classifier that scikit-learn knows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
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
from gapwise.pipeline.estimators.choices import refuse
from gapwise.pipeline.estimators.data import Data, Samples, cautions_of_columns, weighted
from gapwise.pipeline.estimators.fitted import Fitted
from gapwise.pipeline.estimators.kernels import kernel_of, kernel_scores
from gapwise.pipeline.estimators.portable import stored_labels
from gapwise.records import Record
from gapwise.stages.datasets import Blocks
from gapwise.stages.datasets.arrays.rows import is_sparse, write_points
from gapwise.stages.datasets.multiclass_arrays import write
from gapwise.stages.model.confidence import refuse_without_lists
from gapwise.stages.problems.chain.costs import balanced_weights
from gapwise.stages.problems.losses import BALANCED, BLOCK_WEIGHT
from gapwise.stages.problems.multiclass.rows import class_weights
from gapwise.storage.backend import Location


@dataclass(kw_only=True, eq=False, repr=False)
class MulticlassSVM(ClassifierMixin, GapwiseEstimator):
    """Multiclass SVM of Crammer and Singer (the structure `multiclass`), with a certificate.

    One weight vector per class; the loss of predicting class k for class c is ``costs[c, k]``, 1 by default. With two
    classes this is LinearSVC(loss="hinge", C=2 / (n lam)), whose weights are the difference of the two, or with a kernel SVC
    without its offset.

    Parameters
    ----------
    lam, tolerance, eps, validation, pick, criterion, calibration
        As for every estimator: see `GapwiseEstimator`. Held-out blocks have the classes in their shares; of classes too
        small for that, some lend an example each.
    fit_intercept : bool
        Whether there is a bias per class: a feature that is always 1, and whose weight is regularised like the others. A
        `kernel` has none.
    class_weight : "balanced", dict or None
        How much the hinge of an example counts, by its class, as in scikit-learn. A dict is {class: weight > 0}, others
        have 1. "balanced": n / (K · examples of the class). Losses of held-out examples count likewise.
    costs : array-like, shape (K, K), optional
        Loss of predicting column k where row c is true, classes in sorted order; >= 0, with a zero diagonal.
    kernel : {None, "linear", "poly", "rbf"}
        None: scores are linear in X. Otherwise they are sums over training examples z, with kernels of scikit-learn's names:
        <x, z>, (gamma <x, z> + coef0) ** degree, or exp(-gamma ||x - z||^2). Not for sparse X.
    gamma : "scale", "auto" or float
        Of poly and rbf. "scale": 1 / (n_features · variance of X), with the sample weights; "auto": 1 / n_features.
    coef0, degree : float, int
        Of poly; coef0 >= 0 and degree >= 1, as otherwise it is no kernel.
    solver, max_passes, max_seconds, verify, warm_start, n_jobs, random_state
        As for every estimator, too.

    Attributes
    ----------
    classes_ : array, shape (K,)
    coef_ : array, shape (K, n_features)
        Weights of the model at `lambda_`; not with a kernel.
    intercept_ : array, shape (K,)
        Scores of the classes without features; not with a kernel.
    support_vectors_ : array, shape (m, n_features)
        With a kernel: the training examples that the model at `lambda_` sums over.
    dual_coef_ : array, shape (K, m)
        With a kernel: their coefficients.
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

    fit_intercept: bool = True
    class_weight: Mapping[object, float] | Literal["balanced"] | None = None
    costs: npt.ArrayLike | None = None
    kernel: str | None = None
    gamma: float | Literal["scale", "auto"] = "scale"
    coef0: float = 0.0
    degree: int = 3

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.kernel is None
        return tags

    def fit(
        self,
        X: Samples,
        y: Samples,
        *,
        sample_weight: npt.ArrayLike | None = None,
        run_dir: str | Location | None = None,
    ) -> Self:
        """Solve and verify.

        Parameters
        ----------
        X : array or sparse matrix, shape (n, n_features)
            float32 is kept, anything else becomes float64. Sparse matrices stay sparse.
        y : array-like, shape (n,)
            Classes, at least two.
        sample_weight : array-like, shape (n,), optional
            Weights >= 0 of the examples, relative to their mean and beside `class_weight`: the objective is
            (lam / 2) ||w||^2 plus the weighted mean of the hinges. With the same lam, a weight of 2 does what giving an
            example twice does. Here n counts the examples whose weight is not 0.
        run_dir : path or URL, optional
            Where the state is committed: the same call goes on after a kill, to the same bits.

        Raises
        ------
        ValueError
            If data or a parameter cannot be used.
        """
        return self._fit(X, y, sample_weight, run_dir)

    def _checked(self, X: Samples, y: Samples, sample_weight: npt.ArrayLike | None = None) -> Data:
        rows, outputs = validate_data(
            self,
            X,
            y,
            accept_sparse="csr" if self.kernel is None else False,
            dtype=[np.float64, np.float32],
            multi_output=True,
        )
        targets = column_or_1d(outputs, warn=True)
        check_classification_targets(targets)
        data = weighted(Data(_csr(rows) if sparse.issparse(rows) else rows, targets), sample_weight)
        self.classes_, labels = np.unique(data.y, return_inverse=True)
        if self.classes_.size < 2:
            raise ValueError(f"y: expected at least two classes, got one class only: {self.classes_[0]!r}")
        return data._replace(y=labels)

    def _cautions(self, data: Data) -> Iterator[str]:
        if self.kernel != "rbf" and isinstance(data.x, np.ndarray):
            yield from cautions_of_columns(data.x, vars(self).get("feature_names_in_"), self._bias)

    def _groups(self, data: Data) -> np.ndarray:
        return np.asarray(data.y)

    def _learn(self, sink: Blocks, train: Data, held: Data | None, compute: Compute) -> Record:
        self._kernel = kernel_of(train.x, train.weight, self.kernel, self.gamma, self.coef0, self.degree)
        by_class = self._class_weights(train)
        for split, data in (("train", train), ("test", held)):
            if data is not None:
                rows = write(sink, split, data.x, self._bias)
                if self._kernel is not None and split == "train" and not is_sparse(rows):
                    write_points(sink, rows)
                sink.put(split, "labels", data.y)
                weight = data.relative
                if by_class is not None:
                    weight = by_class[data.y] * (1.0 if weight is None else weight)
                if weight is not None:
                    sink.put(split, BLOCK_WEIGHT, weight)
        classes, self._sparse = self.classes_.size, is_sparse(train.x)
        self._dtype = train.x.dtype.name
        self._points: np.ndarray | None = sink.whole[""].get("points")
        meta: Record = {"classes": classes, **self._sizes}
        if self.costs is None:
            return meta
        costs = np.asarray(self.costs, dtype=float)
        if costs.shape != (classes, classes) or np.diag(costs).any() or not (np.isfinite(costs) & (costs >= 0)).all():
            raise ValueError(
                f"costs: expected ({classes}, {classes}) numbers >= 0 with a zero diagonal, got {costs.tolist()}"
            )
        return {**meta, "cost": costs}

    @property
    def _sizes(self) -> Record:
        """Facts of the structure besides the number of classes."""
        return {
            "width": self.n_features_in_ + (self._bias is not None),
            **({} if self._kernel is None else self._kernel),
        }

    def _class_weights(self, train: Data) -> np.ndarray | None:
        """(K,) weights of the classes; None: all count the same."""
        if self.class_weight is None:
            return None
        if isinstance(self.class_weight, str) and self.class_weight == BALANCED:
            counts = np.bincount(train.y, train.weight, minlength=self.classes_.size)
            return balanced_weights(counts)
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
        return 1.0 if self.fit_intercept and self.kernel is None else None

    def _portable(self) -> tuple[Record, dict[str, np.ndarray]]:
        columns = [*map(str, vars(self).get("feature_names_in_", ()))] or None
        arrays = {"width": self.n_features_in_, "bias": self._bias, "dtype": self._dtype, "sparse": self._sparse,
                  "columns": columns}  # fmt: skip
        facts = {"dataset": "multiclass_arrays", "structure": self._structure}
        sizes = {"classes": self.classes_.size, **self._sizes}
        form = {"label_column": None, "first_index": None, "class_names": stored_labels(self.classes_)}
        given = {"points": self._points, "cost": None if self.costs is None else np.asarray(self.costs, float)}
        shared = {name: array for name, array in given.items() if array is not None}
        return {**facts, **sizes, "arrays": arrays, **form}, shared

    def _keep(self, fitted: Fitted) -> None:
        super()._keep(fitted)
        if self._points is None:
            self.coef_, self.intercept_ = self._model(self._weights)
        else:
            del self.coef_  # it would be in the kernel's space
            self.support_vectors_, self.dual_coef_ = self._sums(self._weights, self._points)

    def _model(self, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Weights (K, n_features) and biases (K,)."""
        rows = class_weights(w, self.classes_.size, self._sparse)
        return (rows[:, :-1], rows[:, -1]) if self.fit_intercept else (rows, np.zeros(len(rows)))

    def _sums(self, w: np.ndarray, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """With a kernel: the points (m, n_features) that have coefficients, and these, (K, m)."""
        coefficients = w[: w.size // 2].reshape(self.classes_.size, len(points))
        used = coefficients.any(axis=0)
        return points[used], coefficients[:, used]

    def decision_function(self, X: Samples, lam: float | None = None) -> np.ndarray:
        """Scores of the classes.

        Parameters
        ----------
        X : array or sparse matrix, shape (n, n_features)
            New examples.
        lam : float, optional
            Any lambda that the path certifies; by default `lambda_`.

        Returns
        -------
        array, shape (n, K)
            Of two classes the difference, (n,), positive for the second class.
        """
        scores = self._scores(X, lam)
        return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores

    def _scores(self, X: Samples, lam: float | None) -> np.ndarray:
        check_is_fitted(self, "lambda_")
        sparse_too = "csr" if self._points is None else False
        rows = validate_data(self, X, accept_sparse=sparse_too, dtype=[np.float64, np.float32], reset=False)
        w = self._weights if lam is None else self._weights_at(lam)
        if self._points is None or self._kernel is None:
            coef, intercept = self._model(w)
            scores: np.ndarray = rows @ coef.T + intercept
            return scores
        return kernel_scores(self._kernel, rows, *self._sums(w, self._points))

    def predict(self, X: Samples, lam: float | None = None, *, n_best: int | None = None) -> np.ndarray:
        """The classes of largest score.

        Parameters
        ----------
        X : array or sparse matrix, shape (n, n_features)
            New examples.
        lam : float, optional
            Any lambda that the path certifies; by default `lambda_`.
        n_best : int, optional
            Gives this many classes of each example instead, by falling score; of equal scores the first class.

        Returns
        -------
        array, shape (n,)
            Entries of `classes_`. With `n_best` the shape is (n, min(n_best, K)).

        Raises
        ------
        ValueError
            If the path does not certify `lam`.
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
        """How much less the second-best class scores than the predicted class.

        Parameters
        ----------
        X : array or sparse matrix, shape (n, n_features)
            New examples.
        lam : float, optional
            Any lambda that the path certifies; by default `lambda_`.

        Returns
        -------
        array, shape (n,)
            In units of the score, >= 0.
        """
        scores = self._scores(X, lam)
        two = -np.partition(-scores, 1, axis=1)[:, :2]
        margins: np.ndarray = two[:, 0] - two[:, 1]
        return margins

    def probabilities(self, X: Samples) -> np.ndarray:
        """The calibrated probability that the class predicted at `lambda_` is right.

        Parameters
        ----------
        X : array or sparse matrix, shape (n, n_features)
            New examples.

        Returns
        -------
        array, shape (n,)
            From 0 to 1.

        Raises
        ------
        ValueError
            Unless `calibration` asked for probabilities.
        """
        return self._probable(self.margins(X))


def _csr(X: sparse.sparray | sparse.spmatrix) -> sparse.csr_array:
    """Rows with rising column numbers and without zeros."""
    from scipy import sparse

    rows = sparse.csr_array(X, copy=True)
    rows.sum_duplicates()
    rows.eliminate_zeros()
    return rows
