"""Members of the family on every tiny instance: optimal, feasible, certified, and agreeing with a dense QP."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from dense import best, primal_value
from single import LAM, dual_of, never, slots_of, solver_of, take_steps
from solved import options_of
from tiny import COMPILED, KINDS, TINY, by_all_methods, instance

from gapwise.stages.solver.block.step import Seen, choose
from gapwise.stages.solver.codes import AWAY, STEP_RULES
from gapwise.stages.solver.counts import TRACE
from gapwise.stages.solver.engine import solve
from gapwise.stages.solver.methods import methods
from gapwise.stages.solver.objective import Goal
from gapwise.stages.solver.options import SAMPLERS, Status
from gapwise.stages.solver.state import derive

COLUMN = TRACE.index("oracle_calls")
SOLVED = [
    (name, step)
    for k, name in enumerate(sorted(TINY))
    for step in STEP_RULES
    if name in {*KINDS, *COMPILED} or step in ("pairwise", ("away", "best")[k % 2])
]
MEMBERS = [
    (name, SAMPLERS[k % len(SAMPLERS)], step, ("none", "gap")[k // 3 % 2]) for k, (name, step) in enumerate(SOLVED)
]
"""Every step of an instance of each kind, and two of all others; each pair of step, sampler and cache occurs."""


@pytest.mark.parametrize(
    ("name", "sampler", "step", "cache"),
    [pytest.param(*member, marks=[] if member[0] in COMPILED else pytest.mark.interpreted) for member in MEMBERS],
)
def test_family__reaches_the_optimum_with_a_feasible_certificate(name, sampler, step, cache):
    problem = instance(name)
    # plain Frank-Wolfe is sublinear: it gets a tolerance that it can reach
    tolerance = 2e-3 if step == "fw" else 1e-6
    solver = solver_of(problem, sampler=sampler, step=step, cache=cache, max_passes=20000.0, refresh_every=2)
    status, point = solver.solve(Goal(tolerance), never)
    assert status is Status.CONVERGED
    S = solver.it.state
    assert -1e-12 <= point.gap <= tolerance
    assert point.primal - point.dual == pytest.approx(point.gap, abs=1e-10)
    assert point.dual <= best(name, LAM) + 1e-7
    assert point.primal >= best(name, LAM) - 1e-7
    assert point.primal == pytest.approx(primal_value(problem, S.w, LAM), abs=1e-9)
    pool = S.pool
    for i in range(problem.n):
        alpha = pool.alpha[slots_of(pool, i)]
        assert alpha.sum() == pytest.approx(1.0, abs=1e-12)
        assert alpha.min() >= 0.0


@pytest.mark.parametrize("name", by_all_methods())
@pytest.mark.parametrize(("step", "cache"), [("fw", "none"), ("pairwise", "gap"), ("away", "gap"), ("best", "none")])
def test_family__dual_never_falls_and_running_state_is_the_derived_one(name, step, cache):
    problem = instance(name)
    solver = solver_of(problem, sampler="uniform", step=step, cache=cache, rebase_steps=1, refresh_every=0)
    last, seen = -np.inf, []

    def boundary(solver):
        S = solver.it.state
        seen.append((S.ell.copy(), S.u.copy()))
        return Status.INTERRUPTED

    for _ in range(60):
        solver.solve(Goal(1e-9), boundary)
        dual = dual_of(solver)
        assert dual >= last - 1e-12
        last = dual
        take_steps(solver)
        S = solver.it.state
        running = S.ell.copy(), S.u.copy()
        derive(problem, S, solver.it.scale)
        for a, b in zip(running, (S.ell, S.u), strict=True):
            np.testing.assert_allclose(a, b, atol=1e-12)
        solver.it.fresh = False


@pytest.mark.parametrize(
    ("limit", "status"), [({"max_passes": 3.0}, Status.PASS_LIMIT), ({"max_oracle_calls": 20.0}, Status.ORACLE_LIMIT)]
)
def test_limits__leave_their_status_and_a_certificate(limit, status):
    problem = instance("multiclass")
    solver = solver_of(problem, sampler="gap", step="fw", **limit)
    got, point = solver.solve(Goal(1e-12), never)
    assert got is status
    assert point.primal - point.dual == pytest.approx(point.gap, abs=1e-12)


@pytest.mark.interpreted
@pytest.mark.parametrize("method", methods())
def test_max_passes__leaves_the_certifying_pass_to_come_on_top(method):
    """Steps of whole passes begin below the limit, and a visit of eg may take several computations of marginals."""
    problem, passes = instance("chain"), 3.0
    options = options_of(method=method, max_passes=passes)
    found = solve(problem, 0.05, options, tolerance=1e-13)
    spent = found.trace[-1][COLUMN] / problem.n
    if found.status is Status.PASS_LIMIT:
        assert passes <= spent <= passes + (3.0 if method == "eg" else 2.0)


def test_max_passes__ends_steps_that_no_refresh_ends():
    problem = instance("chain")
    options = options_of(max_passes=3.0, refresh_every=0, rebase_steps=20 * problem.n)
    found = solve(problem, 0.05, options, tolerance=1e-13)
    assert found.status is Status.PASS_LIMIT
    assert found.trace[-1][COLUMN] == 4 * problem.n


def test_cache__saves_oracle_calls_and_keeps_its_capacity():
    problem = instance("multiclass")
    calls = {}
    for cache in ("none", "gap"):
        solver = solver_of(problem, lam=0.001, sampler="gap", step="pairwise", cache=cache, capacity=4)
        solver.solve(Goal(1e-6), never)
        calls[cache] = solver.oracle_calls
        active = solver.it.state.pool.alpha > 0
        assert solver.it.state.pool.counts.max() <= max(4, active.sum())
    assert calls["gap"] < calls["none"]


@pytest.mark.interpreted
@pytest.mark.parametrize("name", ["away", "best"])
def test_away__is_made_although_the_oracle_has_nothing_better_than_the_mean(name: str) -> None:
    """The answer of an approximate oracle may be worth less than the mean of the labellings at hand: it is no vertex."""
    rule = STEP_RULES[name]
    view = SimpleNamespace(allowed_moves=lambda flags: rule.kinds, measure_move=lambda *arguments: 2.0)
    flags, state = (
        SimpleNamespace(kinds=rule.kinds, by_slope=rule.by_slope, line_search=True, scale=1.0),
        SimpleNamespace(pool=SimpleNamespace(alpha=[0.5, 0.5])),
    )
    seen = Seen(base=1.0, best=0, h_best=1.5, away=1, h_away=0.5, active=2)
    assert choose(None, state, view, flags, 0, seen, -1, 0.2) == (AWAY, 0.25, 0.5, 2.0)
    assert choose(None, state, view, flags, 0, seen._replace(active=1), -1, 0.2).gamma == 0.0
