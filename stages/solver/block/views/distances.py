"""By distances: pairwise moves between atoms that a block has, from squared distances kept between them (`distances`).

Atoms are scored once a visit; every further move takes O(their number), whatever the features. It calls no oracle.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gapwise.stages.problems.inner import inner
from gapwise.stages.problems.moves import pair_move, score_labels
from gapwise.stages.problems.protocol import JIT, PLAIN, widest_block
from gapwise.stages.solver.ahead import fetch_ahead
from gapwise.stages.solver.codes import CACHE_ONLY
from gapwise.stages.solver.distances import measure
from gapwise.stages.solver.steps import PAIRWISE


class ByDistances(NamedTuple):
    """Workspace: theta and delta for the widest block, slots, places and values for as many atoms as any block has."""

    theta: np.ndarray
    delta: np.ndarray
    slots: np.ndarray
    places: np.ndarray
    """rows of the atoms in the block's matrix"""
    values: np.ndarray

    def score_atoms(self, P, S, flags, i, turn):
        count = S.pool.counts[i]
        if turn == 0:
            slots, size = self.slots[:count], P.local_ptr[i + 1] - P.local_ptr[i]
            locate(P, S, i, slots, self.places[:count], self.delta[:size])
            score_slots(P, S.pool, i, S.w, slots, self.theta[:size], self.values[:count])
        return count

    def mean_score(self, P, S, flags, i, base):
        return base

    def allowed_moves(self, flags):
        return PAIRWISE

    def vertex_source(self, flags):
        return CACHE_ONLY

    def ask_oracle(self, P, S, flags, i, base):
        return -1, base, 0.0  # never

    def measure_move(self, P, S, flags, i, direction, target, away):
        place, known = S.pool.place, S.distances
        return known.squared[known.start[i] + place[target] * known.width[i] + place[away]]

    def push_move(self, P, S, flags, i, direction, target, away, gamma):
        labels, length = S.pool.labels, P.label_ptr[i + 1] - P.label_ptr[i]
        delta = self.delta[: P.local_ptr[i + 1] - P.local_ptr[i]]
        pair_move(P, i, -gamma * flags.scale, labels[target, :length], labels[away, :length], delta, S.u)

    def follow_move(self, P, S, flags, i, direction, target, away, gamma):
        pool, squared, count = S.pool, S.distances.squared, S.pool.counts[i]
        if P.lower.size > 0:
            theta = self.theta[: P.local_ptr[i + 1] - P.local_ptr[i]]
            score_slots(P, pool, i, S.w, self.slots[:count], theta, self.values[:count])
            return
        start, width, half = S.distances.start[i], S.distances.width[i], 0.5 * gamma * flags.scale
        to, from_ = start + pool.place[target] * width, start + pool.place[away] * width
        values, places = self.values[:count], self.places[:count]
        for k in range(count):
            values[k] += half * (squared[to + places[k]] - squared[from_ + places[k]])

    def end_visit(self, S, flags, i):
        pass

    def fetch(self, P, S, flags, order, k, i):
        fetch_ahead(P, S, order, k, True)

    def exhausted(self, S):
        return False


@inner(**JIT)
def by_distances(P, S):
    """The view with new workspace; the state's distances have room for all atoms."""
    widest, most = widest_block(P.local_ptr), S.pool.counts.max()
    return ByDistances(
        np.empty(widest), np.empty(widest), np.empty(most, np.int64), np.empty(most, np.int64), np.empty(most)
    )


@inner(**PLAIN)
def locate(P, S, i, slots, places, delta):
    """The atoms of block i in list order, and their rows in the distances, which are measured where they are not known."""
    if atoms_of(S.pool, i, slots, places) < 0:
        measure(P, S.pool, S.distances, i, slots, delta)
        atoms_of(S.pool, i, slots, places)


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
def score_slots(P, pool, i, w, slots, theta, values):
    """values <- losses and scores at w of the atoms in `slots`, up to a term common to all; theta is workspace."""
    score_labels(P, i, w, pool.labels, slots, theta, values)
    for k in range(slots.size):
        values[k] += pool.losses[slots[k]]
