"""Steps of block methods: runs of the compiled loop, and passes that visit every block once in a new order."""

from __future__ import annotations

from typing import Any

import numpy as np

from gapwise.stages.problems.parallel import most_visits, work_before
from gapwise.stages.solver.block.by_margins import margin_steps_driver
from gapwise.stages.solver.block.loop import steps_driver
from gapwise.stages.solver.block.pairs import cached_steps_driver, no_distances, with_room
from gapwise.stages.solver.codes import (
    CACHE_ONLY,
    CALLS_REACHED,
    DONE,
    MARGINS_FULL,
    ORACLE_CALLS,
    PERMUTATION,
    POOL_FULL,
    UNIFORM,
)
from gapwise.stages.solver.dual_point import DISTANCES, DualPoint
from gapwise.stages.solver.oracles import Answers, load_oracles
from gapwise.stages.solver.running import Flags
from gapwise.stages.solver.supports import empty_pool, pack


def run_steps(it: DualPoint, flags: Flags, order: np.ndarray, steps: int) -> int:
    """Run the compiled loop in pieces, and make room whenever there is too little; returns the code of why it ended.

    Under uniform sampling the blocks of a piece are drawn before it, so that steps can fetch what the next ones will read.
    `rng` is left as if each had been drawn right before its step: draws do not depend on where pieces end.
    """
    counters, ledger, most, uniform = it.state.counters, it.ledger, most_visits(it.problem), flags.sampler == UNIFORM
    while True:
        ledger.check_stop()
        called = int(counters[ORACLE_CALLS])
        piece = min(steps, ledger.step_pace.begin(), most)
        ahead = flags._replace(stop_calls=min(flags.stop_calls, called + ledger.call_pace.begin()))
        before = it.rng.bit_generator.state
        if uniform:
            order, ahead = (it.rng.random(piece) * it.problem.n).astype(np.int64), ahead._replace(sampler=PERMUTATION)
        if it.margins is None:
            made, why = steps_driver(it.problem)(it.problem, it.state, ahead, it.rng, order[:piece], piece)
        else:
            driver, rows = margin_steps_driver(it.problem), it.margins.rows
            made, why = driver(it.problem, it.state, rows, ahead, it.rng, order[:piece], piece)
        if uniform and made < piece:
            it.rng.bit_generator.state = before
            it.rng.random(made)
        ledger.step_pace.end(made, made == piece < steps)
        ledger.call_pace.end(int(counters[ORACLE_CALLS]) - called, why == CALLS_REACHED)
        steps, order = steps - made, order[made:]
        if why == POOL_FULL:
            it.make_room(1)
        elif why == MARGINS_FULL and it.margins is not None:
            it.margins.make_room(it.state.pool)
        elif why == CALLS_REACHED and counters[ORACLE_CALLS] < flags.stop_calls:
            continue
        elif why != DONE or steps == 0:
            return int(why)


# -- passes ------------------------------------------------------------------------------------------------------------
def visit(it: DualPoint, times: int = 1, **choices: Any) -> None:
    """Visit every block `times` times, each time in a new seeded permutation; `choices` replace flags."""
    rng = np.random.default_rng([it.seed, it.counts.permutations])
    order = np.concatenate([rng.permutation(it.problem.n) for _ in range(times)])
    it.counts.permutations += 1
    visit_order(it, it.flags(**choices, sampler=PERMUTATION), order)


def visit_order(it: DualPoint, flags: Flags, order: np.ndarray) -> None:
    """Visit the blocks of `order`: by distances between a block's labellings where these serve."""
    if it.views[1] != DISTANCES or flags.vertex_from != CACHE_ONLY:
        run_steps(it, flags, order, order.size)
        return
    it.state = it.state._replace(distances=with_room(it.state.distances, it.state.pool.counts))
    driver = cached_steps_driver(it.problem)

    def part(start: int, stop: int) -> None:
        driver(it.problem, it.state, flags, order[start:stop])

    it.ledger.cached_pace.run(part, 0, order.size, it.ledger.check_stop, work_before(it.problem, order))


# -- compiling ---------------------------------------------------------------------------------------------------------
def load_steps(it: DualPoint) -> None:
    """Compile or load every function that steps and exact passes call; changes no result."""
    P, S, none = it.problem, it.state, np.empty(0, np.int64)
    load_oracles(P, it.n_best)
    run_steps(it, it.flags(), none, 0)
    pack(empty_pool(0, 0, S.pool.labels.shape[1], P.truth.dtype), P.label_ptr[:1])
    if it.options.cache:
        it.keep(none, Answers.empty(P, 0, it.n_best))


def load_cached_steps(it: DualPoint) -> None:
    """Compile or load what cached passes call."""
    it.cached_gaps(it.state.w)
    with_room(no_distances(1), np.ones(1, np.int64))
    if it.views[1] == DISTANCES:
        cached_steps_driver(it.problem)(it.problem, it.state, it.flags(), np.empty(0, np.int64))
