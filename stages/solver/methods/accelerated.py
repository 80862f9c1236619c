"""Exact passes as rare as can be: an accelerated proximal-point method over cached passes (DESIGN 2.8).

Catalyst (Lin, Mairal, Harchaoui, NIPS 2015) around the compiled loop: minimise P(w) + (kappa/2) ||w - y||^2 loosely,
recentre y with momentum, again. In local coordinates the proximal term costs one scalar. With

    u = (kappa y + lambda v) / (lambda + kappa),  w = clip(u),  v = ((lambda + kappa) u - kappa y) / lambda

every step uses scale = 1 / ((lambda + kappa) n) and pushes into u. kappa = 0 is `multiplane_half`: exact passes
alternate with cached passes until their gap is half the exact one, no clock and no momentum.

*Certificate of any pair (w in the box, alpha).* D(alpha) = ell + min_{x in box} lambda/2 ||x||^2 - lambda <x, v>, whose
minimiser is w_v = clip(v), and sum_i g_i(w) = R(w) - ell + lambda <w, v>. Hence

    P(w) - D(alpha) = sum_i g_i(w) + (lambda/2) (||w - v||^2 - ||w_v - v||^2),

and the second term is >= 0 because w_v is the point of the box next to v; without a box it is (lambda/2) ||w - v||^2 =
(kappa^2 / 2 lambda) ||w - y||^2.

It certifies the w that is stored with alpha, wherever it comes from: here the mean of the points on the way, weighted
towards the latest (`note`). Steps make w swing about the optimum, where P is not smooth, and the mean's gap is smaller
than the last point's: 2 to 5 times on OCR, up to 23 on CoNLL, 1.1 on Weizmann. A path's certificates need w(alpha) itself:
there, and for `multiplane_half`, the finish first moves to w = v, where the bracket is 0.

*Recentring* keeps alpha, hence v: y' = w + b (w - w_prev), u' = (kappa y' + lambda v) / (lambda + kappa), w' = clip(u').
"""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np

from stages.solver.codes import CACHE_ONLY, ORACLE_ALWAYS
from stages.solver.codes import STEPS as STEP_COUNT
from stages.solver.distances import no_distances, with_room
from stages.solver.gaps import cached_driver
from stages.solver.objective import Certificate, dual_value, squared_norm
from stages.solver.options import Status
from stages.solver.step import clip_into
from stages.solver.supports import drop_unused

MOST_RECENTRINGS = 300
"""Of one outer iteration: a bound that only a broken oracle would reach."""

FINISH_PASSES = 10
"""Cached passes between two exact passes of the finish."""

PER_RATE = 4.0
"""The share of the estimate that cached passes leave is at most this often sqrt(lambda / (lambda + kappa)), the rate of the
outer iterations: a proximal problem solved more loosely takes from them what momentum gives (Catalyst's criterion)."""

MEAN_POWER = 7.0
"""The mean weighs the k-th point about as k ** MEAN_POWER (polynomial-decay averaging: Shamir, Zhang, ICML 2013). Of 2, 4,
7, 11, and of fixed windows of 4 to 20 points, it was the best or near it everywhere: OCR, CoNLL, Weizmann, seven lambdas."""

NEAR = 30.0
"""Estimate over tolerance from which on the mean's gap over cached labellings, 0.04 to 0.6 of it, is looked at."""

SURE = 0.95
"""Share of the tolerance that this gap, which takes no oracle, must be below before an exact pass is made for the mean. The
exact gap was 1.00 to 1.16 times as large below 1e-2. A pass that comes too early is not lost: its labellings stay."""


def kappa_of(solver: Any) -> float:
    """kappa = c sqrt(lambda Lambda), Lambda the mean curvature ||B_i delta||^2 of a move over its mean slope.

    Lambda has the unit of lambda (features squared over loss), so kappa / lambda does not change when features or losses
    are scaled. It is measured on the moves of the first exact pass, which is made with kappa = 0, and then kept.
    """
    return float(solver.options.acceleration.c * math.sqrt(solver.at.lam * solver.at.curvature))


def solve_cached(solver: Any, tolerance: float, boundary: Any, *, relative: bool) -> tuple[Status, Certificate | None]:
    """The loop of `Solver.solve` for the schedules `accelerated` and `multiplane_half`; same contract.

    An outer iteration is one exact pass (every block visited with its oracle, w moving) and cached passes with momentum.
    When the mean's gap over cached labellings is below the tolerance, an exact pass certifies (mean, alpha), or fills the
    caches for more of them. Where the certificate needs w(alpha), the finish comes before: it sets kappa = 0 and w = v and
    alternates cached passes with exact passes at a fixed point.
    """
    at = solver.at
    while True:
        started = time.perf_counter()
        solver.rebase()
        at.seconds += time.perf_counter() - started
        stop = boundary(solver)
        if stop:
            solver.fresh = True
            return stop, None
        started = time.perf_counter()
        try:
            if at.exact_due:
                point, _ = solver.exact_pass()
                solver.record(point, started)
                converged = point.gap <= tolerance * (max(point.dual, 0.0) if relative else 1.0)
                status = Status.CONVERGED if converged else solver.limit()
                if status:
                    leave(solver)
                    return status, point
                if not own_point(solver):
                    finish(solver, point.gap)
            else:
                outer(solver, tolerance, relative)
        finally:
            at.seconds += time.perf_counter() - started


def own_point(solver: Any) -> bool:
    """Whether w may be any point to the end, and so accelerated: certificates are those of (w, alpha)."""
    return bool(solver.own_primal and solver.options.schedule == "accelerated")


def dual_point(solver: Any) -> tuple[np.ndarray, np.ndarray]:
    """(v, clip(v)) of the present alpha."""
    at, S, P = solver.at, solver.state, solver.problem
    v = S.u if at.kappa == 0.0 else ((at.lam + at.kappa) * S.u - at.kappa * solver.centre) / at.lam
    return v, (np.clip(v, P.lower, P.upper) if P.lower.size else v)


def dual_and_excess(solver: Any, w: np.ndarray | None = None) -> tuple[float, float]:
    """D(alpha), and what the certificate of (w, alpha) has besides the block gaps; w (d,), if not the present one."""
    at, S, P = solver.at, solver.state, solver.problem
    v, w_v = dual_point(solver)
    dual = dual_value(float(S.z_ell[1]), v, w_v, at.lam, P.lower, P.upper)
    if w is None and at.kappa == 0.0:
        return dual, 0.0
    excess = squared_norm((S.w if w is None else w) - v) - (squared_norm(w_v - v) if P.lower.size else 0.0)
    return dual, 0.5 * at.lam * excess


def cached_gap(solver: Any, w: np.ndarray) -> float:
    """The gap of (w, alpha) as far as cached labellings know: at most the exact one."""
    gap = np.empty(solver.problem.n)
    cached_driver(solver.problem)(solver.problem, solver.state.pool, w, gap)
    return float(np.sum(gap)) + dual_and_excess(solver, w)[1]


def note(solver: Any) -> None:
    """The present w into the mean."""
    solver.at.points += 1
    if solver.at.points == 1:
        solver.mean = solver.state.w.copy()
    else:
        share = (MEAN_POWER + 1.0) / (MEAN_POWER + solver.at.points)
        solver.mean = solver.mean + share * (solver.state.w - solver.mean)


def gap_sum(solver: Any) -> float:
    return float(np.sum(solver.state.gap))


def outer(solver: Any, tolerance: float, relative: bool) -> None:
    """One exact pass and the cached passes after it; sets `exact_due` when the end is near."""
    at, options, n = solver.at, solver.options.acceleration, solver.problem.n
    solver.make_room(n)
    solver.state.curvature[:] = 0.0
    solver.visit(corner=ORACLE_ALWAYS, rounds=options.rounds)
    first = at.curvature == 0.0 and solver.options.schedule == "accelerated"
    steps = int(solver.state.counters[STEP_COUNT])
    at.marks = [*at.marks, steps][-options.unused_passes :]
    if len(at.marks) == options.unused_passes:
        drop_unused(solver.state.pool, at.marks[0])
    dual, excess = dual_and_excess(solver)
    estimate = gap_sum(solver) + excess
    if first and solver.state.curvature[1] > 0.0:
        at.curvature = float(solver.state.curvature[0] / solver.state.curvature[1])
    bound = tolerance * (max(dual, 0.0) if relative else 1.0)
    if estimate <= bound and not own_point(solver):
        settle(solver)
        return
    if first:
        centre(solver)
    if not first or estimate <= bound:
        cached_passes(solver, estimate)
        limit = bool(solver.limit())
        if own_point(solver) and (limit or estimate <= NEAR * bound):
            limit |= known_gap(solver) <= SURE * bound
        if limit:
            settle(solver)


def known_gap(solver: Any) -> float:
    """The mean's gap over cached labellings; the mean begins anew at w where that has a smaller one."""
    known, last = cached_gap(solver, solver.mean), cached_gap(solver, solver.state.w)
    if last < known:
        solver.at.points = 0
        note(solver)
    return min(known, last)


def settle(solver: Any) -> None:
    """An exact pass at a fixed point is due: at w = v where the certificate needs w(alpha), else at the mean."""
    solver.at.exact_due = True
    if not own_point(solver):
        solver.at.kappa = 0.0
        solver.centre = np.empty(0)


def leave(solver: Any) -> None:
    """Leave the proximal problem at the end of a lambda; what was certified stays in `weights`."""
    if solver.at.kappa > 0.0:
        solver.at.kappa = 0.0
        solver.centre = np.empty(0)
        solver.derive()


def outer_rate(solver: Any) -> float:
    """sqrt(lambda / (lambda + kappa)): what an accelerated outer iteration takes off the gap, as a share of it."""
    return math.sqrt(solver.at.lam / (solver.at.lam + solver.at.kappa))


def inner_share(solver: Any) -> float:
    """The share of the exact pass's estimate below which cached passes end."""
    return min(solver.options.acceleration.inner_target, PER_RATE * outer_rate(solver))


def cached_passes(solver: Any, estimate: float) -> None:
    """Cached passes with momentum until their gap is below the `inner_share` of the exact pass's estimate."""
    at, P, options = solver.at, solver.problem, solver.options.acceleration
    rate, share = outer_rate(solver), inner_share(solver)
    most_momentum = (1.0 - rate) / (1.0 + rate)
    t, last_dual, w_before = 1.0, -math.inf, solver.state.w.copy()
    skip_below = options.skip_share * estimate / P.n
    solver.state.skip[:] = 0
    for _ in range(MOST_RECENTRINGS):
        solver.visit(options.cached_passes, corner=CACHE_ONLY, rounds=options.rounds, skip_below=skip_below)
        S = solver.state
        dual, excess = dual_and_excess(solver)
        remaining = gap_sum(solver) + excess
        if own_point(solver):
            note(solver)
        if at.kappa > 0.0:
            if dual < last_dual:
                t, momentum = 1.0, 0.0
            else:
                following = 0.5 * (1.0 + math.sqrt(1.0 + 4.0 * t * t))
                momentum, t = min((t - 1.0) / following, most_momentum), following
            last_dual = dual
            v, _ = dual_point(solver)
            w = S.w.copy()
            solver.centre = w + momentum * (w - w_before)
            w_before = w
            S.u[:] = (at.kappa * solver.centre + at.lam * v) / (at.lam + at.kappa)
            if P.lower.size:
                clip_into(S.u, P.lower, P.upper, S.w)
        if remaining <= share * estimate:
            return


def finish(solver: Any, gap: float) -> None:
    """Cached passes at kappa = 0 between two exact passes of the finish."""
    options = solver.options.acceleration
    solver.state.skip[:] = 0
    for _ in range(FINISH_PASSES):
        solver.visit(corner=CACHE_ONLY, rounds=options.rounds)
        if gap_sum(solver) < 0.5 * options.inner_target * gap:
            break
    solver.at.exact_due = True


def start(solver: Any) -> None:
    """Begin the outer iterations of a lambda."""
    solver.at.kappa, solver.at.marks, solver.centre = 0.0, [], np.empty(0)
    solver.at.points, solver.mean = 0, np.empty(0)
    solver.derive()
    centre(solver)


def centre(solver: Any) -> None:
    """Begin a proximal problem at the present w; u and w stay."""
    if solver.options.schedule == "accelerated" and solver.at.curvature > 0.0:
        v = solver.state.u.copy()
        solver.at.kappa = kappa_of(solver)
        solver.centre = solver.state.w.copy()
        at = solver.at
        solver.state.u[:] = (at.kappa * solver.centre + at.lam * v) / (at.lam + at.kappa)


def warm_up(solver: Any) -> None:
    """Compile or load what only these schedules call."""
    drop_unused(solver.state.pool, 0)
    cached_driver(solver.problem)(solver.problem, solver.state.pool, solver.state.w, np.empty(solver.problem.n))
    with_room(no_distances(1), np.ones(1, np.int64))
