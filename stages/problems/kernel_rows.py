"""Kernels k(x, z) on rows of features, and rows of their Gram matrix kept within a budget of memory.

* linear: <x, z>;
* poly: (gamma <x, z> + coef0) ** degree, which needs gamma > 0, coef0 >= 0 and a whole degree to be positive semidefinite;
* rbf: exp(-gamma ||x - z||^2).

A kept row has the bits of a computed one, so no result depends on the budget. The budget is ``$GAPWISE_KERNEL_MB``
megabytes (512 without that variable); memory is taken as rows are computed.
"""

from __future__ import annotations

import os
from typing import NamedTuple

import numpy as np
from numba import njit

from gapwise.records import Facts
from gapwise.stages.problems.protocol import FAST, PLAIN

LINEAR, POLY, RBF = range(3)
NAMES = ("linear", "poly", "rbf")
BUDGET_VARIABLE, DEFAULT_MEGABYTES = "GAPWISE_KERNEL_MB", 512.0


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
        kind = NAMES.index(facts["kernel"])
        numbers = float(facts.get("gamma") or 0.0), float(facts.get("coef0") or 0.0), int(facts.get("degree") or 0)
        return cls(kind, *numbers)


class Rows(NamedTuple):
    """The most recently used rows of the Gram matrix. One thread at a time may ask for a row."""

    values: np.ndarray
    """float64, (capacity, m)"""
    slot: np.ndarray
    """int64, (m,): where the row of a point is kept; -1 if it is not"""
    point: np.ndarray
    """int64, (capacity,): the point whose row a slot holds; -1 for an empty slot"""
    used: np.ndarray
    """int64, (capacity,): count of requests when it was last asked for"""
    counts: np.ndarray
    """int64, (2,): requests, rows computed"""


def empty_rows(m: int, megabytes: float | None = None) -> Rows:
    """Space for as many rows of m numbers as fit into the budget, at least one.

    Raises
    ------
    ValueError
        If the environment's budget is not a number >= 0.
    """
    if megabytes is None:
        megabytes = _budget()
    capacity = int(min(max(megabytes * 2**20 // (8 * max(m, 1)), 1), max(m, 1)))
    nowhere = np.full(m, -1, np.int64), np.full(capacity, -1, np.int64)
    return Rows(np.empty((capacity, m)), *nowhere, np.zeros(capacity, np.int64), np.zeros(2, np.int64))


def _budget() -> float:
    given = os.environ.get(BUDGET_VARIABLE, "")
    try:
        megabytes = float(given) if given else DEFAULT_MEGABYTES
        if not 0.0 <= megabytes < float("inf"):
            raise ValueError
    except ValueError:
        raise ValueError(f"{BUDGET_VARIABLE}: expected megabytes for kernel rows, such as 512, got {given!r}") from None
    return megabytes


@njit(**FAST)
def _inner(a, b):
    total = 0.0
    for j in range(a.size):
        total += np.float64(a[j]) * np.float64(b[j])
    return total


@njit(**FAST)
def _distance2(a, b):
    total = 0.0
    for j in range(a.size):
        difference = np.float64(a[j]) - np.float64(b[j])
        total += difference * difference
    return total


@njit(**PLAIN)
def evaluate(kernel, a, b):
    """k(a, b) of two rows of features (D,)."""
    if kernel.kind == RBF:
        return np.exp(-kernel.gamma * _distance2(a, b))
    product = _inner(a, b)
    if kernel.kind == POLY:
        product = (kernel.gamma * product + kernel.coef0) ** kernel.degree
    return product


@njit(**PLAIN)
def row_of(rows, kernel, points, r):
    """The slot of `rows` that holds k(points[r], points[j]) for all j; computed unless it is kept.

    Where all slots are taken, the row that was not asked for the longest makes room.
    """
    rows.counts[0] += 1
    s = rows.slot[r]
    if s < 0:
        s = np.int64(rows.counts[1])
        if s >= rows.point.size:
            s = np.int64(0)
            for other in range(1, rows.used.size):
                if rows.used[other] < rows.used[s]:
                    s = np.int64(other)
            rows.slot[rows.point[s]] = -1
        for j in range(points.shape[0]):
            rows.values[s, j] = evaluate(kernel, points[r], points[j])
        rows.counts[1] += 1
        rows.slot[r], rows.point[s] = s, r
    rows.used[s] = rows.counts[0]
    return s


@njit(**FAST)
def add_row(c, row, w, start):
    """w[start : start + m] += c row."""
    for j in range(row.size):
        w[start + j] += c * row[j]


@njit(**FAST)
def product_of_halves(a, b):
    """<coefficients of a, scores of b>: both (2 h,), coefficients first."""
    half = a.size // 2
    total = 0.0
    for j in range(half):
        total += a[j] * b[half + j]
    return total
