"""Solvers at one lambda, and the boundary that never stops them."""

from __future__ import annotations

from typing import Any

from gapwise.stages.parallel import HERE, Spread
from gapwise.stages.problems.protocol import Problem
from gapwise.stages.solver.block_method import BlockMethod
from gapwise.stages.solver.methods import method_options
from gapwise.stages.solver.options import CacheOptions, PathOptions
from gapwise.stages.solver.path.walk import begin

LAM = 0.3
ACCELERATED_LAM = 0.05


def solver_of(
    problem: Problem, lam: float = LAM, *, seed: int = 0, spread: Spread = HERE, **choices: Any
) -> BlockMethod:
    """A solver with these options; `cache` is the cache's kind (by default none) and `capacity` its size."""
    cache = {"kind": choices.pop("cache", "none")}
    if "capacity" in choices:
        cache["capacity"] = choices.pop("capacity")
    options = method_options(cache=CacheOptions(**cache), **choices)
    options.check()
    return begin(problem, options, PathOptions(rule="single", lam=lam), None, seed, spread=spread)


def accelerated_of(
    problem: Problem, method: str = "accelerated", lam: float = ACCELERATED_LAM, *, own_primal: bool = True
) -> BlockMethod:
    """A solver of a method with cached passes; with `own_primal` False it certifies the w of the supports."""
    solver = solver_of(problem, lam, method=method, cache="gap", max_passes=3000.0)
    solver.own_primal = own_primal
    return solver


def never(solver: BlockMethod) -> None:
    """A boundary that neither stops nor commits."""
