"""Reference solutions of tiny instances: the primal as a dense QP over all labellings."""

from __future__ import annotations

import functools

import numpy as np
from scipy.optimize import minimize
from tiny import all_labels, instance

from gapwise.stages.problems.protocol import Problem


def psi_and_loss(problem: Problem) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Per block: psi_i(y) of all labellings (labellings, d), and their losses."""
    psis, losses = [], []
    for i in range(problem.n):
        p = int(problem.local_ptr[i + 1] - problem.local_ptr[i])
        rows, row_losses = [], []
        for y in all_labels(problem, i):
            delta, psi = np.zeros(p), np.zeros(problem.d)
            problem.add(i, problem.truth[problem.label_ptr[i] : problem.label_ptr[i + 1]], 1.0, delta)
            problem.add(i, y, -1.0, delta)
            problem.push(i, 1.0, delta, psi)
            rows.append(psi)
            row_losses.append(problem.loss(i, y))
        psis.append(np.array(rows))
        losses.append(np.array(row_losses))
    return psis, losses


def primal_value(problem: Problem, w: np.ndarray, lam: float) -> float:
    """P(w) by enumeration."""
    psis, losses = psi_and_loss(problem)
    hinge = np.mean([np.max(loss - psi @ w) for psi, loss in zip(psis, losses, strict=True)])
    return 0.5 * lam * float(w @ w) + float(hinge)


def optimum(problem: Problem, lam: float) -> float:
    """The optimal objective value, by a QP with one slack per block."""
    psis, losses = psi_and_loss(problem)
    n, d = problem.n, problem.d
    rows, low = [], []
    for i, (psi, loss) in enumerate(zip(psis, losses, strict=True)):
        slack = np.zeros((loss.size, n))
        slack[:, i] = 1.0
        rows.append(np.hstack([psi, slack]))
        low.append(loss)
    lower = np.concatenate([problem.lower if problem.lower.size else np.full(d, -np.inf), np.zeros(n)])
    upper = np.concatenate([problem.upper if problem.upper.size else np.full(d, np.inf), np.full(n, np.inf)])
    begin = np.concatenate([np.zeros(d), [loss.max() for loss in losses]])
    matrix, bound = np.vstack(rows), np.concatenate(low)

    def value(x):
        return 0.5 * lam * x[:d] @ x[:d] + x[d:].mean()

    def gradient(x):
        return np.concatenate([lam * x[:d], np.full(n, 1.0 / n)])

    minimum = minimize(
        value,
        begin,
        jac=gradient,
        method="SLSQP",
        bounds=list(zip(lower, upper, strict=True)),
        constraints=[{"type": "ineq", "fun": lambda x: matrix @ x - bound, "jac": lambda x: matrix}],
        options={"maxiter": 500, "ftol": 1e-12},
    )
    assert minimum.success, minimum.message
    return float(minimum.fun)


@functools.cache
def best(name: str, lam: float) -> float:
    """The optimal objective value of a tiny instance."""
    return optimum(instance(name), lam)
