"""The parts of a solver that benchmarks call one by one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gapwise.stages.solver.visits import Visits


def visits_of(solver: Any) -> Visits:
    """The compiled steps, also of earlier versions, whose solvers held a schedule."""
    method = solver.schedule.advance.__self__ if hasattr(solver, "schedule") else solver
    visits: Visits = method.proximal.visits if solver.options.method.startswith("accelerated") else method.visits
    return visits
