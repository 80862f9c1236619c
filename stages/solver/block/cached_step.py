"""Apart from `step`: by its view `distances` a cached pass takes 1.23 of the time on OCR-large, 1.13 on USPS.

Pairwise moves between atoms that a block has (O16 Alg. 3). Atoms are scored once a visit; every further move takes O(their
number) by squared distances kept between them (`stages.solver.distances`), whatever the features.
"""

from __future__ import annotations

import numpy as np

from gapwise.stages.problems.inner import inner
from gapwise.stages.problems.moves import pair_move
from gapwise.stages.problems.protocol import PLAIN
from gapwise.stages.solver.block.step import line_search, update_weights
from gapwise.stages.solver.block.views.distances import locate, score_slots
from gapwise.stages.solver.box import clip_into
from gapwise.stages.solver.codes import CACHED_STEPS, PAIRWISE, SKIPPED_VISITS, STEPS


@inner(**PLAIN)
def cached_step(P, S, flags, i, theta_all, delta_all, slots_all, rows_all, values_all):
    """Pairwise moves between the labellings of block i's cache, `flags.rounds` of them; arrays are workspace."""
    S.counters[STEPS] += 1
    pool, n, squared = S.pool, S.ell.size, S.distances.squared
    boxed = P.lower.size > 0
    size, length, count = P.local_ptr[i + 1] - P.local_ptr[i], P.label_ptr[i + 1] - P.label_ptr[i], pool.counts[i]
    theta, delta = theta_all[:size], delta_all[:size]
    slots, rows, values = slots_all[:count], rows_all[:count], values_all[:count]
    locate(P, S, i, slots, rows, delta)
    start, width = S.distances.start[i], S.distances.width[i]
    score_slots(P, pool, i, S.w, slots, theta, values)
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
