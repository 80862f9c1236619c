"""Kernels: values, kept rows, scores and norms, the SVM of LIBSVM, explicit features, resuming, and the audit's own code."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import zarr
from equality import assert_same_path
from solved import SINGLE, options_of, path_of, solved, stopped_and_resumed

from gapwise.stages.certify.audit import CertificateError
from gapwise.stages.certify.kernels import completed, gram, of_audit
from gapwise.stages.datasets.arrays.rows import OF_KERNEL
from gapwise.stages.model.predict import predict
from gapwise.stages.problems import build
from gapwise.stages.problems.moves import norm2_of, product_of
from gapwise.stages.problems.multiclass.kernel import NAMES, Kernel, evaluate
from gapwise.stages.solver.options import Status
from gapwise.stages.verify import verify
from gapwise.storage.results import read_path

KERNELS = {
    "linear": {"kernel": "linear"},
    "poly": {"kernel": "poly", "gamma": 0.7, "coef0": 1.0, "degree": 2},
    "rbf": {"kernel": "rbf", "gamma": 0.3},
}


def examples(seed: int = 0, n: int = 24, classes: int = 2, width: int = 4) -> tuple[np.ndarray, np.ndarray]:
    """Overlapping classes."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(classes, size=n)
    return rng.normal(size=(n, width)) + 0.8 * np.eye(classes, width)[labels], labels


def problem_of(kernel: str = "rbf", *, seed: int = 0, n: int = 24, classes: int = 2, **more):
    x, labels = examples(seed, n, classes)
    arrays = {"x": x, "points": x, "labels": labels, "row": np.arange(n)}
    return build("multiclass", arrays, {"classes": classes, **KERNELS[kernel], **more})


def reference(kernel: str, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The Gram matrix by scikit-learn."""
    from sklearn.metrics.pairwise import pairwise_kernels

    names = {"linear": (), "poly": ("gamma", "coef0", "degree"), "rbf": ("gamma",)}[kernel]
    return pairwise_kernels(a, b, metric=kernel, **{name: KERNELS[kernel][name] for name in names})


def some_w(problem, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """w by random pushes, and its coefficients (m, K); every third example stays out."""
    rng, w, K = np.random.default_rng(seed), np.zeros(problem.d), problem.labels
    coefficients = np.zeros((len(problem.rows.points), K))
    for i in range(problem.n):
        delta = rng.normal(size=K) * (i % 3 > 0)
        problem.push(i, 0.5, delta, w)
        coefficients[problem.rows.row[i]] += 0.5 * delta
    return w, coefficients


@pytest.mark.parametrize("kernel", KERNELS)
def test_values__are_those_of_scikit_learn_in_the_solver_and_in_the_audit(kernel: str) -> None:
    a, b = examples(1)[0], examples(2, 9)[0]
    expected = reference(kernel, a, b)
    values = [[evaluate(Kernel.of(KERNELS[kernel]), x, z) for z in b] for x in a]
    np.testing.assert_allclose(values, expected, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(gram(Kernel.of(KERNELS[kernel]), a, b), expected, rtol=1e-12, atol=1e-14)
    assert tuple(OF_KERNEL) == NAMES


@pytest.mark.parametrize("kernel", KERNELS)
def test_weights__have_the_scores_and_norms_that_the_gram_matrix_gives(kernel: str) -> None:
    problem = problem_of(kernel, classes=3)
    (w, c), (other, c_other) = some_w(problem), some_w(problem, seed=1)
    K, theta = reference(kernel, problem.rows.points, problem.rows.points), np.empty(3)
    for i in range(problem.n):
        problem.scores(i, w, theta)
        np.testing.assert_allclose(theta, (K @ c)[i], rtol=1e-10, atol=1e-12)
        assert problem.norm2(i, theta) == pytest.approx(K[i, i] * theta @ theta)
    assert norm2_of(problem, w) == pytest.approx(np.sum(c * (K @ c)), rel=1e-10)
    assert product_of(problem, w, other) == pytest.approx(np.sum(c * (K @ c_other)), rel=1e-9, abs=1e-12)
    new = examples(5, 6, 3)[0]
    outside = problem._replace(n=6, rows=problem.rows._replace(x=new, row=np.full(6, -1)))
    for i, expected in enumerate(reference(kernel, new, problem.rows.points) @ c):
        outside.scores(i, w, theta)
        np.testing.assert_allclose(theta, expected, rtol=1e-10, atol=1e-12)


def test_rows__that_are_kept_change_no_bit_and_stay_within_the_budget(monkeypatch) -> None:
    weights = {}
    for megabytes, capacity, computed in (("1", 24, 16), ("0.0004", 2, 31), ("0", 1, 32)):
        monkeypatch.setenv("GAPWISE_KERNEL_MB", megabytes)
        problem = problem_of()
        assert problem.rows.kept.values.shape == (capacity, 24)
        weights[megabytes] = [some_w(problem, seed)[0].tobytes() for seed in (0, 0)]
        assert problem.rows.kept.counts[0] == computed  # 16 of 24 examples move, twice
    assert len({w for both in weights.values() for w in both}) == 1
    monkeypatch.setenv("GAPWISE_KERNEL_MB", "lots")
    with pytest.raises(
        ValueError, match="GAPWISE_KERNEL_MB: expected megabytes for kernel rows, such as 512, got 'lots'"
    ):
        problem_of()


@pytest.mark.interpreted
def test_two_classes__are_the_svm_of_libsvm_to_six_digits(tmp_path: Path) -> None:
    """LIBSVM's SVM has an offset that is not regularised. With each example a second time, reflected at the origin of
    feature space and with the other label, it is 0, and half the cost for each of the two leaves the problem as it is."""
    from sklearn.svm import SVC

    C, problem = 2.0, problem_of(n=24)
    n, sign = problem.n, 2.0 * problem.truth - 1.0
    K = reference("rbf", problem.rows.points, problem.rows.points)
    svm = SVC(kernel="precomputed", C=C / 2.0, tol=1e-12)
    svm.fit(np.block([[K, -K], [-K, K]]), np.concatenate([sign, -sign]))
    decision = svm.decision_function(np.hstack([K, -K]))
    alpha = np.zeros(2 * n)
    alpha[svm.support_] = svm.dual_coef_[0]
    beta = alpha[:n] - alpha[n:]
    best = 0.5 * beta @ K @ beta + C * np.maximum(0.0, 1.0 - sign * decision).sum()
    assert abs(svm.intercept_[0]) < 1e-9
    path = path_of(rule="single", lam=2.0 / (n * C), tolerance=1e-11)
    assert solved(problem, tmp_path, options_of(step="pairwise", max_passes=3000.0), path) is Status.CONVERGED
    arrays, _ = read_path(tmp_path / "path.zarr")
    w, theta = arrays["weights"][0], np.empty(2)
    scores = []
    for i in range(n):
        problem.scores(i, w, theta)
        scores.append(theta[1] - theta[0])
    assert float(arrays["primal"][0]) * n * C == pytest.approx(best, rel=1e-7)
    np.testing.assert_allclose(scores, decision, rtol=1e-6, atol=1e-6)
    np.testing.assert_array_equal(predict(problem, w)[0], (decision > 0.0).astype(int))


@pytest.mark.interpreted
def test_resume__is_bit_equal_with_any_budget_and_verify_rebuilds_it(tmp_path: Path, monkeypatch) -> None:
    options, path = options_of(step="pairwise", rebase_steps=7), path_of(eps=0.05, lambda_min=0.02)
    assert solved(problem_of(), tmp_path / "whole", options, path) is Status.CONVERGED
    monkeypatch.setenv("GAPWISE_KERNEL_MB", "0")
    assert stopped_and_resumed(problem_of(), tmp_path / "parts", options, path, [1, 2, 3, 2]) >= 3
    assert_same_path(tmp_path / "whole", tmp_path / "parts")
    result = verify(problem_of(), tmp_path / "whole")
    assert result["certified"]
    assert result["max_rebuild_error"] < 1e-12


@pytest.mark.interpreted
@pytest.mark.parametrize(
    ("kernel", "rule", "method"), [("linear", "anytime", "bcfw"), ("poly", "two_sided", "accelerated_at_mean")]
)
def test_paths__that_mix_points_take_the_inner_products_of_explicit_features(
    tmp_path: Path, kernel: str, rule: str, method: str
) -> None:
    problem = problem_of(kernel, n=12, classes=3)
    path = path_of(rule=rule, kappa=0.7, eps=0.1, lambda_min=0.02)
    assert solved(problem, tmp_path, options_of(method=method), path) is Status.CONVERGED
    result = verify(problem, tmp_path)
    assert result["certified"]
    assert len(result["samples"]) == 20
    arrays, _ = read_path(tmp_path / "path.zarr")
    coefficients = arrays["weights"][:, : problem.d // 2].reshape(-1, 3, problem.n)
    plain = (coefficients @ explicit(kernel, problem.rows.x)).reshape(len(coefficients), -1)
    np.testing.assert_allclose(arrays["norm2"], np.sum(plain**2, axis=1), rtol=1e-9)
    checked = 0
    for k, inner in zip(arrays["cell_interval"], arrays["cell_inner"], strict=True):
        if 0 < k < len(plain):
            assert inner == pytest.approx(plain[k - 1] @ plain[k], rel=1e-9)
            checked += 1
    assert checked >= 3


@pytest.mark.interpreted
def test_paths__that_mix_points_resume_and_a_false_inner_product_is_found(tmp_path: Path) -> None:
    for rule, method in (("anytime", "bcfw"), ("two_sided", "accelerated_at_mean")):
        options, whole, parts = options_of(method=method), tmp_path / rule / method, tmp_path / f"{rule}_{method}"
        path = path_of(rule=rule, kappa=0.7, eps=0.05, lambda_min=1e-3)
        assert solved(problem_of(), whole, options, path) is Status.CONVERGED
        assert stopped_and_resumed(problem_of(), parts, options, path, [1, 2, 3, 2]) >= 3
        assert_same_path(whole, parts)
        cells = zarr.open_group(whole / "path.zarr")["cell_dual_inner"]
        cells[1] = 1.01 * cells[1]
        with pytest.raises(CertificateError, match="dual_inner is stored as"):
            verify(problem_of(), whole)


@pytest.mark.interpreted
def test_verify__takes_kernels_from_nowhere_but_its_own_code(tmp_path: Path) -> None:
    """A path solved with another kernel than the features have, or with scores that are not those of alpha, is refused."""
    options, path = options_of(step="pairwise"), path_of(eps=0.05, lambda_min=0.1)
    assert solved(problem_of(gamma=0.31), tmp_path, options, path) is Status.CONVERGED
    with pytest.raises(CertificateError, match=r"differ by .* of the largest from those of the supports|is stored as"):
        verify(problem_of(), tmp_path)
    problem = problem_of()
    w, c = some_w(problem)
    forged = np.concatenate([w[: w.size // 2], 1.01 * w[w.size // 2 :]])
    K = reference("rbf", problem.rows.points, problem.rows.points)
    np.testing.assert_allclose(completed(problem, forged)[w.size // 2 :].reshape(2, -1), (K @ c).T, rtol=1e-9)
    audited, mine = of_audit(problem), np.zeros(problem.d)
    audited.push(0, 1.0, np.array([1.0, -1.0]), mine)
    assert not mine[w.size // 2 :].any()
    np.testing.assert_allclose(audited.norms2, problem.norms2, rtol=1e-12)


@pytest.mark.parametrize("kernel", KERNELS)
def test_verify__recomputes_the_norms_of_weighted_blocks(kernel: str) -> None:
    """As the Gram matrix gives them, whatever norms the problem comes with."""
    x, labels = examples(n=9, classes=3)
    weight, others = np.linspace(0.25, 3.0, 9), np.linspace(1.0, 2.0, 9)
    arrays = {"x": x, "points": x, "labels": labels, "row": np.arange(9), "block_weight": weight}
    problem = build("multiclass", arrays, {"classes": 3, **KERNELS[kernel]})
    audited, K = of_audit(problem._replace(norms2=others)), reference(kernel, x, x)
    np.testing.assert_allclose(audited.norms2, weight**2 * np.diag(K), rtol=1e-12)
    for i, delta in enumerate(np.random.default_rng(3).normal(size=(9, 3))):
        w = np.zeros(problem.d)
        audited.push(i, 1.0, delta, w)
        c = w[: w.size // 2].reshape(3, 9)
        assert problem.norm2(i, delta) == pytest.approx(np.sum(c * (c @ K)), rel=1e-9)
        assert audited.norm2(i, delta) == pytest.approx(np.sum(c * (c @ K)), rel=1e-9)


def explicit(kernel: str, x: np.ndarray) -> np.ndarray:
    """Features whose inner products the kernel is."""
    if kernel == "linear":
        return x
    gamma, width = KERNELS["poly"]["gamma"], x.shape[1]  # (gamma <x, z> + 1)^2
    pairs = [np.sqrt(2.0) * gamma * x[:, a] * x[:, b] for a in range(width) for b in range(a)]
    return np.column_stack([np.ones(len(x)), np.sqrt(2.0 * gamma) * x, gamma * x**2, *pairs])


@pytest.mark.interpreted
@pytest.mark.parametrize(
    ("kernel", "method"), [("linear", "accelerated"), ("poly", "mpbcfw"), ("linear", "cutting_plane")]
)
def test_methods__find_the_optimum_of_explicit_features(tmp_path: Path, kernel: str, method: str) -> None:
    problem = problem_of(kernel, n=12, classes=3)
    features = {"x": explicit(kernel, problem.rows.x), "labels": problem.truth}
    plain = build("multiclass", features, {"classes": 3})
    path, values = path_of(**{**SINGLE, "lam": 0.3, "tolerance": 1e-8}), []
    for name, either in (("kernel", problem), ("plain", plain)):
        assert solved(either, tmp_path / name, options_of(method=method), path) is Status.CONVERGED
        assert verify(either, tmp_path / name)["certified"]
        arrays, _ = read_path(tmp_path / name / "path.zarr")
        values.append((float(arrays["primal"][0]), float(arrays["norm2"][0])))
    assert values[0][0] == pytest.approx(values[1][0], abs=2e-8)
    assert values[0][1] == pytest.approx(values[1][1], rel=1e-3)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"row": np.array([0, 1, 24])}, "block 2 is none of the 3 points"),
        ({"points": np.zeros((3, 5))}, r"points \(m, D\); got \(3, 4\) and \(3, 5\)"),
        ({"x": np.array([[0.0] * 4, [np.inf] * 4, [0.0] * 4])}, "block 1 has a feature that is not finite"),
    ],
)
def test_build__names_what_does_not_fit(change, message: str) -> None:
    x = np.zeros((3, 4))
    arrays = {"x": x, "points": x, "labels": np.array([0, 1, 0]), "row": np.arange(3), **change}
    with pytest.raises(ValueError, match=message):
        build("multiclass", arrays, {"classes": 2, **KERNELS["rbf"]})
