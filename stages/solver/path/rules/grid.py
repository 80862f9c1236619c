"""Given lambdas: `path.rule=grid` (`path=grid`), all of `path.lambdas`; `path.rule=single` (`path=single`), `path.lambda`.

Each is certified on its own, with no claim about any other, and begun where `path.warm_start` says.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING

from gapwise.stages.solver.objective import Goal
from gapwise.stages.solver.options import PathOptions, check
from gapwise.stages.solver.path.rule import OF_PATHS, Following, PathRule, Solved

if TYPE_CHECKING:
    from gapwise.stages.problems.parallel import Spread
    from gapwise.stages.problems.protocol import Problem


class Given(PathRule):
    """The lambdas of the configuration, in their order."""

    finds_lambdas, two_points = False, True

    @classmethod
    def start(cls, problem: Problem, path: PathOptions, spread: Spread) -> None:
        """There is nothing to find."""

    def goal(self) -> Goal:
        """`path.tolerance`."""
        return Goal(self.path.tolerance, self.path.relative)

    def warm_start(self) -> str:
        """`path.warm_start`."""
        return self.path.warm_start

    def following(self, solved: Solved) -> Following:
        """The next given lambda; reaching a limit at one of them does not prevent the others from being solved."""
        lams, k = self.lambdas(self.path), solved.index
        return Following(lams[k + 1] if k + 1 < len(lams) else math.nan, lams[k])


class Grid(Given):
    """`path.lambdas`."""

    unread = ("lambda", *OF_PATHS)

    @classmethod
    def lambdas(cls, path: PathOptions) -> tuple[float, ...]:
        """The lambdas, in their order."""
        return tuple(path.lambdas)

    @classmethod
    def check(cls, path: PathOptions) -> None:
        """Refuse lambdas that cannot be solved, and an order in which the primal point cannot be kept."""
        lams = path.lambdas
        ok = len(lams) > 0 and all(0 < value < math.inf for value in lams)
        check("path.lambdas", lams, ok, "a list of numbers > 0")
        check("path.lambdas", lams, len(set(lams)) == len(lams), "different values")
        decreasing = all(a >= b for a, b in pairwise(lams))
        ok = decreasing or path.warm_start != "keep_primal"
        check("path.lambdas", lams, ok, "decreasing values, for warm_start=keep_primal")


class Single(Given):
    """`path.lambda`."""

    unread = ("lambdas", "warm_start", *OF_PATHS)

    @classmethod
    def lambdas(cls, path: PathOptions) -> tuple[float, ...]:
        """The one lambda."""
        return (path.lam,)


RULE = Grid
