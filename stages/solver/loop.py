"""The compiled steps: one loop for every structure and every block-coordinate method (LJ13 Alg. 4; O16 Alg. 2, 5).

The loop draws a block and steps (`step`) until it has made its steps or has to return for another reason. It knows lambda
only through ``scale`` = 1 / ((lambda + kappa) n), so a proximal-point method needs another u and scale but not another
loop; plain methods have kappa = 0 and u = v. All choices are flags read at run time, so each structure compiles once.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numba import njit

from gapwise.stages.problems.compiled import driver
from gapwise.stages.problems.inner import inner
from gapwise.stages.problems.protocol import JIT, PLAIN, largest, widest_block
from gapwise.stages.solver.block.pairs import cached_step
from gapwise.stages.solver.block.sampling import draw
from gapwise.stages.solver.block.step import step
from gapwise.stages.solver.block.views.features import by_features
from gapwise.stages.solver.block.views.margins import by_margins
from gapwise.stages.solver.codes import (
    CACHE_ONLY,
    CALLS_REACHED,
    DONE,
    MARGINS_FULL,
    MAX_GAP,
    ORACLE_CALLS,
    POOL_FULL,
    SUM_REACHED,
)
from gapwise.stages.solver.prefetching import prefetch_visits


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
        theta, delta, most = np.empty(widest), np.empty(widest), largest(S.pool.counts)
        slots, rows, values = np.empty(most, np.int64), np.empty(most, np.int64), np.empty(most)
        for k in range(order.size):
            prefetch_visits(P, S, order, k, True)
            if S.skip[order[k]] > 0:
                S.skip[order[k]] -= 1
            else:
                cached_step(P, S, flags, order[k], theta, delta, slots, rows, values)

    return run_cached
