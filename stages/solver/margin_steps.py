"""Compiled code by margin vectors (`margins`): a pairwise step as `step` makes it, gaps over the cache, and u from the pool.

Every function takes the `margins.Rows` of the pool's atoms and computes a vector when it first needs it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from gapwise.stages.problems.compiled import driver
from gapwise.stages.problems.inner import inner
from gapwise.stages.problems.protocol import FAST, JIT, PLAIN, dot, widest_block
from gapwise.stages.solver.codes import (
    AVERAGED,
    CACHE_FIRST,
    CACHE_ONLY,
    CACHED_STEPS,
    DONE,
    MARGINS_FULL,
    STEPS,
    SUM_REACHED,
)
from gapwise.stages.solver.directions import line_search, update_weights
from gapwise.stages.solver.loop import draw, reason_to_return
from gapwise.stages.solver.state import block_ell, fold
from gapwise.stages.solver.step import cache_promises_enough, clip_into, note_answer, note_cached_gap
from gapwise.stages.solver.steps import PAIRWISE


@inner(**PLAIN)
def margin(P, pool, margins, i, slot, delta):
    """The row of the margin vector of an atom of block i, which is computed if it is not known."""
    row = pool.place[slot]
    if row < 0:
        margins.left[0] -= 1
        row = margins.free[margins.left[0]]
        pool.place[slot] = row
        first, last = P.label_ptr[i], P.label_ptr[i + 1]
        delta[:] = 0.0
        P.add(i, P.truth[first:last], 1.0, delta)
        P.add(i, pool.labels[slot, : last - first], -1.0, delta)
        psi = margins.psi[row]
        psi[:] = 0.0
        P.push(i, 1.0, delta, psi)
    return row


@inner(**FAST)
def distance2(a, b):
    """||a - b||^2."""
    total = 0.0
    for j in range(a.size):
        total += (a[j] - b[j]) * (a[j] - b[j])
    return total


@inner(**FAST)
def add_difference(c, a, b, u):
    """u += c (a - b)."""
    for j in range(u.size):
        u[j] += c * (a[j] - b[j])


@inner(**FAST)
def add_scaled(c, a, u):
    """u += c a."""
    for j in range(u.size):
        u[j] += c * a[j]


@inner(**PLAIN)
def score_margins(P, pool, margins, i, w, delta, slots, rows, values):
    """The atoms of block i in list order, their rows, and values[k] = L_i(y_k) - <w, psi_i(y_k)>."""
    s = pool.head[i]
    for k in range(slots.size):
        slots[k], rows[k] = s, margin(P, pool, margins, i, s, delta)
        values[k] = pool.losses[s] - dot(w, margins.psi[rows[k]])
        s = pool.next[s]


@inner(**PLAIN)
def extremes(pool, slots, values):
    """(index of the best atom, of the worst with weight, sum_y alpha_i(y) h(y))."""
    best, away, base = 0, 0, 0.0
    for k in range(slots.size):
        if values[k] > values[best]:
            best = k
        alpha = pool.alpha[slots[k]]
        if alpha > 0.0:
            base += alpha * values[k]
            if values[k] < values[away] or pool.alpha[slots[away]] <= 0.0:
                away = k
    return best, away, base


@inner(**PLAIN)
def margin_step(P, S, margins, flags, i, theta_all, delta_all, y_all, slots_all, rows_all, values_all, scratch):
    """A pairwise step of block i with a cache, or `flags.rounds` of them, as `step` makes it. The arrays are workspace."""
    S.counters[STEPS] += 1
    pool, size = S.pool, P.local_ptr[i + 1] - P.local_ptr[i]
    first, last = P.label_ptr[i], P.label_ptr[i + 1]
    theta, delta, y = theta_all[:size], delta_all[:size], y_all[: last - first]
    count = pool.counts[i]
    slots, rows, values = slots_all[:count], rows_all[:count], values_all[:count]
    for turn in range(flags.rounds):
        score_margins(P, pool, margins, i, S.w, delta, slots, rows, values)
        best, away, base = extremes(pool, slots, values)
        target, h, worst, h_worst = slots[best], values[best], slots[away], values[away]
        if turn > 0 or flags.corner == CACHE_ONLY:
            S.counters[CACHED_STEPS] += 1
            if turn == 0:
                note_cached_gap(S, flags, i, h - base)
        elif flags.corner == CACHE_FIRST and cache_promises_enough(S, flags, i, target, h - base):
            S.counters[CACHED_STEPS] += 1
        else:
            P.scores(i, S.w, theta)
            loss = P.max_oracle(i, theta, y, scratch)
            common = P.value(i, theta, P.truth[first:last])
            target, h = note_answer(P, S, flags, i, theta, y, loss, base + common)
            if target < 0:
                break
            h -= common
            count = pool.counts[i]
            slots, rows, values = slots_all[:count], rows_all[:count], values_all[:count]
        pool.used[target] = S.counters[STEPS]
        slope = h - h_worst
        if slope <= 0.0 or target == worst:  # their scores may differ by rounding where the oracle was called
            break
        towards = margins.psi[margin(P, pool, margins, i, target, delta)]
        from_ = margins.psi[margin(P, pool, margins, i, worst, delta)]
        norm2 = distance2(towards, from_)
        gamma = line_search(slope, norm2, flags.scale, pool.alpha[worst])
        if gamma <= 0.0:
            break
        change = gamma * (pool.losses[target] - pool.losses[worst])
        S.ell[i] += change
        S.z_ell[1] += change / S.ell.size
        update_weights(pool, i, PAIRWISE, target, worst, gamma, pool.alpha[worst])
        add_difference(gamma * flags.scale, towards, from_, S.u)
        if P.lower.size > 0:
            clip_into(S.u, P.lower, P.upper, S.w)
        S.curvature[0] += norm2
        S.curvature[1] += slope
    S.counters[AVERAGED] += 1


@driver
def margin_steps_driver(fingerprint: str) -> Any:
    """`run(P, S, margins, flags, rng, order, steps) -> (steps made, why it returned)`, as `loop.steps_driver`."""

    @njit(cache=True, **JIT)
    def run(P, S, margins, flags, rng, order, steps):
        fingerprint  # noqa: B018
        scratch = P.scratch()
        widest, slots = widest_block(P.local_ptr), S.pool.alpha.size
        theta, delta, y = np.empty(widest), np.empty(widest), np.empty(S.pool.labels.shape[1], P.truth.dtype)
        atoms, rows, values = np.empty(slots, np.int64), np.empty(slots, np.int64), np.empty(slots)
        for k in range(steps):
            why = reason_to_return(S, flags)
            if why != DONE:
                return k, why
            if margins.left[0] <= S.pool.counts.max():
                return k, MARGINS_FULL
            i = draw(S, flags, rng, order, k)
            if i < 0:
                return k, SUM_REACHED
            if flags.corner == CACHE_ONLY and S.skip[i] > 0:
                S.skip[i] -= 1
            else:
                margin_step(P, S, margins, flags, i, theta, delta, y, atoms, rows, values, scratch)
        return steps, DONE

    return run


@driver
def margin_gaps_driver(fingerprint: str) -> Any:
    """`gaps(P, pool, margins, w, gap)`, as `gaps.cached_driver`; every atom without a row needs a free one."""

    @njit(cache=True, **JIT)
    def gaps(P, pool, margins, w, gap):
        fingerprint  # noqa: B018
        delta, most = np.empty(widest_block(P.local_ptr)), pool.counts.max()
        slots, rows, values = np.empty(most, np.int64), np.empty(most, np.int64), np.empty(most)
        for i in range(gap.size):
            count, size = pool.counts[i], P.local_ptr[i + 1] - P.local_ptr[i]
            score_margins(P, pool, margins, i, w, delta[:size], slots[:count], rows[:count], values[:count])
            best, _, base = extremes(pool, slots[:count], values[:count])
            gap[i] = max(values[best] - base, 0.0) / gap.size

    return gaps


@driver
def margin_derive_driver(fingerprint: str) -> Any:
    """`derive(P, S, margins, scale, chunk)`, as `state.derive_driver`; every atom without a row needs a free one."""

    @njit(cache=True, **JIT)
    def derive(P, S, margins, scale, chunk):
        fingerprint  # noqa: B018
        delta = np.empty(widest_block(P.local_ptr))
        part, error = np.zeros(S.u.size), np.zeros(S.u.size)
        for i in range(S.ell.size):
            block_ell(S.pool, S.ell, i)
            s = S.pool.head[i]
            while s >= 0:
                if S.pool.alpha[s] > 0.0:
                    row = margin(P, S.pool, margins, i, s, delta[: P.local_ptr[i + 1] - P.local_ptr[i]])
                    add_scaled(scale * S.pool.alpha[s], margins.psi[row], part)
                s = S.pool.next[s]
            if (i + 1) % chunk == 0 or i + 1 == S.ell.size:
                fold(part, S.u, error)
        for j in range(S.u.size):
            S.u[j] += error[j]

    return derive
