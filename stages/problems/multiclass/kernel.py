"""Rows over a kernel: block-coordinate Frank-Wolfe on alpha alone (LJ13 App. B.5).

The features of an example are phi(x), of any dimension, with k(x, z) = <phi(x), phi(z)>:

* linear: <x, z>;
* poly: (gamma <x, z> + coef0) ** degree, which needs gamma > 0, coef0 >= 0 and a whole degree to be positive semidefinite;
* rbf: exp(-gamma ||x - z||^2).

Classes have weights w_k = sum_j c_jk phi(x_j) over the m training points, and with Crammer and Singer's dual the
coefficients are those of alpha: c_jk = (1 / lambda n) (m_j(y_j) - mu_j)_k. They take the place of w. Beside them stand their
scores on the training points,

    F_ik = <w_k, phi(x_i)> = sum_j k(x_i, x_j) c_jk,

so "w" is the vector (c, F), of d = 2 K m numbers, class by class. Everything that the solver does to w is linear, so c and F
stay each other's: a step of block i adds to c_i and adds k(x_i, .) to the columns of F that change, with one row of the Gram
matrix, and blocks whose alpha stays at the truth need none. An oracle reads its K scores. Norms need no further kernel:

    <w, w'> = sum_jk c_jk F'_jk.

So primal, dual and gap come from kernels alone, and so do all path rules, which need R, ell and such inner products only.
At a rebase point c is derived from alpha, and F from c, like any w; the committed state is alpha.

Points that are not in training (`row` is -1) have their scores computed from the points with c_j != 0, the support vectors.

A kept row of the Gram matrix has the bits of a computed one, so no result depends on their budget. That is
``$GAPWISE_KERNEL_MB`` megabytes (512 without that variable); memory is taken as rows are computed.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import NamedTuple, Self

import numpy as np
from numba import njit

from gapwise.records import Facts
from gapwise.stages.problems.multiclass.rows import check_finite
from gapwise.stages.problems.protocol import FAST, PLAIN, add_scaled, dot, frozen
from gapwise.stages.problems.scale import check_norms

LINEAR, POLY, RBF = range(3)
NAMES = ("linear", "poly", "rbf")
BUDGET_VARIABLE, DEFAULT_MEGABYTES = "GAPWISE_KERNEL_MB", 512.0
OUTSIDE = -1


class Kernel(NamedTuple):
    """A kernel with its parameters; a parameter that the kernel lacks is 0."""

    kind: int
    """LINEAR, POLY or RBF"""
    gamma: float
    coef0: float
    degree: int

    @classmethod
    def of(cls, facts: Facts) -> Kernel:
        """The kernel that a reader's facts describe: ``kernel``, ``gamma``, ``coef0``, ``degree``."""
        if facts.get("kernel") not in NAMES:
            raise ValueError(f"multiclass: kernel must be one of {', '.join(NAMES)}, got {facts.get('kernel')!r}")
        numbers = float(facts.get("gamma") or 0.0), float(facts.get("coef0") or 0.0), int(facts.get("degree") or 0)
        return cls(NAMES.index(facts["kernel"]), *numbers)


class Kept(NamedTuple):
    """The first rows of the Gram matrix that are asked for, as many as fit. One thread at a time may ask for a row.

    Visits ask for all rows in turn, so one that was asked for lately is as far from its next use as any other.
    """

    values: np.ndarray
    """float64, (capacity, m); the last row is that of whichever point was asked for last, of those that are not kept"""
    slot: np.ndarray
    """int64, (m,): where the row of a point is kept; -1 if it is not"""
    counts: np.ndarray
    """int64, (2,): rows computed, and whose the last row is; -1 before it is anybody's"""

    @classmethod
    def empty(cls, m: int, megabytes: float) -> Kept:
        """Space for as many rows of m numbers as fit into the budget, at least one."""
        capacity = int(min(max(megabytes * 2**20 // (8 * max(m, 1)), 1), max(m, 1)))
        return cls(np.empty((capacity, m)), np.full(m, -1, np.int64), np.array([0, -1]))


def _budget() -> float:
    """Megabytes for kept rows; ValueError if the environment's are not a number >= 0."""
    given = os.environ.get(BUDGET_VARIABLE, "")
    try:
        megabytes = float(given) if given else DEFAULT_MEGABYTES
        if not 0.0 <= megabytes < float("inf"):
            raise ValueError
    except ValueError:
        raise ValueError(f"{BUDGET_VARIABLE}: expected megabytes for kernel rows, such as 512, got {given!r}") from None
    return megabytes


@njit(**FAST)
def _distance2(a, b):
    total = 0.0
    for j in range(a.size):
        total += (a[j] - b[j]) ** 2
    return total


@njit(**PLAIN)
def evaluate(kernel, a, b):
    """k(a, b) of two rows of features (D,)."""
    if kernel.kind == RBF:
        return np.exp(-kernel.gamma * _distance2(a, b))
    product = dot(a, b)
    if kernel.kind == POLY:
        product = (kernel.gamma * product + kernel.coef0) ** kernel.degree
    return product


@njit(**PLAIN)
def row_of(kept, kernel, points, r):
    """The slot of `kept` that holds k(points[r], points[j]) for all j; computed unless it is kept."""
    s, last = kept.slot[r], kept.values.shape[0] - 1
    if s < 0:
        s = min(kept.counts[0], last)
        if s == last:
            if kept.counts[1] >= 0:
                kept.slot[kept.counts[1]] = -1
            kept.counts[1] = r
        for j in range(points.shape[0]):
            kept.values[s, j] = evaluate(kernel, points[r], points[j])
        kept.counts[0] += 1
        kept.slot[r] = s
    return s


@njit(**PLAIN)
def product_of_halves(a, b):
    """<coefficients of a, scores of b>: both (2 h,), coefficients first."""
    half = a.size // 2
    return dot(a[:half], b[half:])


class OverKernel(NamedTuple):
    """Rows of examples whose classes are combinations of m training points."""

    x: np.ndarray
    """float64, (n, D)"""
    points: np.ndarray
    """float64, (m, D): the training points that w is a combination of"""
    row: np.ndarray
    """int64, (n,): the number of an example among the points; OUTSIDE if it is not a point"""
    weight: np.ndarray
    """float64, (n,): weights of blocks, which multiply their coefficients and the scores that they read"""
    kernel: Kernel
    kept: Kept
    follow: bool
    """Whether `push_class` keeps the scores up; without, they have to be computed from the coefficients."""

    @classmethod
    def of(cls, arrays: Mapping[str, np.ndarray], meta: Facts, weight: np.ndarray) -> Self:
        """The rows ``x`` (n, D) over ``points`` (m, D) and, of training examples, ``row`` (n,).

        `meta` gives ``kernel`` with ``gamma``, ``coef0`` and ``degree`` as far as it has them. ValueError names the first
        block or point whose features are not finite, or whose `row` does not fit.
        """
        x, points = np.asarray(arrays["x"]), np.asarray(arrays["points"])
        if x.ndim != 2 or points.ndim != 2 or points.shape[1] != x.shape[1]:
            raise ValueError(f"multiclass: x must be (n, D) and points (m, D); got {x.shape} and {points.shape}")
        if np.size(meta.get("lower", ())) or np.size(meta.get("upper", ())):
            raise ValueError("multiclass: bounds on weights need the weights themselves, which a kernel has none of")
        kernel = Kernel.of(meta)
        check_finite("block", x)
        check_finite("point", points)
        n, m = len(x), len(points)
        row = np.asarray(arrays["row"] if "row" in arrays else np.full(n, OUTSIDE), np.int64)
        bad = (row < OUTSIDE) | (row >= m) if row.shape == (n,) else np.ones(1, bool)
        if bad.any():
            raise ValueError(f"multiclass: block {int(np.argmax(bad))} is none of the {m} points; row must be (n,)")
        kept = Kept.empty(m, _budget() if (row >= 0).any() else 0.0)
        return cls(frozen(x, np.float64), frozen(points, np.float64), frozen(row), weight, kernel, kept, follow=True)

    @property
    def n(self) -> int:
        return len(self.x)

    @property
    def width(self) -> int:
        """Numbers of w for each class: coefficients and scores of the points."""
        return 2 * len(self.points)

    def norms2(self) -> np.ndarray:
        """float64 (n,): k(x_i, x_i), times the square of the block's weight."""
        norms2 = self.weight**2 * np.array([evaluate(self.kernel, example, example) for example in self.x])
        check_norms("multiclass", enumerate(norms2.tolist()))
        return np.asarray(norms2)

    def scores(self, i, w, theta):
        m, r = self.points.shape[0], self.row[i]
        if r >= 0:
            for k in range(theta.size):
                theta[k] = self.weight[i] * w[(theta.size + k) * m + r]
        else:
            theta[:] = 0.0
            for j in range(m):
                supports = False
                for k in range(theta.size):
                    supports = supports or w[k * m + j] != 0.0
                if supports:
                    value = self.weight[i] * evaluate(self.kernel, self.x[i], self.points[j])
                    for k in range(theta.size):
                        theta[k] += value * w[k * m + j]

    def score_class(self, i, w, k, K):
        m, r = self.points.shape[0], self.row[i]
        if r >= 0:
            return self.weight[i] * w[(K + k) * m + r]
        total = 0.0
        for j in range(m):
            if w[k * m + j] != 0.0:
                total += w[k * m + j] * evaluate(self.kernel, self.x[i], self.points[j])
        return self.weight[i] * total

    def push_class(self, i, c, k, K, w):
        """Only training points can be pushed; any other makes w nan."""
        m, r = self.points.shape[0], self.row[i]
        c *= self.weight[i]
        w[k * m + max(r, 0)] += c if r >= 0 else np.nan
        if r >= 0 and self.follow:
            slot = row_of(self.kept, self.kernel, self.points, r)
            add_scaled(c, self.kept.values[slot], w[(K + k) * m : (K + k + 1) * m])
