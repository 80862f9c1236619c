"""The accelerated method with its exact passes at a fixed point: each one both certifies and fills the caches.

`accelerated` alternates passes over the cache with exact passes that move w while they call the oracle, and certifies the
mean of its points when the cache promises success. Here every exact pass is made at the mean, w_bar, which stays where it
is meanwhile. Such a pass is a certificate, and the labellings that it adds to the caches are those that w_bar violates
most, in the region where the answer will be. So a solve is, once there is a mean,

    repeat
        cached passes with momentum, their points in the mean, until the gap of w_bar over cached labellings is at most
            max(of_exact E, of_tolerance eps), `rounds` times at most; E: the last exact gap, or what was predicted since
        an exact pass at w_bar, beginning with the blocks that are likeliest to surprise; it ends there, as a *partial
            pass*, if the gap that it then predicts is above eps
    until the exact gap is at most eps

The surprise of a block is its exact gap less its gap over the labellings that it had, both at w_bar. The blocks that a pass
begins with are those of the largest surprises at their last exact visits which make up the share `surprise` of the sum,
often a quarter of all. After them the gap is predicted from the exact gaps of these blocks and, for each of the others, its
gap over cached labellings and its last surprise. So a pass that would fail costs the calls of its first blocks only,
and one that is made whole asks no block twice. The first pass at a lambda is always whole, and so is the one after
`MOST_PARTIAL` partial ones.

Without caches there is nothing to pass over: the first lambda, and a lambda whose cached gap is far above the tolerance,
begin with moving passes, as in `accelerated`, until the gap of w_bar over cached labellings is below `start` times the
tolerance.

*On a path* the certificates of `path.rule=two_sided` take w_bar as the primal and alpha as the dual point
(`stages.solver.path.cells`); its warm start keeps alpha and the caches.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from gapwise.stages.problems.stored import check_array
from gapwise.stages.solver.capabilities import MethodCapabilities
from gapwise.stages.solver.codes import ORACLE_CALLS
from gapwise.stages.solver.gaps import ExactGaps, gaps_given
from gapwise.stages.solver.methods.accelerated import Accelerated, ProximalCounts
from gapwise.stages.solver.objective import Certificate
from gapwise.stages.solver.options import AccelerationOptions, CachedPassOptions, Status, check
from gapwise.stages.solver.oracles import Corners, bases, corners_at
from gapwise.stages.solver.supports import drop_unused

MOST_PARTIAL = 20
"""After this many partial passes in a row an exact pass is made whole, whatever is predicted."""


class Answered(NamedTuple):
    """What a pass at the mean knows of its first blocks."""

    blocks: np.ndarray
    """int64, rising: the blocks that have been asked"""
    corners: Corners
    """their answers"""
    known: np.ndarray
    """float64, (n,): gaps of all blocks at the mean over the labellings cached before"""


@dataclass
class AtMeanGroup:
    """The group `solver.at_mean`."""

    start: float = math.inf
    """Moving passes end when the mean's gap over the cache is below this multiple of the tolerance; inf: after one."""
    of_exact: float = 0.25
    """Cached passes end when that gap is at most this share of the last exact gap,"""
    of_tolerance: float = 0.2
    """or this share of the tolerance;"""
    rounds: int = 2
    """or after this many rounds, each of which brings the gap of w down to `acceleration.inner_target` of itself."""
    surprise: float = 0.7
    """Exact passes begin with the blocks that hold this share of the surprise, and may end there; 0: none does."""
    trust: float = 0.05
    """A pass whose predicted gap is below this share of the last whole pass's exact gap is made whole."""

    def check(self) -> None:
        """Raises ValueError naming the key."""
        for name in ("start", "of_exact", "of_tolerance"):
            check(f"solver.at_mean.{name}", getattr(self, name), getattr(self, name) > 0, "a number > 0")
        check("solver.at_mean.rounds", self.rounds, self.rounds >= 1, "an integer >= 1")
        for name in ("surprise", "trust"):
            share = getattr(self, name)
            check(f"solver.at_mean.{name}", share, 0 <= share < 1, "a number >= 0 and below 1")


@dataclass
class Options(CachedPassOptions):
    """The options of `accelerated`, and those of its exact passes at the mean."""

    acceleration: AccelerationOptions = field(default_factory=lambda: AccelerationOptions(c=0.028, inner_target=0.25))
    at_mean: AtMeanGroup = field(default_factory=AtMeanGroup)

    @property
    def capabilities(self) -> MethodCapabilities:
        """The mean, which is certified, is not w(alpha)."""
        return MethodCapabilities(any_metric=True, two_points=True)

    def check(self) -> None:
        """Raises ValueError naming the key."""
        super().check()
        self.at_mean.check()


@dataclass
class AtMeanCounts(ProximalCounts):
    """Scalars of the schedule."""

    moving: bool = True
    """Whether this lambda is still at its moving passes."""
    last_exact: float = math.inf
    """The last exact gap at this lambda, or what a partial pass has predicted since."""
    last_whole: float = math.inf
    """The last exact gap at this lambda."""
    partial: int = 0
    """Partial passes since the last whole one."""


@dataclass
class AcceleratedAtMean(Accelerated):
    """Accelerated proximal points whose exact passes are made at the mean."""

    specs = (
        *Accelerated.specs,
        ("surprise", ("block",), "f8", "exact less cached gap of each block at its last exact visit; 0 before it"),
    )
    counts = AtMeanCounts
    options: Options
    surprise: np.ndarray = field(default_factory=lambda: np.empty(0))
    """float64, (n,): exact less cached gap of each block at its last exact visit."""
    answered: Answered | None = None
    """The oracles' answers that the pass going on has already, and the gaps over cached labellings before them."""

    def __post_init__(self) -> None:
        self.surprise = np.zeros(self.problem.n)

    def start_lambda(self, lam: float, breakpoint: int, *, exact_due: bool = False) -> None:
        """Begin another lambda; with moving passes unless the gaps are known from a lambda before."""
        super().start_lambda(lam, breakpoint, exact_due=exact_due)
        cold = self.at.curvature == 0.0 or not math.isfinite(self.known_gap)
        self.at.moving, self.at.last_exact, self.at.last_whole, self.at.partial = cold, math.inf, math.inf, 0

    def advance(
        self, tolerance: float, relative: bool, exact: bool, started: float
    ) -> tuple[Status, Certificate] | None:
        """Passes over the cache, or the pass that is due at the mean, which may end the solve."""
        self.answered = None
        if not self.at.exact_due:
            self.outer(tolerance, relative)
            return None
        if self.may_be_partial and self.partial_pass(self.bound(tolerance, relative)):
            return None
        return super().advance(tolerance, relative, exact, started)

    def bound(self, tolerance: float, relative: bool) -> float:
        """The exact gap at which the solve ends, without what the slack of the oracle's bounds takes of it."""
        return self.left_for_oracle(tolerance * (max(self.dual_and_excess()[0], 0.0) if relative else 1.0))

    def outer(self, tolerance: float, relative: bool) -> None:
        """Moving passes while too little is known; then passes over the cache, until a pass at the mean is due."""
        bound, start = self.bound(tolerance, relative), self.options.at_mean.start
        if self.at.moving:
            self.moving_outer(start * bound if start < math.inf else math.inf)
        else:
            self.cached_outer(bound)

    def moving_outer(self, near: float) -> None:
        """One moving exact pass and the cached passes after it; the last, if they leave the mean a gap below `near`."""
        at = self.at
        first = at.curvature == 0.0
        self.moving_pass()
        estimate = self.known_gap + self.dual_and_excess()[1]
        if first and self.state.curvature[1] > 0.0:
            at.curvature = float(self.state.curvature[0] / self.state.curvature[1])
            self.begin_proximal()
        self.cached_passes(estimate)
        at.moving = near < math.inf and self.mean_gap() >= near
        if self.limit() or at.curvature == 0.0:  # if no block has moved, w is optimal
            self.settle()

    def cached_outer(self, bound: float) -> None:
        """Passes over the cache until the mean's gap there is small enough; then a pass at the mean is due."""
        at, options = self.at, self.options.at_mean
        goal = max(options.of_exact * at.last_exact if at.last_exact < math.inf else 0.0, options.of_tolerance * bound)
        last = self.cached_gap(self.state.w)
        for _ in range(options.rounds):
            self.cached_passes(last)
            known, last = self.both_gaps()
            if min(known, last) <= goal:
                break
        self.settle()

    # -- passes at the mean -------------------------------------------------------------------------------------------
    def gaps_at_mean(self) -> np.ndarray:
        """float64, (n,): block gaps at the mean over cached labellings."""
        return self.cached_gaps(self.point)

    def exact_pass(self) -> tuple[Certificate, ExactGaps]:
        """An exact pass at the mean, and the surprise of each block."""
        known = self.gaps_at_mean() if self.answered is None else self.answered.known
        point, found = super().exact_pass()
        self.surprise = np.maximum(found.gap - known, 0.0)
        self.at.last_exact, self.at.last_whole, self.at.partial = point.gap, point.gap, 0
        self.forget()
        return point, found

    def gaps_at_point(self) -> ExactGaps:
        """The gaps at the mean; only blocks without an answer are asked."""
        P, S, had = self.problem, self.state, self.answered
        if had is None:
            return super().gaps_at_point()
        return gaps_given(P, self.point, S.mu, S.ell, had.blocks, had.corners, self.spread, S.pool)

    @property
    def may_be_partial(self) -> bool:
        """Whether the pass that is due may end early: surprises at this lambda are known, and no limit ends the solve."""
        at = self.at
        told = self.options.at_mean.surprise > 0.0 and at.last_exact < math.inf
        return told and at.partial < MOST_PARTIAL and not self.limit()

    def partial_pass(self, bound: float) -> bool:
        """Begin the pass that is due with the blocks that are likeliest to surprise; True if it ends there.

        It ends if the predicted sum of the block gaps is above `bound` and can be trusted; the answers then go into the
        cache. Otherwise they wait in `answered` for the rest of the pass. The prediction leaves out what the distance of
        w_bar from v adds to the gap. Of blocks that have been asked lately it uses surprises from before the last cached
        passes, which are rather too large; of others, after many passes, they may be far too small.
        """
        P, S, at = self.problem, self.state, self.at
        blocks, known = self.surprising(), self.gaps_at_mean()
        self.untouched = True
        found = corners_at(P, self.point, blocks, self.spread)
        base = bases(P, self.point, S.mu, S.ell, S.pool, self.spread, blocks)
        self.untouched = False
        surprise = np.maximum((found.h - base) / P.n - known[blocks], 0.0)
        self.surprise[blocks] = surprise
        predicted = float(np.sum(known) + np.sum(self.surprise))
        if predicted <= max(bound, self.options.at_mean.trust * at.last_whole):
            self.answered = Answered(blocks, found, known)
            return False
        S.counters[ORACLE_CALLS] += blocks.size
        self.keep(blocks, found.corner, found.loss)
        at.last_exact, at.partial, at.exact_due = predicted, at.partial + 1, False
        self.forget()
        return True

    def surprising(self) -> np.ndarray:
        """int64: the blocks of the largest surprises that make up the share `surprise` of their sum, in order."""
        order = np.argsort(-self.surprise, kind="stable")
        total = np.cumsum(self.surprise[order])
        count = int(np.searchsorted(total, self.options.at_mean.surprise * total[-1])) + 1
        return np.sort(order[:count])

    def forget(self) -> None:
        """Drop labellings that have not been chosen for long."""
        kept = self.options.acceleration.unused_passes
        self.at.marks = [*self.at.marks, self.steps][-kept:]
        if len(self.at.marks) == kept:
            drop_unused(self.state.pool, self.at.marks[0])

    # -- committed state ----------------------------------------------------------------------------------------------
    def own_arrays(self) -> dict[str, np.ndarray]:
        """Those of `accelerated`, and the surprise."""
        return {**super().own_arrays(), "surprise": self.surprise}

    def restore_own(self, arrays: Mapping[str, np.ndarray]) -> None:
        """The same; ValueError if one does not fit the problem."""
        super().restore_own(arrays)
        self.surprise = check_array("surprise", arrays["surprise"], (self.problem.n,), float, finite=True)


METHOD = AcceleratedAtMean
