"""Solving at one lambda: steps, refreshes, rebase points, stopping (O16 Alg. 2, 5; DESIGN 2.3, 3.2).

The loop of `Solver.solve`: rebase; offer the state for a commit; if an exact pass is due, make it and perhaps stop; then
take steps until the stale gap sum falls below 0.8 of the tolerance, `refresh_every` effective passes are over, or
`rebase_steps` steps were made. Everything but the decision which rebase points are written depends on counts only.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from stages.parallel import HERE, Spread
from stages.problems.protocol import Problem
from stages.solver.codes import AVERAGED, ORACLE_CALLS
from stages.solver.codes import STEPS as STEP_COUNT
from stages.solver.counts import NEVER, Counts
from stages.solver.gaps import ExactGaps, batch_driver, exact_gaps
from stages.solver.loop import State, steps_driver
from stages.solver.methods.accelerated import dual_and_excess, solve_cached
from stages.solver.methods.accelerated import start as start_cached
from stages.solver.methods.accelerated import warm_up as warm_up_cached
from stages.solver.objective import Certificate, squared_norm
from stages.solver.options import SAMPLERS, SolverOptions, Status
from stages.solver.oracles import corners_at, load_exact
from stages.solver.sampling import MAX_GAP, tree_rebuild
from stages.solver.state import derive
from stages.solver.stepping import flags_of, take_steps, visit
from stages.solver.supports import grown, keep_corners, normalise, repack

EARLY = 0.8
"""Share of the tolerance at which the stale gap sum calls for an exact pass (the authors' choice)."""

Boundary = Callable[["Solver"], Status | None]
"""Called at every rebase point; may commit. Returns INTERRUPTED or TIME_LIMIT to stop here, to go on later."""


@dataclass
class Solver:
    """A problem, the chosen member of the family, and its running state."""

    problem: Problem
    options: SolverOptions
    state: State
    rng: np.random.Generator
    seed: int
    at: Counts = field(default_factory=Counts)
    trace: list[tuple[float, ...]] = field(default_factory=list)
    spread: Spread = HERE
    """Where oracles of exact passes are called; decides no bit."""
    centre: np.ndarray = field(default_factory=lambda: np.empty(0))
    """float64, (d,): the proximal centre y while kappa > 0."""
    mean: np.ndarray = field(default_factory=lambda: np.empty(0))
    """float64, (d,): mean of the points of an accelerated solve, the w it certifies; empty before the first."""
    fresh: bool = False
    """Just restored: the state is at a rebase point already."""
    own_primal: bool = True
    """Whether a certified w may be another one than that of its dual point: not on a path of breakpoints."""
    untouched: bool = False
    """An exact pass is under way and has changed nothing: should it fail, the rebase point before it can be committed."""
    weights: np.ndarray = field(default_factory=lambda: np.empty(0))
    """The primal point of the last certificate: the derived w, the averaged one, or the mean of an accelerated solve."""
    hinges: np.ndarray = field(default_factory=lambda: np.empty(0))
    """float64, (n,): hinges of the blocks at the last exact pass."""

    # -- what is known ------------------------------------------------------------------------------------------------
    @property
    def scale(self) -> float:
        """1 / ((lambda + kappa) n)."""
        return 1.0 / ((self.at.lam + self.at.kappa) * self.problem.n)

    @property
    def oracle_calls(self) -> int:
        """All oracle calls so far: of the path's start, of steps and of exact passes."""
        steps = int(self.state.counters[ORACLE_CALLS])
        return self.at.initial_calls + steps + self.at.gap_passes * self.problem.n

    @property
    def passes_here(self) -> float:
        """Effective passes at this lambda."""
        return (self.oracle_calls - self.at.calls_before) / self.problem.n

    @property
    def point(self) -> np.ndarray:
        """(d,): the w that a certificate of now would be of; in an accelerated solve the mean of its points."""
        return self.mean if self.at.points else self.state.w

    @property
    def caching(self) -> bool:
        """Whether labellings without weight are kept."""
        return self.options.cache.kind != "none"

    @property
    def capacity(self) -> int:
        """Labellings kept a block, as the pool reads it."""
        return self.options.cache.capacity if self.caching else NEVER

    def certificate(self, gap: float, hinge: float | None = None) -> Certificate:
        """The certificate of `point`; without `hinge` it follows from the gap (cone bounds only)."""
        S, lam = self.state, self.at.lam
        ell, norm2 = float(S.z_ell[1]), squared_norm(self.point)
        if hinge is None:
            hinge = gap + ell - lam * norm2
        dual, excess = dual_and_excess(self, self.point)
        return Certificate(lam, gap + excess, hinge, ell, norm2, dual)

    def warm_up(self) -> None:
        """Compile or load what a solve calls, so that seconds count solving; changes no bit of what follows."""
        if not self.fresh:
            self.rebase()
        P, S = self.problem, self.state
        nothing = np.empty(0)
        load_exact(P)
        steps_driver(P)(P, S, flags_of(self, -1.0, 0), self.rng, np.empty(0, np.int64), 0)
        if self.caching:
            corners = np.empty((0, S.pool.labels.shape[1]), P.truth.dtype)
            keep_corners(P.label_ptr, S.pool, corners, nothing, S.counters[STEP_COUNT], self.capacity)
        if self.options.schedule != "steps":
            warm_up_cached(self)

    # -- the parts of the loop ----------------------------------------------------------------------------------------
    def start_lambda(self, lam: float, breakpoint: int, *, exact_due: bool = False) -> None:
        """Begin another lambda with the dual point that the pool holds; gaps not known are inf."""
        at = self.at
        at.lam, at.breakpoint, at.exact_due = lam, breakpoint, exact_due
        total = float(np.sum(self.state.gap))
        at.exact_total = total if np.isfinite(total) else 1.0
        at.calls_before, at.seconds_before = self.oracle_calls, at.seconds
        at.next_refresh, at.last_refresh = self._refresh_at(), int(self.state.counters[STEP_COUNT])
        self.state.counters[AVERAGED] = 0
        self.state.z[:] = 0.0
        self.state.z_ell[0] = 0.0
        if self.options.schedule != "steps":
            start_cached(self)

    def rebase(self) -> None:
        """Replace the running mu, ell, u, w by those derived from the normalised pool, and the tree by a fresh one."""
        if self.fresh:
            self.fresh = False
        else:
            repack(self.state.pool)
            normalise(self.state.pool)
        self.derive()
        self.rebuild_tree()

    def derive(self) -> None:
        """mu, ell, u and w from the pool (and the proximal centre)."""
        at = self.at
        share = self.centre * (at.kappa / (at.lam + at.kappa)) if at.kappa > 0.0 else None
        derive(self.problem, self.state, self.scale, share)

    def rebuild_tree(self) -> None:
        """The sampling tree of the present gaps."""
        sampler = SAMPLERS.index(self.options.sampler)
        degree = self.options.degree if sampler >= 2 else 1.0
        tree_rebuild(self.state.tree, sampler == MAX_GAP, degree, self.state.gap)

    def exact_pass(self) -> tuple[Certificate, ExactGaps]:
        """One oracle call a block at `point`: certificate, fresh gaps, corners into the cache."""
        P, S, at = self.problem, self.state, self.at
        self.untouched = True
        found = exact_gaps(P, self.point, S.mu, S.ell, self.spread, S.pool)
        self.untouched = False
        S.gap[:], self.hinges = found.gap, found.hinge
        at.gap_passes += 1
        at.exact_due = False
        at.exact_total = float(np.sum(found.gap))
        point = self.certificate(at.exact_total, float(np.sum(found.hinge)) / P.n)
        at.dual = point.dual
        self.weights = self.point
        if self.options.averaging != "none":
            point = self._better_average(point)
        if self.caching:
            self.make_room(P.n)
            keep_corners(P.label_ptr, self.state.pool, found.corner, found.loss, S.counters[STEP_COUNT], self.capacity)
        self.rebuild_tree()
        at.next_refresh, at.last_refresh = self._refresh_at(), int(S.counters[STEP_COUNT])
        return point, found

    def _better_average(self, point: Certificate) -> Certificate:
        """The certificate of the averaged iterate as the primal point, where it is the better one (LJ13 3.4)."""
        P, S = self.problem, self.state
        steps = int(S.counters[AVERAGED])
        if steps == 0:
            return point
        w = S.u - (2.0 / (steps * (steps + 1.0))) * S.z
        if P.lower.size:
            w = np.clip(w, P.lower, P.upper)
        hinge = float(np.sum(corners_at(P, w, range(P.n), self.spread).hinge)) / P.n
        self.at.gap_passes += 1
        norm2 = squared_norm(w)
        gap = 0.5 * point.lam * norm2 + hinge - point.dual
        if gap >= point.gap:
            return point
        self.weights = w
        return Certificate(point.lam, gap, hinge, point.ell, norm2, point.dual)

    def batch_step(self, found: ExactGaps) -> None:
        """One batch Frank-Wolfe step towards the corners of an exact pass at the present point."""
        P = self.problem
        self.make_room(P.n)
        corners = found.corner, found.loss, found.gap
        batch_driver(P)(P, self.state, self.scale, *corners, np.zeros(P.d), self.capacity)

    def _refresh_at(self) -> int:
        every = self.options.refresh_every
        return int(self.state.counters[ORACLE_CALLS]) + every * self.problem.n if every else NEVER

    def make_room(self, slots: int) -> None:
        """See to it that the pool has at least this many free slots."""
        while self.state.pool.free[1] < slots:
            self.state = self.state._replace(pool=grown(self.state.pool, self.problem.label_ptr))

    def visit(self, times: int = 1, **choices: Any) -> None:
        """Visits of every block: `stepping.visit`."""
        visit(self, times, **choices)

    def take_steps(self, threshold: float) -> None:
        """Steps until the next rebase point: `stepping.take_steps`."""
        take_steps(self, threshold)

    # -- the loop -----------------------------------------------------------------------------------------------------
    def solve(
        self, tolerance: float, boundary: Boundary, *, relative: bool = False, exact: bool = True
    ) -> tuple[Status, Certificate | None]:
        """Down to the tolerance at the present lambda.

        Parameters
        ----------
        tolerance : float
            On the duality gap, or on gap / dual if `relative`.
        boundary : callable
            Called at every rebase point; returning True stops there with `INTERRUPTED`, to go on from there.
        exact : bool
            False (heuristic paths): the stale gap sum decides, and no exact pass is made.

        Returns
        -------
        Status, Certificate
            The certificate belongs to `weights`; None when interrupted.
        """
        if self.options.schedule != "steps":
            return solve_cached(self, tolerance, boundary, relative=relative)
        while True:
            started = time.perf_counter()
            self.rebase()
            self.at.seconds += time.perf_counter() - started
            stop = boundary(self)
            if stop:
                self.fresh = True
                return stop, None
            started = time.perf_counter()
            try:
                bound = tolerance * (max(self.at.dual, 0.0) if relative else 1.0)
                if self.at.exact_due:
                    stale = float(np.sum(np.maximum(self.state.gap, 0.0)))
                    found = None
                    if exact or not stale <= bound:
                        point, found = self.exact_pass()
                    else:
                        point = self.certificate(stale)
                        self.weights = self.state.w
                    self.record(point, started)
                    bound = tolerance * (max(point.dual, 0.0) if relative else 1.0)
                    if point.gap <= bound:
                        return Status.CONVERGED, point
                    limit = self.limit()
                    if limit:
                        return limit, point
                    if found and self.options.batch_step:
                        self.batch_step(found)
                self.take_steps((EARLY if exact else 1.0) * bound if bound == bound else -1.0)
                if relative and not self.options.refresh_every and not bound > 0.0:
                    self.at.exact_due = True  # no other way to a dual value, which the tolerance is relative to
            finally:
                self.at.seconds += time.perf_counter() - started

    def record(self, point: Certificate, started: float) -> None:
        """A row of the trace."""
        at, n = self.at, self.problem.n
        seconds = at.seconds + time.perf_counter() - started
        calls, steps = self.oracle_calls, int(self.state.counters[STEP_COUNT])
        stamp = float(round(time.time() * 1000))
        self.trace.append(
            (at.breakpoint, at.lam, calls / n, calls, steps, seconds, stamp, point.gap, point.dual, point.primal)
        )

    def limit(self) -> Status | None:
        """The limit that is reached at this lambda, if one is."""
        options = self.options
        if self.passes_here >= options.max_passes:
            return Status.PASS_LIMIT
        if self.oracle_calls - self.at.calls_before >= options.max_oracle_calls:
            return Status.ORACLE_LIMIT
        return None
