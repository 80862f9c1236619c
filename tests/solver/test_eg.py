"""Exponentiated gradient: the optimum of the dense QP, a dual that never falls, and resumed bits."""

from __future__ import annotations

import numpy as np
import pytest
from dense import best, primal_value
from tiny import all_labels, instance, local

from gapwise.stages.solver.method import AnyMethod
from gapwise.stages.solver.methods import method_options
from gapwise.stages.solver.objective import Goal
from gapwise.stages.solver.options import PathOptions, Status
from gapwise.stages.solver.path.walk import begin

pytestmark = pytest.mark.interpreted

LAM = 0.3


def eg_of(name: str, **choices) -> AnyMethod:
    options = method_options("eg", **{"max_passes": 200.0, **choices})
    options.check()
    return begin(instance(name), options, PathOptions(rule="single", lam=LAM), None, seed=0)


def dual_value(solver: AnyMethod) -> float:
    """D of the weights that the scores give all labellings, by enumeration."""
    P, S, v, ell = solver.problem, solver.running, np.zeros(solver.problem.d), 0.0
    for i in range(P.n):
        lo, hi = P.local_ptr[i], P.local_ptr[i + 1]
        delta = local(P, i, P.truth[P.label_ptr[i] : P.label_ptr[i + 1]])
        if S.step_size[i] > 0.0:
            labels = all_labels(P, i)
            m = np.array([local(P, i, y) for y in labels])
            losses = np.array([P.loss(i, y) for y in labels])
            scores = S.loss_weight[i] * losses + m @ S.sigma[lo:hi]
            weights = np.exp(scores - scores.max())
            weights /= weights.sum()
            np.testing.assert_allclose(S.mu[lo:hi], weights @ m, atol=1e-9)
            delta, ell = delta - weights @ m, ell + float(weights @ losses) / P.n
            P.push(i, 1.0 / (LAM * P.n), delta, v)
    np.testing.assert_allclose(S.u, v, atol=1e-9)
    w = solver.point
    return ell + 0.5 * LAM * float(w @ w) - LAM * float(w @ v)


@pytest.mark.parametrize("name", ["chain_sparse", "multiclass_cone", "multiclass_sparse"])
def test_eg__tends_to_the_optimum_and_its_dual_never_falls(name: str) -> None:
    problem, solver, duals = instance(name), eg_of(name), []
    status, point = solver.solve(Goal(1e9), lambda solver: duals.append(dual_value(solver)))
    assert (status, point) == (Status.PASS_LIMIT, None), "no tolerance ends it, however large"
    assert min(np.diff(duals)) >= -1e-12
    assert best(name, LAM) - 1e-3 <= duals[-1] <= best(name, LAM) + 1e-9
    primal = np.array(solver.trace)[:, 9]
    assert primal[-1] == pytest.approx(primal_value(problem, solver.primal(), LAM), abs=1e-9)
    assert -1e-9 <= primal[-1] - best(name, LAM) <= min(0.02, 0.2 * (primal[0] - best(name, LAM)))
    assert solver.supports() is None
    if problem.lower.size:
        assert (solver.primal() >= problem.lower).all()
        assert (solver.primal() <= problem.upper).all()
