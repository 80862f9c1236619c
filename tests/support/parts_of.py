"""The parts of a method that tests look into."""

from __future__ import annotations

from gapwise.stages.solver.catalyst import Proximal
from gapwise.stages.solver.exact import ExactGaps, certificate_of, exact_pass
from gapwise.stages.solver.method import AnyMethod
from gapwise.stages.solver.objective import Certificate
from gapwise.stages.solver.visits import Visits


def proximal_of(solver: AnyMethod) -> Proximal:
    """The proximal problems of an accelerated method."""
    proximal: Proximal = solver.proximal  # type: ignore[attr-defined]
    return proximal


def visits_of(solver: AnyMethod) -> Visits:
    """The compiled steps."""
    at = solver.proximal if solver.options.method.startswith("accelerated") else solver  # type: ignore[attr-defined]
    visits: Visits = at.visits
    return visits


def pass_of(solver: AnyMethod) -> tuple[Certificate, ExactGaps]:
    """An exact pass at the point that the method certifies next."""
    return exact_pass(solver.it, solver.point)


def dual_of(solver: AnyMethod) -> float:
    """The dual value of a certificate at present."""
    return certificate_of(solver.it, solver.point, 0.0).dual
