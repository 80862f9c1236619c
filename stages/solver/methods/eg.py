"""Online exponentiated gradient on the max-margin dual (Collins, Globerson, Koo, Carreras, Bartlett, JMLR 2008).

The gradient of n D with respect to alpha_i(y) is L_i(y) + <theta_i, m_i(y)>, theta_i = B_i^T w. A step on block i multiplies
its weights by the exponential of the gradient and normalises:

    alpha_i(y) <- alpha_i(y) exp(eta_i (L_i(y) + <theta_i, m_i(y)>)) / Z.

All weights stay positive, so they cannot be listed, and no certificate is given; but, as the paper shows, they stay of the
form

    alpha_i(y) proportional to exp(c_i L_i(y) + <sigma_i, m_i(y)>),     sigma_i += eta_i theta_i,  c_i += eta_i,

and all that a step needs of them, mu_i and ell_i, are marginals that the structure sums up (`protocol.Summable`). A
computation of marginals counts as an oracle call. Max-oracles are called in exact passes only, which measure P(w).

*Step sizes.* As in the experiments of the paper, each block has its own, and a step that would lower the dual is not made:
eta_i is halved, and the step is tried again. After a step that raises the dual, eta_i grows by a twentieth. The first value,
`ETA`, may be too large. The change of the dual is at least, without a box exactly, with delta = mu_i' - mu_i,

    (1/n) (ell_i' - ell_i + <theta_i, delta> - scale ||B_i delta||^2 / 2),      scale = 1 / (lambda n).

*The start* is w = 0. The first visit of a block gives it sigma_i = 0, c_i = -`TRUTH` / (least loss of block i): weights fall
by exp(-`TRUTH`) with each wrong entry, so w is small. (Scores `TRUTH` m_i(y_i) may prefer another labelling, because all
tokens of a chain share its transitions.) With the uniform start, c_i = 0, w is of the order 1/lambda; the vertex, at
which other methods start, would never be left.

For max-margin problems the paper proves O(1/epsilon) steps. Weights of labellings that are not in the optimum fall
exponentially, but the closer their gradients are to the largest, the slower.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from gapwise.stages.problems.capabilities import optional_of
from gapwise.stages.problems.protocol import Problem, dot
from gapwise.stages.problems.simd import one_type
from gapwise.stages.solver.codes import ORACLE_CALLS
from gapwise.stages.solver.counts import ArraySpec
from gapwise.stages.solver.primal import PrimalMethod, PrimalOptions
from gapwise.stages.solver.running import clip_into

GROWTH = 1.05
"""What a step that raises the dual multiplies the block's step size by."""

MOST_TRIES = 30
"""Halvings of a step size in one visit; more are only needed where rounding decides."""

ETA = 10.0
"""First step size of every block, in one over the unit of the loss; too large costs a few halvings."""

TRUTH = 15.0
"""At the start a labelling weighs exp(-TRUTH) times as much for each wrong entry."""

NEGLIGIBLE = 1e-15
"""Share of the terms of n D by which a step may seem to lower it. Where one labelling has all the weight that a number can
show, a step changes none of it, but the scores have to go on: else the block would stay at a wrong labelling for ever."""


@dataclass
class Options(PrimalOptions):
    """The options of exponentiated gradient."""

    def check_problem(self, problem: Problem) -> None:
        """Raises ValueError if the structure cannot sum over the labellings of a block."""
        if optional_of(problem, "marginals") is None:
            raise ValueError(
                f"solver.method: eg sums over all labellings of a block, which {type(problem).__name__} cannot; chains and "
                "classes without a kernel can. Use bcfw or accelerated"
            )


class Running(NamedTuple):
    """The running solution at one lambda."""

    sigma: np.ndarray
    """float64, flat local vectors"""
    loss_weight: np.ndarray
    """float64, (n,): c"""
    step_size: np.ndarray
    """float64, (n,): eta; of blocks that have not been visited < 0, the first"""
    mu: np.ndarray
    """float64, flat local vectors; 0 of blocks that have not been visited"""
    ell: np.ndarray
    """float64, (n,)"""
    u: np.ndarray
    """float64, (d,): w before it is clipped"""

    def visit(self, P, work, counters, lam, i):
        """A step on block i, or its start."""
        lo, hi, scale = P.local_ptr[i], P.local_ptr[i + 1], 1.0 / (lam * self.ell.size)
        sigma, mu, w = self.sigma[lo:hi], self.mu[lo:hi], self.u
        theta, trial, delta = work.theta[: hi - lo], work.trial[: hi - lo], work.delta[: hi - lo]
        first, gain, eta, loss = self.step_size[i] < 0.0, 0.0, 0.0, 0.0
        if P.lower.size > 0:
            w = work.w
            clip_into(self.u, P.lower, P.upper, w)
        P.scores(i, w, theta)
        if first:
            P.add(i, one_type(P.truth[P.label_ptr[i] : P.label_ptr[i + 1]]), 1.0, mu)
        for _ in range(MOST_TRIES):
            eta = 0.0 if first else self.step_size[i]
            for j in range(theta.size):
                trial[j] = sigma[j] + eta * theta[j]
            counters[ORACLE_CALLS] += 1
            _, loss = P.marginals(i, trial, self.loss_weight[i] + eta, delta, work.oracle)
            for j in range(theta.size):
                delta[j] -= mu[j]
            gain, size = loss - self.ell[i] + dot(theta, delta) - 0.5 * scale * P.norm2(i, delta), loss + self.ell[i]
            for j in range(theta.size):
                size += abs(theta[j] * mu[j])
            if first or gain >= -NEGLIGIBLE * size:
                break
            self.step_size[i] *= 0.5
        else:
            return
        for j in range(theta.size):
            sigma[j] = trial[j]
            mu[j] += delta[j]
        self.loss_weight[i] += eta
        self.ell[i] = loss
        if first:
            self.step_size[i] *= -1.0
        elif gain > 0.0:
            self.step_size[i] *= GROWTH
        P.push(i, -scale, delta, self.u)


SPECS: tuple[ArraySpec, ...] = (
    ("sigma", ("local",), "f8", "scores: alpha_i(y) is proportional to exp(c_i L_i(y) + <sigma_i, m_i(y)>)"),
    ("loss_weight", ("block",), "f8", "c"),
    ("step_size", ("block",), "f8", "eta; minus the first one before the block's first visit"),
    ("mu", ("local",), "f8", "means of local statistics"),
    ("ell", ("block",), "f8", "mean losses"),
    ("u", ("feature",), "f8", "the weights, unclipped"),
)


class ExponentiatedGradient(PrimalMethod[Options]):
    """Online exponentiated gradient."""

    specs = (*PrimalMethod.specs, *SPECS)

    def begun(self) -> Running:
        """No block has been visited."""
        P, n, p = self.problem, self.problem.n, int(self.problem.local_ptr[-1])
        least = np.array([P.least_loss(i) for i in range(n)])
        weight, eta = -TRUTH / np.where(least > 0.0, least, 1.0), np.full(n, -ETA)
        return Running(np.zeros(p), weight, eta, np.zeros(p), np.zeros(n), np.zeros(P.d))

    def solution(self, steps: int) -> np.ndarray:
        """(d,): w."""
        P, u = self.problem, self.running.u
        return np.clip(u, P.lower, P.upper) if P.lower.size else u.copy()


METHOD = ExponentiatedGradient
