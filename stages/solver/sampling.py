"""What gap sampling draws from (`block.samplers`): a tree over the blocks' last known gaps (O16 3.1, Alg. 2).

The tree is a flat array of 2 m entries, m the smallest power of two >= n: leaves at m..2m-1, and entry k combines entries
2k and 2k + 1. Under gap sampling it holds sums of g_i ** degree, under greedy `max_gap` maxima. Every entry is a function of
the leaves alone, so a tree rebuilt from its leaves has the same bits and is not committed. A block that was never
visited has an infinite gap; the draw descends to the first such block, so these are drawn first, in block order.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from gapwise.stages.problems.inner import inner
from gapwise.stages.problems.protocol import JIT, PLAIN

UNIFORM, PERMUTATION, GAP, MAX_GAP = range(4)
"""Numbers of the supplied samplers (`block.samplers`)."""


def tree_size(n: int) -> int:
    """Number of entries of the tree over n blocks."""
    return 2 * (1 << max(0, (n - 1).bit_length()))


@inner(**PLAIN)
def tree_set(tree, greedy, i, weight):
    """Set the weight of block i and recombine its ancestors; O(log n)."""
    k = i + tree.size // 2
    tree[k] = weight
    k //= 2
    while k >= 1:
        left, right = tree[2 * k], tree[2 * k + 1]
        tree[k] = max(left, right) if greedy else left + right
        k //= 2


@njit(cache=True, **JIT)
def tree_rebuild(tree, greedy, degree, gap):
    """Refill the tree from the gaps (n,); O(n)."""
    m = tree.size // 2
    for i in range(m):
        tree[m + i] = weight_of(gap[i], degree) if i < gap.size else 0.0
    for k in range(m - 1, 0, -1):
        left, right = tree[2 * k], tree[2 * k + 1]
        tree[k] = max(left, right) if greedy else left + right


@inner(**PLAIN)
def weight_of(gap, degree):
    """Sampling weight of a block: max(g_i, 0) ** degree."""
    positive = max(gap, 0.0)
    return positive if degree == 1.0 else positive**degree


@inner(**PLAIN)
def tree_draw(tree, greedy, rng):
    """A block drawn in proportion to its weight, or that of largest weight if greedy; -1 if all are zero (O16 Alg. 2)."""
    total = tree[1]
    if total <= 0.0:
        return -1
    m = tree.size // 2
    k = 1
    if total == np.inf:
        while k < m:
            k = 2 * k if tree[2 * k] == np.inf else 2 * k + 1
    elif greedy:
        while k < m:
            k = 2 * k if tree[2 * k] >= tree[2 * k + 1] else 2 * k + 1
    else:
        r = rng.random() * total
        while k < m:
            left = tree[2 * k]
            # rounding may leave r at the very end: never descend into a subtree of weight zero
            if r < left or tree[2 * k + 1] <= 0.0:
                k = 2 * k
            else:
                r -= left
                k = 2 * k + 1
    return k - m
