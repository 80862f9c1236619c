"""Init path: the largest lambda worth solving, and the dual point of w = 0 (O16 Alg. 6, l. 1-6)."""

from __future__ import annotations

from gapwise.stages.problems.parallel import HERE, Spread
from gapwise.stages.problems.protocol import Problem
from gapwise.stages.solver.options import PathOptions
from gapwise.stages.solver.path.rule import PathStart


def init_path(problem: Problem, path: PathOptions, spread: Spread = HERE) -> PathStart | None:
    """The start of the path according to its rule; None if lambdas are given.

    Raises
    ------
    ValueError
        If a bound on the weights is neither 0 nor infinite.
    """
    return path.can.start(problem, path, spread)
