"""Potts terms of a fixed weight: brute force, a dense QP, paths with a certificate, and what each loss is."""

from __future__ import annotations

import numpy as np
import pytest
from dense import optimum
from solved import options_of, path_of, solved
from tiny import all_labels, feature_matrix, local, segmentation

from gapwise.stages.problems.segmentation import FixedSegmentation
from gapwise.stages.problems.segmentation.fixed import with_fixed_weight
from gapwise.stages.verify import verify
from gapwise.storage.paths import open_path
from gapwise.storage.results import read_path

WEIGHT = 0.4


def fixed(weight: float = WEIGHT, **choices) -> FixedSegmentation:
    return with_fixed_weight(segmentation(**choices), weight)


def written_out(problem, i: int, w: np.ndarray, y: np.ndarray) -> tuple[float, float, float]:
    """Unary score, Potts energy and task loss of y, by their definitions from the plain problem."""
    plain = segmentation()
    nodes, arcs = (slice(*p[i : i + 2]) for p in (plain.label_ptr, plain.images.edge_ptr))
    edges = plain.images.edges[arcs]
    cut = y[edges[:, 0]] != y[edges[:, 1]]
    energy = WEIGHT * plain.pairwise[arcs].astype(float).sum(axis=1) @ cut
    wrong = y != plain.truth[nodes]
    return (
        float((plain.unary[nodes] @ w) @ np.where(y == 1, 1, -1)),
        float(energy),
        float(plain.images.loss_if_wrong[nodes] @ wrong),
    )


@pytest.mark.interpreted
def test_oracle_and_decoding__equal_brute_force():
    problem, rng, below = fixed(), np.random.default_rng(0), False
    assert (problem.d, problem.lower.size) == (3, 0)
    for i in range(problem.n):
        w = rng.normal(size=problem.d)
        B = feature_matrix(problem, i)
        theta = np.empty(B.shape[1])
        problem.scores(i, w, theta)
        np.testing.assert_allclose(theta, B.T @ w, rtol=1e-6, atol=1e-6)
        truth = problem.truth[slice(*problem.label_ptr[i : i + 2])]
        base = written_out(problem, i, w, truth)[1]
        worth, plain = [], []
        for y in all_labels(segmentation(), i):
            score, energy, loss = written_out(problem, i, w, y)
            assert problem.loss(i, y) == pytest.approx(loss - energy + base, abs=1e-6)
            assert problem.task_loss(i, y) == pytest.approx(loss, abs=1e-12)
            assert problem.value(i, theta, y) == pytest.approx(score, abs=1e-5)
            assert problem.value(i, theta, y) == pytest.approx(theta @ local(problem, i, y), abs=1e-9)
            below |= problem.loss(i, y) < 0.0
            worth.append(problem.loss(i, y) + problem.value(i, theta, y))
            plain.append(problem.value(i, theta, y) - energy)
        y, scratch = np.empty_like(truth), problem.scratch()
        assert problem.loss(i, truth) == 0.0
        loss = problem.max_oracle(i, theta, y, scratch)
        assert loss == problem.loss(i, y)
        assert loss + problem.value(i, theta, y) == pytest.approx(max(worth), abs=1e-9)
        problem.decode(i, theta, y, scratch)
        assert problem.value(i, theta, y) - written_out(problem, i, w, y)[1] == pytest.approx(max(plain), abs=1e-6)
        delta, c, moved = rng.normal(size=theta.size), 0.3, w.copy()
        assert problem.norm2(i, delta) == pytest.approx(float(((B @ delta) ** 2).sum()), rel=1e-5)
        problem.push(i, c, delta, moved)
        np.testing.assert_allclose(moved, w + c * (B @ delta), rtol=1e-6, atol=1e-6)
    assert below  # otherwise this instance shows nothing


@pytest.mark.interpreted
def test_path__is_certified_for_every_lambda(tmp_path):
    problem, eps = fixed(), 0.05
    options, path = options_of(), path_of(rule="two_sided", kappa=0.7, eps=eps, lambda_min=0.01)
    solved(problem, tmp_path, options, path)
    result = verify(problem, tmp_path, samples=40)
    assert result["certified"]
    model = open_path(tmp_path)
    arrays, _ = read_path(tmp_path / "path.zarr", ("support_loss",))
    assert (arrays["support_loss"] < 0.0).any()  # otherwise this run shows nothing
    for lam in np.geomspace(0.01, 30.0, 7):
        w = np.asarray(model.weights_at(lam))
        hinges = []
        for i in range(problem.n):
            theta = np.empty(int(np.diff(problem.local_ptr)[i]))
            problem.scores(i, w, theta)
            truth = problem.truth[slice(*problem.label_ptr[i : i + 2])]
            worth = [problem.loss(i, y) + problem.value(i, theta, y) for y in all_labels(segmentation(), i)]
            hinges.append(max(worth) - problem.value(i, theta, truth))
        assert 0.5 * lam * w @ w + np.mean(hinges) <= optimum(problem, lam) + eps * (1 + 1e-9)
