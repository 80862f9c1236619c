"""Exact passes that alternate with passes over the cache: what `accelerated` and `multiplane_half` share (S15 Alg. 3).

An outer iteration is one *moving* exact pass (every block calls its oracle and steps at once, so w moves), followed by
cached passes, in which blocks move weight between the labellings that they have. Every pass visits the blocks in a new
seeded permutation: with momentum, a fixed order diverges.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gapwise.stages.parallel import Pace
from gapwise.stages.solver.block_method import BlockMethod
from gapwise.stages.solver.codes import CACHE_ONLY, ORACLE_ALWAYS
from gapwise.stages.solver.counts import BlockCounts
from gapwise.stages.solver.distances import no_distances, with_room
from gapwise.stages.solver.loop import cached_steps_driver
from gapwise.stages.solver.objective import Certificate
from gapwise.stages.solver.options import CachedPassOptions, Status
from gapwise.stages.solver.sampling import PERMUTATION
from gapwise.stages.solver.steps import PAIRWISE, step_rule
from gapwise.stages.solver.supports import drop_unused

MOST_CACHED_PASSES = 300
"""Bound on the rounds of cached passes in one outer iteration; only a broken oracle would reach it."""

FINISH_PASSES = 10
"""Cached passes between two exact passes of the final phase."""


@dataclass
class CachedPassCounts(BlockCounts):
    """Scalars of the outer iterations."""

    permutations: int = 0
    """Passes in permuted order so far: the seed of the next permutation."""
    marks: list[int] = field(default_factory=list)
    """Step counts at the last few exact passes, of this lambda and of those before it."""


@dataclass
class CachedPasses(BlockMethod):
    """The loop of both methods; a subclass says what an outer iteration does."""

    counts = CachedPassCounts
    options: CachedPassOptions
    cached_pace: Pace = field(default_factory=Pace)
    """Of cached steps."""

    @staticmethod
    def stores_mu(options: CachedPassOptions) -> bool:
        """Pairwise moves read no mu."""
        return step_rule(options.step).kinds != PAIRWISE

    @property
    def sampler(self) -> int:
        """Blocks are visited in the order of a permutation."""
        return PERMUTATION

    @property
    def own_point(self) -> bool:
        """Whether w may differ from w(alpha) to the end; certificates are then those of (w, alpha)."""
        return False

    @abstractmethod
    def outer(self, tolerance: float, relative: bool) -> None:
        """One moving exact pass and the cached passes after it; sets `exact_due` when the gap is nearly small enough."""

    def start_lambda(self, lam: float, breakpoint: int, *, exact_due: bool = False) -> None:
        """Begin another lambda; a path that goes up and down counts the passes without use anew, and so keeps labellings."""
        super().start_lambda(lam, breakpoint, exact_due=exact_due)
        if self.revisits:
            self.at.marks = []

    def leave(self) -> None:
        """Clean up at the end of a lambda."""

    def advance(
        self, tolerance: float, relative: bool, exact: bool, started: float
    ) -> tuple[Status, Certificate] | None:
        """An outer iteration; or, if one is due, an exact pass at a fixed point, which may end the solve."""
        if not self.at.exact_due:
            self.outer(tolerance, relative)
            return None
        point, _ = self.exact_pass()
        self.record(point, started)
        bound = tolerance * (max(point.dual, 0.0) if relative else 1.0)
        status = Status.CONVERGED if point.gap <= bound else self.limit() or self.hopeless(bound)
        if status:
            self.leave()
            return status, point
        if not self.own_point:
            self.finish(point.gap)
        return None

    def visit(self, times: int = 1, **choices: Any) -> None:
        """Visit every block `times` times, each time in a new seeded permutation; `choices` replace flags."""
        rng = np.random.default_rng([self.seed, self.at.permutations])
        order = np.concatenate([rng.permutation(self.problem.n) for _ in range(times)])
        self.at.permutations += 1
        flags = self.flags(**choices)
        if self.margins is None and flags.corner == CACHE_ONLY and flags.kinds == PAIRWISE:
            S = self.state
            self.state = S._replace(distances=with_room(S.distances, S.pool.counts))
            driver = cached_steps_driver(self.problem)

            def part(start: int, stop: int) -> None:
                driver(self.problem, self.state, flags, order[start:stop])

            self.cached_pace.run(part, 0, order.size, self.check_stop)
        else:
            self.run(flags, order, order.size)

    def moving_pass(self) -> None:
        """One exact pass that moves w; then drop labellings that have not been chosen for long."""
        options = self.options.acceleration
        self.make_room(self.problem.n)
        self.state.curvature[:] = 0.0
        self.visit(corner=ORACLE_ALWAYS, rounds=options.rounds)
        self.at.marks = [*self.at.marks, self.steps][-options.unused_passes :]
        if len(self.at.marks) == options.unused_passes:
            drop_unused(self.state.pool, self.at.marks[0])

    def cached_round(self, skip_below: float) -> None:
        """`cached_passes` passes over the cache."""
        options = self.options.acceleration
        self.visit(options.cached_passes, corner=CACHE_ONLY, rounds=options.rounds, skip_below=skip_below)

    def finish(self, gap: float) -> None:
        """Cached passes between two exact passes at a fixed point."""
        options = self.options.acceleration
        self.state.skip[:] = 0
        for _ in range(FINISH_PASSES):
            self.visit(corner=CACHE_ONLY, rounds=options.rounds)
            if self.known_gap < 0.5 * options.inner_target * gap:
                break
        self.at.exact_due = True

    def warm_up(self) -> None:
        """Also compile or load what only these methods call."""
        super().warm_up()
        drop_unused(self.state.pool, 0)
        self.cached_gaps(self.state.w)
        with_room(no_distances(1), np.ones(1, np.int64))
        if self.margins is None:
            cached_steps_driver(self.problem)(self.problem, self.state, self.flags(), np.empty(0, np.int64))
