"""An accelerated proximal-point method over cached passes, which needs few exact passes.

A BCFW pass moves w while it calls the oracle; passes over the cache then solve proximal problems (`catalyst`). The mean of
their points is certified, or, where the rule of a path needs w(alpha) itself, w = v after a final phase. With
`exact_passes=at_mean` (`at_mean`) exact passes are made at the mean.
"""

from __future__ import annotations

import numpy as np

from gapwise.stages.solver.catalyst import SPECS, Proximal, ProximalCounts
from gapwise.stages.solver.codes import CACHE_ONLY, ORACLE_ALWAYS
from gapwise.stages.solver.counts import Arrays
from gapwise.stages.solver.dual_point import DualPoint
from gapwise.stages.solver.exact import exact_pass, judged, left_for_oracle
from gapwise.stages.solver.method import Ended, Method
from gapwise.stages.solver.objective import Certificate, Goal
from gapwise.stages.solver.options import AT_MEAN, CachedPassOptions
from gapwise.stages.solver.visits import visit

FINISH_PASSES = 10
"""Cached passes between two exact passes of the final phase."""

NEAR = 30.0
"""The mean's gap over cached labellings (0.04 to 0.6 of the estimate) is computed once the estimate is below this multiple
of the tolerance."""

SURE = 0.95
"""An exact pass for the mean is made once this oracle-free gap is below this share of the tolerance. Below 1e-2 the exact
gap was 1.00 to 1.16 times as large. A pass that comes too early is not wasted: its labellings stay in the cache."""

Options = CachedPassOptions


class Accelerated(Method[Options]):
    """BCFW passes, which move w while they call the oracle, and cached passes after each of them.

    The mean is certified unless certificates need w(alpha). `proximal` has the proximal problems.
    """

    specs = (*Method.specs, *SPECS)
    own: ProximalCounts

    @classmethod
    def of(cls, options: Options) -> type[Accelerated]:
        """The class whose exact passes are the options'."""
        from gapwise.stages.solver.at_mean import AcceleratedAtMean

        return AcceleratedAtMean if options.exact_passes == AT_MEAN else cls

    def prepare(self) -> None:
        """The proximal problems."""
        self.solve_with(ProximalCounts())

    def solve_with(self, counts: ProximalCounts) -> None:
        """Take these scalars, and proximal problems that count in them."""
        self.own = counts
        self.proximal = Proximal(self.it, self.options.acceleration, self.own_primal, counts)

    @property
    def point(self) -> np.ndarray:
        """(d,): the mean, if there is one."""
        return self.proximal.point

    @property
    def rewrites_w(self) -> bool:
        """Whether the mean is certified."""
        return self.own_primal

    @property
    def unused(self) -> int:
        """Labellings without weight that so many passes have not chosen are dropped."""
        return self.options.acceleration.unused_passes

    def load(self) -> None:
        """Passes with the oracle and over the cache."""
        self.proximal.warm_up()

    def arrays(self) -> dict[str, np.ndarray]:
        """The mean."""
        return self.proximal.arrays()

    def restore(self, arrays: Arrays) -> None:
        """The same; ValueError if it does not fit the problem."""
        self.proximal.restore(arrays)

    def advance(self, goal: Goal) -> Ended | None:
        """An outer iteration; or, if one is due, an exact pass at a fixed point, which may end the solve."""
        if not self.it.counts.exact_due:
            self.outer(goal)
            return None
        point, _ = exact_pass(self.it, self.proximal.point)
        self.it.weights = np.array(self.it.weights)  # they stay when the mean moves on
        ended = ended_with(self.it, self.proximal, point, goal)
        if ended is None and not self.proximal.own_point:
            self.finish(point.gap)
        return ended

    def start(self) -> None:
        """A path that goes up and down counts the passes without use anew, and so keeps labellings."""
        if self.it.ledger.revisits:
            self.it.counts.marks = []
        self.proximal.start()

    def outer(self, goal: Goal) -> None:
        """One BCFW pass and the cached passes after it."""
        it, proximal = self.it, self.proximal
        self.bcfw_pass()
        dual, excess = it.dual_and_excess()
        estimate = it.known_gap + excess
        first = proximal.measure()
        bound = left_for_oracle(it, goal.bound(dual))
        if estimate <= bound and not proximal.own_point:
            proximal.settle()
            return
        if first:
            proximal.begin()
        if not first or estimate <= bound:
            proximal.watch(estimate)
            proximal.cached_passes(estimate)
            limit = bool(it.ledger.limit())
            if proximal.own_point and (limit or estimate <= NEAR * bound):
                limit |= proximal.mean_gap() <= SURE * bound
            if limit:
                proximal.settle()

    def bcfw_pass(self) -> None:
        """A step of every block with the oracle, so that w moves; then labellings of no use are dropped."""
        it = self.it
        it.make_room(it.problem.n)
        it.state.curvature[:] = 0.0
        visit(it, vertex_from=ORACLE_ALWAYS)
        it.mark_pass(self.unused)

    def finish(self, gap: float) -> None:
        """Cached passes between two exact passes at w(alpha)."""
        options, it = self.options.acceleration, self.it
        it.state.skip[:] = 0
        for _ in range(FINISH_PASSES):
            visit(it, vertex_from=CACHE_ONLY, rounds=options.rounds)
            if it.known_gap < 0.5 * options.inner_target * gap:
                break
        it.counts.exact_due = True


def ended_with(it: DualPoint, proximal: Proximal, point: Certificate, goal: Goal) -> Ended | None:
    """Record an exact pass; how the lambda ends with it, the proximal problem then left, or None."""
    it.ledger.record(point)
    status = judged(it, point, goal)
    if status is None:
        return None
    proximal.leave()
    return status, point


METHOD = Accelerated
