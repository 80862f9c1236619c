"""The parts of a `Solver` that tests look into."""

from __future__ import annotations

from typing import Any

from gapwise.stages.solver.solver import Solver


def method_of(solver: Solver) -> Any:
    """The object of the method's own class, whose `advance` the schedule calls."""
    return solver.schedule.advance.__self__  # type: ignore[attr-defined]
