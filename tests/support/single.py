"""A solver at one lambda, for tests of the schedules."""

from __future__ import annotations

from stages.problems.protocol import Problem
from stages.solver.fixed_lambda import Solver
from stages.solver.options import CacheOptions, PathOptions, SolverOptions
from stages.solver.path.walk import begin

LAM = 0.05


def solver_of(problem: Problem, schedule: str = "accelerated", lam: float = LAM, *, own_primal: bool = True) -> Solver:
    options = SolverOptions(schedule=schedule, cache=CacheOptions(kind="gap"), max_passes=3000.0)
    options.check()
    solver = begin(problem, options, PathOptions(kind="single", lam=lam), None, 0)
    solver.own_primal = own_primal
    return solver


def never(solver: Solver) -> None:
    """A boundary that neither stops nor commits."""
