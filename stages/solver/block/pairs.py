"""Pairwise moves between atoms that a block has (O16 Alg. 3), by squared distances kept between them: no features after a
visit's first scores.

With q_k = B_i m_i(y_k), a move of weight gamma from labelling z to y adds -gamma scale (q_y - q_z) to w, so its
curvature is ||q_y - q_z||^2, and every score h_k changes by

    -gamma scale <q_k, q_y - q_z> = (gamma scale / 2) (||q_k - q_y||^2 - ||q_k - q_z||^2) + a term that does not depend on k.

Steps depend on differences of scores only, so these distances replace the block's Gram matrix (S15 5 names cached inner
products as future work). With a box, where w = clip(u) is not linear in u, atoms are scored again after a move. Distances
are derived from the pool: each is computed when a cached pass first needs it, always with the newer labelling first, so that
a resumed solve computes the same bits.

Apart from `step`: by a view of the step a cached pass took 1.23 of the time on OCR-large, 1.13 on USPS.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numba import njit

from gapwise.stages.problems.compiled import driver, inner
from gapwise.stages.problems.moves import pair_move, pair_norm2, score_labels
from gapwise.stages.problems.protocol import JIT, PLAIN, largest, widest_block
from gapwise.stages.problems.simd import WIDTH
from gapwise.stages.solver.block.prefetching import prefetch_visits
from gapwise.stages.solver.block.step import extremes, line_search, note_cached_gap, update_weights
from gapwise.stages.solver.codes import CACHED_STEPS, PAIRWISE, STEPS
from gapwise.stages.solver.running import clip_into


class Distances(NamedTuple):
    """A square matrix (width_i, width_i) per block; `Pool.row` is the row and column of an atom."""

    start: np.ndarray
    """int64, (n,): where block i's matrix begins"""
    width: np.ndarray
    """int64, (n,): atoms that it has room for"""
    squared: np.ndarray
    """float64, flat: ||B_i (m_i(y) - m_i(z))||^2; 0 or stale in rows and columns without an atom"""


def no_distances(n: int) -> Distances:
    """Distances without room for any atom."""
    return Distances(np.zeros(n, np.int64), np.zeros(n, np.int64), np.empty(0))


def with_room(distances: Distances, counts: np.ndarray) -> Distances:
    """The same distances with room for `counts` (n,) atoms of each block; takes 8 bytes times the squares of the counts."""
    if (counts <= distances.width).all():
        return distances
    width = np.where(counts <= distances.width, distances.width, WIDTH * -(-counts // WIDTH))
    start = np.concatenate([[0], np.cumsum(width * width)])
    wider = Distances(start[:-1], width, np.zeros(start[-1]))
    _copy(distances, wider)
    return wider


@njit(cache=True, **JIT)
def _copy(distances, wider):
    for i in range(distances.width.size):
        size, width = distances.width[i], wider.width[i]
        for a in range(size):
            for b in range(size):
                wider.squared[wider.start[i] + a * width + b] = distances.squared[distances.start[i] + a * size + b]


@inner(**PLAIN)
def measure(P, pool, distances, i, slots, delta):
    """Give each atom of block i that lacks a row one and its distances; `slots`: all its atoms in list order (S15 5)."""
    squared, start, width = distances.squared, distances.start[i], distances.width[i]
    length = P.label_ptr[i + 1] - P.label_ptr[i]
    for k in range(slots.size):
        if pool.row[slots[k]] >= 0:
            continue
        row = _free_row(pool, slots)
        pool.row[slots[k]] = row
        squared[start + row * width + row] = 0.0
        for j in range(slots.size):
            other = pool.row[slots[j]]
            if j != k and other >= 0:
                newer, older = pool.labels[slots[min(j, k)], :length], pool.labels[slots[max(j, k)], :length]
                norm2 = pair_norm2(P, i, newer, older, delta)
                squared[start + row * width + other] = squared[start + other * width + row] = norm2


@inner(**PLAIN)
def _free_row(pool, slots):
    """A row that no atom has; the last one that they need is the likeliest."""
    for row in range(slots.size - 1, -1, -1):
        taken = False
        for s in slots:
            taken = taken or pool.row[s] == row
        if not taken:
            return row
    return -1  # never: one of them has no row


@inner(**PLAIN)
def cached_step(P, S, flags, i, theta_all, delta_all, slots_all, rows_all, values_all):
    """Pairwise moves between the labellings of block i's cache, `flags.rounds` of them; arrays are workspace."""
    S.counters[STEPS] += 1
    pool, n, squared = S.pool, S.ell.size, S.distances.squared
    boxed = P.lower.size > 0
    size, length, count = P.local_ptr[i + 1] - P.local_ptr[i], P.label_ptr[i + 1] - P.label_ptr[i], pool.counts[i]
    theta, delta = theta_all[:size], delta_all[:size]
    slots, rows, values = slots_all[:count], rows_all[:count], values_all[:count]
    if atoms_of(pool, i, slots, rows) < 0:
        measure(P, pool, S.distances, i, slots, delta)
        atoms_of(pool, i, slots, rows)
    start, width = S.distances.start[i], S.distances.width[i]
    score_slots(P, pool, i, S.w, slots, theta, values)
    for turn in range(flags.rounds):
        base, best, h_best, away, h_away, _ = extremes(pool, slots, values, count, True)
        if best < 0:
            break
        if turn == 0:
            note_cached_gap(S, flags, i, h_best - base)
        S.counters[CACHED_STEPS] += 1
        target, worst = slots[best], slots[away]
        pool.used[target] = S.counters[STEPS]
        slope = h_best - h_away
        if slope <= 0.0:
            break
        to_best, to_worst = start + rows[best] * width, start + rows[away] * width
        gamma = line_search(slope, squared[to_best + rows[away]], flags.scale, pool.alpha[worst])
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
            score_slots(P, pool, i, S.w, slots, theta, values)
        else:
            half = 0.5 * gamma * flags.scale
            for k in range(count):
                values[k] += half * (squared[to_best + rows[k]] - squared[to_worst + rows[k]])


@inner(**PLAIN)
def atoms_of(pool, i, slots, rows):
    """Write the atoms of block i in list order and their rows in `distances`; returns -1 if one has no row, otherwise 0."""
    s, known = pool.head[i], 0
    for k in range(slots.size):
        slots[k], rows[k] = s, pool.row[s]
        known = min(known, rows[k])
        s = pool.next[s]
    return known


@inner(**PLAIN)
def score_slots(P, pool, i, w, slots, theta, values):
    """values <- losses and scores at w of the atoms in `slots`, up to a term common to all; theta is workspace."""
    score_labels(P, i, w, pool.labels, slots, theta, values)
    for k in range(slots.size):
        values[k] += pool.losses[slots[k]]


@driver
def cached_steps_driver(fingerprint: str) -> Callable[..., None]:
    """`run_cached(P, S, flags, order)`: pairwise steps by distances, of every block of `order` that does not sit out."""

    @njit(cache=True, **JIT)
    def run_cached(P, S, flags, order):
        fingerprint  # noqa: B018
        widest = widest_block(P.local_ptr)
        theta, delta, most = np.empty(widest), np.empty(widest), largest(S.pool.counts)
        slots, rows, values = np.empty(most, np.int64), np.empty(most, np.int64), np.empty(most)
        for k in range(order.size):
            prefetch_visits(P, S, order, k, True)
            if S.skip[order[k]] > 0:
                S.skip[order[k]] -= 1
            else:
                cached_step(P, S, flags, order[k], theta, delta, slots, rows, values)

    return run_cached
