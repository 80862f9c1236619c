"""The compiled steps: one loop for every structure and every block-coordinate method (LJ13 Alg. 4; O16 Alg. 2, 5).

The loop draws a block and steps (`step`) until it has made its steps or has to return for another reason. It knows lambda
only through ``scale`` = 1 / ((lambda + kappa) n), so a proximal-point method needs another u and scale but not another
loop; plain methods have kappa = 0 and u = v. All choices are flags read at run time, so each structure compiles once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypedDict

import numpy as np
from numba import njit

from gapwise.stages.problems.compiled import driver
from gapwise.stages.problems.inner import inner
from gapwise.stages.problems.protocol import JIT, PLAIN, widest_block
from gapwise.stages.solver.block.cached_step import cached_step
from gapwise.stages.solver.block.draws import draw
from gapwise.stages.solver.block.step import step
from gapwise.stages.solver.block.views.distances import by_distances
from gapwise.stages.solver.block.views.features import by_features
from gapwise.stages.solver.block.views.margins import by_margins
from gapwise.stages.solver.codes import (
    CACHE_ONLY,
    CALLS_REACHED,
    DONE,
    MARGINS_FULL,
    ORACLE_CALLS,
    POOL_FULL,
    SUM_REACHED,
)
from gapwise.stages.solver.distances import Distances
from gapwise.stages.solver.prefetching import fetch_ahead
from gapwise.stages.solver.sampling import MAX_GAP
from gapwise.stages.solver.supports import Pool


class State(NamedTuple):
    """The running solver: everything but the pool, gaps and counters is derived from the pool at a rebase point."""

    mu: np.ndarray
    """float64, flat local vectors: mu_i = sum_y alpha_i(y) m_i(y) at the last rebase; empty for methods that read none"""
    by_mu: np.ndarray
    """uint8, (n,): 1 if mu_i is kept up to date (many atoms at the last rebase), else summed over atoms; empty with mu"""
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
    """used by cached passes, which make room first"""
    skip: np.ndarray
    """int64, (n,): visits of cached passes that block i still sits out"""
    z: np.ndarray
    """float64, (d,) or (0,) without averaging: running sum of the weighted average (LJ13 3.4)"""
    z_ell: np.ndarray
    """float64, (2,): the same for (1/n) sum ell_i, and its current value"""
    counters: np.ndarray
    """int64, (N_COUNTERS,)"""
    curvature: np.ndarray
    """float64, (2,): sums of ||B_i delta||^2 and of the slope over the moves since it was last zeroed"""


class Flags(NamedTuple):
    """The options of a method as compiled code reads them."""

    sampler: int
    kinds: int
    """moves that a block may make: bits of `steps`"""
    by_slope: bool
    """try only one of FW and AWAY, the one with the larger slope"""
    cache: bool
    vertex_from: int
    """CACHE_FIRST to CACHE_ONLY: where a step's vertex comes from"""
    rounds: int
    """moves of a block each time it is drawn: the first towards the vertex, the others between the block's own atoms"""
    skip_below: float
    """cached passes: a block whose gap is below this sits out `SKIPPED_VISITS` visits"""
    F: float
    nu: float
    capacity: int
    degree: float
    """the sampling weight of a block is g_i ** degree"""
    average: bool
    scale: float
    """1 / ((lambda + kappa) n)"""
    exact_total: float
    """sum of block gaps at the last exact pass; 1 before the first"""
    stop_sum: float
    """return when the tree's sum of stale gaps is at or below this; < 0: never"""
    stop_calls: int
    """return when steps have made this many oracle calls"""


class FlagChoices(TypedDict, total=False):
    """The flags that a pass may choose anew."""

    sampler: int
    kinds: int
    vertex_from: int
    rounds: int
    skip_below: float
    capacity: int
    average: bool
    stop_sum: float
    stop_calls: int


@inner(**PLAIN)
def reason_to_return(S, flags):
    """POOL_FULL, CALLS_REACHED or SUM_REACHED if the loop must return before the next step, otherwise DONE."""
    if S.pool.free[1] < 1:
        return POOL_FULL
    if S.counters[ORACLE_CALLS] >= flags.stop_calls:
        return CALLS_REACHED
    if flags.sampler != MAX_GAP and S.tree[1] <= flags.stop_sum:
        return SUM_REACHED
    return DONE


@inner(**PLAIN)
def steps_by(P, S, V, flags, rng, order, steps):
    """(steps made, why it returned): up to `steps` steps by view V, of blocks that the sampler draws."""
    for k in range(steps):
        why = reason_to_return(S, flags)
        if why != DONE:
            return k, why
        if V.exhausted(S):
            return k, MARGINS_FULL
        i = draw(S, flags, rng, order, k)
        if i < 0:
            return k, SUM_REACHED
        V.fetch(P, S, flags, order, k, i)
        if flags.vertex_from == CACHE_ONLY and S.skip[i] > 0:
            S.skip[i] -= 1
        else:
            step(P, S, V, flags, i)
    return steps, DONE


@driver
def steps_driver(fingerprint: str) -> Callable[..., tuple[int, int]]:
    """`run_steps(P, S, flags, rng, order, steps) -> (steps made, why it returned)`: steps by features."""

    @njit(cache=True, **JIT)
    def run_steps(P, S, flags, rng, order, steps):
        fingerprint  # noqa: B018  a closure cell, so that it enters numba's cache key
        return steps_by(P, S, by_features(P, S, flags, P.scratch()), flags, rng, order, steps)

    return run_steps


@driver
def margin_steps_driver(fingerprint: str) -> Callable[..., tuple[int, int]]:
    """`run(P, S, margins, flags, rng, order, steps) -> (steps made, why it returned)`: the same by margin vectors."""

    @njit(cache=True, **JIT)
    def run(P, S, margins, flags, rng, order, steps):
        fingerprint  # noqa: B018
        return steps_by(P, S, by_margins(P, S, margins), flags, rng, order, steps)

    return run


@driver
def cached_steps_driver(fingerprint: str) -> Callable[..., None]:
    """`run_cached(P, S, flags, order)`: pairwise steps by distances, of every block of `order` that does not sit out."""

    @njit(cache=True, **JIT)
    def run_cached(P, S, flags, order):
        fingerprint  # noqa: B018
        widest = widest_block(P.local_ptr)
        theta, delta, most = np.empty(widest), np.empty(widest), S.pool.counts.max()
        slots, rows, values = np.empty(most, np.int64), np.empty(most, np.int64), np.empty(most)
        for k in range(order.size):
            fetch_ahead(P, S, order, k, True)
            if S.skip[order[k]] > 0:
                S.skip[order[k]] -= 1
            else:
                cached_step(P, S, flags, order[k], theta, delta, slots, rows, values)

    return run_cached


@driver
def distance_steps_driver(fingerprint: str) -> Callable[..., int]:
    """`run_visits(P, S, flags, precision, order) -> atoms scored`: steps by distances, of every block of `order`.

    No block is in `order` twice. Pool and distances have room for an atom more per block if `flags.vertex_from` asks the
    oracle. `precision`: `ByDistances.precision`.
    """

    @njit(cache=True, **JIT)
    def run_visits(P, S, flags, precision, order):
        fingerprint  # noqa: B018
        V = by_distances(P, S, P.scratch(), precision)
        for k in range(order.size):
            fetch_ahead(P, S, order, k, True)  # called by the view, it made a pass over USPS half as long again
            step(P, S, V, flags, order[k])
        return V.counts[2]

    return run_visits
