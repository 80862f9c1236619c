"""By features: scores from theta = B_i^T w, curvature and pushes through B_i. Serves every structure, move and vertex."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gapwise.stages.problems.inner import inner
from gapwise.stages.problems.moves import by_sum, pair_follow, pair_norm2, pair_push
from gapwise.stages.problems.protocol import JIT, PLAIN, dot, widest_block
from gapwise.stages.solver.block.step import Seen, best_of_working_set, note_answer, survey, write_direction
from gapwise.stages.solver.codes import AVERAGED, CACHE_ONLY, FW, PAIRWISE, PERMUTATION, RETIRED
from gapwise.stages.solver.prefetching import fetch_now, prefetch_visits
from gapwise.stages.solver.supports import drop_inactive


class ByFeatures(NamedTuple):
    """Workspace; theta and delta have room for the widest block, slots and values for all atoms of the pool."""

    theta: np.ndarray
    """B_i^T w of the block at hand"""
    delta: np.ndarray
    """direction of the move measured last, or what `push_move` needs"""
    moved: np.ndarray
    """B_i delta of it, (d,); or (0,) (`room_for_sum`)"""
    y: np.ndarray
    """the oracle's answer"""
    slots: np.ndarray
    values: np.ndarray
    work: object
    """the oracle's workspace, `P.scratch()`; () for steps that call none. (`scratch` is a method of every named tuple.)"""

    def score_atoms(self, P, S, flags, i, turn):
        size, length = P.local_ptr[i + 1] - P.local_ptr[i], P.label_ptr[i + 1] - P.label_ptr[i]
        pool, theta = S.pool, self.theta[:size]
        if turn == 0:
            P.scores(i, S.w, theta)
        count = 0
        if flags.cache or flags.kinds != FW or not reads_mu(S, flags, i):
            s = pool.head[i]
            while s >= 0:
                self.slots[count] = s
                self.values[count] = pool.losses[s] + P.value(i, theta, pool.labels[s, :length])
                count += 1
                s = pool.next[s]
        return count

    def survey(self, S, flags, count):
        seen = survey(S.pool, self.slots, self.values, count)
        if flags.vertex_from == CACHE_ONLY and seen.best >= 0 and S.pool.used[seen.best] == RETIRED:
            k, h = best_of_working_set(S.pool, self.slots, self.values, count)
            return Seen(seen.base, self.slots[k] if k >= 0 else -1, h, seen.away, seen.h_away, seen.active)
        return seen

    def mean_score(self, P, S, flags, i, base):
        if not reads_mu(S, flags, i):
            return base
        first, last = P.local_ptr[i], P.local_ptr[i + 1]
        return S.ell[i] + dot(self.theta[: last - first], S.mu[first:last])

    def allowed_moves(self, flags):
        return flags.kinds

    def vertex_source(self, flags):
        return flags.vertex_from

    def ask_oracle(self, P, S, flags, i, base):
        theta, y = self.theta[: P.local_ptr[i + 1] - P.local_ptr[i]], self.y[: P.label_ptr[i + 1] - P.label_ptr[i]]
        loss = P.max_oracle(i, theta, y, self.work)
        target, h = note_answer(P, S, flags, i, theta, y, loss, base)
        return target, h, loss

    def measure_move(self, P, S, flags, i, direction, target, away):
        first, last, length = P.local_ptr[i], P.local_ptr[i + 1], P.label_ptr[i + 1] - P.label_ptr[i]
        pool, delta, summed = S.pool, self.delta[: last - first], by_sum(P) and self.moved.size > 0
        y, z = pool.labels[max(target, 0), :length], pool.labels[max(away, 0), :length]
        if direction != PAIRWISE:
            write_direction(P, i, direction, S.mu[first:last], pool, reads_mu(S, flags, i), y, z, delta)
        elif summed:
            delta[:] = 0.0
            P.add(i, y, 1.0, delta)
            P.add(i, z, -1.0, delta)
        else:
            return pair_norm2(P, i, y, z, delta)
        if not summed:
            return P.norm2(i, delta)
        self.moved[:] = 0.0
        P.push(i, 1.0, delta, self.moved)
        return dot(self.moved, self.moved)

    def push_move(self, P, S, flags, i, direction, target, away, gamma):
        first, last, length = P.local_ptr[i], P.local_ptr[i + 1], P.label_ptr[i + 1] - P.label_ptr[i]
        pool, delta = S.pool, self.delta[: last - first]
        y, z = pool.labels[max(target, 0), :length], pool.labels[max(away, 0), :length]
        if reads_mu(S, flags, i):
            mu = S.mu[first:last]
            if direction == PAIRWISE:
                P.add(i, y, gamma, mu)
                P.add(i, z, -gamma, mu)
            else:
                for j in range(mu.size):
                    mu[j] += gamma * delta[j]
        add_moved(P, i, direction, -gamma * flags.scale, y, z, delta, self.moved, S.u)
        if flags.average:
            t = float(S.counters[AVERAGED] + 1)
            late = 0.5 * t * (t - 1.0)
            add_moved(P, i, direction, -gamma * flags.scale * late, y, z, delta, self.moved, S.z)

    def follow_move(self, P, S, flags, i, direction, target, away, gamma):
        size, length = P.local_ptr[i + 1] - P.local_ptr[i], P.label_ptr[i + 1] - P.label_ptr[i]
        theta, delta, labels = self.theta[:size], self.delta[:size], S.pool.labels
        if direction == PAIRWISE and P.lower.size == 0:
            pair_follow(P, i, -gamma * flags.scale, labels[target, :length], labels[away, :length], S.w, theta, delta)
        else:
            P.scores(i, S.w, theta)

    def end_visit(self, P, S, flags, i):
        if not flags.cache:
            drop_inactive(S.pool, i)

    def fetch(self, P, S, flags, order, k, i):
        if flags.sampler == PERMUTATION:
            prefetch_visits(P, S, order, k, False)
        else:
            fetch_now(P, S, i)

    def exhausted(self, S):
        return False


@inner(inline="always", **JIT)
def by_features(P, S, flags, scratch):
    """The view with new workspace; `scratch` is `P.scratch()`, or () for steps that call no oracle."""
    widest, slots = widest_block(P.local_ptr), S.pool.alpha.size
    y = np.empty(S.pool.labels.shape[1], P.truth.dtype)
    moved = room_for_sum(P, flags)
    return ByFeatures(np.empty(widest), np.empty(widest), moved, y, np.empty(slots, np.int64), np.empty(slots), scratch)


@inner(inline="always", **JIT)
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
def add_moved(P, i, direction, c, y, z, delta, moved, u):
    """u += c B_i delta of the move that `measure_move` has just measured."""
    if by_sum(P) and moved.size > 0:
        for j in range(u.size):
            u[j] += c * moved[j]
    elif direction == PAIRWISE:
        pair_push(P, i, c, y, z, delta, u)
    else:
        P.push(i, c, delta, u)
