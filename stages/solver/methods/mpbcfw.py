"""Multi-plane block-coordinate Frank-Wolfe with S15's slope rule and averages (S15 Alg. 3, 3.4, 3.5).

An outer iteration is one *exact pass*, n steps with the max-oracle, and then *approximate passes*: steps of every block
within its working set (`working_sets`), which call no oracle (`block.views.distances`). There are approximate passes for as
long as the last one raised the dual by more per second than the whole outer iteration so far, its exact pass
included (`stages.solver.unit_costs`): the more an oracle call costs, the more of them.

With `step=fw`, `sampling=permutation` and `rounds=1` this is S15's method; with `approximate_passes=0` it is LJ13's, blocks
in permuted order. Several steps a visit (`rounds`), pairwise and away steps, in both kinds of passes, and gap sampling in
exact passes are not in S15.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import numpy as np

from gapwise.stages.problems.parallel import Pace, work_before
from gapwise.stages.problems.stored import check_array
from gapwise.stages.solver.averages import APPROXIMATE, EXACT, TRACKS, Mean
from gapwise.stages.solver.block_method import block_method
from gapwise.stages.solver.codes import (
    CACHE_ONLY,
    ORACLE_ALWAYS,
    ORACLE_CALLS,
    PAIRWISE,
    PERMUTATION,
    SAMPLERS,
    STEP_RULES,
)
from gapwise.stages.solver.counts import NEVER
from gapwise.stages.solver.distances import no_distances, with_room
from gapwise.stages.solver.exact import Found, due_pass, judged, left_for_oracle, pass_at
from gapwise.stages.solver.iterate import Iterate
from gapwise.stages.solver.loop import distance_steps_driver, steps_driver
from gapwise.stages.solver.options import MultiplaneOptions
from gapwise.stages.solver.packed import ArraySpec
from gapwise.stages.solver.running import Flags
from gapwise.stages.solver.schedule import Arrays, Ended, Goal, Schedule
from gapwise.stages.solver.setup import DISTANCES, FEATURES, Setup, sampling_of
from gapwise.stages.solver.unit_costs import MEASURED, MultiplaneCounts, Passed, UnitCosts, worth_another
from gapwise.stages.solver.visits import Visits, no_steps
from gapwise.stages.solver.working_sets import retire, working_set_sizes

REBASE_STEPS = 60
"""Outer iterations go on without a rebase until they have made this many steps per block, unless `solver.rebase_steps` says
otherwise: a rebase takes about as long as an exact pass with a fast oracle."""

NEAR = 2.0
"""The gap of `point` over cached labellings is computed once the sum of last known gaps, each of which is that at another w,
is below this multiple of the tolerance."""

SURE = 0.95
"""An exact pass at `point` is made once that gap is below this share of the tolerance."""

ORDERS, ORDERED = 8, 50_000
"""Permutations that are drawn at a time, and the most blocks in them, if there are more than one: drawn between two passes,
each takes three times as long, since the processor's caches then hold what the passes read."""

ITERATION = (
    ("breakpoint", "number of the lambda"),
    ("oracle_calls", "max-oracle calls since the beginning"),
    ("seconds", "seconds of solving since the beginning (measured, not repeatable)"),
    ("dual", "dual objective"),
    ("planes", "mean size of the working sets in the approximate passes"),
    ("approximate_passes", "approximate passes of the outer iteration"),
)
"""What is recorded at the end of an outer iteration."""

Options = MultiplaneOptions


SPARE = 1
"""Labellings that an exact pass may add to a block's distances."""


SPECS: tuple[ArraySpec, ...] = (
    *(
        (f"iteration_{name}", ("iteration",), "f8", f"end of an outer iteration: {meaning}")
        for name, meaning in ITERATION
    ),
    ("average", ("track", "average_feature"), "f8", "running sums of averages, or the iterates of `recent`"),
    ("average_ell", ("track",), "f8", "the same for the mean loss of the dual point"),
    ("average_count", ("track",), "i8", "steps that each average counts"),
)


def by_distances(options: Options) -> bool:
    """Whether exact passes, too, take curvatures from inner products: in permuted order, with approximate passes."""
    return SAMPLERS.index(options.sampler) == PERMUTATION and options.multiplane.approximate_passes > 0


def setup_of(options: Options) -> Setup:
    """The pool keeps all that the oracle returns: `retire` applies the cap. Steps of `loop.steps_driver` read mu."""
    distances = by_distances(options)
    mu = not distances and STEP_RULES[options.step].kinds != PAIRWISE
    return Setup.of(
        options, **sampling_of(options.sampler), capacity=NEVER, mu=mu, average=TRACKS[options.averaging] > 0,
        steps_view=DISTANCES if distances else FEATURES, cached_view=DISTANCES,
    )  # fmt: skip


@dataclass
class Multiplane:
    """Exact passes, each with as many approximate passes as pay."""

    it: Iterate
    options: Options
    own_primal: bool
    counts: MultiplaneCounts = field(default_factory=MultiplaneCounts)
    iterations: list[tuple[float, ...]] = field(default_factory=list)
    """Rows as `ITERATION`."""
    plane_pace: Pace = field(default_factory=Pace)
    """Work between stop checks, of visits in approximate passes."""
    orders: dict[int, np.ndarray] = field(default_factory=dict)
    """The permutations of the next passes, by their numbers."""

    def __post_init__(self) -> None:
        self.mean = Mean(self.it, self.options.averaging)
        self.costs = UnitCosts.of(self.counts, self.options.multiplane, self.it.problem)
        self.visits = Visits(self.it, no_steps if self.it.setup.steps_view == DISTANCES else steps_driver)

    @property
    def rewrites_w(self) -> bool:
        """True with averaging: an average is certified if its gap is smaller."""
        return self.own_primal and self.options.averaging != "none"

    def point(self) -> np.ndarray:
        """(d,): the average, if it may be certified; otherwise the current w."""
        return self.mean.point() if self.rewrites_w else self.it.state.w

    # -- the loop -----------------------------------------------------------------------------------------------------
    def advance(self, goal: Goal) -> Ended | None:
        """Outer iterations; or, if one is due, an exact pass at a fixed point, which may end the solve."""
        it, counts = self.it, self.it.counts
        if not counts.exact_due:
            enough = it.ledger.steps + (self.options.rebase_steps or REBASE_STEPS * it.problem.n)
            dual = it.dual_value()
            while it.ledger.steps < enough and not counts.exact_due:
                dual = self.outer(goal, dual)
            return None
        point, answers = due_pass(it, goal, self.point(), self.better)
        it.ledger.record(point)
        status = judged(it, point, goal)
        if status:
            return status, point
        if answers:
            dual = it.dual_value()
            made, _ = self.approximate_passes(dual, dual, it.problem.n)
            if self.iterations and self.iterations[-1][0] == counts.breakpoint:  # the outer iteration goes on
                self.iterations[-1] = (*self.iterations[-1][:-1], made)
        counts.exact_due = False
        return None

    def outer(self, goal: Goal, before: float) -> float:
        """One exact pass and its approximate passes (S15 Alg. 3), from the dual objective `before`; returns it afterwards.

        The primal value is least right after an exact pass. So if `point` seems good enough then, it is certified first, and
        approximate passes follow only if it was not.
        """
        it, ledger = self.it, self.it.ledger
        calls = self.bcfw_pass()
        dual, passes = it.dual_value(), 0
        it.counts.exact_due = self.seems_solved(goal.bound(dual)) or ledger.limit() is not None
        if not it.counts.exact_due:
            passes, dual = self.approximate_passes(before, dual, calls)
            self.counts.measured += self.counts.measured < MEASURED
        planes = float(np.mean(working_set_sizes(it.state.pool)))
        self.iterations.append((it.counts.breakpoint, ledger.oracle_calls, ledger.seconds, dual, planes, passes))
        return dual

    def seems_solved(self, tolerance: float) -> bool:
        """Whether an exact pass at `point` is likely to certify the tolerance on the gap, as far as is known without one."""
        bound = left_for_oracle(self.it, tolerance)
        estimate = self.it.known_gap
        return estimate <= bound or (estimate <= NEAR * bound and self.it.cached_gap(self.point()) <= SURE * bound)

    def bcfw_pass(self) -> int:
        """n steps with the max-oracle; returns how many oracle calls they made (S15 Alg. 3)."""
        it, counts, n, options = self.it, self.it.counts, self.it.problem.n, self.options
        counts.marks = [*counts.marks, it.ledger.steps][-options.multiplane.unused_iterations :]
        it.make_room(n)
        it.state = it.state._replace(distances=with_room(it.state.distances, it.state.pool.counts, SPARE))
        flags = self.visits.flags(vertex_from=ORACLE_ALWAYS)
        called, began = int(it.state.counters[ORACLE_CALLS]), time.perf_counter()
        with self.mean.tracks.during(it.state, EXACT) as it.state:
            order = self.permutation() if it.setup.sampler == PERMUTATION else np.empty(0, np.int64)
            if it.setup.steps_view == DISTANCES:
                self.visit(self.visits.call_pace, flags, order)
            else:
                self.visits.run(flags, order, n)
        self.mean.note()
        calls = int(it.state.counters[ORACLE_CALLS]) - called
        self.costs.note_calls((time.perf_counter() - began) / max(calls, 1))
        return calls

    def approximate_passes(self, before: float, dual: float, calls: int) -> tuple[int, float]:
        """As many approximate passes as pay; returns their number, and the dual objective after them (S15 3.4).

        Parameters
        ----------
        before, dual : float
            Dual objective at the beginning of the outer iteration, and after its exact pass.
        calls : int
            Oracle calls of the exact pass.
        """
        it, counts, options = self.it, self.counts, self.options.multiplane
        retire(it.state.pool, self.oldest, int(self.options.cache.capacity))
        it.state = it.state._replace(distances=with_room(it.state.distances, it.state.pool.counts, 0))
        # at most as long without an oracle
        self.plane_pace.size = max(self.plane_pace.size, self.visits.call_pace.size)
        flags = self.visits.flags(rounds=options.rounds, vertex_from=CACHE_ONLY)
        work, known, seconds, total = self.costs.calls(calls), counts.labelling, 0.0, 0.0
        for k in range(int(options.approximate_passes)):
            began = time.thread_time()  # which, unlike oracles, has nothing to wait for
            done = self.costs.labellings(self.approximate_pass(flags))
            seconds, total = seconds + time.thread_time() - began, total + done
            self.costs.note_labellings(known, seconds / max(total, 1.0))
            last, last_work = dual, done * counts.labelling
            dual, work = it.dual_value(), work + last_work
            if not worth_another(dual - last, last_work, dual - before, work):
                return k + 1, dual
        return int(options.approximate_passes), dual

    def approximate_pass(self, flags: Flags) -> Passed:
        """A visit of every block within its working set, in a new permutation; returns what was done (S15 Alg. 3)."""
        with self.mean.tracks.during(self.it.state, APPROXIMATE) as self.it.state:
            return self.visit(self.plane_pace, flags, self.permutation())

    def visit(self, pace: Pace, flags: Flags, order: np.ndarray) -> Passed:
        """A visit of every block of `order`; returns what was done."""
        it, driver = self.it, distance_steps_driver(self.it.problem)
        asks = flags.vertex_from == ORACLE_ALWAYS
        state = it.state if asks else it.state._replace(gap=np.empty(it.problem.n))  # gaps are those of the oracle

        def part(start: int, stop: int) -> tuple[int, int]:
            scored, readings = driver(it.problem, state, flags, order[start:stop])
            return int(scored), int(readings)

        parts = pace.run(part, 0, order.size, it.ledger.check_stop, work_before(it.problem, order))
        return Passed(order.size, sum(scored for scored, _ in parts), sum(readings for _, readings in parts))

    def permutation(self) -> np.ndarray:
        """int64, (n,): the blocks in a new seeded order."""
        counts, n, seed = self.it.counts, self.it.problem.n, self.it.seed
        if counts.permutations not in self.orders:
            following = range(counts.permutations, counts.permutations + max(1, min(ORDERS, ORDERED // n)))
            self.orders = {k: np.random.default_rng([seed, k]).permutation(n) for k in following}
        counts.permutations += 1
        return self.orders.pop(counts.permutations - 1)

    @property
    def oldest(self) -> int:
        """Atoms last active before this step have been inactive for as many outer iterations as are allowed."""
        marks = self.it.counts.marks
        return marks[0] + 1 if len(marks) == self.options.multiplane.unused_iterations else 0

    def better(self, passed: Found) -> Found:
        """What a pass at w finds beside that at the average, where the cache does not rule out that w is better."""
        it = self.it
        seems = self.rewrites_w and it.cached_gap(it.state.w) < passed[0].gap
        return pass_at(it, it.state.w, passed) if seems else passed

    def start(self) -> None:
        """Another lambda has begun, with its own outer iterations and averages."""
        self.it.counts.marks = []
        self.mean.clear()

    def warm_up(self) -> None:
        """Compile or load every function that a solve calls."""
        self.visits.warm_up()
        P, S = self.it.problem, self.it.state
        retire(S.pool, 0, NEVER)
        working_set_sizes(S.pool)
        with_room(no_distances(1), np.ones(1, np.int64), SPARE)
        distance_steps_driver(P)(P, S, self.visits.flags(), np.empty(0, np.int64))
        self.it.cached_gaps(S.w)

    # -- committed state ----------------------------------------------------------------------------------------------
    def arrays(self) -> dict[str, np.ndarray]:
        """The outer iterations and the averages."""
        rows = np.array(self.iterations, dtype=float).reshape(-1, len(ITERATION))
        return {**{f"iteration_{name}": rows[:, k] for k, (name, _) in enumerate(ITERATION)}, **self.mean.arrays()}

    def restore(self, arrays: Arrays) -> None:
        """The same from a commit; ValueError if one does not fit the problem."""
        names = [f"iteration_{name}" for name, _ in ITERATION]
        rows = arrays[names[0]].shape
        columns = [check_array(name, arrays[name], rows, float) for name in names]
        self.iterations = list(zip(*(column.tolist() for column in columns), strict=True))
        self.mean.restore(arrays)


def schedule_of(it: Iterate, options: Options, own_primal: bool) -> Schedule:
    """The schedule of `Multiplane`."""
    method = Multiplane(it, options, own_primal)
    return Schedule(
        method.advance, method.start, method.point, method.rewrites_w, warm_up=method.warm_up, counts=method.counts,
        arrays=method.arrays, restore=method.restore, facts=method.costs.facts,
    )  # fmt: skip


METHOD = block_method(schedule_of, setup_of, SPECS)
