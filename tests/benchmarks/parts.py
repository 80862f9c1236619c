"""The parts of a solver that benchmarks call one by one."""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace
from typing import Any


def visits_of(solver: Any) -> Any:
    """The compiled steps: `run(flags, order, steps)`, `flags(...)`, `visit(...)`, also of earlier versions."""
    method = solver.schedule.advance.__self__ if hasattr(solver, "schedule") else solver
    method = getattr(method, "proximal", method)
    if hasattr(method, "visits"):
        return method.visits
    from gapwise.stages.solver.visits import run_steps, visit

    it = solver.it
    return SimpleNamespace(it=it, flags=it.flags, run=partial(run_steps, it), visit=partial(visit, it))


def take_steps(solver: Any) -> None:
    """The steps of `bcfw` until its next rebase point, without an exact pass."""
    from gapwise.stages.solver.objective import Goal

    solver.counts.exact_due = False
    solver.advance(Goal(float("nan")))
