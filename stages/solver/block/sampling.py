"""Which block is next: uniform, in permuted order, by last known gaps, or by fixed weights (LJ13 Alg. 4; O16 3.1, Alg. 2).

Gap sampling draws from a tree over the blocks' last known gaps: a flat array of 2 m entries, m the smallest power of two
>= n. Leaves are at m..2m-1, and entry k combines entries 2k and 2k + 1. Under gap sampling it holds sums of g_i ** degree,
under greedy `max_gap` maxima. Every entry is a function of the leaves alone, so a tree rebuilt from its leaves has the same
bits and is not committed. A block that was never visited has an infinite gap; the draw descends to the first such block, so
these are drawn first, in block order.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numba import njit

from gapwise.stages.problems.compiled import driver, inner
from gapwise.stages.problems.protocol import INLINED, JIT, PLAIN, Problem, widest_block
from gapwise.stages.problems.simd import one_type
from gapwise.stages.solver.codes import LIPSCHITZ, MAX_GAP, PERMUTATION, UNIFORM
from gapwise.stages.solver.oracles import answers_at

LEAST = 0.01
"""A block is drawn at least this share as often as on average: the labelling at w = 0 may be too near the truth."""


@inner(**INLINED)
def draw(S, flags, rng, order, k):
    """The k-th block of this call, from `order` if it is permuted; -1 if no block has a positive gap."""
    if flags.sampler == UNIFORM:  # LJ13 Alg. 4
        return int(rng.random() * S.ell.size)
    if flags.sampler == PERMUTATION:  # S15 Alg. 2: the method permutes the blocks anew for every pass
        return order[k]
    if flags.sampler == LIPSCHITZ:
        return weighted_draw(S.sums, rng)
    return tree_draw(S.tree, flags.sampler == MAX_GAP, rng)  # O16 Alg. 2; the largest last known gap, if greedy


def lipschitz_weights(problem: Problem) -> np.ndarray:
    """float64, (n,): R_i^2, R_i the largest ||psi_i(y)||; at least a hundredth of their mean, ones if all are zero.

    With the 1-norm on the simplex of block i, the Lipschitz constant of the dual's gradient is R_i^2 / (lambda n^2) (O16
    App. C; Nesterov 2012). LJ13 App. A bounds the curvature by four times that, so sampling by curvature draws the same
    blocks. R_i is estimated from a labelling at hand, as in O16 3.1: the max-oracle's answer at w = 0. Its n calls do not
    count, for the rival knows its constants.
    """
    vertices = answers_at(problem, np.zeros(problem.d), range(problem.n))
    norm2 = squared_norms(problem, np.arange(problem.n), vertices.vertex)
    mean = float(np.mean(norm2))
    return np.maximum(norm2, LEAST * mean) if mean > 0.0 else np.ones(problem.n)


@inner(**PLAIN)
def weighted_draw(sums, rng):
    """A block drawn in proportion to fixed weights with these running sums; takes one number of `rng`."""
    low, high, drawn = 0, sums.size - 1, rng.random() * sums[-1]
    while low < high:  # every structure's steps compile this, and NumPy's search takes a third of a second
        middle = (low + high) // 2
        if sums[middle] > drawn:
            high = middle
        else:
            low = middle + 1
    return low


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


# -- how blocks differ: norms of psi, and how uneven a number is over blocks ---
@driver
def norms_driver(fingerprint: str) -> Callable[..., None]:
    """`norms(P, blocks, labels, out)`: out_k <- ||psi_i(labels_k)||^2, i = blocks_k; labels (blocks, longest)."""

    @njit(cache=True, **JIT)
    def norms(P, blocks, labels, out):
        fingerprint  # noqa: B018
        delta_all = np.empty(widest_block(P.local_ptr))
        for k in range(blocks.size):
            i = blocks[k]
            delta = delta_all[: P.local_ptr[i + 1] - P.local_ptr[i]]
            delta[:] = 0.0
            first, last = P.label_ptr[i], P.label_ptr[i + 1]
            P.add(i, one_type(P.truth[first:last]), 1.0, delta)
            P.add(i, labels[k, : last - first], -1.0, delta)
            out[k] = max(P.norm2(i, delta), 0.0)

    return norms


def nonuniformity(x: np.ndarray) -> float:
    """chi(x) = sqrt(1 + n^2 Var(x / ||x||_1)) of x >= 0, from 1 to sqrt(n) (O16 Def. 5); nan if x is zero or not finite."""
    positive = np.maximum(x, 0.0)
    total = float(np.sum(positive))
    return math.sqrt(1.0 + x.size**2 * float(np.var(positive / total))) if 0.0 < total < math.inf else math.nan


def squared_norms(problem: Problem, blocks: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """float64, (blocks,): ||psi_i(y)||^2 of a labelling y for each of `blocks`; labels (blocks, longest)."""
    out = np.empty(blocks.size)
    norms_driver(problem)(problem, blocks, labels, out)
    return out
