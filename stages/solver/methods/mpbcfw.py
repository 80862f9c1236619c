"""Multi-plane block-coordinate Frank-Wolfe with S15's slope rule (S15 Alg. 3, 3.4, 3.5).

An outer iteration is one *exact pass*, n steps with the max-oracle, and then *approximate passes*: steps of every block
within its working set (`working_sets`), which call no oracle (`plane_steps`). There are approximate passes for as
long as the last one raised the dual by more per second than the whole outer iteration so far, its exact pass
included (`worth_another`): the more an oracle call costs, the more of them.

S15 reads a clock. Here seconds are counted work times unit cost. Work is oracle calls, and labellings scored: every step of
a block scores its whole working set, and a visit of a block counts as `VISIT` labellings more, for computing B_i^T w and
changing w. The unit costs, seconds per call and per labelling, are the least of the outer iterations `UNSETTLED` + 1 to
`MEASURED`: calls in wall time, since oracles may wait, and labellings in CPU time. They are committed with the state, so a
solve that is stopped and resumed has the same bits as one that is not. Two runs have the same bits if both are given the
same costs (`solver.multiplane.oracle_seconds`, `plane_seconds`).

With `step=fw` and `sampling=permutation` this is S15's method; with `approximate_passes=0` it is LJ13's, blocks in permuted
order. Pairwise and away steps, in both kinds of passes, and gap sampling in exact passes are not in S15.

`multiplane_half` differs in three ways. Its rule looks at gaps: approximate passes until their gap is half the exact one.
Its steps are pairwise. And it moves towards every labelling that has weight, however long ago the oracle returned it.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gapwise.stages.parallel import Pace
from gapwise.stages.problems.stored import check_array
from gapwise.stages.solver.averages import APPROXIMATE, EXACT, RECENT, TRACKS, Averages, RecentMean
from gapwise.stages.solver.block_method import SPECS, BlockMethod
from gapwise.stages.solver.codes import DONE, ORACLE_ALWAYS, ORACLE_CALLS
from gapwise.stages.solver.counts import NEVER, BlockCounts
from gapwise.stages.solver.distances import no_distances, with_room
from gapwise.stages.solver.gaps import cached_driver
from gapwise.stages.solver.loop import Flags
from gapwise.stages.solver.objective import Certificate
from gapwise.stages.solver.options import SAMPLERS, MultiplaneOptions, Status
from gapwise.stages.solver.plane_steps import planes_driver
from gapwise.stages.solver.sampling import PERMUTATION
from gapwise.stages.solver.steps import PAIRWISE, step_rule
from gapwise.stages.solver.working_sets import retire, working_set_sizes

MEASURED, UNSETTLED = 5, 2
"""Outer iterations that measure the unit costs; those of the first ones are not kept. In the first one all oracles are
called near w = 0, where some are much faster, and working sets hold a labelling or two. Of the others the least counts:
whatever else the machine does can only add."""

VISIT = 64
"""Labellings that could be scored in the time that a visit takes besides."""

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


def no_steps(*arguments: Any) -> tuple[int, int]:
    """In place of `loop.steps_driver`'s, where no step is taken by it; RuntimeError if one is asked for."""
    if arguments[-1]:
        raise RuntimeError("exact passes of this solve are made by planes_driver")
    return 0, DONE


def worth_another(gain: float, work: float, gain_so_far: float, work_so_far: float) -> bool:
    """S15 3.4: whether the last pass raised the dual by more per second than its whole outer iteration so far.

    Parameters
    ----------
    gain, gain_so_far : float
        Increase of the dual objective.
    work, work_so_far : float
        Seconds, > 0; the last pass is part of the outer iteration.
    """
    return gain * work_so_far > gain_so_far * work


@dataclass
class MultiplaneCounts(BlockCounts):
    """Scalars of the outer iterations."""

    permutations: int = 0
    """Passes in permuted order so far: the seed of the next permutation."""
    marks: list[int] = field(default_factory=list)
    """Step counts at the beginning of the last few outer iterations."""
    measured: int = 0
    """Outer iterations that have measured the unit costs."""
    oracle_seconds: float = 0.0
    """Seconds per oracle call, its step included."""
    plane_seconds: float = 0.0
    """Seconds per labelling scored in approximate passes, where a visit counts as `VISIT` of them."""


def by_planes(options: Options) -> bool:
    """Whether exact passes, too, take curvatures from inner products: in permuted order, with approximate passes."""
    return SAMPLERS.index(options.sampler) == PERMUTATION and options.multiplane.approximate_passes > 0


@dataclass
class Multiplane(BlockMethod):
    """Exact passes, each with as many approximate passes as pay."""

    specs = (
        *SPECS,
        *(
            (f"iteration_{name}", ("iteration",), "f8", f"end of an outer iteration: {what}")
            for name, what in ITERATION
        ),
        ("average", ("track", "average_feature"), "f8", "running sums of averages, or the iterates of `recent`"),
        ("average_ell", ("track",), "f8", "the same for the mean loss of the dual point"),
        ("average_count", ("track",), "i8", "steps that each average counts"),
    )
    counts = MultiplaneCounts
    options: Options

    iterations: list[tuple[float, ...]] = field(default_factory=list)
    """Rows as `ITERATION`."""
    averages_of: Averages = field(default_factory=lambda: Averages.empty(0, 0))
    recent: RecentMean = field(default_factory=RecentMean)
    plane_pace: Pace = field(default_factory=Pace)
    """Of visits in approximate passes."""
    orders: dict[int, np.ndarray] = field(default_factory=dict)
    """The permutations of the next passes, by their numbers."""

    def __post_init__(self) -> None:
        self.averages_of = Averages.empty(TRACKS[self.options.averaging], self.problem.d)
        costs = self.options.multiplane
        if costs.oracle_seconds > 0.0:
            self.at.measured = MEASURED
            self.at.oracle_seconds, self.at.plane_seconds = costs.oracle_seconds, costs.plane_seconds

    @staticmethod
    def averages(options: Options) -> bool:
        """Whether steps keep a running average."""
        return TRACKS[options.averaging] > 0

    @staticmethod
    def stores_mu(options: Options) -> bool:
        """Exact passes of `loop.steps_driver` read it, unless their moves are pairwise ones."""
        return not by_planes(options) and step_rule(options.step).kinds != PAIRWISE

    @property
    def rewrites_w(self) -> bool:
        """True with averaging: an average is certified if its gap is smaller."""
        return self.own_primal and self.options.averaging != "none"

    @property
    def sampler(self) -> int:
        """The code of `solver.sampling`; approximate passes are always in permuted order."""
        return SAMPLERS.index(self.options.sampler)

    @property
    def loop(self) -> Any:
        """The compiled steps of exact passes that `planes_driver` does not make."""
        return no_steps if by_planes(self.options) else super().loop

    @property
    def capacity(self) -> int:
        """The pool keeps all that the oracle returns; `retire` applies the cap."""
        return NEVER

    @property
    def point(self) -> np.ndarray:
        """(d,): the average, if there is one; otherwise the current w."""
        if not self.rewrites_w:
            return self.state.w
        if self.options.averaging == "recent":
            return self.recent.mean() if self.recent.points else self.state.w
        return self.averages_of.best(self.problem, self.at.lam, self.state).weights(self.problem)

    # -- the loop -----------------------------------------------------------------------------------------------------
    def advance(
        self, tolerance: float, relative: bool, exact: bool, started: float
    ) -> tuple[Status, Certificate] | None:
        """Outer iterations; or, if one is due, an exact pass at a fixed point, which may end the solve."""
        if not self.at.exact_due:
            enough = self.steps + (self.options.rebase_steps or REBASE_STEPS * self.problem.n)
            dual = self.dual_value()
            while self.steps < enough and not self.at.exact_due:
                dual = self.outer(tolerance, relative, started, dual)
            return None
        point, found = self.due_pass(tolerance * (max(self.at.dual, 0.0) if relative else 1.0), exact)
        self.record(point, started)
        bound = tolerance * (max(point.dual, 0.0) if relative else 1.0)
        status = Status.CONVERGED if point.gap <= bound else self.limit() or self.hopeless(bound)
        if status:
            return status, point
        if found:
            dual = self.dual_value()
            made, _ = self.approximate_passes(dual, dual, self.problem.n)
            if self.iterations and self.iterations[-1][0] == self.at.breakpoint:  # the outer iteration goes on
                self.iterations[-1] = (*self.iterations[-1][:-1], made)
        self.at.exact_due = False
        return None

    def outer(self, tolerance: float, relative: bool, started: float, before: float) -> float:
        """One exact pass and its approximate passes (S15 Alg. 3), from the dual objective `before`; returns it afterwards.

        The primal value is least right after an exact pass. So if `point` seems good enough then, it is certified first, and
        approximate passes follow only if it was not.
        """
        at, calls = self.at, self.moving_pass()
        dual, passes = self.dual_value(), 0
        at.exact_due = self.seems_solved(tolerance * (max(dual, 0.0) if relative else 1.0)) or self.limit() is not None
        if not at.exact_due:
            passes, dual = self.approximate_passes(before, dual, calls)
            at.measured += at.measured < MEASURED
        planes = float(np.mean(working_set_sizes(self.state.pool)))
        self.iterations.append(
            (
                at.breakpoint, self.oracle_calls, at.seconds + time.perf_counter() - started, dual, planes, passes,
            )
        )  # fmt: skip
        return dual

    def seems_solved(self, tolerance: float) -> bool:
        """Whether an exact pass at `point` is likely to certify the tolerance on the gap, as far as is known without one."""
        bound = self.left_for_oracle(tolerance)
        estimate = self.known_gap
        return estimate <= bound or (estimate <= NEAR * bound and self.cached_gap(self.point) <= SURE * bound)

    def moving_pass(self) -> int:
        """n steps with the max-oracle; returns how many oracle calls they made."""
        at, n = self.at, self.problem.n
        at.marks = [*at.marks, self.steps][-self.options.multiplane.unused_iterations :]
        self.make_room(n)
        self.state = self.state._replace(distances=with_room(self.state.distances, self.state.pool.counts, SPARE))
        flags = self.flags(corner=ORACLE_ALWAYS)
        called, began = int(self.state.counters[ORACLE_CALLS]), time.perf_counter()
        with self.averages_of.during(self.state, EXACT) as self.state:
            order = self.permutation() if self.sampler == PERMUTATION else np.empty(0, np.int64)
            if by_planes(self.options):
                self.visit(self.call_pace, flags, order)
            else:
                self.run(flags, order, n)
        if self.options.averaging == "recent":
            self.recent.note(self.state.w)
        calls = int(self.state.counters[ORACLE_CALLS]) - called
        at.oracle_seconds = self.measured(at.oracle_seconds, (time.perf_counter() - began) / max(calls, 1))
        return calls

    def measured(self, known: float, now: float) -> float:
        """A unit cost, given what is known of it and what it is in this outer iteration."""
        if self.at.measured >= MEASURED:
            return known
        return min(known, now) if self.at.measured > UNSETTLED else now

    def approximate_passes(self, before: float, dual: float, calls: int) -> tuple[int, float]:
        """As many approximate passes as pay; returns their number, and the dual objective after them.

        Parameters
        ----------
        before, dual : float
            Dual objective at the beginning of the outer iteration, and after its exact pass.
        calls : int
            Oracle calls of the exact pass.
        """
        at, options = self.at, self.options.multiplane
        retire(self.state.pool, self.oldest, int(self.options.cache.capacity))
        self.state = self.state._replace(distances=with_room(self.state.distances, self.state.pool.counts, 0))
        self.plane_pace.size = max(self.plane_pace.size, self.call_pace.size)  # at most as long without an oracle
        flags, work = self.flags(rounds=options.rounds), calls * at.oracle_seconds
        before_cost, seconds, total = at.plane_seconds, 0.0, 0
        for k in range(int(options.approximate_passes)):
            began = time.thread_time()  # which, unlike oracles, has nothing to wait for
            scored = self.approximate_pass(flags)
            seconds, total = seconds + time.thread_time() - began, total + scored
            cost = self.measured(before_cost, seconds / max(total, 1))
            at.plane_seconds, last, last_work = cost, dual, scored * cost
            dual, work = self.dual_value(), work + last_work
            if not worth_another(dual - last, last_work, dual - before, work):
                return k + 1, dual
        return int(options.approximate_passes), dual

    def approximate_pass(self, flags: Flags) -> int:
        """A visit of every block within its working set, in a new permutation; returns its work in labellings."""
        with self.averages_of.during(self.state, APPROXIMATE) as self.state:
            order = self.permutation()
            return self.visit(self.plane_pace, flags, order) + VISIT * order.size

    def visit(self, pace: Pace, flags: Flags, order: np.ndarray) -> int:
        """A visit of every block of `order`; returns how many labellings were scored without an oracle."""
        P, driver = self.problem, planes_driver(self.problem)

        def part(start: int, stop: int) -> int:
            return int(driver(P, self.state, flags, order[start:stop]))

        return sum(pace.run(part, 0, order.size, self.check_stop))

    def permutation(self) -> np.ndarray:
        """int64, (n,): the blocks in a new seeded order."""
        at, n = self.at, self.problem.n
        if at.permutations not in self.orders:
            following = range(at.permutations, at.permutations + max(1, min(ORDERS, ORDERED // n)))
            self.orders = {k: np.random.default_rng([self.seed, k]).permutation(n) for k in following}
        at.permutations += 1
        return self.orders.pop(at.permutations - 1)

    @property
    def oldest(self) -> int:
        """Atoms last active before this step have been inactive for as many outer iterations as are allowed."""
        marks = self.at.marks
        return marks[0] + 1 if len(marks) == self.options.multiplane.unused_iterations else 0

    def better_certificate(self, point: Certificate) -> Certificate:
        """The certificate of w beside the average's, where the cache does not rule out that w is better."""
        w = self.state.w
        return self.pass_at(w, point) if self.rewrites_w and self.cached_gap(w) < point.gap else point

    def start_lambda(self, lam: float, breakpoint: int, *, exact_due: bool = False) -> None:
        """Begin another lambda, with its own outer iterations and averages."""
        super().start_lambda(lam, breakpoint, exact_due=exact_due)
        self.at.marks = []
        self.averages_of.clear()
        self.recent.points = []

    def warm_up(self) -> None:
        """Also compile or load what only this method calls."""
        super().warm_up()
        P, S = self.problem, self.state
        retire(S.pool, 0, NEVER)
        working_set_sizes(S.pool)
        with_room(no_distances(1), np.ones(1, np.int64), SPARE)
        planes_driver(P)(P, S, self.flags(), np.empty(0, np.int64))
        cached_driver(P)(P, S.pool, S.w, np.empty(P.n))

    # -- committed state ----------------------------------------------------------------------------------------------
    def own_arrays(self) -> dict[str, np.ndarray]:
        """The outer iterations and the averages."""
        rows = np.array(self.iterations, dtype=float).reshape(-1, len(ITERATION))
        found = self.averages_of
        kept = self.recent.points or found.z
        return {
            **{f"iteration_{name}": rows[:, k] for k, (name, _) in enumerate(ITERATION)},
            "average": np.array(kept).reshape(len(kept), -1 if kept else 0),
            "average_ell": found.z_ell,
            "average_count": found.counts,
        }

    def restore_own(self, arrays: Mapping[str, np.ndarray]) -> None:
        """The same from a commit; ValueError if one does not fit the problem."""
        names = [f"iteration_{name}" for name, _ in ITERATION]
        rows = arrays[names[0]].shape
        columns = [check_array(name, arrays[name], rows, float) for name in names]
        self.iterations = list(zip(*(column.tolist() for column in columns), strict=True))
        into, tracks = self.averages_of, len(self.averages_of.z)
        kept = min(len(arrays["average"]), RECENT) if self.options.averaging == "recent" else tracks
        stored = check_array("average", arrays["average"], (kept, self.problem.d if kept else 0), float, finite=True)
        if self.options.averaging == "recent":
            self.recent.points = list(stored)
        else:
            for z, row in zip(into.z, stored, strict=True):
                z[:] = row
        into.z_ell[:] = check_array("average_ell", arrays["average_ell"], (tracks,), float, finite=True)
        into.counts[:] = check_array("average_count", arrays["average_count"], (tracks,), np.int64)


METHOD = Multiplane
