"""Working sets: the labellings that a block's approximate oracle chooses among (S15 Alg. 3).

S15 keeps planes; here a plane is an atom of the pool, and the plane of a whole block is its atoms with their weights. An
atom leaves the working set when it has not been active, that is, returned by an oracle, exact or approximate, for
some time, or when there are too many. Without weight it is dropped. With weight it is part of the dual point and stays in
the pool, but approximate passes no longer move towards it: its `used` is `RETIRED` until the max-oracle returns it again.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from gapwise.stages.problems.protocol import JIT
from gapwise.stages.solver.supports import Pool, drop_unused

RETIRED = -1
"""`Pool.used` of an atom that has weight but is outside its block's working set."""


def retire(pool: Pool, before: int, most: int) -> None:
    """Reduce each working set to atoms active at step `before` or later, and to the `most` last active (S15 Alg. 3)."""
    _mark(pool, before, most)
    drop_unused(pool, RETIRED + 1)


@njit(cache=True, **JIT)
def _mark(pool, before, most):
    for i in range(pool.head.size):
        size = 0
        s = pool.head[i]
        while s >= 0:
            if pool.used[s] < before:
                pool.used[s] = RETIRED
            size += pool.used[s] != RETIRED
            s = pool.next[s]
        while size > most:
            oldest = -1
            s = pool.head[i]
            while s >= 0:
                if pool.used[s] != RETIRED and (oldest < 0 or pool.used[s] <= pool.used[oldest]):
                    oldest = s
                s = pool.next[s]
            pool.used[oldest] = RETIRED
            size -= 1


@njit(cache=True, **JIT)
def _count(pool, sizes):
    for i in range(sizes.size):
        sizes[i] = 0
        s = pool.head[i]
        while s >= 0:
            sizes[i] += pool.used[s] != RETIRED
            s = pool.next[s]


def working_set_sizes(pool: Pool) -> np.ndarray:
    """int64, (n,): the number of labellings in each block's working set."""
    sizes = np.zeros(pool.head.size, np.int64)
    _count(pool, sizes)
    return sizes
