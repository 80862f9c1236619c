"""Batch Frank-Wolfe: its steps by the formula, its rates, and the optimum, against a dense QP."""

from __future__ import annotations

import numpy as np
import pytest
from dense import best, optimum, psi_and_loss
from single import LAM, never
from tiny import KINDS, all_labels, feature_matrix, instance, local, multiclass, multiclass_cone

from gapwise.stages.solver.methods import method_options
from gapwise.stages.solver.objective import Goal
from gapwise.stages.solver.options import PathOptions, Status
from gapwise.stages.solver.oracles import answers_at
from gapwise.stages.solver.path.walk import begin

pytestmark = pytest.mark.interpreted

STEPS = pytest.mark.parametrize("line_search", [True, False], ids=["line_search", "fixed"])


def fw_of(problem, lam=LAM, **choices):
    options = method_options("fw", **{"max_passes": 60.0, **choices})
    options.check()
    return begin(problem, options, PathOptions(rule="single", lam=lam), None, seed=0)


def psi_of(problem, i, y):
    """psi_i(y) = B_i (m_i(y_i) - m_i(y)), (d,)."""
    truth = problem.truth[problem.label_ptr[i] : problem.label_ptr[i + 1]]
    return feature_matrix(problem, i) @ (local(problem, i, truth) - local(problem, i, y))


@STEPS
@pytest.mark.parametrize("name", ["chain", "multiclass_cone"])
def test_fw__steps_are_those_of_the_formula(name, line_search):
    """LJ13 Alg. 2 with w and w_s as vectors, from the vertices that the structure's oracle returns."""
    problem, points = instance(name), []
    v, ell = np.zeros(problem.d), 0.0

    def clipped(x):
        return np.clip(x, problem.lower, problem.upper) if problem.lower.size else x

    solver = fw_of(problem, line_search=line_search, max_passes=8.0)
    solver.solve(Goal(1e-12), lambda solver: points.append((solver.it.state.u.copy(), float(solver.it.state.z_ell[1]))))
    for k, (u, loss) in enumerate(points):
        np.testing.assert_allclose(u, v, atol=1e-11)
        assert loss == pytest.approx(ell, abs=1e-12)
        w = clipped(v)
        answers = answers_at(problem, w, range(problem.n))
        lengths = np.diff(problem.label_ptr)
        vertices = [y[:length] for y, length in zip(answers.vertex, lengths, strict=True)]
        w_s = sum(psi_of(problem, i, y) for i, y in enumerate(vertices)) / (LAM * problem.n)
        ell_s = float(np.mean(answers.losses))
        gap = LAM * (v - w_s) @ w - ell + ell_s
        gamma = min(max(gap / (LAM * np.sum((v - w_s) ** 2)), 0.0), 1.0) if line_search else 2.0 / (k + 2.0)
        assert solver.trace[k][7] == pytest.approx(gap, abs=1e-11)
        v, ell = v + gamma * (w_s - v), ell + gamma * (ell_s - ell)


@STEPS
@pytest.mark.parametrize("name", KINDS)
def test_fw__keeps_the_rates_of_theory_and_tends_to_the_optimum(name, line_search):
    problem, passes = instance(name), 100
    solver = fw_of(problem, line_search=line_search, max_passes=float(passes))
    status, point = solver.solve(Goal(1e-9), never)
    gap, dual, primal = np.array(solver.trace)[:, 7:10].T
    radius2 = max(float(np.max(np.sum(psi**2, axis=1))) for psi in psi_and_loss(problem)[0])
    curvature, k = 4.0 * radius2 / LAM, np.arange(1, gap.size)
    assert (best(name, LAM) - dual[1:] <= 2.0 * curvature / (k + 2.0)).all()
    assert (np.minimum.accumulate(gap)[1:] <= 27.0 / 4.0 * curvature / (k + 2.0)).all()
    np.testing.assert_allclose(primal - dual, gap, atol=1e-10)
    assert dual.max() <= best(name, LAM) + 1e-7 <= primal.min() + 2e-7
    assert primal[-1] - best(name, LAM) <= gap[-1] <= 0.1 * gap[0], "within the certified gap, which has become small"
    assert status in (Status.PASS_LIMIT, Status.CONVERGED)
    assert solver.ledger.passes_here == gap.size, "an iteration is one effective pass"
    assert solver.steps == problem.n * (gap.size - 1)
    if line_search:
        assert (np.diff(dual) >= -1e-12).all()
    alpha = solver.supports()
    np.testing.assert_allclose(np.add.reduceat(alpha.alpha, alpha.offset[:-1]), 1.0, atol=1e-12)
    assert alpha.alpha.min() > 0.0
    assert point.dual == dual[-1]


@STEPS
def test_fw__reaches_an_optimum_that_is_a_corner_to_the_last_digit(line_search):
    """With distinct costs and a large lambda every alpha_i is 1 at the labelling of the largest loss."""
    cost = np.array([[0.0, 1.0, 3.0], [2.0, 0.0, 0.5], [1.5, 4.0, 0.0]])
    problem, lam = multiclass(cost=cost), 200.0
    assert len(all_labels(problem, 0)) == 3
    solver = fw_of(problem, lam, line_search=line_search)
    status, point = solver.solve(Goal(1e-9), never)
    assert status is Status.CONVERGED
    assert solver.ledger.passes_here <= 3
    assert point.dual == pytest.approx(optimum(problem, lam), abs=1e-8)


@pytest.mark.parametrize("make", [multiclass, multiclass_cone])
def test_line_search__never_lowers_the_dual_whatever_the_oracle_returns(make):
    """It is no gap that a poor labelling has as its slope; where no step ascends, the solve ends."""
    problem, rng, duals = make(), np.random.default_rng(0), []

    class Hasty(type(problem)):
        certainty = "estimate"

        def max_oracle(self, i, theta, y, scratch):
            y[0] = (self.truth[i] + rng.integers(1, 3)) % 3
            return self.loss(i, y)

    options = method_options("fw", max_passes=60.0)
    solver = begin(Hasty(*problem), options, PathOptions(rule="single", lam=0.05), None, seed=0)
    status, point = solver.solve(Goal(1e-9), lambda solver: duals.append(solver.dual_value()))
    assert status is Status.STALLED
    assert np.diff(duals).min() >= -1e-12
    assert duals[-1] > 0.01
    assert point.primal - point.dual == pytest.approx(point.gap, abs=1e-12)
