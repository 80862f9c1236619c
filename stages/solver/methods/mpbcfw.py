"""Multi-plane block-coordinate Frank-Wolfe with S15's slope rule and averages (S15 Alg. 3, 3.4, 3.5).

An outer iteration is one *exact pass*, n steps with the max-oracle, and then *approximate passes*: steps of every block
within its working set, which call no oracle. There are approximate passes for as long as the last one raised the dual by
more per unit of cost than the whole outer iteration so far, its exact pass included: the more an oracle call costs, the more
of them. S15 reads a clock. Here costs are counted in visits of a block, at the price of a call that the structure declares
(`oracle_cost` in `problems.capabilities`), so that the same task has the same bits on every machine and under every load.

S15 keeps planes; here a plane is an atom of the pool, and the plane of a whole block is its atoms with their weights. An
atom leaves its block's *working set* when it has not been active, that is, returned by an oracle, exact or approximate, for
some time, or when there are too many. Without weight it is dropped. With weight it is part of the dual point and stays in
the pool, but approximate passes no longer move towards it: its `used` is `RETIRED` until the max-oracle returns it again.

With `step=fw`, `sampling=permutation` and `rounds=1` this is S15's method; with `approximate_passes=0` it is LJ13's, blocks
in permuted order. Several steps a visit (`rounds`), pairwise and away steps, in both kinds of passes, and gap sampling in
exact passes are not in S15.
"""

from __future__ import annotations

import numpy as np

from gapwise.stages.problems.capabilities import optional_of
from gapwise.stages.problems.stored import check_array
from gapwise.stages.solver.averages import APPROXIMATE, EXACT, TRACKS, Averages
from gapwise.stages.solver.codes import (
    CACHE_ONLY,
    CACHED_STEPS,
    ORACLE_ALWAYS,
    ORACLE_CALLS,
    PERMUTATION,
    RETIRED,
)
from gapwise.stages.solver.counts import NEVER, Arrays, ArraySpec
from gapwise.stages.solver.exact import Found, due_pass, judged, left_for_oracle, pass_at
from gapwise.stages.solver.method import Ended, Method
from gapwise.stages.solver.objective import Goal
from gapwise.stages.solver.options import MultiplaneOptions
from gapwise.stages.solver.running import Flags, sampling_of
from gapwise.stages.solver.supports import Pool, drop_unused, in_list_order
from gapwise.stages.solver.visits import load_cached_steps, load_steps, run_steps, visit_order

STEP = 0.05
"""Visits that a step among the labellings of a visited block costs: distances, weights, a line search."""

REBASE_STEPS = 60
"""Outer iterations go on without a rebase until they have made this many steps per block, unless `solver.rebase_steps` says
otherwise: a rebase takes about as long as an exact pass with a fast oracle."""

NEAR = 2.0
"""The gap of `point` over cached labellings is computed once the sum of last known gaps, each of which is that at another w,
is below this multiple of the tolerance."""

SURE = 0.95
"""An exact pass at `point` is made once that gap is below this share of the tolerance."""

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

SPECS: tuple[ArraySpec, ...] = (
    *(
        (f"iteration_{name}", ("iteration",), "f8", f"end of an outer iteration: {meaning}")
        for name, meaning in ITERATION
    ),
    ("average", ("track", "average_feature"), "f8", "running sums of averages"),
    ("average_ell", ("track",), "f8", "the same for the mean loss of the dual point"),
    ("average_count", ("track",), "i8", "steps that each average counts"),
)


def worth_another(gain: float, work: float, gain_so_far: float, work_so_far: float) -> bool:
    """S15 3.4: whether the last pass raised the dual by more per cost than its whole outer iteration so far.

    Parameters
    ----------
    gain, gain_so_far : float
        Increase of the dual objective.
    work, work_so_far : float
        Costs, > 0; the last pass is part of the outer iteration.
    """
    return gain * work_so_far > gain_so_far * work


def retire(pool: Pool, before: int, most: int) -> None:
    """Reduce each working set to atoms active at step `before` or later, and to the `most` last active (S15 Alg. 3)."""
    order, block = in_list_order(pool)
    used, ends = pool.used[order], np.cumsum(pool.counts)
    used[used < before] = RETIRED
    sizes = np.bincount(block[used != RETIRED], minlength=pool.head.size)
    for i in np.flatnonzero(sizes > most):
        of_block = used[ends[i] - pool.counts[i] : ends[i]]
        of_block[np.argsort(-of_block, kind="stable")[most:]] = RETIRED
    pool.used[order] = used
    drop_unused(pool, RETIRED + 1)


def mean_working_set(pool: Pool) -> float:
    """Mean number of labellings in the blocks' working sets."""
    order, _ = in_list_order(pool)
    return np.count_nonzero(pool.used[order] != RETIRED) / pool.head.size


class Multiplane(Method[Options]):
    """Exact passes, each with as many approximate passes as pay."""

    specs = (*Method.specs, *SPECS)

    @classmethod
    def flags(cls, options: Options) -> Flags:
        """The pool keeps all that the oracle returns: `retire` applies the cap."""
        averages = TRACKS[options.averaging] > 0
        return Flags.of(options, **sampling_of(options.sampler), capacity=NEVER, average=averages)

    def prepare(self) -> None:
        """Averages, steps and unit costs; rows of `iterations` are as `ITERATION`."""
        self.iterations: list[tuple[float, ...]] = []
        self.tracks = Averages.empty(TRACKS[self.options.averaging], self.it.problem.d)
        self.oracle_cost = float(optional_of(self.it.problem, "oracle_cost"))

    @property
    def rewrites_w(self) -> bool:
        """True with averaging: an average is certified if its gap is smaller."""
        return self.options.averaging != "none"

    @property
    def point(self) -> np.ndarray:
        """(d,): the average, if it may be certified; otherwise the current w."""
        it = self.it
        if not self.rewrites_w:
            return it.state.w
        return self.tracks.best(it.problem, it.counts.lam, it.state).weights(it.problem)

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
        point, answers = due_pass(it, goal, self.point, self.better)
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
        planes = mean_working_set(it.state.pool)
        self.iterations.append((it.counts.breakpoint, ledger.oracle_calls, ledger.seconds, dual, planes, passes))
        return dual

    def seems_solved(self, tolerance: float) -> bool:
        """Whether an exact pass at `point` is likely to certify the tolerance on the gap, as far as is known without one."""
        bound = left_for_oracle(self.it, tolerance)
        estimate = self.it.known_gap
        return estimate <= bound or (estimate <= NEAR * bound and self.it.cached_gap(self.point) <= SURE * bound)

    def bcfw_pass(self) -> int:
        """n steps with the max-oracle; returns how many oracle calls they made (S15 Alg. 3)."""
        it, counts, n = self.it, self.it.counts, self.it.problem.n
        counts.marks = [*counts.marks, it.ledger.steps][-self.options.multiplane.unused_iterations :]
        it.make_room(n)
        called = int(it.state.counters[ORACLE_CALLS])
        with self.tracks.during(it.state, EXACT) as it.state:
            order = self.permutation() if it.options.sampler == PERMUTATION else np.empty(0, np.int64)
            run_steps(it, it.flags(vertex_from=ORACLE_ALWAYS), order, n)
        return int(it.state.counters[ORACLE_CALLS]) - called

    def approximate_passes(self, before: float, dual: float, calls: int) -> tuple[int, float]:
        """As many approximate passes as pay; returns their number, and the dual objective after them (S15 3.4).

        Parameters
        ----------
        before, dual : float
            Dual objective at the beginning of the outer iteration, and after its exact pass.
        calls : int
            Oracle calls of the exact pass.
        """
        it, most = self.it, int(self.options.multiplane.approximate_passes)
        retire(it.state.pool, self.oldest, int(self.options.cache.capacity))
        work = calls * (1.0 + self.oracle_cost)
        for k in range(most):
            last, last_work = dual, self.approximate_pass()
            dual, work = it.dual_value(), work + last_work
            if not worth_another(dual - last, last_work, dual - before, work):
                return k + 1, dual
        return most, dual

    def approximate_pass(self) -> float:
        """A visit of every block within its working set, in a new permutation (S15 Alg. 3); returns its cost in visits."""
        it, gap = self.it, self.it.state.gap
        steps = int(it.state.counters[CACHED_STEPS])
        flags = it.flags(rounds=self.options.multiplane.rounds, vertex_from=CACHE_ONLY, sampler=PERMUTATION)
        with self.tracks.during(it.state._replace(gap=np.empty(gap.size)), APPROXIMATE) as it.state:
            visit_order(it, flags, self.permutation())
        it.state = it.state._replace(gap=gap)  # known gaps are those of the oracle
        return gap.size + STEP * (int(it.state.counters[CACHED_STEPS]) - steps)

    def permutation(self) -> np.ndarray:
        """int64, (n,): the blocks in a new seeded order."""
        self.it.counts.permutations += 1
        return np.random.default_rng([self.it.seed, self.it.counts.permutations - 1]).permutation(self.it.problem.n)

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
        self.tracks.clear()

    def load(self) -> None:
        """Steps, approximate passes and exact ones."""
        load_steps(self.it)
        load_cached_steps(self.it)

    # -- committed state ----------------------------------------------------------------------------------------------
    def arrays(self) -> dict[str, np.ndarray]:
        """The outer iterations and the averages."""
        rows = np.array(self.iterations, dtype=float).reshape(-1, len(ITERATION))
        return {**{f"iteration_{name}": rows[:, k] for k, (name, _) in enumerate(ITERATION)}, **self.tracks.arrays()}

    def restore(self, arrays: Arrays) -> None:
        """The same from a commit; ValueError if one does not fit the problem."""
        names = [f"iteration_{name}" for name, _ in ITERATION]
        rows = arrays[names[0]].shape
        columns = [check_array(name, arrays[name], rows, float) for name in names]
        self.iterations = list(zip(*(column.tolist() for column in columns), strict=True))
        self.tracks.restore(arrays, self.it.problem.d)


METHOD = Multiplane
