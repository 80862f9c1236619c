"""`path.rule=two_sided`: lambdas certified from the solved ones on both sides (proof: `stages.solver.path.cells`).

Lambdas are solved from the largest down. If the interval between two of them cannot be certified, the lambda at which it
fails by most is solved next, and both parts are tried. So the rule keeps of the axis the solved point down to which
everything is certified, and those below it, whose intervals are not certified yet.

Below the last of them the step is theta times what would certify between two optima; theta grows and shrinks with the slack
of the intervals.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

import numpy as np

from gapwise.stages.problems.stored import check_array
from gapwise.stages.solver.counts import number
from gapwise.stages.solver.objective import Certificate, Mixture
from gapwise.stages.solver.options import PathOptions, Status
from gapwise.stages.solver.path.axis import Axis, fall_of, restored_members, zero_member
from gapwise.stages.solver.path.cells import (
    CELL_COLUMNS,
    Cell,
    Pair,
    cells_of,
    flat_cells,
    model_of,
    ratio,
)
from gapwise.stages.solver.path.rule import NEGLIGIBLE, PAST_TOP, Following, PathStart, Solved

if TYPE_CHECKING:
    from gapwise.records import Json
    from gapwise.stages.solver.counts import ArraySpec


CELLS: ArraySpec = ("path_cells", ("cell", "cell_column"), "f8", "cells certified so far: columns of `flat_cells`")

NARROW = 1e-6
"""Two lambdas this close, as a share, whose interval is not certified although both are solved to kappa eps: more lambdas
between them will not help, so the path ends with STALLED instead of never."""

MIXED = 0.98
"""A mixture of two solved points certifies a lambda between them up to this share of eps; what is left lets the cells meet
there."""

THETA = (0.5, 1.5)
"""Range of the step's factor theta."""
THETA_APART = (0.5, 3.6)
"""The same where primal and dual point are not each other's: both are then closer to the optimum than their gap says. An
interval that fails then often takes one more lambda without oracle calls."""
SHORTER, SHORTEST = 0.9, 2.5
"""Where that lambda takes oracle calls, the range ends so much earlier from then on, but not below the second number."""
AFTER_FAILURE = 0.75
"""The factor applied to theta when an interval fails."""
PAST_END = 0.25
"""Share of the lambda at which the path would end (`rule.negligible`) if w stayed, below which no step goes: w still grows,
but lambdas far below the end of the path cost more than all others together."""

MANY, CLOSE = 20.0, 8.0
"""Below a lambda that took more than so many effective passes, the next is at most this factor smaller. Such lambdas take
more and more cached steps, and from a start far above they can take more than with the lambdas between."""


@dataclass
class TwoSided(Axis):
    """The points of intervals that are not certified yet, the cells certified so far, the length of steps."""

    kappa, kappa_apart = 0.7, 0.84

    cells: list[Cell] = field(default_factory=list)
    """From the top down."""
    theta: float = 1.0
    """The factor of the next step."""
    fall: float = math.nan
    """d log R / d log lambda between the last two certified points."""
    most: float = math.inf
    """Where the range of theta ends, if before that of `theta_range`."""
    passes: float = 0.0
    """Effective passes that the lowest lambda took."""

    # -- the rule -----------------------------------------------------------------------------------------------------
    @classmethod
    def begin(cls, path: PathOptions, start: PathStart | None) -> Self:
        """The rule before any lambda is solved: w = 0 covers everything from `lam_top` up."""
        assert start is not None
        everything_above = Cell(-1, start.lam_top, math.inf, (1.0, 0.0), (1.0, 0.0), 0.0, 0.0)
        return cls(path, start, [zero_member(start)], cells=[everything_above])

    def following(self, solved: Solved) -> Following:
        """The next lambda: inside the first interval that is not certified, otherwise below the last lambda."""
        path, point = self.path, solved.point
        assert point is not None
        if not self.add(solved, point):
            return Following(math.nan, point.lam, solved.status)
        lam = self.advance()
        if lam is None and (ended := self.finish()):
            return Following(math.nan, self.lower_end(point.lam), ended)
        narrow = lam is not None and self.members[1].point.lam >= (1.0 - NARROW) * self.members[0].point.lam
        if narrow or solved.index + 1 >= path.max_breakpoints:
            return Following(math.nan, point.lam, Status.STALLED if narrow else Status.PASS_LIMIT)
        return Following(self.below_last() if lam is None else lam, point.lam)

    def add(self, solved: Solved, point: Certificate) -> bool:
        """Add a solved lambda to the members; False if its gap misses the bound."""
        if self.gap_bound(self.path.eps).excess(point.primal, point.dual) >= 0.0:
            return False
        if solved.oracle_calls and self.mixture(point.lam) is not None:  # shorter steps from now on
            self.most = max(SHORTER * min(self.most, THETA_APART[1]), SHORTEST)
            self.theta = min(self.theta, self.most)
        if point.lam < self.members[-1].point.lam:
            self.passes = solved.passes
        self.insert(solved, solved.worst_hinge() if self.path.relative else math.inf)
        return True

    def mixture(self, lam: float) -> Mixture | None:
        """The best mixture of the two points around lambda, if w may differ from that of the dual point."""
        if self.path.relative or not self.apart:
            return None
        for k, (above, below) in enumerate(zip(self.members, self.members[1:], strict=False)):
            if below.point.lam < lam < above.point.lam:
                pair = self.pair(k)
                share = pair.best(lam)[0]
                w = share[1] * below.w
                if math.isfinite(above.point.lam):  # not w = 0
                    w += share[0] * above.w
                return Mixture(w, pair.hinge(share), MIXED * self.path.eps)
        return None

    def lower_end(self, lam: float) -> float:
        """Down to where a solved lambda certifies once the path has ended: the last one to the end, others to themselves."""
        return self.cells[-1].low if lam == self.members[-1].point.lam else lam

    def advance(self) -> float | None:
        """Certify intervals from the top down; returns the lambda to solve inside the first that fails, or None."""
        bound = self.gap_bound(self.path.eps)
        while len(self.members) > 1:
            pair, interval = self.pair(0), self.cells[-1].interval + 1
            low, high = pair.below.lam, min(pair.above.lam, self.zero.lam_top)
            cells = pair.cells(bound, interval, low, high)
            if not cells and low < high:
                if self.path.relative or not self.apart:
                    self.theta = max(AFTER_FAILURE * self.theta, self.theta_range[0])
                return pair.worst(bound, low, high)
            if low < high and pair.above.norm2 > 0.0:
                self.adapt(pair)
            if (fall := fall_of(pair.above, pair.below)) > 0.0:
                self.fall = fall
            self.cells += cells or [Cell(interval, low, low, (0.0, 1.0), (0.0, 1.0), pair.inner, pair.dual_inner)]
            del self.members[0]
        return None

    def finish(self) -> Status | None:
        """How the path ends if its last point certifies all smaller lambdas it should reach, else None; adds its cell."""
        cells, ended = self.below(self.path.eps, self.cells[-1].interval + 1)
        self.cells += cells
        return ended

    # -- steps --------------------------------------------------------------------------------------------------------
    @property
    def theta_range(self) -> tuple[float, float]:
        """The range of theta."""
        return THETA_APART if self.apart else THETA

    def adapt(self, pair: Pair) -> None:
        """Choose theta from the slack of the interval: what its middle adds to the gap grows with the square of the step."""
        middle, bound = math.sqrt(pair.below.lam) * math.sqrt(pair.above.lam), self.gap_bound(self.path.eps)
        t, tau = pair.best(middle)
        primal, own = pair.primal(middle, t), 0.5 * (pair.above.gap + pair.below.gap)
        added = max(primal - pair.dual(middle, tau) - own, 1e-3 * own, 1e-300)
        left = bound.eps * (primal if bound.relative else 1.0) - own
        wanted = self.theta * math.sqrt(max(left, 0.0) / added)
        least, most = self.theta_range
        self.theta = min(max(wanted, least), most, self.most)

    def below_last(self) -> float:
        """A step below the last lambda; no lower than where the path ends."""
        last, bound, start = self.members[-1].point, self.gap_bound(self.path.eps), self.zero
        eps = bound.eps * (last.primal if bound.relative else 1.0)
        lam = self.step(last, self.theta, eps, math.nan if bound.relative else self.fall)
        out_of_reach = bound.relative or last.hinge - last.lam * last.norm2 > bound.eps
        if self.path.lambda_min == 0.0 and out_of_reach:
            far = math.inf if start.hinge_at_zero - last.hinge >= eps else PAST_TOP * start.lam_top
            lam = max(lam, PAST_END * min(ratio(2.0 * NEGLIGIBLE * eps, last.norm2), far))
        return max(lam, last.lam / CLOSE if self.passes > MANY else 0.0, self.floor_at(self.path.eps))

    # -- committed state ----------------------------------------------------------------------------------------------
    @property
    def specs(self) -> tuple[ArraySpec, ...]:
        """The arrays of `packed`."""
        return (*self.member_specs, CELLS)

    def packed(self) -> tuple[dict[str, np.ndarray], dict[str, Json]]:
        """Arrays of `specs`, and what steps depend on."""
        most: dict[str, Json] = {"most": self.most} if self.most < math.inf else {}
        steps: dict[str, Json] = {"theta": self.theta, "fall": self.fall, "passes": self.passes, **most}
        return {**self.packed_members(), "path_cells": flat_cells(self.cells)}, steps

    @classmethod
    def restored(
        cls, path: PathOptions, start: PathStart | None, arrays: Mapping[str, np.ndarray], attrs: Mapping[str, object]
    ) -> Self:
        """The rule in its packed state; ValueError, naming the array, if one is not what `packed` gives."""
        assert start is not None
        cells = cells_of(check_array("path_cells", arrays["path_cells"], (None, CELL_COLUMNS), float))
        theta, fall, passes = (number(attrs, name) for name in ("theta", "fall", "passes"))
        most = number(attrs, "most") if "most" in attrs else math.inf
        members = restored_members(arrays)
        return cls(path, start, members, cells=cells, theta=theta, fall=fall, most=most, passes=passes)

    # -- results ------------------------------------------------------------------------------------------------------
    def model(self, solved: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The cells, with the shares of their dual points and the inner products that certify them."""
        return model_of(self.cells)


RULE = TwoSided
