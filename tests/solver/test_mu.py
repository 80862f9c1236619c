"""Methods that read no mu store none, which would take 8 p_i bytes a block: certificates, and the size of a state."""

from __future__ import annotations

import numpy as np
import pytest
from parts_of import pass_of
from single import never
from solved import method_named
from tiny import KINDS, by_all_methods, chain, instance

from gapwise.stages.solver import iterate
from gapwise.stages.solver.codes import FEW_ATOMS
from gapwise.stages.solver.method import AnyMethod
from gapwise.stages.solver.methods import method_options
from gapwise.stages.solver.options import CacheOptions, PathOptions
from gapwise.stages.solver.path.walk import begin

GAP = CacheOptions(kind="gap")
WITHOUT = {
    "bcfw": {"step": "pairwise", "cache": GAP},
    "accelerated": {"step": "pairwise", "cache": GAP},
    "accelerated_at_mean": {"step": "pairwise", "cache": GAP},
    "mpbcfw": {"step": "pairwise"},
    "cutting_plane": {},
}
"""Methods, with options under which they store no mu."""
MANY = "chain with many atoms"


def solver_of(problem, method: str, **choices) -> AnyMethod:
    options = method_options(**method_named({"method": method, **choices}))
    return begin(problem, options, PathOptions(rule="single", lam=0.05), None, 0)


@pytest.mark.interpreted
@pytest.mark.parametrize(
    ("name", "method"), [(MANY, "bcfw"), *((KINDS[k % 4], method) for k, method in enumerate(WITHOUT))]
)
def test_certificates__are_those_with_mu(name, method, monkeypatch):
    """Where a block has more than FEW_ATOMS atoms and mu is stored, exact passes read it."""
    problem = chain(7, lengths=(6, 2), width=2, classes=5) if name == MANY else instance(name)
    ends, most, begin_state = [], 0, iterate.new_state
    for stored in (False, True):

        def new_state(problem, pool, average, mu, stored=stored):
            assert not mu
            return begin_state(problem, pool, average, stored)

        monkeypatch.setattr(iterate, "new_state", new_state)
        solver = solver_of(problem, method, max_passes=30.0, **WITHOUT[method])
        _, point = solver.solve(1e-9, never)
        solver.it.rebase()
        again, gaps = pass_of(solver)
        ends.append([*point, *again, *gaps.gap, *solver.it.dual_weights()])
        most = max(most, int(solver.it.state.pool.counts.max()))
        assert (solver.it.state.mu.size > 0) == stored
    np.testing.assert_allclose(*ends, rtol=0, atol=1e-12)
    assert name != MANY or method != "bcfw" or most > FEW_ATOMS


@pytest.mark.parametrize("name", by_all_methods())
def test_keep_primal__takes_the_values_of_atoms_for_the_mean(name):
    """Right after moves, without a rebase: gaps at the smaller lambda are those that an exact pass finds there."""
    problem = instance(name)
    solver = solver_of(problem, "bcfw", **WITHOUT["bcfw"])
    solver.solve(1e-2, never)
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
        S = solver_of(problem, "bcfw", **WITHOUT["bcfw"]).it.state
        arrays = [*S.pool, *S.distances, *(array for array in S if isinstance(array, np.ndarray) and array is not S.u)]
        sizes.append(sum(array.nbytes for array in arrays))
        assert problem.local_ptr[-1] / n == 4 * classes + classes**2
    assert sizes[0] == sizes[1] < 800 * n
