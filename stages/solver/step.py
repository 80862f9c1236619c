"""What happens at a visit of one block: scores, a corner, a direction, a step with exact line search (DESIGN 2.1-2.3, 2.8).

`visit` is the general one; `cached_visit` moves weight between labellings that the block has already, without scoring
any other. Both are compiled into the loop of `loop`, which draws the blocks.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from stages.problems.moves import pair_follow, pair_move, pair_norm2, pair_push, score_labels
from stages.problems.protocol import PLAIN, dot
from stages.solver.codes import (
    AVERAGED,
    CACHE_FIRST,
    CACHE_ONLY,
    CACHED_STEPS,
    COLLECT,
    MOVE,
    ORACLE_CALLS,
    RATE,
    SKIPPED_VISITS,
    STEPS,
)
from stages.solver.directions import (
    AWAY,
    BEST,
    FW,
    PAIRWISE,
    gain,
    largest_step,
    line_search,
    update_weights,
    write_direction,
)
from stages.solver.distances import measure
from stages.solver.sampling import MAX_GAP, tree_set, weight_of
from stages.solver.supports import drop_inactive, find, insert


@njit(**PLAIN)
def clip_into(u, lower, upper, w):
    """w <- clip(u)."""
    for j in range(u.size):
        w[j] = min(max(u[j], lower[j]), upper[j])


@njit(**PLAIN)
def visit(P, S, flags, i, k, theta_all, delta_all, y_all, scratch):
    """One visit of block i: scores, a corner, a direction, a step; `flags.rounds` times. The arrays are workspace.

    In a mini-batch this is one phase of the visit, and block i is entry k of `S.batch`, or becomes it if it is set aside.
    """
    visiting = flags.corner != RATE
    if visiting:
        S.counters[STEPS] += 1
    pool, n = S.pool, S.ell.size
    boxed = P.lower.size > 0
    lo, hi = P.local_ptr[i], P.local_ptr[i + 1]
    mu, theta, delta = S.mu[lo:hi], theta_all[: hi - lo], delta_all[: hi - lo]
    # ell + <theta, mu> is also sum_y alpha(y) h(y) over the atoms, and pairwise moves need no mu
    by_mu = flags.step != PAIRWISE and S.by_mu[i] == 1
    length = P.label_ptr[i + 1] - P.label_ptr[i]
    y = y_all[:length]
    P.scores(i, S.w, theta)
    for turn in range(flags.rounds):
        base = S.ell[i] + dot(theta, mu) if by_mu else 0.0

        # the best cached and the worst active corner
        best, h_best, away, h_away, active = -1, -np.inf, -1, np.inf, 0
        if flags.cache or flags.step != FW or not by_mu:
            s = pool.head[i]
            while s >= 0:
                h = pool.losses[s] + P.value(i, theta, pool.labels[s, :length])
                if h > h_best:
                    best, h_best = s, h
                if pool.alpha[s] > 0.0:
                    active += 1
                    if not by_mu:
                        base += pool.alpha[s] * h
                    if h < h_away:
                        away, h_away = s, h
                s = pool.next[s]

        # the corner: from the cache if that improves enough (O16 3.3), else from the max-oracle
        cached = turn > 0 or flags.corner == CACHE_ONLY
        choosing = flags.cache and (flags.corner == CACHE_FIRST or flags.corner == COLLECT)
        if choosing and not cached and best >= 0 and h_best > base:
            known = S.gap[i]
            cached = known < np.inf and h_best - base >= max(flags.F * n * known, flags.nu * flags.exact_total)
        if flags.corner == COLLECT and not cached:
            S.batch.block[k] = i
            tree_set(S.tree, flags.sampler == MAX_GAP, i, 0.0)  # not drawn again until its oracle has answered
            S.counters[STEPS] -= 1
            return
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
                loss = S.batch.losses[k]
                for j in range(length):
                    y[j] = S.batch.labels[k, j]
            else:
                loss = P.max_oracle(i, theta, y, scratch)
            h = loss + P.value(i, theta, y)
            S.counters[ORACLE_CALLS] += 1
            S.gap[i] = max(h - base, 0.0) / n
            weight = S.gap[i] if flags.sampler < 2 else weight_of(S.gap[i], flags.degree)
            tree_set(S.tree, flags.sampler == MAX_GAP, i, weight)
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
                if candidate == PAIRWISE:
                    norm2 = pair_norm2(P, i, y_to, y_from, delta)
                else:
                    write_direction(P, i, candidate, mu, pool, by_mu, y_to, y_from, delta)
                    norm2 = P.norm2(i, delta)
                top = 1.0 if candidate == FW else largest_step(candidate, pool.alpha[away])
                step = line_search(slope, norm2, flags.scale, top)
                improvement = gain(step, slope, norm2, flags.scale)
                if improvement > most:
                    most, kind, gamma, gamma_max = improvement, candidate, step, top
                    slope_taken, norm2_taken = slope, norm2
        y_to, y_from = pool.labels[max(target, 0), :length], pool.labels[max(away, 0), :length]
        if flags.step == BEST and gamma > 0.0 and kind != AWAY:  # a later candidate has overwritten it
            if kind == PAIRWISE:
                pair_norm2(P, i, y_to, y_from, delta)
            else:
                write_direction(P, i, kind, mu, pool, by_mu, y_to, y_from, delta)

        if gamma <= 0.0:
            break
        if kind == FW:
            dl = loss - S.ell[i]
        elif kind == PAIRWISE:
            dl = loss - pool.losses[away]
        else:
            dl = S.ell[i] - pool.losses[away]
        if by_mu and kind == PAIRWISE:
            P.add(i, y_to, gamma, mu)
            P.add(i, y_from, -gamma, mu)
        elif by_mu:
            for j in range(mu.size):
                mu[j] += gamma * delta[j]
        S.ell[i] += gamma * dl
        update_weights(pool, i, kind, target, away, gamma, gamma_max)
        if kind == PAIRWISE:
            pair_push(P, i, -gamma * flags.scale, y_to, y_from, delta, S.u)
        else:
            P.push(i, -gamma * flags.scale, delta, S.u)
        if boxed:
            clip_into(S.u, P.lower, P.upper, S.w)
        if turn + 1 < flags.rounds:
            if kind == PAIRWISE and not boxed:
                pair_follow(P, i, -gamma * flags.scale, y_to, y_from, S.w, theta, delta)
            else:
                P.scores(i, S.w, theta)
        S.curvature[0] += norm2_taken
        S.curvature[1] += slope_taken
        S.z_ell[1] += gamma * dl / n
        if flags.average:
            t = float(S.counters[AVERAGED] + 1)
            late = 0.5 * t * (t - 1.0)
            if kind == PAIRWISE:
                pair_push(P, i, -gamma * flags.scale * late, y_to, y_from, delta, S.z)
            else:
                P.push(i, -gamma * flags.scale * late, delta, S.z)
            S.z_ell[0] += late * gamma * dl / n
    if visiting:
        S.counters[AVERAGED] += 1
        if not flags.cache:
            drop_inactive(pool, i)


@njit(**PLAIN)
def cached_visit(P, S, flags, i, theta_all, delta_all, slots_all, places_all, values_all):
    """Pairwise moves between the labellings of block i's cache, `flags.rounds` of them; no oracle. Workspace as above."""
    S.counters[STEPS] += 1
    pool, n, squared = S.pool, S.ell.size, S.distances.squared
    boxed = P.lower.size > 0
    size, length, count = P.local_ptr[i + 1] - P.local_ptr[i], P.label_ptr[i + 1] - P.label_ptr[i], pool.counts[i]
    theta, delta = theta_all[:size], delta_all[:size]
    slots, places, values = slots_all[:count], places_all[:count], values_all[:count]
    if atoms_of(pool, i, slots, places) < 0:
        measure(P, pool, S.distances, i, slots, delta)
        atoms_of(pool, i, slots, places)
    start, width = S.distances.start[i], S.distances.width[i]
    score_atoms(P, pool, i, S.w, slots, theta, values)
    for turn in range(flags.rounds):
        best, away, base = 0, -1, 0.0
        for k in range(count):
            if values[k] > values[best]:
                best = k
            alpha = pool.alpha[slots[k]]
            if alpha > 0.0:
                base += alpha * values[k]
                if away < 0 or values[k] < values[away]:
                    away = k
        if turn == 0:
            S.gap[i] = max(values[best] - base, 0.0) / n
            if S.gap[i] < flags.skip_below:
                S.skip[i] = SKIPPED_VISITS
        S.counters[CACHED_STEPS] += 1
        target, worst = slots[best], slots[away]
        pool.used[target] = S.counters[STEPS]
        slope = values[best] - values[away]
        if slope <= 0.0:
            break
        to_best, to_worst = start + places[best] * width, start + places[away] * width
        gamma = line_search(slope, squared[to_best + places[away]], flags.scale, pool.alpha[worst])
        if gamma <= 0.0:
            break
        change = pool.losses[target] - pool.losses[worst]
        S.ell[i] += gamma * change
        S.z_ell[1] += gamma * change / n
        update_weights(pool, i, PAIRWISE, target, worst, gamma, pool.alpha[worst])
        pair_move(P, i, -gamma * flags.scale, pool.labels[target, :length], pool.labels[worst, :length], delta, S.u)
        if boxed:
            clip_into(S.u, P.lower, P.upper, S.w)
        if turn + 1 == flags.rounds:
            break
        if boxed:
            score_atoms(P, pool, i, S.w, slots, theta, values)
        else:
            half = 0.5 * gamma * flags.scale
            for k in range(count):
                values[k] += half * (squared[to_best + places[k]] - squared[to_worst + places[k]])


@njit(**PLAIN)
def atoms_of(pool, i, slots, places):
    """The atoms of block i in list order and their rows in `distances`; -1 if one has none, else 0."""
    s, known = pool.head[i], 0
    for k in range(slots.size):
        slots[k], places[k] = s, pool.place[s]
        known = min(known, places[k])
        s = pool.next[s]
    return known


@njit(**PLAIN)
def score_atoms(P, pool, i, w, slots, theta, values):
    """values <- losses and scores at w of the atoms in `slots`, up to what is the same for all; theta is workspace."""
    score_labels(P, i, w, pool.labels, slots, theta, values)
    for k in range(slots.size):
        values[k] += pool.losses[slots[k]]
