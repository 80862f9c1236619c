"""Tokens that are rows of a matrix, such as embeddings, with features of every column.

With p columns and K labels the weights are stacked label by label, so that scoring a label is a product of two rows and a
move between two labellings adds rows to rows:

    w = (E[K, p];  biases[3, K] of all, first and last tokens;  the transitions)

`emissions_of` gives them attribute by attribute, as those of `sparse` are. Features are float32, products with them are
summed as float64.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from gapwise.stages.problems.chain.features import LONGEST
from gapwise.stages.problems.inner import inner
from gapwise.stages.problems.prefetch import prefetch
from gapwise.stages.problems.protocol import FAST, PLAIN, U
from gapwise.stages.problems.simd import WIDTH, broadcast, load, multiply_add, total, widened

BLAS = 1 << 21
"""Multiplications of the least Gram matrix that is left to BLAS."""


class Dense(NamedTuple):
    """Rows of a matrix. Methods as of `sparse.Sparse`; w begins with E and the biases."""

    width: int
    """p."""
    first: np.ndarray
    """int64, (n,): the row of each block's first token; the others follow. Problems over parts of the blocks share rows"""
    values: np.ndarray
    """float32, (rows * p,)"""

    def row(self, i: int, first: int, T: int, t: int) -> tuple[np.ndarray, np.ndarray]:
        """Numbers of the columns and biases of token t that are not 0, and their values."""
        x = self.values.reshape(-1, self.width)[int(self.first[i]) + t]
        ids, biases = np.flatnonzero(x), self.width + np.flatnonzero([True, t == 0, t == T - 1])
        return np.append(ids, biases), np.append(x[ids].astype(np.float64), np.ones(biases.size))

    def grams(self, ptr: np.ndarray) -> Iterator[np.ndarray]:
        """Inner products of the tokens of each block."""
        return grams(self.values.reshape(-1, self.width), self.first, np.diff(ptr))

    def node_scores(self, i, first, T, K, w, theta):
        x = self.first[i] * self.width
        for t in range(0, T, 2):
            for k in range(0, K, 3):
                _tile(
                    self.values,
                    x,
                    t,
                    min(t + 1, T - 1),
                    K,
                    k,
                    min(k + 1, K - 1),
                    min(k + 2, K - 1),
                    self.width,
                    w,
                    theta,
                )
        for t in range(T):
            for k in range(K):
                theta[U(t * K + k)] += _biases(t, T, K, k, self.width, w)

    def label_scores(self, i, first, T, K, w, t, labels, slots, theta):
        for slot in slots:
            theta[U(t * K) + U(labels[U(slot), U(t)])] = np.nan  # wanted
        for slot in slots:
            k = np.int64(labels[U(slot), U(t)])
            if np.isnan(theta[U(t * K + k)]):
                theta[U(t * K + k)] = _score(self.values, self.first[i], t, T, K, k, self.width, w)

    def fetch_weights(self, token, K, w):
        pass

    def push_nodes(self, i, first, T, K, c, delta, w):
        for t in range(T):
            for k in range(K):
                if delta[U(t * K + k)] != 0.0:
                    _push(self.values, self.first[i], t, T, K, k, self.width, c * delta[U(t * K + k)], w)

    def move_nodes(self, i, first, T, K, c, y, z, w, work):
        for t in range(T):
            if y[U(t)] != z[U(t)]:
                _push(self.values, self.first[i], t, T, K, np.int64(y[U(t)]), self.width, c, w)
                _push(self.values, self.first[i], t, T, K, np.int64(z[U(t)]), self.width, -c, w)

    def fetch_rows(self, i, first, T, stage):
        if stage == 1:
            prefetch(self.first, i)


@inner(**FAST)
def _row_product(x, a, w, b, p):
    """<x[a:a + p], w[b:b + p]>."""
    result, a, b = 0.0, U(a), U(b)
    for j in range(U(p)):
        result += x[a + U(j)] * w[b + U(j)]
    return result


@inner(**PLAIN)
def _tile(values, x, s, t, K, a, b, c, p, w, theta):
    """Products of the rows of tokens s and t and those of labels a, b and c, which may be equal.

    Six sums stay in registers: with 100 to 300 columns the scores of all labels take 1.45 times as long one by one.
    """
    sa = sb = sc = ta = tb = tc = broadcast(0.0)
    xs, xt, whole = x + s * p, x + t * p, p - p % WIDTH
    for j in range(0, whole, WIDTH):
        vs, vt = widened(values, xs + j), widened(values, xt + j)
        va, vb, vc = load(w, a * p + j), load(w, b * p + j), load(w, c * p + j)
        sa, sb, sc = multiply_add(vs, va, sa), multiply_add(vs, vb, sb), multiply_add(vs, vc, sc)
        ta, tb, tc = multiply_add(vt, va, ta), multiply_add(vt, vb, tb), multiply_add(vt, vc, tc)
    for k, one, two in ((a, sa, ta), (b, sb, tb), (c, sc, tc)):
        theta[U(s * K + k)] = total(one) + _row_product(values, xs + whole, w, k * p + whole, p - whole)
        theta[U(t * K + k)] = total(two) + _row_product(values, xt + whole, w, k * p + whole, p - whole)


@inner(**PLAIN)
def _score(values, first, t, T, K, k, p, w):
    """Score of label k at token t."""
    return _row_product(values, (first + t) * p, w, k * p, p) + _biases(t, T, K, k, p, w)


@inner(**PLAIN)
def _biases(t, T, K, k, p, w):
    """Those of label k at token t."""
    result = w[U(K * p + k)]
    if t == 0:
        result += w[U(K * (p + 1) + k)]
    if t == T - 1:
        result += w[U(K * (p + 2) + k)]
    return result


@inner(**PLAIN)
def _push(values, first, t, T, K, k, p, c, w):
    """w += c times the features of token t, for label k."""
    x, o = U((first + t) * p), U(k * p)
    for j in range(U(p)):
        w[o + U(j)] += c * values[x + U(j)]
    w[U(K * p + k)] += c
    if t == 0:
        w[U(K * (p + 1) + k)] += c
    if t == T - 1:
        w[U(K * (p + 2) + k)] += c


def emissions_of(w: np.ndarray, K: int, dense: bool) -> np.ndarray:
    """Weights (p + 3, K) of attributes and biases, from w (d,)."""
    if not dense:
        return w[: w.size - K * K].reshape(-1, K)
    columns = (w.size - K * K) // K - 3
    return np.concatenate([w[: columns * K].reshape(K, columns).T, w[columns * K : -K * K].reshape(3, K)])


def grams(rows: np.ndarray, first: np.ndarray, lengths: np.ndarray) -> Iterator[np.ndarray]:
    """float32 (T * T,) of each block: inner products of its T rows from `first` on, summed in float64, biases included; (0,)
    for a long block."""
    for start, T in zip(first.tolist(), lengths.tolist(), strict=True):
        if T > LONGEST:
            yield np.empty(0, np.float32)
            continue
        block = rows[start : start + T].astype(np.float64)
        large = T * block.size >= BLAS  # it wakes its threads for each product
        gram = (block @ block.T if large else np.einsum("ta,sa->ts", block, block)) + 1.0
        gram[0, 0] += 1.0
        gram[-1, -1] += 1.0
        yield gram.astype(np.float32).reshape(-1)
