"""No state stores mu_i, which would take 8 p_i bytes a block: it is summed over atoms."""

from __future__ import annotations

import numpy as np
import pytest
from parts_of import pass_of
from single import never
from solved import method_named
from tiny import by_all_methods, chain, instance

from gapwise.stages.solver.method import AnyMethod
from gapwise.stages.solver.methods import method_options
from gapwise.stages.solver.objective import Goal
from gapwise.stages.solver.options import CacheOptions, PathOptions
from gapwise.stages.solver.path.walk import begin

GAP = CacheOptions(kind="gap")


def solver_of(problem, method: str, **choices) -> AnyMethod:
    options = method_options(**method_named({"method": method, **choices}))
    return begin(problem, options, PathOptions(rule="single", lam=0.05), None, 0)


@pytest.mark.parametrize("name", by_all_methods())
def test_keep_primal__takes_the_values_of_atoms_for_the_mean(name):
    """Right after moves, without a rebase: gaps at the smaller lambda are those that an exact pass finds there."""
    problem = instance(name)
    solver = solver_of(problem, "bcfw", step="pairwise", cache=GAP)
    solver.solve(Goal(1e-2), never)
    solver.it.rebase()
    pass_of(solver)
    w = solver.it.state.w.copy()
    solver.move_to(0.04, 1, "keep_primal")
    moved = solver.it.state.gap.copy()
    solver.it.rebase()
    np.testing.assert_allclose(solver.it.state.w, w, atol=1e-12)
    pass_of(solver)
    np.testing.assert_allclose(moved, solver.it.state.gap, atol=1e-12)


def test_state__of_pairwise_moves_does_not_grow_with_local_coordinates():
    """Bytes of a block: atoms, gaps, tree; no number for each local coordinate."""
    n = 50
    sizes = []
    for classes in (3, 30):
        problem = chain(n, lengths=(4,) * n, width=30, classes=classes)
        S = solver_of(problem, "bcfw", step="pairwise", cache=GAP).it.state
        arrays = [*S.pool, *S.distances, *(array for array in S if isinstance(array, np.ndarray) and array is not S.u)]
        sizes.append(sum(array.nbytes for array in arrays))
        assert problem.local_ptr[-1] / n == 4 * classes + classes**2
    assert sizes[0] == sizes[1] < 800 * n
