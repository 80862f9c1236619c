"""The mean of an accelerated solve's points: its weights, its gap with and without oracles, and when it is tried."""

from __future__ import annotations

import math

import numpy as np
import pytest
from dense import primal_value
from parts_of import proximal_of
from single import ACCELERATED_LAM as LAM
from single import accelerated_of, never
from tiny import TINY, by_all_methods, multiclass

from gapwise.stages.solver.catalyst import MEAN_POWER
from gapwise.stages.solver.exact import exact_pass
from gapwise.stages.solver.gaps import exact_gaps
from gapwise.stages.solver.methods import accelerated
from gapwise.stages.solver.methods.accelerated import SURE
from gapwise.stages.solver.options import Status


def test_note__weighs_points_by_rising_powers():
    solver = accelerated_of(multiclass())
    proximal = proximal_of(solver)
    points = np.random.default_rng(0).normal(size=(20, solver.problem.d))
    for point in points:
        solver.iterate.state.w[:] = point
        proximal.note()
    weights = np.array([math.prod(k + j for j in range(int(MEAN_POWER))) for k in range(1, 21)], float)
    np.testing.assert_allclose(proximal.mean, weights @ points / weights.sum(), rtol=1e-12)
    assert proximal.counts.points == 20


@pytest.mark.parametrize("name", by_all_methods())
def test_cached_gap__is_that_of_the_labellings_in_the_cache(name):
    """At most P(w) - D(alpha), and that itself once the labellings that w violates most are in the cache."""
    problem = TINY[name]()
    solver = accelerated_of(problem)
    seen = 0

    def boundary(solver):
        nonlocal seen
        proximal = proximal_of(solver)
        if proximal.counts.points == 0:
            return
        w = proximal.mean
        exact = primal_value(problem, w, LAM) - solver.iterate.dual_and_excess(w)[0]
        known = solver.iterate.cached_gap(w)
        assert -1e-9 <= known <= exact + 1e-9
        S = solver.iterate.state
        gaps = exact_gaps(problem, w, S.mu, S.ell, pool=S.pool)
        assert gaps.gap.sum() + solver.iterate.dual_and_excess(w)[1] == pytest.approx(exact, abs=1e-9)
        if solver.counts.exact_due:
            seen += 1

    status, point = solver.solve(0.02, boundary)
    assert status is Status.CONVERGED
    assert seen > 0
    assert solver.iterate.cached_gap(solver.iterate.weights) == pytest.approx(point.gap, abs=1e-9)


def test_mean__is_what_is_certified_and_better_than_the_last_point(monkeypatch):
    problem = multiclass(n=60, width=12, classes=6)
    solver = accelerated_of(problem, lam=1e-2)
    proximal, tried = proximal_of(solver), []

    def noted(it, w):
        assert w is proximal.mean
        point, gaps = exact_pass(it, w)
        np.testing.assert_array_equal(solver.iterate.weights, w)
        assert point.primal == pytest.approx(primal_value(problem, w, 1e-2), abs=1e-9)
        assert point.primal - point.dual == pytest.approx(point.gap, abs=1e-9)
        tried.append((point.gap, primal_value(problem, solver.iterate.state.w, 1e-2) - point.dual))
        return point, gaps

    monkeypatch.setattr(accelerated, "exact_pass", noted)
    status, point = solver.solve(1e-4, never)
    assert status is Status.CONVERGED
    assert point.gap == tried[-1][0] <= 1e-4
    assert all(mean <= 1.1 * last for mean, last in tried)
    np.testing.assert_array_equal(solver.iterate.weights, proximal.mean)


def test_exact_passes__at_the_mean_are_made_when_the_cache_promises_success():
    problem = multiclass(n=60, width=12, classes=6)
    solver = accelerated_of(problem, lam=1e-2)
    tried = []

    def boundary(solver):
        if solver.counts.exact_due:
            tried.append(solver.iterate.cached_gap(proximal_of(solver).mean))

    assert solver.solve(1e-4, boundary)[0] is Status.CONVERGED
    assert solver.ledger.passes_here < 100.0
    assert 1 <= len(tried) <= 3
    assert max(tried) <= SURE * 1e-4


def test_mean_gap__begins_the_mean_anew_where_the_last_point_is_better():
    solver = accelerated_of(multiclass())
    proximal = proximal_of(solver)
    solver.solve(1e-6, never)
    best = solver.iterate.weights.copy()
    solver.iterate.state = solver.iterate.state._replace(w=best)  # u stays
    known = solver.iterate.cached_gap(best)
    proximal.mean, proximal.counts.points = np.full(solver.problem.d, 3.0), 50
    assert proximal.mean_gap() == known
    assert proximal.counts.points == 1
    np.testing.assert_array_equal(proximal.mean, best)
    solver.iterate.state, proximal.counts.points = solver.iterate.state._replace(w=np.full(solver.problem.d, 3.0)), 50
    assert proximal.mean_gap() == known
    assert proximal.counts.points == 50
    np.testing.assert_array_equal(proximal.mean, best)


@pytest.mark.parametrize("seed", range(4))
def test_limits__certify_the_better_of_mean_and_last_point(seed):
    """Far from the tolerance, too, where the mean may lag behind."""
    problem = multiclass(seed, n=60, width=12, classes=6)
    solver = accelerated_of(problem, lam=1e-2)
    solver.options.max_passes = 28.0
    last = []

    def boundary(solver):
        if solver.counts.exact_due:
            last.append(primal_value(problem, solver.iterate.state.w, 1e-2) - solver.iterate.dual_and_excess()[0])

    status, point = solver.solve(1e-8, boundary)
    assert status is Status.PASS_LIMIT
    assert point.gap <= 1.02 * last[-1]
