"""The accelerated method with its exact passes at a fixed point: each one both certifies and fills the caches.

`accelerated` alternates passes over the cache with exact passes that move w while they call the oracle, and certifies the
mean of its points when the cache promises success. Here every exact pass is made at the mean, w_bar, which stays where it
is meanwhile. Such a pass is a certificate, and the labellings that it adds to the caches are those that w_bar violates
most, in the region where the answer will be. So a solve is, once there is a mean,

    repeat
        cached passes with momentum, their points in the mean, until the gap of w_bar over cached labellings is at most
            max(of_exact E, of_tolerance eps), `rounds` times at most; E: the last exact gap
        if E > 2 eps and the last call was an exact pass: a *partial pass*, else an exact pass, at w_bar
    until the exact gap is at most eps

A *partial pass* calls the oracles of the blocks in which the last exact visits surprised most: the surprise of a block is
its exact gap less its gap over the labellings that it had, both at w_bar. The blocks are those of the largest surprises
that make up the share `surprise` of their sum, often a fifth of all; each counts as one oracle call.

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

import numpy as np

from stages.problems.stored import check_array
from stages.solver.codes import ORACLE_CALLS
from stages.solver.gaps import ExactGaps
from stages.solver.methods.accelerated import Accelerated, ProximalCounts
from stages.solver.objective import Certificate
from stages.solver.options import AccelerationOptions, CachedPassOptions, Status, check
from stages.solver.oracles import corners_at
from stages.solver.supports import drop_unused

FAR = 2.0
"""A partial pass is worth its calls where the last exact gap is above this multiple of the tolerance."""


@dataclass
class AtMeanGroup:
    """The group `solver.at_mean`."""

    start: float = 30.0
    """Moving passes end when the mean's gap over cached labellings is below this multiple of the tolerance."""
    of_exact: float = 0.2
    """Cached passes end when that gap is at most this share of the last exact gap,"""
    of_tolerance: float = 0.2
    """or this share of the tolerance;"""
    rounds: int = 3
    """or after this many rounds, each of which brings the gap of w down to `acceleration.inner_target` of itself."""
    surprise: float = 0.8
    """Partial passes visit the blocks that hold this share of the surprise; 0: no partial passes."""

    def check(self) -> None:
        """Raises ValueError naming the key."""
        for name in ("start", "of_exact", "of_tolerance"):
            check(f"solver.at_mean.{name}", getattr(self, name), getattr(self, name) > 0, "a number > 0")
        check("solver.at_mean.rounds", self.rounds, self.rounds >= 1, "an integer >= 1")
        check("solver.at_mean.surprise", self.surprise, 0 <= self.surprise < 1, "a number >= 0 and below 1")


@dataclass
class Options(CachedPassOptions):
    """The options of `accelerated`, and those of its exact passes at the mean."""

    acceleration: AccelerationOptions = field(default_factory=lambda: AccelerationOptions(c=0.02, inner_target=0.3))
    at_mean: AtMeanGroup = field(default_factory=AtMeanGroup)

    @property
    def two_points(self) -> bool:
        """True: the mean is not w(alpha)."""
        return True

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
    """The last exact gap at this lambda."""
    partial: bool = False
    """Whether the next pass is, or if none is due, the last one was, a partial pass."""


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

    def __post_init__(self) -> None:
        self.surprise = np.zeros(self.problem.n)

    def start_lambda(self, lam: float, breakpoint: int, *, exact_due: bool = False) -> None:
        """Begin another lambda; with moving passes unless the gaps are known from a lambda before."""
        super().start_lambda(lam, breakpoint, exact_due=exact_due)
        cold = self.at.curvature == 0.0 or not math.isfinite(self.known_gap)
        self.at.moving, self.at.last_exact, self.at.partial = cold, math.inf, False

    def advance(
        self, tolerance: float, relative: bool, exact: bool, started: float
    ) -> tuple[Status, Certificate] | None:
        """Passes over the cache, or the pass that is due at the mean, which may end the solve."""
        at = self.at
        if at.exact_due and not at.partial:
            return super().advance(tolerance, relative, exact, started)
        if at.exact_due:
            self.partial_pass()
        else:
            self.outer(tolerance, relative)
        return None

    def outer(self, tolerance: float, relative: bool) -> None:
        """Moving passes while too little is known; then passes over the cache, until a pass at the mean is due."""
        bound = self.left_for_oracle(tolerance * (max(self.dual_and_excess()[0], 0.0) if relative else 1.0))
        if self.at.moving:
            self.moving_outer(self.options.at_mean.start * bound)
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
        at.moving = self.mean_gap() >= near
        if self.limit() or at.curvature == 0.0:  # if no block has moved, w is optimal
            self.settle()

    def cached_outer(self, bound: float) -> None:
        """Passes over the cache until the mean's gap there is small enough; then a pass at the mean is due."""
        at, options = self.at, self.options.at_mean
        goal = max(options.of_exact * at.last_exact if at.last_exact < math.inf else 0.0, options.of_tolerance * bound)
        for _ in range(options.rounds):
            self.cached_passes(self.cached_gap(self.state.w))
            if self.mean_gap() <= goal:
                break
        worth = options.surprise > 0.0 and FAR * bound < at.last_exact < math.inf
        at.partial = worth and not at.partial and not self.limit()
        self.settle()

    # -- passes at the mean -------------------------------------------------------------------------------------------
    def gaps_at_mean(self) -> np.ndarray:
        """float64, (n,): block gaps at the mean over cached labellings."""
        return self.cached_gaps(self.point)

    def exact_pass(self) -> tuple[Certificate, ExactGaps]:
        """An exact pass at the mean, and the surprise of each block."""
        known = self.gaps_at_mean()
        point, found = super().exact_pass()
        self.surprise = np.maximum(found.gap - known, 0.0)
        self.at.last_exact = point.gap
        self.forget()
        return point, found

    def partial_pass(self) -> None:
        """The oracles of the blocks that hold most of the surprise, at the mean; their answers go into the cache."""
        P, at = self.problem, self.at
        blocks = self.surprising()
        known = self.gaps_at_mean()
        self.untouched = True
        found = corners_at(P, self.point, blocks, self.spread)
        self.untouched = False
        self.state.counters[ORACLE_CALLS] += blocks.size
        self.keep(blocks, found.corner, found.loss)
        self.surprise[blocks] = np.maximum(self.gaps_at_mean()[blocks] - known[blocks], 0.0)
        at.exact_due = False
        self.forget()

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
