"""Stochastic subgradient descent on the primal: no dual point, so nothing is certified.

Shalev-Shwartz, Singer, Srebro, *Pegasos: Primal Estimated sub-GrAdient SOlver for SVM*, ICML 2007; for structures and with
the weighted average: LJ13 section 5. Step t = 1, 2, ... at one lambda draws a block i uniformly, calls its max-oracle at w
and goes against a subgradient of (lambda / 2) ||w||^2 + h_i(w):

    w_t = clip((1 - 1/t) w_{t-1} + psi_i(y*) / (lambda t)).

With `averaging=weighted` the solution is the average of w_1, ..., w_T, with weights 2t / (T (T + 1)). The expected
suboptimality is O(log T / (lambda T)) at w_T and O(1 / (lambda T)) at the average. The first step forgets where it began.

Without bounds no step takes O(d) operations: w_t = s_t / (lambda t) with s_t = s_{t-1} + psi_i(y*), and the average is
2 (T s_T - z_T) / (lambda T (T + 1)) with z_t = z_{t-1} + (t - 1) psi_i(y*). With bounds w and the average are stored as they
are, and a step takes O(d).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from gapwise.stages.problems.moves import pair_move
from gapwise.stages.problems.simd import one_type
from gapwise.stages.solver.codes import AVERAGED, ORACLE_CALLS
from gapwise.stages.solver.counts import ArraySpec
from gapwise.stages.solver.primal import PrimalMethod, PrimalOptions
from gapwise.stages.solver.running import clip_into


@dataclass
class Options(PrimalOptions):
    """The options of stochastic subgradient descent."""

    averages: ClassVar[tuple[str, ...]] = ("none", "weighted")


class Running(NamedTuple):
    """The running solution at one lambda."""

    vector: np.ndarray
    """float64, (d,): s; with bounds w itself"""
    average: np.ndarray
    """float64, (d,) or (0,) without averaging: z; with bounds the average itself"""

    def visit(self, P, work, counters, lam, i):
        """A step along psi_i(y*)."""
        first, last, size = P.label_ptr[i], P.label_ptr[i + 1], P.local_ptr[i + 1] - P.local_ptr[i]
        t, theta, y, truth = (
            counters[AVERAGED] + 1.0,
            work.theta[:size],
            work.y[: last - first],
            one_type(P.truth[first:last]),
        )
        P.scores(i, self.vector, theta)
        counters[ORACLE_CALLS] += 1
        if P.lower.size == 0:
            scale = 1.0 / (lam * (t - 1.0)) if t > 1.0 else 0.0
            for j in range(size):
                theta[j] *= scale
            P.max_oracle(i, theta, y, work.oracle)
            pair_move(P, i, 1.0, truth, y, work.delta[:size], self.vector)
            if self.average.size > 0:
                pair_move(P, i, t - 1.0, truth, y, work.delta[:size], self.average)
            return
        P.max_oracle(i, theta, y, work.oracle)
        for j in range(self.vector.size):
            self.vector[j] *= 1.0 - 1.0 / t
        pair_move(P, i, 1.0 / (lam * t), truth, y, work.delta[:size], self.vector)
        clip_into(self.vector, P.lower, P.upper, self.vector)
        for j in range(self.average.size):
            self.average[j] += 2.0 / (t + 1.0) * (self.vector[j] - self.average[j])


SPECS: tuple[ArraySpec, ...] = (
    ("vector", ("feature",), "f8", "sum of the subgradient steps, a multiple of w; with bounds w itself"),
    ("average", ("average_feature",), "f8", "running sum of the weighted average; empty without one"),
)


class Subgradient(PrimalMethod[Options]):
    """Stochastic subgradient descent."""

    specs = (*PrimalMethod.specs, *SPECS)

    def begun(self) -> Running:
        """At w = 0, or the point of the box that is nearest to it."""
        P, averages = self.problem, self.options.averaging != "none"
        vector = np.clip(0.0, P.lower, P.upper) if P.lower.size else np.zeros(P.d)
        return Running(vector, np.zeros(P.d if averages else 0))

    def solution(self, steps: int) -> np.ndarray:
        """(d,): the average, if there is one; otherwise w."""
        S, lam = self.running, self.counts.lam
        if steps == 0 or self.problem.lower.size:
            return np.array(S.average if S.average.size and steps > 0 else S.vector)
        if not S.average.size:
            return np.array(S.vector * (1.0 / (lam * steps)))
        return np.array((steps * S.vector - S.average) * (2.0 / (lam * steps * (steps + 1.0))))


METHOD = Subgradient
