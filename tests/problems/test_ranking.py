"""Ranking beyond the contract suite: the pairwise hinge, the ranking SVM of LIBLINEAR, normal form, ties, measures."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from equality import assert_same_path
from solved import options_of, path_of, solved, stopped_and_resumed
from tiny import ranking

from gapwise.stages.model.predict import predict
from gapwise.stages.problems import build
from gapwise.stages.problems.ranking import metrics, places_of
from gapwise.stages.solver.options import Status
from gapwise.stages.verify import verify
from gapwise.storage.results import read_path

LEVELS = ((4, 4, 2, 2, 2, 1, 0, 0), (1, 1, 0, 0, 0), (3, 2, 1, 0), (1, 0), (2, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0))


def pairs_of(problem, i: int) -> list[tuple[int, int]]:
    """All (better, worse) of a query."""
    worse = problem.worse[problem.local_ptr[i] : problem.local_ptr[i + 1]]
    return [(j, q) for j in range(worse.size) for q in range(worse[j], worse.size)]


def swaps(problem, i: int, y: np.ndarray) -> set[tuple[int, int]]:
    """The pairs that a labelling swaps, by its definition."""
    k = y.size // 2
    return {(j, q) for j, q in pairs_of(problem, i) if y[k + q] >= y[j]}


@pytest.mark.parametrize("seed", [0, 2])
def test_oracle__swaps_the_pairs_whose_margin_is_below_one(seed: int) -> None:
    problem, rng = ranking(seed, LEVELS), np.random.default_rng(seed)
    for i in range(problem.n):
        k = int(problem.local_ptr[i + 1] - problem.local_ptr[i])
        theta = np.round(2.0 * rng.normal(size=k), 0 if seed < 2 else 9)  # whole numbers: ties and margins of exactly 1
        y = np.empty(2 * k, np.int16)
        loss = problem.max_oracle(i, theta, y, problem.scratch())
        wanted = {(j, q) for j, q in pairs_of(problem, i) if theta[j] - theta[q] < 1.0}
        assert swaps(problem, i, y) == wanted
        pairs = len(pairs_of(problem, i))
        assert loss == problem.loss(i, y) == pytest.approx(len(wanted) / pairs)
        hinge = sum(max(0.0, 1.0 - theta[j] + theta[q]) for j, q in pairs_of(problem, i)) / pairs
        assert loss + problem.value(i, theta, y) == pytest.approx(hinge, abs=1e-12)
        problem.decode(i, theta, y, problem.scratch())
        assert swaps(problem, i, y) == {(j, q) for j, q in pairs_of(problem, i) if theta[j] <= theta[q]}
        assert sorted(y[k:]) == list(range(k))
        assert np.all(np.diff(theta[np.argsort(y[k:])]) >= 0.0)


def test_labellings__of_the_oracle_are_equal_where_they_swap_the_same_pairs_of_two_levels() -> None:
    problem, rows = ranking(0, ((1, 1, 1, 0, 0, 0, 0),)), {}
    rng, y = np.random.default_rng(0), np.empty(14, np.int16)
    for _ in range(300):
        problem.max_oracle(0, rng.normal(size=7), y, problem.scratch())
        assert y.max() < problem.labels
        rows.setdefault(frozenset(swaps(problem, 0, y)), set()).add(y.tobytes())
    assert len(rows) > 30
    assert all(len(equal) == 1 for equal in rows.values())
    problem.max_oracle(0, np.array([9.0, 8, 7, 0, 0, 0, 0]), y, problem.scratch())
    np.testing.assert_array_equal(y, problem.truth)


@pytest.mark.interpreted
def test_optimum__is_the_svm_on_pairs_of_liblinear_and_is_certified_and_resumed(tmp_path: Path) -> None:
    from sklearn.svm import LinearSVC

    problem, lam = ranking(3, LEVELS), 0.2
    rows, weights = [], []
    for i in range(problem.n):
        x = problem.x[problem.local_ptr[i] : problem.local_ptr[i + 1]]
        rows += [x[j] - x[q] for j, q in pairs_of(problem, i)]
        weights += [problem.share[i] / (problem.n * lam)] * len(pairs_of(problem, i))
    sign = np.where(np.arange(len(rows)) % 2, 1.0, -1.0)
    svm = LinearSVC(loss="hinge", dual=True, fit_intercept=False, tol=1e-11, max_iter=1_000_000, random_state=0)
    u = svm.fit(sign[:, None] * np.array(rows), sign, weights).coef_[0]
    best = lam * (0.5 * u @ u + np.array(weights) @ np.maximum(0.0, 1.0 - np.array(rows) @ u))
    options, path = options_of(step="pairwise"), path_of(rule="single", lam=lam, tolerance=1e-9)
    assert solved(problem, tmp_path / "whole", options, path) is Status.CONVERGED
    assert verify(problem, tmp_path / "whole")["certified"]
    arrays, _ = read_path(tmp_path / "whole" / "path.zarr")
    assert float(arrays["primal"][0]) == pytest.approx(best, rel=1e-8)
    np.testing.assert_allclose(arrays["weights"][0], u, rtol=1e-4, atol=1e-5)
    assert stopped_and_resumed(problem, tmp_path / "parts", options, path, [1, 2, 2]) >= 2
    assert_same_path(tmp_path / "whole", tmp_path / "parts")


def test_metrics__are_those_of_scikit_learn_and_ties_are_in_the_worst_order() -> None:
    from sklearn.metrics import ndcg_score, roc_auc_score

    levels = ((1, 1, 0, 0, 0), (1, 0, 0, 0))
    problem, w = ranking(0, levels), np.random.default_rng(2).normal(size=3)
    relevance = np.concatenate([np.array(of, float) for of in levels])
    labels, losses = predict(problem, w)
    measures = metrics(problem, {"relevance": relevance}, labels)
    split = [problem.x[:5] @ w, problem.x[5:] @ w]
    area = [roc_auc_score(of, score) for of, score in zip(levels, split, strict=True)]
    assert measures["swapped_pairs"] == pytest.approx(1.0 - np.mean(area)) == pytest.approx(losses.mean())
    ndcg = [ndcg_score([of], [score], k=10) for of, score in zip(levels, split, strict=True)]
    assert measures["ndcg_at_10"] == pytest.approx(np.mean(ndcg))
    assert metrics(problem, {"relevance": 2.0 * relevance - 1.0}, labels) == pytest.approx(measures)
    labels, losses = predict(problem, np.zeros(3))
    assert losses.tolist() == [1.0, 1.0]
    assert places_of(problem, labels, 1).tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"relevance": np.array([0.0, 1.0, 1.0, 0.0])}, "block 0 has documents whose relevance rises"),
        ({"relevance": np.array([1.0, 0.0, np.nan, 0.0])}, "block 1 has a relevance that is not finite"),
        ({"x": np.array([[0.0], [1.0], [2.0], [np.inf]])}, "block 1 has a feature that is not finite"),
    ],
)
def test_build__names_the_query(change, message: str) -> None:
    arrays = {"x": np.zeros((4, 1)), "relevance": np.array([1.0, 0.0, 1.0, 0.0]), "x_ptr": np.array([0, 2, 4])}
    assert build("ranking", arrays, {}).share.tolist() == [1.0, 1.0]
    with pytest.raises(ValueError, match=message):
        build("ranking", {**arrays, **change}, {})
