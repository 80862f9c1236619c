"""FASOLE: sequential dual ascent with second-order pairs in per-block working sets (Franc, ECML 2014).

Sequential dual ascent maximises the dual block by block, each block by pair steps, which move weight from one labelling to
another with exact line search. Other methods of this kind take the labelling of least score to move weight from. FASOLE
chooses the pair as Fan, Chen and Lin (JMLR 2005) do for SVMs, by first order and then by second order:

    u = argmax_k h_k in the working set W_i,     h_k = L_i(y_k) + <theta_i, m_i(y_k)>,
    v = argmax over alpha_v > 0 of  gamma s - gamma^2 scale ||q_u - q_v||^2 / 2,   s = h_u - h_v,
                                    gamma = min(alpha_v, s / (scale ||q_u - q_v||^2)),

the exact rise of n D with scale = 1/(lambda n), q_k = B_i m_i(y_k). Without a box the squared distances (`distances`) give
both the curvature and what a move does to all scores, so a pair costs O(|W_i|), whatever the features. The step is that of
all methods (`block.step`), by the view `distances`, whose `partner` chooses v.

*A visit* of a block calls the max-oracle, adds its answer to W_i, and makes at most `rounds` pair steps, until the block's
gap over W_i is at most `precision` of what the visit found. The first pair's u is the oracle's answer, which violates the
margin most. W_i are the block's labellings in the pool: all that have weight, and those without that an oracle returned or
a pair took in the last `unused_iterations` outer iterations; at most `cache.capacity`, unless more have weight.

*Shrinking.* An outer iteration is a pass over all blocks, and then passes over the active ones: those whose gap at their
last visit was at least `shrink_share` of the mean gap of the pass over all. They end when the active blocks' gaps sum to at
most `active_share` of that pass's, when no block is active, or after `active_passes`. The next pass over all takes all
blocks back.

From the paper: dual ascent by blocks with buffers of labellings, pairs of nearly the largest rise of the dual within them,
the certificate by the gap. Ours: the schedule of passes, which is that of shrinking in SVM solvers (Joachims 1999) in
shares of the gap; squared distances instead of a Gram matrix; a new seeded permutation for every pass.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from gapwise.stages.problems.parallel import Pace, work_before
from gapwise.stages.solver.block_method import block_method
from gapwise.stages.solver.codes import ORACLE_ALWAYS
from gapwise.stages.solver.distances import no_distances, with_room
from gapwise.stages.solver.exact import due_pass, judged, left_for_oracle
from gapwise.stages.solver.iterate import Iterate, mark_pass
from gapwise.stages.solver.loop import distance_steps_driver
from gapwise.stages.solver.options import BlockOptions, CacheOptions, check
from gapwise.stages.solver.running import Flags
from gapwise.stages.solver.schedule import Ended, Goal, Schedule
from gapwise.stages.solver.setup import DISTANCES, Setup
from gapwise.stages.solver.visits import Visits, no_steps


@dataclass
class Options(BlockOptions):
    """The options of `fasole`."""

    cache: CacheOptions = field(default_factory=lambda: CacheOptions(kind="gap"))
    rounds: int = 20
    """Most pair steps of a visit."""
    precision: float = 0.1
    """A visit ends when the block's gap over its working set is at most this share of what it was."""
    shrink_share: float = 0.3
    """A block is active while its gap is at least this share of the mean gap."""
    active_share: float = 0.5
    """Passes over active blocks end when their gaps sum to at most this share of the sum over all blocks."""
    active_passes: int = 5
    """Most passes over active blocks after a pass over all; 0: no shrinking."""
    unused_iterations: int = 10
    """Labellings without weight that nothing chose for this many outer iterations are dropped."""

    def check(self) -> None:
        """Raises ValueError naming the key."""
        BlockOptions.check(self)
        check("solver.cache.kind", self.cache.kind, self.cache.kind == "gap", "gap, for method=fasole")
        check("solver.step", self.step, self.step == "pairwise", "pairwise, for method=fasole")
        for name, least in (("rounds", 1), ("active_passes", 0), ("unused_iterations", 1)):
            check(f"solver.{name}", getattr(self, name), getattr(self, name) >= least, f"an integer >= {least}")
        check("solver.precision", self.precision, 0 <= self.precision < 1, "a number >= 0 and below 1")
        for name in ("shrink_share", "active_share"):
            check(f"solver.{name}", getattr(self, name), getattr(self, name) >= 0, "a number >= 0")


def setup_of(options: Options) -> Setup:
    """Blocks are visited in the order of a permutation; moves within a working set read no mu."""
    return Setup.of(options, mu=False, steps_view=DISTANCES, cached_view=DISTANCES)


@dataclass
class Fasole:
    """Passes over all blocks, each followed by passes over those that are not shrunk."""

    it: Iterate
    options: Options
    visit_pace: Pace = field(default_factory=Pace)
    """Work between stop checks, of visits."""

    def __post_init__(self) -> None:
        self.visits = Visits(self.it, no_steps)

    def flags(self) -> Flags:
        """The flags of a visit."""
        return self.visits.flags(rounds=self.options.rounds, vertex_from=ORACLE_ALWAYS)

    def advance(self, goal: Goal) -> Ended | None:
        """An outer iteration; or, if one is due, an exact pass, which may end the solve."""
        it = self.it
        if not it.counts.exact_due:
            self.outer(goal)
            return None
        point, _ = due_pass(it, goal)
        it.ledger.record(point)
        status = judged(it, point, goal)
        it.counts.exact_due = False
        return (status, point) if status else None

    def outer(self, goal: Goal) -> None:
        """A pass over all blocks, then passes over the active ones; sets `exact_due` at a small gap (Franc 2014)."""
        it, counts, options, n = self.it, self.it.counts, self.options, self.it.problem.n
        mark_pass(it, options.unused_iterations)
        self.visit(np.arange(n))
        total = it.known_gap
        bound = left_for_oracle(it, goal.bound(it.dual_value()))
        counts.exact_due = total <= bound or it.ledger.limit() is not None
        for _ in range(0 if counts.exact_due else options.active_passes):
            active = self.active(total)
            if not active.size or float(np.sum(it.state.gap[active])) <= options.active_share * total:
                break
            self.visit(active)
            if it.ledger.limit():
                counts.exact_due = True
                break

    def active(self, total: float) -> np.ndarray:
        """int64: the blocks whose last gap is at least `shrink_share` of total / n."""
        blocks: np.ndarray = np.flatnonzero(self.it.state.gap >= self.options.shrink_share * total / self.it.problem.n)
        return blocks

    def visit(self, blocks: np.ndarray) -> None:
        """Visit some blocks once each, in a new seeded permutation."""
        it = self.it
        order = np.random.default_rng([it.seed, it.counts.permutations]).permutation(blocks)
        it.counts.permutations += 1
        it.make_room(blocks.size)
        it.state = it.state._replace(distances=with_room(it.state.distances, it.state.pool.counts + 1))
        flags, precision = self.flags(), float(self.options.precision)
        run = distance_steps_driver(it.problem)

        def part(start: int, stop: int) -> None:
            run(it.problem, it.state, flags, precision, order[start:stop])

        self.visit_pace.run(part, 0, order.size, it.ledger.check_stop, work_before(it.problem, order))

    def start(self) -> None:
        """Restart the outer iterations."""
        self.it.counts.marks = []

    def warm_up(self) -> None:
        """Compile or load every function that a solve calls."""
        self.visits.warm_up()
        with_room(no_distances(1), np.ones(1, np.int64))
        P, none = self.it.problem, np.empty(0, np.int64)
        distance_steps_driver(P)(P, self.it.state, self.flags(), float(self.options.precision), none)


def schedule_of(it: Iterate, options: Options, own_primal: bool) -> Schedule:
    """The schedule of `Fasole`."""
    method = Fasole(it, options)
    return Schedule(method.advance, method.start, warm_up=method.warm_up)


METHOD = block_method(schedule_of, setup_of)
