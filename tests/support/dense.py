"""Reference solutions of tiny instances: the primal as a dense QP over all labellings."""

from __future__ import annotations

import functools

import numpy as np
import piqp
from tiny import all_labels, instance

from gapwise.stages.problems.protocol import Problem

_ENUMERATED: list[tuple[Problem, tuple[list[np.ndarray], list[np.ndarray]]]] = []
"""The problems that were asked for last, and their `psi_and_loss`."""


def psi_and_loss(problem: Problem) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Per block: psi_i(y) of all labellings (labellings, d), and their losses."""
    for other, answer in _ENUMERATED:
        if other is problem:
            return answer
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
    for array in (*psis, *losses):
        array.setflags(write=False)
    _ENUMERATED.append((problem, (psis, losses)))
    del _ENUMERATED[:-4]
    return psis, losses


def primal_value(problem: Problem, w: np.ndarray, lam: float) -> float:
    """P(w) by enumeration."""
    psis, losses = psi_and_loss(problem)
    hinge = np.mean([np.max(loss - psi @ w) for psi, loss in zip(psis, losses, strict=True)])
    return 0.5 * lam * float(w @ w) + float(hinge)


def optimum(problem: Problem, lam: float) -> float:
    """The optimal objective value, by a QP with one slack per block whose answer is checked by weak duality."""
    psis, losses = psi_and_loss(problem)
    n, d = problem.n, problem.d
    block = np.repeat(np.arange(n), [loss.size for loss in losses])
    psi, loss = np.vstack(psis), np.concatenate(losses)
    rows = np.hstack([psi, np.eye(n)[block]])
    lower = problem.lower if problem.lower.size else np.full(d, -np.inf)
    upper = problem.upper if problem.upper.size else np.full(d, np.inf)
    solver = piqp.DenseSolver()
    settings = solver.settings
    settings.eps_abs = settings.eps_rel = settings.eps_duality_gap_abs = settings.eps_duality_gap_rel = 1e-12
    settings.check_duality_gap = True
    quadratic = np.diag(np.concatenate([np.full(d, lam), np.zeros(n)]))
    linear = np.concatenate([np.zeros(d), np.full(n, 1.0 / n)])
    none = np.full(n, np.inf)
    solver.setup(quadratic, linear, None, None, rows, loss, None, np.append(lower, -none), np.append(upper, none))
    solver.solve()
    primal = primal_value(problem, np.clip(solver.result.x[:d], lower, upper), lam)
    alpha = np.maximum(solver.result.z_l, 0.0)
    alpha /= n * np.bincount(block, alpha)[block]  # of each block 1 / n in all
    v = np.clip(alpha @ psi / lam, lower, upper)
    dual = float(alpha @ loss + 0.5 * lam * v @ v - v @ (alpha @ psi))
    assert -1e-12 <= primal - dual <= 1e-9 * max(1.0, primal), (primal, dual)
    return primal


@functools.cache
def best(name: str, lam: float) -> float:
    """The optimal objective value of a tiny instance."""
    return optimum(instance(name), lam)
