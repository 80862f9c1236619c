"""Squared distances between a block's labellings: what they are, and that moves by them are moves by scores."""

from __future__ import annotations

import numpy as np
import pytest
from single import ACCELERATED_LAM as LAM
from single import accelerated_of, slots_of
from tiny import TINY, by_all_methods, feature_matrix, local

from gapwise.stages.solver.block.pairs import cached_steps_driver, with_room
from gapwise.stages.solver.codes import CACHE_ONLY, ORACLE_ALWAYS, PERMUTATION
from gapwise.stages.solver.objective import Goal, dual_value
from gapwise.stages.solver.options import Status
from gapwise.stages.solver.state import derive
from gapwise.stages.solver.supports import pack, unpack
from gapwise.stages.solver.visits import visit


@pytest.mark.parametrize("name", by_all_methods())
def test_distances__are_those_of_the_joint_features(name):
    problem = TINY[name]()
    solver = accelerated_of(problem)
    seen = 0

    def boundary(solver):
        nonlocal seen
        pool, known = solver.it.state.pool, solver.it.state.distances
        for i in range(problem.n):
            B, length = feature_matrix(problem, i), problem.label_ptr[i + 1] - problem.label_ptr[i]
            placed = [s for s in slots_of(pool, i) if pool.row[s] >= 0]
            assert len({int(pool.row[s]) for s in placed}) == len(placed)
            width = known.width[i]
            square = known.squared[known.start[i] :][: width * width].reshape(width, width)
            for s in placed:
                for t in placed:
                    move = B @ (local(problem, i, pool.labels[s, :length]) - local(problem, i, pool.labels[t, :length]))
                    assert square[pool.row[s], pool.row[t]] == pytest.approx(float(move @ move), rel=1e-5, abs=1e-9)
                    seen += s != t

    assert solver.solve(Goal(1e-4), boundary)[0] is Status.CONVERGED
    assert seen > 2 * problem.n


@pytest.mark.parametrize("name", by_all_methods())
def test_rounds__of_one_visit_solve_the_block(name):
    """Many moves between the labellings of a block, scores following by distances: then fresh scores agree."""
    problem = TINY[name]()
    solver = accelerated_of(problem)
    solver.it.rebase()
    for _ in range(4):
        solver.it.make_room(problem.n)
        visit(solver.it, vertex_from=ORACLE_ALWAYS)
    solver.it.rebase()
    S = solver.it.state._replace(distances=with_room(solver.it.state.distances, solver.it.state.pool.counts))
    for i in range(problem.n):
        for rounds in (1, 400):
            flags = solver.it.flags(sampler=PERMUTATION, vertex_from=CACHE_ONLY, rounds=rounds)
            cached_steps_driver(problem)(problem, S, flags, np.array([i]))
            theta, length = np.empty(problem.local_ptr[i + 1] - problem.local_ptr[i]), np.diff(problem.label_ptr)[i]
            problem.scores(i, S.w, theta)
            slots = slots_of(S.pool, i)
            values = np.array([S.pool.losses[s] + problem.value(i, theta, S.pool.labels[s, :length]) for s in slots])
            slope = values.max() - values[S.pool.alpha[slots] > 1e-12].min()
        assert slope <= 1e-6, (i, slope)


@pytest.mark.parametrize("name", by_all_methods())
def test_cached_passes__keep_w_that_of_alpha_and_never_lose_dual_value(name):
    problem = TINY[name]()
    solver = accelerated_of(problem)
    solver.it.rebase()
    S = solver.it.state
    values = []
    for _ in range(5):
        solver.it.make_room(problem.n)
        visit(solver.it, vertex_from=ORACLE_ALWAYS)
        for _ in range(3):
            visit(solver.it, vertex_from=CACHE_ONLY, rounds=2)
            S = solver.it.state
            w, ell = S.w.copy(), float(S.z_ell[1])
            values.append(dual_value(ell, S.u, w, LAM, problem.lower, problem.upper))
            derive(problem, S, solver.it.scale)
            np.testing.assert_allclose(w, S.w, rtol=1e-9, atol=1e-10)
            assert ell == pytest.approx(float(S.z_ell[1]), abs=1e-12)
    assert np.diff(values).min() >= -1e-12
    assert values[-1] > values[0]


def test_distances__do_not_depend_on_when_they_are_measured():
    """A pool that is packed and loaded again has forgotten all places."""
    problem, ends = TINY["chain"](), []
    for forgetful in (False, True):
        solver = accelerated_of(problem)

        def boundary(solver, forgetful=forgetful):
            if forgetful:
                pool = solver.it.state.pool
                again = unpack(pack(pool, problem.label_ptr), pool.labels.shape[1], pool.alpha.size)
                solver.it.state = solver.it.state._replace(pool=again)
                assert (again.row[[slot for i in range(problem.n) for slot in slots_of(again, i)]] < 0).all()

        solver.solve(Goal(1e-5), boundary)
        ends.append((solver.it.weights, solver.it.state.gap, pack(solver.it.state.pool, problem.label_ptr).alpha))
    for end, other in zip(*ends, strict=True):
        np.testing.assert_array_equal(end, other)
