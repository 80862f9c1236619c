"""Multiclass classification with kernels: block-coordinate Frank-Wolfe on alpha alone (LJ13 App. B.5).

The features of an example are phi(x), of any dimension, with k(x, z) = <phi(x), phi(z)>. Classes have weights w_k =
sum_j c_jk phi(x_j) over the m training points, and with Crammer and Singer's dual the coefficients are those of alpha:
c_jk = (1 / lambda n) (m_j(y_j) - mu_j)_k. They take the place of w. Beside them stand their scores on the training points,

    F_ik = <w_k, phi(x_i)> = sum_j k(x_i, x_j) c_jk,

so "w" is the vector (c, F), of d = 2 K m numbers, class by class. Everything that the solver does to w is linear, so c and F
stay each other's: a step of block i adds to c_i and adds k(x_i, .) to the columns of F that change, with one row of the Gram
matrix, and blocks whose alpha stays at the truth need none. An oracle reads its K scores. Norms need no further kernel:

    <w, w'> = sum_jk c_jk F'_jk.

So primal, dual and gap come from kernels alone, and so do all path rules, which need R, ell and such inner products only.
At a rebase point c is derived from alpha, and F from c, like any w; the committed state is alpha.

Points that are not in training (`row` is -1) have their scores computed from the points with c_j != 0, the support vectors.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from gapwise.stages.problems.kernel_rows import (
    NAMES,
    Kernel,
    Rows,
    add_row,
    empty_rows,
    evaluate,
    product_of_halves,
    row_of,
)
from gapwise.stages.problems.multiclass import checked_cost, checked_labels, confusion, derived, metrics
from gapwise.stages.problems.protocol import frozen
from gapwise.stages.problems.single_label import best_label, sum_of_squares, worst_label

__all__ = ["WHOLE", "MulticlassKernel", "build", "confusion", "derived", "metrics"]

WHOLE = ("x", "labels", "row")
"""Arrays with a row a block that readers write at once."""

OUTSIDE = -1


class MulticlassKernel(NamedTuple):
    """n examples of K classes; d = 2 K m numbers for coefficients and scores on m training points."""

    n: int
    d: int
    local_ptr: np.ndarray
    label_ptr: np.ndarray
    truth: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    x: np.ndarray
    """float32 or float64, (n, D)"""
    norms2: np.ndarray
    """float64, (n,): k(x_i, x_i)"""
    cost: np.ndarray
    """float64, (K, K): cost[truth, prediction]"""
    points: np.ndarray
    """like x, (m, D): the training points that w is a combination of"""
    row: np.ndarray
    """int64, (n,): the number of an example among the points; OUTSIDE if it is none of them"""
    kernel: Kernel
    rows: Rows
    follow: bool
    """Whether `push` keeps the scores up; without, they have to be computed from the coefficients."""

    @property
    def labels(self) -> int:
        """K."""
        return len(self.cost)

    @property
    def unconstrained(self) -> bool:
        """Every class may be predicted for every example."""
        return True

    def scores(self, i, w, theta):
        m, r = self.points.shape[0], self.row[i]
        if r >= 0:
            for k in range(theta.size):
                theta[k] = w[(theta.size + k) * m + r]
        else:
            theta[:] = 0.0
            for j in range(m):
                supports = False
                for k in range(theta.size):
                    supports = supports or w[k * m + j] != 0.0
                if supports:
                    value = evaluate(self.kernel, self.x[i], self.points[j])
                    for k in range(theta.size):
                        theta[k] += value * w[k * m + j]

    def max_oracle(self, i, theta, y, scratch):
        cost = self.cost[self.truth[i]]
        best = worst_label(theta, cost)
        y[0] = best
        return cost[best]

    def decode(self, i, theta, y, scratch):
        y[0] = best_label(theta)

    def value(self, i, theta, y):
        return theta[y[0]]

    def add(self, i, y, c, out):
        out[y[0]] += c

    def norm2(self, i, delta):
        return sum_of_squares(delta) * self.norms2[i]

    def push(self, i, c, delta, w):
        """Only training points can be pushed: of others nothing is left of w but nan."""
        m, r = self.points.shape[0], self.row[i]
        slot = -1
        for k in range(delta.size):
            if delta[k] != 0.0:
                w[k * m + max(r, 0)] += c * delta[k] if r >= 0 else np.nan
                if r >= 0 and self.follow:
                    if slot < 0:
                        slot = row_of(self.rows, self.kernel, self.points, r)
                    add_row(c * delta[k], self.rows.values[slot], w, (delta.size + k) * m)

    def inner(self, a, b):
        """<a, b> = sum_jk of a's coefficients times b's scores."""
        return product_of_halves(a, b)

    def loss(self, i, y):
        return self.cost[self.truth[i], y[0]]

    def least_loss(self, i):
        return np.min(np.delete(self.cost[self.truth[i]], self.truth[i]), initial=np.inf)

    def scratch(self):
        return (np.empty(0),)


def build(arrays: Mapping[str, np.ndarray], meta: Mapping[str, Any]) -> MulticlassKernel:
    """Multiclass problem over ``x`` (n, D), ``labels`` (n,), ``points`` (m, D) and, of training examples, ``row`` (n,).

    `meta` gives ``classes``, ``kernel`` with ``gamma``, ``coef0`` and ``degree`` as far as it has them
    (`stages.problems.kernel_rows`), and optionally ``cost`` (K, K), which may also be an array.

    Raises
    ------
    ValueError
        If features are not finite, a label is not a class, `row` does not fit the points, the kernel is unknown or the cost
        matrix none; names the first such block.
    """
    x, points, labels = np.asarray(arrays["x"]), np.asarray(arrays["points"]), np.asarray(arrays["labels"])
    classes = int(meta["classes"])
    if x.ndim != 2 or labels.shape != (x.shape[0],) or points.ndim != 2 or points.shape[1] != x.shape[1]:
        raise ValueError(
            f"multiclass_kernel: x must be (n, D), labels (n,), points (m, D); got {x.shape}, {labels.shape}, {points.shape}"
        )
    if meta.get("kernel") not in NAMES:
        raise ValueError(f"multiclass_kernel: kernel must be one of {', '.join(NAMES)}, got {meta.get('kernel')!r}")
    if np.size(meta.get("lower", ())) or np.size(meta.get("upper", ())):
        raise ValueError("multiclass_kernel: bounds on weights need the weights themselves, which a kernel has none of")
    for name, rows_of in (("block", x), ("point", points)):
        bad = ~np.isfinite(rows_of).all(axis=1)
        if bad.any():
            raise ValueError(f"multiclass_kernel: {name} {int(np.argmax(bad))} has a feature that is not finite")
    checked_labels("multiclass_kernel", labels, classes)
    n, m = len(x), len(points)
    row = np.asarray(arrays["row"] if "row" in arrays else np.full(n, OUTSIDE), np.int64)
    bad = (row < OUTSIDE) | (row >= m) if row.shape == (n,) else np.ones(1, bool)
    if bad.any():
        raise ValueError(f"multiclass_kernel: block {int(np.argmax(bad))} is none of the {m} points; row must be (n,)")
    dtype = np.float32 if x.dtype == np.float32 and points.dtype == np.float32 else np.float64
    x, points, kernel = frozen(x, dtype), frozen(points, dtype), Kernel.of(meta)
    return MulticlassKernel(
        n=n,
        d=2 * classes * m,
        local_ptr=frozen(np.arange(n + 1) * classes, np.int64),
        label_ptr=frozen(np.arange(n + 1), np.int64),
        truth=frozen(labels, np.uint8 if classes <= 256 else np.int16),
        lower=frozen(np.empty(0)),
        upper=frozen(np.empty(0)),
        x=x,
        norms2=frozen(np.array([evaluate(kernel, example, example) for example in x])),
        cost=frozen(checked_cost("multiclass_kernel", arrays, meta, classes)),
        points=points,
        row=frozen(row),
        kernel=kernel,
        rows=empty_rows(m, None if (row >= 0).any() else 0.0),
        follow=True,
    )
