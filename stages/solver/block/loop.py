"""The compiled steps: one loop for every structure and every block-coordinate method (LJ13 Alg. 4; O16 Alg. 2, 5).

The loop draws a block and steps (`step`) until it has made its steps or has to return for another reason. It knows lambda
only through ``scale`` = 1 / ((lambda + kappa) n), so a proximal-point method needs another u and scale but not another
loop; plain methods have kappa = 0 and u = v. All choices are flags read at run time, so each structure compiles once.
"""

from __future__ import annotations

from collections.abc import Callable

from numba import njit

from gapwise.stages.problems.compiled import driver, inner
from gapwise.stages.problems.protocol import JIT, PLAIN
from gapwise.stages.solver.block.by_features import by_features
from gapwise.stages.solver.block.sampling import draw
from gapwise.stages.solver.block.step import step
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
        if V.exhausted():
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
        return steps_by(P, S, by_features(P, S), flags, rng, order, steps)

    return run_steps
