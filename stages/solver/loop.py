"""The compiled steps: one loop for every structure and every member of the family (DESIGN 2.1-2.4, 2.8).

A step draws a block, takes a corner (a cached labelling if that promises enough, else the max-oracle's), moves the block
along the best direction of the chosen kind with exact line search, and pushes B_i delta into u. The loop knows lambda only
through ``scale`` = 1 / ((lambda + kappa) n), so that a proximal-point wrapper is another choice of u and scale and not
another loop; plain methods have kappa = 0 and u = v. All choices are flags read at run time: one compiled variant for each
structure.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from stages.problems.compiled import driver
from stages.problems.protocol import JIT, PLAIN
from stages.solver.codes import (
    BATCH_FULL,
    CACHE_ONLY,
    CALLS_REACHED,
    COLLECT,
    DONE,
    MOVE,
    ORACLE_CALLS,
    POOL_FULL,
    RATE,
    SUM_REACHED,
)
from stages.solver.directions import PAIRWISE
from stages.solver.distances import Distances
from stages.solver.sampling import MAX_GAP, PERMUTATION, UNIFORM, tree_draw
from stages.solver.step import cached_visit, visit
from stages.solver.supports import Pool


class Batch(NamedTuple):
    """A mini-batch: the blocks set aside and their corners; empty without one."""

    block: np.ndarray
    """int64: in the order drawn; -1 where none is yet"""
    slot: np.ndarray
    """int64: where the corner is in the pool; -1: not there"""
    losses: np.ndarray
    """float64: L_i of oracles' answers"""
    labels: np.ndarray
    """truth's dtype, (blocks, longest): oracles' answers"""


class State(NamedTuple):
    """The running solver: everything below but the pool, gaps and counters is derived from the pool at a rebase."""

    mu: np.ndarray
    """float64, flat local vectors: mu_i = sum_y alpha_i(y) m_i(y) at the last rebase"""
    by_mu: np.ndarray
    """uint8, (n,): 1 where moves other than pairwise keep mu_i up to date, because the block had many atoms then"""
    ell: np.ndarray
    """float64, (n,): sum_y alpha_i(y) L_i(y)"""
    u: np.ndarray
    """float64, (d,): scale * sum_i B_i (m_i(y_i) - mu_i), plus the proximal centre's share if kappa > 0"""
    w: np.ndarray
    """float64, (d,): clip(u); the same array as u when there is no box"""
    gap: np.ndarray
    """float64, (n,): last known block gaps; inf where never computed"""
    tree: np.ndarray
    """float64: `sampling`'s tree over the gaps"""
    pool: Pool
    distances: Distances
    """of cached passes; room is made before them"""
    skip: np.ndarray
    """int64, (n,): visits of cached passes that block i sits out (DESIGN 2.8)"""
    z: np.ndarray
    """float64, (d,) or (0,) without averaging: running sum of DESIGN 2.4"""
    z_ell: np.ndarray
    """float64, (2,): the same for (1/n) sum ell_i, and its current value"""
    counters: np.ndarray
    """int64, (N_COUNTERS,)"""
    curvature: np.ndarray
    """float64, (2,): sums of ||B_i delta||^2 and of the slope over the moves since it was last zeroed"""
    batch: Batch
    """the mini-batch under way"""


class Flags(NamedTuple):
    """The choices of `options.SolverOptions` as compiled code reads them."""

    sampler: int
    step: int
    cache: bool
    corner: int
    """CACHE_FIRST to MOVE: where a visit's corner comes from"""
    rounds: int
    """moves a visit: the first towards the corner, more between the block's own atoms"""
    skip_below: float
    """cached passes: a block whose gap is below this sits out `SKIPPED_VISITS` visits"""
    F: float
    nu: float
    capacity: int
    degree: float
    average: bool
    scale: float
    """1 / ((lambda + kappa) n)"""
    exact_total: float
    """last exact sum of block gaps; 1 before there is one"""
    stop_sum: float
    """come back when the tree's sum of stale gaps is at or below this; < 0: never"""
    stop_calls: int
    """come back when this many oracle calls have been made in steps"""


@njit(**PLAIN)
def among(blocks, i):
    """Whether i is one of `blocks`."""
    for k in range(blocks.size):  # noqa: SIM110
        if blocks[k] == i:
            return True
    return False


@driver
def steps_driver(fingerprint: str) -> Any:
    """`run_steps(P, S, flags, rng, order, steps) -> (steps made, why it came back)` for the structure of a problem."""

    @njit(cache=True, **JIT)
    def run_steps(P, S, flags, rng, order, steps):
        fingerprint  # noqa: B018  a closure cell, so that it enters numba's cache key
        n = S.ell.size
        pool = S.pool
        scratch = P.scratch()
        widest = 0
        longest = pool.labels.shape[1]
        given = flags.corner == RATE or flags.corner == MOVE
        aside = 0
        for k in range(steps if given else n):
            i = S.batch.block[k] if given else k
            widest = max(widest, P.local_ptr[i + 1] - P.local_ptr[i])
        theta_all, delta_all, y_all = np.empty(widest), np.empty(widest), np.empty(longest, P.truth.dtype)
        most = pool.counts.max() if flags.corner == CACHE_ONLY else 0
        slots, places, values = np.empty(most, np.int64), np.empty(most, np.int64), np.empty(most)
        greedy = flags.sampler == MAX_GAP
        for k in range(steps):
            if pool.free[1] < 1:
                return k, POOL_FULL
            if S.counters[ORACLE_CALLS] >= flags.stop_calls:
                return k, CALLS_REACHED
            if not greedy and S.tree[1] <= flags.stop_sum:
                return k, SUM_REACHED
            if given:
                i = S.batch.block[k]
            elif flags.sampler == PERMUTATION:
                i = order[k]
            elif flags.sampler == UNIFORM:
                i = int(rng.random() * n)
                while aside > 0 and among(S.batch.block[:aside], i):
                    i = int(rng.random() * n)
            else:
                i = tree_draw(S.tree, greedy, rng)
                if i < 0:
                    return k, SUM_REACHED
            if flags.corner == CACHE_ONLY and S.skip[i] > 0:
                S.skip[i] -= 1
                continue
            if flags.corner == CACHE_ONLY and flags.step == PAIRWISE:
                cached_visit(P, S, flags, i, theta_all, delta_all, slots, places, values)
            else:
                visit(P, S, flags, i, k if given else aside, theta_all, delta_all, y_all, scratch)
            if flags.corner == COLLECT and S.batch.block[aside] >= 0:
                aside += 1
                if aside == S.batch.block.size:
                    return k + 1, BATCH_FULL
        return steps, DONE

    return run_steps
