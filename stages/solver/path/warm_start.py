"""From one lambda to the next: what a solve takes along (O16 section 4; DESIGN 2.5)."""

from __future__ import annotations

import numpy as np

from stages.solver.fixed_lambda import Solver
from stages.solver.gaps import cached_driver, truth_driver
from stages.solver.state import truth_pool


def keep_primal(solver: Solver, lam: float, breakpoint: int) -> None:
    """Move to a smaller lambda with the same w; block gaps follow exactly (O16 section 4)."""
    rho = lam / solver.at.lam
    if not rho <= 1.0:
        raise ValueError(f"path: keep_primal needs decreasing lambdas; {lam:g} follows {solver.at.lam:g}")
    solver.make_room(solver.problem.n)
    truth_driver(solver.problem)(solver.problem, solver.state, rho, solver.capacity)
    solver.start_lambda(lam, breakpoint)


def keep_dual(solver: Solver, lam: float, breakpoint: int) -> None:
    """Move to another lambda with the same alpha; gaps refilled from cached labellings, without an oracle call."""
    solver.at.lam = lam
    solver.derive()
    if solver.caching:
        cached_driver(solver.problem)(solver.problem, solver.state.pool, solver.state.w, solver.state.gap)
    else:
        solver.state.gap[:] = np.inf
    solver.start_lambda(lam, breakpoint)


def restart(solver: Solver, lam: float, breakpoint: int) -> None:
    """Start another lambda at w = 0."""
    solver.state = solver.state._replace(pool=truth_pool(solver.problem))
    solver.state.gap[:] = np.inf
    solver.start_lambda(lam, breakpoint)
