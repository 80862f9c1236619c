"""The parts of a solver that benchmarks call one by one."""

from __future__ import annotations

from types import MethodType
from typing import Any

from gapwise.stages.solver.solver import Solver
from gapwise.stages.solver.visits import Visits


def method_of(solver: Solver) -> Any:
    """The object of the method's own class, which the schedule calls to advance."""
    advance = solver.schedule.advance
    if not isinstance(advance, MethodType):
        raise TypeError(f"solver.method={solver.options.method}: its schedule calls a function")
    return advance.__self__


def visits_of(solver: Solver) -> Visits:
    """The compiled steps."""
    method = method_of(solver)
    visits: Visits = method.proximal.visits if solver.options.method.startswith("accelerated") else method.visits
    return visits
