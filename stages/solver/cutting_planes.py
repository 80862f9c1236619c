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

import dataclasses
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from gapwise.stages.parallel import Spread, nothing
from gapwise.stages.solver.block_method import SPECS, BlockMethod
from gapwise.stages.solver.codes import STEPS
from gapwise.stages.solver.counts import NEVER, BlockCounts
from gapwise.stages.solver.gaps import ExactGaps
from gapwise.stages.solver.objective import Certificate
from gapwise.stages.solver.options import MethodOptions, Status, check
from gapwise.stages.solver.oracles import load_exact
from gapwise.stages.solver.planes import SPECS as PLANE_SPECS
from gapwise.stages.solver.planes import Planes, atom_scores_driver, find_atoms
from gapwise.stages.solver.simplex_qp import maximise, restricted_gap
from gapwise.stages.solver.state import chunk_length, derive_driver, truth_pool
from gapwise.stages.solver.supports import blocks_of, drop_unused, keep_corners, normalise, repack

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
        found = self.unused_iterations
        check("solver.cutting_plane.unused_iterations", found, found >= 1, "an integer >= 1")


@dataclass
class PlaneOptions(MethodOptions):
    """The options of cutting-plane methods."""

    cutting_plane: PlaneGroup = field(default_factory=PlaneGroup)

    def check(self) -> None:
        """Raises ValueError naming the key."""
        super().check()
        self.cutting_plane.check()


@dataclass
class PlaneCounts(BlockCounts):
    """The scalars of cutting-plane methods."""

    begun: bool = False
    """Whether the planes carry the dual point; before, only the pool does."""


@dataclass
class CuttingPlanes(BlockMethod):
    """Exact passes, each followed by the restricted problem; a subclass says what a plane is."""

    specs = (*SPECS, *PLANE_SPECS)
    counts = PlaneCounts

    planes: Planes = field(default_factory=Planes.empty)
    truth: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))
    """int64, (n,): the slots of the true labellings, which stay in the pool; derived."""

    # -- what a method decides ----------------------------------------------------------------------------------------
    @abstractmethod
    def pieces(self, atom: np.ndarray) -> list[np.ndarray]:
        """The slots `atom`, at most one per block and none of a truth, as planes; without those that there are."""

    @abstractmethod
    def mixtures(self, atom: np.ndarray, alpha: np.ndarray) -> list[tuple[np.ndarray, np.ndarray, float]]:
        """The dual point with weights `alpha` on the slots `atom` as planes: their slots, shares and weights."""

    @abstractmethod
    def group(self) -> np.ndarray:
        """int64, (K,): the group of each plane, from 0; the weights of a group have a sum of at most 1."""

    # -- what BlockMethod asks ----------------------------------------------------------------------------------------
    @staticmethod
    def stores_mu(options: PlaneOptions) -> bool:
        """Planes consist of labellings."""
        return False

    @property
    def caching(self) -> bool:
        """Exact passes leave their labellings in the pool."""
        return True

    @property
    def capacity(self) -> int:
        """The pool keeps what planes use."""
        return NEVER

    def rebuild_tree(self) -> None:
        """No block is drawn."""

    def rebase(self) -> None:
        """Put atoms into list order, recompute the block states and w from the pool."""
        if self.fresh:
            self.fresh = False
            self.find_truth()
        else:
            self.tidy()
            normalise(self.state.pool)
        self.derive()

    def make_room(self, slots: int) -> None:
        """Grow the pool until at least `slots` slots are free; atoms may move."""
        if self.state.pool.free[1] < slots:
            if self.truth.size:
                self.renumber()
            super().make_room(slots)

    def tidy(self) -> None:
        """Put atoms into list order, those of the truth included."""
        P = self.problem
        if not self.truth.size:
            self.make_room(P.n)
            keep_corners(
                P.label_ptr, self.state.pool, np.arange(P.n), self.true_rows(), np.zeros(P.n), self.steps, NEVER
            )
        self.renumber()

    def renumber(self) -> None:
        """Put atoms into list order, and let planes and truths follow."""
        pool = self.state.pool
        new = np.full(pool.alpha.size, -1)
        order = repack(pool)
        new[order] = np.arange(order.size)
        self.planes.renumber(new)
        self.find_truth()

    def find_truth(self) -> None:
        """Look the true labellings up."""
        P = self.problem
        self.truth = np.empty(P.n, np.int64)
        find_atoms(P.label_ptr, self.state.pool, self.true_rows(), np.zeros(P.n), self.truth)

    def true_rows(self) -> np.ndarray:
        """truth's dtype, (n, longest): the true labellings."""
        P = self.problem
        rows = np.zeros((P.n, self.state.pool.labels.shape[1]), P.truth.dtype)
        rows[np.arange(rows.shape[1]) < np.diff(P.label_ptr)[:, None]] = P.truth
        return rows

    def move_to(self, lam: float, breakpoint: int, warm_start: str) -> None:
        """Begin another lambda; `warm_start` says what to keep: keep_primal, keep_dual or none."""
        at = self.at
        if warm_start == "keep_primal":  # the same w (O16 section 4)
            if not lam <= at.lam:
                raise ValueError(f"path: keep_primal needs decreasing lambdas; {lam:g} follows {at.lam:g}")
            self.planes.beta = (lam / at.lam) * self.planes.beta
            self.set_weights((lam / at.lam) * self.state.pool.alpha)
        elif warm_start == "none":
            self.state = self.state._replace(pool=truth_pool(self.problem))
            self.planes, self.truth = Planes.empty(), np.empty(0, np.int64)
        self.state.gap[:] = np.inf
        self.start_lambda(lam, breakpoint)

    # -- an iteration -------------------------------------------------------------------------------------------------
    def advance(
        self, tolerance: float, relative: bool, exact: bool, started: float
    ) -> tuple[Status, Certificate] | None:
        """An exact pass, which may end the solve; then the restricted problem with the planes that it found."""
        point, found = self.exact_pass()
        self.record(point, started)
        bound = tolerance * (max(point.dual, 0.0) if relative else 1.0)
        status = Status.CONVERGED if point.gap <= bound else self.limit() or self.hopeless(bound)
        if status:
            return status, point
        changed = self.improve(found)
        self.state.counters[STEPS] += 1
        return None if changed else (self.exhausted(point, bound), point)

    def exhausted(self, point: Certificate, bound: float) -> Status:
        """The status of a solve whose next iteration would be the last one again, as rounding hides what is left to gain."""
        if self.own_primal:
            return Status.ROUNDING_LIMIT
        raise ArithmeticError(
            f"solver.method={self.options.method}: at lambda {point.lam:.6g} rounding keeps the gap at {point.gap:.3g}, "
            f"above the {bound:.3g} that the path needs there. Use a larger path.eps or path.lambda_min, or another method."
        )

    def improve(self, found: ExactGaps) -> bool:
        """Add planes and solve the restricted problem; False if nothing changed."""
        self.begin_planes()
        self.planes.drop_idle(self.options.cutting_plane.unused_iterations)
        self.drop_atoms(self.planes.used(self.state.pool.alpha.size))
        new = self.pieces(self.corners(found))
        for atom in new:
            self.add_plane(atom, np.ones(atom.size))
        return self.solve_restricted() or bool(new)

    def corners(self, found: ExactGaps) -> np.ndarray:
        """The slots of the labellings that the oracle returned in the `wanted` blocks, without the truths."""
        P, slots = self.problem, np.empty(self.problem.n, np.int64)
        find_atoms(P.label_ptr, self.state.pool, found.corner, found.loss, slots)
        return slots[(slots != self.truth) & self.wanted(found)]

    def wanted(self, found: ExactGaps) -> np.ndarray:
        """bool, (n,): the blocks whose labellings are to become planes."""
        return np.ones(self.problem.n, bool)

    def begin_planes(self) -> None:
        """Turn the dual point that the solve starts from into planes."""
        if self.at.begun:
            return
        self.at.begun = True
        alpha = self.state.pool.alpha.copy()
        alpha[self.truth] = 0.0
        atom = np.flatnonzero(alpha > 0.0)
        weights = []
        for slots, share, beta in self.mixtures(atom, alpha[atom]):
            self.add_plane(slots, share)
            weights.append(beta)
        self.planes.beta = np.array(weights, dtype=float)
        self.set_weights(alpha)

    def drop_atoms(self, used: np.ndarray) -> None:
        """Drop the atoms that are neither `used` (slots,), true, new, nor of any weight."""
        pool, now = self.state.pool, self.steps
        pool.used[used] = now
        pool.used[self.truth] = now
        drop_unused(pool, now)

    def add_plane(self, atom: np.ndarray, share: np.ndarray) -> None:
        """Add a plane of weight 0, with its row of the Gram matrix."""
        pool, planes, n = self.state.pool, self.planes, self.problem.n
        kept, lone = pool.alpha.copy(), np.zeros(pool.alpha.size)
        lone[atom] = share
        self.set_weights(lone)
        scores = self.scores(self.slope())
        pool.alpha[:] = kept
        row = np.append(planes.averages(scores, n), np.sum(share * scores[atom]) / n)
        planes.add(atom, share, float(np.sum(share * pool.losses[atom])) / n, row)

    def slope(self) -> np.ndarray:
        """float64, (d,): (1/n) sum_i B_i (m_i(y_i) - mu_i) of the weights in the pool; leaves other block states behind."""
        P, S, a = self.problem, self.state, np.zeros(self.problem.d)
        derive_driver(P)(P, S.pool, 1.0 / P.n, S.mu, S.by_mu, S.ell, a, chunk_length(P.d))
        return a

    def scores(self, x: np.ndarray) -> np.ndarray:
        """float64, (slots,): <psi_i(y), x> of all atoms, for x (d,)."""
        P, pool = self.problem, self.state.pool
        driver, out = atom_scores_driver(P), np.zeros(pool.alpha.size)
        spread: Spread = self.spread if self.may_stop else dataclasses.replace(self.spread, check=nothing)
        spread.over_threads(lambda first, last: driver(P, pool, self.truth, x, first, last, out), P.n)
        return out

    def set_weights(self, alpha: np.ndarray) -> None:
        """Give the atoms the weights `alpha` (slots,), and each truth what its block has left of 1."""
        pool, block = self.state.pool, blocks_of(self.state.pool)
        alpha = alpha.copy()
        alpha[self.truth] = 0.0
        held = block >= 0
        total = np.bincount(block[held], alpha[held], minlength=self.problem.n)
        alpha[self.truth] = np.maximum(1.0 - total, 0.0)
        pool.alpha[:] = alpha

    def solve_restricted(self) -> bool:
        """Maximise the dual over the weights of the planes; False if no better ones were found."""
        planes, lam, group, P = self.planes, self.at.lam, self.group(), self.problem
        if not planes.count:
            return False
        Q, begin = planes.gram / lam, planes.beta
        for _ in range(MOST_ROUNDS if P.lower.size else 1):
            gradient, linear = planes.loss, planes.loss
            if P.lower.size:
                gradient = planes.loss - planes.averages(self.scores(self.state.w), P.n)
                if restricted_gap(gradient, planes.beta, group) <= WITHIN * self.at.exact_total:
                    break
                linear = gradient + np.sum(Q * planes.beta, axis=1)
            found = maximise(Q, linear, group, planes.beta)
            if np.array_equal(found, planes.beta):
                break
            planes.beta = found
            self.set_weights(planes.alphas(self.state.pool.alpha.size))
            if P.lower.size:
                self.derive()
        return not np.array_equal(begin, planes.beta)

    def warm_up(self) -> None:
        """Compile or load every function that a solve calls, so that seconds exclude compilation; changes no result."""
        if not self.fresh:
            self.rebase()
        P, pool = self.problem, self.state.pool
        load_exact(P)
        corners, none = np.empty((0, pool.labels.shape[1]), P.truth.dtype), np.empty(0, np.int64)
        keep_corners(P.label_ptr, pool, np.empty(0, np.int64), corners, np.empty(0), self.steps, NEVER)
        find_atoms(P.label_ptr, pool, corners, np.empty(0), none)
        drop_unused(pool, 0)
        atom_scores_driver(P)(P, pool, self.truth, np.empty(0), 0, 0, np.empty(0))

    # -- committed state ----------------------------------------------------------------------------------------------
    def own_arrays(self) -> dict[str, np.ndarray]:
        """The planes."""
        return self.planes.packed()

    def restore_own(self, arrays: Mapping[str, np.ndarray]) -> None:
        """The planes; ValueError, naming the array, if they do not fit the pool."""
        self.planes = Planes.restored(arrays, arrays["support_alpha"].size)
