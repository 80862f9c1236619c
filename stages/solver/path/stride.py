"""How far below the last lambda the next one lies, on a path whose intervals are certified from both sides.

Between two optima a step of theta = 1 is what would certify; theta grows and shrinks with the slack of the intervals.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

from gapwise.stages.solver.options import PathOptions
from gapwise.stages.solver.packed import number
from gapwise.stages.solver.path.cells import Goal, Pair, SolvedPoint, ratio
from gapwise.stages.solver.path.rule import NEGLIGIBLE, PAST_TOP

if TYPE_CHECKING:
    from gapwise.records import Json

THETA = (0.5, 1.5)
"""Range of the step's factor theta."""
THETA_APART = (0.5, 3.6)
"""The same where primal and dual point are not each other's: both are then closer to the optimum than their gap says. An
interval that fails then often takes one more lambda without oracle calls."""
SHORTER, SHORTEST = 0.9, 2.5
"""Where that lambda takes oracle calls, the range ends so much earlier from then on, but not below the second number."""
AFTER_FAILURE = 0.75
"""The factor applied to theta when an interval fails."""
LAST_HINGE = 0.85
"""The last lambda is chosen so that R is about this share of eps; a smaller share would cost extra breakpoints."""

PAST_END = 0.25
"""Share of the lambda at which the path would end (`rule.negligible`) if w stayed, below which no step goes: w still grows,
but lambdas far below the end of the path cost more than all others together."""

MANY, CLOSE = 20.0, 8.0
"""Below a lambda that took more than so many effective passes, the next is at most this factor smaller. Such lambdas take
more and more cached steps, and from a start far above they can take more than with the lambdas between."""


@dataclass
class Stride:
    """The factor of the next step, learned from the intervals that were certified so far."""

    path: PathOptions
    hinge_at_zero: float
    lam_top: float
    theta: float = 1.0
    fall: float = math.nan
    """d log R / d log lambda between the last two certified points."""
    most: float = math.inf
    """Where the range of theta ends, if before that of `theta_range`."""
    passes: float = 0.0
    """Effective passes that the lowest lambda took."""

    def restrain(self) -> None:
        """A lambda between solved ones has taken oracle calls: shorter steps from now on."""
        self.most = max(SHORTER * min(self.most, THETA_APART[1]), SHORTEST)
        self.theta = min(self.theta, self.most)

    def shorten(self, apart: bool) -> None:
        """An interval failed; `apart`: whether a solved w differs from that of its dual point."""
        self.theta = max(AFTER_FAILURE * self.theta, theta_range(apart)[0])

    def adapt(self, pair: Pair, goal: Goal, apart: bool) -> None:
        """Choose theta from the slack of the interval: what its middle adds to the gap grows with the square of the step."""
        middle = math.sqrt(pair.below.lam) * math.sqrt(pair.above.lam)
        t, tau = pair.best(middle)
        primal, own = pair.primal(middle, t), 0.5 * (pair.above.gap + pair.below.gap)
        added = max(primal - pair.dual(middle, tau) - own, 1e-3 * own, 1e-300)
        left = goal.eps * (primal if goal.relative else 1.0) - own
        wanted = self.theta * math.sqrt(max(left, 0.0) / added)
        least, most = theta_range(apart)
        self.theta = min(max(wanted, least), most, self.most)

    def note_fall(self, pair: Pair) -> None:
        """Measure how the hinge falls over a certified interval."""
        if 0.0 < pair.below.hinge < pair.above.hinge:
            self.fall = math.log(pair.above.hinge / pair.below.hinge) / math.log(pair.above.lam / pair.below.lam)

    def below(self, last: SolvedPoint, goal: Goal) -> float:
        """The next lambda to solve, below that of `last`."""
        eps = goal.eps * ((0.5 * last.lam * last.norm2 + last.hinge) if goal.relative else 1.0)
        room = ratio(self.theta**2 * (1.0 - self.path.kappa) * eps, last.lam * last.norm2)
        lam = last.lam * math.exp(-2.0 * math.acosh(1.0 + room))
        if self.fall > 0.0 and not goal.relative:
            lam = max(lam, last.lam * min(ratio(LAST_HINGE * goal.eps, last.hinge), 1.0) ** (1.0 / self.fall))
        out_of_reach = goal.relative or last.hinge - last.lam * last.norm2 > goal.eps
        if self.path.lambda_min == 0.0 and out_of_reach:
            far = math.inf if self.hinge_at_zero - last.hinge >= eps else PAST_TOP * self.lam_top
            lam = max(lam, PAST_END * min(ratio(2.0 * NEGLIGIBLE * eps, last.norm2), far))
        return max(lam, last.lam / CLOSE) if self.passes > MANY else lam

    # -- committed state ----------------------------------------------------------------------------------------------
    def packed(self) -> dict[str, Json]:
        """What changes along a path."""
        most: dict[str, Json] = {"most": self.most} if self.most < math.inf else {}
        return {"theta": self.theta, "fall": self.fall, "passes": self.passes, **most}

    def restored(self, attrs: Mapping[str, object]) -> Self:
        """This stride with what `packed` has returned, which may be among other attributes."""
        most = number(attrs, "most") if "most" in attrs else math.inf
        passes = number(attrs, "passes") if "passes" in attrs else 0.0
        return replace(self, theta=number(attrs, "theta"), fall=number(attrs, "fall"), most=most, passes=passes)


def theta_range(apart: bool) -> tuple[float, float]:
    """The range of theta."""
    return THETA_APART if apart else THETA
