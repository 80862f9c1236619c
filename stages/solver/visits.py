"""Steps of block methods: runs of the compiled loop, and passes that visit every block once in a new order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Unpack

import numpy as np

from gapwise.stages.problems.parallel import Pace, most_visits, work_before
from gapwise.stages.problems.protocol import Problem
from gapwise.stages.solver.block.loop import steps_driver
from gapwise.stages.solver.block.pairs import cached_steps_driver, no_distances, with_room
from gapwise.stages.solver.block.sampling import drawn_beforehand
from gapwise.stages.solver.codes import (
    CACHE_ONLY,
    CALLS_REACHED,
    DONE,
    ORACLE_ALWAYS,
    ORACLE_CALLS,
    PERMUTATION,
    POOL_FULL,
)
from gapwise.stages.solver.iterate import Iterate, mark_pass
from gapwise.stages.solver.oracles import Answers, load_oracles
from gapwise.stages.solver.running import FlagChoices, Flags
from gapwise.stages.solver.setup import DISTANCES
from gapwise.stages.solver.supports import empty_pool, pack

Loop = Callable[[Problem], Callable[..., tuple[int, int]]]
"""loop(problem): compiled steps, called as `loop.steps_driver` says."""


@dataclass
class Visits:
    """The compiled steps of one iterate, called piece by piece so that a stop can end them in between."""

    it: Iterate
    loop: Loop = steps_driver
    """loop(problem): the compiled steps, called as `loop.steps_driver` says."""
    pace: Pace = field(default_factory=Pace)
    """Steps between stop checks; at most `parallel.most_visits`."""
    call_pace: Pace = field(default_factory=Pace)
    """The same of steps that call the oracle."""
    cached_pace: Pace = field(default_factory=Pace)
    """Work between stop checks, of cached passes."""

    def __post_init__(self) -> None:
        self.most = most_visits(self.it.problem)

    def flags(self, **other: Unpack[FlagChoices]) -> Flags:
        """The iterate's choices as compiled loops read them; `other` replaces some."""
        return self.it.setup.flags(self.it.scale, self.it.counts.exact_total, **other)

    @property
    def stepper(self) -> Callable[..., tuple[int, int]]:
        """The compiled steps, by margin vectors where such are kept."""
        return self.loop(self.it.problem) if self.it.margins is None else self.it.margins.steps

    def run(self, flags: Flags, order: np.ndarray, steps: int) -> int:
        """Run the compiled loop, enlarging the pool whenever it is full; returns the code of why the loop ended."""
        it, stepper = self.it, self.stepper
        counters = it.state.counters
        driver = drawn_beforehand(stepper, flags.sampler)
        while True:
            it.ledger.check_stop()
            called = int(counters[ORACLE_CALLS])
            piece = min(steps, self.pace.begin(), self.most)
            last_call = min(flags.stop_calls, called + self.call_pace.begin())
            made, why = driver(it.problem, it.state, flags._replace(stop_calls=last_call), it.rng, order[:piece], piece)
            self.pace.end(made, made == piece < steps)
            self.call_pace.end(int(counters[ORACLE_CALLS]) - called, why == CALLS_REACHED)
            steps, order = steps - made, order[made:]
            if why == POOL_FULL:
                it.make_room(1)
            elif why == CALLS_REACHED and counters[ORACLE_CALLS] < flags.stop_calls:
                continue
            elif why != DONE or steps == 0:
                return int(why)

    # -- passes -------------------------------------------------------------------------------------------------------
    def visit(self, times: int = 1, **choices: Unpack[FlagChoices]) -> None:
        """Visit every block `times` times, each time in a new seeded permutation; `choices` replace flags."""
        it = self.it
        rng = np.random.default_rng([it.seed, it.counts.permutations])
        order = np.concatenate([rng.permutation(it.problem.n) for _ in range(times)])
        it.counts.permutations += 1
        flags = self.flags(**choices)._replace(sampler=PERMUTATION)
        self.visit_order(flags, order)

    def visit_order(self, flags: Flags, order: np.ndarray) -> None:
        """Visit the blocks of `order`: by distances between a block's labellings where these serve."""
        if self.it.views[1] == DISTANCES and flags.vertex_from == CACHE_ONLY:
            self.cached_visits(flags, order)
        else:
            self.run(flags, order, order.size)

    def cached_visits(self, flags: Flags, order: np.ndarray) -> None:
        """Pairwise moves within the cache of every block of `order`, by the distances between its labellings."""
        it = self.it
        it.state = it.state._replace(distances=with_room(it.state.distances, it.state.pool.counts))
        driver = cached_steps_driver(it.problem)

        def part(start: int, stop: int) -> None:
            driver(it.problem, it.state, flags, order[start:stop])

        self.cached_pace.run(part, 0, order.size, it.ledger.check_stop, work_before(it.problem, order))

    def bcfw_pass(self, most: int) -> None:
        """A step of every block with the oracle, so that w moves; then labellings unused for `most` passes are dropped."""
        it = self.it
        it.make_room(it.problem.n)
        it.state.curvature[:] = 0.0
        self.visit(vertex_from=ORACLE_ALWAYS)
        mark_pass(it, most)

    # -- compiling ----------------------------------------------------------------------------------------------------
    def warm_up(self) -> None:
        """Compile or load every function that steps and exact passes call; changes no result."""
        it, P, S = self.it, self.it.problem, self.it.state
        load_oracles(P, it.setup.n_best)
        self.stepper(P, S, self.flags(stop_calls=0), it.rng, np.empty(0, np.int64), 0)
        warm_up_pool(it)

    def warm_up_cached(self) -> None:
        """Compile or load what cached passes call."""
        it = self.it
        it.cached_gaps(it.state.w)
        with_room(no_distances(1), np.ones(1, np.int64))
        if it.views[1] == DISTANCES:
            cached_steps_driver(it.problem)(it.problem, it.state, self.flags(), np.empty(0, np.int64))


def warm_up_pool(it: Iterate) -> None:
    """Compile or load what packs supports and keeps an oracle's answers."""
    pool = empty_pool(0, 0, it.state.pool.labels.shape[1], it.problem.truth.dtype)
    pack(pool, it.problem.label_ptr[:1])
    if it.setup.caching:
        it.keep(np.empty(0, np.int64), Answers.empty(it.problem, 0, it.setup.n_best))
