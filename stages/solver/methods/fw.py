"""Batch Frank-Wolfe: all blocks move together towards the vertices of one exact pass (LJ13 Alg. 2; S15 Alg. 1).

Iteration k = 0, 1, ... at one lambda calls the max-oracle of every block at w, which gives the vertices y_i* and the duality
gap sum_i g_i, and then moves all blocks by the same gamma:

    alpha_i <- (1 - gamma) alpha_i + gamma e(y_i*),    delta_i = m(y_i*) - mu_i,
    gamma = clip(lambda n^2 sum_i g_i / ||sum_i B_i delta_i||^2, 0, 1)    with `solver.line_search`,
    gamma = 2 / (k + 2)                                                   without.

Either way D* - D <= 2 C / (k + 2) after k iterations, and the smallest gap so far is at most 27 C / (4 (k + 2)), with the
curvature C <= 4 R^2 / lambda, R = max ||psi_i(y)|| (LJ13 Theorem 1; Jaggi, ICML 2013, Theorems 1 and 2). An iteration costs
one effective pass, and its gap costs nothing more; its time grows with the number of labellings that have weight. The fixed
step begins with gamma = 1 at every lambda, so that little is left of the point that it starts from.

Along the vertices of an approximate oracle the dual may rise less than the gaps say. There the slope of the line search is
sum_i (L_i(y_i*) - ell_i) + <w, sum_i B_i delta_i>, and where that is not above 0, the lambda ends with `STALLED`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from gapwise.stages.solver.batch_step import LINE_SEARCH, batch_step, warm_up
from gapwise.stages.solver.block_method import block_method
from gapwise.stages.solver.capabilities import MethodCapabilities
from gapwise.stages.solver.codes import STEPS
from gapwise.stages.solver.counts import NEVER
from gapwise.stages.solver.exact import due_pass, exact_pass, judged
from gapwise.stages.solver.iterate import Iterate
from gapwise.stages.solver.options import CacheOptions, MethodOptions, Status
from gapwise.stages.solver.oracles import load_exact
from gapwise.stages.solver.schedule import Ended, Goal, Schedule
from gapwise.stages.solver.setup import Setup
from gapwise.stages.solver.steps import FW, StepRule
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
class IterationCounts:
    """The scalars of batch Frank-Wolfe."""

    iterations: int = 0
    """k: iterations at this lambda."""


def setup_of(options: Options) -> Setup:
    """Only labellings with weight are kept, and blocks are not sampled."""
    return Setup(StepRule(FW), CacheOptions(), sampled=False)


@dataclass
class FrankWolfe:
    """An exact pass and a step of all blocks, in turn; every iteration begins at a rebase point."""

    it: Iterate
    options: Options
    counts: IterationCounts = field(default_factory=IterationCounts)

    def advance(self, goal: Goal) -> Ended | None:
        """One iteration: the exact pass, which may end the solve, and the step towards its vertices (LJ13 Alg. 2)."""
        it = self.it
        point, answers = due_pass(it, goal)
        if answers is None and point.gap > goal.bound(point.dual):
            point, answers = exact_pass(it)
        it.ledger.record(point)
        status = judged(it, point, goal)
        if status or answers is None:
            return status or Status.CONVERGED, point
        gamma = LINE_SEARCH if self.options.line_search else 2.0 / (self.counts.iterations + 2.0)
        if not batch_step(it, answers, gamma):
            return Status.STALLED, point
        drop_unused(it.state.pool, NEVER)  # a step of 1 leaves the old labellings without weight
        self.counts.iterations += 1
        it.state.counters[STEPS] += it.problem.n
        return None

    def start(self) -> None:
        """The fixed step begins anew."""
        self.counts.iterations = 0

    def warm_up(self) -> None:
        """Compile or load every function that a solve calls; changes no result."""
        load_exact(self.it.problem)
        warm_up(self.it)


def schedule_of(it: Iterate, options: Options, own_primal: bool) -> Schedule:
    """The schedule of `FrankWolfe`."""
    method = FrankWolfe(it, options)
    return Schedule(method.advance, method.start, warm_up=method.warm_up, counts=method.counts)


METHOD = block_method(schedule_of, setup_of)
