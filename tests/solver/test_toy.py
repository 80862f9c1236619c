"""O16's toy example (App. C): one hard object among easy ones, and what gap sampling saves, as a count.

With orthogonal features the blocks do not touch each other. The truth of the hard object costs 1 against each of the K - 1
other classes, that of an easy one against a single class. With ||x||^2 / (lambda n) <= 1/2 the hard block's Frank-Wolfe
steps, of length 1/t, form an average over the wrong classes: it is optimal after exactly K - 1 steps, an easy one after 1.
Uniform sampling draws the hard block once in n steps, so it needs about n (K - 1) of them; gap sampling n + K - 2.
"""

from __future__ import annotations

import numba
import numpy as np
import pytest

from gapwise.stages.problems import build
from gapwise.stages.solver.codes import ORACLE_CALLS
from gapwise.stages.solver.exact import exact_gaps
from gapwise.stages.solver.method import AnyMethod
from gapwise.stages.solver.methods import method_options
from gapwise.stages.solver.objective import Goal
from gapwise.stages.solver.options import PathOptions, Status
from gapwise.stages.solver.path.walk import begin

LAM = 0.01
HARD, EASY = 0, 1
OPTIMAL = 1e-9
compiled = pytest.mark.skipif(
    bool(numba.config.DISABLE_JIT), reason="an exact pass a step: minutes without the compiler"
)


def toy(n: int, K: int):
    cost = np.zeros((K, K))
    cost[HARD] = 1.0
    cost[HARD, HARD] = 0.0
    cost[EASY, HARD] = 1.0
    labels = np.full(n, EASY)
    labels[n // 2] = HARD
    return build(
        "multiclass", {"x": np.sqrt(0.4 * LAM * n) * np.eye(n), "labels": labels}, {"classes": K, "cost": cost}
    )


def true_gap(solver: AnyMethod) -> float:
    S = solver.it.state
    return float(np.sum(exact_gaps(solver.problem, S.w, S.pool).gap))


def calls_needed(n: int, K: int, sampler: str, seed: int, refresh_every: int = 1) -> tuple[int, int]:
    """Oracle calls of steps until the point is optimal, and of refreshes up to there."""
    options = method_options(sampler=sampler, step="fw", refresh_every=refresh_every, rebase_steps=1)
    solver = begin(toy(n, K), options, PathOptions(rule="single", lam=LAM), None, seed)
    status, _ = solver.solve(Goal(0.0), lambda present: Status.INTERRUPTED if true_gap(present) < OPTIMAL else None)
    assert status is Status.INTERRUPTED
    return int(solver.it.state.counters[ORACLE_CALLS]), solver.counts.gap_passes * n


@pytest.mark.parametrize(("n", "K"), [(12, 12), pytest.param(20, 60, marks=compiled)])
def test_toy__gap_sampling_saves_about_the_smaller_of_blocks_and_classes(n: int, K: int) -> None:
    uniform = [calls_needed(n, K, "uniform", seed)[0] for seed in range(4)]
    gap = [calls_needed(n, K, "gap", seed)[0] for seed in range(4)]
    assert gap == [n + K - 2] * 4
    # n (K - 1) visits on average, give or take n sqrt(K)
    assert np.mean(uniform) == pytest.approx(n * (K - 1), rel=0.35)
    ratio = np.mean(uniform) / np.mean(gap)
    assert min(n, K) / 2.5 <= ratio <= 1.35 * min(n, K)


def test_toy__gap_sampling_wins_with_its_refreshes_counted_and_without_any() -> None:
    n, K = 12, 12
    uniform = np.mean([sum(calls_needed(n, K, "uniform", seed, refresh_every=0)) for seed in range(4)])
    for refresh_every in (1, 0):
        counts = [sum(calls_needed(n, K, "gap", seed, refresh_every)) for seed in range(4)]
        # stale gaps send it to every easy block a second time; refreshes cost n calls after every n steps
        assert max(counts) <= (2 * (n + K) if refresh_every else 2 * n + K)
        assert uniform / np.mean(counts) >= min(n, K) / 5.0
