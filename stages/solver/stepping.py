"""Between two rebase points: the flags of the compiled loop, how many steps, and what makes an exact pass due.

Functions of a `fixed_lambda.Solver`, which calls them; everything here depends on counts only.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from stages.solver.codes import CACHE_FIRST, CACHE_ONLY, DONE, ORACLE_CALLS, POOL_FULL
from stages.solver.codes import STEPS as STEP_COUNT
from stages.solver.counts import NEVER
from stages.solver.directions import PAIRWISE
from stages.solver.distances import with_room
from stages.solver.loop import Flags, steps_driver
from stages.solver.methods.minibatch import run_batches
from stages.solver.options import SAMPLERS, STEPS
from stages.solver.sampling import MAX_GAP, PERMUTATION

CACHED_SHARE = 10
"""An exact pass is also due after this many times `refresh_every` n steps, however few of them called the oracle."""


def flags_of(solver: Any, stop_sum: float, stop_calls: int, **other: Any) -> Flags:
    """The choices as the compiled loop reads them; `other` replaces some."""
    options = solver.options
    flags = Flags(
        sampler=SAMPLERS.index(options.sampler),
        step=STEPS.index(options.step),
        cache=solver.caching,
        corner=CACHE_FIRST,
        rounds=1,
        skip_below=0.0,
        F=float(options.cache.F),
        nu=float(options.cache.nu),
        capacity=solver.capacity,
        degree=float(options.degree),
        average=options.averaging != "none",
        scale=solver.scale,
        exact_total=solver.at.exact_total,
        stop_sum=stop_sum,
        stop_calls=stop_calls,
    )
    return flags._replace(**other)


def run(solver: Any, flags: Flags, order: np.ndarray, steps: int) -> int:
    """The compiled loop, with a larger pool whenever it asks for one; returns why it came back."""
    driver = steps_driver(solver.problem)
    while True:
        made, why = driver(solver.problem, solver.state, flags, solver.rng, order, steps)
        if why != POOL_FULL:
            return int(why)
        solver.make_room(1)
        steps, order = steps - made, order[made:]


def visit(solver: Any, times: int = 1, **choices: Any) -> None:
    """So many visits of every block, each in a fresh seeded permutation (a fixed order diverges under momentum)."""
    rng = np.random.default_rng([solver.seed, solver.at.permutations])
    order = np.concatenate([rng.permutation(solver.problem.n) for _ in range(times)])
    solver.at.permutations += 1
    flags = flags_of(solver, -1.0, NEVER, sampler=PERMUTATION, **choices)
    if flags.corner == CACHE_ONLY and flags.step == PAIRWISE:
        S = solver.state
        solver.state = S._replace(distances=with_room(S.distances, S.pool.counts))
    run(solver, flags, order, order.size)


def take_steps(solver: Any, threshold: float) -> None:
    """Steps until the next rebase point; sets `exact_due` when the stale sum or the count calls for it."""
    P, at, options = solver.problem, solver.at, solver.options
    n = P.n
    counters = solver.state.counters
    sampler = SAMPLERS.index(options.sampler)
    summed = sampler != MAX_GAP and (sampler < 2 or options.degree == 1.0)
    steps = options.rebase_steps or 10 * n
    order = np.empty(0, np.int64)
    if sampler == PERMUTATION:
        epoch, position = divmod(int(counters[STEP_COUNT]), n)
        order = np.random.default_rng([solver.seed, epoch]).permutation(n)[position:]
        steps = min(steps, order.size)
    elif not summed:
        steps = min(steps, n)
    calls = counters[ORACLE_CALLS]
    calls_left = min(options.max_oracle_calls, options.max_passes * n) - (solver.oracle_calls - at.calls_before)
    stop_calls = int(min(float(at.next_refresh), calls + max(calls_left, 1.0)))
    flags = flags_of(solver, threshold if summed else -1.0, stop_calls)
    why = (run if options.batch_size == 1 else run_batches)(solver, flags, order, steps)
    stale = float(np.sum(solver.state.gap))
    at.exact_due = bool(why != DONE or stale <= threshold or counters[ORACLE_CALLS] >= stop_calls)
    if options.refresh_every and counters[STEP_COUNT] - at.last_refresh >= CACHED_SHARE * options.refresh_every * n:
        at.exact_due = True
