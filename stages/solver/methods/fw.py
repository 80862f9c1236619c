"""Batch Frank-Wolfe: all blocks move together towards the corners of one exact pass (LJ13 Alg. 2; S15 Alg. 1).

Iteration k = 0, 1, ... at one lambda calls the max-oracle of every block at w, which gives the corners y_i* and the duality
gap sum_i g_i, and then moves all blocks by the same gamma:

    alpha_i <- (1 - gamma) alpha_i + gamma e(y_i*),    delta_i = m(y_i*) - mu_i,
    gamma = clip(lambda n^2 sum_i g_i / ||sum_i B_i delta_i||^2, 0, 1)    with `solver.line_search`,
    gamma = 2 / (k + 2)                                                   without.

Either way D* - D <= 2 C / (k + 2) after k iterations, and the smallest gap so far is at most 27 C / (4 (k + 2)), with the
curvature C <= 4 R^2 / lambda, R = max ||psi_i(y)|| (LJ13 Theorem 1; Jaggi, ICML 2013, Theorems 1 and 2). An iteration costs
one effective pass, and its gap costs nothing more; its time grows with the number of labellings that have weight. The fixed
step begins with gamma = 1 at every lambda, so that little is left of the point that it starts from.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gapwise.stages.solver.batch_step import LINE_SEARCH, batch_driver, batch_step
from gapwise.stages.solver.block_method import BlockMethod
from gapwise.stages.solver.capabilities import MethodCapabilities
from gapwise.stages.solver.codes import STEPS
from gapwise.stages.solver.counts import NEVER, BlockCounts
from gapwise.stages.solver.objective import Certificate
from gapwise.stages.solver.options import MethodOptions, Status
from gapwise.stages.solver.oracles import load_exact
from gapwise.stages.solver.supports import drop_unused


@dataclass
class Options(MethodOptions):
    """The options of batch Frank-Wolfe."""

    line_search: bool = True
    """Whether gamma maximises the dual objective; if not, it is 2 / (k + 2)."""

    @property
    def capabilities(self) -> MethodCapabilities:
        """Norms and inner products of weights are those of `problems.metric`."""
        return MethodCapabilities(any_metric=True)


@dataclass
class IterationCounts(BlockCounts):
    """The scalars of batch Frank-Wolfe."""

    iterations: int = 0
    """k: iterations at this lambda."""


@dataclass
class FrankWolfe(BlockMethod):
    """An exact pass and a step of all blocks, in turn; every iteration begins at a rebase point."""

    counts = IterationCounts
    options: Options

    @property
    def caching(self) -> bool:
        """Only labellings with weight are kept."""
        return False

    def advance(
        self, tolerance: float, relative: bool, exact: bool, started: float
    ) -> tuple[Status, Certificate] | None:
        """One iteration: the exact pass, which may end the solve, and the step towards its corners."""
        point, found = self.due_pass(tolerance * (max(self.at.dual, 0.0) if relative else 1.0), exact)
        if found is None and point.gap > tolerance * (max(point.dual, 0.0) if relative else 1.0):
            point, found = self.exact_pass()
        self.record(point, started)
        bound = tolerance * (max(point.dual, 0.0) if relative else 1.0)
        status = Status.CONVERGED if point.gap <= bound else self.limit() or self.hopeless(bound)
        if status or found is None:
            return status or Status.CONVERGED, point
        batch_step(self, found, LINE_SEARCH if self.options.line_search else 2.0 / (self.at.iterations + 2.0))
        drop_unused(self.state.pool, NEVER)  # a step of 1 leaves the old labellings without weight
        self.at.iterations += 1
        self.state.counters[STEPS] += self.problem.n
        return None

    def start_lambda(self, lam: float, breakpoint: int, *, exact_due: bool = False) -> None:
        """Begin another lambda; the fixed step begins anew."""
        super().start_lambda(lam, breakpoint, exact_due=exact_due)
        self.at.iterations = 0

    def rebuild_tree(self) -> None:
        """Blocks are not sampled."""

    def warm_up(self) -> None:
        """Compile or load every function that a solve calls; changes no result."""
        if not self.fresh:
            self.rebase()
        P, S = self.problem, self.state
        load_exact(P)
        corner, zeros = np.zeros((P.n, S.pool.labels.shape[1]), P.truth.dtype), np.zeros(P.n)
        batch_driver(P)(P, S, self.scale, corner, zeros, zeros, np.zeros(P.d), NEVER, LINE_SEARCH)  # slope 0: no step
        drop_unused(S.pool, 0)


METHOD = FrankWolfe
