"""Solvers at one lambda, and the boundary that never stops them."""

from __future__ import annotations

from typing import Any

from solved import method_named

from gapwise.stages.problems.parallel import HERE, Spread
from gapwise.stages.problems.protocol import Problem
from gapwise.stages.solver.method import AnyMethod
from gapwise.stages.solver.methods import method, method_options
from gapwise.stages.solver.options import CacheOptions
from gapwise.stages.solver.state import truth_pool

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
