"""Walking over lambda: the eps-approximate path, and given grids (O16 Alg. 6, 7; DESIGN 2.5)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from stages.problems.protocol import Problem
from stages.solver.fixed_lambda import Boundary, Solver
from stages.solver.objective import Certificate, require_cone
from stages.solver.options import PathOptions, Status
from stages.solver.path import two_sided
from stages.solver.path.cells import Goal, solved
from stages.solver.path.rules import lower_end, worst_gap_above
from stages.solver.path.two_sided import TwoSided
from stages.solver.path.warm_start import keep_dual, keep_primal, restart
from stages.solver.state import corners_pool, new_state, truth_pool
from stages.solver.supports import Supports, pack


@dataclass(frozen=True)
class PathStart:
    """Where a path begins: the dual point of w = 0, and the lambdas above which nothing needs to be solved."""

    lam: float
    """First lambda to solve."""
    lam_top: float
    """From here up w = 0 (one_sided) or the scaled first w (paper) is eps-optimal."""
    hinge_at_zero: float
    """R_0: mean of the largest losses."""
    psi_norm2: float
    """||psi~||^2, clipped to the cone."""
    labels: np.ndarray
    """truth's dtype, flat: max-oracle labellings at w = 0"""
    losses: np.ndarray
    """float64, (n,): their losses"""
    psi: np.ndarray
    """float64, (d,): psi~"""
    oracle_calls: int


@dataclass(frozen=True)
class Breakpoint:
    """One solved lambda, with everything that proves it."""

    index: int
    point: Certificate
    status: Status
    lambda_low: float
    """The certificate of the path holds from here up to the breakpoint before; lambda itself on a grid."""
    effective_passes: float
    oracle_calls: int
    seconds: float
    weights: np.ndarray
    """float64, (d,)"""
    block_gap: np.ndarray
    """float64, (n,)"""
    supports: Supports


Emit = Callable[[Breakpoint], None]


def begin(problem: Problem, solver_options, path: PathOptions, start: PathStart | None, seed: int, **more) -> Solver:
    """The solver at the first lambda."""
    average = solver_options.averaging != "none"
    if start is None:
        pool, lam, initial = truth_pool(problem), first_of_grid(path), 0
    else:
        pool, lam, initial = corners_pool(problem, start.labels, start.losses), start.lam, start.oracle_calls
    solver = Solver(
        problem,
        solver_options,
        new_state(problem, pool, average),
        np.random.default_rng(seed),
        seed,
        own_primal=not path.is_path,
        **more,
    )
    solver.start_lambda(lam, 0, exact_due=path.is_path and path.rule == "paper")
    solver.at.initial_calls = initial
    return solver


def first_of_grid(path: PathOptions) -> float:
    """The lambda a grid or a single solve begins with."""
    return path.lambdas[0] if path.kind == "grid" else path.lam


def walk(
    solver: Solver,
    path: PathOptions,
    start: PathStart | None,
    boundary: Boundary,
    emit: Emit,
    sides: TwoSided | None = None,
) -> Status:
    """Solve lambda after lambda from where `solver` and `sides` stand, handing each to `emit` as it is solved.

    Returns
    -------
    Status
        CONVERGED at the end of the path or grid; INTERRUPTED or TIME_LIMIT where `boundary` stopped it, with the solver
        at a rebase point; a limit's status where a breakpoint could not be certified within it.
    """
    sides = sides or begin_sides(path, start)
    while True:
        if path.is_path:
            tolerance, relative, exact = path.kappa * path.eps, path.relative, path.kind == "regpath"
        else:
            tolerance, relative, exact = path.tolerance, path.relative, True
        status, point = solver.solve(tolerance, boundary, relative=relative, exact=exact)
        if point is None:
            return status
        if sides is None or start is None:
            following = following_lambda(solver, path, start, status, point)
        else:
            following = between_or_below(solver, path, start, sides, status, point)
        if following.again:
            keep_dual(solver, following.lam, 0)
            continue
        emit(snapshot(solver, status, point, following.low))
        if math.isnan(following.lam):
            return following.status
        move(solver, path, following.lam)


@dataclass(frozen=True)
class Following:
    """What comes after a solved lambda: the next one (nan: the end), and how far down this one reaches."""

    lam: float
    low: float
    status: Status = Status.CONVERGED
    again: bool = False
    """The first lambda did not cover everything above it: start at this larger one."""


def following_lambda(
    solver: Solver, path: PathOptions, start: PathStart | None, status: Status, point: Certificate
) -> Following:
    """The next lambda of the path or grid."""
    index = solver.at.breakpoint
    if not path.is_path:
        last = path.kind == "single" or index + 1 == len(path.lambdas)
        return Following(math.nan if last else path.lambdas[index + 1], point.lam)
    assert start is not None
    if point.gap >= path.eps:
        return Following(math.nan, point.lam, status)
    if index == 0 and path.rule == "one_sided" and point.lam < start.lam_top:
        worst = worst_gap_above(point, start.hinge_at_zero, start.lam_top)
        if worst > path.eps * (1.0 + 1e-12):
            return Following(min(2.0 * point.lam, start.lam_top), point.lam, again=True)
    low = lower_end(point, path.eps, path.rule)
    if low <= lowest(path, start):
        return Following(math.nan, low)
    if index + 1 >= path.max_breakpoints:
        return Following(math.nan, low, Status.PASS_LIMIT)
    return Following(low, low)


def begin_sides(path: PathOptions, start: PathStart | None) -> TwoSided | None:
    """What `rule=two_sided` keeps, before its first lambda."""
    if start is None or path.rule != "two_sided":
        return None
    return two_sided.begin(start.hinge_at_zero, start.psi, start.psi_norm2, start.lam_top)


def between_or_below(
    solver: Solver, path: PathOptions, start: PathStart, sides: TwoSided, status: Status, point: Certificate
) -> Following:
    """The next lambda of a two-sided path: inside the first interval that is not certified, else below the last one."""
    goal, floor = Goal(path.eps, path.relative), lowest(path, start)
    if goal.excess(point.primal, point.dual) >= 0.0:
        return Following(math.nan, point.lam, status)
    last = all(p.lam > point.lam for p in sides.points)
    sides.add(solved(point, worst_hinge(solver) if path.relative else math.inf), solver.state.w)
    lam = sides.advance(goal, start.lam_top)
    if lam is None and sides.finish(goal, floor):
        return Following(math.nan, sides.cells[-1].low if last else point.lam)
    if solver.at.breakpoint + 1 >= path.max_breakpoints:
        return Following(math.nan, point.lam, Status.PASS_LIMIT)
    return Following(max(sides.step(goal, path.kappa), floor) if lam is None else lam, point.lam)


def worst_hinge(solver: Solver) -> float:
    """The largest hinge of a block at the last exact pass, in units of the least loss of its wrong labellings."""
    P = solver.problem
    least = np.array([P.least_loss(i) for i in range(P.n)])
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(np.max(np.where(solver.hinges > 0.0, solver.hinges / least, 0.0)))


FLOOR = 1e-12
"""No path goes below this share of its top: on data that are not separable the hinge never falls to eps."""
TWO_SIDED_FLOOR = 1e-9
"""The same where the last lambda is solved, and not only reached: psi = lambda w is a small difference of large sums,
whose rounding would show in the gap."""


def lowest(path: PathOptions, start: PathStart) -> float:
    """Where the path may end although its certificate does not reach down to zero."""
    floor = TWO_SIDED_FLOOR if path.rule == "two_sided" else FLOOR
    return max(path.lambda_min, floor * start.lam_top)


def move(solver: Solver, path: PathOptions, lam: float) -> None:
    """Take the solver to the next lambda by the chosen warm start."""
    index = solver.at.breakpoint + 1
    warm = ("keep_primal" if path.rule == "paper" else "keep_dual") if path.is_path else path.warm_start
    if warm == "none":
        restart(solver, lam, index)
    elif warm == "keep_primal":
        keep_primal(solver, lam, index)
    else:
        keep_dual(solver, lam, index)


def snapshot(solver: Solver, status: Status, point: Certificate, low: float) -> Breakpoint:
    """The present lambda as a breakpoint; copies all arrays."""
    at = solver.at
    # the first one's share includes the path's start and smaller first lambdas that were given up
    calls_before, seconds_before = (at.calls_before, at.seconds_before) if at.breakpoint else (0, 0.0)
    calls = solver.oracle_calls - calls_before
    return Breakpoint(
        index=at.breakpoint,
        point=point,
        status=status,
        lambda_low=low,
        effective_passes=calls / solver.problem.n,
        oracle_calls=calls,
        seconds=at.seconds - seconds_before,
        weights=np.array(solver.weights if solver.weights.size else solver.state.w),
        block_gap=solver.state.gap.copy(),
        supports=pack(solver.state.pool, solver.problem.label_ptr, active_only=True),
    )


def check_choices(problem: Problem, solver_options, path: PathOptions) -> None:
    """Combinations that cannot be certified are errors that say so."""
    if path.is_path and solver_options.averaging != "none":
        raise ValueError(
            "solver.averaging: an averaged w has no place on a path, whose certificates need the w of the supports; "
            "use path=grid or path=single, or averaging=none"
        )
    if path.is_path:
        require_cone(problem)
