"""Sparse multiclass beyond the contract suite: the rows of the dense structure, the binary SVM of LIBLINEAR, bad input."""

from __future__ import annotations

import numpy as np
import pytest
from liblinear import linear_svc, objective
from tiny import csr

from gapwise.stages.problems import build
from gapwise.stages.problems.multiclass.rows import class_weights
from gapwise.stages.solver.engine import solve
from gapwise.stages.solver.methods import method_options
from gapwise.stages.solver.options import CacheOptions


def examples(seed: int = 0, n: int = 24, width: int = 5) -> tuple[np.ndarray, np.ndarray]:
    """Two overlapping classes with zeros among the features."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(2, size=n)
    x = rng.normal(size=(n, width)) + 0.8 * (2 * labels[:, None] - 1)
    return x * (rng.random((n, width)) < 0.7), labels


def binary(sparse: bool, x: np.ndarray, labels: np.ndarray):
    rows = csr(x) if sparse else {"x": x}
    return build("multiclass", rows | {"labels": labels}, {"classes": 2, "width": x.shape[1]})


def solved(problem, lam: float, tolerance: float):
    """The certified breakpoint and w at one lambda."""
    options = method_options("bcfw", cache=CacheOptions(kind="gap"), step="pairwise", max_passes=3000.0)
    solution = solve(problem, lam, options, tolerance=tolerance, relative=False)
    return solution.breakpoint, solution.weights


def test_rows__give_what_the_dense_structure_gives():
    rng, classes, width = np.random.default_rng(1), 4, 6
    x = rng.normal(size=(5, width)) * (rng.random((5, width)) < 0.5)
    labels, cost = np.array([0, 1, 2, 3, 1]), rng.random((4, 4)) * (1 - np.eye(4))
    dense = build("multiclass", {"x": x, "labels": labels}, {"classes": classes, "cost": cost})
    sparse = build("multiclass", csr(x) | {"labels": labels, "cost": cost}, {"classes": classes, "width": width})
    assert (dense.d, sparse.d) == (24, 24)
    np.testing.assert_allclose(sparse.norms2, dense.norms2)
    w = rng.normal(size=sparse.d)
    stacked, delta = class_weights(w, classes, True), rng.normal(size=classes)
    for i in range(sparse.n):
        theta, other = np.full(classes, np.nan), np.full(classes, np.nan)
        sparse.scores(i, w, theta)
        dense.scores(i, stacked.reshape(-1), other)
        np.testing.assert_allclose(theta, other, rtol=1e-12, atol=1e-12)
        a, b = np.zeros(sparse.d), np.zeros(dense.d)
        sparse.push(i, 0.7, delta, a)
        dense.push(i, 0.7, delta, b)
        np.testing.assert_allclose(class_weights(a, classes, True).reshape(-1), b, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("sparse", "C"), [(False, 1.0), pytest.param(True, 0.05, marks=pytest.mark.interpreted)])
def test_two_classes__are_the_svm_of_liblinear_to_six_digits(sparse, C):
    from sklearn.svm import LinearSVC

    x, labels = examples()
    n = len(x)
    svm = LinearSVC(loss="hinge", dual=True, fit_intercept=False, C=C, tol=1e-10, max_iter=1_000_000, random_state=0)
    u = svm.fit(x, labels).coef_[0]
    best = 0.5 * u @ u + C * np.maximum(0.0, 1.0 - (2 * labels - 1) * (x @ u)).sum()
    solution, w = solved(binary(sparse, x, labels), lam=2.0 / (n * C), tolerance=1e-13)
    w_0, w_1 = class_weights(w, 2, sparse)
    assert solution.point.primal * n * C == pytest.approx(best, rel=1e-7)
    np.testing.assert_allclose(w_1, 0.5 * u, rtol=1e-6, atol=1e-6 * np.abs(u).max())
    np.testing.assert_allclose(w_0, -w_1, rtol=1e-9, atol=1e-12)


def test_more_classes__are_the_crammer_singer_svm_of_liblinear_to_six_digits():
    rng = np.random.default_rng(3)
    truth = rng.integers(3, size=60)
    x = rng.normal(size=(60, 4)) + np.eye(3, 4)[truth]
    lam = 0.02
    _, theirs = linear_svc(x, truth, lam, 1e-9)
    solution, w = solved(build("multiclass", {"x": x, "labels": truth}, {"classes": 3}), lam, 1e-12)
    assert objective(x, truth, w.reshape(3, 4), lam) == pytest.approx(solution.point.primal, rel=1e-12)
    assert solution.point.primal == pytest.approx(objective(x, truth, theirs, lam), rel=1e-7)
    np.testing.assert_allclose(w.reshape(3, 4), theirs, atol=1e-5 * np.abs(theirs).max())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"ids": np.array([0, 5, 1], np.int32)}, r"block 0 has a feature number outside 0\.\.4"),
        ({"ids": np.array([2, 1, 1], np.int32)}, r"block 0 has feature numbers that do not rise"),
        ({"values": np.array([1.0, 2.0, np.inf])}, r"block 2 has a value that is not finite"),
        ({"row_ptr": np.array([0, 2, 1, 3])}, r"row_ptr must rise from 0 to 3"),
        ({"labels": np.array([0, 1, 3])}, r"block 2 has a label outside 0\.\.2"),
    ],
)
def test_build__refuses_what_is_no_sparse_matrix(change, message):
    arrays = {
        "ids": np.array([0, 2, 1], np.int32),
        "values": np.array([1.0, 2.0, 3.0]),
        "row_ptr": np.array([0, 2, 2, 3]),
        "labels": np.array([0, 1, 2]),
    }
    meta = {"classes": 3, "width": 5}
    assert build("multiclass", arrays, meta).norms2.tolist() == [5.0, 0.0, 9.0]
    with pytest.raises(ValueError, match=message):
        build("multiclass", arrays | change, meta)
