"""By features: scores from theta = B_i^T w, curvature and pushes through B_i. Serves every structure, move and vertex."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gapwise.stages.problems.compiled import inner
from gapwise.stages.problems.moves import pair_move, pair_norm2
from gapwise.stages.problems.protocol import JIT, PLAIN, widest_block
from gapwise.stages.solver.block.prefetching import fetch_now, prefetch_visits
from gapwise.stages.solver.block.step import note_answer
from gapwise.stages.solver.codes import FW, PAIRWISE, PERMUTATION
from gapwise.stages.solver.supports import add_mean


class ByFeatures(NamedTuple):
    """Workspace; theta and delta have room for the widest block, slots and values for all atoms of the pool."""

    theta: np.ndarray
    """B_i^T w of the block at hand"""
    delta: np.ndarray
    """direction of the move measured last, unless it is pairwise"""
    y: np.ndarray
    """the oracle's answer"""
    slots: np.ndarray
    values: np.ndarray
    work: object
    """the oracle's workspace, `P.scratch()`. (`scratch` is a method of every named tuple.)"""

    def score_atoms(self, P, S, i):
        size, length = P.local_ptr[i + 1] - P.local_ptr[i], P.label_ptr[i + 1] - P.label_ptr[i]
        pool, theta, count = S.pool, self.theta[:size], 0
        P.scores(i, S.w, theta)
        s = pool.head[i]
        while s >= 0:
            self.slots[count] = s
            self.values[count] = pool.losses[s] + P.value(i, theta, pool.labels[s, :length])
            count += 1
            s = pool.next[s]
        return count

    def ask_oracle(self, P, S, flags, i, base):
        theta, y = self.theta[: P.local_ptr[i + 1] - P.local_ptr[i]], self.y[: P.label_ptr[i + 1] - P.label_ptr[i]]
        loss = P.max_oracle(i, theta, y, self.work)
        target, h = note_answer(P, S, flags, i, theta, y, loss, base)
        return target, h, loss

    def measure_move(self, P, S, i, direction, target, away):
        delta, length = self.delta[: P.local_ptr[i + 1] - P.local_ptr[i]], P.label_ptr[i + 1] - P.label_ptr[i]
        y, z = S.pool.labels[max(target, 0), :length], S.pool.labels[max(away, 0), :length]
        if direction == PAIRWISE:
            return pair_norm2(P, i, y, z, delta)
        write_direction(P, S.pool, i, direction, y, z, delta)
        return P.norm2(i, delta)

    def push_move(self, P, S, i, direction, target, away, c, u):
        delta, length = self.delta[: P.local_ptr[i + 1] - P.local_ptr[i]], P.label_ptr[i + 1] - P.label_ptr[i]
        if direction == PAIRWISE:
            pair_move(P, i, c, S.pool.labels[target, :length], S.pool.labels[away, :length], delta, u)
        else:
            P.push(i, c, delta, u)

    def allowed_moves(self, flags):
        return flags.kinds

    def fetch(self, P, S, flags, order, k, i):
        if flags.sampler == PERMUTATION:
            prefetch_visits(P, S, order, k, False)
        else:
            fetch_now(P, S, i)

    def exhausted(self):
        return False


@inner(inline="always", **JIT)
def by_features(P, S):
    """The view with new workspace."""
    widest, slots = widest_block(P.local_ptr), S.pool.alpha.size
    y = np.empty(S.pool.labels.shape[1], P.truth.dtype)
    return ByFeatures(np.empty(widest), np.empty(widest), y, np.empty(slots, np.int64), np.empty(slots), P.scratch())


@inner(**PLAIN)
def write_direction(P, pool, i, direction, y, z, delta):
    """delta <- m(y) - mu_i (FW) or mu_i - m(z) (AWAY; O16 Alg. 4)."""
    sign = 1.0 if direction == FW else -1.0
    delta[:] = 0.0
    add_mean(P, pool, i, -sign, delta)
    P.add(i, y if direction == FW else z, sign, delta)
