"""An approximate oracle with a bound: certificates are true although the oracle is not exact."""

from __future__ import annotations

import functools
import math

import numpy as np
import pytest
from dense import optimum, primal_value
from solved import options_of, path_of, solved, stopped_and_resumed
from tiny import all_labels, potts

from gapwise.stages.problems.capabilities import ESTIMATE
from gapwise.stages.solver import exact
from gapwise.stages.solver.engine import Engine, Task
from gapwise.stages.solver.exact import FAINT, exact_gaps
from gapwise.stages.solver.methods import method_options
from gapwise.stages.solver.options import CacheOptions, PathOptions, Status
from gapwise.stages.solver.oracles import Answers, check_answers
from gapwise.stages.solver.state import truth_pool
from gapwise.storage.paths import open_path
from gapwise.storage.results import read_path

pytestmark = pytest.mark.interpreted

SMALL = {"n": 5, "most": 4, "seed": 11}


@functools.cache
def loose(seed=SMALL["seed"]):
    """One sweep on graphs with cycles: at small lambda some bounds exceed every labelling."""
    return potts(**{**SMALL, "seed": seed}, meta={"sweeps": 1, "slack": 0.0})


def solved_at(problem, lam, tolerance, method="bcfw", **choices):
    options = method_options(method, cache=CacheOptions(kind="gap"), **{"max_passes": 300.0, **choices})
    path = PathOptions(rule="single", lam=lam, tolerance=tolerance)
    engine = Engine.begin(Task(problem, options, path))
    (solved,) = engine.walk()
    return solved, engine.solver


def weights_for(problem, seed=0, size=0.4):
    rng = np.random.default_rng(seed)
    w = size * rng.normal(size=problem.d)
    w[-2:] = 2.0 * rng.random(2)
    return w


def test_exact_pass__certifies_with_the_bounds_and_samples_with_the_answers():
    problem = loose()
    w, slack = weights_for(problem), 0.0
    gaps = exact_gaps(problem, w, truth_pool(problem))
    for i in range(problem.n):
        theta = np.empty(int(np.diff(problem.local_ptr)[i]))
        problem.scores(i, w, theta)
        truth = problem.truth[slice(*problem.label_ptr[i : i + 2])]
        most = max(problem.loss(i, y) + problem.value(i, theta, y) for y in all_labels(problem, i))
        hinge = most - problem.value(i, theta, truth)
        assert gaps.gap[i] * problem.n <= hinge + 1e-12
        assert gaps.hinge[i] >= hinge - 1e-12
        assert gaps.certified[i] * problem.n == pytest.approx(gaps.hinge[i], abs=1e-12)
        slack += (gaps.certified[i] - gaps.gap[i]) * problem.n
    assert slack > 0.01  # otherwise this instance shows nothing
    assert gaps.slack == pytest.approx(slack / problem.n)
    assert 0.0 < gaps.proven < 1.0


@pytest.mark.parametrize(("method", "lam"), [("bcfw", 0.03), ("accelerated", 0.5)])
def test_certificate__is_true_whatever_the_oracle_missed(method, lam):
    problem = loose()
    record, _ = solved_at(problem, lam, 0.1, method)
    best, point = optimum(problem, lam), record.point
    assert record.status is Status.CONVERGED
    assert point.gap <= 0.1
    assert point.dual <= best + 1e-7
    assert point.primal >= primal_value(problem, record.weights, lam) - 1e-9
    assert point.gap >= primal_value(problem, record.weights, lam) - best - 1e-7


def test_certificate__comes_to_the_optimum_with_tight_bounds():
    problem = potts(**SMALL, meta={"sweeps": 300, "slack": 0.0})
    record, solver = solved_at(problem, 0.1, 1e-3)
    assert record.status is Status.CONVERGED
    assert record.point.primal == pytest.approx(optimum(problem, 0.1), abs=1e-3)
    assert record.proven == solver.counts.proven == 1.0


@pytest.mark.parametrize("method", ["bcfw", "accelerated"])
def test_bound_limit__ends_where_only_the_bounds_are_too_loose(method):
    problem = loose()
    record, solver = solved_at(problem, 0.03, 2e-3, method)
    assert record.status is Status.BOUND_LIMIT
    assert record.point.gap > 2e-3
    assert solver.counts.exact_total <= FAINT * max(2e-3, solver.counts.slack)
    assert record.slack == solver.counts.slack > 1e-3
    assert record.effective_passes < 290  # not the limit of passes
    best = optimum(problem, 0.03)
    assert record.point.gap >= primal_value(problem, record.weights, 0.03) - best - 1e-7


@pytest.mark.parametrize(("rule", "make"), [("paper", potts), ("two_sided", loose)])
def test_path__is_eps_optimal_at_every_lambda(rule, make, tmp_path):
    problem = make() if make is loose else potts(**SMALL)
    path = path_of(rule=rule, kappa=0.7, eps=0.1, lambda_min=0.02)
    assert solved(problem, tmp_path / "run", options_of(), path) is Status.CONVERGED
    models = open_path(tmp_path / "run")
    for lam in np.geomspace(0.02, 1.5 * models.attrs["lam_top"], 9):
        w = models.weights_at(float(lam)).values
        assert primal_value(problem, w, lam) - optimum(problem, lam) <= 0.1 * (1 + 1e-6)
    assert models.attrs["certainty"] == "upper-bounded"
    assert models.attrs["certified"] is True


def test_path__stores_how_good_the_bounds_are_and_resumes_to_the_same_bits(tmp_path):
    problem, path = loose(20), path_of(rule="two_sided", kappa=0.7, eps=0.1, lambda_min=0.1)
    options = options_of(rebase_steps=4)
    solved(problem, tmp_path / "whole", options, path)
    assert stopped_and_resumed(problem, tmp_path / "parts", options, path, [3, 5, 7], every_seconds=0.0) == 3
    whole, parts = (read_path(tmp_path / name / "path.zarr")[0] for name in ("whole", "parts"))
    for name in ("gap", "hinge", "weights", "block_gap", "bound_slack", "proven", "cell_low"):
        np.testing.assert_array_equal(whole[name], parts[name])
    np.testing.assert_allclose(whole["gap"], whole["block_gap"].sum(axis=1) + whole["bound_slack"], atol=1e-12)
    assert whole["bound_slack"].max() > 1e-3
    assert whole["proven"].min() < 1.0


def answers_of(*columns):
    """Answers that list nothing besides the vertices."""
    n, length = columns[3].shape
    return Answers(
        *columns, np.zeros((n, 0, length), np.uint8), np.zeros((n, 0)), np.zeros(n, int), np.full(n, -np.inf)
    )


def test_answers__below_the_truth_are_replaced_and_bounds_below_an_answer_refused():
    made = [np.array([1.0, 0.2]), np.array([0.5, -0.3]), np.array([0.1, 0.1]), np.zeros((2, 3), np.uint8)]
    blocks = np.array([4, 9])
    with pytest.raises(ValueError, match=r"block 9: its labelling scores 0\.3 below the truth"):
        check_answers(answers_of(*made, made[0]), blocks)
    answers = answers_of(*map(np.copy, made), np.array([1.5, 0.8]))
    check_answers(answers, blocks, "upper-bounded")
    assert answers.h.tolist() == [1.0, 0.5]
    assert answers.hinge.tolist() == [0.5, 0.0]
    np.testing.assert_allclose(answers.upper_hinge, [1.0, 0.3])
    for wrong in (0.4, math.nan):
        answers = answers_of(*map(np.copy, made), np.array([1.5, wrong]))
        with pytest.raises(
            ValueError, match=rf"max_bound: block 9: the bound is {wrong:.9g}, but a labelling is worth"
        ):
            check_answers(answers, blocks, "upper-bounded")


def test_estimates__use_the_largest_value_at_hand():
    """Alpha-expansion alone: no bound, so hinges are lower estimates, but never below what the dual point knows."""
    problem = potts(**SMALL, meta={"oracle": "expansion"})
    record, _ = solved_at(problem, 0.05, 1e-3)
    assert record.certainty == "estimate"
    assert record.point.gap >= 0.0
    assert record.record().keys() & {"bound_slack", "proven"} == set()


def test_bound_limit__comes_once_the_own_gap_is_a_tenth_of_what_the_bounds_take():
    problem, tolerance = loose(), 2e-4
    record, solver = solved_at(problem, 0.03, tolerance)
    counts = solver.counts
    assert record.status is Status.BOUND_LIMIT
    assert counts.slack > 10.0 * tolerance  # no step could ever reach it
    assert 0.1 * tolerance < counts.exact_total <= 0.1 * counts.slack
    assert record.point.gap <= 1.1 * counts.slack + 1e-12


def test_estimates__are_raised_to_what_the_dual_point_is_worth():
    """The first block's dual point is worth .5 more than the oracle's answer: its hinge is .5 larger, its gap 0."""
    h, hinge, loss = np.array([2.0, 3.0]), np.array([1.0, 1.25]), np.ones(2)
    found = exact._gaps(answers_of(h, hinge, loss, np.zeros((2, 1), np.uint8), h), np.array([2.5, 2.0]), ESTIMATE)
    assert found.hinge.tolist() == [1.5, 1.25]
    assert found.gap.tolist() == [0.0, 0.5]
