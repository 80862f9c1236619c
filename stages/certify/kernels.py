"""Weights over kernels, recomputed by code of the audit's own (`stages.problems.multiclass.kernel` says what they are).

Of such weights the audit takes nothing but the coefficients. Their scores on the training points, from which hinges and
norms follow, are computed here: the Gram matrix block by block as a product of matrices, where the solver adds up rows of it
and evaluates each from differences of features. Weights of all other structures are returned as they are.
"""

from __future__ import annotations

from typing import cast

import numpy as np

from gapwise.stages.problems.moves import own_metric
from gapwise.stages.problems.multiclass.kernel import POLY, RBF, Kernel, OverKernel
from gapwise.stages.problems.multiclass.multiclass import KernelMulticlass
from gapwise.stages.problems.protocol import Problem, frozen

ENTRIES = 1 << 22
"""Entries of the Gram matrix in memory at a time."""


def of_audit(problem: Problem) -> Problem:
    """The problem as the audit uses it: `push` fills in coefficients only, and norms of blocks are recomputed."""
    if not own_metric(problem):
        return problem
    over, rows = cast("KernelMulticlass", problem), _rows(problem)
    norms2 = over.block_weight**2 * np.array([gram(rows.kernel, row[None], row[None])[0, 0] for row in rows.x])
    return cast("Problem", over._replace(rows=rows._replace(follow=False), norms2=frozen(norms2)))


def _rows(problem: Problem) -> OverKernel:
    return cast("OverKernel", cast("KernelMulticlass", problem).rows)


def completed(problem: Problem, w: np.ndarray) -> np.ndarray:
    """w (d,) with the scores that its coefficients have; w itself for a structure without kernels."""
    if not own_metric(problem):
        return w
    over = _rows(problem)
    m = len(over.points)
    coefficients = w[: w.size // 2].reshape(-1, m)
    supports = np.flatnonzero(coefficients.any(axis=0))
    scores = np.zeros_like(coefficients)
    centre = np.mean(over.points, axis=0, dtype=np.float64) if over.kernel.kind == RBF else 0.0
    used, step = over.points[supports] - centre, max(ENTRIES // max(supports.size, 1), 1)
    for start in range(0, m, step):
        part = slice(start, start + step)
        scores[:, part] = coefficients[:, supports] @ gram(over.kernel, used, over.points[part] - centre)
    return np.concatenate([coefficients.ravel(), scores.ravel()])


def gram(kernel: Kernel, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """float64 (p, q): the kernel between all rows of a (p, D) and b (q, D)."""
    a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
    products = a @ b.T
    if kernel.kind == RBF:
        squares = np.sum(a**2, axis=1)[:, None] + np.sum(b**2, axis=1) - 2.0 * products
        return np.asarray(np.exp(-kernel.gamma * np.maximum(squares, 0.0)))
    if kernel.kind == POLY:
        return np.asarray(np.power(kernel.coef0 + kernel.gamma * products, kernel.degree))
    return np.asarray(products)


def product(problem: Problem, a: np.ndarray, b: np.ndarray) -> float:
    """<a, b> of two weight vectors."""
    if not own_metric(problem):
        return float(np.sum(a * b))
    half = a.size // 2
    return float(np.sum(a[:half] * b[half:]))


def norm2(problem: Problem, w: np.ndarray) -> float:
    """||w||^2."""
    return product(problem, w, w)
