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
from gapwise.stages.problems.compiled import inner
from gapwise.stages.problems.images.kernels import label_scores
from gapwise.stages.problems.protocol import PLAIN, U, add_scaled, dot
from gapwise.stages.problems.simd import prefetch

BLAS = 1 << 21
"""Multiplications of the least Gram matrix that is left to BLAS."""


class Dense(NamedTuple):
    """Rows of a matrix. Methods as of `sparse.Sparse`; w begins with E and the biases."""

    first: np.ndarray
    """int64, (n,): the row of each block's first token; the others follow. Problems over parts of the blocks share rows"""
    values: np.ndarray
    """float32, (rows, p)"""

    def row(self, i: int, first: int, T: int, t: int) -> tuple[np.ndarray, np.ndarray]:
        """Numbers of the columns and biases of token t that are not 0, and their values."""
        x = self.values[int(self.first[i]) + t]
        ids, biases = np.flatnonzero(x), self.values.shape[1] + np.flatnonzero([True, t == 0, t == T - 1])
        return np.append(ids, biases), np.append(x[ids].astype(np.float64), np.ones(biases.size))

    def grams(self, ptr: np.ndarray) -> Iterator[np.ndarray]:
        """Inner products of the tokens of each block."""
        return grams(self.values, self.first, np.diff(ptr))

    def node_scores(self, i, first, T, K, w, theta):
        label_scores(self.values, self.first[i], T, K, w, theta, K, 1)
        for t in range(T):
            for k in range(K):
                theta[U(t * K + k)] += _biases(t, T, K, k, self.values.shape[1], w)

    def label_scores(self, i, first, T, K, w, t, labels, slots, theta):
        p, row = self.values.shape[1], self.values[self.first[i] + t]
        for slot in slots:
            theta[U(t * K) + U(labels[U(slot), U(t)])] = np.nan  # wanted
        for slot in slots:
            k = np.int64(labels[U(slot), U(t)])
            if np.isnan(theta[U(t * K + k)]):
                theta[U(t * K + k)] = dot(row, w[k * p : (k + 1) * p]) + _biases(t, T, K, k, p, w)

    def fetch_weights(self, token, K, w):
        pass

    def push_nodes(self, i, first, T, K, c, delta, w):
        for t in range(T):
            for k in range(K):
                if delta[U(t * K + k)] != 0.0:
                    _push(self.values[self.first[i] + t], t, T, K, k, c * delta[U(t * K + k)], w)

    def move_nodes(self, i, first, T, K, c, y, z, w, work):
        for t in range(T):
            if y[U(t)] != z[U(t)]:
                _push(self.values[self.first[i] + t], t, T, K, np.int64(y[U(t)]), c, w)
                _push(self.values[self.first[i] + t], t, T, K, np.int64(z[U(t)]), -c, w)

    def fetch_rows(self, i, first, T, stage):
        if stage == 1:
            prefetch(self.first, i)


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
def _push(row, t, T, K, k, c, w):
    """w += c times the features of token t, for label k."""
    p = row.size
    add_scaled(c, row, w[k * p : (k + 1) * p])
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
