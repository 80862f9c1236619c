"""BCFW without line search: its steps by the formula, and the optimum within its certificate, against a dense QP."""

from __future__ import annotations

import numpy as np
import pytest
from dense import best, primal_value
from single import LAM, never, solver_of, take_steps
from tiny import feature_matrix, instance, local

from gapwise.stages.solver.objective import Goal
from gapwise.stages.solver.options import Status
from gapwise.stages.solver.oracles import answers_at

pytestmark = pytest.mark.interpreted


def nols_of(problem, **choices):
    return solver_of(
        problem, **{"line_search": False, "step": "fw", "sampler": "uniform", "max_passes": 400.0, **choices}
    )


@pytest.mark.parametrize("name", ["chain", "multiclass_cone", "segmentation"])
def test_steps__are_those_of_the_formula(name):
    """LJ13 Alg. 4 with mu_i in local coordinates and v as a vector, with the blocks that the same seed draws."""
    problem = instance(name)
    solver = nols_of(problem, refresh_every=0, rebase_steps=30)
    solver.it.rebase()
    take_steps(solver)
    n, rng = problem.n, np.random.default_rng(0)
    truths = [problem.truth[problem.label_ptr[i] : problem.label_ptr[i + 1]] for i in range(n)]
    mu = [local(problem, i, truths[i]) for i in range(n)]
    v, ell = np.zeros(problem.d), np.zeros(n)
    for k in range(30):
        i = int(rng.random() * n)
        w = np.clip(v, problem.lower, problem.upper) if problem.lower.size else v
        answers = answers_at(problem, w, range(n))
        y, gamma = answers.vertex[i, : truths[i].size], 2.0 * n / (k + 2.0 * n)
        delta = local(problem, i, y) - mu[i]
        mu[i] += gamma * delta
        ell[i] += gamma * (answers.losses[i] - ell[i])
        v -= gamma / (LAM * n) * (feature_matrix(problem, i) @ delta)
    np.testing.assert_allclose(solver.it.state.u, v, atol=1e-11)
    np.testing.assert_allclose(solver.it.state.ell, ell, atol=1e-12)
    assert solver.steps == solver.oracle_calls == 30


@pytest.mark.parametrize(
    ("name", "sampler"), [("chain", "uniform"), ("multiclass_cone", "permutation"), ("segmentation", "gap")]
)
def test_solve__ends_within_its_certificate_at_the_optimum(name, sampler):
    problem, tolerance = instance(name), 0.02
    solver = nols_of(problem, sampler=sampler)
    status, point = solver.solve(Goal(tolerance), never)
    assert status is Status.CONVERGED
    assert 0.0 <= point.gap <= tolerance
    assert point.primal - point.dual == pytest.approx(point.gap, abs=1e-10)
    assert point.primal == pytest.approx(primal_value(problem, solver.primal(), LAM), abs=1e-9)
    assert point.dual - 1e-7 <= best(name, LAM) <= point.primal + 1e-7
    supports = solver.supports()
    np.testing.assert_allclose(np.add.reduceat(supports.alpha, supports.offset[:-1]), 1.0, atol=1e-12)


def test_solve__goes_on_towards_the_optimum():
    """The dual error falls like 1 / k on the way, although the objective itself falls in some steps."""
    solver = nols_of(instance("multiclass"), rebase_steps=1, refresh_every=1, max_passes=600.0)
    duals = []
    solver.solve(Goal(1e-9), lambda solver: duals.append(solver.dual_value()))
    assert min(np.diff(duals)) < -1e-9, "nothing searches for the best step"
    error, steps = best("multiclass", LAM) - np.array(solver.trace)[:, 8], np.array(solver.trace)[:, 4]
    assert error[-1] <= 1e-4
    late = steps > 200
    assert np.max(error[late] * steps[late]) <= np.max(error[~late] * (steps[~late] + 2.0))
