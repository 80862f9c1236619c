"""The accelerated method: the same optimum, exact certificates, the mean of its points, and its compiled arithmetic."""

from __future__ import annotations

import math

import numba
import numpy as np
import pytest
from dense import optimum, primal_value
from single import ACCELERATED_LAM as LAM
from single import accelerated_of, never
from solved import options_of, path_of
from tiny import TINY, by_all_methods, multiclass

from gapwise.stages.problems import build
from gapwise.stages.problems.multiclass.rows import Dense
from gapwise.stages.problems.protocol import frozen
from gapwise.stages.solver import catalyst, dual_point
from gapwise.stages.solver.catalyst import MEAN_POWER
from gapwise.stages.solver.engine import Engine, Task
from gapwise.stages.solver.exact import exact_gaps, exact_pass
from gapwise.stages.solver.methods import accelerated
from gapwise.stages.solver.objective import Goal
from gapwise.stages.solver.options import Status
from gapwise.stages.solver.proximal import CHUNK, dual_norms, recentre
from gapwise.stages.solver.running import clip_into
from gapwise.storage.sink import MemorySink


def assert_solves(problem, solver):
    """To 1e-6, with the certificate of the weights that it returns, around the optimum of a dense QP."""
    status, point = solver.solve(Goal(1e-6), never)
    assert status is Status.CONVERGED
    best = optimum(problem, LAM)
    assert best - 1e-6 <= point.dual <= best + 1e-7
    assert best - 1e-7 <= point.primal <= best + 1e-6
    assert point.primal == pytest.approx(primal_value(problem, solver.it.weights, LAM), abs=1e-9)
    assert point.primal - point.dual == pytest.approx(point.gap, abs=1e-9)


@pytest.mark.parametrize("name", by_all_methods())
def test_accelerated__reaches_the_optimum(name):
    problem = TINY[name]()
    solver = accelerated_of(problem)
    assert_solves(problem, solver)
    assert solver.counts.kappa == 0.0


@pytest.mark.parametrize("name", by_all_methods())
def test_accelerated__certificate_of_any_pair_is_exact(name):
    """P(w) - D(alpha) = sum of the exact block gaps at w + the excess, in the middle of a proximal problem."""
    problem = TINY[name]()
    solver = accelerated_of(problem)
    seen = 0

    def boundary(solver):
        nonlocal seen
        if solver.counts.kappa > 0.0:
            dual, excess = solver.it.dual_and_excess()
            S = solver.it.state
            gaps = exact_gaps(problem, S.w, S.pool).gap
            assert primal_value(problem, S.w, LAM) - dual == pytest.approx(gaps.sum() + excess, abs=1e-9)
            assert excess >= -1e-12
            seen += 1

    solver.solve(Goal(1e-6), boundary)
    assert seen > 0


def test_accelerated__does_not_change_with_the_scale_of_features():
    """Features times s and lambda times s^2 is the same problem: the same number of oracle calls."""
    calls = []
    for s in (1.0, 64.0):
        problem = multiclass()
        scaled = problem._replace(rows=Dense(frozen(problem.rows.x * s)), norms2=frozen(problem.norms2 * s * s))
        solver = accelerated_of(scaled, lam=LAM * s * s)
        solver.solve(Goal(1e-5), never)
        calls.append(solver.oracle_calls)
    assert calls[0] == calls[1]


def test_accelerated__needs_fewer_exact_passes_than_plain_steps():
    problem = multiclass(n=20, width=9, classes=5)
    passes = {}
    for method in ("bcfw", "accelerated"):
        solver = accelerated_of(problem, method, lam=1e-2)
        status, _ = solver.solve(Goal(1e-4), never)
        assert status is Status.CONVERGED
        passes[method] = solver.oracle_calls / problem.n
    assert passes["accelerated"] < 0.7 * passes["bcfw"], passes


@pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing is compiled")
@pytest.mark.parametrize("method", ["bcfw", "accelerated"])
def test_solve__compiles_nothing_that_no_cache_keeps(monkeypatch, method):
    monkeypatch.setattr(type(clip_into), "__call__", lambda *_: pytest.fail("an inner function was called from Python"))
    accelerated_of(TINY["multiclass_cone"](), method).solve(Goal(1e-3), never)


def test_accelerated__recentring_keeps_alpha_and_w_stays_in_the_box():
    problem = TINY["multiclass_cone"]()
    solver = accelerated_of(problem)

    def boundary(solver):
        assert (solver.it.state.w >= problem.lower).all()
        assert (solver.it.state.w <= problem.upper).all()

    solver.solve(Goal(1e-6), boundary)
    np.testing.assert_array_equal(solver.it.state.w, np.clip(solver.it.state.u, problem.lower, problem.upper))


@pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="takes minutes without the JIT")
@pytest.mark.parametrize("method", ["bcfw", "accelerated", "accelerated_at_mean"])
def test_accelerated__ends_a_path_on_data_far_from_their_mean(method):
    """Where one visit solves no proximal problem, D fell far below 0 and no certificate came; the time limit ends that."""
    rng = np.random.default_rng(1)
    x = np.c_[rng.normal(loc=100, size=(100, 2)), np.ones(100)]
    problem = build("multiclass", {"x": x, "labels": rng.integers(2, size=100)}, {"classes": 2})
    path = path_of(rule="two_sided", eps=0.02, kappa=0.7, lambda_min=0.0)
    engine = Engine.begin(Task(problem, options_of(method=method, max_passes=400.0, max_seconds=60.0), path, seed=0))
    with MemorySink() as sink:
        engine.run((), sink)
    assert engine.status is Status.LAMBDA_NEGLIGIBLE


@pytest.mark.parametrize("method", ["accelerated", "accelerated_at_mean"])
def test_accelerated__reaches_the_optimum_however_often_kappa_is_divided(method, monkeypatch):
    """Where exact passes at the mean stall, passes that move w go on between them."""
    monkeypatch.setattr(catalyst, "STALLED", 0.0)
    monkeypatch.setattr(catalyst, "SOFTER", 1.1)
    problem = TINY["chain"]()
    solver = accelerated_of(problem, method)
    moving = 0
    bcfw_pass = solver.bcfw_pass

    def noted():
        nonlocal moving
        moving += 1
        bcfw_pass()

    monkeypatch.setattr(solver, "bcfw_pass", noted)
    assert_solves(problem, solver)
    assert moving > 2


@pytest.mark.parametrize(("seed", "method"), list(enumerate(["accelerated", "accelerated_at_mean"] * 2)))
def test_accelerated__solves_random_boxes(seed, method):
    """Some weights free, some bounded on one side, some on both, some fixed, 0 not always inside; against a dense QP."""
    rng = np.random.default_rng(seed)
    low, high = np.sort(rng.normal(scale=0.4, size=(2, 12)), axis=0)
    kind = rng.integers(5, size=12)
    lower, upper = np.where(np.isin(kind, (0, 1)), -np.inf, low), np.where(np.isin(kind, (0, 2)), np.inf, high)
    upper = np.where(kind == 3, lower, upper)
    problem = multiclass(seed, lower=lower, upper=upper)
    solver = accelerated_of(problem, method)
    assert_solves(problem, solver)
    assert (solver.it.weights >= lower).all()
    assert (solver.it.weights <= upper).all()


# -- the mean of its points ------------------------------------------------------------------------------------------


def test_note__weighs_points_by_rising_powers():
    solver = accelerated_of(multiclass())
    points = np.random.default_rng(0).normal(size=(20, solver.problem.d))
    for point in points:
        solver.it.state.w[:] = point
        solver.note()
    weights = np.array([math.prod(k + j for j in range(int(MEAN_POWER))) for k in range(1, 21)], float)
    np.testing.assert_allclose(solver.mean, weights @ points / weights.sum(), rtol=1e-12)
    assert solver.own.points == 20


@pytest.mark.parametrize("name", by_all_methods())
def test_cached_gap__is_that_of_the_labellings_in_the_cache(name):
    """At most P(w) - D(alpha), and that itself once the labellings that w violates most are in the cache."""
    problem = TINY[name]()
    solver = accelerated_of(problem)
    seen = 0

    def boundary(solver):
        nonlocal seen
        if solver.own.points == 0:
            return
        w = solver.mean
        exact = primal_value(problem, w, LAM) - solver.it.dual_and_excess(w)[0]
        known = solver.it.cached_gap(w)
        assert -1e-9 <= known <= exact + 1e-9
        S = solver.it.state
        gaps = exact_gaps(problem, w, S.pool)
        assert gaps.gap.sum() + solver.it.dual_and_excess(w)[1] == pytest.approx(exact, abs=1e-9)
        if solver.counts.exact_due:
            seen += 1

    status, point = solver.solve(Goal(0.02), boundary)
    assert status is Status.CONVERGED
    assert seen > 0
    assert solver.it.cached_gap(solver.it.weights) == pytest.approx(point.gap, abs=1e-9)


def test_mean__is_what_is_certified_and_better_than_the_last_point(monkeypatch):
    problem = multiclass(n=20, width=9, classes=5)
    solver = accelerated_of(problem, lam=1e-2)
    tried = []

    def noted(it, w):
        assert w is solver.mean
        point, gaps = exact_pass(it, w)
        np.testing.assert_array_equal(solver.it.weights, w)
        assert point.primal == pytest.approx(primal_value(problem, w, 1e-2), abs=1e-9)
        assert point.primal - point.dual == pytest.approx(point.gap, abs=1e-9)
        tried.append((point.gap, primal_value(problem, solver.it.state.w, 1e-2) - point.dual))
        return point, gaps

    monkeypatch.setattr(accelerated, "exact_pass", noted)
    status, point = solver.solve(Goal(1e-4), never)
    assert status is Status.CONVERGED
    assert point.gap == tried[-1][0] <= 1e-4
    assert all(mean <= 1.1 * last for mean, last in tried)
    np.testing.assert_array_equal(solver.it.weights, solver.mean)


@pytest.mark.parametrize("seed", range(2))
def test_limits__certify_the_better_of_mean_and_last_point(seed):
    """Far from the tolerance, too, where the mean may lag behind."""
    problem = multiclass(seed, n=60, width=12, classes=6)
    solver = accelerated_of(problem, lam=1e-2)
    solver.options.max_passes = 28.0
    last = []

    def boundary(solver):
        if solver.counts.exact_due:
            last.append(primal_value(problem, solver.it.state.w, 1e-2) - solver.it.dual_and_excess()[0])

    status, point = solver.solve(Goal(1e-8), boundary)
    assert status is Status.PASS_LIMIT
    assert point.gap <= 1.02 * last[-1]


# -- the arithmetic of proximal problems -----------------------------------------------------------------------------

SIZES = [0, 1, CHUNK + 3]


def vectors(d: int, count: int) -> list[np.ndarray]:
    rng = np.random.default_rng(d)
    return [rng.normal(size=d) * 10.0 ** rng.integers(-8, 9, size=d) for _ in range(count)]


@pytest.mark.parametrize("d", SIZES)
def test_dual_norms__are_those_of_v(d: int) -> None:
    u, centre, w = vectors(d, 3)
    v = u + 7.0 * (u - centre)
    for other in (w, u):
        norm2, distance2 = dual_norms(u, centre, 7.0, other)
        assert norm2 == pytest.approx(math.fsum(v * v), rel=1e-13)
        assert distance2 == pytest.approx(math.fsum((other - v) ** 2), rel=1e-13)


@pytest.mark.parametrize("boxed", [False, True])
@pytest.mark.parametrize("d", SIZES)
def test_recentre__moves_the_centre_and_keeps_v(d: int, boxed: bool) -> None:
    rng = np.random.default_rng(d)
    u, before, centre = rng.normal(size=(3, d))
    w, kappa, lam = (np.clip(u, -0.5, 0.5) if boxed else u.copy()), 3.0, 0.5
    v = ((lam + kappa) * u - kappa * centre) / lam
    expected = w + 0.4 * (w - before)
    recentre(u, w if boxed else w[:0], before, centre, 0.4, kappa / (lam + kappa))
    np.testing.assert_allclose(centre, expected, rtol=1e-13, atol=1e-13)
    np.testing.assert_array_equal(before, w)
    np.testing.assert_allclose(((lam + kappa) * u - kappa * centre) / lam, v, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("name", ["chain", "multiclass_cone"])
def test_dual_and_excess__are_those_of_v_laid_out(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """At every rebase point, of w and of another primal point; with a box too."""
    solver, seen = accelerated_of(TINY[name]()), 0

    def boundary(solver):
        nonlocal seen
        seen += solver.counts.kappa > 0.0
        for w in (None, solver.it.state.w, solver.point, 2.0 * solver.it.state.w):
            values = solver.it.dual_and_excess(w)
            with monkeypatch.context() as patched:
                patched.setattr(dual_point, "own_metric", lambda problem: True)  # whose v is always laid out
                assert values == pytest.approx(solver.it.dual_and_excess(w), rel=1e-11, abs=1e-13)

    solver.solve(Goal(0.01), boundary)
    assert seen > 1


def test_weights__stay_when_the_mean_moves_on() -> None:
    """What has been certified is not moved by the points that come after it."""
    problem = multiclass(n=60, width=12, classes=6)
    solver = accelerated_of(problem, lam=1e-2)
    solver.solve(Goal(1e-3), never)
    certified = solver.it.weights.copy()
    solver.it.state.w[:] += 1.0
    assert solver.own.points > 1
    solver.note()
    np.testing.assert_array_equal(solver.it.weights, certified)
