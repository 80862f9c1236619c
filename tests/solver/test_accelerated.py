"""The accelerated method: the same optimum, exact certificates, one scale-free constant."""

from __future__ import annotations

import numba
import numpy as np
import pytest
from dense import optimum, primal_value
from parts_of import proximal_of
from single import ACCELERATED_LAM as LAM
from single import accelerated_of, never
from solved import options_of, path_of
from tiny import TINY, by_all_methods, multiclass

from gapwise.stages.problems import build
from gapwise.stages.problems.protocol import frozen
from gapwise.stages.solver import catalyst
from gapwise.stages.solver.box import clip_into
from gapwise.stages.solver.engine import Engine, Task
from gapwise.stages.solver.options import Status
from gapwise.storage.sink import MemorySink

pytestmark = pytest.mark.slow


@pytest.mark.share(0.6)
@pytest.mark.parametrize("name", by_all_methods())
@pytest.mark.parametrize("own_primal", [True, False])
def test_accelerated__reaches_the_optimum(name, own_primal):
    problem = TINY[name]()
    solver = accelerated_of(problem, own_primal=own_primal)
    status, point = solver.solve(1e-6, never)
    assert status is Status.CONVERGED
    best = optimum(problem, LAM)
    assert best - 1e-6 <= point.dual <= best + 1e-7
    assert solver.counts.kappa == 0.0
    assert point.primal == pytest.approx(primal_value(problem, solver.iterate.weights, LAM), abs=1e-9)
    assert point.primal - point.dual == pytest.approx(point.gap, abs=1e-9)
    if not own_primal:
        np.testing.assert_array_equal(solver.iterate.weights, solver.iterate.state.w)  # what the supports give


@pytest.mark.parametrize("name", by_all_methods())
def test_accelerated__certificate_of_any_pair_is_exact(name):
    """P(w) - D(alpha) = sum of the exact block gaps at w + the excess, in the middle of a proximal problem."""
    problem = TINY[name]()
    solver = accelerated_of(problem)
    seen = 0

    def boundary(solver):
        nonlocal seen
        if solver.counts.kappa > 0.0:
            dual, excess = solver.iterate.dual_and_excess()
            from gapwise.stages.solver.gaps import exact_gaps

            S = solver.iterate.state
            gaps = exact_gaps(problem, S.w, S.mu, S.ell, pool=S.pool).gap
            assert primal_value(problem, S.w, LAM) - dual == pytest.approx(gaps.sum() + excess, abs=1e-9)
            assert excess >= -1e-12
            seen += 1

    solver.solve(1e-6, boundary)
    assert seen > 0


def test_accelerated__does_not_change_with_the_scale_of_features():
    """Features times s and lambda times s^2 is the same problem: the same number of oracle calls."""
    calls = []
    for s in (1.0, 64.0):
        problem = multiclass()
        scaled = problem._replace(x=frozen(problem.x * s), norms2=frozen(problem.norms2 * s * s))
        solver = accelerated_of(scaled, lam=LAM * s * s)
        solver.solve(1e-5, never)
        calls.append(solver.oracle_calls)
    assert calls[0] == calls[1]


def test_accelerated__needs_fewer_exact_passes_than_plain_steps():
    problem = multiclass(n=60, width=12, classes=6)
    passes = {}
    for method in ("bcfw", "accelerated"):
        solver = accelerated_of(problem, method, lam=1e-2)
        status, _ = solver.solve(1e-4, never)
        assert status is Status.CONVERGED
        passes[method] = solver.oracle_calls / problem.n
    assert passes["accelerated"] < 0.7 * passes["bcfw"], passes


@pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing is compiled")
@pytest.mark.parametrize("method", ["bcfw", "accelerated"])
def test_solve__compiles_nothing_that_no_cache_keeps(monkeypatch, method):
    monkeypatch.setattr(type(clip_into), "__call__", lambda *_: pytest.fail("an inner function was called from Python"))
    accelerated_of(TINY["multiclass_cone"](), method).solve(1e-3, never)


def test_accelerated__recentring_keeps_alpha_and_w_stays_in_the_box():
    problem = TINY["multiclass_cone"]()
    solver = accelerated_of(problem)

    def boundary(solver):
        assert (solver.iterate.state.w >= problem.lower).all()
        assert (solver.iterate.state.w <= problem.upper).all()

    solver.solve(1e-6, boundary)
    np.testing.assert_array_equal(solver.iterate.state.w, np.clip(solver.iterate.state.u, problem.lower, problem.upper))


@pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="takes minutes without the JIT")
@pytest.mark.parametrize("method", ["bcfw", "accelerated", "accelerated_at_mean"])
@pytest.mark.parametrize("seed", [1, 3])
def test_accelerated__ends_a_path_on_data_far_from_their_mean(method, seed):
    """Where one visit solves no proximal problem, D fell far below 0 and no certificate came; the time limit ends that."""
    rng = np.random.default_rng(seed)
    x = np.c_[rng.normal(loc=100, size=(100, 2)), np.ones(100)]
    problem = build("multiclass", {"x": x, "labels": rng.integers(2, size=100)}, {"classes": 2})
    path = path_of(rule="two_sided", eps=0.02, kappa=0.7, lambda_min=0.0)
    engine = Engine.begin(Task(problem, options_of(method=method, max_passes=400.0, max_seconds=60.0), path, seed=0))
    with MemorySink() as sink:
        engine.run((), sink)
    assert engine.status is Status.LAMBDA_NEGLIGIBLE


def test_accelerated__gives_proximal_problems_more_visits_where_the_dual_value_falls(monkeypatch):
    """Twice as many whenever an outer iteration reaches the bound and D has fallen by more than the estimate of the gap."""
    monkeypatch.setattr(catalyst, "MOST_VISITS", 4)
    solver = accelerated_of(TINY["multiclass"]())
    solver.solve(1e-2, never)
    proximal, duals, made = proximal_of(solver), [], []
    proximal.begin()
    monkeypatch.setattr(
        solver.iterate, "dual_and_excess", lambda: (duals.pop(0), 1.0)
    )  # never solved: the excess is large
    monkeypatch.setattr(proximal.visits, "visit", lambda *_, **__: made.append(proximal.counts.visits))

    def passes(*values):
        duals[:], made[:] = values, []
        proximal.cached_passes(1.0)
        assert not duals
        return len(made), proximal.counts.visits

    assert passes(0.1, 0.5, 0.6, 0.7, -0.8) == (4, 1)
    assert passes(0.1, 0.5, 0.6, 0.7, -1.0) == (4, 2)
    assert passes(0.1, 0.5, -1.0) == (4, 4)
    assert passes(0.1, -1.0) == (4, 4)
    solver.start_lambda(1.0, 1)
    assert proximal.counts.visits == 1


def v_of(solver):
    """v = ((lambda + kappa) u - kappa y) / lambda, (d,)."""
    counts, u = solver.counts, solver.iterate.state.u
    return u + counts.kappa / counts.lam * (u - solver.iterate.centre)


def test_accelerated__divides_kappa_where_the_gap_does_not_fall(monkeypatch):
    """After `STALLED` passes without a smaller estimate, while it is strong; alpha, hence v, stays; w becomes the centre."""
    solver = accelerated_of(TINY["multiclass_cone"]())
    solver.solve(1e-2, never)
    proximal, S = proximal_of(solver), solver.iterate.state
    passes = 0.0
    monkeypatch.setattr(type(solver.ledger), "passes_here", property(lambda _: passes))
    proximal.start()
    proximal.visits.visit(2)
    kappa, v = solver.counts.kappa, v_of(solver)
    monkeypatch.setattr(catalyst, "STRONG", kappa / solver.counts.lam / 5.0)
    for at, estimate, divided in (
        (1.0, 3.0, 1),
        (10.0, 3.5, 1),
        (10.5, 2.0, 1),
        (20.0, 2.0, 1),
        (20.5, 2.5, 4),
        (30.4, 2.6, 4),
        (30.5, 2.5, 16),
        (40.5, 2.5, 16),
    ):
        passes, w = at, S.w.copy()
        before = solver.counts.kappa
        assert proximal.watch(estimate) == (at in (20.5, 30.5, 40.5))
        if solver.counts.kappa < before:
            np.testing.assert_array_equal(solver.iterate.centre, w)
        else:
            np.testing.assert_array_equal(S.w, w)
        assert solver.counts.kappa == pytest.approx(kappa / divided)
        np.testing.assert_allclose(v_of(solver), v, rtol=1e-9)
        np.testing.assert_array_equal(S.w, np.clip(S.u, solver.problem.lower, solver.problem.upper))


@pytest.mark.parametrize("method", ["accelerated", "accelerated_at_mean"])
@pytest.mark.parametrize("name", ["chain"])
def test_accelerated__reaches_the_optimum_however_often_kappa_is_divided(name, method, monkeypatch):
    """Where exact passes at the mean stall, passes that move w go on between them."""
    monkeypatch.setattr(catalyst, "STALLED", 0.0)
    monkeypatch.setattr(catalyst, "STRONG", 0.0)
    problem = TINY[name]()
    solver = accelerated_of(problem, method)
    proximal, moving = proximal_of(solver), 0
    bcfw_pass = proximal.bcfw_pass

    def noted():
        nonlocal moving
        moving += 1
        bcfw_pass()

    monkeypatch.setattr(proximal, "bcfw_pass", noted)
    status, point = solver.solve(1e-6, never)
    assert status is Status.CONVERGED
    best = optimum(problem, LAM)
    assert best - 1e-6 <= point.dual <= best + 1e-7
    assert point.primal == pytest.approx(primal_value(problem, solver.iterate.weights, LAM), abs=1e-9)
    assert moving > 2


def test_accelerated__solves_tighter_where_the_proximal_term_is_strong(monkeypatch):
    """Cached passes end as soon as their gap is below the share that `inner_target` and kappa allow."""
    solver = accelerated_of(multiclass(n=60), lam=0.005)
    proximal = proximal_of(solver)
    assert proximal.inner_share() == solver.options.acceleration.inner_target
    solver.options.acceleration.c = 3.0
    visit, cached_passes, left, seen = proximal.visits.visit, proximal.cached_passes, [], []

    def noted_visit(*args, **more):
        visit(*args, **more)
        left.append(solver.iterate.state.gap.sum() + solver.iterate.dual_and_excess()[1])

    def noted_passes(estimate):
        left.clear()
        cached_passes(estimate)
        seen.append(solver.counts.kappa)
        least = min(0.55, 4.0 / np.sqrt(1.0 + solver.counts.kappa / solver.counts.lam)) * estimate
        assert left[-1] < least <= min(left[:-1], default=np.inf)

    monkeypatch.setattr(proximal.visits, "visit", noted_visit)
    monkeypatch.setattr(proximal, "cached_passes", noted_passes)
    status, _ = solver.solve(1e-5, never)
    assert status is Status.CONVERGED
    assert len(seen) > 5
    assert min(seen) > 60.0 * solver.counts.lam


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("method", ["accelerated", "accelerated_at_mean"])
def test_accelerated__solves_random_boxes(seed, method):
    """Some weights free, some bounded on one side, some on both, some fixed, 0 not always inside; against a dense QP."""
    rng = np.random.default_rng(seed)
    low, high = np.sort(rng.normal(scale=0.4, size=(2, 12)), axis=0)
    kind = rng.integers(5, size=12)
    lower, upper = np.where(np.isin(kind, (0, 1)), -np.inf, low), np.where(np.isin(kind, (0, 2)), np.inf, high)
    upper = np.where(kind == 3, lower, upper)
    problem = multiclass(seed, lower=lower, upper=upper)
    solver = accelerated_of(problem, method)
    status, point = solver.solve(1e-6, never)
    assert status is Status.CONVERGED
    best = optimum(problem, LAM)
    assert best - 1e-6 <= point.dual <= best + 1e-7
    assert (solver.iterate.weights >= lower).all()
    assert (solver.iterate.weights <= upper).all()
    assert point.primal == pytest.approx(primal_value(problem, solver.iterate.weights, LAM), abs=1e-9)
    assert point.primal - point.dual == pytest.approx(point.gap, abs=1e-9)
    assert best - 1e-7 <= point.primal <= best + 1e-6
