"""Steps of stochastic subgradient descent on the primal objective (`methods.ssg`; LJ13 section 5), and what they run on.

Without bounds no step takes O(d) operations: w_t = c_t s_t / (lambda t) with s_t = s_{t-1} + psi_i(y*) / c_{t-1}, where c is
the product of what the projections have multiplied by, 1 without them. The average is 2 (q_T s_T - z_T) / (lambda T (T + 1))
with q_t = q_{t-1} + c_t and z_t = z_{t-1} + q_{t-1} (s_t - s_{t-1}). Before c gets too small it is multiplied into s, and
q s is moved into z. With bounds w and the average are stored as they are, and a step takes O(d), as in `bcfw`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numba import njit

from gapwise.stages.problems.compiled import driver
from gapwise.stages.problems.inner import inner
from gapwise.stages.problems.moves import pair_move, pair_norm2, pair_push
from gapwise.stages.problems.one_type import one_type
from gapwise.stages.problems.protocol import JIT, PLAIN, Problem, widest_block
from gapwise.stages.solver.box import clip_into
from gapwise.stages.solver.codes import ORACLE_CALLS, STEPS

HERE_STEPS, N_COUNTERS = 2, 3
"""Entry of `Running.counters` after STEPS and ORACLE_CALLS: steps at this lambda; their number."""

SHRUNK, NORM2, WEIGHT = range(3)
"""Entries of `Running.numbers`: c, ||s||^2 (kept with `project` only), q."""

LEAST_SHRUNK = 1e-3
"""c is multiplied into s before it gets much smaller than this."""


class Running(NamedTuple):
    """The running solution at one lambda; all of it is committed."""

    vector: np.ndarray
    """float64, (d,): s; with bounds w itself"""
    average: np.ndarray
    """float64, (d,) or (0,) without averaging: z; with bounds the average itself"""
    numbers: np.ndarray
    """float64, (3,)"""
    counters: np.ndarray
    """int64, (3,)"""

    @classmethod
    def empty(cls, problem: Problem, averaged: bool) -> Running:
        """Before the first step."""
        average, counters = np.zeros(problem.d if averaged else 0), np.zeros(N_COUNTERS, np.int64)
        running = cls(np.zeros(problem.d), average, np.empty(3), counters)
        running.restart(problem)
        return running

    def restart(self, problem: Problem) -> None:
        """Go to w = 0, or the point of the box that is nearest to it, for another lambda."""
        self.vector[:] = np.clip(0.0, problem.lower, problem.upper) if problem.lower.size else 0.0
        self.average[:] = 0.0
        self.numbers[:] = 1.0, 0.0, 0.0
        self.counters[HERE_STEPS] = 0


@inner(**PLAIN)
def free_step(P, S, lam, radius, i, theta_all, delta_all, y_all, scratch):
    """One step of block i without bounds; projects if radius > 0. The arrays are workspace (LJ13 5)."""
    lo, hi, first, last = P.local_ptr[i], P.local_ptr[i + 1], P.label_ptr[i], P.label_ptr[i + 1]
    theta, delta, y, truth = (
        theta_all[: hi - lo],
        delta_all[: hi - lo],
        y_all[: last - first],
        one_type(P.truth[first:last]),
    )
    numbers = S.numbers
    before, shrunk = S.counters[HERE_STEPS], numbers[SHRUNK]
    factor = shrunk / (lam * before) if before > 0 else 0.0  # w = factor s
    P.scores(i, S.vector, theta)
    for j in range(theta.size):
        theta[j] *= factor
    P.max_oracle(i, theta, y, scratch)
    if radius > 0.0 or S.average.size > 0:
        norm2 = pair_norm2(P, i, truth, y, delta)
        pair_push(P, i, 1.0 / shrunk, truth, y, delta, S.vector)
        if S.average.size > 0:
            pair_push(P, i, numbers[WEIGHT] / shrunk, truth, y, delta, S.average)
        if radius > 0.0:
            inner = (P.value(i, theta, truth) - P.value(i, theta, y)) / factor if before > 0 else 0.0
            numbers[NORM2] += 2.0 * inner / shrunk + norm2 / (shrunk * shrunk)
            length = shrunk * np.sqrt(max(numbers[NORM2], 0.0)) / (lam * (before + 1))
            if length > radius:
                numbers[SHRUNK] *= radius / length
        numbers[WEIGHT] += numbers[SHRUNK]
        if numbers[SHRUNK] < LEAST_SHRUNK:
            fold(S)
    else:
        pair_move(P, i, 1.0, truth, y, delta, S.vector)


@inner(**PLAIN)
def fold(S):
    """Multiply c into s, and q s - z into z: the same w and the same average, with c = 1 and q = 0."""
    numbers, averaged = S.numbers, S.average.size > 0
    for j in range(S.vector.size):
        if averaged:
            S.average[j] -= numbers[WEIGHT] * S.vector[j]
        S.vector[j] *= numbers[SHRUNK]
    numbers[NORM2] *= numbers[SHRUNK] * numbers[SHRUNK]
    numbers[SHRUNK], numbers[WEIGHT] = 1.0, 0.0


@inner(**PLAIN)
def boxed_step(P, S, lam, radius, i, theta_all, delta_all, y_all, scratch):
    """The same with bounds: `S.vector` is w, and the average is stored as it is."""
    lo, hi, first, last = P.local_ptr[i], P.local_ptr[i + 1], P.label_ptr[i], P.label_ptr[i + 1]
    theta, delta, y, w = theta_all[: hi - lo], delta_all[: hi - lo], y_all[: last - first], S.vector
    t = S.counters[HERE_STEPS] + 1.0
    P.scores(i, w, theta)
    P.max_oracle(i, theta, y, scratch)
    for j in range(w.size):
        w[j] *= 1.0 - 1.0 / t
    pair_move(P, i, 1.0 / (lam * t), one_type(P.truth[first:last]), y, delta, w)
    clip_into(w, P.lower, P.upper, w)
    if radius > 0.0:
        norm2 = 0.0
        for j in range(w.size):
            norm2 += w[j] * w[j]
        if norm2 > radius * radius:
            for j in range(w.size):
                w[j] *= radius / np.sqrt(norm2)
    for j in range(S.average.size):
        S.average[j] += 2.0 / (t + 1.0) * (w[j] - S.average[j])


@driver
def subgradient_driver(fingerprint: str) -> Callable[..., None]:
    """`run_subgradient(P, S, lam, radius, rng, steps)`: steps of blocks drawn uniformly; radius 0: no projection."""

    @njit(cache=True, **JIT)
    def run_subgradient(P, S, lam, radius, rng, steps):
        fingerprint  # noqa: B018
        scratch, widest, n = P.scratch(), widest_block(P.local_ptr), P.local_ptr.size - 1
        theta, delta, y = np.empty(widest), np.empty(widest), np.empty(widest_block(P.label_ptr), P.truth.dtype)
        for _ in range(steps):
            i = int(rng.random() * n)
            if P.lower.size > 0:
                boxed_step(P, S, lam, radius, i, theta, delta, y, scratch)
            else:
                free_step(P, S, lam, radius, i, theta, delta, y, scratch)
            for k in (STEPS, ORACLE_CALLS, HERE_STEPS):
                S.counters[k] += 1

    return run_subgradient
