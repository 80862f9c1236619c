"""The parts of a `Solver` that tests look into."""

from __future__ import annotations

from types import MethodType
from typing import Any

from gapwise.stages.solver.catalyst import Proximal
from gapwise.stages.solver.exact import ExactGaps, certificate_of, exact_pass
from gapwise.stages.solver.objective import Certificate
from gapwise.stages.solver.solver import Solver
from gapwise.stages.solver.visits import Visits


def method_of(solver: Solver) -> Any:
    """The object of the method's own class, which the schedule calls to advance."""
    advance = solver.schedule.advance
    assert isinstance(advance, MethodType)
    return advance.__self__


def proximal_of(solver: Solver) -> Proximal:
    """The proximal problems of an accelerated method."""
    proximal: Proximal = method_of(solver).proximal
    return proximal


def visits_of(solver: Solver) -> Visits:
    """The compiled steps."""
    method = method_of(solver)
    visits: Visits = method.proximal.visits if solver.options.method.startswith("accelerated") else method.visits
    return visits


def pass_of(solver: Solver) -> tuple[Certificate, ExactGaps]:
    """An exact pass at the point that the method certifies next."""
    return exact_pass(solver.iterate, solver.point)


def dual_of(solver: Solver) -> float:
    """The dual value of a certificate at present."""
    return certificate_of(solver.iterate, solver.point, 0.0).dual
