"""By distances: scores, curvatures and moves from squared distances kept between a block's atoms.

S15 5 names cached inner products as future work; distances do the same with fewer terms.

A visit scores the block's atoms once; every further step of it takes O(their number), whatever the features. With
q_k = B_i m_i(y_k), D_kl = ||q_k - q_l||^2 (`stages.solver.distances`), weights alpha, their mean q = sum_l alpha_l q_l and
the variance V = sum_l alpha_l ||q_l - q||^2, the numbers

    S_k = sum_l alpha_l D_kl = ||q_k - q||^2 + V,        V = (1/2) sum_k alpha_k S_k

give the curvature of each kind of move, ||q_k - q||^2 = S_k - V, and what the move does to scores and to S itself:

    move of gamma                     score h_k changes, up to a common term, by      S_k becomes
    Frank-Wolfe, q -> q_y             (gamma scale / 2) (D_ky - S_k)                  (1 - gamma) S_k + gamma D_ky
    pairwise, q_z -> q_y              (gamma scale / 2) (D_ky - D_kz)                 S_k + gamma (D_ky - D_kz)
    away, q_z -> q                    (gamma scale / 2) (S_k - D_kz)                  (1 + gamma) S_k - gamma D_kz

So u changes once a visit, by the sum of its moves. With a box, w = clip(u) is not linear in u: there every move is pushed
and the atoms are scored again. `block.cached_step` uses the same distances.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gapwise.stages.problems.inner import inner
from gapwise.stages.problems.moves import score_labels
from gapwise.stages.problems.protocol import JIT, PLAIN, U, largest, widest_block
from gapwise.stages.problems.simd import WIDTH, add, broadcast, load, multiply, store
from gapwise.stages.solver.block.step import Seen, note_answer, write_direction
from gapwise.stages.solver.codes import AVERAGED, CACHE_ONLY, FW, PAIRWISE
from gapwise.stages.solver.distances import measure
from gapwise.stages.solver.working_sets import RETIRED


class ByDistances(NamedTuple):
    """Workspace; theta and delta have room for the widest block, the others for the atoms of a block and one more."""

    theta: np.ndarray
    delta: np.ndarray
    y: np.ndarray
    slots: np.ndarray
    values: np.ndarray
    rows: np.ndarray
    """the atoms' rows in the distances"""
    alpha: np.ndarray
    """their weights"""
    before: np.ndarray
    """the weights that u knows of"""
    within: np.ndarray
    """1.0 for atoms of the working set"""
    spreads: np.ndarray
    """S of the atoms, by rows"""
    variance: np.ndarray
    """float64, (1,): V"""
    counts: np.ndarray
    """int64, (4,): atoms of the block; moves of the visit that u does not know of; atoms scored so far, all together, and
    times that features were read for scores, and often for a push"""
    work: object

    def score_atoms(self, P, S, flags, i, turn):
        if turn > 0:
            return self.counts[0]
        pool, size, length = S.pool, P.local_ptr[i + 1] - P.local_ptr[i], P.label_ptr[i + 1] - P.label_ptr[i]
        count, theta = pool.counts[i], self.theta[:size]
        self.counts[0], self.counts[1] = count, 0
        self.counts[3] += 1
        if flags.vertex_from == CACHE_ONLY:
            slots = self.slots[:count]
            locate(P, S, i, slots, self.rows[:count], self.delta[:size])
            score_slots(P, pool, i, S.w, slots, theta, self.values[:count])
            begin_visit(self, S, flags, i, count)
        else:
            P.scores(i, S.w, theta)
            s = pool.head[i]
            for k in range(count):
                self.slots[k] = s
                self.values[k] = pool.losses[s] + P.value(i, theta, pool.labels[s, :length])
                self.alpha[k] = pool.alpha[s]
                self.within[k] = 1.0
                s = pool.next[s]
        return count

    def survey(self, S, flags, count):
        best, away, active, base, most, least = -1, -1, 0, 0.0, -np.inf, np.inf
        self.counts[2] += count
        for k in range(count):  # few branches: they would mispredict
            h, a = self.values[k], self.alpha[k]
            better = (h > most) & (self.within[k] > 0.0)
            best, most = k if better else best, h if better else most
            worse = (h < least) & (a > 0.0)
            away, least = k if worse else away, h if worse else least
            active += 1 if a > 0.0 else 0
            base += a * h
        return Seen(
            base, self.slots[best] if best >= 0 else -1, most, self.slots[away] if away >= 0 else -1, least, active
        )

    def mean_score(self, P, S, flags, i, base):
        return base

    def allowed_moves(self, flags):
        return flags.kinds

    def vertex_source(self, flags):
        return flags.vertex_from

    def ask_oracle(self, P, S, flags, i, base):
        size = P.local_ptr[i + 1] - P.local_ptr[i]
        theta, y, count = self.theta[:size], self.y[: P.label_ptr[i + 1] - P.label_ptr[i]], self.counts[0]
        loss = P.max_oracle(i, theta, y, self.work)
        target, h = note_answer(P, S, flags, i, theta, y, loss, base)
        k = 0
        while k < count and self.slots[k] != target:
            k += 1
        if target >= 0:  # new, known, or in the slot of the labelling that it has evicted
            self.slots[k], self.values[k] = target, h
            count = self.counts[0] = max(count, k + 1)
        slots = self.slots[:count]
        if rows_of(S.pool, slots, self.rows) < 0:
            measure(P, S.pool, S.distances, i, slots, self.delta[:size])
            rows_of(S.pool, slots, self.rows)
        begin_visit(self, S, flags, i, count)
        return target, h, loss

    def measure_move(self, P, S, flags, i, direction, target, away):
        row = S.pool.row
        if direction == PAIRWISE:
            return S.distances.squared[S.distances.start[i] + row[target] * S.distances.width[i] + row[away]]
        to = target if direction == FW else away
        return max(self.spreads[row[to]] - self.variance[0], 0.0)  # a difference of sums

    def push_move(self, P, S, flags, i, direction, target, away, gamma):
        if P.lower.size == 0:
            self.counts[1] += 1
            return
        first, last, length = P.local_ptr[i], P.local_ptr[i + 1], P.label_ptr[i + 1] - P.label_ptr[i]
        delta, labels = self.delta[: last - first], S.pool.labels
        y, z = labels[max(target, 0), :length], labels[max(away, 0), :length]
        if direction == PAIRWISE:
            delta[:] = 0.0
            P.add(i, y, 1.0, delta)
            P.add(i, z, -1.0, delta)
        else:
            write_direction(P, i, direction, S.mu, S.pool, False, y, z, delta)
        push(P, S, flags, i, gamma, delta, float(S.counters[AVERAGED] + 1))

    def follow_move(self, P, S, flags, i, direction, target, away, gamma):
        count, row, squared = self.counts[0], S.pool.row, S.distances.squared
        start, width = S.distances.start[i], S.distances.width[i]
        to, from_ = start + row[max(target, 0)] * width, start + row[max(away, 0)] * width
        half, variance = 0.5 * gamma * flags.scale, 0.0
        for k in range(count):
            r = U(self.rows[k])
            if direction == FW:
                change = squared[U(to) + r] - self.spreads[r]
            elif direction == PAIRWISE:
                change = squared[U(to) + r] - squared[U(from_) + r]
            else:
                change = self.spreads[r] - squared[U(from_) + r]
            self.alpha[k] = S.pool.alpha[self.slots[k]]
            if flags.kinds != PAIRWISE:
                self.spreads[r] += gamma * change
                variance += 0.5 * self.alpha[k] * self.spreads[r]
            self.values[k] += half * change
        self.variance[0] = variance
        if P.lower.size > 0:
            theta = self.theta[: P.local_ptr[i + 1] - P.local_ptr[i]]
            self.counts[3] += 1
            score_slots(P, S.pool, i, S.w, self.slots[:count], theta, self.values[:count])

    def end_visit(self, P, S, flags, i):
        if self.counts[1] == 0:
            return
        delta, length = self.delta[: P.local_ptr[i + 1] - P.local_ptr[i]], P.label_ptr[i + 1] - P.label_ptr[i]
        labels, pool = S.pool.labels, S.pool
        y = labels[self.slots[0], :length]
        delta[:] = 0.0
        for k in range(1, self.counts[0]):  # changes add up to 0, so each is a move from the first atom
            change = pool.alpha[self.slots[k]] - self.before[k]
            if change != 0.0:  # where two labellings agree, delta stays exactly 0
                P.add(i, labels[self.slots[k], :length], change, delta)
                P.add(i, y, -change, delta)
        push(P, S, flags, i, 1.0, delta, float(S.counters[AVERAGED]))

    def fetch(self, P, S, flags, order, k, i):
        pass

    def exhausted(self, S):
        return False


@inner(inline="always", **JIT)
def by_distances(P, S, scratch):
    """The view with new workspace, for blocks that get at most one atom more; `scratch` is `P.scratch()`."""
    widest, most = widest_block(P.local_ptr), largest(S.pool.counts) + 1
    y = np.empty(S.pool.labels.shape[1], P.truth.dtype)
    theta, delta, slots, rows = np.empty(widest), np.empty(widest), np.empty(most, np.int64), np.empty(most, np.int64)
    values, alpha, before, within = np.empty(most), np.empty(most), np.empty(most), np.empty(most)
    spreads = np.zeros(largest(S.distances.width))
    variance, counts = np.zeros(1), np.zeros(4, np.int64)
    return ByDistances(theta, delta, y, slots, values, rows, alpha, before, within, spreads, variance, counts, scratch)


@inner(**PLAIN)
def begin_visit(V, S, flags, i, count):
    """The weights of the `count` atoms before the visit, which of them are in the working set, their S and V."""
    pool, variance = S.pool, 0.0
    for k in range(count):
        V.alpha[k] = V.before[k] = pool.alpha[V.slots[k]]
        V.within[k] = pool.used[V.slots[k]] != RETIRED
    if flags.kinds != PAIRWISE:
        write_spreads(
            S.distances.squared, S.distances.start[i], S.distances.width[i], V.rows[:count], V.alpha, V.spreads
        )
        for k in range(count):
            variance += 0.5 * V.alpha[k] * V.spreads[V.rows[k]]
    V.variance[0] = variance


@inner(**PLAIN)
def write_spreads(squared, start, width, rows, alpha, spreads):
    """spreads[r] <- sum_l alpha_l D_rl for all rows r of the block."""
    for first in range(0, width, WIDTH):
        total = broadcast(0.0)
        for j in range(rows.size):
            if alpha[j] > 0.0:
                column = U(start + rows[j] * width + first)
                total = add(total, multiply(broadcast(alpha[j]), load(squared, column)))
        store(spreads, U(first), total)


@inner(**PLAIN)
def push(P, S, flags, i, gamma, delta, t):
    """mu, u and the average of t steps follow a move of block i by gamma delta."""
    if S.mu.size > 0 and S.by_mu[i] == 1:
        first = P.local_ptr[i]
        for j in range(delta.size):
            S.mu[first + j] += gamma * delta[j]
    P.push(i, -gamma * flags.scale, delta, S.u)
    if flags.average:
        P.push(i, -gamma * flags.scale * 0.5 * t * (t - 1.0), delta, S.z)


@inner(**PLAIN)
def locate(P, S, i, slots, rows, delta):
    """The atoms of block i in list order, and their rows in the distances, which are measured where they are not known."""
    if atoms_of(S.pool, i, slots, rows) < 0:
        measure(P, S.pool, S.distances, i, slots, delta)
        rows_of(S.pool, slots, rows)


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
def rows_of(pool, slots, rows):
    """rows[k] <- the row of slots[k] in the distances; returns -1 if one has none, otherwise 0."""
    known = 0
    for k in range(slots.size):
        rows[k] = pool.row[slots[k]]
        known = min(known, rows[k])
    return known


@inner(**PLAIN)
def score_slots(P, pool, i, w, slots, theta, values):
    """values <- losses and scores at w of the atoms in `slots`, up to a term common to all; theta is workspace."""
    score_labels(P, i, w, pool.labels, slots, theta, values)
    for k in range(slots.size):
        values[k] += pool.losses[slots[k]]
