"""The loop over lambda: solve, ask the rule for the next lambda, go there (O16 Alg. 6, 7; grids and single lambdas)."""

from __future__ import annotations

import math
from collections.abc import Generator
from functools import partial

import numpy as np

from gapwise.stages.problems.capabilities import EXACT, certainty_of
from gapwise.stages.problems.moves import own_metric, product_of
from gapwise.stages.problems.parallel import HERE, Spread
from gapwise.stages.problems.protocol import Problem
from gapwise.stages.solver.method import AnyMethod, Boundary
from gapwise.stages.solver.methods import method
from gapwise.stages.solver.options import MethodOptions, PathOptions, Status
from gapwise.stages.solver.path.breakpoints import Breakpoint, breakpoint_of
from gapwise.stages.solver.path.rule import PathRule, PathStart, Solved
from gapwise.stages.solver.state import pool_of, truth_pool, vertices_pool
from gapwise.stages.solver.supports import Supports


def begin(
    problem: Problem,
    options: MethodOptions,
    path: PathOptions,
    start: PathStart | None,
    seed: int,
    spread: Spread = HERE,
    dual: Supports | None = None,
) -> AnyMethod:
    """The method at the first lambda, at the dual point `dual` if one is given."""
    if start is None:
        pool, initial = truth_pool(problem) if dual is None else pool_of(problem, dual), 0
        lam = path.given[0]
    else:
        pool, lam, initial = vertices_pool(problem, start.labels, start.losses), start.lam, start.oracle_calls
    solver = method(options.method).begin(problem, options, pool, seed, spread=spread)
    solver.start_lambda(lam, 0, exact_due=path.can.starts_exactly)
    solver.counts.initial_calls = initial
    return solver


def in_metric_of(problem: Problem, rule: PathRule) -> PathRule:
    """The rule itself, whose inner products are from now on those of the problem's weights."""
    if own_metric(problem):
        rule.product = partial(product_of, problem)
    return rule


def walk(
    solver: AnyMethod, rule: PathRule, path: PathOptions, boundary: Boundary
) -> Generator[Breakpoint, None, Status]:
    """Solve one lambda after another from the state of `solver` and `rule`, yielding each when it is solved.

    Returns
    -------
    Status
        CONVERGED at the end of the path or grid; whatever `boundary` stopped it with, the solver then at a point that can
        be committed; a limit's status if a breakpoint could not be certified within it.
    """
    solver.ledger.revisits = rule.open_ended
    while True:
        # the bounds of an approximate oracle may be worse at a mixture
        mixture = rule.mixture(solver.counts.lam) if certainty_of(solver.problem) == EXACT else None
        status, point = solver.solve(rule.goal()._replace(mixture=mixture), boundary)
        if solver.stopped:
            return status
        index = solver.counts.breakpoint
        w, here = solver.primal(), (solver.ledger.calls_here, solver.ledger.passes_here)
        dual = (solver.it.dual_weights() if solver.rewrites_w else w) if rule.of_two_points() else None
        solved = Solved(index, status, point, w, lambda: worst_hinge(solver), *here, dual)
        following = rule.following(solved)
        yield breakpoint_of(solver, status, point, following.low, dual)
        if math.isnan(following.lam):
            return following.status
        solver.move_to(following.lam, index + 1, rule.warm_start())


def worst_hinge(solver: AnyMethod) -> float:
    """The largest hinge of a block at the last exact pass, in units of the least loss of its wrong labellings."""
    P = solver.problem
    least = np.array([P.least_loss(i) for i in range(P.n)])
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(np.max(np.where(solver.it.hinges > 0.0, solver.it.hinges / least, 0.0)))
