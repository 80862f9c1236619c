"""An accelerated proximal-point method over cached passes, which needs few exact passes.

Catalyst (Lin, Mairal, Harchaoui, NIPS 2015) around the compiled loop: minimise P(w) + (kappa/2) ||w - y||^2 loosely,
recentre y with momentum, repeat. In local coordinates the proximal term costs one scalar. With

    u = (kappa y + lambda v) / (lambda + kappa),  w = clip(u),  v = ((lambda + kappa) u - kappa y) / lambda

every step uses scale = 1 / ((lambda + kappa) n) and pushes into u.

*Certificate of any pair (w in the box, alpha).* D(alpha) = ell + min_{x in box} lambda/2 ||x||^2 - lambda <x, v>, whose
minimiser is w_v = clip(v), and sum_i g_i(w) = R(w) - ell + lambda <w, v>. Hence

    P(w) - D(alpha) = sum_i g_i(w) + (lambda/2) (||w - v||^2 - ||w_v - v||^2),

and the second term is >= 0 because w_v is the point of the box nearest to v; without a box it is (lambda/2) ||w - v||^2 =
(kappa^2 / 2 lambda) ||w - y||^2.

It certifies any w stored with alpha; here that is the mean of the iterates, weighted towards the latest (`note`). Steps
make w swing about the optimum, where P is not smooth, and the mean's gap is smaller than the last iterate's: 2 to 5 times
on OCR, up to 23 on CoNLL, 1.1 on Weizmann. A path's certificates need w(alpha) itself, so there the final phase first moves
to w = v, where the bracket is 0.

*Recentring* keeps alpha, hence v: y' = w + b (w - w_prev), u' = (kappa y' + lambda v) / (lambda + kappa), w' = clip(u').
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from gapwise.stages.problems.metric import own_metric
from gapwise.stages.problems.stored import check_array
from gapwise.stages.solver.block_method import SPECS
from gapwise.stages.solver.cached_passes import MOST_CACHED_PASSES, CachedPassCounts, CachedPasses, CachedPassOptions
from gapwise.stages.solver.gaps import ExactGaps
from gapwise.stages.solver.objective import Certificate
from gapwise.stages.solver.proximal import dual_norms, move_towards, recentre
from gapwise.stages.solver.step import clip

PER_RATE = 4.0
"""Cached passes may leave at most this multiple of sqrt(lambda / (lambda + kappa)), the rate of the outer iterations, as a
share of the estimate: solving the proximal problem more loosely would undo the gain of momentum (Catalyst's criterion)."""

MEAN_POWER = 7.0
"""The weight of the k-th point in the mean is about k ** MEAN_POWER (polynomial-decay averaging: Shamir, Zhang, ICML 2013).
Among 2, 4, 7, 11 and fixed windows of 4 to 20 points, it was best or nearly so on OCR, CoNLL and Weizmann at all seven
lambdas."""

NEAR = 30.0
"""The mean's gap over cached labellings (0.04 to 0.6 of the estimate) is computed once the estimate is below this multiple
of the tolerance."""

SURE = 0.95
"""An exact pass for the mean is made once this oracle-free gap is below this share of the tolerance. Below 1e-2 the exact
gap was 1.00 to 1.16 times as large. A pass that comes too early is not wasted: its labellings stay in the cache."""

Options = CachedPassOptions


@dataclass
class ProximalCounts(CachedPassCounts):
    """Scalars of the proximal problems."""

    kappa: float = 0.0
    """Weight of the proximal term; 0 in the first exact pass and in the final phase."""
    curvature: float = 0.0
    """Lambda: mean ||B_i delta||^2 over mean slope of the first exact pass's moves, the natural scale of lambda."""
    points: int = 0
    """Number of points in the mean."""


@dataclass
class Accelerated(CachedPasses):
    """Accelerated proximal points over cached pairwise passes."""

    specs = (
        *SPECS,
        ("centre", ("centre_feature",), "f8", "proximal centre y; empty where kappa is 0"),
        (
            "mean",
            ("mean_feature",),
            "f8",
            "mean of the points at this lambda, which is certified; empty before the first",
        ),
    )
    counts = ProximalCounts

    centre: np.ndarray = field(default_factory=lambda: np.empty(0))
    """float64, (d,): the proximal centre y while kappa > 0."""
    mean: np.ndarray = field(default_factory=lambda: np.empty(0))
    """float64, (d,): mean of the points, the w that is certified; empty before the first."""

    @property
    def keeps_margins(self) -> bool:
        """With pairwise steps."""
        return self.options.step == "pairwise"

    @property
    def rewrites_w(self) -> bool:
        """Whether the mean is certified."""
        return self.own_primal

    @property
    def own_point(self) -> bool:
        """Whether w may differ from w(alpha) to the end; certificates are then those of (w, alpha)."""
        return self.own_primal

    @property
    def scale(self) -> float:
        """1 / ((lambda + kappa) n)."""
        return float(1.0 / ((self.at.lam + self.at.kappa) * self.problem.n))

    @property
    def point(self) -> np.ndarray:
        """(d,): the mean of the points so far; the current w before the first."""
        return self.mean if self.at.points else self.state.w

    def dual_point(self) -> tuple[np.ndarray, np.ndarray]:
        """(v, clip(v)) of the current alpha."""
        at, S, P = self.at, self.state, self.problem
        if at.kappa == 0.0:
            return super().dual_point()
        v = ((at.lam + at.kappa) * S.u - at.kappa * self.centre) / at.lam
        return v, (np.clip(v, P.lower, P.upper) if P.lower.size else v)

    @property
    def centre_share(self) -> np.ndarray | None:
        """(d,): kappa y / (lambda + kappa) while kappa > 0."""
        at = self.at
        return self.centre * (at.kappa / (at.lam + at.kappa)) if at.kappa > 0.0 else None

    def dual_and_excess(self, w: np.ndarray | None = None) -> tuple[float, float]:
        """As of any block method; v is not laid out where w = u."""
        at, S, P = self.at, self.state, self.problem
        if at.kappa == 0.0 or P.lower.size or own_metric(P):
            return super().dual_and_excess(w)
        norm2, distance2 = dual_norms(S.u, self.centre, at.kappa / at.lam, S.w if w is None else w)
        return float(S.z_ell[1] - 0.5 * at.lam * norm2), float(0.5 * at.lam * distance2)

    def exact_pass(self) -> tuple[Certificate, ExactGaps]:
        """As of any block method; `weights` stay when the mean moves on."""
        found = super().exact_pass()
        self.weights = np.array(self.weights)
        return found

    # -- the mean -----------------------------------------------------------------------------------------------------
    def note(self) -> None:
        """Add the current w to the mean."""
        self.at.points += 1
        if self.at.points == 1:
            self.mean = self.state.w.copy()
        else:
            move_towards(self.mean, self.state.w, (MEAN_POWER + 1.0) / (MEAN_POWER + self.at.points))

    def mean_gap(self) -> float:
        """The mean's gap over cached labellings; the mean restarts at w if w has the smaller gap."""
        return min(self.both_gaps())

    def both_gaps(self) -> tuple[float, float]:
        """The gaps over cached labellings of the mean and of w; the mean restarts at w if w has the smaller one."""
        known, last = self.cached_gap(self.mean), self.cached_gap(self.state.w)
        if last < known:
            self.at.points = 0
            self.note()
        return known, last

    # -- proximal problems --------------------------------------------------------------------------------------------
    def start_lambda(self, lam: float, breakpoint: int, *, exact_due: bool = False) -> None:
        """Begin another lambda, with a proximal problem at the w it starts from."""
        super().start_lambda(lam, breakpoint, exact_due=exact_due)
        self.at.kappa, self.centre = 0.0, np.empty(0)
        self.at.points, self.mean = 0, np.empty(0)
        self.derive()
        self.begin_proximal()

    def begin_proximal(self) -> None:
        """Begin a proximal problem at the current w, once the curvature is known; u and w stay.

        kappa = c sqrt(lambda Lambda), Lambda the mean curvature ||B_i delta||^2 of a move over its mean slope. Lambda has
        the unit of lambda (features squared over loss), so kappa / lambda does not change when features or losses are
        scaled. It is measured on the moves of the first exact pass, which is made with kappa = 0, and then kept.
        """
        at = self.at
        if at.curvature > 0.0:
            v = self.state.u.copy()
            at.kappa = float(self.options.acceleration.c * math.sqrt(at.lam * at.curvature))
            self.centre = self.state.w.copy()
            self.state.u[:] = (at.kappa * self.centre + at.lam * v) / (at.lam + at.kappa)

    def settle(self) -> None:
        """Prepare an exact pass at a fixed point: at w = v if the certificate needs w(alpha), otherwise at the mean."""
        self.at.exact_due = True
        if not self.own_point:
            self.at.kappa, self.centre = 0.0, np.empty(0)

    def leave(self) -> None:
        """Leave the proximal problem at the end of a lambda; the certified point stays in `weights`."""
        if self.at.kappa > 0.0:
            self.at.kappa, self.centre = 0.0, np.empty(0)
            self.derive()

    def outer(self, tolerance: float, relative: bool) -> None:
        """One moving exact pass and the cached passes after it."""
        at = self.at
        first = at.curvature == 0.0
        self.moving_pass()
        dual, excess = self.dual_and_excess()
        estimate = self.known_gap + excess
        if first and self.state.curvature[1] > 0.0:
            at.curvature = float(self.state.curvature[0] / self.state.curvature[1])
        bound = self.left_for_oracle(tolerance * (max(dual, 0.0) if relative else 1.0))
        if estimate <= bound and not self.own_point:
            self.settle()
            return
        if first:
            self.begin_proximal()
        if not first or estimate <= bound:
            self.cached_passes(estimate)
            limit = bool(self.limit())
            if self.own_point and (limit or estimate <= NEAR * bound):
                limit |= self.mean_gap() <= SURE * bound
            if limit:
                self.settle()

    def outer_rate(self) -> float:
        """sqrt(lambda / (lambda + kappa)): the share of the gap that an accelerated outer iteration removes."""
        return math.sqrt(self.at.lam / (self.at.lam + self.at.kappa))

    def inner_share(self) -> float:
        """Cached passes end below this share of the exact pass's estimate."""
        return min(self.options.acceleration.inner_target, PER_RATE * self.outer_rate())

    def cached_passes(self, estimate: float) -> None:
        """Cached passes with momentum until their gap is below the `inner_share` of the exact pass's estimate."""
        at, P = self.at, self.problem
        rate, share = self.outer_rate(), self.inner_share()
        most_momentum = (1.0 - rate) / (1.0 + rate)
        t, last_dual, w_before = 1.0, -math.inf, self.state.w.copy()
        skip_below = self.options.acceleration.skip_share * estimate / P.n
        self.state.skip[:] = 0
        for _ in range(MOST_CACHED_PASSES):
            self.cached_round(skip_below)
            S = self.state
            dual, excess = self.dual_and_excess()
            remaining = self.known_gap + excess
            if self.own_point:
                self.note()
            if at.kappa > 0.0:
                if dual < last_dual:
                    t, momentum = 1.0, 0.0
                else:
                    following = 0.5 * (1.0 + math.sqrt(1.0 + 4.0 * t * t))
                    momentum, t = min((t - 1.0) / following, most_momentum), following
                last_dual = dual
                apart, pull = S.w if P.lower.size else S.w[:0], at.kappa / (at.lam + at.kappa)
                recentre(S.u, apart, w_before, self.centre, momentum, pull)
                if P.lower.size:
                    clip(S.u, P.lower, P.upper, S.w)
            if remaining <= share * estimate:
                return

    def warm_up(self) -> None:
        """Also compile or load the arithmetic of proximal problems."""
        super().warm_up()
        a, b, c, d = np.empty((4, 0))
        dual_norms(a, b, 1.0, c)
        move_towards(a, b, 1.0)
        recentre(a, b, c, d, 0.0, 0.0)

    # -- committed state ----------------------------------------------------------------------------------------------
    def own_arrays(self) -> dict[str, np.ndarray]:
        """The proximal centre and the mean."""
        return {"centre": self.centre, "mean": self.mean}

    def restore_own(self, arrays: Mapping[str, np.ndarray]) -> None:
        """The proximal centre and the mean; ValueError if one does not fit the problem."""
        d = self.problem.d
        self.centre = check_array("centre", arrays["centre"], (d if self.at.kappa > 0.0 else 0,), float, finite=True)
        self.mean = check_array("mean", arrays["mean"], (d if self.at.points else 0,), float, finite=True)


METHOD = Accelerated
