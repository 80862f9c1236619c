"""Cached and exact oracle calls: when the cache is enough, and what is noted of an answer (O16 Alg. 5)."""

from __future__ import annotations

import numpy as np

from gapwise.stages.problems.inner import inner
from gapwise.stages.problems.protocol import PLAIN
from gapwise.stages.solver.codes import ORACLE_CALLS, SKIPPED_VISITS
from gapwise.stages.solver.sampling import MAX_GAP, tree_set, weight_of
from gapwise.stages.solver.supports import find, insert


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
    """Record an oracle's answer y: block gap, sampling weight, slot in the pool; (slot or -1, h(y)) (O16 Alg. 2, 5)."""
    h = loss + P.value(i, theta, y)
    S.counters[ORACLE_CALLS] += 1
    S.gap[i] = max(h - base, 0.0) / S.ell.size
    tree_set(S.tree, flags.sampler == MAX_GAP, i, weight_of(S.gap[i], flags.degree))
    target = find(S.pool, i, y, loss)
    if target < 0 and h > base:
        target = insert(S.pool, i, y, loss, flags.capacity)
    return target, h
