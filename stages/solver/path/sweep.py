"""The order in which `path.rule=anytime` solves lambdas: sweeps over the axis, down and up in turn, level by level."""

from __future__ import annotations

import math
from dataclasses import dataclass

from gapwise.stages.solver.path.axis import SLACK, Axis, Worst
from gapwise.stages.solver.path.cells import Pair, ratio
from gapwise.stages.solver.path.rule import closing
from gapwise.stages.solver.path.stride import LAST_HINGE

STEP = 1.5
"""Length of the steps below the last lambda, where 1 is what would certify between two optima."""
NEAR = 0.2
"""Share of an interval (in log lambda) within which its worst lambda moves to an end that is to be solved again."""


@dataclass
class Sweep:
    """The direction of the sweep over an axis, which says what is wanted."""

    axis: Axis
    falling: bool = True
    """Whether the sweep goes down."""

    @property
    def level(self) -> float:
        """The bound that it is to reach."""
        return self.axis.levels.present

    def following_lambda(self, here: float) -> float | None:
        """The nearest lambda that is wanted, in the direction of the sweep if there is one.

        None where no level is left: rounding shows to the next one even at the largest solved lambda.
        """
        wanted = self.wanted_at_level()
        if not wanted:
            return None
        lams = [worst.lam for worst in wanted]
        below, above = [lam for lam in lams if lam <= here], [lam for lam in lams if lam >= here]
        if not (below if self.falling else above):
            self.falling = not self.falling
        return max(below) if self.falling else min(above)

    def wanted_at_level(self) -> list[Worst]:
        """What is wanted, at the next level if everything reaches this one; [] where no level is left."""
        while not (wanted := self.wanted()):
            self.axis.levels.done = self.level
            members = self.axis.members
            if self.axis.rounding_at(self.level) >= members[0 if len(members) == 1 else 1].point.lam:
                return []
        return wanted

    def wanted(self) -> list[Worst]:
        """The worst lambda of each interval whose bound is above the level, and one below the last if that is."""
        open_intervals = []
        for k in range(len(self.axis.members) - 1):
            pair, worst = self.axis.interval(k)
            if worst.bound > closing(self.level) / SLACK:
                open_intervals.append(Worst(self.again(pair, worst.lam), worst.bound))
        if not self.axis.bottom(self.level)[1]:
            open_intervals.append(Worst(self.below_last(), math.inf))
        return open_intervals

    def again(self, pair: Pair, lam: float) -> float:
        """`lam`, or the end of the interval that is close to it and was solved for an earlier level."""
        width = math.log(min(pair.above.lam, self.axis.top(self.level)) / pair.below.lam)
        for end in (pair.above, pair.below):
            if math.isfinite(end.lam) and self.axis.coarse(end) and abs(math.log(lam / end.lam)) <= NEAR * width:
                return end.lam
        return lam

    def below_last(self) -> float:
        """A step below the last lambda; or itself, if its R might be small enough once it is solved for this level."""
        point, level = self.axis.members[-1].point, self.level
        if self.axis.coarse(point) and (point.hinge - point.gap <= level or point.gap > level):
            return point.lam
        room = ratio(STEP**2 * (1.0 - self.axis.path.kappa) * level, point.lam * point.norm2)
        lam = point.lam * math.exp(-2.0 * math.acosh(1.0 + room))
        above = self.axis.members[-2].point
        if math.isfinite(above.lam) and 0.0 < point.hinge < above.hinge:
            fall = math.log(above.hinge / point.hinge) / math.log(above.lam / point.lam)
            lam = max(lam, point.lam * min(LAST_HINGE * level / point.hinge, 1.0) ** (1.0 / fall))
        return max(lam, min(self.axis.floor_at(level), point.lam))
