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

It certifies the w that is stored with alpha, wherever it comes from. A path's certificates need w(alpha) itself: there, and
for `multiplane_half`, the finish first moves to w = v, where the bracket is 0.

*Recentring* keeps alpha, hence v: y' = w + b (w - w_prev), u' = (kappa y' + lambda v) / (lambda + kappa), w' = clip(u').
"""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np

from stages.solver.codes import CACHE_ONLY, ORACLE_ALWAYS
from stages.solver.codes import STEPS as STEP_COUNT
from stages.solver.objective import Certificate, dual_value, squared_norm
from stages.solver.options import Status
from stages.solver.supports import drop_unused
from stages.solver.visits import clip_into

MOST_RECENTRINGS = 300
"""Of one outer iteration: a bound that only a broken oracle would reach."""

FINISH_PASSES = 10
"""Cached passes between two exact passes of the finish."""

PER_RATE = 4.0
"""The share of the estimate that cached passes leave is at most this often sqrt(lambda / (lambda + kappa)), the rate of the
outer iterations: a proximal problem solved more loosely takes from them what momentum gives (Catalyst's criterion)."""

EARLY = 1.5
"""Estimate over tolerance at which an exact pass at a fixed point is due: the estimate sums gaps at points on the way, and
the true gap at the last one was 0.5 to 0.7 of it on OCR, at five lambdas. Nothing is lost by a pass that comes too early:
its labellings go into the caches."""


def kappa_of(solver: Any) -> float:
    """kappa = c sqrt(lambda Lambda), Lambda the mean curvature ||B_i delta||^2 of a move over its mean slope.

    Lambda has the unit of lambda (features squared over loss), so kappa / lambda does not change when features or losses
    are scaled. It is measured on the moves of the first exact pass, which is made with kappa = 0, and then kept.
    """
    return float(solver.options.acceleration.c * math.sqrt(solver.at.lam * solver.at.curvature))


def solve_cached(solver: Any, tolerance: float, boundary: Any, *, relative: bool) -> tuple[Status, Certificate | None]:
    """The loop of `Solver.solve` for the schedules `accelerated` and `multiplane_half`; same contract.

    An outer iteration is one exact pass (every block visited with its oracle, w moving) and cached passes with momentum.
    When its estimate of the gap is near the tolerance, an exact pass at a fixed point certifies (w, alpha), or fills the
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
                if own_point(solver):
                    if at.kappa == 0.0:
                        centre(solver)
                    cached_passes(solver, point.gap)
                else:
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


def dual_and_excess(solver: Any) -> tuple[float, float]:
    """D(alpha), and what the certificate of (w, alpha) has besides the block gaps."""
    at, S, P = solver.at, solver.state, solver.problem
    v, w_v = dual_point(solver)
    dual = dual_value(float(S.z_ell[1]), v, w_v, at.lam, P.lower, P.upper)
    excess = 0.0 if at.kappa == 0.0 else squared_norm(S.w - v) - (squared_norm(w_v - v) if P.lower.size else 0.0)
    return dual, 0.5 * at.lam * excess


def gap_sum(solver: Any) -> float:
    return float(np.sum(solver.state.gap))


def outer(solver: Any, tolerance: float, relative: bool) -> None:
    """One exact pass and the cached passes after it; sets `exact_due` when the finish is near."""
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
    if estimate <= (EARLY if own_point(solver) else 1.0) * tolerance * (max(dual, 0.0) if relative else 1.0):
        settle(solver)
    elif first:
        centre(solver)
    else:
        cached_passes(solver, estimate)
        if solver.limit():
            settle(solver)


def settle(solver: Any) -> None:
    """An exact pass at a fixed point is due: at w = v where the certificate needs w(alpha)."""
    solver.at.exact_due = True
    if not own_point(solver):
        solver.at.kappa = 0.0
        solver.centre = np.empty(0)


def leave(solver: Any) -> None:
    """Leave the proximal problem at the end of a lambda; what was certified stays in `weights`."""
    if solver.at.kappa > 0.0:
        solver.weights = solver.state.w.copy()
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
        if remaining < share * estimate:
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
