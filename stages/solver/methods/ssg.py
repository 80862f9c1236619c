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

Without bounds no step takes O(d) operations: w_t = c_t s_t / (lambda t) with s_t = s_{t-1} + psi_i(y*) / c_{t-1}, where c is
the product of what the projections have multiplied by, 1 without them. The average is 2 (q_T s_T - z_T) / (lambda T (T + 1))
with q_t = q_{t-1} + c_t and z_t = z_{t-1} + q_{t-1} (s_t - s_{t-1}). Before c gets too small it is multiplied into s, and
q s is moved into z. With bounds w and the average are stored as they are, and a step takes O(d), as in `bcfw`.

The solve ends after `max_passes` or `max_oracle_calls`, whatever the tolerance. Every `refresh_every` effective passes, and
at the end, an exact pass at w or at the average measures the primal objective for the trace.
"""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numba import njit

from gapwise.stages.parallel import HERE, Pace, Spread
from gapwise.stages.problems.certainty import ESTIMATE, certainty_of
from gapwise.stages.problems.compiled import driver
from gapwise.stages.problems.inner import inner
from gapwise.stages.problems.moves import pair_move, pair_norm2, pair_push
from gapwise.stages.problems.protocol import JIT, PLAIN, Problem, widest_block
from gapwise.stages.problems.stored import check_array
from gapwise.stages.solver.accounts import Accounts, packed_rng, restored_rng, restored_trace
from gapwise.stages.solver.capabilities import MethodCapabilities
from gapwise.stages.solver.counts import Counts
from gapwise.stages.solver.method import ArraySpec, Boundary
from gapwise.stages.solver.objective import squared_norm
from gapwise.stages.solver.options import AVERAGES, MethodOptions, Status, check, check_one_of
from gapwise.stages.solver.oracles import corners_at, load_exact
from gapwise.stages.solver.step import clip_into
from gapwise.stages.solver.supports import Pool

HERE_STEPS, ALL_STEPS = range(2)
"""Entries of `Iterate.counters`: steps at this lambda, steps since the beginning."""

SHRUNK, NORM2, WEIGHT = range(3)
"""Entries of `Iterate.numbers`: c, ||s||^2 (kept with `project` only), q."""

LEAST_SHRUNK = 1e-3
"""c is multiplied into s before it gets much smaller than this."""


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
        super().check()
        check_one_of("solver.averaging", self.averaging, AVERAGES)
        check("solver.refresh_every", self.refresh_every, self.refresh_every >= 0, "an integer >= 0")
        check("solver.rebase_steps", self.rebase_steps, self.rebase_steps >= 0, "an integer >= 0")
        ends = min(self.max_passes, self.max_oracle_calls) < math.inf
        expected = f"a number, because no tolerance ends method={self.method} (or give solver.max_oracle_calls)"
        check("solver.max_passes", self.max_passes, ends, expected)


class Iterate(NamedTuple):
    """The running solution at one lambda; all of it is committed."""

    vector: np.ndarray
    """float64, (d,): s; with bounds w itself"""
    average: np.ndarray
    """float64, (d,) or (0,) without averaging: z; with bounds the average itself"""
    numbers: np.ndarray
    """float64, (3,)"""
    counters: np.ndarray
    """int64, (2,)"""

    @classmethod
    def empty(cls, problem: Problem, options: Options) -> Iterate:
        """Before the first step."""
        averaged = options.averaging != "none"
        found = cls(np.zeros(problem.d), np.zeros(problem.d if averaged else 0), np.empty(3), np.zeros(2, np.int64))
        found.restart(problem)
        return found

    def restart(self, problem: Problem) -> None:
        """Go to w = 0, or the point of the box that is nearest to it, for another lambda."""
        self.vector[:] = np.clip(0.0, problem.lower, problem.upper) if problem.lower.size else 0.0
        self.average[:] = 0.0
        self.numbers[:] = 1.0, 0.0, 0.0
        self.counters[HERE_STEPS] = 0


@dataclass
class SubgradientCounts(Counts):
    """The scalars of the solve."""

    hinge: float = math.nan
    """Mean hinge at the last exact pass."""
    hinge_at_zero: float = math.nan
    """R_0; only known with `project`."""
    gap_passes: int = 0
    """Exact passes, which here measure no gap."""


# -- compiled steps ---------------------------------------------------------------------------------------------------
@inner(**PLAIN)
def free_step(P, S, lam, radius, i, theta_all, delta_all, y_all, scratch):
    """One step of block i without bounds; projects if radius > 0. The arrays are workspace."""
    lo, hi, first, last = P.local_ptr[i], P.local_ptr[i + 1], P.label_ptr[i], P.label_ptr[i + 1]
    theta, delta, y, truth = theta_all[: hi - lo], delta_all[: hi - lo], y_all[: last - first], P.truth[first:last]
    numbers = S.numbers
    before, shrunk = S.counters[HERE_STEPS], numbers[SHRUNK]
    factor = shrunk / (lam * before) if before > 0 else 0.0  # w = factor s
    P.scores(i, S.vector, theta)
    for j in range(theta.size):
        theta[j] *= factor
    P.max_oracle(i, theta, y, scratch)
    if radius > 0.0 or S.average.size > 0:
        norm2 = pair_norm2(P, i, truth, y, delta)
        pair_push(P, i, 1.0 / shrunk, truth, y, delta, S.vector)
        if S.average.size > 0:
            pair_push(P, i, numbers[WEIGHT] / shrunk, truth, y, delta, S.average)
        if radius > 0.0:
            inner = (P.value(i, theta, truth) - P.value(i, theta, y)) / factor if before > 0 else 0.0
            numbers[NORM2] += 2.0 * inner / shrunk + norm2 / (shrunk * shrunk)
            length = shrunk * np.sqrt(max(numbers[NORM2], 0.0)) / (lam * (before + 1))
            if length > radius:
                numbers[SHRUNK] *= radius / length
        numbers[WEIGHT] += numbers[SHRUNK]
        if numbers[SHRUNK] < LEAST_SHRUNK:
            fold(S)
    else:
        pair_move(P, i, 1.0, truth, y, delta, S.vector)


@inner(**PLAIN)
def fold(S):
    """Multiply c into s, and q s - z into z: the same w and the same average, with c = 1 and q = 0."""
    numbers, averaged = S.numbers, S.average.size > 0
    for j in range(S.vector.size):
        if averaged:
            S.average[j] -= numbers[WEIGHT] * S.vector[j]
        S.vector[j] *= numbers[SHRUNK]
    numbers[NORM2] *= numbers[SHRUNK] * numbers[SHRUNK]
    numbers[SHRUNK], numbers[WEIGHT] = 1.0, 0.0


@inner(**PLAIN)
def boxed_step(P, S, lam, radius, i, theta_all, delta_all, y_all, scratch):
    """The same with bounds: `S.vector` is w, and the average is stored as it is."""
    lo, hi, first, last = P.local_ptr[i], P.local_ptr[i + 1], P.label_ptr[i], P.label_ptr[i + 1]
    theta, delta, y, w = theta_all[: hi - lo], delta_all[: hi - lo], y_all[: last - first], S.vector
    t = S.counters[HERE_STEPS] + 1.0
    P.scores(i, w, theta)
    P.max_oracle(i, theta, y, scratch)
    for j in range(w.size):
        w[j] *= 1.0 - 1.0 / t
    pair_move(P, i, 1.0 / (lam * t), P.truth[first:last], y, delta, w)
    clip_into(w, P.lower, P.upper, w)
    if radius > 0.0:
        norm2 = 0.0
        for j in range(w.size):
            norm2 += w[j] * w[j]
        if norm2 > radius * radius:
            for j in range(w.size):
                w[j] *= radius / np.sqrt(norm2)
    for j in range(S.average.size):
        S.average[j] += 2.0 / (t + 1.0) * (w[j] - S.average[j])


@driver
def subgradient_driver(fingerprint: str) -> Any:
    """`run_subgradient(P, S, lam, radius, rng, steps)`: steps of blocks drawn uniformly; radius 0: no projection."""

    @njit(cache=True, **JIT)
    def run_subgradient(P, S, lam, radius, rng, steps):
        fingerprint  # noqa: B018
        scratch, widest, n = P.scratch(), widest_block(P.local_ptr), P.local_ptr.size - 1
        theta, delta, y = np.empty(widest), np.empty(widest), np.empty(widest_block(P.label_ptr), P.truth.dtype)
        for _ in range(steps):
            i = int(rng.random() * n)
            if P.lower.size > 0:
                boxed_step(P, S, lam, radius, i, theta, delta, y, scratch)
            else:
                free_step(P, S, lam, radius, i, theta, delta, y, scratch)
            S.counters[HERE_STEPS] += 1
            S.counters[ALL_STEPS] += 1

    return run_subgradient


# -- the method -------------------------------------------------------------------------------------------------------
@dataclass
class Subgradient(Accounts):
    """A primal point, and the steps that move it."""

    specs: ClassVar[tuple[ArraySpec, ...]] = (
        ("vector", ("feature",), "f8", "sum of the subgradient steps, a multiple of w; with bounds w itself"),
        ("average", ("average_feature",), "f8", "running sum of the weighted average; empty without one"),
        (
            "numbers",
            ("number",),
            "f8",
            "what projections have multiplied by, squared norm of the sum, weight of the sum",
        ),
        ("counters", ("counter",), "i8", "steps at this lambda, steps since the beginning"),
        ("trace", ("row", "column"), "f8", "one row per exact pass; columns in the attribute trace_columns"),
    )
    certifies: ClassVar[bool] = False
    rewrites_w: ClassVar[bool] = True
    known_gap: ClassVar[float] = math.nan

    problem: Problem
    options: Options
    rng: np.random.Generator
    iterate: Iterate
    spread: Spread = HERE
    at: SubgradientCounts = field(default_factory=SubgradientCounts)
    trace: list[tuple[float, ...]] = field(default_factory=list)
    untouched: bool = False
    may_stop: bool = False
    revisits: bool = False
    hinges: np.ndarray = field(default_factory=lambda: np.empty(0))
    pace: Pace = field(default_factory=Pace)

    @classmethod
    def begin(
        cls,
        problem: Problem,
        options: Options,
        pool: Pool,
        seed: int,
        *,
        own_primal: bool = True,
        spread: Spread = HERE,
    ) -> Self:
        """The method at w = 0: there is no dual point, so that of `pool` has no part in it.

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
        return cls(problem, options, np.random.default_rng(seed), Iterate.empty(problem, options), spread)

    # -- what is known ------------------------------------------------------------------------------------------------
    @property
    def oracle_calls(self) -> int:
        """All oracle calls so far, those of exact passes included."""
        return int(self.at.initial_calls + self.steps + self.at.gap_passes * self.problem.n)

    @property
    def steps(self) -> int:
        """Steps so far."""
        return int(self.iterate.counters[ALL_STEPS])

    @property
    def radius(self) -> float:
        """r; 0 without projection."""
        return math.sqrt(self.at.hinge_at_zero / self.at.lam) if self.options.project else 0.0

    @property
    def point(self) -> np.ndarray:
        """(d,): the average, if there is one; otherwise w."""
        S, t = self.iterate, int(self.iterate.counters[HERE_STEPS])
        if t == 0 or self.problem.lower.size:
            return S.average.copy() if S.average.size and t > 0 else S.vector.copy()
        if not S.average.size:
            return S.vector * (S.numbers[SHRUNK] / (self.at.lam * t))
        found: np.ndarray = (S.numbers[WEIGHT] * S.vector - S.average) * (2.0 / (self.at.lam * t * (t + 1.0)))
        return found

    def primal(self) -> np.ndarray:
        """(d,): the solution, whose primal objective the last exact pass has measured."""
        return self.point

    def mean_hinge(self) -> float:
        """R at the last exact pass; an upper bound on it if the structure offers one."""
        return self.at.hinge

    def supports(self) -> None:
        """There is no dual point."""

    def block_gaps(self) -> np.ndarray:
        """nan, (n,)."""
        return np.full(self.problem.n, np.nan)

    def dual_value(self) -> float:
        """nan."""
        return math.nan

    # -- the loop -----------------------------------------------------------------------------------------------------
    def solve(
        self, tolerance: float, boundary: Boundary, *, relative: bool = False, exact: bool = True
    ) -> tuple[Status, None]:
        """Steps with exact passes in between until a limit is reached, whatever the tolerance; see `method.Method`."""
        while True:
            stop = boundary(self)
            if stop:
                return stop, None
            started = time.perf_counter()
            try:
                if self.options.project and math.isnan(self.at.hinge_at_zero):
                    self.at.hinge_at_zero = self.hinge_of(np.zeros(self.problem.d))
                elif self.at.exact_due:
                    self.measure(started)
                    status = self.limit()
                    if status:
                        return status, None
                else:
                    self.take_steps()
            finally:
                self.at.seconds += time.perf_counter() - started

    def take_steps(self) -> None:
        """Steps until the next exact pass, or the next point where the state can be committed."""
        options, n, here = self.options, self.problem.n, int(self.iterate.counters[HERE_STEPS])
        used = self.oracle_calls - self.at.calls_before
        left = math.ceil(min(options.max_oracle_calls, options.max_passes * n)) - used
        every, apart = options.refresh_every * n, options.rebase_steps or 10 * n
        end = here + left
        if every:
            end = min(end, (here // every + 1) * every)
        steps = max(min(end, (here // apart + 1) * apart) - here, 0)
        run = subgradient_driver(self.problem)

        def part(start: int, stop: int) -> None:
            run(self.problem, self.iterate, self.at.lam, self.radius, self.rng, stop - start)

        self.pace.run(part, 0, steps, self.check_stop)
        self.at.exact_due = here + steps >= end

    def hinge_of(self, w: np.ndarray) -> float:
        """Mean hinge at w (d,), or the bound on it that the structure offers, by an exact pass."""
        self.untouched = True
        hinges = corners_at(self.problem, w, range(self.problem.n), self.spread).upper_hinge
        self.untouched = False
        self.at.gap_passes += 1
        return float(np.sum(hinges)) / self.problem.n

    def measure(self, started: float) -> None:
        """The primal objective at `point`, for the trace; `started`: when this part of the solve began."""
        at, w = self.at, self.point
        at.hinge, at.exact_due = self.hinge_of(w), False
        self.add_row(started, math.nan, math.nan, 0.5 * at.lam * squared_norm(w) + at.hinge)

    def warm_up(self) -> None:
        """Compile or load every function that a solve calls; changes no result."""
        load_exact(self.problem)
        subgradient_driver(self.problem)(self.problem, self.iterate, 1.0, 0.0, self.rng, 0)

    def start_lambda(self, lam: float, breakpoint: int, *, exact_due: bool = False) -> None:
        """Begin another lambda at w = 0."""
        at = self.at
        at.lam, at.breakpoint, at.exact_due = lam, breakpoint, False
        at.calls_before, at.seconds_before = self.oracle_calls, at.seconds
        self.iterate.restart(self.problem)

    def move_to(self, lam: float, breakpoint: int, warm_start: str) -> None:
        """Begin another lambda, at w = 0 whatever `warm_start` says: the first step forgets where it began."""
        self.start_lambda(lam, breakpoint)

    # -- committed state ----------------------------------------------------------------------------------------------
    def packed(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Arrays of `specs`, and attributes."""
        arrays = {name: array.copy() for name, array in self.iterate._asdict().items()}
        arrays["trace"] = self.packed_trace()
        return arrays, {"counts": dataclasses.asdict(self.at), "rng": packed_rng(self.rng)}

    @classmethod
    def restored(
        cls,
        problem: Problem,
        options: Options,
        seed: int,
        arrays: Mapping[str, np.ndarray],
        attrs: Mapping[str, Any],
        *,
        own_primal: bool = True,
        spread: Spread = HERE,
    ) -> Self:
        """The method at a committed point; ValueError, naming the array, if one does not fit the problem."""
        iterate = Iterate.empty(problem, options)
        for name, array in iterate._asdict().items():
            array[:] = check_array(name, arrays[name], array.shape, array.dtype, finite=True)
        rng, trace = restored_rng(attrs["rng"]), restored_trace(arrays["trace"])
        at = SubgradientCounts(**attrs["counts"])
        return cls(problem, options, rng, iterate, spread, at, trace)


METHOD = Subgradient
