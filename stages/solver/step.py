"""One block-coordinate step: scores, corner, direction, line search, move, bookkeeping (LJ13 Alg. 4; O16 Alg. 2, 3, 5).

`step` takes a corner from the max-oracle or the cache and moves the block towards it; `cached_step` moves weight between
labellings that the block already has, without calling the oracle. `loop` draws the blocks and calls them.

All quantities live in the local coordinates of block i: theta = B_i^T w, h(y) = L_i(y) + <theta, m_i(y)>, and
base = sum_y alpha_i(y) h(y) = ell_i + <theta, mu_i>, so that the block gap is (max_y h(y) - base) / n.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from gapwise.stages.problems.inner import inner
from gapwise.stages.problems.moves import by_sum, pair_follow, pair_move, pair_norm2, pair_push, score_labels
from gapwise.stages.problems.protocol import JIT, PLAIN, dot
from gapwise.stages.solver.codes import (
    AVERAGED,
    CACHE_FIRST,
    CACHE_ONLY,
    CACHED_STEPS,
    ORACLE_CALLS,
    SKIPPED_VISITS,
    STEPS,
)
from gapwise.stages.solver.directions import gain, largest_step, line_search, update_weights, write_direction
from gapwise.stages.solver.distances import measure
from gapwise.stages.solver.sampling import MAX_GAP, tree_set, weight_of
from gapwise.stages.solver.steps import AWAY, FW, PAIRWISE
from gapwise.stages.solver.supports import drop_inactive, find, insert


@inner(**PLAIN)
def clip_into(u, lower, upper, w):
    """w <- clip(u)."""
    for j in range(u.size):
        w[j] = min(max(u[j], lower[j]), upper[j])


@njit(cache=True, **PLAIN)
def clip(u, lower, upper, w):
    """`clip_into` for callers in Python: its machine code is kept on disk, that of an inner function is not."""
    clip_into(u, lower, upper, w)


@inner(**PLAIN)
def step(P, S, flags, i, theta_all, delta_all, moved, y_all, scratch):
    """One step of block i, or `flags.rounds` of them: the first towards a corner, the others between the block's own atoms.

    The arrays are workspace, `moved` that of `room_for_sum`.
    """
    S.counters[STEPS] += 1
    lo, hi = P.local_ptr[i], P.local_ptr[i + 1]
    mu, theta, delta = S.mu[lo:hi], theta_all[: hi - lo], delta_all[: hi - lo]
    y = y_all[: P.label_ptr[i + 1] - P.label_ptr[i]]
    by_mu = reads_mu(S, flags, i)

    P.scores(i, S.w, theta)
    for turn in range(flags.rounds):
        base, best, h_best, away, h_away, active = score_atoms_of(P, S, flags, i, theta, mu, by_mu, y.size)
        if turn > 0 or flags.corner == CACHE_ONLY:
            target, h, loss = best, h_best, S.pool.losses[best]
            S.counters[CACHED_STEPS] += 1
            if turn == 0:
                note_cached_gap(S, flags, i, h - base)
        elif flags.corner == CACHE_FIRST and cache_promises_enough(S, flags, i, best, h_best - base):
            target, h, loss = best, h_best, S.pool.losses[best]
            S.counters[CACHED_STEPS] += 1
        else:
            loss = P.max_oracle(i, theta, y, scratch)
            target, h = note_answer(P, S, flags, i, theta, y, loss, base)
        if target >= 0:
            S.pool.used[target] = S.counters[STEPS]

        kind, gamma, gamma_max, slope, norm2 = best_move(
            P, S, flags, i, mu, by_mu, target, h, base, away, h_away, active, delta, moved, y.size
        )
        if gamma <= 0.0:
            break
        move(P, S, flags, i, mu, by_mu, kind, target, away, gamma, gamma_max, loss, delta, moved, y.size)
        if turn + 1 < flags.rounds:
            follow(P, S, flags, i, kind, target, away, gamma, theta, delta, y.size)
        S.curvature[0] += norm2
        S.curvature[1] += slope
    end_step(S, flags, i)


@inner(**JIT)
def room_for_sum(P, flags):
    """Workspace for B_i delta, (d,), or (0,) where steps do not compute it: several moves are measured before one is made,
    or the structure has a better way (`moves.by_sum`)."""
    one_move = flags.by_slope or flags.kinds & (flags.kinds - 1) == 0
    return np.empty(P.d if by_sum(P) and one_move else 0)


@inner(**PLAIN)
def reads_mu(S, flags, i):
    """Whether block i reads its stored mu_i; pairwise moves need none, and blocks with few atoms recompute it."""
    return flags.kinds != PAIRWISE and S.by_mu[i] == 1


@inner(**PLAIN)
def score_atoms_of(P, S, flags, i, theta, mu, by_mu, length):
    """(base, best cached slot, its h, worst active slot, its h, active atoms) of block i; a slot is -1 if there is none."""
    pool = S.pool
    base = S.ell[i] + dot(theta, mu) if by_mu else 0.0
    best, h_best, away, h_away, active = -1, -np.inf, -1, np.inf, 0
    if flags.cache or flags.kinds != FW or not by_mu:
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
    return base, best, h_best, away, h_away, active


@inner(**PLAIN)
def cache_promises_enough(S, flags, i, best, improvement):
    """Whether the best cached labelling improves by >= max(F g_i, (nu / n) g), with the last known gaps (O16 Alg. 5)."""
    known, n = S.gap[i], S.ell.size
    if not flags.cache or best < 0 or improvement <= 0.0:
        return False
    return known < np.inf and improvement >= max(flags.F * n * known, flags.nu * flags.exact_total)


@inner(**PLAIN)
def note_cached_gap(S, flags, i, improvement):
    """Record the gap of block i over its cached labellings; a small one makes cached passes skip the block for a while."""
    S.gap[i] = max(improvement, 0.0) / S.ell.size
    if S.gap[i] < flags.skip_below:
        S.skip[i] = SKIPPED_VISITS


@inner(**PLAIN)
def note_answer(P, S, flags, i, theta, y, loss, base):
    """Record an oracle's answer y: block gap, sampling weight, slot in the pool. Returns (slot or -1, h(y))."""
    h = loss + P.value(i, theta, y)
    S.counters[ORACLE_CALLS] += 1
    S.gap[i] = max(h - base, 0.0) / S.ell.size
    tree_set(S.tree, flags.sampler == MAX_GAP, i, weight_of(S.gap[i], flags.degree))
    target = find(S.pool, i, y, loss)
    if target < 0 and h > base:
        target = insert(S.pool, i, y, loss, flags.capacity)
    return target, h


@inner(**PLAIN)
def best_move(P, S, flags, i, mu, by_mu, target, h, base, away, h_away, active, delta, moved, length):
    """(kind, gamma, gamma_max, slope, ||B_i delta||^2) of the move that improves the dual most; gamma = 0 if none does.

    Candidates are the kinds in `flags.kinds`: towards the corner `target` (FW), from the worst active atom `away` to the
    corner (pairwise), or away from that atom. Afterwards `delta` holds the direction, except for pairwise moves, and
    `moved` B_i delta unless it is empty.
    """
    pool, kinds = S.pool, flags.kinds
    if flags.by_slope:
        kinds = AWAY if active > 1 and base - h_away > h - base else FW
    kind, gamma, gamma_max, slope_taken, norm2_taken = FW, 0.0, 0.0, 0.0, 0.0
    y_to, y_from = pool.labels[max(target, 0), :length], pool.labels[max(away, 0), :length]
    if target >= 0 or kinds == AWAY:
        most, measured = 0.0, 0
        for bit in range(3):
            candidate = 1 << bit
            if kinds & candidate == 0 or (candidate == AWAY and active < 2):
                continue
            if candidate == FW:
                slope = h - base
            elif candidate == PAIRWISE:
                slope = h - h_away
            else:
                slope = base - h_away
            if slope <= 0.0:
                continue
            norm2 = measure_move(P, S, i, candidate, mu, by_mu, y_to, y_from, delta, moved)
            measured = candidate
            top = 1.0 if candidate == FW else largest_step(candidate, pool.alpha[away])
            length_taken = line_search(slope, norm2, flags.scale, top)
            improvement = gain(length_taken, slope, norm2, flags.scale)
            if improvement > most:
                most, kind, gamma, gamma_max = improvement, candidate, length_taken, top
                slope_taken, norm2_taken = slope, norm2
        if gamma > 0.0 and kind != measured:  # a later candidate has overwritten delta
            measure_move(P, S, i, kind, mu, by_mu, y_to, y_from, delta, moved)
    return kind, gamma, gamma_max, slope_taken, norm2_taken


@inner(**PLAIN)
def measure_move(P, S, i, kind, mu, by_mu, y_to, y_from, delta, moved):
    """||B_i delta||^2 of a move; `delta` then holds its direction, or what `push_move` needs, and `moved` B_i delta."""
    summed = by_sum(P) and moved.size > 0
    if kind != PAIRWISE:
        write_direction(P, i, kind, mu, S.pool, by_mu, y_to, y_from, delta)
    elif summed:
        delta[:] = 0.0
        P.add(i, y_to, 1.0, delta)
        P.add(i, y_from, -1.0, delta)
    else:
        return pair_norm2(P, i, y_to, y_from, delta)
    if not summed:
        return P.norm2(i, delta)
    moved[:] = 0.0
    P.push(i, 1.0, delta, moved)
    return dot(moved, moved)


@inner(**PLAIN)
def move(P, S, flags, i, mu, by_mu, kind, target, away, gamma, gamma_max, loss, delta, moved, length):
    """Move block i by gamma: alpha, mu, ell, u, w, and the running averages (LJ13 3.4).

    `delta` and `moved` are those of `measure_move`; an empty `moved` is not used.
    """
    pool, n = S.pool, S.ell.size
    y_to, y_from = pool.labels[max(target, 0), :length], pool.labels[max(away, 0), :length]
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
    push_move(P, i, kind, -gamma * flags.scale, y_to, y_from, delta, moved, S.u)
    if P.lower.size > 0:
        clip_into(S.u, P.lower, P.upper, S.w)
    S.z_ell[1] += gamma * dl / n
    if flags.average:
        t = float(S.counters[AVERAGED] + 1)
        late = 0.5 * t * (t - 1.0)
        push_move(P, i, kind, -gamma * flags.scale * late, y_to, y_from, delta, moved, S.z)
        S.z_ell[0] += late * gamma * dl / n


@inner(**PLAIN)
def push_move(P, i, kind, c, y_to, y_from, delta, moved, u):
    """u += c B_i delta of a move that `best_move` has just measured."""
    if by_sum(P) and moved.size > 0:
        for j in range(u.size):
            u[j] += c * moved[j]
    elif kind == PAIRWISE:
        pair_push(P, i, c, y_to, y_from, delta, u)
    else:
        P.push(i, c, delta, u)


@inner(**PLAIN)
def follow(P, S, flags, i, kind, target, away, gamma, theta, delta, length):
    """theta <- B_i^T w after a move of block i."""
    if kind == PAIRWISE and P.lower.size == 0:
        y_to, y_from = S.pool.labels[target, :length], S.pool.labels[away, :length]
        pair_follow(P, i, -gamma * flags.scale, y_to, y_from, S.w, theta, delta)
    else:
        P.scores(i, S.w, theta)


@inner(**PLAIN)
def end_step(S, flags, i):
    """Count the step in the average; without a cache, drop labellings that have no weight."""
    S.counters[AVERAGED] += 1
    if not flags.cache:
        drop_inactive(S.pool, i)


@inner(**PLAIN)
def cached_step(P, S, flags, i, theta_all, delta_all, slots_all, places_all, values_all):
    """Pairwise moves between the labellings of block i's cache, `flags.rounds` of them; arrays are workspace."""
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
        best, away, base, h_best, h_away = 0, 0, 0.0, -np.inf, np.inf
        for k in range(count):  # branch-free: which atoms have weight is not to be foreseen
            h, alpha = values[k], pool.alpha[slots[k]]
            base += alpha * h
            best, h_best = (k, h) if h > h_best else (best, h_best)
            active = h if alpha > 0.0 else np.inf
            away, h_away = (k, active) if active < h_away else (away, h_away)
        if turn == 0:
            S.gap[i] = max(h_best - base, 0.0) / n
            if S.gap[i] < flags.skip_below:
                S.skip[i] = SKIPPED_VISITS
        S.counters[CACHED_STEPS] += 1
        target, worst = slots[best], slots[away]
        pool.used[target] = S.counters[STEPS]
        slope = h_best - h_away
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


@inner(**PLAIN)
def atoms_of(pool, i, slots, places):
    """Write the atoms of block i in list order and their rows in `distances`; returns -1 if one has no row, otherwise 0."""
    s, known = pool.head[i], 0
    for k in range(slots.size):
        slots[k], places[k] = s, pool.place[s]
        known = min(known, places[k])
        s = pool.next[s]
    return known


@inner(**PLAIN)
def score_atoms(P, pool, i, w, slots, theta, values):
    """values <- losses and scores at w of the atoms in `slots`, up to a term common to all; theta is workspace."""
    score_labels(P, i, w, pool.labels, slots, theta, values)
    for k in range(slots.size):
        values[k] += pool.losses[slots[k]]
