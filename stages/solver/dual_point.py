"""The dual point of block-coordinate methods, and what follows from it: ell, u, w, gaps (O16 Alg. 2, 5).

The point is a list of labellings with weights for each block (`supports.Pool`). At a *rebase point* ell, u and w are
recomputed from the pool in a fixed order; only there can the state be committed. So an uninterrupted solve and a resumed
one perform the same computation, bit by bit. Nothing here decides what comes next: that is a method (`methods`).

A *proximal centre* y with weight kappa > 0 shifts u and changes the scale of steps (`catalyst`):

    u = (kappa y + lambda v) / (lambda + kappa),  w = clip(u),  v = ((lambda + kappa) u - kappa y) / lambda.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from gapwise.records import Facts, Json
from gapwise.stages.problems.moves import norm2_of, own_metric
from gapwise.stages.problems.protocol import Problem
from gapwise.stages.problems.stored import check_array
from gapwise.stages.solver.block.by_margins import Margins, worth_keeping
from gapwise.stages.solver.block.sampling import lipschitz_weights, tree_rebuild
from gapwise.stages.solver.codes import AVERAGED, LIPSCHITZ, MAX_GAP, PAIRWISE
from gapwise.stages.solver.counts import Arrays, ArraySpec, Counts
from gapwise.stages.solver.exact import cached_driver
from gapwise.stages.solver.ledger import Ledger, packed_rng, restored_rng, restored_trace
from gapwise.stages.solver.objective import dual_value
from gapwise.stages.solver.oracles import Answers
from gapwise.stages.solver.proximal import dual_norms
from gapwise.stages.solver.running import Flags, State
from gapwise.stages.solver.state import (
    check_state,
    derive,
    new_state,
    pool_of,
    truth_driver,
    truth_pool,
)
from gapwise.stages.solver.supports import (
    Pool,
    Supports,
    drop_unused,
    empty_pool,
    grown,
    keep_listed,
    keep_vertices,
    normalise,
    pack,
    repack,
)

SPECS: tuple[ArraySpec, ...] = (
    ("support_offset", ("block_edge",), "i8", "atoms of block i are support_offset[i]:support_offset[i + 1]"),
    ("support_used", ("atom",), "i8", "step at which the labelling was last chosen"),
    ("support_alpha", ("atom",), "f8", "weight of a labelling in its block's dual variable"),
    ("support_loss", ("atom",), "f8", "task loss of the labelling"),
    ("support_label", ("label",), "label", "labels of all atoms, end to end"),
    ("label_offset", ("atom_edge",), "i8", "labels of atom a are label_offset[a]:label_offset[a + 1]"),
    ("block_gap", ("block",), "f8", "last known block gaps; inf where never computed"),
    ("counters", ("counter",), "i8", "steps, oracle calls, cached steps, averaged steps"),
    ("centre", ("centre_feature",), "f8", "proximal centre y; empty where kappa is 0"),
    ("trace", ("row", "column"), "f8", "one row per certificate; columns in the attribute trace_columns"),
)

FEATURES, DISTANCES, MARGINS = "features", "distances", "margins"
"""Names of what serves steps: `block.by_features`, `block.pairs`, `block.by_margins`."""

NOWHERE = np.empty(0)
NO_POOL = empty_pool(0, 0, 0, np.dtype(np.uint8))


@dataclass
class DualPoint:
    """A dual point by blocks, at one lambda."""

    problem: Problem
    options: Flags
    """The options of the method; `flags` has them at the present lambda."""
    state: State
    rng: np.random.Generator
    seed: int
    ledger: Ledger
    fresh: bool = False
    """True right after a restore: the state is already at a rebase point."""
    n_best: int = 1
    """Labellings that an oracle call of an exact pass returns."""
    centre: np.ndarray = field(default_factory=lambda: NOWHERE)
    """float64, (d,): the proximal centre while kappa > 0."""
    keeps_margins: bool = field(init=False)
    """Whether margin vectors serve the steps from the last rebase point on."""
    margins: Margins | None = None
    """Margin vectors of the atoms, where steps take them."""
    weights: np.ndarray = field(default_factory=lambda: NOWHERE)
    """float64, (d,): the primal point of the last certificate; empty before the first."""
    hinges: np.ndarray = field(default_factory=lambda: NOWHERE)
    """float64, (n,): hinges of the blocks at the last exact pass, or the bounds on them that the structure offers."""

    def __post_init__(self) -> None:
        self.ledger.counters = self.state.counters
        self.choose_views()

    def choose_views(self) -> None:
        """Take margin vectors, if they may serve and save time, or features; depends only on what is committed."""
        self.keeps_margins = self.pairwise and worth_keeping(self.problem, int(self.state.pool.counts.sum()))

    @property
    def pairwise(self) -> bool:
        """Whether all moves are between cached labellings, without an average: margins or distances may serve them."""
        return self.options.kinds == PAIRWISE and self.options.cache and not self.options.average

    @property
    def views(self) -> tuple[str, str]:
        """What serves the steps that may call the oracle, and those between labellings that a block has."""
        if self.keeps_margins:
            return MARGINS, MARGINS
        return FEATURES, DISTANCES if self.pairwise else FEATURES

    @property
    def counts(self) -> Counts:
        """The scalars."""
        return self.ledger.counts

    def flags(self, **other: Any) -> Flags:
        """The options as compiled steps read them at present; `other` replaces some."""
        return self.options._replace(**{"scale": self.scale, "exact_total": self.counts.exact_total, **other})

    # -- the point ----------------------------------------------------------------------------------------------------
    @property
    def scale(self) -> float:
        """1 / ((lambda + kappa) n), the step's factor in u += scale B_i delta."""
        return float(1.0 / ((self.counts.lam + self.counts.kappa) * self.problem.n))

    @property
    def known_gap(self) -> float:
        """Sum of the last known block gaps; inf until every block has been visited."""
        return float(np.sum(self.state.gap))

    def v_and_weights(self) -> tuple[np.ndarray, np.ndarray]:
        """(v, clip(v)) of the current alpha; v = (1/lambda n) sum_i B_i (m_i(y_i) - mu_i)."""
        counts, S, P = self.counts, self.state, self.problem
        if counts.kappa == 0.0:
            return S.u, (S.w if P.lower.size else S.u)
        v = ((counts.lam + counts.kappa) * S.u - counts.kappa * self.centre) / counts.lam
        return v, (np.clip(v, P.lower, P.upper) if P.lower.size else v)

    def dual_and_excess(self, w: np.ndarray | None = None) -> tuple[float, float]:
        """D(alpha), and the excess of the gap of (w, alpha) over the block gaps; w (d,) defaults to the current one.

        P(w) - D(alpha) = sum_i g_i(w) + (lambda/2) (||w - v||^2 - ||clip(v) - v||^2); the excess is 0 at w = clip(v).
        """
        P, S, counts = self.problem, self.state, self.counts
        w = S.w if w is None else w
        if counts.kappa > 0.0 and not P.lower.size and not own_metric(P):  # v is not laid out
            norm2, distance2 = dual_norms(S.u, self.centre, counts.kappa / counts.lam, w)
            return float(S.z_ell[1] - 0.5 * counts.lam * norm2), float(0.5 * counts.lam * distance2)
        v, w_v = self.v_and_weights()
        dual = dual_value(float(S.z_ell[1]), v, w_v, counts.lam, P.lower, P.upper, norm2_of(P, w_v))
        if w is w_v:
            return dual, 0.0
        excess = norm2_of(P, w - v) - (norm2_of(P, w_v - v) if P.lower.size else 0.0)
        return dual, 0.5 * counts.lam * excess

    def dual_value(self) -> float:
        """D(alpha) at present."""
        return self.dual_and_excess()[0]

    def dual_weights(self) -> np.ndarray:
        """(d,): w(alpha) = clip(v)."""
        return np.array(self.v_and_weights()[1])

    def primal(self) -> np.ndarray:
        """(d,): the w of the last certificate, or the current one."""
        return self.weights if self.weights.size else self.state.w

    def supports(self) -> Supports:
        """The dual point: every block's labellings of positive weight, and their weights."""
        return pack(self.state.pool, self.problem.label_ptr, active_only=True)

    # -- derived quantities -------------------------------------------------------------------------------------------
    def rebase(self) -> None:
        """Normalise the pool, recompute ell, u, w from it, and rebuild the sampling tree."""
        if not self.fresh:
            repack(self.state.pool)
            normalise(self.state.pool)
        self.fresh = False
        self.choose_views()
        self.margins = Margins.at_rebase(self.margins, self.problem, self.state.pool, self.keeps_margins)
        self.derive()
        self.rebuild_tree()

    def derive(self) -> None:
        """ell, u and w from the pool."""
        margins, counts = self.margins_of_all(), self.counts
        fill = None if margins is None else margins.derive
        share = self.centre * (counts.kappa / (counts.lam + counts.kappa)) if counts.kappa > 0.0 else None
        derive(self.problem, self.state, self.scale, share, fill, self.ledger.over_blocks)

    def margins_of_all(self) -> Margins | None:
        """The margin vectors, with room made for those of all atoms; None if there cannot be so many."""
        if self.margins is None or not self.margins.holds(self.state.pool):
            return None
        self.margins.make_room(self.state.pool)
        return self.margins

    def rebuild_tree(self) -> None:
        """Rebuild the sampling tree from the current gaps."""
        tree_rebuild(self.state.tree, self.options.sampler == MAX_GAP, self.options.degree, self.state.gap)

    def cached_gaps(self, w: np.ndarray) -> np.ndarray:
        """float64, (n,): block gaps at w (d,) over cached labellings, lower bounds on the exact ones."""
        P, gap, margins = self.problem, np.empty(self.problem.n), self.margins_of_all()
        run = cached_driver(P) if margins is None else margins.gaps
        self.ledger.over_blocks(lambda start, stop: run(P, self.state.pool, w, gap, start, stop), P)
        return gap

    def cached_gap(self, w: np.ndarray) -> float:
        """The gap of (w, alpha) over cached labellings, a lower bound on the exact gap."""
        return float(np.sum(self.cached_gaps(w))) + self.dual_and_excess(w)[1]

    # -- labellings ---------------------------------------------------------------------------------------------------
    def make_room(self, slots: int) -> None:
        """Grow the pool until at least `slots` slots are free."""
        if self.state.pool.free[1] < slots:
            columns, self.state = list(self.state.pool), self.state._replace(pool=NO_POOL)  # freed one by one
            self.state = self.state._replace(pool=grown(columns, slots))

    def keep(self, blocks: np.ndarray, answers: Answers) -> None:
        """Put the oracle's answers for `blocks` into the cache."""
        self.make_room(blocks.size)
        steps, capacity, label_ptr = self.ledger.steps, self.options.capacity, self.problem.label_ptr
        keep_vertices(label_ptr, self.state.pool, blocks, answers.vertex, answers.losses, steps, capacity)
        if answers.m > 1:
            self.make_room(int(np.sum(answers.counts)))
            keep_listed(label_ptr, self.state.pool, blocks, answers, steps, capacity)

    def mark_pass(self, most: int) -> None:
        """A pass is over: drop the labellings without weight that the last `most` passes have not chosen."""
        self.counts.marks = [*self.counts.marks, self.ledger.steps][-most:]
        if len(self.counts.marks) == most:
            drop_unused(self.state.pool, self.counts.marks[0])

    # -- another lambda -----------------------------------------------------------------------------------------------
    def begin_lambda(self, lam: float, breakpoint: int, exact_due: bool) -> None:
        """Begin another lambda with the dual point of the pool; unknown gaps are inf."""
        counts, S = self.counts, self.state
        self.ledger.begin_lambda(lam, breakpoint)
        counts.exact_due, counts.last_refresh = exact_due, self.ledger.steps
        counts.exact_total = self.known_gap if np.isfinite(self.known_gap) else 1.0
        S.counters[AVERAGED] = 0

    def move_to(self, lam: float, warm_start: str) -> None:
        """Go to another lambda; `warm_start` says what to keep: keep_primal, keep_dual or none (O16 Alg. 6)."""
        counts, P = self.counts, self.problem
        if warm_start == "keep_primal":  # the same w; block gaps follow exactly (O16 section 4)
            if not lam <= counts.lam:
                raise ValueError(f"path: keep_primal needs decreasing lambdas; {lam:g} follows {counts.lam:g}")
            self.make_room(P.n)
            arguments = P, self.state, lam / counts.lam, self.options.capacity
            self.ledger.over_blocks(lambda start, stop: truth_driver(P)(*arguments, start, stop), P)
        elif warm_start == "keep_dual":  # the same alpha; gaps from cached labellings, without an oracle call
            counts.lam = lam
            self.derive()
            self.state.gap[:] = self.cached_gaps(self.state.w) if self.options.cache else np.inf
        else:  # w = 0
            self.state = self.state._replace(pool=truth_pool(P))
            self.state.gap[:] = np.inf

    # -- committed state ----------------------------------------------------------------------------------------------
    def packed(self) -> tuple[dict[str, np.ndarray], dict[str, Json]]:
        """The arrays of `SPECS`, and attributes; call at a rebase point only."""
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
            "centre": self.centre.copy(),
            "trace": self.ledger.packed_trace(),
        }
        return arrays, {"counts": dataclasses.asdict(self.counts), "rng": packed_rng(self.rng)}

    @classmethod
    def begun(cls, problem: Problem, options: Flags, pool: Pool, seed: int, ledger: Ledger) -> Self:
        """The dual point of `pool`."""
        return cls(problem, options, state_of(problem, options, pool), np.random.default_rng(seed), seed, ledger)

    @classmethod
    def restored(
        cls, problem: Problem, options: Flags, seed: int, arrays: Arrays, attrs: Facts, ledger: Ledger
    ) -> Self:
        """The dual point of a commit; ValueError, naming the array, if one does not fit the problem."""
        names = ("support_offset", "support_alpha", "support_loss", "support_used", "support_label", "label_offset")
        supports = Supports(*(arrays[name] for name in names))
        check_state(problem, supports, arrays)
        state = state_of(problem, options, pool_of(problem, supports))
        state.gap[:], state.counters[:] = arrays["block_gap"], arrays["counters"]
        ledger.counts, ledger.trace = Counts(**attrs["counts"]), restored_trace(arrays["trace"])
        point = cls(problem, options, state, restored_rng(attrs["rng"]), seed, ledger, fresh=True)
        centre = (problem.d if point.counts.kappa > 0.0 else 0,)
        point.centre = check_array("centre", arrays["centre"], centre, float, finite=True)
        return point


def state_of(problem: Problem, options: Flags, pool: Pool) -> State:
    """A new state around `pool`, with the running sums of the weights by which blocks are drawn, if these never change."""
    state = new_state(problem, pool)
    return state._replace(sums=np.cumsum(lipschitz_weights(problem))) if options.sampler == LIPSCHITZ else state
