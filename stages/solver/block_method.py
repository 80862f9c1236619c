"""What block-coordinate methods share: the dual iterate, its rebase points, exact passes, commits (O16 Alg. 2, 5).

Such a method holds a dual point as labellings with weights (`supports.Pool`) and moves one block at a time. At a
*rebase point* it recomputes mu, ell, u, w from the pool in a fixed order; only there can the state be committed. So an
uninterrupted solve and a resumed one perform the same computation, bit by bit.
"""

from __future__ import annotations

import dataclasses
import time
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np

from gapwise.stages.parallel import HERE, Pace, Spread
from gapwise.stages.problems.metric import norm2_of
from gapwise.stages.problems.protocol import Problem
from gapwise.stages.solver.accounts import Accounts, packed_rng, restored_rng, restored_trace
from gapwise.stages.solver.codes import AVERAGED, CACHE_FIRST, CALLS_REACHED, DONE, ORACLE_CALLS, POOL_FULL
from gapwise.stages.solver.codes import STEPS as STEP_COUNT
from gapwise.stages.solver.counts import NEVER, BlockCounts
from gapwise.stages.solver.gaps import ExactGaps, cached_driver, exact_gaps
from gapwise.stages.solver.loop import Flags, State, steps_driver
from gapwise.stages.solver.margins import Margins
from gapwise.stages.solver.method import ArraySpec, Boundary
from gapwise.stages.solver.objective import Certificate, dual_value
from gapwise.stages.solver.options import Status
from gapwise.stages.solver.oracles import corners_at, load_exact
from gapwise.stages.solver.sampling import MAX_GAP, UNIFORM, tree_rebuild, uniform_drawn_ahead
from gapwise.stages.solver.state import check_state, derive, new_state, restored_state, truth_pool
from gapwise.stages.solver.steps import step_rule
from gapwise.stages.solver.supports import Pool, Supports, empty_pool, grown, keep_corners, normalise, pack, repack
from gapwise.stages.solver.warm_start import truth_driver

FAINT = 0.1
"""Share of the tolerance that the optimiser is left with, however large the slack of the oracle's bounds; where its own gap
is below that and nearly all of the tolerance is missed by slack, more steps are in vain."""

SPECS: tuple[ArraySpec, ...] = (
    ("support_offset", ("block_edge",), "i8", "atoms of block i are support_offset[i]:support_offset[i + 1]"),
    ("support_used", ("atom",), "i8", "step at which the labelling was last chosen"),
    ("support_alpha", ("atom",), "f8", "weight of a labelling in its block's dual variable"),
    ("support_loss", ("atom",), "f8", "task loss of the labelling"),
    ("support_label", ("label",), "label", "labels of all atoms, end to end"),
    ("label_offset", ("atom_edge",), "i8", "labels of atom a are label_offset[a]:label_offset[a + 1]"),
    ("block_gap", ("block",), "f8", "last known block gaps; inf where never computed"),
    ("counters", ("counter",), "i8", "steps, oracle calls, cached steps, averaged steps"),
    ("trace", ("row", "column"), "f8", "one row per certificate; columns in the attribute trace_columns"),
)


@dataclass
class BlockMethod(Accounts):
    """A problem, the options of a block-coordinate method, and its running state; subclasses add the loop."""

    specs: ClassVar[tuple[ArraySpec, ...]] = SPECS
    certifies: ClassVar[bool] = True
    counts: ClassVar[type[BlockCounts]] = BlockCounts

    problem: Problem
    options: Any
    state: State
    rng: np.random.Generator
    seed: int
    at: Any
    trace: list[tuple[float, ...]] = field(default_factory=list)
    spread: Spread = HERE
    """Where the oracles of exact passes are called; does not change the result."""
    fresh: bool = False
    """True right after a restore: the state is already at a rebase point."""
    own_primal: bool = True
    """Whether the certified w may differ from w(alpha): `path.walk.own_primal`."""
    revisits: bool = False
    """Whether the path goes up and down: `path.walk.walk`."""
    untouched: bool = False
    """True while an exact pass runs. It changes no state until it succeeds, so the last rebase point can be committed."""
    may_stop: bool = False
    """Whether `spread.check` may end the work between two rebase points, because the last one is kept elsewhere."""
    pace: Pace = field(default_factory=Pace)
    """Of steps."""
    call_pace: Pace = field(default_factory=Pace)
    """Of steps that call the oracle."""
    weights: np.ndarray = field(default_factory=lambda: np.empty(0))
    """float64, (d,): the primal point of the last certificate."""
    margins: Margins | None = None
    """Margin vectors of the atoms, where steps take them (`keeps_margins`)."""
    hinges: np.ndarray = field(default_factory=lambda: np.empty(0))
    """float64, (n,): hinges of the blocks at the last exact pass, or the bounds on them that the structure offers."""

    @classmethod
    def begin(
        cls, problem: Problem, options: Any, pool: Pool, seed: int, *, own_primal: bool = True, spread: Spread = HERE
    ) -> Self:
        """The method at the dual point of `pool`; call `start_lambda` next."""
        state = new_state(problem, pool, cls.averages(options), cls.stores_mu(options))
        rng = np.random.default_rng(seed)
        return cls(problem, options, state, rng, seed, cls.counts(), own_primal=own_primal, spread=spread)

    @staticmethod
    def averages(options: Any) -> bool:
        """Whether the state keeps a running average."""
        return False

    @staticmethod
    def stores_mu(options: Any) -> bool:
        """Whether the state stores mu, 8 p_i bytes a block, because steps read it; exact passes do not need it."""
        return True

    # -- what a method decides ----------------------------------------------------------------------------------------
    @abstractmethod
    def advance(
        self, tolerance: float, relative: bool, exact: bool, started: float
    ) -> tuple[Status, Certificate] | None:
        """Go from one rebase point to the next (returns None), or to the end (returns a certificate with its status).

        `started` is the time of the rebase point by `time.perf_counter`; the rest is as in `solve`.
        """

    def own_arrays(self) -> dict[str, np.ndarray]:
        """The arrays that the method commits besides `SPECS`."""
        return {}

    def restore_own(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Take `own_arrays` from a commit."""

    @property
    def rewrites_w(self) -> bool:
        """Whether certified weights may differ from those of the supports."""
        return False

    @property
    def loop(self) -> Any:
        """The compiled steps, called as `loop.steps_driver` says."""
        return steps_driver(self.problem)

    @property
    def stepper(self) -> Any:
        """`loop`, or the steps by margin vectors where such are kept."""
        return self.loop if self.margins is None else self.margins.steps

    @property
    def sampler(self) -> int:
        """How blocks are drawn: a code of `sampling`."""
        return UNIFORM

    @property
    def degree(self) -> float:
        """The sampling weight of a block is g_i ** degree."""
        return 1.0

    @property
    def keeps_margins(self) -> bool:
        """Whether the method's steps are pairwise ones with a cache, which margin vectors may serve (`margins`)."""
        return False

    # -- what is known ------------------------------------------------------------------------------------------------
    @property
    def oracle_calls(self) -> int:
        """All oracle calls so far: of the path's start, of steps and of exact passes."""
        steps = int(self.state.counters[ORACLE_CALLS])
        return int(self.at.initial_calls + steps + self.at.gap_passes * self.problem.n)

    @property
    def steps(self) -> int:
        """Block steps so far, cached ones included."""
        return int(self.state.counters[STEP_COUNT])

    @property
    def point(self) -> np.ndarray:
        """(d,): the primal point that the next certificate will be computed for."""
        return self.state.w

    @property
    def known_gap(self) -> float:
        """Sum of the last known block gaps; inf until every block has been visited."""
        return float(np.sum(self.state.gap))

    @property
    def caching(self) -> bool:
        """Whether labellings without weight are kept."""
        return bool(self.options.cache.kind != "none")

    @property
    def capacity(self) -> int:
        """Labellings kept per block, as the pool reads it."""
        return int(self.options.cache.capacity) if self.caching else NEVER

    def dual_point(self) -> tuple[np.ndarray, np.ndarray]:
        """(v, clip(v)) of the current alpha; v = (1/lambda n) sum_i B_i (m_i(y_i) - mu_i)."""
        return self.state.u, (self.state.w if self.problem.lower.size else self.state.u)

    def dual_weights(self) -> np.ndarray:
        """(d,): w(alpha) = clip(v)."""
        return np.array(self.dual_point()[1])

    def dual_and_excess(self, w: np.ndarray | None = None) -> tuple[float, float]:
        """D(alpha), and the excess of the gap of (w, alpha) over the block gaps; w (d,) defaults to the current one.

        P(w) - D(alpha) = sum_i g_i(w) + (lambda/2) (||w - v||^2 - ||clip(v) - v||^2); the excess is 0 at w = clip(v).
        """
        P, lam = self.problem, self.at.lam
        v, w_v = self.dual_point()
        dual = dual_value(float(self.state.z_ell[1]), v, w_v, lam, P.lower, P.upper, norm2_of(P, w_v))
        w = self.state.w if w is None else w
        if w is w_v:
            return dual, 0.0
        excess = norm2_of(P, w - v) - (norm2_of(P, w_v - v) if P.lower.size else 0.0)
        return dual, 0.5 * lam * excess

    def dual_value(self) -> float:
        """D(alpha) at present."""
        return self.dual_and_excess()[0]

    def certificate(self, gap: float, hinge: float | None = None) -> Certificate:
        """The certificate of `point`; without `hinge` it is computed from the gap, which is valid for cone bounds only."""
        lam = self.at.lam
        ell, norm2 = float(self.state.z_ell[1]), norm2_of(self.problem, self.point)
        if hinge is None:
            hinge = gap + ell - lam * norm2
        dual, excess = self.dual_and_excess(self.point)
        return Certificate(lam, gap + excess, hinge, ell, norm2, dual)

    def primal(self) -> np.ndarray:
        """(d,): the w of the last certificate, or the current one."""
        return self.weights if self.weights.size else self.state.w

    def mean_hinge(self) -> float:
        """R at the last exact pass, as in its certificate."""
        return float(np.mean(self.hinges))

    def block_gaps(self) -> np.ndarray:
        """float64, (n,): the last known block gaps."""
        return self.state.gap.copy()

    def supports(self) -> Supports:
        """The dual point: every block's labellings of positive weight, and their weights."""
        return pack(self.state.pool, self.problem.label_ptr, active_only=True)

    def flags(self, stop_sum: float = -1.0, stop_calls: int = NEVER, **other: Any) -> Flags:
        """The options as the compiled loop reads them; `other` replaces some."""
        cache, rule = self.options.cache, step_rule(self.options.step)
        flags = Flags(
            sampler=self.sampler,
            kinds=rule.kinds,
            by_slope=rule.by_slope,
            cache=self.caching,
            corner=CACHE_FIRST,
            rounds=1,
            skip_below=0.0,
            F=float(cache.F),
            nu=float(cache.nu),
            capacity=self.capacity,
            degree=float(self.degree),
            average=self.state.z.size > 0,
            scale=self.scale,
            exact_total=self.at.exact_total,
            stop_sum=stop_sum,
            stop_calls=stop_calls,
        )
        return flags._replace(**other)

    # -- the loop -----------------------------------------------------------------------------------------------------
    def solve(
        self, tolerance: float, boundary: Boundary, *, relative: bool = False, exact: bool = True
    ) -> tuple[Status, Certificate | None]:
        """Go from rebase point to rebase point until the tolerance is certified or a limit reached; see `method.Method`."""
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
                end = self.advance(tolerance, relative, exact, started)
                if end:
                    return end
            finally:
                self.at.seconds += time.perf_counter() - started

    # -- the parts of a solve -----------------------------------------------------------------------------------------
    def start_lambda(self, lam: float, breakpoint: int, *, exact_due: bool = False) -> None:
        """Begin another lambda with the dual point of the pool; unknown gaps are inf."""
        at = self.at
        at.lam, at.breakpoint, at.exact_due = lam, breakpoint, exact_due
        total = self.known_gap
        at.exact_total = total if np.isfinite(total) else 1.0
        at.calls_before, at.seconds_before = self.oracle_calls, at.seconds
        self.after_exact_pass()
        self.state.counters[AVERAGED] = 0
        self.state.z[:] = 0.0
        self.state.z_ell[0] = 0.0

    def move_to(self, lam: float, breakpoint: int, warm_start: str) -> None:
        """Begin another lambda; `warm_start` says what to keep: keep_primal, keep_dual or none."""
        at, P = self.at, self.problem
        if warm_start == "keep_primal":  # the same w; block gaps follow exactly (O16 section 4)
            if not lam <= at.lam:
                raise ValueError(f"path: keep_primal needs decreasing lambdas; {lam:g} follows {at.lam:g}")
            self.make_room(P.n)
            truth_driver(P)(P, self.state, lam / at.lam, self.capacity)
        elif warm_start == "keep_dual":  # the same alpha; gaps from cached labellings, without an oracle call
            at.lam = lam
            self.derive()
            if self.caching:
                self.state.gap[:] = self.cached_gaps(self.state.w)
            else:
                self.state.gap[:] = np.inf
        else:  # w = 0
            self.state = self.state._replace(pool=truth_pool(P))
            self.state.gap[:] = np.inf
        self.start_lambda(lam, breakpoint)

    def after_exact_pass(self) -> None:
        """Restart the count to the next exact pass."""
        self.at.last_refresh = self.steps

    def rebase(self) -> None:
        """Normalise the pool, recompute mu, ell, u, w from it, and rebuild the sampling tree."""
        if self.fresh:
            self.fresh = False
        else:
            repack(self.state.pool)
            normalise(self.state.pool)
        self.margins = Margins.at_rebase(self.margins, self.problem, self.state.pool, self.keeps_margins)
        self.derive()
        self.rebuild_tree()

    def derive(self) -> None:
        """mu, ell, u and w from the pool."""
        margins = self.margins_of_all
        by_margins = None if margins is None else margins.derive
        derive(self.problem, self.state, self.scale, self.centre_share, by_margins)

    @property
    def margins_of_all(self) -> Margins | None:
        """The margin vectors if there is room for those of all atoms, otherwise None."""
        return self.margins if self.margins is not None and self.margins.holds(self.state.pool) else None

    @property
    def centre_share(self) -> np.ndarray | None:
        """(d,): what u has besides the sum over blocks (`state.derive`); None: nothing."""
        return None

    def rebuild_tree(self) -> None:
        """Rebuild the sampling tree from the current gaps."""
        flags = self.flags()
        tree_rebuild(self.state.tree, flags.sampler == MAX_GAP, flags.degree, self.state.gap)

    def exact_pass(self) -> tuple[Certificate, ExactGaps]:
        """One oracle call per block at `point`: certificate, fresh gaps, corners into the cache."""
        P, S, at = self.problem, self.state, self.at
        self.untouched = True
        found = self.gaps_at_point()
        self.untouched = False
        S.gap[:], self.hinges = found.gap, found.hinge
        at.gap_passes += 1
        at.exact_due = False
        at.exact_total, at.slack, at.proven = float(np.sum(found.gap)), found.slack, found.proven
        point = self.certificate(float(np.sum(found.certified)), float(np.sum(found.hinge)) / P.n)
        at.dual = point.dual
        self.weights = self.point
        point = self.better_certificate(point)
        if self.caching:
            self.keep(np.arange(P.n), found.corner, found.loss)
        self.rebuild_tree()
        self.after_exact_pass()
        return point, found

    def gaps_at_point(self) -> ExactGaps:
        """The results of an exact pass at `point`."""
        S = self.state
        return exact_gaps(self.problem, self.point, S.mu, S.ell, self.spread, S.pool)

    def due_pass(self, bound: float, exact: bool) -> tuple[Certificate, ExactGaps | None]:
        """An exact pass; with `exact` False, stale gaps that are small enough replace it."""
        stale = float(np.sum(np.maximum(self.state.gap, 0.0)))
        if exact or not stale <= bound:
            return self.exact_pass()
        self.weights = self.state.w
        return self.certificate(stale), None

    def better_certificate(self, point: Certificate) -> Certificate:
        """`point`, or the certificate of another primal point if that is better; then also sets `weights`."""
        return point

    def pass_at(self, w: np.ndarray, point: Certificate) -> Certificate:
        """`point`, or the certificate of w (d,) with the same dual point if that is better; takes an exact pass at w."""
        P = self.problem
        found = corners_at(P, w, range(P.n), self.spread)
        hinge = float(np.sum(found.upper_hinge)) / P.n
        self.at.gap_passes += 1
        norm2 = norm2_of(P, w)
        gap = 0.5 * point.lam * norm2 + hinge - point.dual
        if gap >= point.gap:
            return point
        self.weights = w
        if found.bound is not found.h:
            self.at.slack, self.at.proven = float(np.mean(found.bound - found.h)), float(np.mean(found.proven))
        return Certificate(point.lam, gap, hinge, point.ell, norm2, point.dual)

    def cached_gap(self, w: np.ndarray) -> float:
        """The gap of (w, alpha) over cached labellings, a lower bound on the exact gap."""
        return float(np.sum(self.cached_gaps(w))) + self.dual_and_excess(w)[1]

    def cached_gaps(self, w: np.ndarray) -> np.ndarray:
        """float64, (n,): block gaps at w (d,) over cached labellings."""
        P, gap = self.problem, np.empty(self.problem.n)
        margins = self.margins_of_all
        gaps = cached_driver(P) if margins is None else margins.gaps
        gaps(P, self.state.pool, w, gap)
        return gap

    def keep(self, blocks: np.ndarray, corner: np.ndarray, loss: np.ndarray) -> None:
        """Put the oracle's answers for `blocks` (their labels, their losses) into the cache."""
        self.make_room(blocks.size)
        keep_corners(self.problem.label_ptr, self.state.pool, blocks, corner, loss, self.steps, self.capacity)

    def make_room(self, slots: int) -> None:
        """Grow the pool until at least `slots` slots are free."""
        while self.state.pool.free[1] < slots:
            self.state = self.state._replace(pool=grown(self.state.pool))

    def run(self, flags: Flags, order: np.ndarray, steps: int) -> int:
        """Run the compiled loop, enlarging the pool whenever it is full; returns the code of why the loop ended."""
        P, counters = self.problem, self.state.counters
        driver = uniform_drawn_ahead(self.stepper) if flags.sampler == UNIFORM else self.stepper
        while True:
            self.check_stop()
            called = int(counters[ORACLE_CALLS])
            piece, last_call = min(steps, self.pace.begin()), min(flags.stop_calls, called + self.call_pace.begin())
            made, why = driver(P, self.state, flags._replace(stop_calls=last_call), self.rng, order[:piece], piece)
            self.pace.end(made)
            self.call_pace.end(int(counters[ORACLE_CALLS]) - called)
            steps, order = steps - made, order[made:]
            if why == POOL_FULL:
                self.make_room(1)
            elif why == CALLS_REACHED and counters[ORACLE_CALLS] < flags.stop_calls:
                continue
            elif why != DONE or steps == 0:
                return int(why)

    def warm_up(self) -> None:
        """Compile or load every function that a solve calls, so that seconds exclude compilation; changes no result."""
        if not self.fresh:
            self.rebase()
        P, S = self.problem, self.state
        load_exact(P)
        nothing = self.flags(stop_calls=0), self.rng, np.empty(0, np.int64), 0
        self.stepper(P, S, *nothing)
        pack(empty_pool(0, 0, S.pool.labels.shape[1], P.truth.dtype), P.label_ptr[:1])
        if self.caching:
            self.keep(np.empty(0, np.int64), np.empty((0, S.pool.labels.shape[1]), P.truth.dtype), np.empty(0))

    def left_for_oracle(self, bound: float) -> float:
        """The part of a bound on the gap that the slack of the oracle's bounds leaves to the optimiser; all if exact."""
        return max(bound - self.at.slack, FAINT * bound)

    def hopeless(self, bound: float) -> Status | None:
        """BOUND_LIMIT if an exact pass missed `bound` only because of the slack of the oracle's bounds, otherwise None."""
        at = self.at
        return (
            Status.BOUND_LIMIT if at.slack > (1.0 - 2.0 * FAINT) * bound and at.exact_total <= FAINT * bound else None
        )

    # -- committed state ----------------------------------------------------------------------------------------------
    def packed(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """The arrays of `specs`, and attributes; call at a rebase point only."""
        supports, S = pack(self.state.pool, self.problem.label_ptr), self.state
        arrays = {
            "support_offset": supports.offset,
            "support_alpha": supports.alpha,
            "support_loss": supports.losses,
            "support_used": supports.used,
            "support_label": supports.label,
            "label_offset": supports.label_offset,
            "block_gap": S.gap.copy(),
            "counters": S.counters.copy(),
            "trace": self.packed_trace(),
            **{name: np.array(array) for name, array in self.own_arrays().items()},
        }
        attrs = {"counts": dataclasses.asdict(self.at), "rng": packed_rng(self.rng)}
        return arrays, attrs

    @classmethod
    def restored(
        cls,
        problem: Problem,
        options: Any,
        seed: int,
        arrays: Mapping[str, np.ndarray],
        attrs: Mapping[str, Any],
        *,
        own_primal: bool = True,
        spread: Spread = HERE,
    ) -> Self:
        """The method at a committed rebase point; ValueError, naming the array, if one does not fit the problem."""
        names = ("support_offset", "support_alpha", "support_loss", "support_used", "support_label", "label_offset")
        supports = Supports(*(arrays[name] for name in names))
        check_state(problem, supports, arrays)
        state = restored_state(problem, supports, cls.averages(options), cls.stores_mu(options))
        state.gap[:], state.counters[:] = arrays["block_gap"], arrays["counters"]
        rng, at, trace = restored_rng(attrs["rng"]), cls.counts(**attrs["counts"]), restored_trace(arrays["trace"])
        found = cls(problem, options, state, rng, seed, at, trace, spread, fresh=True, own_primal=own_primal)
        found.restore_own(arrays)
        return found
