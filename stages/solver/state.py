"""The running state of a block-coordinate method: what is committed, and what is derived from it in a fixed order.

Committed: the pool of labellings, gaps, counters, the averages. Derived: ell, u, w and the sampling tree. At a rebase
point the running method replaces its derived quantities by those that `derive` computes, so that an uninterrupted solve
and a resumed one perform the same computation to the last bit.

u is a sum over n blocks, divided by lambda: at small lambda w is a small difference of large sums. So `derive` sums chunks
of blocks as they come, and adds up the chunks with the error of each addition (Neumaier). The error of u is then that of a
sum over one chunk, whatever n is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
from numba import njit

from gapwise.stages.problems.compiled import driver, inner
from gapwise.stages.problems.parallel import OverBlocks, in_one_piece
from gapwise.stages.problems.protocol import JIT, PLAIN, Problem, max_label_length, widest_block
from gapwise.stages.problems.simd import one_type
from gapwise.stages.problems.stored import check_array, check_supports
from gapwise.stages.solver.block.pairs import no_distances
from gapwise.stages.solver.block.sampling import tree_size
from gapwise.stages.solver.codes import N_COUNTERS
from gapwise.stages.solver.running import State, clip
from gapwise.stages.solver.supports import Pool, Supports, add_mean, base_of, find, insert, unpack

SHORT_CHUNK, FOLDED_PER_BLOCK = 64, 256
"""Blocks in a chunk, unless adding it to u would then take more than this many numbers per block."""


def chunk_length(d: int) -> int:
    """Blocks in a chunk: 64, or more where d is large."""
    return max(SHORT_CHUNK, d // FOLDED_PER_BLOCK)


@inner(**PLAIN)
def fold(part, u, error):
    """Add a chunk's sum to u, add the rounding error of each addition to `error`, and set the chunk to zero; (d,) each."""
    for j in range(u.size):
        before, x = u[j], part[j]
        total = before + x
        change = total - before
        error[j] += (before - (total - change)) + (x - change)
        u[j] = total
        part[j] = 0.0


class Sums(NamedTuple):
    """A sum over all blocks, in order, that pieces of a pass add up."""

    u: np.ndarray
    """(d,): what is added to"""
    part: np.ndarray
    """(d,): sum of the present chunk"""
    error: np.ndarray
    """(d,): rounding errors of the additions to u, which the last piece adds to it"""

    @classmethod
    def begin(cls, u: np.ndarray) -> Sums:
        """Nothing added yet."""
        return cls(u, np.zeros(u.size), np.zeros(u.size))


@inner(**PLAIN)
def fold_due(sums, done, chunk, n):
    """Fold the chunk into u where `done` of n blocks end one; after the last block, add up the errors, too."""
    if done % chunk == 0 or done == n:
        fold(sums.part, sums.u, sums.error)
    if done == n:
        for j in range(sums.u.size):
            sums.u[j] += sums.error[j]


@inner(**PLAIN)
def block_ell(pool, ell, i):
    """Block i's ell."""
    ell[i] = 0.0
    s = pool.head[i]
    while s >= 0:
        if pool.alpha[s] > 0.0:
            ell[i] += pool.alpha[s] * pool.losses[s]
        s = pool.next[s]


@inner(**PLAIN)
def derive_block(P, pool, scale, ell, u, i, delta_all):
    """Block i's ell; adds its share of u."""
    block_ell(pool, ell, i)
    delta = delta_all[: P.local_ptr[i + 1] - P.local_ptr[i]]
    delta[:] = 0.0
    add_mean(P, pool, i, -1.0, delta)
    P.add(i, one_type(P.truth[P.label_ptr[i] : P.label_ptr[i + 1]]), 1.0, delta)
    P.push(i, scale, delta, u)


@driver
def derive_driver(fingerprint: str) -> Callable[..., None]:
    """`derive(P, S, scale, sums, chunk, start, stop)`: block states and u from the pool alone, of blocks
    start to stop - 1. Calls for consecutive ranges come in order and cover all blocks.

    u <- u + scale sum_i B_i (m_i(y_i) - mu_i); the caller first sets u to zero (or the proximal centre's share), and
    begins `sums`.
    """

    @njit(cache=True, **JIT)
    def derive(P, S, scale, sums, chunk, start, stop):
        fingerprint  # noqa: B018
        delta_all = np.empty(widest_block(P.local_ptr))
        for i in range(start, stop):
            derive_block(P, S.pool, scale, S.ell, sums.part, i, delta_all)
            fold_due(sums, i + 1, chunk, S.ell.size)

    return derive


@driver
def truth_driver(fingerprint: str) -> Callable[..., None]:
    """`towards_truth(P, S, rho, capacity, start, stop)`: turn blocks start to stop - 1 of the dual point of lambda into
    those of rho lambda with the same w.

    alpha_i(y) <- rho alpha_i(y), the rest on y_i; block gaps are updated exactly, without an oracle call, from the values
    of the atoms. ell and u are recomputed at the next rebase. Needs one free slot per block.
    """

    @njit(cache=True, **JIT)
    def towards_truth(P, S, rho, capacity, start, stop):
        fingerprint  # noqa: B018
        n = S.ell.size
        theta_all = np.empty(widest_block(P.local_ptr))
        for i in range(start, stop):
            theta = theta_all[: P.local_ptr[i + 1] - P.local_ptr[i]]
            P.scores(i, S.w, theta)
            y = one_type(P.truth[P.label_ptr[i] : P.label_ptr[i + 1]])
            S.gap[i] += (1.0 - rho) / n * (base_of(P, i, theta, S.pool) - P.value(i, theta, y))
            s = S.pool.head[i]
            while s >= 0:
                S.pool.alpha[s] *= rho
                s = S.pool.next[s]
            s = find(S.pool, i, y, 0.0)
            if s < 0:
                s = insert(S.pool, i, y, 0.0, capacity)
            S.pool.alpha[s] += 1.0 - rho

    return towards_truth


def vertices_pool(problem: Problem, labels: np.ndarray, losses: np.ndarray) -> Pool:
    """The pool of a dual point with one vertex per block: `labels` flat like truth, `losses` (n,)."""
    n = problem.n
    vertices = Supports(np.arange(n + 1), np.ones(n), losses, np.zeros(n, np.int64), labels, problem.label_ptr)
    return unpack(vertices, max_label_length(problem), 4 * n + 64)


def truth_pool(problem: Problem) -> Pool:
    """The pool of the dual point w = 0: every block on its true labelling (LJ13 Alg. 4: where it starts)."""
    return vertices_pool(problem, problem.truth, np.zeros(problem.n))


def new_state(problem: Problem, pool: Pool) -> State:
    """A state around `pool`; derived quantities are not yet filled in, gaps are unknown (inf; O16 Alg. 2)."""
    u = np.zeros(problem.d)
    return State(
        ell=np.zeros(problem.n),
        u=u,
        w=np.zeros(problem.d) if problem.lower.size else u,
        gap=np.full(problem.n, np.inf),
        tree=np.zeros(tree_size(problem.n)),
        sums=np.empty(0),
        pool=pool,
        distances=no_distances(problem.n),
        skip=np.zeros(problem.n, np.int64),
        z=np.empty(0),
        z_ell=np.zeros(2),
        counters=np.zeros(N_COUNTERS, np.int64),
        curvature=np.zeros(2),
    )


def check_state(problem: Problem, supports: Supports, arrays: Mapping[str, np.ndarray]) -> None:
    """Raise ValueError, naming array and block, unless the arrays of `dual_point.SPECS` are a state of `problem`."""
    s, n = supports, problem.n
    check_supports(problem, s.offset, s.alpha, s.losses, s.label, s.label_offset)
    check_array("support_used", s.used, (s.alpha.size,), np.int64)
    if (int(s.offset[0]), int(s.offset[-1])) != (0, s.alpha.size):
        raise ValueError(f"support_offset: spans {s.offset[0]} to {s.offset[-1]}, expected 0 to {s.alpha.size}")
    block = np.repeat(np.arange(n), np.diff(s.offset))
    total = np.bincount(block, s.alpha, minlength=n)
    off = ~(np.abs(total - 1.0) <= 1e-6) | (np.bincount(block, s.alpha < 0.0, minlength=n) > 0)
    if off.any():
        i = int(np.argmax(off))
        raise ValueError(f"support_alpha: block {i}: expected weights >= 0 with sum 1, the sum is {total[i]:.9g}")
    gap = check_array("block_gap", arrays["block_gap"], (n,), np.float64)
    if np.isnan(gap).any():
        raise ValueError(f"block_gap: block {int(np.argmax(np.isnan(gap)))}: holds nan, expected a number or inf")
    check_array("counters", arrays["counters"], (N_COUNTERS,), np.int64)


def pool_of(problem: Problem, supports: Supports) -> Pool:
    """The pool of packed supports, with a free slot for each block."""
    return unpack(supports, max_label_length(problem), supports.alpha.size + problem.n + 64)


Fill = Callable[[Problem, State, float, Sums, int, int, int], None]
"""`fill(problem, state, scale, sums, chunk, start, stop)`: block states and u, as `derive_driver` computes them."""


def derive(
    problem: Problem,
    state: State,
    scale: float,
    centre_share: np.ndarray | None = None,
    fill: Fill | None = None,
    over_blocks: OverBlocks = in_one_piece,
) -> None:
    """Fill ell, u, w and the current mean loss from the pool.

    Parameters
    ----------
    scale : float
        1 / ((lambda + kappa) n).
    centre_share : (d,) array, optional
        kappa y / (lambda + kappa) of a proximal subproblem (`catalyst`).
    fill : callable, optional
        Computes a piece; by default from the features (`derive_driver`).
    over_blocks : callable
        Makes the pass, in pieces (`Ledger.over_blocks`).
    """
    state.u[:] = 0.0 if centre_share is None else centre_share
    sums, chunk, run = Sums.begin(state.u), chunk_length(problem.d), fill or derive_driver(problem)
    over_blocks(lambda start, stop: run(problem, state, scale, sums, chunk, start, stop), problem)
    if problem.lower.size:
        clip(state.u, problem.lower, problem.upper, state.w)
    state.z_ell[1] = np.sum(state.ell) / problem.n
