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

The block of point i may have a weight s_i (`block_weight`). It multiplies m_i in c_ik, and the scores that the block reads.

Points that are not in training (`row` is -1) have their scores computed from the points with c_j != 0, the support vectors.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from gapwise.records import Facts
from gapwise.stages.problems.block_weight import block_weights
from gapwise.stages.problems.capabilities import Capabilities
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
from gapwise.stages.problems.operations import SEARCH, Operations
from gapwise.stages.problems.protocol import frozen
from gapwise.stages.problems.scale import check_entries, check_norms
from gapwise.stages.problems.single_label import (
    check_finite,
    checked_cost,
    confusion,
    derived,
    labelled,
    metrics,
    one_label,
)

__all__ = ["CAPABILITIES", "MulticlassKernel", "build", "derived", "metrics"]

CAPABILITIES = Capabilities(
    margins=True,
    n_best=True,
    whole=("x", "labels", "row", "block_weight"),
    counts=("classes",),
    falling=("error_rate",),
    confusion=confusion,
)

OUTSIDE = -1


@one_label
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
    """float64, (n,): k(x_i, x_i), times the square of the block's weight"""
    cost: np.ndarray
    """float64, (K, K): cost[truth, prediction]"""
    block_weight: np.ndarray
    """float64, (n,): weights of blocks"""
    points: np.ndarray
    """like x, (m, D): the training points that w is a combination of"""
    row: np.ndarray
    """int64, (n,): the number of an example among the points; OUTSIDE if it is not a point"""
    kernel: Kernel
    rows: Rows
    follow: bool
    """Whether `push` keeps the scores up; without, they have to be computed from the coefficients."""

    @property
    def operations(self) -> Operations:
        """K scores that `push` keeps up, m of them for each class that a move changes; they are in memory, not in caches."""
        classes, points = len(self.cost), self.points.shape[0]
        return Operations(SEARCH * classes, SEARCH * classes + 2.0 * SEARCH * points)

    def scores(self, i, w, theta):
        m, r = self.points.shape[0], self.row[i]
        if r >= 0:
            for k in range(theta.size):
                theta[k] = self.block_weight[i] * w[(theta.size + k) * m + r]
        else:
            theta[:] = 0.0
            for j in range(m):
                supports = False
                for k in range(theta.size):
                    supports = supports or w[k * m + j] != 0.0
                if supports:
                    value = self.block_weight[i] * evaluate(self.kernel, self.x[i], self.points[j])
                    for k in range(theta.size):
                        theta[k] += value * w[k * m + j]

    def push(self, i, c, delta, w):
        """Only training points can be pushed; any other makes w nan."""
        m, r = self.points.shape[0], self.row[i]
        slot = -1
        c *= self.block_weight[i]
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


def build(arrays: Mapping[str, np.ndarray], meta: Facts) -> MulticlassKernel:
    """Multiclass problem over ``x`` (n, D), ``labels`` (n,), ``points`` (m, D) and, of training examples, ``row`` (n,)
    and perhaps ``block_weight`` (n,).

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
    check_finite("multiclass_kernel", "block", x)
    check_finite("multiclass_kernel", "point", points)
    check_entries("multiclass_kernel", x)
    of_labels = labelled("multiclass_kernel", labels, classes, {})
    n, m = len(x), len(points)
    row = np.asarray(arrays["row"] if "row" in arrays else np.full(n, OUTSIDE), np.int64)
    bad = (row < OUTSIDE) | (row >= m) if row.shape == (n,) else np.ones(1, bool)
    if bad.any():
        raise ValueError(f"multiclass_kernel: block {int(np.argmax(bad))} is none of the {m} points; row must be (n,)")
    dtype = np.float32 if x.dtype == np.float32 and points.dtype == np.float32 else np.float64
    x, points, kernel = frozen(x, dtype), frozen(points, dtype), Kernel.of(meta)
    weight = block_weights("multiclass_kernel", arrays, n)
    norms2 = weight**2 * np.array([evaluate(kernel, example, example) for example in x])
    check_norms("multiclass_kernel", enumerate(norms2.tolist()))
    return MulticlassKernel(
        n,
        2 * classes * m,
        *of_labels,
        x=x,
        norms2=frozen(norms2),
        cost=checked_cost("multiclass_kernel", arrays, meta, classes),
        block_weight=weight,
        points=points,
        row=frozen(row),
        kernel=kernel,
        rows=empty_rows(m, None if (row >= 0).any() else 0.0),
        follow=True,
    )
