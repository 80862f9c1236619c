"""`accelerated` with `exact_passes=at_mean`: every exact pass is made at a fixed point, where it certifies and fills caches.

With `exact_passes=moving`, `accelerated` alternates passes over the cache with BCFW passes, which move w while they call
the oracle, and certifies the mean of its points when the cache promises success. Here every exact pass is made at the
mean, w_bar, which stays where it is meanwhile. Such a pass is a certificate, and the labellings that it adds to the caches
are those that w_bar violates most, in the region where the answer will be. So a solve is, once there is a mean,

    repeat
        cached passes with momentum, their points in the mean, until the gap of w_bar over cached labellings is at most
            SHARE max(E, eps), `PASSES` times at most; E: the last exact gap, or what was predicted since
        an exact pass at w_bar, beginning with the blocks of the largest cache errors; it ends there, as a *partial
            pass*, if the gap that it then predicts is above eps
    until the exact gap is at most eps

The *cache error* of a block is its exact gap less its gap over the labellings that it had, both at w_bar. The blocks that
a pass begins with are those of the largest cache errors at their last exact visits which make up the share `CACHE_ERROR`
of their sum, often a quarter of all. After them the gap is predicted from the exact gaps of these blocks and, for
each of the others, its gap over cached labellings and its last cache error. So a pass that would fail costs the calls of
its first blocks only, and one that is made whole asks no block twice. The first pass at a lambda is always whole, and so is
the one after `MOST_PARTIAL` partial ones.

Without caches there is nothing to pass over: the first lambda begins with a BCFW pass. They come back where the exact gap
has not fallen for ten passes (`Proximal.watch`): with few blocks, passes that do not move w find few labellings. From then
on, to the end of the lambda, each pass at w_bar waits until BCFW passes have brought its gap over cached labellings below
the tolerance.

*On a path* the certificates of `path.rule=two_sided` take w_bar as the primal and alpha as the dual point
(`stages.solver.path.cells`); its warm start keeps alpha and the caches.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from gapwise.records import Json
from gapwise.stages.problems.moves import norm2_of
from gapwise.stages.problems.stored import check_array
from gapwise.stages.solver.catalyst import PASSES, UNUSED, Catalyst, ProximalCounts
from gapwise.stages.solver.codes import ORACLE_CALLS
from gapwise.stages.solver.counts import Arrays, ArraySpec
from gapwise.stages.solver.exact import exact_pass, left_for_oracle
from gapwise.stages.solver.method import Ended
from gapwise.stages.solver.objective import Certificate, Goal, Mixture
from gapwise.stages.solver.options import Status
from gapwise.stages.solver.oracles import SOONER, Answers, answers_at, bases, labellings, room

C, SHARE = 0.028, 0.25
"""kappa as in `catalyst`. A round of cached passes ends when the gap is below this share of what it was; rounds end when the
mean's gap over the cache is below this share of the last exact gap or tolerance. Others were within a pass and a half."""

MOST_PARTIAL = 20
"""After this many partial passes in a row an exact pass is made whole, whatever is predicted."""

CACHE_ERROR = 0.7
"""Exact passes begin with the blocks that hold this share of the cache error, and may end there: OCR-small (eps = .01) took
59.5 passes without, 55.0 with them."""


class Answered(NamedTuple):
    """What a pass at the mean knows of its first blocks."""

    blocks: np.ndarray
    """int64, rising: the blocks that have been asked"""
    answers: Answers
    """theirs"""
    known: np.ndarray
    """float64, (n,): gaps of all blocks at the mean over the labellings cached before"""


SPECS: tuple[ArraySpec, ...] = (
    ("cache_error", ("block",), "f8", "exact less cached gap of each block at its last exact visit; 0 before it"),
)


@dataclass
class AtMeanCounts(ProximalCounts):
    """Scalars of the method."""

    begun: bool = False
    """Whether this lambda is done with its BCFW passes."""
    moving: bool = False
    """Whether passes at the mean have stalled at this lambda, so that BCFW passes go on between them."""
    last_exact: float = math.inf
    """The last exact gap at this lambda, or what a partial pass has predicted since."""
    partial: int = 0
    """Partial passes since the last whole one."""


class AcceleratedAtMean(Catalyst):
    """Accelerated proximal points whose exact passes are made at the mean.

    `cache_error`: float64, (n,): exact less cached gap of each block at its last exact visit. `answered`: the oracles'
    answers that the pass going on has already, and the gaps over cached labellings before them.
    """

    specs = (*Catalyst.specs, *SPECS)
    c, inner = C, SHARE
    own: AtMeanCounts

    def prepare(self) -> None:
        """The proximal problems, how many labellings a call returns, and what passes at the mean keep."""
        it, m = self.it, labellings(self.problem, self.options.n_best)
        it.n_best, it.options = m, it.options._replace(capacity=room(self.problem, m, it.options.capacity))
        self.own, self.mean, self.unused = AtMeanCounts(), np.empty(0), UNUSED if m == 1 else UNUSED // SOONER
        self.cache_error = np.zeros(self.problem.n)
        self.answered: Answered | None = None

    def start(self) -> None:
        """Another lambda has begun: with BCFW passes unless the gaps are known from a lambda before."""
        super().start()
        counts = self.own
        counts.begun = counts.curvature > 0.0 and math.isfinite(self.it.known_gap)
        counts.moving = False
        counts.last_exact, counts.partial = math.inf, 0

    def advance(self, goal: Goal) -> Ended | None:
        """Passes over the cache, or the pass that is due at the mean, which may end the solve."""
        self.answered = None
        if not self.it.counts.exact_due:
            self.cached_or_bcfw(self.bound(goal))
            return None
        if (point := self.mixed(goal.mixture)) is not None:
            self.it.ledger.record(point)
            self.leave()
            return Status.CONVERGED, point
        if self.may_be_partial and self.partial_pass(self.bound(goal)):
            return None
        self.own.begun &= not self.own.moving
        return self.ended_with(self.pass_at_mean(), goal)

    def bound(self, goal: Goal) -> float:
        """The exact gap at which the solve ends, without what the slack of the oracle's bounds takes of it."""
        return left_for_oracle(self.it, goal.bound(self.it.dual_value()))

    def cached_or_bcfw(self, bound: float) -> None:
        """BCFW passes while too little is known; then passes over the cache, until a pass at the mean is due."""
        if self.own.begun:
            self.cached_outer(bound)
        else:
            self.bcfw_outer(bound if self.own.moving else math.inf)

    def bcfw_outer(self, near: float) -> None:
        """A BCFW pass and the cached passes after it; the last one, if they leave the mean a gap below `near`."""
        it, counts = self.it, self.own
        self.bcfw_pass()
        estimate = it.known_gap + it.dual_and_excess()[1]
        if self.measure() and counts.curvature > 0.0:
            self.centre_at_w()
        self.watch(estimate)
        self.cached_passes(estimate)
        counts.begun = not (near < math.inf and self.mean_gap() >= near)
        if it.ledger.limit() or counts.curvature == 0.0:  # if no block has moved, w is optimal
            it.counts.exact_due = True

    def cached_outer(self, bound: float) -> None:
        """Passes over the cache until the mean's gap there is small enough; then a pass at the mean is due."""
        counts = self.own
        known = counts.last_exact < math.inf
        if known and self.watch(counts.last_exact):
            counts.moving = True
        goal = SHARE * (max(counts.last_exact, bound) if known else bound)
        last = self.it.cached_gap(self.it.state.w)
        for _ in range(PASSES + (self.it.n_best > 1)):
            self.cached_passes(last)
            mean, last = self.both_gaps()
            if min(mean, last) <= goal:
                break
        self.counts.exact_due = True

    def mixed(self, mixture: Mixture | None) -> Certificate | None:
        """The certificate of a mixture of solved points beside the present alpha; None if its gap is too large.

        There is none once this lambda has called oracles. Verify knows a bound on the hinge by `oracle_calls` being 0.
        """
        if mixture is None or self.it.ledger.calls_here:
            return None
        it, lam, norm2 = self.it, self.it.counts.lam, norm2_of(self.it.problem, mixture.weights)
        dual = it.dual_value()
        gap = 0.5 * lam * norm2 + mixture.hinge - dual
        if not gap <= mixture.most:
            return None
        it.weights, it.counts.dual = mixture.weights, dual
        return Certificate(lam, gap, mixture.hinge, float(it.state.z_ell[1]), norm2, dual)

    # -- passes at the mean -------------------------------------------------------------------------------------------
    def gaps_at_mean(self) -> np.ndarray:
        """float64, (n,): block gaps at the mean over cached labellings."""
        return self.it.cached_gaps(self.point)

    def pass_at_mean(self) -> Certificate:
        """An exact pass at the mean (theorem 5), which asks only blocks without an answer, and their cache errors."""
        it, had = self.it, self.answered
        known = self.gaps_at_mean() if had is None else had.known
        given = None if had is None else (had.blocks, had.answers)
        point, found = exact_pass(it, self.point, given=given)
        it.weights = np.array(it.weights)  # they stay when the mean moves on
        self.cache_error = np.maximum(found.gap - known, 0.0)
        self.own.last_exact, self.own.partial = point.gap, 0
        it.mark_pass(self.unused)
        return point

    @property
    def may_be_partial(self) -> bool:
        """Whether the pass that is due may end early: cache errors at this lambda are known, and no limit ends the solve."""
        counts = self.own
        return counts.last_exact < math.inf and counts.partial < MOST_PARTIAL and not self.it.ledger.limit()

    def partial_pass(self, bound: float) -> bool:
        """Begin the pass that is due with the blocks of the largest cache errors; True if it ends there.

        It ends if the predicted sum of the block gaps is above `bound`; the answers then go into the cache. Otherwise they
        wait in `answered` for the rest of the pass. The prediction leaves out what the distance of w_bar from v adds to the
        gap. Of blocks that have been asked lately it uses errors from before the last cached passes, which are rather too
        large; of others, after many passes, they may be far too small.
        """
        it, P, S = self.it, self.it.problem, self.it.state
        blocks, known, w = self.worst_blocks(), self.gaps_at_mean(), self.point
        with it.ledger.asking():
            answers = answers_at(P, w, blocks, it.ledger.spread, it.n_best)
            base = bases(P, w, S.pool, it.ledger.spread, blocks, it.n_best)
        cache_error = self.cache_error.copy()  # committed, so it stays until the pass is over
        cache_error[blocks] = np.maximum((answers.h - base) / P.n - known[blocks], 0.0)
        predicted = float(np.sum(known) + np.sum(cache_error))
        if predicted <= bound:
            self.answered = Answered(blocks, answers, known)
            return False
        self.cache_error = cache_error
        S.counters[ORACLE_CALLS] += blocks.size
        it.keep(blocks, answers)
        self.own.last_exact, self.own.partial, it.counts.exact_due = predicted, self.own.partial + 1, False
        self.own.begun &= not self.own.moving
        it.mark_pass(self.unused)
        return True

    def worst_blocks(self) -> np.ndarray:
        """int64: the blocks of the largest cache errors that make up the share `CACHE_ERROR` of their sum, in order."""
        order = np.argsort(-self.cache_error, kind="stable")
        total = np.cumsum(self.cache_error[order])
        count = int(np.searchsorted(total, CACHE_ERROR * total[-1])) + 1
        return np.sort(order[:count])

    def facts(self) -> dict[str, Json]:
        """How many labellings an oracle call returns."""
        return {"n_best": self.it.n_best} if self.it.n_best > 1 else {}

    # -- committed state ----------------------------------------------------------------------------------------------
    def arrays(self) -> dict[str, np.ndarray]:
        """The mean and the cache errors."""
        return {**super().arrays(), "cache_error": self.cache_error}

    def restore(self, arrays: Arrays) -> None:
        """The same; ValueError if one does not fit the problem."""
        super().restore(arrays)
        n = self.it.problem.n
        self.cache_error = check_array("cache_error", arrays["cache_error"], (n,), float, finite=True)
