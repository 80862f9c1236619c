"""The compiled steps: one loop for every structure and every member of the family (DESIGN 2.1-2.4, 2.8).

A step draws a block, takes a corner (a cached labelling if that promises enough, else the max-oracle's), moves the block
along the best direction of the chosen kind with exact line search, and pushes B_i delta into u. The loop knows lambda only
through ``scale`` = 1 / ((lambda + kappa) n), so that a proximal-point wrapper is another choice of u and scale and not
another loop; plain methods have kappa = 0 and u = v. All choices are flags read at run time: one compiled variant for each
structure.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from stages.problems.protocol import JIT
from stages.solver.compiled import driver
from stages.solver.directions import (
    AWAY,
    BEST,
    FW,
    PAIRWISE,
    dot,
    gain,
    largest_step,
    line_search,
    update_weights,
    write_direction,
)
from stages.solver.sampling import MAX_GAP, PERMUTATION, UNIFORM, tree_draw, tree_set, weight_of
from stages.solver.supports import Pool, drop_inactive, find, insert

STEPS, ORACLE_CALLS, CACHED_STEPS, AVERAGED, N_COUNTERS = range(5)
"""Slots of `State.counters`: steps, oracle calls in steps, steps from the cache, steps in the average (since lambda)."""

DONE, POOL_FULL, SUM_REACHED, CALLS_REACHED = range(4)
"""Why `run_steps` came back: all steps made, no free slot, stale gap sum at its bound, oracle calls used up."""


CACHE_FIRST, ORACLE_ALWAYS, CACHE_ONLY, LOOK, RATE, MOVE = range(6)
"""Where a visit's corner comes from: the cache if it promises enough, the max-oracle, the cache alone. The last three are
the phases of a mini-batch (`minibatch`), over given blocks: see whose cached corner is enough, note the gaps of the corners
that oracles answered with, move. Only the last is a visit."""

SKIPPED_VISITS = 3


class Batch(NamedTuple):
    """The corners of a mini-batch, one a block of `order`; empty without one."""

    slot: np.ndarray
    """int64: where the corner is in the pool; -1: not there"""
    losses: np.ndarray
    """float64: L_i of oracles' answers"""
    labels: np.ndarray
    """truth's dtype, (blocks, longest): oracles' answers"""


class State(NamedTuple):
    """The running solver: everything below but the pool, gaps and counters is derived from the pool at a rebase."""

    mu: np.ndarray
    """float64, flat local vectors: mu_i = sum_y alpha_i(y) m_i(y); pairwise moves leave it to the next rebase"""
    ell: np.ndarray
    """float64, (n,): sum_y alpha_i(y) L_i(y)"""
    u: np.ndarray
    """float64, (d,): scale * sum_i B_i (m_i(y_i) - mu_i), plus the proximal centre's share if kappa > 0"""
    w: np.ndarray
    """float64, (d,): clip(u); the same array as u when there is no box"""
    gap: np.ndarray
    """float64, (n,): last known block gaps; inf where never computed"""
    tree: np.ndarray
    """float64: `sampling`'s tree over the gaps"""
    pool: Pool
    skip: np.ndarray
    """int64, (n,): visits of cached passes that block i sits out (DESIGN 2.8)"""
    z: np.ndarray
    """float64, (d,) or (0,) without averaging: running sum of DESIGN 2.4"""
    z_ell: np.ndarray
    """float64, (2,): the same for (1/n) sum ell_i, and its current value"""
    counters: np.ndarray
    """int64, (N_COUNTERS,)"""
    curvature: np.ndarray
    """float64, (2,): sums of ||B_i delta||^2 and of the slope over the moves since it was last zeroed"""
    batch: Batch
    """the mini-batch under way"""


class Flags(NamedTuple):
    """The choices of `options.SolverOptions` as compiled code reads them."""

    sampler: int
    step: int
    cache: bool
    corner: int
    """CACHE_FIRST to MOVE: where a visit's corner comes from"""
    rounds: int
    """moves a visit: the first towards the corner, more between the block's own atoms"""
    skip_below: float
    """cached passes: a block whose gap is below this sits out `SKIPPED_VISITS` visits"""
    F: float
    nu: float
    capacity: int
    degree: float
    average: bool
    scale: float
    """1 / ((lambda + kappa) n)"""
    exact_total: float
    """last exact sum of block gaps; 1 before there is one"""
    stop_sum: float
    """come back when the tree's sum of stale gaps is at or below this; < 0: never"""
    stop_calls: int
    """come back when this many oracle calls have been made in steps"""


@njit(**JIT)
def clip_into(u, lower, upper, w):
    """w <- clip(u)."""
    for j in range(u.size):
        w[j] = min(max(u[j], lower[j]), upper[j])


@njit(**JIT)
def corner_gap(P, i, theta, mu, ell, y, loss):
    """n times the gap of block i towards the corner y, given its scores."""
    return loss + P.value(i, theta, y) - ell - dot(theta, mu)


@driver
def steps_driver(fingerprint: str) -> Any:
    """`run_steps(P, S, flags, rng, order, steps) -> (steps made, why it came back)` for the structure of a problem."""

    @njit(cache=True, **JIT)
    def run_steps(P, S, flags, rng, order, steps):
        fingerprint  # noqa: B018  a closure cell, so that it enters numba's cache key
        n = S.ell.size
        pool = S.pool
        scratch = P.scratch()
        widest = 0
        longest = pool.labels.shape[1]
        given = flags.corner >= LOOK
        visiting = not given or flags.corner == MOVE
        for k in range(steps if given else n):
            i = order[k] if given else k
            widest = max(widest, P.local_ptr[i + 1] - P.local_ptr[i])
        theta_all, delta_all, y_all = np.empty(widest), np.empty(widest), np.empty(longest, P.truth.dtype)
        greedy = flags.sampler == MAX_GAP
        boxed = P.lower.size > 0
        # pairwise moves need no mu: sum_y alpha(y) h(y) is ell + <theta, mu>; the next rebase brings it up to date
        with_mu = flags.step != PAIRWISE
        for k in range(steps):
            if pool.free[1] < 1:
                return k, POOL_FULL
            if S.counters[ORACLE_CALLS] >= flags.stop_calls:
                return k, CALLS_REACHED
            if not greedy and S.tree[1] <= flags.stop_sum:
                return k, SUM_REACHED
            if given or flags.sampler == PERMUTATION:
                i = order[k]
            elif flags.sampler == UNIFORM:
                i = int(rng.random() * n)
            else:
                i = tree_draw(S.tree, greedy, rng)
                if i < 0:
                    return k, SUM_REACHED
            if flags.corner == CACHE_ONLY and S.skip[i] > 0:
                S.skip[i] -= 1
                continue
            if visiting:
                S.counters[STEPS] += 1
            lo, hi = P.local_ptr[i], P.local_ptr[i + 1]
            mu, theta, delta = S.mu[lo:hi], theta_all[: hi - lo], delta_all[: hi - lo]
            length = P.label_ptr[i + 1] - P.label_ptr[i]
            y = y_all[:length]
            for turn in range(flags.rounds):
                P.scores(i, S.w, theta)
                base = S.ell[i] + dot(theta, mu) if with_mu else 0.0

                # the best cached and the worst active corner
                best, h_best, away, h_away, active = -1, -np.inf, -1, np.inf, 0
                if flags.cache or flags.step != FW:
                    s = pool.head[i]
                    while s >= 0:
                        h = pool.losses[s] + P.value(i, theta, pool.labels[s, :length])
                        if h > h_best:
                            best, h_best = s, h
                        if pool.alpha[s] > 0.0:
                            active += 1
                            if not with_mu:
                                base += pool.alpha[s] * h
                            if h < h_away:
                                away, h_away = s, h
                        s = pool.next[s]

                # the corner: from the cache if that improves enough (O16 3.3), else from the max-oracle
                cached = turn > 0 or flags.corner == CACHE_ONLY
                choosing = flags.cache and (flags.corner == CACHE_FIRST or flags.corner == LOOK)
                if choosing and not cached and best >= 0 and h_best > base:
                    known = S.gap[i]
                    cached = known < np.inf and h_best - base >= max(flags.F * n * known, flags.nu * flags.exact_total)
                if flags.corner == LOOK:
                    if cached:
                        S.batch.slot[k] = best
                        S.counters[CACHED_STEPS] += 1
                    break
                if flags.corner == MOVE:
                    target, h, loss = S.batch.slot[k], -np.inf, 0.0
                    if target >= 0:
                        loss = pool.losses[target]
                        h = loss + P.value(i, theta, pool.labels[target, :length])
                elif cached:
                    target, h, loss = best, h_best, pool.losses[best]
                    S.counters[CACHED_STEPS] += 1
                    if flags.corner == CACHE_ONLY and turn == 0:
                        S.gap[i] = max(h - base, 0.0) / n
                        if S.gap[i] < flags.skip_below:
                            S.skip[i] = SKIPPED_VISITS
                else:
                    if flags.corner == RATE:
                        y[:], loss = S.batch.labels[k, :length], S.batch.losses[k]
                    else:
                        loss = P.max_oracle(i, theta, y, scratch)
                    h = loss + P.value(i, theta, y)
                    S.counters[ORACLE_CALLS] += 1
                    S.gap[i] = max(h - base, 0.0) / n
                    weight = S.gap[i] if flags.sampler < 2 else weight_of(S.gap[i], flags.degree)
                    tree_set(S.tree, greedy, i, weight)
                    target = find(pool, i, y, loss)
                    if target < 0 and h > base:
                        target = insert(pool, i, y, loss, flags.capacity)
                if target >= 0:
                    pool.used[target] = S.counters[STEPS]
                if flags.corner == RATE:
                    S.batch.slot[k] = target
                    break

                # the direction: a move of one kind, and a step along it
                kind = flags.step
                if kind == AWAY:
                    kind = AWAY if active > 1 and base - h_away > h - base else FW
                gamma, gamma_max, slope_taken, norm2_taken = 0.0, 0.0, 0.0, 0.0
                if target >= 0 or kind == AWAY:
                    first, last = (FW, AWAY) if kind == BEST else (kind, kind)
                    most = 0.0
                    for candidate in range(first, last + 1):
                        if candidate == AWAY and active < 2:
                            continue
                        if candidate == FW:
                            slope = h - base
                        elif candidate == PAIRWISE:
                            slope = h - h_away
                        else:
                            slope = base - h_away
                        if slope <= 0.0:
                            continue
                        y_to, y_from = pool.labels[max(target, 0), :length], pool.labels[max(away, 0), :length]
                        write_direction(P, i, candidate, mu, y_to, y_from, delta)
                        top = 1.0 if candidate == FW else largest_step(candidate, pool.alpha[away])
                        norm2 = P.norm2(i, delta)
                        step = line_search(slope, norm2, flags.scale, top)
                        improvement = gain(step, slope, norm2, flags.scale)
                        if improvement > most:
                            most, kind, gamma, gamma_max = improvement, candidate, step, top
                            slope_taken, norm2_taken = slope, norm2
                    if first != last and gamma > 0.0 and kind != AWAY:
                        y_to, y_from = pool.labels[max(target, 0), :length], pool.labels[max(away, 0), :length]
                        write_direction(P, i, kind, mu, y_to, y_from, delta)

                if gamma <= 0.0:
                    break
                if kind == FW:
                    dl = loss - S.ell[i]
                elif kind == PAIRWISE:
                    dl = loss - pool.losses[away]
                else:
                    dl = S.ell[i] - pool.losses[away]
                if with_mu:
                    for j in range(mu.size):
                        mu[j] += gamma * delta[j]
                S.ell[i] += gamma * dl
                update_weights(pool, i, kind, target, away, gamma, gamma_max)
                P.push(i, -gamma * flags.scale, delta, S.u)
                if boxed:
                    clip_into(S.u, P.lower, P.upper, S.w)
                S.curvature[0] += norm2_taken
                S.curvature[1] += slope_taken
                S.z_ell[1] += gamma * dl / n
                if flags.average:
                    t = float(S.counters[AVERAGED] + 1)
                    late = 0.5 * t * (t - 1.0)
                    P.push(i, -gamma * flags.scale * late, delta, S.z)
                    S.z_ell[0] += late * gamma * dl / n
            if visiting:
                S.counters[AVERAGED] += 1
                if not flags.cache:
                    drop_inactive(pool, i)
        return steps, DONE

    return run_steps
