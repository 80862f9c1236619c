"""FASOLE: the optimum of the dense QP, pairs that raise the dual most, and blocks that are left out for a while."""

from __future__ import annotations

import numba
import numpy as np
import pytest
from configs import composed
from dense import best, primal_value
from parts_of import method_of
from pools import slots_of
from single import LAM, never, solver_of
from tiny import TINY, instance, multiclass

from gapwise.pipeline.config.settings import read
from gapwise.stages.problems import build
from gapwise.stages.solver.block.views.distances import ByDistances, best_partner
from gapwise.stages.solver.directions import line_search
from gapwise.stages.solver.methods import method_options
from gapwise.stages.solver.options import CacheOptions, Status
from gapwise.stages.solver.schedule import Goal
from gapwise.stages.solver.solver import Solver
from gapwise.stages.solver.supports import pack

pytestmark = pytest.mark.slow

SOLVED = sorted(TINY) if numba.config.DISABLE_JIT else ["multiclass_cone"]
"""Where code is compiled, one with a box: a structure takes a quarter of a minute."""


def fasole_of(name: str, **choices) -> Solver:
    return solver_of(instance(name), method="fasole", cache="gap", **{"max_passes": 3000.0, **choices})


@pytest.mark.parametrize("name", SOLVED)
def test_fasole__reaches_the_optimum_and_its_dual_never_falls(name: str) -> None:
    problem, solver, duals = instance(name), fasole_of(name), []
    status, point = solver.solve(1e-8, lambda method: duals.append(method.dual_value()))
    assert status is Status.CONVERGED
    assert min(np.diff(duals)) >= -1e-12
    assert -1e-12 <= point.gap <= 1e-8
    assert best(name, LAM) - 1e-8 <= point.dual <= best(name, LAM) + 1e-7
    assert point.primal == pytest.approx(primal_value(problem, solver.primal(), LAM), abs=1e-9)
    supports = pack(solver.iterate.state.pool, problem.label_ptr)
    assert (supports.alpha >= 0.0).all()
    np.testing.assert_allclose(np.add.reduceat(supports.alpha, supports.offset[:-1]), 1.0, atol=1e-12)


@pytest.mark.parametrize("seed", range(20))
def test_pair__is_the_one_that_raises_the_dual_most(seed: int) -> None:
    """Of all labellings with weight and every step in a fine grid, none raises it more."""
    rng = np.random.default_rng(seed)
    count, scale = 6, 0.7
    points, values = rng.normal(size=(count, 3)), rng.normal(size=count)
    alpha = rng.random(count) * (rng.random(count) < 0.7)
    squared = ((points[:, None] - points[None]) ** 2).sum(axis=2)
    u = int(np.argmax(values))
    rows = np.arange(count)
    v = best_partner(values, alpha, squared.ravel(), u * count, rows, values[u], scale)
    gamma = line_search(values[u] - values[v], squared[u, v], scale, alpha[v]) if v >= 0 else 0.0

    def rise(k: int, step: np.ndarray) -> np.ndarray:
        return step * (values[u] - values[k]) - 0.5 * scale * step**2 * squared[u, k]

    most = max(rise(k, np.linspace(0.0, alpha[k], 2001)).max() for k in rows)
    if gamma == 0.0:
        assert most == 0.0
        return
    assert 0.0 < gamma <= alpha[v]
    assert rise(v, np.array([gamma]))[0] >= most - 1e-12


@pytest.mark.parametrize("name", SOLVED)
def test_visit__never_loses_dual_value_and_ends_as_it_is_told(name: str) -> None:
    """At the given precision, or after the given number of pairs; the running state stays that of the weights."""
    solver = fasole_of(name, precision=0.0, rounds=3, rebase_steps=1)
    problem = solver.problem
    solver.rebase()
    last = solver.dual_value()
    for k in range(4 * problem.n):
        pairs = int(solver.iterate.state.counters[2])
        method_of(solver).visit(np.array([k % problem.n]))
        assert solver.iterate.state.counters[2] - pairs <= 2
        dual = solver.dual_value()
        assert dual >= last - 1e-12
        last = dual
    running = solver.iterate.state.ell.copy(), solver.iterate.state.u.copy()
    solver.iterate.derive()
    np.testing.assert_allclose(running[0], solver.iterate.state.ell, atol=1e-11)
    np.testing.assert_allclose(running[1], solver.iterate.state.u, atol=1e-11)


@pytest.mark.interpreted
def test_visit__scores_the_labelling_in_an_evicted_one_s_slot(monkeypatch) -> None:
    """At capacity the new labelling takes the slot of the evicted one: its score and its distances are its own."""
    rng, replaced = np.random.default_rng(0), []
    problem = build("multiclass", {"x": rng.normal(size=(30, 5)), "labels": rng.integers(12, size=30)}, {"classes": 12})
    ask_oracle = ByDistances.ask_oracle

    def checked(self, P, S, flags, i, base):
        before = slots_of(S.pool, i)
        labels = S.pool.labels[before].tolist()
        answer = ask_oracle(self, P, S, flags, i, base)
        replaced.append(S.pool.labels[before].tolist() != labels)
        slots, theta = self.slots[: self.counts[0]], np.empty(int(np.diff(P.local_ptr)[i]))
        assert sorted(slots.tolist()) == sorted(slots_of(S.pool, i))
        P.scores(i, S.w, theta)
        values = [S.pool.losses[s] + P.value(i, theta, S.pool.labels[s]) for s in slots]
        np.testing.assert_allclose(self.values[: slots.size], values, atol=1e-12)
        return answer

    monkeypatch.setattr(ByDistances, "ask_oracle", checked)
    solver_of(problem, 0.1, method="fasole", cache="gap", capacity=3, max_passes=20.0).solve(1e-6, never)
    assert sum(replaced) > 5


def test_outer__leaves_out_blocks_of_small_gap_and_takes_them_back(monkeypatch) -> None:
    solver, seen = fasole_of("multiclass_cone"), []
    method, n = method_of(solver), solver.problem.n
    visit, outer = method.visit, method.outer

    def noted(blocks):
        visit(blocks)
        seen[-1].append((blocks, solver.iterate.state.gap.copy()))

    def noted_outer(*arguments):
        seen.append([])
        outer(*arguments)

    monkeypatch.setattr(method, "visit", noted)
    monkeypatch.setattr(method, "outer", noted_outer)
    solver.solve(1e-6, never)
    options, left_out = solver.options, 0
    for (every, gap), *rest in seen:
        total = gap.sum()
        assert every.size == n
        assert len(rest) <= options.active_passes
        for blocks, after in rest:
            np.testing.assert_array_equal(blocks, np.flatnonzero(gap >= options.shrink_share * total / n))
            assert gap[blocks].sum() > options.active_share * total, "there would be no reason for another pass"
            left_out, gap = left_out + n - blocks.size, after
    assert left_out > 0
    visited = sum(blocks.size for passes in seen for blocks, _ in passes)
    assert solver.oracle_calls == visited + solver.counts.gap_passes * n


def test_fasole__without_shrinking_visits_every_block() -> None:
    solver = fasole_of("multiclass", active_passes=0)
    method_of(solver).outer(Goal(1e-9))
    assert solver.steps == solver.problem.n


def test_fasole__needs_fewer_oracle_calls_than_one_pair_a_call() -> None:
    problem = multiclass(n=40, width=8, classes=5)
    passes = {}
    for method, choices in (("fasole", {"cache": "gap"}), ("bcfw", {"sampler": "permutation", "refresh_every": 0})):
        solver = solver_of(problem, 1e-2, method=method, **choices)
        assert solver.solve(3e-3, never)[0] is Status.CONVERGED
        passes[method] = solver.ledger.passes_here
    assert passes["fasole"] < passes["bcfw"], passes


def test_fasole__has_a_preset_and_checks_it() -> None:
    options = read(composed("solver=fasole", "path=single", "path.lambda=0.1", "solver.rounds=7")).solver
    assert (options.method, options.rounds, options.active_passes, options.cache.capacity) == ("fasole", 7, 5, 50)
    for key, value in (
        ("rounds", 0), ("precision", 1.0), ("shrink_share", -0.1), ("active_passes", -1), ("unused_iterations", 0),
        ("step", "fw"), ("cache", CacheOptions()),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=rf"solver\.{key}.*: expected"):
            method_options("fasole", **{key: value}).check()
