"""The contract suite: every structure against brute force over all labellings."""

from __future__ import annotations

import numba
import numpy as np
import pytest
from tiny import ALL_TINY, LABELS, all_labels, feature_matrix, local, potts_tree

from stages.problems.moves import pair_follow, pair_move, pair_norm2, pair_push, score_labels

EXACT = {**ALL_TINY, **({"potts_tree": potts_tree} if numba.config.DISABLE_JIT else {})}
"""Potts oracles are exact on trees; compiling them for these tests alone would take longer than all of the tests."""


@pytest.fixture(params=sorted(EXACT))
def problem(request):
    return EXACT[request.param]()


def draw_w(problem, rng):
    w = rng.normal(size=problem.d)
    return np.clip(w, problem.lower, problem.upper) if problem.lower.size else w


def test_contract__oracles_equal_brute_force(problem):
    rng = np.random.default_rng(3)
    for i in range(problem.n):
        w = draw_w(problem, rng)
        B = feature_matrix(problem, i)
        theta = np.empty(B.shape[1])
        problem.scores(i, w, theta)
        np.testing.assert_allclose(theta, B.T @ w, rtol=1e-6, atol=1e-6)
        labels = all_labels(problem, i)
        values = np.array([theta @ local(problem, i, y) for y in labels])
        losses = np.array([problem.loss(i, y) for y in labels])
        y = np.empty_like(labels[0])
        loss = problem.max_oracle(i, theta, y, problem.scratch())
        assert loss == pytest.approx(problem.loss(i, y), abs=1e-12)
        assert loss + problem.value(i, theta, y) == pytest.approx((values + losses).max(), abs=1e-9)
        problem.decode(i, theta, y, problem.scratch())
        assert problem.value(i, theta, y) == pytest.approx(values.max(), abs=1e-9)


def test_contract__labels_are_as_many_as_the_structure_says(problem):
    assert problem.labels == LABELS[type(problem).__name__](problem)
    assert problem.truth.max() < problem.labels
    assert isinstance(problem.unconstrained, bool)


def test_contract__least_loss_is_below_that_of_every_wrong_labelling(problem):
    for i in range(problem.n):
        truth = problem.truth[problem.label_ptr[i] : problem.label_ptr[i + 1]]
        wrong = [problem.loss(i, y) for y in all_labels(problem, i) if not np.array_equal(y, truth)]
        assert 0.0 < problem.least_loss(i) <= min(wrong) * (1 + 1e-12)


def test_contract__value_add_and_norm_agree(problem):
    rng = np.random.default_rng(4)
    for i in range(problem.n):
        B = feature_matrix(problem, i)
        theta = rng.normal(size=B.shape[1])
        labels = all_labels(problem, i)
        for y in labels[:: max(1, len(labels) // 8)]:
            m = local(problem, i, y)
            assert problem.value(i, theta, y) == pytest.approx(theta @ m, abs=1e-9)
            delta = m - 0.3 * local(problem, i, labels[0])
            expected = float(((B @ delta) ** 2).sum())
            assert problem.norm2(i, delta) == pytest.approx(expected, rel=1e-5, abs=1e-9)
            w, c = rng.normal(size=problem.d), float(rng.normal())
            moved = w.copy()
            problem.push(i, c, delta, moved)
            np.testing.assert_allclose(moved, w + c * (B @ delta), rtol=1e-6, atol=1e-6)


def test_contract__loss_is_zero_only_where_it_may_be(problem):
    for i in range(problem.n):
        truth = problem.truth[problem.label_ptr[i] : problem.label_ptr[i + 1]]
        assert problem.loss(i, truth) == 0.0
        assert all(problem.loss(i, y) >= 0.0 for y in all_labels(problem, i))


def test_contract__moves_between_two_labellings_are_what_the_dense_ones_are(problem):
    rng = np.random.default_rng(5)
    for i in range(problem.n):
        B = feature_matrix(problem, i)
        labels = all_labels(problem, i)
        for _ in range(6):
            y, z = labels[rng.integers(len(labels))], labels[rng.integers(len(labels))]
            move = B @ (local(problem, i, y) - local(problem, i, z))
            delta, w, c = rng.normal(size=B.shape[1]), rng.normal(size=problem.d), float(rng.normal())
            assert pair_norm2(problem, i, y, z, delta) == pytest.approx(float(move @ move), rel=1e-5, abs=1e-9)
            moved, theta = w.copy(), B.T @ w
            pair_push(problem, i, c, y, z, delta, moved)
            np.testing.assert_allclose(moved, w + c * move, rtol=1e-6, atol=1e-6)
            again, junk = w.copy(), rng.normal(size=B.shape[1])
            pair_move(problem, i, c, y, z, junk, again)
            np.testing.assert_allclose(again, moved, rtol=1e-12, atol=1e-12)
            pair_follow(problem, i, c, y, z, moved, theta, delta)
            np.testing.assert_allclose(theta, B.T @ moved, rtol=1e-5, atol=1e-5)


def test_contract__scores_of_few_labellings_are_theirs(problem):
    rng = np.random.default_rng(6)
    for i in range(problem.n):
        B = feature_matrix(problem, i)
        labels = np.array(all_labels(problem, i))
        w, slots = rng.normal(size=problem.d), rng.integers(len(labels), size=3)
        theta, found = np.full(B.shape[1], 1e9), np.empty(3)
        score_labels(problem, i, w, labels, slots, theta, found)
        exact = [(B.T @ w) @ local(problem, i, labels[s]) for s in slots]
        np.testing.assert_allclose(found - found[0], np.subtract(exact, exact[0]), rtol=1e-6, atol=1e-9)
