"""Multi-plane BCFW: working sets, approximate steps, S15's slope rule, and the optimum with every combination."""

from __future__ import annotations

import itertools
import weakref

import numpy as np
import pytest
from configs import composed
from dense import best, primal_value
from parts_of import method_of, visits_of
from pools import slots_of
from single import LAM, never, solver_of
from tiny import by_all_methods, instance, multiclass

from gapwise.stages.problems.operations import operations_of
from gapwise.stages.solver.block.views.distances import FIRST_ORDER
from gapwise.stages.solver.codes import CACHE_ONLY, DONE, ORACLE_ALWAYS
from gapwise.stages.solver.distances import with_room
from gapwise.stages.solver.loop import distance_steps_driver
from gapwise.stages.solver.methods import method_options, mpbcfw
from gapwise.stages.solver.methods.mpbcfw import ORDERS, by_distances
from gapwise.stages.solver.options import CacheOptions, MultiplaneGroup, Status
from gapwise.stages.solver.sampling import PERMUTATION
from gapwise.stages.solver.state import derive
from gapwise.stages.solver.steps import steps
from gapwise.stages.solver.supports import empty_pool, grown, insert, remove, repack
from gapwise.stages.solver.unit_costs import (
    LABELLING,
    MEASURED,
    STEP,
    UNSETTLED,
    VISIT,
    MultiplaneCounts,
    Passed,
    UnitCosts,
    worth_another,
)
from gapwise.stages.solver.working_sets import RETIRED, retire, working_set_sizes

COSTS = {"oracle_seconds": 1e-4, "plane_seconds": 1e-6}
UNGIVEN = {"oracle_seconds": 0.0, "plane_seconds": 0.0}
MEMBERS = [*itertools.product(["permutation"], steps()), ("gap", "fw"), ("gap", "pairwise"), ("max_gap", "best")]


def multiplane_of(problem, lam=LAM, *, multiplane=None, **choices):
    group = MultiplaneGroup(**{**COSTS, **(multiplane or {})})
    return solver_of(problem, lam, method="mpbcfw", cache="gap", **{"capacity": 1000, **choices}, multiplane=group)


def after_exact_passes(problem, passes=3, **choices):
    """A solver after some exact passes without approximate ones, ready for steps by distances."""
    solver = multiplane_of(problem, multiplane={"approximate_passes": 0}, **choices)
    solver.rebase()
    for _ in range(passes):
        method_of(solver).bcfw_pass()
    solver.rebase()
    state = solver.iterate.state
    solver.iterate.state = state._replace(distances=with_room(state.distances, state.pool.counts))
    return solver


def steps_by_distances(solver, order, rounds=1):
    """The steps of an approximate pass; returns how many labellings they scored, and how often they read features."""
    flags = visits_of(solver).flags(rounds=rounds, vertex_from=CACHE_ONLY)
    return distance_steps_driver(solver.problem)(solver.problem, solver.iterate.state, flags, FIRST_ORDER, order)


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
    """Dual values 0 before and 2 after the exact pass, then as scripted; 20 oracle calls of 0.5 s, 4 planes of 0.25 s."""
    duals = [3.0, 3.5, 3.8, 4.08, 9.9]  # 0.28 is less than 4.08 / 14, the last pass included
    solver = multiplane_of(multiclass(), multiplane={"oracle_seconds": 0.5, "plane_seconds": 0.25})
    solver.rebase()
    values = iter(duals)
    monkeypatch.setattr(method_of(solver), "approximate_pass", lambda flags: Passed(0, 4, 1))
    monkeypatch.setattr(solver.iterate, "dual_value", lambda: next(values))
    assert method_of(solver).approximate_passes(0.0, 2.0, 20) == (4, 4.08)
    assert next(values) == 9.9


def test_slope_rule__makes_more_passes_where_oracle_calls_cost_more():
    passes = []
    for cost in (1e-6, 1e-4, 1e-2):
        solver = multiplane_of(instance("chain"), 0.05, multiplane={"oracle_seconds": cost})
        solver.solve(1e-3, never)
        passes.append(np.mean([row[-1] for row in method_of(solver).iterations]))
    assert passes[0] < passes[1] < passes[2]


@pytest.mark.parametrize("most", [0, 2])
def test_approximate_passes__are_at_most_as_many_as_allowed(most):
    solver = multiplane_of(instance("chain"), 0.05, multiplane={"oracle_seconds": 1.0, "approximate_passes": most})
    solver.solve(0.05, never)
    assert {row[-1] for row in method_of(solver).iterations} <= set(range(most + 1))
    assert max(row[-1] for row in method_of(solver).iterations) == most


def test_costs__are_operations_of_the_structure_by_default():
    problem = instance("chain")
    solver = multiplane_of(problem, 0.05, multiplane=UNGIVEN)
    solver.solve(1e-3, never)
    oracle, visit = operations_of(problem)
    costs = method_of(solver).costs
    assert costs.facts()["unit_costs"] == pytest.approx(
        {
            "unit": "operations",
            "oracle_call": STEP + oracle + visit,
            "labelling": LABELLING,
            "visit": STEP,
            "reading": visit,
        }
    )
    done = Passed(visits=7, labellings=30, readings=9)
    assert costs.labellings(done) * costs.counts.labelling == pytest.approx(30 * LABELLING + 7 * STEP + 9 * visit)
    assert costs.calls(3) == 3 * (STEP + oracle + visit)
    given = UnitCosts.of(MultiplaneCounts(), MultiplaneGroup(**COSTS), problem)
    assert given.labellings(done) == 30 + 7 * VISIT


def test_costs__are_measured_at_the_start_and_then_kept():
    solver = multiplane_of(instance("chain"), 0.05, multiplane={**UNGIVEN, "costs": "measured"})
    solver.options.rebase_steps = 1
    seen = []
    counts = method_of(solver).counts
    solver.solve(1e-3, lambda _: seen.append((counts.measured, counts.oracle_call, counts.labelling)))
    assert [measured for measured, *_ in seen[: MEASURED + 2]] == [*range(MEASURED + 1), MEASURED]
    assert min(min(costs) for costs in seen[1:]) > 0.0
    assert len(set(seen[MEASURED:])) == 1
    assert len(set(seen[: MEASURED + 1])) == MEASURED + 1
    for (_, *before), (_, *after) in itertools.pairwise(seen[UNSETTLED + 1 : MEASURED + 1]):
        assert all(b <= a for a, b in zip(before, after, strict=True)), "of the later ones the least"


def test_costs__are_given_both_or_none():
    for given in ({"oracle_seconds": 1.0}, {"plane_seconds": 1.0}):
        with pytest.raises(ValueError, match=r"solver\.multiplane\..*_seconds: expected a number > 0, as"):
            method_options("mpbcfw", multiplane=MultiplaneGroup(**given)).check()
    with pytest.raises(
        ValueError, match=r"multiplane\.costs: expected counted, for oracle_seconds=1: given costs are not"
    ):
        method_options(
            "mpbcfw", multiplane=MultiplaneGroup(costs="measured", oracle_seconds=1.0, plane_seconds=1.0)
        ).check()
    with pytest.raises(ValueError, match=r"solver\.cache\.kind: expected gap, for method=mpbcfw"):
        method_options("mpbcfw", cache=CacheOptions(kind="none")).check()


# -- working sets -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("seed", range(20))
def test_retire__leaves_the_last_active_ones_and_all_that_has_weight(seed):
    rng = np.random.default_rng(seed)
    pool = empty_pool(3, 60, 2, np.uint8)
    for _ in range(40):
        s = insert(pool, int(rng.integers(3)), np.array([0, 0], np.uint8), 0.5, 10**9)
        pool.used[s], pool.alpha[s] = rng.integers(-1, 12), rng.integers(2) * 0.5
    before, most = int(rng.integers(6)), int(rng.integers(1, 8))
    expected = []
    for i in range(3):
        slots = slots_of(pool, i)
        recent = [s for s in slots if pool.used[s] >= before]
        order = sorted(recent, key=lambda s: (-pool.used[s], slots.index(s)))
        expected.append((set(order[:most]), {s for s in slots if pool.alpha[s] > 0.0}))
    retire(pool, before, most)
    for i, (recent_ones, weighted) in enumerate(expected):
        slots = slots_of(pool, i)
        assert {s for s in slots if pool.used[s] != RETIRED} == recent_ones
        assert set(slots) == recent_ones | weighted
        assert pool.counts[i] == len(slots)
    np.testing.assert_array_equal(working_set_sizes(pool), [len(recent_ones) for recent_ones, _ in expected])


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("size", "slots", "room"), [(13, 1, 7), (13, 12, 12), (12, 1, 6), (12, 9, 9)])
def test_grown__has_the_same_lists_and_as_much_room_as_is_asked_for(seed, size, slots, room):
    rng = np.random.default_rng(seed)
    pool = empty_pool(4, size, 3, np.uint8)
    for k in range(12):
        s = insert(pool, int(rng.integers(1, 4)), rng.integers(9, size=3).astype(np.uint8), 0.1 * k, 10**9)
        pool.alpha[s], pool.used[s], pool.row[s] = rng.random(), k, rng.integers(-1, 5)
    columns = [column.copy() for column in pool]
    larger = grown(columns, slots)
    assert columns == []
    assert larger.free[1] == room
    for k in range(room):
        insert(larger, k % 4, np.full(3, 9, np.uint8), 5.0, 10**9)
    assert larger.free.tolist() == [-1, 0]
    for i in range(4):
        after, before = slots_of(larger, i), slots_of(pool, i)
        new = len(range(i, room, 4))
        assert larger.counts[i] == len(after) == len(before) + new
        assert (larger.row[after[:new]] == -1).all()
        for column, held in zip(pool[:5], larger[:5], strict=True):
            assert held.dtype == column.dtype
            np.testing.assert_array_equal(held[after[new:]], column[before])


@pytest.mark.parametrize("seed", range(12))
def test_repack__puts_atoms_into_list_order_and_free_slots_behind_them(seed):
    rng = np.random.default_rng(seed)
    pool = empty_pool(5, int(rng.integers(30, 60)), 3, np.uint8)
    for k in range(30):
        s = insert(pool, int(rng.integers(1, 5)), rng.integers(9, size=3).astype(np.uint8), 0.1 * k, 10**9)
        pool.alpha[s], pool.used[s], pool.row[s] = rng.random(), k, k
        if seed % 3 and rng.random() < 0.1 * seed:
            remove(pool, (i := int(np.argmax(pool.counts))), int(rng.choice(slots_of(pool, i))))
    slots = [slots_of(pool, i) for i in range(5)]
    expected = np.concatenate(slots).astype(int)
    columns = [column[expected] for column in pool[:5]]
    order = repack(pool)
    np.testing.assert_array_equal(order, expected)
    for column, held in zip(columns, pool[:5], strict=True):
        np.testing.assert_array_equal(held[: order.size], column)
    after = [slots_of(pool, i) for i in range(5)]
    assert [len(some) for some in after] == [len(some) for some in slots]
    np.testing.assert_array_equal(np.concatenate(after), np.arange(order.size))
    free = []
    while (s := int(pool.free[0])) >= 0:
        free.append(s)
        pool.free[0] = pool.next[s]
    assert sorted(free) == list(range(order.size, pool.alpha.size))
    assert pool.free[1] == len(free)


def test_grown__holds_no_array_twice_but_the_one_that_it_copies():
    pool = empty_pool(4, 12, 3, np.uint8)
    held, freed = [weakref.ref(column) for column in pool[:6]], []

    class Columns(list):
        def pop(self, index):
            freed.append([column() is None for column in held].count(True))
            return super().pop(index)

    columns = Columns(pool)
    del pool
    grown(columns, 1)
    assert freed == [0, 1, 2, 3, 4, 5]
    assert all(column() is None for column in held)


@pytest.mark.parametrize("step", ["fw", "pairwise"])
@pytest.mark.parametrize(("most", "unused"), [(2, 10), (1000, 2), (3, 3)])
def test_working_sets__obey_their_cap_and_forget_what_is_not_used(monkeypatch, step, most, unused):
    problem = instance("chain")
    solver = multiplane_of(problem, 0.02, step=step, capacity=most, multiplane={"unused_iterations": unused})
    method, starts, seen = method_of(solver), [], []
    approximate_pass, bcfw_pass = method.approximate_pass, method.bcfw_pass

    def noted_exact():
        starts.append(solver.steps)
        return bcfw_pass()

    def noted(flags):
        pool = solver.iterate.state.pool
        oldest = starts[-unused] if len(starts) >= unused else -1
        chosen = pool.used != RETIRED
        slots = np.concatenate([slots_of(pool, i) for i in range(problem.n)])
        assert working_set_sizes(pool).max() <= most
        assert (pool.used[slots][chosen[slots]] > oldest).all()
        outside = slots[~chosen[slots]]
        if len(starts) > len(seen):  # the first approximate pass; later ones may have taken the weight
            assert (pool.alpha[outside] > 0.0).all()
        work = approximate_pass(flags)
        assert (pool.used[outside] == RETIRED).all(), "no approximate step chooses what has left the working set"
        if len(starts) > len(seen):
            seen.append(outside.size)
        return work

    monkeypatch.setattr(method, "bcfw_pass", noted_exact)
    monkeypatch.setattr(method, "approximate_pass", noted)
    solver.options.max_passes = 25.0
    solver.solve(1e-9, never)
    assert max(seen) > 0


# -- approximate steps ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", by_all_methods())
@pytest.mark.parametrize("step", steps())
def test_steps_by_distances__first_step_is_that_of_the_plain_loop(name, step):
    """From inner products, which chains keep in single precision, as from features: the same move."""
    ends = []
    for kernel in ("step", "planes"):
        solver = after_exact_passes(instance(name), step=step)
        order = np.arange(solver.problem.n)
        if kernel == "step":
            visits_of(solver).run(
                visits_of(solver).flags(sampler=PERMUTATION, vertex_from=CACHE_ONLY), order, order.size
            )
        else:
            steps_by_distances(solver, order)
        ends.append((solver.iterate.state.u.copy(), solver.iterate.state.ell.copy(), solver.dual_value()))
    for a, b in zip(*ends, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("name", by_all_methods())
@pytest.mark.parametrize("step", steps())
@pytest.mark.parametrize("by_mu", [0, 1])
def test_steps_by_distances__keep_the_state_that_of_alpha_and_never_lose_dual_value(name, step, by_mu):
    problem = instance(name)
    solver = after_exact_passes(problem, step=step)
    solver.iterate.state.by_mu[:] = by_mu  # empty, as mu is, where no move reads it
    order, last = np.arange(problem.n), solver.dual_value()
    for k in range(5 * problem.n):
        steps_by_distances(solver, order[k % problem.n : k % problem.n + 1], rounds=10)
        dual = solver.dual_value()
        assert dual >= last - 1e-12
        last = dual
    S = solver.iterate.state
    running = S.mu.copy(), S.ell.copy(), S.u.copy(), float(S.z_ell[1])
    for i in range(problem.n):
        weights = S.pool.alpha[slots_of(S.pool, i)]
        assert weights.min() >= 0.0
        assert weights.sum() == pytest.approx(1.0, abs=1e-12)
    derive(problem, S, solver.iterate.scale)
    for a, b in zip(running[1 - by_mu :], (S.mu, S.ell, S.u, float(S.z_ell[1]))[1 - by_mu :], strict=True):
        np.testing.assert_allclose(a, b, atol=1e-11)


def test_steps_by_distances__several_a_visit_gain_more_than_one_and_count_their_work():
    gains, scored = [], []
    for rounds in (1, 10):
        solver = after_exact_passes(instance("chain"), lam=0.02)
        problem, before = solver.problem, solver.dual_value()
        order = np.arange(problem.n)
        labellings, readings = steps_by_distances(solver, order, rounds)
        scored.append(labellings)
        gains.append(solver.dual_value() - before)
    assert gains[1] > gains[0] > 0.0
    assert scored[0] == solver.iterate.state.pool.counts.sum()
    assert scored[0] < scored[1] <= 10 * scored[0]
    assert readings == problem.n, "every further step goes by distances"


@pytest.mark.parametrize("step", [step for step in steps() if step != "pairwise"])
def test_steps_by_distances__several_a_visit_are_those_of_as_many_visits(step):
    """Scores and spreads that follow a move by distances are those that the next visit reads from features.

    A pairwise move leaves two scores equal, so that rounding would choose between them; `best` makes such moves as well.
    """
    ends = []
    for visits, rounds in ((1, 6), (6, 1)):
        solver = after_exact_passes(instance("multiclass"), passes=5, lam=0.02, step=step)
        S = solver.iterate.state
        for i in np.repeat(np.arange(solver.problem.n), visits):
            steps_by_distances(solver, np.array([i]), rounds)
        ends.append((S.pool.alpha[np.concatenate([slots_of(S.pool, i) for i in range(solver.problem.n)])], S.u, S.ell))
    for a, b in zip(*ends, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-11)


def test_approximate_pass__counts_visits_labellings_and_readings():
    solver = after_exact_passes(instance("chain"), lam=0.02)
    atoms, n = int(solver.iterate.state.pool.counts.sum()), solver.problem.n
    assert method_of(solver).approximate_pass(visits_of(solver).flags(vertex_from=CACHE_ONLY)) == (n, atoms, n)


def test_approximate_pass__with_a_box_reads_features_at_every_step():
    solver = after_exact_passes(instance("segmentation"), lam=0.02)
    one = steps_by_distances(solver, np.arange(solver.problem.n))
    ten = steps_by_distances(solver, np.arange(solver.problem.n), rounds=10)
    assert one[1] == solver.problem.n < ten[1] <= 10 * solver.problem.n


# -- the method -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", by_all_methods())
@pytest.mark.parametrize(("sampler", "step"), MEMBERS)
def test_multiplane__reaches_the_optimum_with_a_feasible_certificate(name, sampler, step):
    problem = instance(name)
    tolerance = 2e-3 if step == "fw" else 1e-6
    solver = multiplane_of(problem, sampler=sampler, step=step, max_passes=3000.0)
    solver.options.rebase_steps = 1
    duals = []
    status, point = solver.solve(tolerance, lambda solver: duals.append(solver.dual_value()))
    assert status is Status.CONVERGED
    assert -1e-12 <= point.gap <= tolerance
    assert min(np.diff(duals), default=0.0) >= -1e-12
    assert best(name, LAM) - tolerance <= point.dual <= best(name, LAM) + 1e-7
    assert point.primal == pytest.approx(primal_value(problem, solver.iterate.weights, LAM), abs=1e-9)
    assert point.primal - point.dual == pytest.approx(point.gap, abs=1e-10)
    columns = np.array(method_of(solver).iterations)
    assert (np.diff(columns[:, 1]) > 0).all()
    assert (np.diff(columns[:, 3]) >= -1e-12).all()
    assert 1.0 <= columns[0, 4] <= 2.0, "the truth and the oracle's first answer"


@pytest.mark.parametrize("name", by_all_methods())
def test_multiplane__without_approximate_passes_is_bcfw(name):
    """In permuted order, with the seeds of `bcfw`."""
    problem = instance(name)
    bcfw = solver_of(problem, sampler="permutation", step="fw", refresh_every=0)
    multiplane = multiplane_of(problem, multiplane={"approximate_passes": 0})
    for solver in (bcfw, multiplane):
        solver.rebase()
    for _ in range(4):
        method_of(bcfw).take_steps(-1.0)
        method_of(multiplane).bcfw_pass()
        np.testing.assert_allclose(bcfw.iterate.state.u, multiplane.iterate.state.u, rtol=1e-9, atol=1e-12)
    assert bcfw.dual_value() == pytest.approx(multiplane.dual_value(), abs=1e-12)


@pytest.mark.parametrize("name", ["chain", "chain_sparse", "multiclass"])
@pytest.mark.parametrize("step", steps())
def test_exact_pass__from_inner_products_takes_the_same_steps(name, step):
    """As from features, of which chains keep inner products in single precision."""
    ends = []
    for most in (0, 1):
        solver = multiplane_of(instance(name), step=step, multiplane={"approximate_passes": most})
        solver.rebase()
        assert by_distances(solver.options) == (most > 0)
        for _ in range(2 if step == "fw" else 1):  # later, the worst of a block's labellings may be equally bad
            assert method_of(solver).bcfw_pass() == solver.problem.n
        ends.append((solver.iterate.state.u.copy(), solver.iterate.state.ell.copy(), solver.iterate.state.gap.copy()))
    for a, b in zip(*ends, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-7)


def test_multiplane__needs_fewer_oracle_calls_than_bcfw():
    problem = multiclass(n=60, width=12, classes=6)
    passes = []
    for most in (0, 1000):
        group = {"oracle_seconds": 1e-2, "approximate_passes": most}
        solver = multiplane_of(problem, 1e-2, multiplane=group, max_passes=3000.0)
        assert solver.solve(1e-2, never)[0] is Status.CONVERGED
        passes.append(solver.ledger.passes_here)
    assert passes[1] < 0.5 * passes[0], passes


def test_exact_pass__calls_the_oracle_for_every_block_in_a_new_order():
    solver = multiplane_of(instance("chain"))
    solver.rebase()
    method, orders = method_of(solver), []
    visit = method.visit

    def noted(pace, flags, order):
        assert flags.vertex_from == ORACLE_ALWAYS
        orders.append(order.tolist())
        return visit(pace, flags, order)

    method.visit = noted
    assert [method.bcfw_pass(), method.bcfw_pass()] == [solver.problem.n] * 2
    assert sorted(orders[0]) == sorted(orders[1]) == list(range(solver.problem.n))
    assert orders[0] != orders[1]


@pytest.mark.parametrize("ordered", [0, 10**6])
def test_permutation__depends_on_its_number_only(monkeypatch, ordered):
    """Not on how many are drawn at a time, nor on what was drawn before a resume."""
    monkeypatch.setattr(mpbcfw, "ORDERED", ordered)
    solver = multiplane_of(instance("chain"))
    for first in (0, 3, 40):
        solver.counts.permutations = first
        for k in range(first, first + ORDERS + 2):
            expected = np.random.default_rng([solver.iterate.seed, k]).permutation(solver.problem.n)
            np.testing.assert_array_equal(method_of(solver).permutation(), expected)
    assert solver.counts.permutations == 40 + ORDERS + 2
    assert len(method_of(solver).orders) < ORDERS


def test_exact_pass__from_inner_products_refuses_the_plain_loop():
    """It would take curvatures from features, and new labellings would have no rows in the distances."""
    solver = multiplane_of(instance("chain"))
    solver.rebase()
    order, loop = np.arange(solver.problem.n), visits_of(solver).stepper
    arguments = solver.problem, solver.iterate.state, visits_of(solver).flags(), solver.iterate.rng, order
    assert loop(*arguments, 0) == (0, DONE)
    with pytest.raises(RuntimeError, match="all steps of this solve are made by distance_steps_driver"):
        loop(*arguments, order.size)


def test_iterations__count_the_approximate_passes_after_a_certificate_in_vain(monkeypatch):
    solver = multiplane_of(multiclass(n=60, width=12, classes=6), 1e-2, multiplane={"oracle_seconds": 1e-2})
    method, made, tried = method_of(solver), [], []
    approximate_pass = method.approximate_pass
    monkeypatch.setattr(
        method, "approximate_pass", lambda flags: made.append(solver.counts.exact_due) or approximate_pass(flags)
    )
    monkeypatch.setattr(method, "seems_solved", lambda tolerance: tried.append(len(tried) % 3) or tried[-1] == 2)
    assert solver.solve(1e-2, never)[0] is Status.CONVERGED
    assert solver.trace[:-1], "a certificate was in vain"
    assert sum(row[-1] for row in method_of(solver).iterations) == len(made) > 0


@pytest.mark.parametrize("averaging", ["none", "recent"])
def test_certificate__is_made_right_after_an_exact_pass(averaging):
    """There the primal value is least; approximate passes of that outer iteration are made only if it was in vain."""
    problem = multiclass(n=60, width=12, classes=6)
    solver = multiplane_of(problem, 1e-2, averaging=averaging, multiplane={"oracle_seconds": 1e-2})
    assert solver.solve(5e-2, never)[0] is Status.CONVERGED
    assert method_of(solver).iterations[-1][-1] == 0
    assert min(row[-1] for row in method_of(solver).iterations[:3]) > 0


def test_presets__make_one_step_a_visit_as_s15_and_ten_under_another_name():
    steps_a_visit = {}
    for preset in ("mpbcfw", "mpbcfw_inner", "mpbcpfw"):
        solver = composed(f"solver={preset}", "path=single", "dataset=ocr").solver
        steps_a_visit[preset] = (solver.step, solver.multiplane.rounds, solver.multiplane.costs)
    assert steps_a_visit == {
        "mpbcfw": ("fw", 1, "counted"), "mpbcfw_inner": ("fw", 10, "counted"), "mpbcpfw": ("pairwise", 10, "counted")
    }  # fmt: skip
    assert MultiplaneGroup().rounds == 1
