"""Multi-plane BCFW: working sets, approximate steps, S15's slope rule, and the optimum with every combination."""

from __future__ import annotations

import numpy as np
import pytest
from dense import best, primal_value
from single import LAM, never, slots_of, solver_of, take_steps
from tiny import KINDS, instance, multiclass

from gapwise.stages.solver.codes import RETIRED
from gapwise.stages.solver.methods.mpbcfw import mean_working_set, retire, worth_another
from gapwise.stages.solver.objective import Goal
from gapwise.stages.solver.options import MultiplaneGroup, Status
from gapwise.stages.solver.supports import empty_pool, insert

pytestmark = pytest.mark.interpreted

MEMBERS = [
    ("chain", "permutation", "fw"), ("chain_costs", "gap", "pairwise"), ("matching", "permutation", "pairwise"),
    ("multiclass_cone", "max_gap", "best"), ("python_oracle_sparse", "permutation", "away"), ("segmentation", "gap", "fw"),
]  # fmt: skip


def multiplane_of(problem, lam=LAM, *, multiplane=None, **choices):
    group = MultiplaneGroup(**(multiplane or {}))
    return solver_of(problem, lam, method="mpbcfw", cache="gap", **{"capacity": 1000, **choices}, multiplane=group)


# -- the slope rule ---------------------------------------------------------------------------------------------------
def test_slope_rule__decides_as_the_formula_by_hand():
    # an exact pass of 10 s gains 2; approximate passes of 1 s gain 1, 0.5, 0.3, 0.1: slopes of all 3/11, 3.5/12, 3.8/13
    assert worth_another(1.0, 1.0, 3.0, 11.0)
    assert worth_another(0.5, 1.0, 3.5, 12.0)
    assert worth_another(0.3, 1.0, 3.8, 13.0)
    assert not worth_another(0.1, 1.0, 3.9, 14.0)
    assert not worth_another(0.0, 1.0, 0.0, 1.0), "nothing is gained by going on where nothing rises"
    assert not worth_another(1.0, 2.0, 5.0, 10.0), "as fast as the whole is not faster"


def test_slope_rule__ends_the_passes_of_a_recorded_sequence(monkeypatch):
    """Dual values 0 before and 2 after the exact pass of 20 calls, then as scripted; four passes cost two of the calls."""
    duals = [3.0, 3.5, 3.8, 4.08, 9.9]  # 0.28 is less than 4.08 / 14, the last pass included
    solver = multiplane_of(multiclass())
    solver.it.rebase()
    method, values = solver, iter(duals)
    monkeypatch.setattr(method, "approximate_pass", lambda: 2.0 * (1.0 + method.oracle_cost))
    monkeypatch.setattr(solver.it, "dual_value", lambda: next(values))
    assert method.approximate_passes(0.0, 2.0, 20) == (4, 4.08)
    assert next(values) == 9.9


# -- working sets -----------------------------------------------------------------------------------------------------
def names(pool, slots):
    """The first labels of atoms, by which the test tells them apart."""
    return set(pool.labels[slots, 0].tolist())


@pytest.mark.parametrize("seed", range(5))
def test_retire__leaves_the_last_active_ones_and_all_that_has_weight(seed):
    rng = np.random.default_rng(seed)
    pool = empty_pool(3, 60, 2, np.uint8)
    for name in range(40):
        s = insert(pool, int(rng.integers(3)), np.array([name, 0], np.uint8), 0.5, 10**9)
        pool.used[s], pool.alpha[s] = rng.integers(-1, 12), rng.integers(2) * 0.5
    before, most = int(rng.integers(6)), int(rng.integers(1, 8))
    expected = []
    for i in range(3):
        slots = slots_of(pool, i)
        recent = [s for s in slots if pool.used[s] >= before]
        order = sorted(recent, key=lambda s: (-pool.used[s], slots.index(s)))
        expected.append((names(pool, order[:most]), names(pool, [s for s in slots if pool.alpha[s] > 0.0])))
    retire(pool, before, most)
    for i, (recent_ones, weighted) in enumerate(expected):
        slots = slots_of(pool, i)
        assert names(pool, [s for s in slots if pool.used[s] != RETIRED]) == recent_ones
        assert names(pool, slots) == recent_ones | weighted
        assert pool.counts[i] == len(slots)
    assert mean_working_set(pool) == np.mean([len(recent_ones) for recent_ones, _ in expected])


@pytest.mark.parametrize(("step", "most", "unused"), [("fw", 2, 10), ("pairwise", 1000, 2), ("fw", 3, 3)])
def test_working_sets__obey_their_cap_and_forget_what_is_not_used(monkeypatch, step, most, unused):
    problem = instance("chain")
    solver = multiplane_of(problem, 0.02, step=step, capacity=most, multiplane={"unused_iterations": unused})
    method, starts, seen = solver, [], []
    approximate_pass, bcfw_pass = method.approximate_pass, method.bcfw_pass

    def noted_exact():
        starts.append(solver.steps)
        return bcfw_pass()

    def noted():
        pool = solver.it.state.pool
        oldest = starts[-unused] if len(starts) >= unused else -1
        chosen = pool.used != RETIRED
        slots = np.concatenate([slots_of(pool, i) for i in range(problem.n)])
        assert max(np.sum(chosen[slots_of(pool, i)]) for i in range(problem.n)) <= most
        assert (pool.used[slots][chosen[slots]] > oldest).all()
        outside = slots[~chosen[slots]]
        if len(starts) > len(seen):  # the first approximate pass; later ones may have taken the weight
            assert (pool.alpha[outside] > 0.0).all()
        work = approximate_pass()
        assert (pool.used[outside] == RETIRED).all(), "no approximate step chooses what has left the working set"
        if len(starts) > len(seen):
            seen.append(outside.size)
        return work

    monkeypatch.setattr(method, "bcfw_pass", noted_exact)
    monkeypatch.setattr(method, "approximate_pass", noted)
    solver.options.max_passes = 25.0
    solver.solve(Goal(1e-9), never)
    assert max(seen) > 0


# -- the method -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("name", "sampler", "step"), MEMBERS)
def test_multiplane__reaches_the_optimum_with_a_feasible_certificate(name, sampler, step):
    problem = instance(name)
    tolerance = 2e-3 if step == "fw" else 1e-6
    solver = multiplane_of(problem, sampler=sampler, step=step, max_passes=3000.0)
    solver.options.rebase_steps = 1
    duals = []
    status, point = solver.solve(Goal(tolerance), lambda solver: duals.append(solver.dual_value()))
    assert status is Status.CONVERGED
    assert -1e-12 <= point.gap <= tolerance
    assert min(np.diff(duals), default=0.0) >= -1e-12
    assert best(name, LAM) - tolerance <= point.dual <= best(name, LAM) + 1e-7
    assert point.primal == pytest.approx(primal_value(problem, solver.it.weights, LAM), abs=1e-9)
    assert point.primal - point.dual == pytest.approx(point.gap, abs=1e-10)
    columns = np.array(solver.iterations)
    assert (np.diff(columns[:, 1]) > 0).all()
    assert (np.diff(columns[:, 3]) >= -1e-12).all()
    assert 1.0 <= columns[0, 4] <= 2.0, "the truth and the oracle's first answer"


@pytest.mark.parametrize("name", KINDS)
def test_multiplane__without_approximate_passes_is_bcfw(name):
    """In permuted order, with the seeds of `bcfw`."""
    problem = instance(name)
    bcfw = solver_of(problem, sampler="permutation", step="fw", refresh_every=0)
    multiplane = multiplane_of(problem, multiplane={"approximate_passes": 0})
    for solver in (bcfw, multiplane):
        solver.it.rebase()
    for _ in range(4):
        take_steps(bcfw)
        multiplane.bcfw_pass()
        np.testing.assert_allclose(bcfw.it.state.u, multiplane.it.state.u, rtol=1e-9, atol=1e-12)
    assert bcfw.dual_value() == pytest.approx(multiplane.dual_value(), abs=1e-12)


def test_multiplane__needs_fewer_oracle_calls_than_bcfw():
    problem = multiclass(n=30, width=9, classes=5)
    passes = []
    for most in (0, 1000):
        group = {"approximate_passes": most}
        solver = multiplane_of(problem, 1e-2, multiplane=group, max_passes=3000.0)
        assert solver.solve(Goal(1e-2), never)[0] is Status.CONVERGED
        passes.append(solver.ledger.passes_here)
    assert passes[1] < 0.5 * passes[0], passes
