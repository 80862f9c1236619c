"""Stochastic subgradient descent on the primal: no dual point, so nothing is certified.

Shalev-Shwartz, Singer, Srebro, *Pegasos: Primal Estimated sub-GrAdient SOlver for SVM*, ICML 2007, with Cotter in
Mathematical Programming 127, 2011; for structures and with the weighted average: LJ13 section 5. Step t = 1, 2, ... at one
lambda draws a block i uniformly, calls its max-oracle at w and goes against a subgradient of (lambda / 2) ||w||^2 + h_i(w):

    w_t = clip((1 - 1/t) w_{t-1} + psi_i(y*) / (lambda t)),    and with `solver.project`    w_t <- min(1, r / ||w_t||) w_t.

The ball has the radius r = sqrt(R_0 / lambda), R_0 the mean of the largest losses, and contains the optimum, where P = D
gives lambda ||w||^2 <= ell - R <= R_0; with bounds as well, if these allow w = 0. (Pegasos has 1 / sqrt(lambda), for losses
up to 1.) With `averaging=weighted` the solution is the average of w_1, ..., w_T, with weights 2t / (T (T + 1)). The expected
suboptimality is O(log T / (lambda T)) at w_T and O(1 / (lambda T)) at the average. The first step forgets where it began, so
that there is no warm start.

The steps, and how a sparse one takes less than O(d) operations: `stages.solver.subgradient_steps`.

The solve ends after `max_passes` or `max_oracle_calls`, whatever the tolerance. Every `refresh_every` effective passes, and
at the end, an exact pass at w or at the average measures the primal objective for the trace.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass, field

import numpy as np

from gapwise.records import Facts, Json
from gapwise.stages.problems.certainty import ESTIMATE, certainty_of
from gapwise.stages.problems.parallel import Pace, drawn_work
from gapwise.stages.problems.protocol import Problem
from gapwise.stages.problems.stored import check_array
from gapwise.stages.solver.capabilities import MethodCapabilities
from gapwise.stages.solver.counts import Counts
from gapwise.stages.solver.ledger import Ledger, packed_rng, restored_rng, restored_trace
from gapwise.stages.solver.objective import Certificate, squared_norm
from gapwise.stages.solver.options import AVERAGES, MethodOptions, check, check_one_of
from gapwise.stages.solver.oracles import answers_at, load_oracles
from gapwise.stages.solver.packed import ArraySpec
from gapwise.stages.solver.schedule import Arrays, Ended, Goal, Schedule
from gapwise.stages.solver.solver import Recipe
from gapwise.stages.solver.subgradient_steps import HERE_STEPS, SHRUNK, WEIGHT, Running, subgradient_driver
from gapwise.stages.solver.supports import Pool


@dataclass
class Options(MethodOptions):
    """The options of stochastic subgradient descent."""

    averaging: str = "none"
    project: bool = False
    """Whether each step ends with the projection on a ball that contains the optimum."""
    refresh_every: int = 10
    """Effective passes between exact passes, which measure the primal objective; 0: only at the end."""
    rebase_steps: int = 0
    """Steps between two points where the state can be committed, at most; 0: ten per block."""
    max_passes: float = 100.0

    @property
    def capabilities(self) -> MethodCapabilities:
        """There is no dual point."""
        return MethodCapabilities(certifies=False, averaging=self.averaging)

    def check(self) -> None:
        """Raises ValueError naming the key."""
        MethodOptions.check(self)
        check_one_of("solver.averaging", self.averaging, AVERAGES)
        check("solver.refresh_every", self.refresh_every, self.refresh_every >= 0, "an integer >= 0")
        check("solver.rebase_steps", self.rebase_steps, self.rebase_steps >= 0, "an integer >= 0")
        ends = min(self.max_passes, self.max_oracle_calls) < math.inf
        expected = f"a number, because no tolerance ends method={self.method} (or give solver.max_oracle_calls)"
        check("solver.max_passes", self.max_passes, ends, expected)


SPECS: tuple[ArraySpec, ...] = (
    ("vector", ("feature",), "f8", "sum of the subgradient steps, a multiple of w; with bounds w itself"),
    ("average", ("average_feature",), "f8", "running sum of the weighted average; empty without one"),
    ("numbers", ("number",), "f8", "what projections have multiplied by, squared norm of the sum, weight of the sum"),
    ("counters", ("counter",), "i8", "steps, oracle calls in steps, steps at this lambda"),
    ("trace", ("row", "column"), "f8", "one row per exact pass; columns in the attribute trace_columns"),
)


@dataclass
class PrimalIterate:
    """A primal point; there is no dual one."""

    problem: Problem
    options: Options
    rng: np.random.Generator
    running: Running
    ledger: Ledger
    fresh: bool = False
    views: tuple[str, str] = ("", "")
    hinge: float = math.nan
    """R at the last exact pass; an upper bound on it if the structure offers one."""
    hinges: np.ndarray = field(default_factory=lambda: np.empty(0))
    known_gap: float = math.nan

    def __post_init__(self) -> None:
        self.ledger.counters = self.running.counters

    @property
    def w(self) -> np.ndarray:
        """(d,): the average, if there is one; otherwise w."""
        S, t, lam = self.running, int(self.running.counters[HERE_STEPS]), self.ledger.counts.lam
        if t == 0 or self.problem.lower.size:
            return S.average.copy() if S.average.size and t > 0 else S.vector.copy()
        if not S.average.size:
            return S.vector * (S.numbers[SHRUNK] / (lam * t))
        average: np.ndarray = (S.numbers[WEIGHT] * S.vector - S.average) * (2.0 / (lam * t * (t + 1.0)))
        return average

    def rebase(self) -> None:
        """Nothing is derived."""

    def primal(self) -> np.ndarray:
        """(d,): the solution, whose primal objective the last exact pass has measured."""
        return self.w

    def mean_hinge(self) -> float:
        """R at the last exact pass; an upper bound on it if the structure offers one."""
        return self.hinge

    def supports(self) -> None:
        """There is no dual point."""

    def block_gaps(self) -> np.ndarray:
        """nan, (n,)."""
        return np.full(self.problem.n, np.nan)

    def dual_value(self) -> float:
        """nan."""
        return math.nan

    def dual_weights(self) -> np.ndarray:
        """Not called: paths refuse the method."""
        raise NotImplementedError("stochastic subgradient descent has no dual point")

    def begin_lambda(self, lam: float, breakpoint: int, exact_due: bool) -> None:
        """Begin another lambda at w = 0."""
        self.ledger.begin_lambda(lam, breakpoint)
        self.ledger.counts.exact_due = False
        self.running.restart(self.problem)

    def move_to(self, lam: float, warm_start: str) -> None:
        """The first step forgets where it began, whatever `warm_start` says."""

    def packed(self) -> tuple[dict[str, np.ndarray], dict[str, Json]]:
        """Arrays of `SPECS`, and attributes."""
        arrays = {name: array.copy() for name, array in self.running._asdict().items()}
        arrays["trace"] = self.ledger.packed_trace()
        counts, rng = dataclasses.asdict(self.ledger.counts), packed_rng(self.rng)
        return arrays, {"counts": counts, "rng": rng, "hinge": self.hinge}


def begin(problem: Problem, options: Options, pool: Pool, seed: int, ledger: Ledger) -> PrimalIterate:
    """The iterate at w = 0: there is no dual point, so that of `pool` has no part in it.

    Raises
    ------
    ValueError
        If a projection is asked for that might cut off the optimum.
    """
    if options.project and problem.lower.size and not (np.all(problem.lower <= 0) and np.all(problem.upper >= 0)):
        j = int(np.argmax((problem.lower > 0) | (problem.upper < 0)))
        raise ValueError(
            f"solver.project: the bounds of feature {j}, {problem.lower[j]:g} to {problem.upper[j]:g}, exclude w = 0, "
            "on which the radius of the ball rests; use solver.project=false"
        )
    if options.project and certainty_of(problem) == ESTIMATE:
        raise ValueError(
            "solver.project: the radius of the ball rests on the largest losses, which an approximate oracle without "
            "a bound may miss; use solver.project=false"
        )
    return PrimalIterate(
        problem, options, np.random.default_rng(seed), Running.empty(problem, options.averaging != "none"), ledger
    )


def restored(
    problem: Problem, options: Options, seed: int, arrays: Arrays, attrs: Facts, ledger: Ledger
) -> PrimalIterate:
    """The iterate at a committed point; ValueError, naming the array, if one does not fit the problem."""
    running = Running.empty(problem, options.averaging != "none")
    for name, array in running._asdict().items():
        array[:] = check_array(name, arrays[name], array.shape, array.dtype, finite=True)
    ledger.counts, ledger.trace = Counts(**attrs["counts"]), restored_trace(arrays["trace"])
    return PrimalIterate(problem, options, restored_rng(attrs["rng"]), running, ledger, hinge=float(attrs["hinge"]))


@dataclass
class BallCounts:
    """The scalars of the schedule."""

    hinge_at_zero: float = math.nan
    """R_0; only known with `project`."""


@dataclass
class Subgradient:
    """Steps with exact passes in between until a limit is reached, whatever the tolerance."""

    it: PrimalIterate
    options: Options
    counts: BallCounts = field(default_factory=BallCounts)
    pace: Pace = field(default_factory=Pace)
    """Work between stop checks, of steps."""

    def advance(self, goal: Goal) -> Ended | None:
        """Steps, or the exact pass that is due after them."""
        counts, ledger = self.it.ledger.counts, self.it.ledger
        if self.options.project and math.isnan(self.counts.hinge_at_zero):
            self.counts.hinge_at_zero = self.hinge_of(np.zeros(self.it.problem.d))
        elif counts.exact_due:
            self.measure()
            status = ledger.limit()
            return (status, None) if status else None
        else:
            self.take_steps()
        return None

    @property
    def radius(self) -> float:
        """r; 0 without projection."""
        return math.sqrt(self.counts.hinge_at_zero / self.it.ledger.counts.lam) if self.options.project else 0.0

    def take_steps(self) -> None:
        """Steps until the next exact pass, or the next point where the state can be committed."""
        it, options, ledger = self.it, self.options, self.it.ledger
        n, here = it.problem.n, int(it.running.counters[HERE_STEPS])
        left = math.ceil(min(options.max_oracle_calls, options.max_passes * n)) - ledger.calls_here
        every, apart = options.refresh_every * n, options.rebase_steps or 10 * n
        end = here + left
        if every:
            end = min(end, (here // every + 1) * every)
        steps = max(min(end, (here // apart + 1) * apart) - here, 0)
        run = subgradient_driver(it.problem)

        def part(start: int, stop: int) -> None:
            run(it.problem, it.running, ledger.counts.lam, self.radius, it.rng, stop - start)

        self.pace.run(part, 0, steps, ledger.check_stop, drawn_work(it.problem, steps))
        ledger.counts.exact_due = here + steps >= end

    def hinge_of(self, w: np.ndarray) -> float:
        """Mean hinge at w (d,), or the bound on it that the structure offers, by an exact pass."""
        P, ledger = self.it.problem, self.it.ledger
        with ledger.asking():
            hinges = answers_at(P, w, range(P.n), ledger.spread).upper_hinge
        ledger.counts.gap_passes += 1
        return float(np.sum(hinges)) / P.n

    def measure(self) -> None:
        """The primal objective at the present point, for the trace."""
        it, counts, w = self.it, self.it.ledger.counts, self.it.w
        it.hinge, counts.exact_due = self.hinge_of(w), False
        it.ledger.record(Certificate(counts.lam, math.nan, it.hinge, math.nan, squared_norm(w), math.nan))

    def warm_up(self) -> None:
        """Compile or load every function that a solve calls; changes no result."""
        it, P = self.it, self.it.problem
        load_oracles(P)
        subgradient_driver(P)(P, it.running, 1.0, 0.0, it.rng, 0)


def schedule_of(it: PrimalIterate, options: Options, own_primal: bool) -> Schedule:
    """The schedule of `Subgradient`."""
    method = Subgradient(it, options)
    return Schedule(method.advance, rewrites_w=True, warm_up=method.warm_up, counts=method.counts)


METHOD = Recipe(schedule_of, begin, restored, SPECS, Counts)
