"""`MulticlassSVM` over kernels: sums over support vectors, the dense QP, validation and refit, saved models, wrong choices.

Compiling the solver for kernels takes a minute, so fits run without the JIT (NUMBA_DISABLE_JIT=1, as in .ci/run).
"""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from dense import optimum
from library import blobs
from scipy import sparse
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.model_selection import GridSearchCV

from gapwise import MulticlassSVM, load_model
from gapwise.stages.problems import build

KERNELS: dict[str, dict[str, Any]] = {
    "linear": {},
    "poly": {"gamma": 0.5, "coef0": 1.0, "degree": 2},
    "rbf": {"gamma": 0.3},
}
WEIGHT = np.linspace(0.0, 2.0, 18)
X, Y = blobs()


def explicit(kernel: str) -> np.ndarray:
    """Rows whose inner products are the kernel of X."""
    values, vectors = np.linalg.eigh(pairwise_kernels(X, metric=kernel, **KERNELS[kernel]))
    rows: np.ndarray = vectors * np.sqrt(np.maximum(values, 0.0))
    return rows


@pytest.mark.interpreted
@pytest.mark.parametrize("kernel", KERNELS)
def test_model__sums_over_support_vectors_and_is_the_optimum_of_a_dense_qp(kernel: str, tmp_path: Path) -> None:
    lam, names = 0.2, np.array(["a", "b", "c"])
    model = MulticlassSVM(lam=lam, kernel=kernel, tolerance=1e-4, **KERNELS[kernel]).fit(
        X, names[Y], sample_weight=WEIGHT
    )
    assert model.certificate_.holds
    assert model.certificate_.verified
    arrays = {"x": explicit(kernel)[1:], "labels": Y[1:], "block_weight": WEIGHT[1:] / WEIGHT[1:].mean()}
    best = optimum(build("multiclass", arrays, {"classes": 3}), lam)
    assert best - 1e-6 <= float(model.path_["primal"][0]) <= best + model.certificate_.gap + 1e-6

    assert not hasattr(model, "coef_")
    assert model.dual_coef_.shape == (3, len(model.support_vectors_))
    assert model.dual_coef_.any(axis=0).all(), "an example without coefficients is no support vector"
    assert kernel != "poly" or len(model.support_vectors_) < 17, "here there is one"
    values = pairwise_kernels(X, model.support_vectors_, metric=kernel, **KERNELS[kernel])
    np.testing.assert_allclose(model.decision_function(X), values @ model.dual_coef_.T, atol=1e-12)
    np.testing.assert_array_equal(model.predict(X), names[np.argmax(model.decision_function(X), axis=1)])
    model.save(tmp_path / "model")
    loaded = load_model(tmp_path / "model").predict(X)
    assert loaded.tolist() == model.predict(X).tolist()
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).margins(X), model.margins(X))


@pytest.mark.interpreted
@pytest.mark.filterwarnings("ignore:MulticlassSVM. lam .* was chosen at the lower edge")
def test_lambda__is_chosen_along_a_path_and_refitted_on_all() -> None:
    X, y = blobs(40, seed=1)
    model = MulticlassSVM(kernel="rbf", eps=0.2, tolerance=0.05, class_weight="balanced").fit(X, y)
    assert model.certificate_.holds
    assert model.refit_ is not None
    assert model.refit_.sizes["feature"] == model.path_.sizes["feature"] == 2 * 3 * 40
    assert model.score(X, y) > 0.8
    values = pairwise_kernels(X, metric="rbf", gamma=1.0 / (4 * np.var(X)))
    w = model.path_.weights_at(0.05).values
    expected = values @ w[: w.size // 2].reshape(3, 40).T
    assert np.ptp(expected) > 1.0
    np.testing.assert_allclose(model.decision_function(X, lam=0.05), expected, atol=1e-12)
    folds = MulticlassSVM(kernel="rbf", gamma="auto", lam=[0.3, 0.1], validation=2, eps=0.2).fit(X, y)
    assert folds.path_["validated_loss"].shape == (2,)
    search = GridSearchCV(MulticlassSVM(kernel="rbf", lam=0.1, tolerance=0.1), {"gamma": [1e-6, 0.3]}, cv=2).fit(X, y)
    assert search.best_params_ == {"gamma": 0.3}


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"kernel": "sigmoid"}, "kernel: expected one of linear, poly, rbf, or None, got 'sigmoid'"),
        ({"kernel": "rbf", "gamma": 0.0}, "gamma: expected a number > 0, 'scale' or 'auto', got 0.0"),
        ({"kernel": "poly", "coef0": -1.0}, "coef0: expected a number >= 0, got -1.0"),
        ({"kernel": "poly", "degree": 2.5}, "degree: expected a whole number >= 1, got 2.5"),
    ],
)
def test_choices__that_are_no_kernel_are_refused(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}"):
        MulticlassSVM(lam=0.1, **wrong).fit(X, Y)


def test_sparse__rows_have_no_kernel() -> None:
    with pytest.raises(TypeError, match=r"[Ss]parse"):
        MulticlassSVM(lam=0.1, kernel="rbf").fit(sparse.csr_array(X), Y)
