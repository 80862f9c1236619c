"""Block-coordinate Frank-Wolfe: FW, pairwise and away steps, gap sampling, caching (LJ13 Alg. 4; O16 Alg. 2-5).

From one rebase point to the next: if an exact pass is due, make it and perhaps stop; then take steps
until the stale gap sum falls below 0.8 of the tolerance, `refresh_every` effective passes are over, or `rebase_steps` steps
have been made. The clock decides only which rebase points are committed; everything else depends on counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from gapwise.stages.problems.stored import check_array
from gapwise.stages.solver.batch_step import batch_step
from gapwise.stages.solver.block_method import SPECS, BlockMethod
from gapwise.stages.solver.codes import AVERAGED, CALLS_REACHED, DONE, ORACLE_CALLS
from gapwise.stages.solver.counts import NEVER, BlockCounts
from gapwise.stages.solver.loop import Flags
from gapwise.stages.solver.minibatch import Answers, answers_driver, collect_driver
from gapwise.stages.solver.objective import Certificate
from gapwise.stages.solver.options import SAMPLERS, BcfwOptions, Status
from gapwise.stages.solver.oracles import corners_at
from gapwise.stages.solver.sampling import GAP, MAX_GAP, PERMUTATION
from gapwise.stages.solver.steps import PAIRWISE, step_rule

EARLY = 0.8
"""Share of the tolerance at which the stale gap sum triggers an exact pass (O16, the authors' code)."""

CACHED_SHARE = 10
"""An exact pass is also due after this many times `refresh_every` n steps, however few of them called the oracle."""

Options = BcfwOptions


@dataclass
class StepCounts(BlockCounts):
    """The scalars of a method of steps."""

    next_refresh: int = 0
    """The number of oracle calls in steps at which the next exact pass is due."""


class Bcfw(BlockMethod):
    """Steps on one block after another, as the sampler draws them, with exact passes in between."""

    specs = (
        *SPECS,
        ("average", ("average_feature",), "f8", "running sum of the weighted average (LJ13 3.4); empty without one"),
        ("average_ell", ("one",), "f8", "the same for the mean loss of the dual point"),
    )
    counts = StepCounts
    options: Options

    @staticmethod
    def averages(options: Options) -> bool:
        """Whether the state keeps a running average."""
        return options.averaging != "none"

    @staticmethod
    def stores_mu(options: Options) -> bool:
        """Pairwise moves read no mu; steps of all blocks at once do."""
        return options.batch_step or step_rule(options.step).kinds != PAIRWISE

    @property
    def rewrites_w(self) -> bool:
        """True with averaging: the average is certified if its gap is smaller."""
        return self.averages(self.options)

    @property
    def sampler(self) -> int:
        """The code of `solver.sampling`."""
        return SAMPLERS.index(self.options.sampler)

    @property
    def keeps_margins(self) -> bool:
        """With pairwise steps and a cache; an average and mini-batches need local vectors."""
        o = self.options
        return (
            self.caching and o.step == "pairwise" and o.averaging == "none" and o.batch_size == 1 and not o.batch_step
        )

    @property
    def degree(self) -> float:
        """`solver.degree` if blocks are drawn by their gaps, otherwise 1."""
        return self.options.degree if self.sampler in (GAP, MAX_GAP) else 1.0

    def advance(
        self, tolerance: float, relative: bool, exact: bool, started: float
    ) -> tuple[Status, Certificate] | None:
        """An exact pass if one is due, which may end the solve; then steps until the next rebase point (O16 Alg. 2)."""
        at = self.at
        bound = tolerance * (max(at.dual, 0.0) if relative else 1.0)
        if at.exact_due:
            point, found = self.due_pass(bound, exact)
            self.record(point, started)
            bound = tolerance * (max(point.dual, 0.0) if relative else 1.0)
            status = Status.CONVERGED if point.gap <= bound else self.limit() or self.hopeless(bound)
            if status:
                return status, point
            if found and self.options.batch_step:
                batch_step(self, found)
        self.take_steps((EARLY if exact else 1.0) * self.left_for_oracle(bound) if bound == bound else -1.0)
        if relative and not self.options.refresh_every and not bound > 0.0:
            at.exact_due = True  # a relative tolerance needs a dual value, which only an exact pass gives
        return None

    def take_steps(self, threshold: float) -> None:
        """Take steps until the next rebase point; sets `exact_due` when the stale gap sum or the count asks for it."""
        at, options, n = self.at, self.options, self.problem.n
        counters = self.state.counters
        summed = self.sampler != MAX_GAP and self.degree == 1.0  # if so, the tree's root is the stale gap sum
        steps = options.rebase_steps or 10 * n
        order = np.empty(0, np.int64)
        if self.sampler == PERMUTATION:
            epoch, position = divmod(self.steps, n)
            order = np.random.default_rng([self.seed, epoch]).permutation(n)[position:]
            steps = min(steps, order.size)
        elif not summed:
            steps = min(steps, n)
        calls = counters[ORACLE_CALLS]
        calls_left = min(options.max_oracle_calls, options.max_passes * n) - (self.oracle_calls - at.calls_before)
        stop_calls = int(min(float(at.next_refresh), calls + max(calls_left, 1.0)))
        flags = self.flags(threshold if summed else -1.0, stop_calls)
        why = (self.run if options.batch_size == 1 else self.run_batches)(flags, order, steps)
        at.exact_due = bool(why != DONE or self.known_gap <= threshold or counters[ORACLE_CALLS] >= stop_calls)
        if options.refresh_every and self.steps - at.last_refresh >= CACHED_SHARE * options.refresh_every * n:
            at.exact_due = True

    def run_batches(self, flags: Flags, order: np.ndarray, steps: int) -> int:
        """`run` in mini-batches, with the same number of steps; returns why it ended."""
        P = self.problem
        most = min(self.options.batch_size, P.n)
        while steps > 0:
            self.check_stop()
            calls_left = int(flags.stop_calls - self.state.counters[ORACLE_CALLS])
            if calls_left <= 0:
                return CALLS_REACHED
            self.make_room(most + 1)
            block = np.full(min(most, calls_left), -1)
            made, why = collect_driver(P)(P, self.state, flags, self.rng, order, steps, block)
            steps, order, block = steps - made, order[made:], block[block >= 0]
            if block.size:
                found = corners_at(P, self.state.w, block, self.spread)
                answers_driver(P)(P, self.state, flags, Answers(block, found.loss, found.corner))
            elif why != DONE:
                return int(why)
        return DONE

    def warm_up(self) -> None:
        """Compile or load what mini-batches call, too."""
        super().warm_up()
        if self.options.batch_size > 1:
            P, S, none = self.problem, self.state, np.empty(0, np.int64)
            flags = self.flags(stop_calls=0)
            collect_driver(P)(P, S, flags, self.rng, none, 0, none)
            labels = np.empty((0, S.pool.labels.shape[1]), P.truth.dtype)
            answers_driver(P)(P, S, flags, Answers(none, np.empty(0), labels))

    def better_certificate(self, point: Certificate) -> Certificate:
        """The certificate with the averaged iterate as primal point, if it is better (LJ13 3.4)."""
        P, S = self.problem, self.state
        steps = int(S.counters[AVERAGED])
        if not self.averages(self.options) or steps == 0:
            return point
        w = S.u - (2.0 / (steps * (steps + 1.0))) * S.z
        if P.lower.size:
            w = np.clip(w, P.lower, P.upper)
        return self.pass_at(w, point)

    def after_exact_pass(self) -> None:
        """Restart the count to the next exact pass."""
        super().after_exact_pass()
        every = self.options.refresh_every
        self.at.next_refresh = int(self.state.counters[ORACLE_CALLS]) + every * self.problem.n if every else NEVER

    def own_arrays(self) -> dict[str, np.ndarray]:
        """The running average."""
        return {"average": self.state.z, "average_ell": self.state.z_ell[:1]}

    def restore_own(self, arrays: Mapping[str, np.ndarray]) -> None:
        """The running average; ValueError if it does not fit the problem."""
        self.state.z[:] = check_array("average", arrays["average"], self.state.z.shape, float, finite=True)
        self.state.z_ell[:1] = check_array("average_ell", arrays["average_ell"], (1,), float, finite=True)


METHOD = Bcfw
