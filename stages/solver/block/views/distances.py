"""By distances: a block's atoms, their rows in the matrix of squared distances (`distances`), and their scores.

What the steps by distances share: `block.cached_step`, `plane_steps` and `methods.fasole`.
"""

from __future__ import annotations

from gapwise.stages.problems.inner import inner
from gapwise.stages.problems.moves import score_labels
from gapwise.stages.problems.protocol import PLAIN
from gapwise.stages.solver.distances import measure


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
