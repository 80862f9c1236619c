"""`path.rule=grid` (`path=grid`): the lambdas of `path.lambdas`, each begun where `path.warm_start` says."""

from __future__ import annotations

import math
from itertools import pairwise

from gapwise.stages.solver.options import PathOptions, check
from gapwise.stages.solver.path.capabilities import OF_PATHS, Capabilities
from gapwise.stages.solver.path.given import Given


class Grid(Given):
    """`path.lambdas`."""

    capabilities = Capabilities(kappa=0.9, finds_lambdas=False, two_points=True, unread=("lambda", *OF_PATHS))

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


RULE = Grid
