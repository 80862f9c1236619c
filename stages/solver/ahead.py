"""What the next visits will read is fetched while the present one computes; results do not depend on it.

Visits in random order wait for memory as soon as the state is larger than the caches: pointers, atoms, features and
distances of a block lie far apart. Where the order is known they are asked for early, in four stages, since a block's
pointers say where its atoms and features are, and each atom where the next one is.
"""

from __future__ import annotations

from numba import config

from stages.problems.inner import inner
from stages.problems.moves import touch
from stages.problems.prefetch import prefetch, prefetch_range
from stages.problems.protocol import PLAIN

IDLE = bool(vars(config)["DISABLE_JIT"])
"""Whether nothing can be fetched."""

MOST = 16
"""Atoms of a block that are fetched."""


@inner(**PLAIN)
def fetch_ahead(P, S, order, k, distances):
    """Before visit k of `order`: the first stage of visit k + 4, the second of k + 3, the third of k + 2, the last of k + 1.

    `distances`: whether visits read those between a block's atoms.
    """
    if IDLE:
        return
    if k + 4 < order.size:
        fetch_pointers(P, S, order[k + 4])
        if distances:
            prefetch(S.distances.start, order[k + 4])
            prefetch(S.distances.width, order[k + 4])
    if k + 3 < order.size:
        s = S.pool.head[order[k + 3]]
        if s >= 0:
            prefetch(S.pool.next, s)
    if k + 2 < order.size:
        touch(P, order[k + 2], 1)
        fetch_atoms(S, order[k + 2], distances)
    if k + 1 < order.size:
        touch(P, order[k + 1], 2)
        if distances:
            fetch_distances(S, order[k + 1])


@inner(**PLAIN)
def fetch_now(P, S, i):
    """What the visit of block i that begins now reads later on: it arrives while the scores are computed."""
    if IDLE:
        return
    touch(P, i, 2)
    touch(P, i, 1)
    prefetch(S.gap, i)
    prefetch(S.ell, i)
    prefetch(S.tree, S.tree.size // 2 + i)
    fetch_atoms(S, i, False)


@inner(**PLAIN)
def fetch_pointers(P, S, i):
    """First stage: what says where the rest of block i is, and its single numbers."""
    prefetch(S.pool.head, i)
    prefetch(S.pool.counts, i)
    prefetch(S.gap, i)
    prefetch(S.ell, i)
    prefetch(S.skip, i)
    leaf = S.tree.size // 2 + i
    for level in range(4):
        prefetch(S.tree, leaf >> level)
    prefetch(P.label_ptr, i)
    prefetch(P.local_ptr, i)
    touch(P, i, 0)


@inner(**PLAIN)
def fetch_atoms(S, i, distances):
    """Third stage: the atoms of block i."""
    pool, width = S.pool, S.pool.labels.shape[1]
    s, k = pool.head[i], 0
    while s >= 0 and k < MOST:
        prefetch(pool.labels, s * width)
        prefetch(pool.alpha, s)
        prefetch(pool.losses, s)
        prefetch(pool.used, s)
        if distances:
            prefetch(pool.place, s)
        s, k = pool.next[s], k + 1


@inner(**PLAIN)
def fetch_distances(S, i):
    """Last stage, where they are read: the distances between the atoms of block i."""
    start, width = S.distances.start[i], S.distances.width[i]
    prefetch_range(S.distances.squared, start, start + min(S.pool.counts[i], MOST) * width)
