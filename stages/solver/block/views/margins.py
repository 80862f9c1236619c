"""By margin vectors: pairwise moves with a cache, from psi_i(y) kept for every atom (`stages.solver.margins`).

A step reads no features unless the oracle is called or an atom is new. Scores lack <theta_i, m_i(y_i)>, common to all.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gapwise.stages.problems.inner import inner
from gapwise.stages.problems.protocol import FAST, JIT, PLAIN, dot, largest, widest_block
from gapwise.stages.problems.simd import one_type
from gapwise.stages.solver.block.step import note_answer, survey
from gapwise.stages.solver.codes import PAIRWISE


class ByMargins(NamedTuple):
    """The vectors, `margins.Rows`, and workspace, as that of `features.ByFeatures`."""

    psi: np.ndarray
    free: np.ndarray
    left: np.ndarray
    theta: np.ndarray
    delta: np.ndarray
    y: np.ndarray
    slots: np.ndarray
    values: np.ndarray
    work: object
    most: np.ndarray
    """int64, (1,): the most atoms of a block"""

    def score_atoms(self, P, S, flags, i, turn):
        count, delta = S.pool.counts[i], self.delta[: P.local_ptr[i + 1] - P.local_ptr[i]]
        score_margins(P, S.pool, self, i, S.w, delta, self.slots[:count], self.values[:count])
        return count

    def survey(self, S, flags, count):
        return survey(S.pool, self.slots, self.values, count)

    def mean_score(self, P, S, flags, i, base):
        return base

    def allowed_moves(self, flags):
        return PAIRWISE

    def vertex_source(self, flags):
        return flags.vertex_from

    def ask_oracle(self, P, S, flags, i, base):
        size, first, last = P.local_ptr[i + 1] - P.local_ptr[i], P.label_ptr[i], P.label_ptr[i + 1]
        theta, y = self.theta[:size], self.y[: last - first]
        P.scores(i, S.w, theta)
        loss = P.max_oracle(i, theta, y, self.work)
        common = P.value(i, theta, one_type(P.truth[first:last]))
        target, h = note_answer(P, S, flags, i, theta, y, loss, base + common)
        self.most[0] = max(self.most[0], S.pool.counts[i])
        return target, h - common, loss

    def measure_move(self, P, S, flags, i, direction, target, away):
        delta = self.delta[: P.local_ptr[i + 1] - P.local_ptr[i]]
        to, from_ = margin(P, S.pool, self, i, target, delta), margin(P, S.pool, self, i, away, delta)
        return distance2(self.psi[to], self.psi[from_])

    def push_move(self, P, S, flags, i, direction, target, away, gamma):
        row = S.pool.row
        add_difference(gamma * flags.scale, self.psi[row[target]], self.psi[row[away]], S.u)

    def follow_move(self, P, S, flags, i, direction, target, away, gamma):
        pass

    def end_visit(self, P, S, flags, i):
        pass

    def fetch(self, P, S, flags, order, k, i):
        pass

    def exhausted(self, S):
        return self.left[0] <= self.most[0]


@inner(inline="always", **JIT)
def by_margins(P, S, margins):
    """The view of `margins.Rows` with new workspace."""
    widest, slots = widest_block(P.local_ptr), S.pool.alpha.size
    y = np.empty(S.pool.labels.shape[1], P.truth.dtype)
    theta, delta, work = np.empty(widest), np.empty(widest), P.scratch()
    atoms, values = np.empty(slots, np.int64), np.empty(slots)
    most = np.full(1, largest(S.pool.counts))
    return ByMargins(margins.psi, margins.free, margins.left, theta, delta, y, atoms, values, work, most)


@inner(**PLAIN)
def margin(P, pool, margins, i, slot, delta):
    """The row of the margin vector of an atom of block i, which is computed if it is not known."""
    row = pool.row[slot]
    if row < 0:
        margins.left[0] -= 1
        row = margins.free[margins.left[0]]
        pool.row[slot] = row
        first, last = P.label_ptr[i], P.label_ptr[i + 1]
        delta[:] = 0.0
        P.add(i, one_type(P.truth[first:last]), 1.0, delta)
        P.add(i, pool.labels[slot, : last - first], -1.0, delta)
        psi = margins.psi[row]
        psi[:] = 0.0
        P.push(i, 1.0, delta, psi)
    return row


@inner(**PLAIN)
def score_margins(P, pool, margins, i, w, delta, slots, values):
    """The atoms of block i in list order, and values[k] = L_i(y_k) - <w, psi_i(y_k)>."""
    s = pool.head[i]
    for k in range(slots.size):
        slots[k] = s
        values[k] = pool.losses[s] - dot(w, margins.psi[margin(P, pool, margins, i, s, delta)])
        s = pool.next[s]


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
