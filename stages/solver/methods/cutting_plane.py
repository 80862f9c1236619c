"""The 1-slack cutting-plane method: all blocks share one slack, and a plane is a joint labelling of all of them.

Joachims, Finley, Yu, *Cutting-plane training of structural SVMs*, Machine Learning 2009, Alg. 3, with margin rescaling:

    min  (lambda/2) ||w||^2 + xi   where  (1/n) sum_i <w, psi_i(y_i)> >= (1/n) sum_i L_i(y_i) - xi  for all (y_1, ..., y_n)

with lambda = 1/C and the mean, not the sum, of hinges: P of the other methods, with the same w and the same gap. The most
violated joint labelling consists of the answers of the blocks' max-oracles, so an iteration is one exact pass. To a gap of
eps it takes O(R^2 / (lambda eps)) iterations, whatever n is (Theorem 5). Plane k has a slope a_k = (1/n) sum_i psi_i(y_i^k)
and an offset b_k = (1/n) sum_i L_i(y_i^k). An iteration maximises the dual over the weights of the K planes so far,

    D(beta) = <b, beta> - (1 / 2 lambda) <beta, G beta>,    G_kl = <a_k, a_l>,    beta >= 0,  sum_k beta_k = 1,

of which the true labelling is the first, with a = 0 and b = 0. The dual point of the n blocks has alpha_i(y_i^k) = beta_k:
in the pool every block has K atoms, of which the k-th are plane k, equal ones or not. So the pool is the whole state; a
resumed solve computes the slopes, 8 d bytes each, again from its labels. Every lambda begins at w = 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from gapwise.stages.problems.moves import product_of
from gapwise.stages.problems.protocol import Problem
from gapwise.stages.solver.codes import STEPS
from gapwise.stages.solver.exact import exact_pass, judged
from gapwise.stages.solver.method import Ended, Method
from gapwise.stages.solver.methods.fw import slope_of, warm_up
from gapwise.stages.solver.objective import Goal
from gapwise.stages.solver.options import MethodOptions
from gapwise.stages.solver.oracles import Answers
from gapwise.stages.solver.running import Flags
from gapwise.stages.solver.state import pool_of, truth_pool
from gapwise.stages.solver.supports import Supports

UNUSED_ITERATIONS = 50
"""Planes without weight for more iterations than this are dropped; SVM-struct's number."""

ACCURACY = 0.01
"""Share of the last exact gap to which the quadratic program is solved."""

MOST_STEPS = 10_000
"""Most steps of one quadratic program."""


@dataclass
class Options(MethodOptions):
    """The options of the 1-slack method."""

    any_metric: ClassVar[bool] = True

    def check_problem(self, problem: Problem) -> None:
        """Raises ValueError where weights are bounded: the dual is then no quadratic function."""
        if problem.lower.size:
            raise ValueError("solver.method: cutting_plane takes no bounds on weights; use bcfw or accelerated")


class CuttingPlanes(Method[Options]):
    """Exact passes, each followed by the quadratic program over all planes."""

    @classmethod
    def flags(cls, options: Options) -> Flags:
        """Exact passes leave no labellings in the pool."""
        return Flags()

    def prepare(self) -> None:
        """`slopes`: float64, (d,) each: a_k of all planes, in the order of the pool; empty until they are computed."""
        self.slopes: list[np.ndarray] = []
        self.gram = np.empty((0, 0))

    def advance(self, goal: Goal) -> Ended | None:
        """One iteration: the exact pass, which may end the solve; then the best weights with the plane that it found."""
        it, n = self.it, self.it.problem.n
        planes, pool = int(it.state.pool.counts[0]), it.state.pool
        labels = pool.labels[: n * planes].reshape(n, planes, -1)
        for k in range(len(self.slopes), planes):
            self.add(labels[:, k])
        point, found = exact_pass(it)
        it.ledger.record(point)
        status = judged(it, point, goal)
        if status:
            return status, point
        self.improve(labels, found.answers, ACCURACY * point.gap)
        return None

    def add(self, vertex: np.ndarray) -> None:
        """Add the slope of labels `vertex` (n, longest) and its inner products with all slopes."""
        P = self.it.problem
        self.slopes.append(slope_of(self.it, vertex, 1.0 / P.n))
        self.gram = np.pad(self.gram, (0, 1))
        self.gram[-1] = self.gram[:, -1] = [product_of(P, slope, self.slopes[-1]) for slope in self.slopes]

    def improve(self, labels: np.ndarray, answers: Answers, gap: float) -> None:
        """Add the plane of an exact pass to those with `labels` (n, K, longest), and weigh all anew, to a gap of `gap`."""
        it, P, now, K = self.it, self.it.problem, self.it.ledger.steps, labels.shape[1]
        pool = it.state.pool
        used = np.where(pool.alpha[:K] > 0.0, now, pool.used[:K])
        kept = now - used <= UNUSED_ITERATIONS
        self.slopes, self.gram = [self.slopes[k] for k in np.flatnonzero(kept)], self.gram[np.ix_(kept, kept)]
        self.add(answers.vertex)
        losses = np.column_stack([pool.losses[: P.n * K].reshape(P.n, K)[:, kept], answers.losses])
        beta = np.append(pool.alpha[:K][kept], 0.0)
        better = maximise(self.gram / it.counts.lam, np.mean(losses, axis=0), beta, gap)
        labels = np.append(labels[:, kept], answers.vertex[:, None], axis=1)
        self.set_planes(labels, losses, better, np.append(used[kept], now))
        it.state.counters[STEPS] += 1

    def set_planes(self, labels: np.ndarray, losses: np.ndarray, beta: np.ndarray, used: np.ndarray) -> None:
        """Make the pool that of planes with `labels` (n, K, longest), `losses` (n, K), weights and last uses (K,)."""
        P, (n, planes, longest) = self.it.problem, labels.shape
        length = np.repeat(np.diff(P.label_ptr), planes)
        held = np.arange(longest) < length.reshape(n, planes, 1)
        supports = Supports(
            offset=np.arange(n + 1) * planes, alpha=np.tile(beta, n), losses=losses.ravel(), used=np.tile(used, n),
            label=labels[held], label_offset=np.append(0, np.cumsum(length)),
        )  # fmt: skip
        self.it.state = self.it.state._replace(pool=pool_of(P, supports))

    def start(self) -> None:
        """Begin another lambda at w = 0."""
        self.it.state = self.it.state._replace(pool=truth_pool(self.it.problem))
        self.it.state.gap[:] = np.inf
        self.slopes, self.gram = [], np.empty((0, 0))

    def load(self) -> None:
        """Exact passes and slopes."""
        warm_up(self.it)


def maximise(Q: np.ndarray, f: np.ndarray, start: np.ndarray, gap: float) -> np.ndarray:
    """A feasible point whose value and gap are about those of a maximiser of <f, x> - <x, Q x> / 2 on the simplex.

    Pairwise steps from `start`, towards the largest gradient and from where that raises the value most (Fan, Chen, Lin, JMLR
    2005), end at the duality gap `gap`, at `MOST_STEPS`, or where rounding hides what is left.

    Parameters
    ----------
    Q : (K, K) array
        Positive semidefinite up to rounding.
    f, start : (K,) arrays
        `start` is a point of the simplex.
    """
    x, gradient = start.copy(), f - np.sum(Q * start, axis=1)
    for _ in range(MOST_STEPS):
        to = int(np.argmax(gradient))
        slope = gradient[to] - gradient
        if np.sum(x * slope) <= gap:
            break
        curvature = np.maximum(Q[to, to] + np.diag(Q) - 2.0 * Q[to], 0.0)
        length = np.minimum(x, np.divide(slope, curvature, out=np.full(x.size, np.inf), where=curvature > 0.0))
        rise = length * (slope - 0.5 * length * curvature)
        away = int(np.argmax(rise))
        if rise[away] <= 0.0:
            break
        x[to], x[away] = x[to] + length[away], x[away] - length[away]
        gradient -= length[away] * (Q[to] - Q[away])
    return x


METHOD = CuttingPlanes
