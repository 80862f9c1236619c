"""Potts terms of a fixed weight: brute force, a dense QP, paths with a certificate, and what each loss is."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from dense import optimum
from solved import options_of, path_of, solved
from tiny import all_labels, feature_matrix, local, segmentation

from gapwise.stages.evaluate import predict
from gapwise.stages.problems import build
from gapwise.stages.problems.segmentation import FixedSegmentation
from gapwise.stages.problems.segmentation.fixed import with_fixed_weight
from gapwise.stages.problems.stored import check_supports
from gapwise.stages.solver.engine import solve
from gapwise.stages.solver.methods import method_options
from gapwise.stages.solver.options import CacheOptions
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


@pytest.mark.parametrize("size", [1.0, 0.1])
def test_oracle_and_decoding__equal_brute_force(size):
    problem, rng, below = fixed(), np.random.default_rng(0), False
    assert (problem.d, problem.lower.size) == (3, 0)
    for i in range(problem.n):
        w = size * rng.normal(size=problem.d)
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


def test_no_weight__is_the_plain_structure_without_edges():
    problem, plain, rng = fixed(0.0), segmentation(), np.random.default_rng(1)
    for i, (a, b) in enumerate(itertools.pairwise(problem.label_ptr)):
        theta = rng.normal(size=b - a)
        first, other = np.empty(b - a, np.uint8), np.empty(b - a, np.uint8)
        padded = np.append(theta, np.zeros(int(np.diff(plain.images.edge_ptr)[i])))
        assert problem.max_oracle(i, theta, first, problem.scratch()) == plain.max_oracle(
            i, padded, other, plain.scratch()
        )
        assert (first == other).all()


@pytest.mark.interpreted
@pytest.mark.parametrize(("lam", "method"), [(0.3, "bcfw"), (0.05, "bcfw"), (0.3, "accelerated"), (0.3, "mpbcfw")])
def test_solve__reaches_the_optimum_of_a_dense_qp(lam, method):
    problem = fixed()
    options = method_options(method, cache=CacheOptions(kind="gap"), step="pairwise", max_passes=2000.0)
    solved = solve(problem, lam, options, tolerance=1e-8, relative=False)
    assert solved.breakpoint.point.primal == pytest.approx(optimum(problem, lam), abs=2e-8)


@pytest.mark.interpreted
@pytest.mark.parametrize("rule", ["one_sided", "two_sided"])
def test_path__is_certified_for_every_lambda(tmp_path, rule):
    problem, eps = fixed(), 0.05
    options, path = options_of(), path_of(rule=rule, kappa=0.7, eps=eps, lambda_min=0.01)
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


@pytest.mark.interpreted
def test_predict__measures_the_task_loss():
    problem, w = fixed(), np.array([0.3, -0.2, 0.5])
    labels, losses = predict(problem, w)
    assert (losses >= 0.0).all()
    for i in range(problem.n):
        y = labels[slice(*problem.label_ptr[i : i + 2])]
        assert losses[i] == problem.task_loss(i, y)


@pytest.mark.interpreted
def test_path_rule_of_the_paper__is_refused(tmp_path):
    with pytest.raises(
        ValueError, match=r"path\.rule=paper: its first lambda needs .*use path\.rule=one_sided or two_sided"
    ):
        solved(fixed(), tmp_path, options_of(), path_of(rule="paper", lambda_min=0.5))


def test_stored_losses__may_be_negative_here_and_nowhere_else():
    for problem, allowed in ((fixed(), True), (segmentation(), False)):
        n, lengths = problem.n, np.diff(problem.label_ptr)
        supports = (
            np.arange(n + 1),
            np.ones(n),
            np.full(n, -0.5),
            problem.truth.copy(),
            np.append(0, np.cumsum(lengths)),
        )
        if allowed:
            check_supports(problem, *supports)
        else:
            with pytest.raises(ValueError, match=r"support_loss: block 0: holds -0\.5, expected finite losses >= 0"):
                check_supports(problem, *supports)


def test_build__takes_the_weight_from_the_facts():
    from tiny import ragged

    block = {
        "unary": np.ones((2, 1), np.float32), "pairwise": np.array([[1.0, 0.5]], np.float32), "edges": np.array([[0, 1]]),
        "labels": np.array([0, 1]), "area": np.array([3.0, 5.0]), "gram": np.ones(4, np.float32),
    }  # fmt: skip
    problem = build("segmentation", ragged([block]), {"potts": 2.0})
    assert isinstance(problem, FixedSegmentation)
    assert (problem.strength.tolist(), problem.energy.tolist(), problem.d) == ([3.0], [3.0], 1)
    assert problem.loss(0, np.array([0, 0])) == 0.5 + 3.0  # a loss of one half, and nothing cut
    assert type(build("segmentation", ragged([block]), {})).__name__ == "Segmentation"
    with pytest.raises(ValueError, match=r"potts is -1\.0, expected a number >= 0"):
        build("segmentation", ragged([block]), {"potts": -1})
