"""The kernel of an estimator: its facts from the parameters that users give, and its sums over points in predictions."""

from __future__ import annotations

import numpy as np

from gapwise.pipeline.estimators.choices import is_number, refuse
from gapwise.records import Record
from gapwise.stages.datasets.arrays.rows import OF_KERNEL, Matrix, is_sparse
from gapwise.stages.problems.capabilities import Capabilities
from gapwise.stages.problems.scale import Scale

ENTRIES = 1 << 22
"""Values of a kernel in memory at a time, in predictions."""


def kernel_of(
    x: Matrix, weight: np.ndarray | None, kernel: str | None, gamma: object, coef0: object, degree: object
) -> Record | None:
    """The facts of a kernel on rows x (n, D) of these weights (n,); None without one. ValueError names a wrong parameter."""
    if kernel is None:
        return None
    if kernel not in OF_KERNEL or is_sparse(x):
        raise refuse("kernel", kernel, f"one of {', '.join(OF_KERNEL)}, or None")
    if not (is_number(gamma) and 0 < gamma < np.inf) and not (isinstance(gamma, str) and gamma in ("scale", "auto")):
        raise refuse("gamma", gamma, "a number > 0, 'scale' or 'auto'")
    if not is_number(coef0) or not 0 <= coef0 < np.inf:
        raise refuse("coef0", coef0, "a number >= 0")
    if not isinstance(degree, int | np.integer) or isinstance(degree, bool) or degree < 1:
        raise refuse("degree", degree, "a whole number >= 1")
    Scale("X", Capabilities(features=("x",))).see({"x": x})
    if not is_number(gamma):
        variance = _variance(x, weight) if gamma == "scale" else 1.0
        gamma = 1.0 / (x.shape[1] * variance) if variance > 0.0 else 1.0
    known = {"gamma": float(gamma), "coef0": float(coef0), "degree": int(degree)}
    return {"kernel": kernel, **{name: known[name] for name in OF_KERNEL[kernel]}}


def _variance(x: np.ndarray, weight: np.ndarray | None) -> float:
    """The variance of all entries of rows x, which count by their weights."""
    if weight is None:
        return float(np.var(x, dtype=np.float64))
    mean = np.average(x.mean(axis=1, dtype=np.float64), weights=weight)
    return float(np.average(np.square(x - mean).mean(axis=1), weights=weight))


def kernel_scores(kernel: Record, rows: np.ndarray, points: np.ndarray, coefficients: np.ndarray) -> np.ndarray:
    """(n, K): sums over points (m, D), with coefficients (K, m), of the kernel with each of the rows (n, D)."""
    from sklearn.metrics.pairwise import pairwise_kernels

    given = {name: value for name, value in kernel.items() if name != "kernel"}
    scores, step = np.zeros((len(rows), len(coefficients))), max(ENTRIES // max(len(points), 1), 1)
    for start in range(0, len(rows) if len(points) else 0, step):
        part = np.asarray(rows[start : start + step], np.float64)
        values = pairwise_kernels(part, np.asarray(points, np.float64), metric=kernel["kernel"], **given)
        scores[start : start + step] = values @ coefficients.T
    return scores
