"""Catalyst (Lin, Mairal, Harchaoui, NIPS 2015) around the compiled loop: minimise P(w) + (kappa/2) ||w - y||^2 loosely over
cached labellings, recentre y with momentum, repeat. In local coordinates the proximal term costs one scalar. With

    u = (kappa y + lambda v) / (lambda + kappa),  w = clip(u),  v = ((lambda + kappa) u - kappa y) / lambda

every step uses scale = 1 / ((lambda + kappa) n) and pushes into u.

*Certificate of any pair (w in the box, alpha).* D(alpha) = ell + min_{x in box} lambda/2 ||x||^2 - lambda <x, v>, whose
minimiser is w_v = clip(v), and sum_i g_i(w) = R(w) - ell + lambda <w, v>. Hence

    P(w) - D(alpha) = sum_i g_i(w) + (lambda/2) (||w - v||^2 - ||w_v - v||^2),

and the second term is >= 0 because w_v is the point of the box nearest to v; without a box it is (lambda/2) ||w - v||^2 =
(kappa^2 / 2 lambda) ||w - y||^2.

It certifies any w stored with alpha; here that is the mean of the iterates, weighted towards the latest (`note`). Steps
make w swing about the optimum, where P is not smooth, and the mean's gap is smaller than the last iterate's: 2 to 5 times
on OCR, up to 23 on CoNLL, 1.1 on Weizmann.

*Recentring* keeps alpha, hence v: y' = w + b (w - w_prev), u' = (kappa y' + lambda v) / (lambda + kappa), w' = clip(u').
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from gapwise.stages.problems.stored import check_array
from gapwise.stages.solver.codes import CACHE_ONLY, ORACLE_ALWAYS
from gapwise.stages.solver.counts import Arrays, ArraySpec
from gapwise.stages.solver.exact import judged
from gapwise.stages.solver.method import Ended, Method
from gapwise.stages.solver.objective import Certificate, Goal
from gapwise.stages.solver.options import CachedPassOptions
from gapwise.stages.solver.proximal import dual_norms, move_towards, recentre
from gapwise.stages.solver.running import clip
from gapwise.stages.solver.visits import load_cached_steps, load_steps, visit

C = 0.036
"""kappa = C sqrt(lambda Lambda), Lambda the natural scale of lambda. Others were within a pass and a half, or took more
cached passes (OCR-small, eps = .01; USPS; LSP)."""

INNER = 0.55
"""Cached passes end when their gap is below this share of the exact pass's estimate, or of a lower one if kappa is large."""

PASSES = 2
"""Cached passes between two recentrings, moves of a block each time one visits it, and rounds before a pass at the mean:
three of any of them gained nothing (OCR, USPS, CoNLL)."""

SKIP_SHARE = 0.07
"""A block whose gap is below this share of the mean gap sits out three visits. Without, OCR-small (eps = .01) takes 1.17
times the seconds; twice as large gained nothing."""

UNUSED = 15
"""Labellings without weight that this many exact passes have not chosen are dropped: a visit of OCR 1.8 -> .8 us."""

MOST_VISITS = 300
"""Bound on the visits (of `PASSES` passes each) in one outer iteration. Where it is reached and the dual value has
fallen by more than the gap, a visit solves no proximal problem, and momentum carries w away. From then on each problem gets
twice as many visits, to the end of this lambda."""

STALLED = 10.0
"""Effective passes without a smaller estimate of the gap after which kappa was too large. OCR at 1/n has 7 of them, USPS,
Hansards and Weizmann have 2 at most."""

SOFTER = 4.0
"""It is then divided by this if it is above its square times lambda. Weaker proximal terms are no cause: a small problem
whose estimates fall seldom takes 204 passes without, 202 with one division from 16 lambda, 409 with two."""

PER_RATE = 4.0
"""Cached passes may leave at most this multiple of sqrt(lambda / (lambda + kappa)), the rate of the outer iterations, as a
share of the estimate: solving the proximal problem more loosely would undo the gain of momentum (Catalyst's criterion).
Without, USPS at 1/n takes 27 exact passes instead of 23, OCR-small (eps = .01) 126 instead of 120."""

MEAN_POWER = 7.0
"""The weight of the k-th point in the mean is about k ** MEAN_POWER (polynomial-decay averaging: Shamir, Zhang, ICML 2013).
Among 2, 4, 7, 11 and fixed windows of 4 to 20 points, it was best or nearly so on OCR, CoNLL and Weizmann at all seven
lambdas."""

SPECS: tuple[ArraySpec, ...] = (
    ("mean", ("mean_feature",), "f8", "mean of the points at this lambda, which is certified; empty before the first"),
)


@dataclass
class ProximalCounts:
    """Scalars of the proximal problems."""

    curvature: float = 0.0
    """Lambda: mean ||B_i delta||^2 over mean slope of the first BCFW pass's moves, the natural scale of lambda."""
    points: int = 0
    """Number of points in the mean."""
    visits: int = 1
    """Visits that each proximal problem gets."""
    least: float = math.inf
    """The smallest estimate of the gap at this lambda, or since kappa has been divided."""
    least_at: float = 0.0
    """Effective passes at this lambda when it was found."""


class Catalyst(Method[CachedPassOptions]):
    """A method that solves proximal problems: their centre, the passes over the cache, and the mean of their points.

    `mean`: float64, (d,): mean of the points, empty before the first. Certificates are those of (mean, alpha).
    """

    specs = (*Method.specs, *SPECS)
    c, inner, unused = C, INNER, UNUSED
    own: ProximalCounts

    def prepare(self) -> None:
        """No point yet."""
        self.own, self.mean = ProximalCounts(), np.empty(0)

    @property
    def rewrites_w(self) -> bool:
        """True: the mean is certified."""
        return True

    def ended_with(self, point: Certificate, goal: Goal) -> Ended | None:
        """Record an exact pass; how the lambda ends with it, the proximal problem then left, or None."""
        self.ledger.record(point)
        status = judged(self.it, point, goal)
        if status is None:
            return None
        self.leave()
        return status, point

    # -- the mean -----------------------------------------------------------------------------------------------------
    @property
    def point(self) -> np.ndarray:
        """(d,): the mean of the points so far; the current w before the first."""
        return self.mean if self.own.points else self.it.state.w

    def note(self) -> None:
        """Add the current w to the mean (theorem 5)."""
        self.own.points += 1
        if self.own.points == 1:
            self.mean = self.it.state.w.copy()
        else:
            move_towards(self.mean, self.it.state.w, (MEAN_POWER + 1.0) / (MEAN_POWER + self.own.points))

    def mean_gap(self) -> float:
        """The mean's gap over cached labellings; the mean restarts at w if w has the smaller gap."""
        return min(self.both_gaps())

    def both_gaps(self) -> tuple[float, float]:
        """The gaps over cached labellings of the mean and of w; the mean restarts at w if w has the smaller one."""
        known, last = self.it.cached_gap(self.mean), self.it.cached_gap(self.it.state.w)
        if last < known:
            self.own.points = 0
            self.note()
        return known, last

    # -- the centre ---------------------------------------------------------------------------------------------------
    def start(self) -> None:
        """Another lambda has begun: with a proximal problem at the w it starts from."""
        it = self.it
        if (
            self.ledger.revisits
        ):  # a path that goes up and down counts the passes without use anew, and so keeps labellings
            it.counts.marks = []
        it.counts.kappa, it.centre = 0.0, np.empty(0)
        self.own.points, self.own.visits, self.mean = 0, 1, np.empty(0)
        self.own.least, self.own.least_at = math.inf, 0.0
        it.derive()
        self.centre_at_w()

    def centre_at_w(self) -> None:
        """Begin a proximal problem at the current w, once the curvature is known; u and w stay.

        kappa = C sqrt(lambda Lambda), Lambda the mean curvature ||B_i delta||^2 of a move over its mean slope. Lambda has
        the unit of lambda (features squared over loss), so kappa / lambda does not change when features or losses are
        scaled. It is measured on the moves of the first BCFW pass, which is made with kappa = 0, and kept unless `watch`
        lowers it.
        """
        S, counts, P = self.it.state, self.counts, self.problem
        if self.own.curvature == 0.0:
            return
        v = S.u + counts.kappa / counts.lam * (S.u - self.it.centre) if counts.kappa > 0.0 else S.u.copy()
        counts.kappa = float(self.c * math.sqrt(counts.lam * self.own.curvature))
        self.it.centre = S.w.copy()
        S.u[:] = (counts.kappa * self.it.centre + counts.lam * v) / (counts.lam + counts.kappa)
        if P.lower.size:
            clip(S.u, P.lower, P.upper, S.w)

    def watch(self, estimate: float) -> bool:
        """Whether the estimate of the gap has not become smaller for `STALLED` passes; divides a strong kappa then.

        With a large kappa a proximal problem is hardly regularised. Where a block has many more labellings than its cache
        holds, its solution then follows the few that are known, far from the optimum, and the next oracle calls find that
        gaps have grown. Bundle methods shorten their steps likewise after null steps (Kiwiel, Math. Program. 46, 1990).
        """
        own, counts, passes = self.own, self.counts, self.ledger.passes_here
        stalled = counts.kappa > 0.0 and estimate >= own.least and passes - own.least_at >= STALLED
        if stalled or estimate < own.least:
            own.least, own.least_at = estimate, passes
        if stalled and counts.kappa > SOFTER**2 * counts.lam:
            own.curvature /= SOFTER**2
            self.centre_at_w()
        return stalled

    def measure(self) -> bool:
        """Take the curvature of the moves just made, if it is not known; returns whether it was not."""
        first, moved = self.own.curvature == 0.0, self.it.state.curvature
        if first and moved[1] > 0.0:
            self.own.curvature = float(moved[0] / moved[1])
        return first

    def leave(self) -> None:
        """Leave the proximal problem at the end of a lambda; the certified point stays in `DualPoint.weights`."""
        if self.counts.kappa > 0.0:
            self.counts.kappa, self.it.centre = 0.0, np.empty(0)
            self.it.derive()

    # -- passes -------------------------------------------------------------------------------------------------------
    def bcfw_pass(self) -> None:
        """A step of every block with the oracle, so that w moves; then labellings of no use are dropped."""
        it = self.it
        it.make_room(it.problem.n)
        it.state.curvature[:] = 0.0
        visit(it, vertex_from=ORACLE_ALWAYS)
        it.mark_pass(self.unused)

    def rate(self) -> float:
        """sqrt(lambda / (lambda + kappa)): the share of the gap that an accelerated outer iteration removes."""
        return math.sqrt(self.counts.lam / (self.counts.lam + self.counts.kappa))

    def inner_share(self) -> float:
        """Cached passes end below this share of the exact pass's estimate."""
        return min(self.inner, PER_RATE * self.rate())

    def cached_passes(self, estimate: float) -> None:
        """Cached passes with momentum until their gap is below the `inner_share` of the exact pass's estimate."""
        it, counts, P = self.it, self.counts, self.problem
        rate, share = self.rate(), self.inner_share()
        most_momentum = (1.0 - rate) / (1.0 + rate)
        t, last_dual, w_before = 1.0, -math.inf, it.state.w.copy()
        skip_below, dual_before = SKIP_SHARE * estimate / P.n, it.dual_and_excess()[0]
        it.state.skip[:] = 0
        for _ in range(MOST_VISITS // self.own.visits):
            for _ in range(self.own.visits):
                visit(it, PASSES, vertex_from=CACHE_ONLY, rounds=PASSES, skip_below=skip_below)
            S = it.state
            dual, excess = it.dual_and_excess()
            remaining = it.known_gap + excess
            self.note()
            if counts.kappa > 0.0:
                if dual < last_dual:
                    t, momentum = 1.0, 0.0
                else:
                    following = 0.5 * (1.0 + math.sqrt(1.0 + 4.0 * t * t))
                    momentum, t = min((t - 1.0) / following, most_momentum), following
                last_dual = dual
                apart, pull = S.w if P.lower.size else S.w[:0], counts.kappa / (counts.lam + counts.kappa)
                recentre(S.u, apart, w_before, it.centre, momentum, pull)
                if P.lower.size:
                    clip(S.u, P.lower, P.upper, S.w)
            if remaining <= share * estimate:
                return
        if dual < dual_before - estimate and self.own.visits <= MOST_VISITS // 2:
            self.own.visits *= 2

    def load(self) -> None:
        """Passes with the oracle and over the cache."""
        load_steps(self.it)
        load_cached_steps(self.it)
        a, b, c, d = np.empty((4, 0))
        dual_norms(a, b, 1.0, c)
        move_towards(a, b, 1.0)
        recentre(a, b, c, d, 0.0, 0.0)

    # -- committed state ----------------------------------------------------------------------------------------------
    def arrays(self) -> dict[str, np.ndarray]:
        """The mean."""
        return {"mean": self.mean}

    def restore(self, arrays: Arrays) -> None:
        """The mean; ValueError if it does not fit the problem."""
        d = self.problem.d if self.own.points else 0
        self.mean = check_array("mean", arrays["mean"], (d,), float, finite=True)
