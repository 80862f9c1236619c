"""Solvers at one lambda, and the boundary that never stops them."""

from __future__ import annotations

import math
from typing import Any

from solved import method_named

from gapwise.stages.problems.parallel import HERE, Spread
from gapwise.stages.problems.protocol import Problem
from gapwise.stages.solver.exact import ExactGaps, certificate_of, exact_pass
from gapwise.stages.solver.method import AnyMethod
from gapwise.stages.solver.methods import method, method_options
from gapwise.stages.solver.objective import Certificate, Goal
from gapwise.stages.solver.options import CacheOptions
from gapwise.stages.solver.state import truth_pool
from gapwise.stages.solver.supports import Pool

LAM = 0.3
ACCELERATED_LAM = 0.05


def solver_of(problem: Problem, lam: float = LAM, *, seed: int = 0, spread: Spread = HERE, **choices: Any) -> AnyMethod:
    """A solver with these options; `cache` is the cache's kind (by default none) and `capacity` its size."""
    cache = {"kind": choices.pop("cache", "none")}
    if "capacity" in choices:
        cache["capacity"] = choices.pop("capacity")
    options = method_options(cache=CacheOptions(**cache), **method_named(choices))
    options.check()
    pool = truth_pool(problem)
    solver = method(options.method).begin(problem, options, pool, seed, spread=spread)
    solver.start_lambda(lam, 0)
    return solver


def accelerated_of(problem: Problem, method: str = "accelerated", lam: float = ACCELERATED_LAM) -> AnyMethod:
    """A solver of a method with cached passes."""
    return solver_of(problem, lam, method=method, cache="gap", max_passes=3000.0)


def never(solver: AnyMethod) -> None:
    """A boundary that neither stops nor commits."""


def pass_of(solver: AnyMethod) -> tuple[Certificate, ExactGaps]:
    """An exact pass at the point that the method certifies next."""
    return exact_pass(solver.it, solver.point)


def dual_of(solver: AnyMethod) -> float:
    """The dual value of a certificate at present."""
    return certificate_of(solver.it, solver.point, 0.0).dual


def take_steps(solver: AnyMethod) -> None:
    """The steps of `bcfw` until its next rebase point, without an exact pass."""
    solver.counts.exact_due = False
    solver.advance(Goal(math.nan))


def slots_of(pool: Pool, i: int) -> list[int]:
    """The slots of the atoms of block i, in list order."""
    slots, s = [], int(pool.head[i])
    while s >= 0:
        slots.append(s)
        s = int(pool.next[s])
    return slots
