"""What is fetched ahead changes no result: visits one by one, which know of no next one, against visits of a whole order."""

from __future__ import annotations

import numpy as np
import pytest
from single import solver_of
from tiny import instance

from gapwise.stages.solver.block.pairs import cached_steps_driver, with_room
from gapwise.stages.solver.codes import CACHE_ONLY, CALLS_REACHED, ORACLE_ALWAYS, PAIRWISE
from gapwise.stages.solver.visits import run_steps


def numbers(solver):
    S = solver.it.state
    return [S.u, S.ell, S.gap, S.tree, S.counters, S.pool.alpha, S.pool.labels, S.pool.used, S.pool.next, S.pool.head]


def after_visits(name, kind, together):
    """The state after passes over a problem, `together` visits at a time."""
    solver = solver_of(instance(name), 0.05, cache="gap", method="accelerated")
    solver.it.rebase()
    n = solver.problem.n
    for seed in range(3):
        order = np.random.default_rng(seed).permutation(n)
        solver.it.make_room(n)
        if kind == "steps":
            for start in range(0, n, together):
                run_steps(
                    solver.it,
                    solver.it.flags(vertex_from=ORACLE_ALWAYS),
                    order[start : start + together],
                    min(together, n - start),
                )
            continue
        solver.bcfw_pass()
        solver.it.state = solver.it.state._replace(distances=roomy(solver))
        for start in range(0, n, together):
            visit(solver, order[start : start + together])
    return numbers(solver)


def roomy(solver):
    return with_room(solver.it.state.distances, solver.it.state.pool.counts)


def visit(solver, order):
    flags = solver.it.flags(vertex_from=CACHE_ONLY, rounds=2, kinds=PAIRWISE)
    cached_steps_driver(solver.problem)(solver.problem, solver.it.state, flags, order)


@pytest.mark.parametrize(
    ("name", "kind"),
    [("chain", "steps"), ("multiclass", "cached")],
)
def test_visits__are_the_same_whether_the_next_ones_are_known_or_not(name, kind):
    for single, whole in zip(after_visits(name, kind, 1), after_visits(name, kind, 10**6), strict=True):
        np.testing.assert_array_equal(single, whole)


@pytest.mark.parametrize("calls", [7, 12])
def test_uniform_draws__made_beforehand_are_those_made_one_by_one(calls):
    """Also where steps end early: the generator goes on as if no more had been drawn."""
    solver = solver_of(instance("chain"), sampler="uniform")
    solver.it.rebase()
    n, rng = solver.problem.n, np.random.default_rng(0)
    expected = {int(rng.random() * n) for _ in range(calls)}
    assert run_steps(solver.it, solver.it.flags(stop_calls=calls), np.empty(0, np.int64), 50) == CALLS_REACHED
    assert solver.steps == calls
    assert set(np.flatnonzero(np.isfinite(solver.it.state.gap))) == expected
    assert solver.it.rng.bit_generator.state == rng.bit_generator.state
