"""Squared distances between a block's labellings: what a pairwise move changes, without looking at features.

With q_k = B_i m_i(y_k), a move of weight gamma from labelling z to y adds -gamma scale (q_y - q_z) to w, so its
curvature is ||q_y - q_z||^2, and every score h_k changes by

    -gamma scale <q_k, q_y - q_z> = (gamma scale / 2) (||q_k - q_y||^2 - ||q_k - q_z||^2) + a term that does not depend on k.

Steps depend on differences of scores only, so these distances replace the block's Gram matrix (without a box, where
w = clip(u) is not linear). They are derived from the pool: each is computed when a cached pass first needs it, always with
the newer labelling first, so that a resumed solve computes the same bits.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from gapwise.stages.problems.inner import inner
from gapwise.stages.problems.moves import pair_norms
from gapwise.stages.problems.protocol import JIT, PLAIN
from gapwise.stages.problems.simd import WIDTH

STEP = WIDTH
"""The number of rows of a square matrix is rounded up to a multiple of this, since rows are also read in vectors."""


class Distances(NamedTuple):
    """A square matrix (width_i, width_i) per block; `Pool.row` is the row and column of an atom."""

    start: np.ndarray
    """int64, (n,): where block i's matrix begins"""
    width: np.ndarray
    """int64, (n,): atoms that it has room for"""
    squared: np.ndarray
    """float64, flat: ||B_i (m_i(y) - m_i(z))||^2; in rows and columns without an atom 0, or what an earlier atom left there,
    since vectors read beyond the last atom"""


def no_distances(n: int) -> Distances:
    """Distances without room for any atom."""
    return Distances(np.zeros(n, np.int64), np.zeros(n, np.int64), np.empty(0))


def with_room(distances: Distances, counts: np.ndarray, spare: int = 0) -> Distances:
    """The same distances with room for `counts` (n,) atoms of each block, and `spare` more.

    Takes 8 bytes times the squares of the counts. Where one block lacks room and `spare` > 0, all get some, so that not
    every call has to copy all distances.
    """
    if (counts + spare <= distances.width).all():
        return distances
    wanted = counts + (spare and max(spare, STEP // 2))
    width = np.where(wanted <= distances.width, distances.width, STEP * -(-wanted // STEP))
    start = np.concatenate([[0], np.cumsum(width * width)])
    wider = Distances(start[:-1], width, np.zeros(start[-1]))
    _copy(distances, wider)
    return wider


@njit(cache=True, **JIT)
def _copy(distances, wider):
    for i in range(distances.width.size):
        size, width = distances.width[i], wider.width[i]
        for a in range(size):
            for b in range(size):
                wider.squared[wider.start[i] + a * width + b] = distances.squared[distances.start[i] + a * size + b]


@inner(**PLAIN)
def measure(P, pool, distances, i, slots, delta):
    """Give each atom of block i that lacks a row one and its distances; `slots`: all its atoms in list order (S15 5)."""
    squared, start, width = distances.squared, distances.start[i], distances.width[i]
    for k in range(slots.size):
        if pool.row[slots[k]] >= 0:
            continue
        row = _free_row(pool, slots)
        pool.row[slots[k]] = row
        squared[start + row * width + row] = 0.0
        pair_norms(P, i, k, pool.labels, slots, pool.row, squared, start, width, delta)
        for s in slots:
            other = pool.row[s]
            if other >= 0:
                squared[start + other * width + row] = squared[start + row * width + other]


@inner(**PLAIN)
def _free_row(pool, slots):
    """A row that no atom has; the last one that they need is the likeliest."""
    for row in range(slots.size - 1, -1, -1):
        taken = False
        for s in slots:
            taken = taken or pool.row[s] == row
        if not taken:
            return row
    return -1  # never: one of them has no row
