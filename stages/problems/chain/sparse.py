"""Tokens that are sparse rows of attribute ids, and of values where they are not all 1.

With p attributes and K labels the weights are E[p, K], attribute by attribute, the last three rows being the biases. Rows of
K >= 8 labels are summed eight labels at a time (`stages.problems.simd`).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from gapwise.stages.problems.chain.features import gram_of
from gapwise.stages.problems.chain.grams import BITS, differing, nonzeros
from gapwise.stages.problems.compiled import inner
from gapwise.stages.problems.protocol import PLAIN, U, compile_methods
from gapwise.stages.problems.simd import (
    GROUP,
    WIDTH,
    add4,
    broadcast4,
    columns,
    load4,
    lowest_bit,
    multiply4,
    prefetch,
    prefetch_range,
    store4,
)

LARGE = 1 << 16
"""Weights beyond which they are fetched early: smaller ones stay in the caches (512 kB)."""

PREFETCHED = 3
"""Tokens from the one whose scores are computed to the one whose weights are fetched, be it of the next block."""


class Sparse(NamedTuple):
    """Sparse rows. In methods, `first` is the row of the first of T tokens of block i; w begins with E."""

    row_ptr: np.ndarray
    """int64, (tokens + 1,): token t has the attributes ids[row_ptr[t]:row_ptr[t + 1]]"""
    ids: np.ndarray
    """uint8 or uint32, (row_ptr[-1],)"""
    values: np.ndarray
    """float32, (row_ptr[-1],), or (0,) where every value is 1"""

    def row(self, i: int, first: int, T: int, t: int) -> tuple[np.ndarray, np.ndarray]:
        """Numbers of the attributes of token t, and their values."""
        entries = slice(int(self.row_ptr[first + t]), int(self.row_ptr[first + t + 1]))
        ids = np.asarray(self.ids[entries], np.int64)
        return ids, np.asarray(self.values[entries], np.float64) if self.values.size else np.ones(ids.size)

    def grams(self, ptr: np.ndarray) -> Iterator[np.ndarray]:
        """Inner products of the tokens ptr[i]:ptr[i + 1] of each block i (`features.gram_of`)."""
        for first, last in pairwise(ptr):
            entries = slice(self.row_ptr[first], self.row_ptr[last])
            row_ptr = self.row_ptr[first : last + 1] - self.row_ptr[first]
            yield gram_of(self.ids[entries].astype(np.int32), row_ptr, self.values[entries])

    def node_scores(self, i, first, T, K, w, theta):
        """theta (T, K) <- scores of labels."""
        last = self.row_ptr.size - 2
        for t in range(T):
            if first + t + PREFETCHED <= last:
                self.fetch_weights(first + t + PREFETCHED, K, w)
            _token_scores(self.ids, self.values, self.row_ptr, first + t, K, w, theta, t * K)

    def label_scores(self, i, first, T, K, w, t, labels, slots, theta):
        """theta (T, K) <- scores of token t, at least of its labels in labels[slots]."""
        _token_scores(self.ids, self.values, self.row_ptr, first + t, K, w, theta, t * K)

    def fetch_weights(self, token, K, w):
        """Fetch the weights of a token's attributes, if they are many."""
        if w.size > LARGE:
            _fetch_weights(self.ids, self.row_ptr, token, K, w)

    def push_nodes(self, i, first, T, K, c, delta, w):
        """w += c B delta."""
        for t in range(T):
            _push_token(self.ids, self.values, self.row_ptr, first + t, K, c, delta, t * K, w)

    def move_nodes(self, i, first, T, K, c, y, z, w, work):
        """w += c B (m(y) - m(z)); work (T,) is workspace."""
        for j in range(differing(y, z, T, work)):
            here = U(work[U(j)])
            a, b, token = U(y[here]), U(z[here]), U(first) + here
            for r in range(U(self.row_ptr[token]), U(self.row_ptr[token + U(1)])):
                row, x = U(self.ids[U(r)]) * U(K), c * self.values[U(r)] if self.values.size else c
                w[row + a] += x
                w[row + b] -= x

    def fetch_rows(self, i, first, T, stage):
        """`moves.touch`, stages 1 and 2."""
        if stage == 1:
            prefetch_range(self.row_ptr, first, first + T + 1)
            return
        prefetch_range(self.ids, self.row_ptr[first], self.row_ptr[first + T])
        if self.values.size:
            prefetch_range(self.values, self.row_ptr[first], self.row_ptr[first + T])


compile_methods(Sparse, "node_scores", "label_scores", "fetch_weights", "push_nodes", "move_nodes", "fetch_rows")


@inner(**PLAIN)
def _token_scores(ids, values, row_ptr, token, labels, w, theta, offset):
    """theta[offset:offset + K] <- sum of the weight rows of a token's attributes, each times its value if there are any."""
    K, o, start, stop = U(labels), U(offset), U(row_ptr[token]), U(row_ptr[token + 1])
    if labels < WIDTH:
        for b in range(K):
            theta[o + U(b)] = 0.0
        for j in range(start, stop):
            r, x = U(ids[U(j)]) * K, values[U(j)] if values.size else 1.0
            for b in range(K):
                theta[o + U(b)] += x * w[r + U(b)]
        return
    for first in range(0, labels, GROUP):
        c, total = columns(first, labels), broadcast4(0.0)
        for j in range(start, stop):
            row = load4(w, U(ids[U(j)]) * K, c)
            total = add4(total, multiply4(np.float64(values[U(j)]), row) if values.size else row)
        store4(theta, o, c, total)


@inner(**PLAIN)
def _fetch_weights(ids, row_ptr, token, K, w):
    """Fetch the weights of a token's attributes; a loop over the lines of short rows would take longer."""
    last = U(K - 1)
    for j in range(U(row_ptr[token]), U(row_ptr[token + 1])):
        row = U(ids[U(j)]) * U(K)
        prefetch(w, row)
        prefetch(w, row + min(U(WIDTH), last))
        prefetch(w, row + min(U(2 * WIDTH), last))
        prefetch(w, row + last)
        for k in range(U(3 * WIDTH), last, U(WIDTH)):
            prefetch(w, row + U(k))


@inner(**PLAIN)
def _push_token(ids, values, row_ptr, token, K, c, delta, offset, w):
    """w += c times the attributes of a token, for the labels delta[offset:]; of up to 64 those that are not 0, in pairs."""
    start, stop, o = U(row_ptr[token]), U(row_ptr[token + 1]), U(offset)
    bits = nonzeros(delta, offset, K)
    while K <= BITS and bits != U(0):
        k = lowest_bit(bits)
        bits &= bits - U(1)
        one, other, two = c * delta[o + k], k, 0.0
        if bits != U(0):
            other = lowest_bit(bits)
            two = c * delta[o + other]
            bits &= bits - U(1)
        for j in range(start, stop):
            row, x = U(ids[U(j)]) * U(K), values[U(j)] if values.size else 1.0
            w[row + k] += one * x
            w[row + other] += two * x
    if bits != U(0):
        for j in range(start, stop):
            row, x = U(ids[U(j)]) * U(K), c * values[U(j)] if values.size else c
            for b in range(U(K)):
                w[row + U(b)] += x * delta[o + U(b)]
