"""Mini-batches: the plain loop's bits at tau = 1, the same for any workers, a feasible rising dual for any tau."""

from __future__ import annotations

import numpy as np
import pytest
from dense import best, primal_value
from single import LAM, never, solver_of
from spreads import backwards, elsewhere, on_threads
from tiny import instance

from gapwise.stages.problems.parallel import HERE, Spread
from gapwise.stages.solver.methods.bcfw import Bcfw
from gapwise.stages.solver.options import Status
from gapwise.stages.solver.running import Flags
from gapwise.stages.solver.solver import Solver
from gapwise.stages.solver.supports import pack
from gapwise.stages.solver.visits import Visits

pytestmark = pytest.mark.interpreted


def bits(solver: Solver) -> list[bytes]:
    """Everything that is committed, and the trace but its seconds."""
    S = solver.iterate.state
    arrays = [*pack(S.pool, solver.problem.label_ptr), S.gap, S.counters, S.z, S.z_ell, S.u]
    trace = np.array([(*row[:5], *row[7:]) for row in solver.trace])
    return [array.tobytes() for array in (*arrays, trace)] + [str(solver.iterate.rng.bit_generator.state).encode()]


MEMBERS = [
    ("uniform", "fw", "none"),
    ("permutation", "pairwise", "gap"),
    ("gap", "away", "none"),
    ("max_gap", "best", "gap"),
]


def run_batches(visits: Visits, flags: Flags, order: np.ndarray, steps: int) -> int:
    """`Visits.run` as mini-batches run."""
    return Bcfw(visits.it, visits.it.ledger.options).run_batches(flags, order, steps)


@pytest.mark.parametrize(("sampler", "step", "cache"), MEMBERS)
def test_batches_of_one__are_the_plain_loop(monkeypatch, sampler, step, cache) -> None:
    runs, averaging = [], "none" if cache == "gap" else "weighted"
    for _ in range(2):
        run = []
        for name in ("chain", "multiclass_cone"):
            choices = {"sampler": sampler, "step": step, "cache": cache, "averaging": averaging, "refresh_every": 3}
            solver = solver_of(instance(name), lam=0.01, rebase_steps=7, max_passes=8.0, **choices)
            solver.solve(1e-9, never)
            run += bits(solver)
        runs.append(run)
        monkeypatch.setattr(Visits, "run", run_batches)
    assert runs[0] == runs[1]


def test_batches__do_not_depend_on_who_calls_the_oracles() -> None:
    runs, name = [], "chain"
    for spread in (HERE, Spread(backwards), Spread(on_threads), elsewhere(instance(name))):
        choices = {"sampler": "gap", "cache": "gap", "batch_size": 3, "max_passes": 8.0}
        solver = solver_of(instance(name), lam=0.01, spread=spread, **choices)
        solver.solve(1e-9, never)
        runs.append(bits(solver))
    assert all(run == runs[0] for run in runs)


@pytest.mark.parametrize(
    ("name", "sampler", "step", "cache"), [("segmentation", *MEMBERS[1]), ("multiclass_cone", *MEMBERS[2])]
)
def test_batches__reach_the_optimum_with_a_feasible_certificate(name, sampler, step, cache) -> None:
    problem = instance(name)
    tolerance = 2e-3 if step == "fw" else 1e-6
    choices = {"sampler": sampler, "step": step, "cache": cache, "batch_size": 3}
    solver = solver_of(problem, max_passes=20000.0, refresh_every=2, **choices)
    status, point = solver.solve(tolerance, never)
    assert status is Status.CONVERGED
    assert -1e-12 <= point.gap <= tolerance
    assert point.primal - point.dual == pytest.approx(point.gap, abs=1e-10)
    assert point.dual <= best(name, LAM) + 1e-7 <= point.primal + 2e-7
    assert point.primal == pytest.approx(primal_value(problem, solver.iterate.state.w, LAM), abs=1e-9)
    supports = pack(solver.iterate.state.pool, problem.label_ptr)
    assert supports.alpha.min() >= 0.0
    np.testing.assert_allclose(np.add.reduceat(supports.alpha, supports.offset[:-1]), 1.0, atol=1e-12)
