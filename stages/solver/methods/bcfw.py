"""Block-coordinate Frank-Wolfe: FW, pairwise and away steps, gap sampling, caching (LJ13 Alg. 4; O16 Alg. 2-5).

From one rebase point to the next: if an exact pass is due, make it and perhaps stop; then take steps
until the stale gap sum falls below 0.8 of the tolerance, `refresh_every` effective passes are over, or `rebase_steps` steps
have been made. The clock decides only which rebase points are committed; everything else depends on counts.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gapwise.records import Json
from gapwise.stages.solver.catalyst import ProximalCounts
from gapwise.stages.solver.codes import DONE, ORACLE_CALLS
from gapwise.stages.solver.counts import NEVER, Arrays
from gapwise.stages.solver.exact import due_pass, judged, left_for_oracle
from gapwise.stages.solver.method import Ended, Method
from gapwise.stages.solver.methods.accelerated import Accelerated
from gapwise.stages.solver.objective import Goal
from gapwise.stages.solver.options import BcfwOptions, CachedPassOptions
from gapwise.stages.solver.running import Flags, sampling_of
from gapwise.stages.solver.visits import load_steps, run_steps

EARLY = 0.8
"""Share of the tolerance at which the stale gap sum triggers an exact pass (O16, the authors' code)."""

HARD, CALLS = 40.0, 4_000
"""Effective passes, and oracle calls, at one lambda of a path after which plain steps hand over: below a hundred blocks more
passes do no harm."""

CACHED_SHARE = 10
"""An exact pass is also due after this many times `refresh_every` n steps, however few of them called the oracle."""

Options = BcfwOptions


@dataclass
class StepCounts(ProximalCounts):
    """The scalars of a method of steps, and of the accelerated steps that may take over."""

    next_refresh: int = 0
    """The number of oracle calls in steps at which the next exact pass is due."""


class Bcfw(Method[Options]):
    """Steps on one block after another, as the sampler draws them, with exact passes in between.

    At a lambda of a path that takes many passes, pairwise steps with a cache hand over to `accelerated`, for the rest of the
    path. A step moves weight in proportion to lambda n: where that is small, plain steps take passes in proportion to
    1/lambda, and accelerated ones in proportion to its root.
    """

    specs = Accelerated.specs
    own: StepCounts

    @classmethod
    def flags(cls, options: Options) -> Flags:
        """Blocks are drawn as the sampler says."""
        sampling = sampling_of(options.sampler, options.degree)
        return Flags.of(options, **sampling, line_search=options.line_search)

    def prepare(self) -> None:
        """The accelerated method that may take over, with pairwise moves and a cache."""
        self.own, self.accelerated = StepCounts(), None
        if self.it.pairwise:
            self.accelerated = Accelerated(self.it, CachedPassOptions())
            self.accelerated.own = self.own

    def start(self) -> None:
        """Another lambda has begun."""
        self.count_anew()
        if self.accelerated and self.counts.switched:
            self.accelerated.start()

    @property
    def point(self) -> np.ndarray:
        """(d,): w; the mean of accelerated points once these have taken over."""
        return self.accelerated.point if self.accelerated and self.counts.switched else self.it.state.w

    @property
    def rewrites_w(self) -> bool:
        """Whether accelerated steps have taken over, whose mean is certified."""
        return self.counts.switched > 0.0

    def load(self) -> None:
        """What steps and exact passes call."""
        load_steps(self.it)

    def facts(self) -> dict[str, Json]:
        """The lambda from which on accelerated steps have taken over."""
        return {"accelerated_from": self.counts.switched} if self.counts.switched else {}

    def advance(self, goal: Goal) -> Ended | None:
        """An exact pass if one is due, which may end the solve; then steps until the next rebase point (O16 Alg. 2)."""
        it, counts = self.it, self.it.counts
        if self.accelerated and counts.switched:
            return self.accelerated.advance(goal)
        bound = goal.bound(counts.dual)
        if counts.exact_due:
            point, answers = due_pass(it, goal)
            if answers:
                self.count_anew()
            it.ledger.record(point)
            bound = goal.bound(point.dual)
            status = judged(it, point, goal)
            if status:
                return status, point
            if self.accelerated and goal.exact and self.is_hard:
                counts.switched = counts.lam
                self.accelerated.start()
                return None
        threshold = (EARLY if goal.exact else 1.0) * left_for_oracle(it, bound) if bound == bound else -1.0
        flags, order, steps = self.next_steps(threshold)
        why = run_steps(it, flags, order, steps)
        if self.accelerated:
            self.accelerated.measure()  # of the first moves: later ones have smaller slopes
        enough = it.state.counters[ORACLE_CALLS] >= flags.stop_calls or self.many_steps
        # a relative tolerance needs a dual value, which only an exact pass gives
        unknown = goal.relative and not self.options.refresh_every and not bound > 0.0
        counts.exact_due = bool(why != DONE or it.known_gap <= threshold or enough or unknown)
        return None

    def next_steps(self, threshold: float) -> tuple[Flags, np.ndarray, int]:
        """Flags, blocks and number of the steps until the next rebase point, or until stale gaps fall below `threshold`."""
        it, options, n = self.it, self.options, self.it.problem.n
        summed = (
            options.sampler != "max_gap" and it.options.degree == 1.0
        )  # if so, the tree's root is the stale gap sum
        steps, order = options.rebase_steps or 10 * n, np.empty(0, np.int64)
        if options.sampler == "permutation":
            epoch, position = divmod(it.ledger.steps, n)
            order = np.random.default_rng([it.seed, epoch]).permutation(n)[position:]
            steps = min(steps, order.size)
        elif not summed:
            steps = min(steps, n)
        calls_left = min(options.max_oracle_calls, options.max_passes * n) - it.ledger.calls_here
        stop_calls = min(float(self.own.next_refresh), it.state.counters[ORACLE_CALLS] + max(calls_left, 1.0))
        return it.flags(stop_sum=threshold if summed else -1.0, stop_calls=int(stop_calls)), order, steps

    @property
    def is_hard(self) -> bool:
        """Whether this lambda has taken so many passes that plain steps hand over."""
        ledger = self.ledger
        return ledger.switches and ledger.passes_here >= HARD and ledger.calls_here >= CALLS

    @property
    def many_steps(self) -> bool:
        """Whether an exact pass is due because of the number of steps, few of which called the oracle."""
        most = CACHED_SHARE * self.options.refresh_every * self.problem.n
        return 0 < most <= self.ledger.steps - self.counts.last_refresh

    def count_anew(self) -> None:
        """Restart the count to the next exact pass."""
        every = self.options.refresh_every
        calls = int(self.it.state.counters[ORACLE_CALLS])
        self.own.next_refresh = calls + every * self.it.problem.n if every else NEVER

    def arrays(self) -> dict[str, np.ndarray]:
        """The mean of accelerated points."""
        return {"mean": np.empty(0)} if self.accelerated is None else self.accelerated.arrays()

    def restore(self, arrays: Arrays) -> None:
        """The same; ValueError if it does not fit the problem."""
        if self.accelerated:
            self.accelerated.restore(arrays)


METHOD = Bcfw
