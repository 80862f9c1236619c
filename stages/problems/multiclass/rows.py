"""Rows of features that classes are scored on: dense, or sparse (CSR) for features that are mostly 0, such as words.

Rows score and push classes: they have the methods of `ClassRows`, and Python reads their `n`, `width` and `norms2`. They are
those of the data times the weights of their blocks (`losses.block_weights`). Over a kernel see `multiclass.kernel`.

Dense rows have their weights stacked class by class, w[k D + j] for feature j and class k. For sparse ones they are stacked
feature by feature, w[j K + k], so that one feature of a row touches K neighbouring weights; `class_weights` gives both by
class. Inner loops count in unsigned integers: a signed index may be negative, which numba has to allow for and which keeps
loops from being vectorised.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Protocol, Self

import numpy as np

from gapwise.records import Facts
from gapwise.stages.problems.compiled import inner
from gapwise.stages.problems.protocol import FAST, PLAIN, U, compile_methods, frozen
from gapwise.stages.problems.simd import prefetch_range


class ClassRows(Protocol):
    """What rows have, besides `scores` of all classes, as `protocol.Problem` has it."""

    def score_class(self, i: int, w: np.ndarray, k: int, K: int) -> float:
        """<w_k, x_i> of class k of K."""

    def push_class(self, i: int, c: float, k: int, K: int, w: np.ndarray) -> None:
        """w_k += c x_i."""


compile_methods(ClassRows)


@inner(**FAST)
def score_row(x, w, k):
    """<w_k, x> of a dense row. `dot` of a slice of w is up to 1.15 times as slow, by where the process puts its code."""
    total, start = 0.0, U(k) * U(x.size)
    for j in range(U(x.size)):
        total += x[j] * w[start + j]
    return total


@inner(**PLAIN)
def push_row(x, c, k, w):
    """w_k += c x."""
    start = U(k) * U(x.size)
    for j in range(U(x.size)):
        w[start + j] += c * x[j]


class Dense(NamedTuple):
    """Rows of D features each."""

    x: np.ndarray
    """float32 or float64, (n, D)"""

    @classmethod
    def of(cls, arrays: Mapping[str, np.ndarray], meta: Facts, weight: np.ndarray) -> Self:
        """The rows ``x``; ValueError names the first block whose features are not finite."""
        x = np.asarray(arrays["x"])
        if x.ndim != 2:
            raise ValueError(f"multiclass: x must be (n, D), got {x.shape}")
        check_finite("block", x)
        x = floats(x)
        return cls(x if (weight == 1.0).all() else frozen(x * weight[:, None].astype(x.dtype)))

    @property
    def n(self) -> int:
        return len(self.x)

    @property
    def width(self) -> int:
        """Numbers of w for each class."""
        return self.x.shape[1]

    def norms2(self) -> np.ndarray:
        """float64 (n,): ||x_i||^2."""
        return np.asarray((self.x.astype(np.float64) ** 2).sum(axis=1))

    def scores(self, i, w, theta):
        for k in range(theta.size):
            theta[k] = score_row(self.x[i], w, k)

    def score_class(self, i, w, k, K):
        return score_row(self.x[i], w, k)

    def push_class(self, i, c, k, K, w):
        push_row(self.x[i], c, k, w)

    def touch(self, i, stage):
        if stage == 1:
            prefetch_range(self.x, i * self.x.shape[1], (i + 1) * self.x.shape[1])


class Csr(NamedTuple):
    """Sparse rows."""

    ptr: np.ndarray
    """int64, (n + 1,): row i is ids[ptr[i]:ptr[i + 1]]"""
    ids: np.ndarray
    """int32, (ptr[-1],): feature numbers, rising in every row"""
    values: np.ndarray
    """float32 or float64, (ptr[-1],)"""
    width: int
    """D, the numbers of w for each class"""

    @classmethod
    def of(cls, arrays: Mapping[str, np.ndarray], meta: Facts, weight: np.ndarray) -> Self:
        """The rows ``ids`` and ``values`` by ``row_ptr``, with the ``width`` D of `meta`.

        Raises
        ------
        ValueError
            If they are no CSR matrix of D columns with rising column numbers and finite values; names the first such block.
        """
        ids, values, ptr = (np.asarray(arrays[name]) for name in ("ids", "values", "row_ptr"))
        n, ptr, width = ptr.size - 1, ptr.astype(np.int64), int(meta["width"])
        if ids.shape != values.shape or ids.ndim != 1:
            raise ValueError(f"multiclass: expected ids and values (nnz,), got {ids.shape} and {values.shape}")
        if n < 1 or ptr[0] != 0 or ptr[-1] != ids.size or (np.diff(ptr) < 0).any():
            raise ValueError(f"multiclass: row_ptr must rise from 0 to {ids.size}, the number of values")
        row = np.repeat(np.arange(n), np.diff(ptr))
        same_row = row[1:] == row[:-1]
        for fault, bad in (
            ("a value that is not finite", ~np.isfinite(values)),
            (f"a feature number outside 0..{width - 1}", (ids < 0) | (ids >= width)),
            ("feature numbers that do not rise", np.append(False, same_row & (ids[1:] <= ids[:-1]))[: ids.size]),
        ):
            if bad.any():
                raise ValueError(f"multiclass: block {row[int(np.argmax(bad))]} has {fault}")
        values = floats(values)
        if (weight != 1.0).any():
            values = frozen(values * weight[row].astype(values.dtype))
        return cls(frozen(ptr), frozen(ids, np.int32), values, width)

    @property
    def n(self) -> int:
        return self.ptr.size - 1

    def norms2(self) -> np.ndarray:
        """float64 (n,): ||x_i||^2."""
        row = np.repeat(np.arange(self.n), np.diff(self.ptr))
        return np.bincount(row, self.values.astype(np.float64) ** 2, minlength=self.n)

    def scores(self, i, w, theta):
        theta[:] = 0.0
        for e in range(self.ptr[i], self.ptr[i + 1]):
            x, first = self.values[e], np.int64(self.ids[e]) * theta.size
            of = w[first : first + theta.size]
            for k in range(theta.size):
                theta[k] += x * of[k]

    def score_class(self, i, w, k, K):
        total = 0.0
        for e in range(self.ptr[i], self.ptr[i + 1]):
            total += self.values[e] * w[U(self.ids[e]) * U(K) + U(k)]
        return total

    def push_class(self, i, c, k, K, w):
        for e in range(self.ptr[i], self.ptr[i + 1]):
            w[U(self.ids[e]) * U(K) + U(k)] += c * self.values[e]


def class_weights(w: np.ndarray, classes: int, sparse: bool) -> np.ndarray:
    """w (d,) as (K, D), the weights of each class, of a model over sparse or dense rows."""
    return np.ascontiguousarray(w.reshape(-1, classes).T) if sparse else w.reshape(classes, -1)


def floats(values: np.ndarray) -> np.ndarray:
    """Frozen features: float32 stays, all else becomes float64."""
    return frozen(values, np.float32 if values.dtype == np.float32 else np.float64)


def check_finite(unit: str, rows: np.ndarray) -> None:
    """ValueError that names the first row (a block, or what `unit` names) with a feature that is not finite."""
    bad = ~np.isfinite(rows).all(axis=1)
    if bad.any():
        raise ValueError(f"multiclass: {unit} {int(np.argmax(bad))} has a feature that is not finite")
