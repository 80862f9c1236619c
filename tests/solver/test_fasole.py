"""FASOLE: the optimum of the dense QP, and pairs that raise the dual most."""

from __future__ import annotations

import numpy as np
import pytest
from dense import best, primal_value
from single import LAM, solver_of
from tiny import KINDS, instance

from gapwise.stages.solver.options import Status
from gapwise.stages.solver.solver import Solver
from gapwise.stages.solver.supports import pack

pytestmark = pytest.mark.interpreted


def fasole_of(name: str, **choices) -> Solver:
    return solver_of(instance(name), method="fasole", cache="gap", **{"max_passes": 3000.0, **choices})


@pytest.mark.parametrize("name", KINDS)
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
