"""Steps of a block within its working set, from inner products kept between its labellings (S15 3.5).

In an exact pass the max-oracle's answer joins the working set first. A visit scores the block's labellings once; every
further step of the visit takes O(their number), whatever the features. With q_k = B_i m_i(y_k), D_kl = ||q_k - q_l||^2
(`distances`), weights alpha, their mean q = sum_l alpha_l q_l and the variance V = sum_l alpha_l ||q_l - q||^2, the numbers

    S_k = sum_l alpha_l D_kl = ||q_k - q||^2 + V,        V = (1/2) sum_k alpha_k S_k

give the curvature of each kind of move, ||q_k - q||^2 = S_k - V, and what the move does to scores and to S itself:

    move of gamma                     score h_k changes, up to a common term, by      S_k becomes
    Frank-Wolfe, q -> q_y             (gamma scale / 2) (D_ky - S_k)                  (1 - gamma) S_k + gamma D_ky
    pairwise, q_z -> q_y              (gamma scale / 2) (D_ky - D_kz)                 S_k + gamma (D_ky - D_kz)
    away, q_z -> q                    (gamma scale / 2) (S_k - D_kz)                  (1 + gamma) S_k - gamma D_kz

So u changes once a visit, by the sum of its moves. With a box, w = clip(u) is not linear in u: there every move is pushed
and the labellings are scored again.

These steps stand beside `block.step`, which pushes each move into u as it is made: one push a visit adds in another order.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from gapwise.stages.problems.compiled import driver
from gapwise.stages.problems.inner import inner
from gapwise.stages.problems.protocol import JIT, PLAIN, U, widest_block
from gapwise.stages.problems.simd import WIDTH, add, broadcast, load, multiply, store
from gapwise.stages.solver.block.answers import note_answer
from gapwise.stages.solver.block.views.distances import locate, score_slots
from gapwise.stages.solver.box import clip_into
from gapwise.stages.solver.codes import AVERAGED, CACHED_STEPS, ORACLE_ALWAYS, STEPS
from gapwise.stages.solver.directions import gain, largest_step, line_search
from gapwise.stages.solver.prefetching import fetch_ahead
from gapwise.stages.solver.steps import AWAY, FW, PAIRWISE
from gapwise.stages.solver.working_sets import RETIRED


@inner(**PLAIN)
def plane_steps(P, S, flags, i, theta_all, delta_all, slots_all, places_all, numbers, row):
    """Up to `flags.rounds` steps of block i within its working set; returns how many labellings they scored, all together.

    The arrays are workspace; `numbers` has a row each for scores, S, weights, the weights that u knows of, and whether an
    atom is in the working set.
    """
    S.counters[STEPS] += 1
    S.counters[AVERAGED] += 1
    count, size = S.pool.counts[i], P.local_ptr[i + 1] - P.local_ptr[i]
    slots, places = slots_all[:count], places_all[:count]
    locate(P, S, i, slots, places, delta_all[:size])
    score_slots(P, S.pool, i, S.w, slots, theta_all[:size], numbers[0, :count])
    return steps_within(P, S, flags, i, theta_all[:size], delta_all[:size], slots, places, numbers, row)


@inner(**PLAIN)
def oracle_steps(P, S, flags, i, theta_all, delta_all, slots_all, places_all, numbers, row, y_all, scratch):
    """The same with the max-oracle: its answer joins the working set, and the first step is towards it.

    The scores B_i^T w serve the oracle and all labellings of the block, whose inner products give the curvature.
    """
    S.counters[STEPS] += 1
    S.counters[AVERAGED] += 1
    pool, size, length = S.pool, P.local_ptr[i + 1] - P.local_ptr[i], P.label_ptr[i + 1] - P.label_ptr[i]
    theta, y, count = theta_all[:size], y_all[:length], pool.counts[i]
    P.scores(i, S.w, theta)
    loss = P.max_oracle(i, theta, y, scratch)
    base, s = 0.0, pool.head[i]
    for k in range(1, count + 1):  # place 0 is for the answer, if it is new
        slots_all[k] = s
        numbers[0, k] = pool.losses[s] + P.value(i, theta, pool.labels[s, :length])
        if pool.alpha[s] > 0.0:
            base += pool.alpha[s] * numbers[0, k]
        s = pool.next[s]
    target, h = note_answer(P, S, flags, i, theta, y, loss, base)
    if target >= 0:
        pool.used[target] = S.counters[STEPS]
    first = 1
    if pool.counts[i] > count:
        slots_all[0], numbers[0, 0], first = target, h, 0
    slots, places = slots_all[first : count + 1], places_all[first : count + 1]
    locate(P, S, i, slots, places, delta_all[:size])
    steps_within(P, S, flags, i, theta, delta_all[:size], slots, places, numbers[:, first:], row)


@inner(**PLAIN)
def steps_within(P, S, flags, i, theta, delta, slots, places, numbers, row):
    """Up to `flags.rounds` steps among the labellings `slots`, whose scores are numbers[0]; returns how many it scored."""
    pool, squared, count = S.pool, S.distances.squared, slots.size
    values, spreads, alpha, before = numbers[0, :count], numbers[1, :count], numbers[2, :count], numbers[3, :count]
    within, start, width = numbers[4, :count], S.distances.start[i], S.distances.width[i]
    for k in range(count):
        alpha[k] = before[k] = pool.alpha[slots[k]]
        within[k] = pool.used[slots[k]] != RETIRED
        spreads[k] = 0.0
    if flags.kinds != PAIRWISE:
        write_spreads(squared, start, width, places, alpha, spreads, row)
    scored, moved, ell = 0, False, S.ell[i]
    best, away, active, base, variance = survey(values, spreads, alpha, within)
    for turn in range(flags.rounds):
        scored += count
        S.counters[CACHED_STEPS] += flags.vertex_from != ORACLE_ALWAYS
        if best < 0:
            break
        pool.used[slots[best]] = S.counters[STEPS]
        to_best, to_away = start + places[best] * width, start + places[away] * width
        kind, gamma, top = choose(
            flags, values[best], base, values[away], active, spreads[best] - variance, squared[to_best + places[away]],
            spreads[away] - variance, alpha[away],
        )  # fmt: skip
        if gamma <= 0.0:
            break
        moved = True
        make_move(kind, gamma, top, flags.scale, squared, to_best, to_away, places, best, away, values, spreads, alpha)
        if P.lower.size > 0:
            push_moves(P, S, flags, i, slots, alpha, before, best, delta)
            if turn + 1 < flags.rounds:
                score_slots(P, pool, i, S.w, slots, theta, values)
        if turn + 1 < flags.rounds:
            best, away, active, base, variance = survey(values, spreads, alpha, within)
    if moved:
        if P.lower.size == 0:
            push_moves(P, S, flags, i, slots, alpha, before, 0, delta)
        keep(S, flags, i, slots, alpha, ell)
    return scored


@inner(**PLAIN)
def write_spreads(squared, start, width, places, alpha, spreads, row):
    """S_k = sum_l alpha_l D_kl; `row` is workspace of `width` numbers, in the order of the distances' columns."""
    for first in range(0, width, WIDTH):
        total = broadcast(0.0)
        for j in range(places.size):
            if alpha[j] > 0.0:
                column = U(start + places[j] * width + first)
                total = add(total, multiply(broadcast(alpha[j]), load(squared, column)))
        store(row, U(first), total)
    for k in range(places.size):
        spreads[k] = row[U(places[k])]


@inner(**PLAIN)
def survey(values, spreads, alpha, within):
    """(best of the working set or -1, worst active atom, active atoms, sum_k alpha_k h_k, V) of a block.

    `within` is 1 for labellings of the working set, 0 for others. Written with few branches: these would mispredict.
    """
    best, away, active, base, variance, most, least = -1, -1, 0, 0.0, 0.0, -np.inf, np.inf
    for k in range(values.size):
        h, a = values[k], alpha[k]
        better = (h > most) & (within[k] > 0.0)
        best, most = k if better else best, h if better else most
        worse = (h < least) & (a > 0.0)
        away, least = k if worse else away, h if worse else least
        active += 1 if a > 0.0 else 0
        base += a * h
        variance += 0.5 * a * spreads[k]
    return best, away, active, base, variance


@inner(**PLAIN)
def choose(flags, h, base, h_away, active, to_corner, between, from_away, alpha_away):
    """(kind, gamma, gamma_max) of the move that improves the dual most; gamma = 0 if none does (`block.choice.choose`).

    `to_corner`, `between` and `from_away` are the curvatures of the three kinds.
    """
    kinds = flags.kinds
    if flags.by_slope:
        kinds = AWAY if active > 1 and base - h_away > h - base else FW
    kind, gamma, top, most = FW, 0.0, 0.0, 0.0
    for bit in range(3):
        candidate = 1 << bit
        if kinds & candidate == 0 or (candidate == AWAY and active < 2):
            continue
        if candidate == FW:
            slope, norm2, limit = h - base, to_corner, 1.0
        elif candidate == PAIRWISE:
            slope, norm2, limit = h - h_away, between, largest_step(PAIRWISE, alpha_away)
        else:
            slope, norm2, limit = base - h_away, from_away, largest_step(AWAY, alpha_away)
        norm2 = max(norm2, 0.0)  # a difference of sums
        length = line_search(slope, norm2, flags.scale, limit)
        improvement = gain(length, slope, norm2, flags.scale)
        if improvement > most:
            kind, gamma, top, most = candidate, length, limit, improvement
    return kind, gamma, top


@inner(**PLAIN)
def make_move(kind, gamma, top, scale, squared, to_best, to_away, places, best, away, values, spreads, alpha):
    """The weights, scores and S of a block's labellings after a move; a full step away from a vertex leaves exactly 0."""
    factor = 1.0 - gamma if kind == FW else 1.0 + gamma if kind == AWAY else 1.0
    half = 0.5 * gamma * scale
    for k in range(places.size):
        place = U(places[k])
        if kind == FW:
            change = squared[U(to_best) + place] - spreads[k]
        elif kind == PAIRWISE:
            change = squared[U(to_best) + place] - squared[U(to_away) + place]
        else:
            change = spreads[k] - squared[U(to_away) + place]
        spreads[k] += gamma * change
        values[k] += half * change
        alpha[k] *= factor
    full = gamma >= top
    if kind != AWAY:
        alpha[best] = 1.0 if full and kind == FW else alpha[best] + gamma
    if kind != FW:
        alpha[away] = 0.0 if full else max(alpha[away] - gamma, 0.0)


@inner(**PLAIN)
def push_moves(P, S, flags, i, slots, alpha, before, pivot, delta):
    """mu, u, w and the average follow delta = sum_k (alpha_k - before_k) m(y_k); then before <- alpha.

    The changes add up to zero, so each is a move from the labelling `pivot`: where two agree, delta stays exactly 0.
    """
    labels, length = S.pool.labels, P.label_ptr[i + 1] - P.label_ptr[i]
    y = labels[slots[pivot], :length]
    delta[:] = 0.0
    for k in range(slots.size):
        change = alpha[k] - before[k]
        before[k] = alpha[k]
        if k != pivot and change != 0.0:
            P.add(i, labels[slots[k], :length], change, delta)
            P.add(i, y, -change, delta)
    if S.mu.size > 0 and S.by_mu[i] == 1:
        first = P.local_ptr[i]
        for j in range(delta.size):
            S.mu[first + j] += delta[j]
    P.push(i, -flags.scale, delta, S.u)
    if P.lower.size > 0:
        clip_into(S.u, P.lower, P.upper, S.w)
    if flags.average:
        t = float(S.counters[AVERAGED])
        P.push(i, -flags.scale * 0.5 * t * (t - 1.0), delta, S.z)


@inner(**PLAIN)
def keep(S, flags, i, slots, alpha, ell):
    """Store block i's weights, and its loss, which was `ell` before the visit."""
    S.ell[i] = 0.0
    for k in range(slots.size):
        S.pool.alpha[slots[k]] = alpha[k]
        S.ell[i] += alpha[k] * S.pool.losses[slots[k]]
    change = (S.ell[i] - ell) / S.ell.size
    S.z_ell[1] += change
    if flags.average:
        t = float(S.counters[AVERAGED])
        S.z_ell[0] += 0.5 * t * (t - 1.0) * change


@driver
def planes_driver(fingerprint: str) -> Any:
    """`run_planes(P, S, flags, order) -> labellings scored`: a visit of every block of `order`, none of which occurs twice.

    With `flags.vertex_from` ORACLE_ALWAYS they are `oracle_steps`, for which pool and distances have room for one more atom
    per block; otherwise `plane_steps`.
    """

    @njit(cache=True, **JIT)
    def run_planes(P, S, flags, order):
        fingerprint  # noqa: B018
        widest, most = widest_block(P.local_ptr), S.pool.counts.max() + 1
        theta, delta, y = np.empty(widest), np.empty(widest), np.empty(S.pool.labels.shape[1], P.truth.dtype)
        slots, places, numbers = np.empty(most, np.int64), np.empty(most, np.int64), np.empty((5, most))
        row, scratch, scored = np.empty(S.distances.width.max()), P.scratch(), 0
        for k in range(order.size):
            fetch_ahead(P, S, order, k, True)
            if flags.vertex_from == ORACLE_ALWAYS:
                oracle_steps(P, S, flags, order[k], theta, delta, slots, places, numbers, row, y, scratch)
            else:
                scored += plane_steps(P, S, flags, order[k], theta, delta, slots, places, numbers, row)
        return scored

    return run_planes
