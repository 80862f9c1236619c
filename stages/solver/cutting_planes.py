"""What both cutting-plane methods share: an iteration, the planes, the restricted problem, commits.

An iteration calls the max-oracle of every block at one w, which is an exact pass and gives the certificate. It adds the
planes found, maximises the dual over the weights of all planes (`simplex_qp`), and goes to the w of the solution. With the
slopes a_k and offsets b_k of `planes` and their Gram matrix G_kl = <a_k, a_l>,

    D(beta) = <b, beta> - (1 / 2 lambda) ||sum_k beta_k a_k||^2 = <b, beta> - (1 / 2 lambda) <beta, G beta>.

G grows by a row per plane and is kept. Planes that have had no weight for `unused_iterations` iterations are dropped, and
with them their row of G and the labellings that no other plane has.

The certificate does not depend on the quadratic program. Its answer is made feasible, the block weights alpha follow from
beta, and all that is reported is recomputed from alpha (`state.derive`): D(alpha), w(alpha), and P(w) by the exact pass.

*With bounds on w* the dual is D(beta) = min_{w in box} L(w, beta), no longer quadratic. Clipping is a contraction, so its
gradient c_k = b_k - <a_k, w(beta)> changes by at most G / lambda, and

    D(beta') >= D(beta) + <c, beta' - beta> - (1 / 2 lambda) <beta' - beta, G (beta' - beta)>.

The right-hand side has the same G; it is maximised again and again, each time from the new w, which costs no oracle call.
Each time D rises, and where D stops, c satisfies the optimality conditions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from gapwise.stages.problems.parallel import work_before
from gapwise.stages.solver.capabilities import MethodCapabilities
from gapwise.stages.solver.codes import STEPS
from gapwise.stages.solver.counts import NEVER
from gapwise.stages.solver.exact import exact_pass, judged
from gapwise.stages.solver.gaps import ExactGaps
from gapwise.stages.solver.iterate import Iterate, check_falling
from gapwise.stages.solver.objective import Certificate
from gapwise.stages.solver.options import CacheOptions, MethodOptions, Status, check
from gapwise.stages.solver.oracles import load_exact
from gapwise.stages.solver.planes import Planes, atom_scores_driver
from gapwise.stages.solver.schedule import Arrays, Ended, Goal, Schedule
from gapwise.stages.solver.setup import DISTANCES, Setup
from gapwise.stages.solver.simplex_qp import maximise, restricted_gap
from gapwise.stages.solver.state import Sums, chunk_length, derive_driver, truth_pool
from gapwise.stages.solver.steps import PAIRWISE, StepRule
from gapwise.stages.solver.supports import blocks_of, drop_unused, find_atoms, keep_vertices, normalise, repack

WITHIN = 0.1
"""With bounds on w, the restricted problem is solved until its gap is below this share of the last exact gap."""

MOST_ROUNDS = 30
"""The most quadratic programs of an iteration, with bounds on w."""


@dataclass
class PlaneGroup:
    """The group `solver.cutting_plane`."""

    unused_iterations: int = 50
    """Planes without weight for more iterations than this are dropped; SVM-struct's number."""

    def check(self) -> None:
        """Raises ValueError naming the key."""
        most = self.unused_iterations
        check("solver.cutting_plane.unused_iterations", most, most >= 1, "an integer >= 1")


@dataclass
class PlaneOptions(MethodOptions):
    """The options of cutting-plane methods."""

    cutting_plane: PlaneGroup = field(default_factory=PlaneGroup)

    def check(self) -> None:
        """Raises ValueError naming the key."""
        MethodOptions.check(self)
        self.cutting_plane.check()

    @property
    def capabilities(self) -> MethodCapabilities:
        """Norms and inner products of weights are those of `problems.metric`."""
        return MethodCapabilities(any_metric=True)


@dataclass
class PlaneCounts:
    """The scalars of cutting-plane methods."""

    begun: bool = False
    """Whether the planes carry the dual point; before, only the pool does."""


def setup_of(options: PlaneOptions) -> Setup:
    """Exact passes leave their labellings in the pool, which keeps what planes use; no block is drawn."""
    no_cache_rule = CacheOptions(kind="gap", F=0.0, nu=0.0)
    return Setup(
        StepRule(PAIRWISE), no_cache_rule, sampled=False, caching=True, capacity=NEVER, mu=False, cached_view=DISTANCES
    )


Mixture = tuple[np.ndarray, np.ndarray, float]
"""A plane of a dual point: slots, their shares in their blocks, the plane's weight."""


@dataclass(frozen=True)
class Slacks:
    """What a plane is: a joint labelling of all blocks, or a labelling of one (`methods.cutting_plane*`)."""

    pieces: Callable[[Planes, np.ndarray, int], list[np.ndarray]]
    """(planes, atom, slots): the slots `atom`, at most one per block and none of a truth, as planes; without known ones"""
    mixtures: Callable[[np.ndarray, np.ndarray], list[Mixture]]
    """(atom, alpha): the dual point with weights `alpha` on the slots `atom`, as planes"""
    group: Callable[[Planes, np.ndarray], np.ndarray]
    """(planes, block): int64, (K,): the group of each plane, from 0; the weights of a group have a sum of at most 1"""
    wanted: Callable[[ExactGaps], np.ndarray]
    """bool, (n,): the blocks whose labellings are to become planes"""


@dataclass
class CuttingPlanes:
    """Exact passes, each followed by the restricted problem."""

    it: Iterate
    options: PlaneOptions
    own_primal: bool
    slacks: Slacks
    counts: PlaneCounts
    planes: Planes = field(default_factory=Planes.empty)
    truth: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))
    """int64, (n,): the slots of the true labellings, which stay in the pool; derived."""

    # -- labellings ---------------------------------------------------------------------------------------------------
    def rebase(self) -> None:
        """Put atoms into list order, recompute the block states and w from the pool."""
        it = self.it
        it.choose_views()
        if it.fresh:
            it.fresh = False
            self.find_truth()
        else:
            self.tidy()
            normalise(it.state.pool)
        it.derive()

    def make_room(self, slots: int) -> None:
        """Grow the pool until at least `slots` slots are free; atoms may move."""
        if self.it.state.pool.free[1] < slots:
            if self.truth.size:
                self.renumber()
            self.it.make_room(slots)

    def tidy(self) -> None:
        """Put atoms into list order, those of the truth included."""
        it, P = self.it, self.it.problem
        if not self.truth.size:
            self.make_room(P.n)
            every, losses = np.arange(P.n), np.zeros(P.n)
            keep_vertices(P.label_ptr, it.state.pool, every, self.true_rows(), losses, it.ledger.steps, NEVER)
        self.renumber()

    def renumber(self) -> None:
        """Put atoms into list order, and let planes and truths follow."""
        pool = self.it.state.pool
        new = np.full(pool.alpha.size, -1)
        order = repack(pool)
        new[order] = np.arange(order.size)
        self.planes.renumber(new)
        self.find_truth()

    def find_truth(self) -> None:
        """Look the true labellings up."""
        P = self.it.problem
        self.truth = np.empty(P.n, np.int64)
        find_atoms(P.label_ptr, self.it.state.pool, self.true_rows(), np.zeros(P.n), self.truth)

    def true_rows(self) -> np.ndarray:
        """truth's dtype, (n, longest): the true labellings."""
        P = self.it.problem
        rows = np.zeros((P.n, self.it.state.pool.labels.shape[1]), P.truth.dtype)
        rows[np.arange(rows.shape[1]) < np.diff(P.label_ptr)[:, None]] = P.truth
        return rows

    def drop_atoms(self, used: np.ndarray) -> None:
        """Drop the atoms that are neither `used` (slots,), true, new, nor of any weight."""
        pool, now = self.it.state.pool, self.it.ledger.steps
        pool.used[used] = now
        pool.used[self.truth] = now
        drop_unused(pool, now)

    def set_weights(self, alpha: np.ndarray) -> None:
        """Give the atoms the weights `alpha` (slots,), and each truth what its block has left of 1."""
        pool = self.it.state.pool
        block, alpha = blocks_of(pool), alpha.copy()
        alpha[self.truth] = 0.0
        held = block >= 0
        total = np.bincount(block[held], alpha[held], minlength=self.it.problem.n)
        alpha[self.truth] = np.maximum(1.0 - total, 0.0)
        pool.alpha[:] = alpha

    def move_to(self, lam: float, warm_start: str) -> None:
        """Go to another lambda; `warm_start` says what to keep: keep_primal, keep_dual or none."""
        it = self.it
        if warm_start == "keep_primal":  # the same w (O16 section 4)
            check_falling(lam, it.counts.lam)
            self.planes.beta = (lam / it.counts.lam) * self.planes.beta
            self.set_weights((lam / it.counts.lam) * it.state.pool.alpha)
        elif warm_start == "none":
            it.state = it.state._replace(pool=truth_pool(it.problem))
            self.planes, self.truth = Planes.empty(), np.empty(0, np.int64)
        it.state.gap[:] = np.inf

    # -- planes -------------------------------------------------------------------------------------------------------
    def improve(self, answers: ExactGaps) -> bool:
        """Add planes and solve the restricted problem; False if nothing changed."""
        self.begin_planes()
        self.planes.drop_idle(self.options.cutting_plane.unused_iterations)
        slots = self.it.state.pool.alpha.size
        self.drop_atoms(self.planes.used(slots))
        new = self.slacks.pieces(self.planes, self.vertices(answers), slots)
        for atom in new:
            self.add_plane(atom, np.ones(atom.size))
        return self.solve_restricted() or bool(new)

    def vertices(self, answers: ExactGaps) -> np.ndarray:
        """The slots of the labellings that the oracle returned in the `wanted` blocks, without the truths."""
        P, slots = self.it.problem, np.empty(self.it.problem.n, np.int64)
        find_atoms(P.label_ptr, self.it.state.pool, answers.vertex, answers.loss, slots)
        return slots[(slots != self.truth) & self.slacks.wanted(answers)]

    def begin_planes(self) -> None:
        """Turn the dual point that the solve starts from into planes."""
        if self.counts.begun:
            return
        self.counts.begun = True
        alpha = self.it.state.pool.alpha.copy()
        alpha[self.truth] = 0.0
        atom = np.flatnonzero(alpha > 0.0)
        weights = []
        for slots, share, beta in self.slacks.mixtures(atom, alpha[atom]):
            self.add_plane(slots, share)
            weights.append(beta)
        self.planes.beta = np.array(weights, dtype=float)
        self.set_weights(alpha)

    def add_plane(self, atom: np.ndarray, share: np.ndarray) -> None:
        """Add a plane of weight 0, with its row of the Gram matrix."""
        pool, planes, n = self.it.state.pool, self.planes, self.it.problem.n
        alpha, lone = pool.alpha.copy(), np.zeros(pool.alpha.size)
        lone[atom] = share
        self.set_weights(lone)
        scores = self.scores(self.slope())
        pool.alpha[:] = alpha
        row = np.append(planes.averages(scores, n), np.sum(share * scores[atom]) / n)
        planes.add(atom, share, float(np.sum(share * pool.losses[atom])) / n, row)

    def slope(self) -> np.ndarray:
        """float64, (d,): (1/n) sum_i B_i (m_i(y_i) - mu_i) of the weights in the pool; leaves other block states behind."""
        P, S, a = self.it.problem, self.it.state, np.zeros(self.it.problem.d)
        state, sums, chunk = (S.mu, S.by_mu, S.ell), Sums.begin(a), chunk_length(P.d)

        def part(start: int, stop: int) -> None:
            derive_driver(P)(P, S.pool, 1.0 / P.n, *state, sums, chunk, start, stop)

        self.it.ledger.over_blocks(part, P)
        return a

    def scores(self, x: np.ndarray) -> np.ndarray:
        """float64, (slots,): <psi_i(y), x> of all atoms, for x (d,)."""
        P, pool, spread = self.it.problem, self.it.state.pool, self.it.ledger.spread_of_steps
        driver, out = atom_scores_driver(P), np.zeros(pool.alpha.size)
        spread.over_threads(lambda first, last: driver(P, pool, self.truth, x, first, last, out), work_before(P))
        return out

    def solve_restricted(self) -> bool:
        """Maximise the dual over the weights of the planes; False if no better ones were found."""
        it, planes, P = self.it, self.planes, self.it.problem
        if not planes.count:
            return False
        group = self.slacks.group(planes, blocks_of(it.state.pool))
        Q, begin = planes.gram / it.counts.lam, planes.beta
        for _ in range(MOST_ROUNDS if P.lower.size else 1):
            gradient, linear = planes.loss, planes.loss
            if P.lower.size:
                gradient = planes.loss - planes.averages(self.scores(it.state.w), P.n)
                if restricted_gap(gradient, planes.beta, group) <= WITHIN * it.counts.exact_total:
                    break
                linear = gradient + np.sum(Q * planes.beta, axis=1)
            beta = maximise(Q, linear, group, planes.beta)
            if np.array_equal(beta, planes.beta):
                break
            planes.beta = beta
            self.set_weights(planes.alphas(it.state.pool.alpha.size))
            if P.lower.size:
                it.derive()
        return not np.array_equal(begin, planes.beta)

    def warm_up(self) -> None:
        """Compile or load every function that a solve calls, so that seconds exclude compilation; changes no result."""
        P, pool = self.it.problem, self.it.state.pool
        load_exact(P)
        rows, none = np.empty((0, pool.labels.shape[1]), P.truth.dtype), np.empty(0, np.int64)
        keep_vertices(P.label_ptr, pool, none, rows, np.empty(0), self.it.ledger.steps, NEVER)
        find_atoms(P.label_ptr, pool, rows, np.empty(0), none)
        atom_scores_driver(P)(P, pool, self.truth, np.empty(0), 0, 0, np.empty(0))

    def restore(self, arrays: Arrays) -> None:
        """The planes; ValueError, naming the array, if they do not fit the pool."""
        self.planes = Planes.restored(arrays, arrays["support_alpha"].size)


def schedule_of(
    method: CuttingPlanes, improve: Callable[[ExactGaps], bool], warm_up: Callable[[], None] | None = None
) -> Schedule:
    """An exact pass, which may end the solve; then `improve` of the restricted problem with what it found (SVM-struct)."""
    it = method.it

    def advance(goal: Goal) -> Ended | None:
        method.make_room(it.problem.n)
        point, answers = exact_pass(it)
        it.ledger.record(point)
        status = judged(it, point, goal)
        if status:
            return status, point
        changed = improve(answers)
        it.state.counters[STEPS] += 1
        return None if changed else (exhausted(method, point, goal.bound(point.dual)), point)

    return Schedule(
        advance, rebase=method.rebase, move_to=method.move_to, warm_up=warm_up or method.warm_up, counts=method.counts,
        arrays=lambda: method.planes.packed(), restore=method.restore,
    )  # fmt: skip


def exhausted(method: CuttingPlanes, point: Certificate, bound: float) -> Status:
    """The status of a solve whose next iteration would be the last one again, as rounding hides what is left to gain."""
    if method.own_primal:
        return Status.ROUNDING_LIMIT
    raise ArithmeticError(
        f"solver.method={method.options.method}: at lambda {point.lam:.6g} rounding keeps the gap at {point.gap:.3g}, "
        f"above the {bound:.3g} that the path needs there. Use a larger path.eps or path.lambda_min, or another method."
    )
