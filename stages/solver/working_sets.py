"""Working sets: the labellings that a block's approximate oracle chooses among (S15 Alg. 3).

S15 keeps planes; here a plane is an atom of the pool, and the plane of a whole block is its atoms with their weights. An
atom leaves the working set when it has not been active, that is, returned by an oracle, exact or approximate, for
some time, or when there are too many. Without weight it is dropped. With weight it is part of the dual point and stays in
the pool, but approximate passes no longer move towards it: its `used` is `RETIRED` until the max-oracle returns it again.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from gapwise.stages.problems.inner import inner
from gapwise.stages.problems.protocol import JIT, PLAIN
from gapwise.stages.solver.supports import Pool, remove

RETIRED = -1
"""`Pool.used` of an atom that has weight but is outside its block's working set."""


@inner(**PLAIN)
def retire_atom(pool, i, s):
    """Take atom s of block i out of the working set."""
    if pool.alpha[s] > 0.0:
        pool.used[s] = RETIRED
    else:
        remove(pool, i, s)


@njit(cache=True, **JIT)
def retire(pool, before, most):
    """Reduce every working set to atoms last active at step `before` or later, and to the `most` last active of them."""
    for i in range(pool.head.size):
        size = 0
        s = pool.head[i]
        while s >= 0:
            following = pool.next[s]
            if pool.used[s] < before:
                retire_atom(pool, i, s)
            else:
                size += 1
            s = following
        while size > most:
            oldest = -1
            s = pool.head[i]
            while s >= 0:
                if pool.used[s] != RETIRED and (oldest < 0 or pool.used[s] <= pool.used[oldest]):
                    oldest = s
                s = pool.next[s]
            retire_atom(pool, i, oldest)
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
