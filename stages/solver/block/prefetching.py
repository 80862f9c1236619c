"""What the next visits will read is fetched while the present one computes; results do not depend on it.

Visits in random order wait for memory as soon as the state is larger than the caches: pointers, atoms, features and
distances of a block lie far apart. Where the order is known they are asked for early, in six stages, since a block's
pointers say where its atoms and features are, and each atom where the next one is: new atoms, at the front of the list, are
far from the others.
"""

from __future__ import annotations

from numba import config

from gapwise.stages.problems.compiled import inner
from gapwise.stages.problems.moves import touch
from gapwise.stages.problems.protocol import PLAIN
from gapwise.stages.problems.simd import prefetch, prefetch_range

IDLE = bool(vars(config)["DISABLE_JIT"])
"""Whether nothing can be fetched."""

MOST = 16
"""Atoms of a block that are fetched."""


@inner(**PLAIN)
def prefetch_visits(P, S, order, k, cached):
    """Before visit k of `order`: the first stage of visit k + 6, the second of k + 5, and so on to the last of k + 1.

    `cached`: visits that compare the labellings of a block by their scores and distances.
    """
    if IDLE:
        return
    if k + 6 < order.size:
        fetch_pointers(P, S, order[k + 6], cached)
    if k + 5 < order.size:
        fetch_links(S, order[k + 5], 1)
    if k + 4 < order.size:
        fetch_links(S, order[k + 4], 2)
    if k + 3 < order.size:
        fetch_links(S, order[k + 3], 3)
    if k + 2 < order.size:
        touch(P, order[k + 2], 1)
        if not cached:
            touch(P, order[k + 2], 3)
        fetch_atoms(S, order[k + 2], cached)
    if k + 1 < order.size:
        touch(P, order[k + 1], 2)
        if cached:
            fetch_distances(S, order[k + 1])


@inner(**PLAIN)
def fetch_now(P, S, i):
    """What the visit of block i that begins now reads later on: it arrives while the scores are computed."""
    if IDLE:
        return
    touch(P, i, 2)
    touch(P, i, 1)
    touch(P, i, 3)
    prefetch(S.gap, i)
    prefetch(S.ell, i)
    prefetch(S.tree, S.tree.size // 2 + i)
    fetch_atoms(S, i, False)


@inner(**PLAIN)
def fetch_pointers(P, S, i, cached):
    """First stage: what says where the rest of block i is, and its single numbers."""
    prefetch(S.pool.head, i)
    prefetch(S.pool.counts, i)
    prefetch(S.gap, i)
    prefetch(S.ell, i)
    prefetch(S.skip, i)
    for k in (i, i + 1):
        prefetch(P.label_ptr, k)
        prefetch(P.local_ptr, k)
    touch(P, i, 0)
    if cached:
        prefetch(S.distances.start, i)
        prefetch(S.distances.width, i)
        return
    leaf = S.tree.size // 2 + i
    for level in range(4):
        prefetch(S.tree, leaf >> level)


@inner(**PLAIN)
def fetch_links(S, i, count):
    """Second to fourth stage: the link of block i's `count`-th atom; those before it are there already."""
    s = S.pool.head[i]
    for _ in range(count - 1):
        if s >= 0:
            s = S.pool.next[s]
    if s >= 0:
        prefetch(S.pool.next, s)


@inner(**PLAIN)
def fetch_atoms(S, i, cached):
    """Fifth stage: the atoms of block i."""
    pool, width = S.pool, S.pool.labels.shape[1]
    s, k = pool.head[i], 0
    while s >= 0 and k < MOST:
        prefetch(pool.labels, s * width)
        prefetch(pool.alpha, s)
        prefetch(pool.losses, s)
        prefetch(pool.used, s)
        if cached:
            prefetch(pool.row, s)
        s, k = pool.next[s], k + 1


@inner(**PLAIN)
def fetch_distances(S, i):
    """Last stage, where they are read: the distances between the atoms of block i."""
    start, width = S.distances.start[i], S.distances.width[i]
    prefetch_range(S.distances.squared, start, start + min(S.pool.counts[i], MOST) * width)
