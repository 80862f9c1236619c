"""Batch Frank-Wolfe: all blocks move together towards the vertices of one exact pass (LJ13 Alg. 2; S15 Alg. 1).

Iteration k = 0, 1, ... at one lambda calls the max-oracle of every block at w, which gives the vertices y_i* and the duality
gap, and then moves all blocks by the same gamma:

    alpha_i <- (1 - gamma) alpha_i + gamma e(y_i*),    v <- v + gamma (w_s - v),    ell <- ell + gamma (ell_s - ell),
    w_s = (1 / lambda n) sum_i psi_i(y_i*),  ell_s = (1/n) sum_i L_i(y_i*),  w = clip(v),
    gamma = clip((ell_s - ell - lambda <w, w_s - v>) / (lambda ||w_s - v||^2), 0, 1)    with `solver.line_search`,
    gamma = 2 / (k + 2)                                                                without.

Either way D* - D <= 2 C / (k + 2) after k iterations, and the smallest gap so far is at most 27 C / (4 (k + 2)), with the
curvature C <= 4 R^2 / lambda, R = max ||psi_i(y)|| (LJ13 Theorem 1; Jaggi, ICML 2013, Theorems 1 and 2). An iteration costs
one effective pass, and its gap costs nothing more; its time grows with the number of labellings that have weight. The fixed
step begins with gamma = 1 at every lambda, so that little is left of the point that it starts from.

The slope in the line search is that along the vertices, whatever an approximate oracle's gaps are. Where it is not above 0,
the lambda ends with `STALLED`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numba import njit

from gapwise.stages.problems.compiled import driver
from gapwise.stages.problems.moves import norm2_of, pair_move, product_of
from gapwise.stages.problems.protocol import JIT, widest_block
from gapwise.stages.problems.simd import one_type
from gapwise.stages.solver.codes import STEPS
from gapwise.stages.solver.counts import NEVER
from gapwise.stages.solver.dual_point import DualPoint
from gapwise.stages.solver.exact import due_pass, exact_pass, judged
from gapwise.stages.solver.method import Ended, Method
from gapwise.stages.solver.objective import Goal
from gapwise.stages.solver.options import MethodOptions, Status
from gapwise.stages.solver.oracles import Answers, load_oracles
from gapwise.stages.solver.running import Flags
from gapwise.stages.solver.supports import drop_unused, find_atoms


@dataclass
class Options(MethodOptions):
    """The options of batch Frank-Wolfe."""

    line_search: bool = True
    """Whether gamma maximises the dual objective; if not, it is 2 / (k + 2)."""

    any_metric: ClassVar[bool] = True


@dataclass
class IterationCounts:
    """The scalars of batch Frank-Wolfe."""

    iterations: int = 0
    """k: iterations at this lambda."""


class FrankWolfe(Method[Options]):
    """An exact pass and a step of all blocks, in turn; every iteration begins at a rebase point."""

    own: IterationCounts

    @classmethod
    def flags(cls, options: Options) -> Flags:
        """Only labellings with weight are kept."""
        return Flags()

    def prepare(self) -> None:
        """No iteration yet."""
        self.own = IterationCounts()

    def advance(self, goal: Goal) -> Ended | None:
        """One iteration: the exact pass, which may end the solve, and the step towards its vertices (LJ13 Alg. 2)."""
        it = self.it
        point, found = due_pass(it, goal)
        if found is None and point.gap > goal.bound(point.dual):
            point, found = exact_pass(it)
        it.ledger.record(point)
        status = judged(it, point, goal)
        if status or found is None:
            return status or Status.CONVERGED, point
        gamma = self.line_search(found.answers) if self.options.line_search else 2.0 / (self.own.iterations + 2.0)
        if gamma <= 0.0:
            return Status.STALLED, point
        self.step(found.answers, gamma)
        self.own.iterations += 1
        it.state.counters[STEPS] += it.problem.n
        return None

    def line_search(self, answers: Answers) -> float:
        """The gamma that raises the dual objective most; 0 or less if none does."""
        P, S, lam = self.it.problem, self.it.state, self.it.counts.lam
        direction = slope_of(self.it, answers.vertex, self.it.scale) - S.u
        slope = float(np.mean(answers.losses)) - float(S.z_ell[1]) - lam * product_of(P, S.w, direction)
        curvature = lam * norm2_of(P, direction)
        return slope / curvature if slope < curvature else min(slope, 1.0)

    def step(self, answers: Answers, gamma: float) -> None:
        """Move the weights of all blocks by gamma; what follows from them is recomputed at the rebase point."""
        it, P, slots = self.it, self.it.problem, np.empty(self.it.problem.n, np.int64)
        it.keep(np.arange(P.n), answers)
        pool = it.state.pool
        find_atoms(P.label_ptr, pool, answers.vertex, answers.losses, slots)
        pool.alpha[:] *= 1.0 - gamma
        pool.alpha[slots] += gamma
        drop_unused(pool, NEVER)  # a step of 1 leaves the old labellings without weight

    def start(self) -> None:
        """The fixed step begins anew."""
        self.own.iterations = 0

    def load(self) -> None:
        """Exact passes and steps."""
        warm_up(self.it)


def slope_of(it: DualPoint, vertex: np.ndarray, c: float) -> np.ndarray:
    """float64, (d,): c sum_i psi_i(vertex_i), for labels `vertex` (n, longest)."""
    P, out = it.problem, np.zeros(it.problem.d)
    it.ledger.over_blocks(lambda start, stop: slope_driver(P)(P, vertex, c, out, start, stop), P)
    return out


def warm_up(it: DualPoint) -> None:
    """Compile or load exact passes, `slope_of`, and what keeps and finds labellings."""
    P, none = it.problem, np.empty(0, np.int64)
    rows = np.empty((0, it.state.pool.labels.shape[1]), P.truth.dtype)
    load_oracles(P)
    slope_driver(P)(P, rows, 1.0, np.empty(0), 0, 0)
    it.keep(none, Answers.empty(P, 0))
    find_atoms(P.label_ptr, it.state.pool, rows, np.empty(0), none)


@driver
def slope_driver(fingerprint: str) -> Callable[..., None]:
    """`slope(P, vertex, c, out, start, stop)`: out += c psi_i(vertex_i), over blocks start to stop - 1."""

    @njit(cache=True, **JIT)
    def slope(P, vertex, c, out, start, stop):
        fingerprint  # noqa: B018
        delta = np.empty(widest_block(P.local_ptr))
        for i in range(start, stop):
            first, last, p = P.label_ptr[i], P.label_ptr[i + 1], P.local_ptr[i + 1] - P.local_ptr[i]
            pair_move(P, i, c, one_type(P.truth[first:last]), vertex[i, : last - first], delta[:p], out)

    return slope


METHOD = FrankWolfe
