"""An accelerated proximal-point method over cached passes, which needs few exact passes.

A BCFW pass moves w while it calls the oracle; passes over the cache then solve proximal problems (`catalyst`). The mean of
their points is certified. With `exact_passes=at_mean` (`at_mean`) exact passes are made at the mean.
"""

from __future__ import annotations

import numpy as np

from gapwise.stages.solver.catalyst import Catalyst
from gapwise.stages.solver.exact import exact_pass, left_for_oracle
from gapwise.stages.solver.method import Ended
from gapwise.stages.solver.objective import Goal
from gapwise.stages.solver.options import AT_MEAN, CachedPassOptions

Options = CachedPassOptions


class Accelerated(Catalyst):
    """BCFW passes, which move w while they call the oracle, and cached passes after each of them."""

    @classmethod
    def of(cls, options: Options) -> type[Catalyst]:
        """The class whose exact passes are the options'."""
        from gapwise.stages.solver.at_mean import AcceleratedAtMean

        return AcceleratedAtMean if options.exact_passes == AT_MEAN else cls

    def advance(self, goal: Goal) -> Ended | None:
        """An outer iteration; or, if one is due, an exact pass at the mean, which may end the solve."""
        if not self.it.counts.exact_due:
            self.outer(goal)
            return None
        point, _ = exact_pass(self.it, self.point)
        self.it.weights = np.array(self.it.weights)  # they stay when the mean moves on
        return self.ended_with(point, goal)

    def outer(self, goal: Goal) -> None:
        """One BCFW pass and the cached passes after it; an exact pass is due where the mean's gap over them is small enough.

        That gap may be too small: below 1e-2 the exact one was 1.00 to 1.16 times as large. A pass that comes too early is
        not wasted, for its labellings stay in the cache. On OCR-small (eps = .01, five seeds) a path takes 120 (119 to 123)
        passes, and 119 (118 to 123) where the gap has to be below .95 of the tolerance.
        """
        it = self.it
        self.bcfw_pass()
        dual, excess = it.dual_and_excess()
        estimate = it.known_gap + excess
        first = self.measure()
        bound = left_for_oracle(it, goal.bound(dual))
        if first:
            self.centre_at_w()
        if not first or estimate <= bound:
            self.watch(estimate)
            self.cached_passes(estimate)
            it.counts.exact_due = self.mean_gap() <= bound or it.ledger.limit() is not None


METHOD = Accelerated
