"""Averages of dual iterates on two tracks: the naive recursions, the best point between them, and what is certified."""

from __future__ import annotations

import numpy as np
import pytest
from dense import best, primal_value
from single import LAM, never, solver_of
from tiny import KINDS, instance, multiclass

from gapwise.stages.solver.averages import APPROXIMATE, EXACT, AveragePoint, best_between, between
from gapwise.stages.solver.codes import CACHE_ONLY, ORACLE_ALWAYS
from gapwise.stages.solver.objective import Goal, squared_norm
from gapwise.stages.solver.options import Status
from gapwise.stages.solver.visits import run_steps

pytestmark = pytest.mark.interpreted


def averaging_of(problem, averaging, lam=LAM, **choices):
    choices = {"method": "mpbcfw", "cache": "gap", "capacity": 1000, **choices}
    return solver_of(problem, lam, averaging=averaging, **choices)


def naive(points):
    weights = np.arange(1.0, len(points) + 1.0)
    return (weights / weights.sum()) @ np.array(points)


@pytest.mark.parametrize(
    ("name", "averaging"), [("chain", "weighted"), ("multiclass_cone", "two_track"), ("python_oracle", "two_track")]
)
def test_tracks__equal_the_naive_recursions(name, averaging):
    """One visit at a time, the iterate is recorded on its track; a track of one kind does not count the other's steps."""
    problem = instance(name)
    solver = averaging_of(problem, averaging, 0.05)
    tracks = solver.tracks
    solver.it.rebase()
    seen, order = {EXACT: [], APPROXIMATE: []}, np.arange(problem.n)
    for _ in range(3):
        solver.it.make_room(problem.n)
        for kind in (EXACT, APPROXIMATE, APPROXIMATE):
            source, rounds = (ORACLE_ALWAYS, 1) if kind == EXACT else (CACHE_ONLY, 4)
            with tracks.during(solver.it.state, kind) as solver.it.state:
                for i in order:
                    run_steps(solver.it, solver.it.flags(rounds=rounds, vertex_from=source), order[i : i + 1], 1)
                    S = solver.it.state
                    seen[kind if averaging == "two_track" else EXACT].append([*S.u, S.z_ell[1]])
    points = tracks.points(solver.it.state)
    assert len(points) == (2 if averaging == "two_track" else 1)
    for point, track in zip(points, seen.values(), strict=False):
        np.testing.assert_allclose([*point.v, point.ell], naive(track), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("boxed", [False, True])
def test_best_between__is_at_least_as_good_as_both_and_as_all_between(seed, boxed):
    rng = np.random.default_rng(seed)
    bounds = np.sort(rng.normal(scale=0.3, size=(2, 12)), axis=0) if boxed else np.empty((2, 0))
    problem = multiclass(seed, lower=bounds[0], upper=bounds[1])
    a, b = (AveragePoint(rng.normal(scale=0.5, size=problem.d), float(rng.uniform())) for _ in range(2))
    best = best_between(problem, LAM, a, b)
    value = best.value(problem, LAM)
    assert value >= max(between(a, b, share).value(problem, LAM) for share in np.linspace(0.0, 1.0, 201)) - 1e-12
    assert best_between(problem, LAM, a, a).value(problem, LAM) == pytest.approx(a.value(problem, LAM), abs=1e-12)


@pytest.mark.parametrize("name", KINDS)
def test_two_track__is_at_least_as_good_as_either_track_during_a_solve(name):
    problem = instance(name)
    solver = averaging_of(problem, "two_track", 0.05, max_passes=12.0, rebase_steps=1)
    seen = 0

    def boundary(solver):
        nonlocal seen
        tracks = solver.tracks
        points = tracks.points(solver.it.state)
        value = tracks.best(problem, 0.05, solver.it.state).value(problem, 0.05)
        assert value >= max(point.value(problem, 0.05) for point in points) - 1e-12
        assert value <= best(name, 0.05) + 1e-9, "the average of dual points is one"
        seen += len(points) == 2

    solver.solve(Goal(1e-9), boundary)
    assert seen > 3


@pytest.mark.parametrize(
    ("name", "averaging", "step"),
    [("chain", "two_track", "fw"), ("multiclass_cone", "weighted", "pairwise"), ("segmentation", "two_track", "fw")],
)
def test_certificate__belongs_to_the_returned_weights(name, averaging, step):
    problem = instance(name)
    solver = averaging_of(problem, averaging, step=step, max_passes=3000.0)
    status, point = solver.solve(Goal(2e-3), never)
    assert status is Status.CONVERGED
    assert point.norm2 == pytest.approx(squared_norm(solver.it.weights))
    assert point.primal == pytest.approx(primal_value(problem, solver.it.weights, LAM), abs=1e-9)
    assert point.primal - point.dual == pytest.approx(point.gap, abs=1e-10)
    assert best(name, LAM) - 2e-3 <= point.dual <= best(name, LAM) + 1e-7
