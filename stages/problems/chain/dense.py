"""Chains whose tokens are rows of a matrix, such as embeddings: the structure of `chain`, with features of every column.

With p columns and K labels the weights are stacked label by label, so that scoring a label is a product of two rows and a
move between two labellings adds rows to rows:

    w = (E[K, p];  biases[3, K] of all, first and last tokens;  T[K, K], T[a, b] for a before b)

and d = p K + 3 K + K^2. `emissions_of` gives the weights attribute by attribute, as those of `chain` are. Local coordinates,
oracles, losses and constraints are those of `Chain`; of its Gram matrices only the features differ. Features are float32,
products with them are summed as float64.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from gapwise.stages.problems.chain.chain import Chain, multiply_all
from gapwise.stages.problems.chain.dense_kernels import dense_scores, few_dense_scores, push_dense, push_dense_pair
from gapwise.stages.problems.chain.grams import Grams
from gapwise.stages.problems.chain.losses import CostTables, ZeroOne
from gapwise.stages.problems.operations import Operations, mean_size
from gapwise.stages.problems.prefetch import prefetch, prefetch_range
from gapwise.stages.problems.protocol import takes

BLAS = 1 << 21
"""Multiplications of the least Gram matrix that is left to BLAS."""


@takes(  # what reads no features
    Chain, "decodes_only", "block_weight", "unconstrained", "max_oracle", "max_oracles", "decode",
    "marginals", "max_marginals", "n_best", "value", "add", "norm2", "pair_norm2", "pair_follow", "loss", "least_loss",
    "forbidden", "scratch", "max_oracles_scratch", "ranked_scratch",
)  # fmt: skip
class DenseChain(NamedTuple):
    """n label sequences over `width` columns and `labels` labels; d = (width + 3) * labels + labels**2."""

    n: int
    d: int
    local_ptr: np.ndarray
    label_ptr: np.ndarray
    truth: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    labels: int
    """K, as of `Chain`."""
    longest: int
    """Largest number of tokens in a block."""
    width: int
    """p."""
    first: np.ndarray
    """int64, (n,): the row of each block's first token; the others follow. Problems over parts of the blocks share rows"""
    values: np.ndarray
    """float32, (rows * p,)"""
    grams: Grams
    """Inner products of tokens with their biases."""
    scale: np.ndarray
    """float64, (2 n,), as of `Chain`."""
    costs: ZeroOne | CostTables
    """As of `Chain`."""

    @property
    def operations(self) -> Operations:
        """T p K and T K^2; in a visit the rows of two tokens, for two labels, scored and pushed."""
        T = mean_size(self.label_ptr)
        return Operations(T * self.labels * (self.width + self.labels), 8.0 * self.width)

    def scores(self, i, w, theta):
        K, T = self.labels, self.label_ptr[i + 1] - self.label_ptr[i]
        dense_scores(self.values, self.first[i] * self.width, T, K, self.width, w, self.d - K * K, theta)
        if self.scale[2 * i + 1] != 1.0:
            multiply_all(theta, self.scale[2 * i + 1])

    def push(self, i, c, delta, w):
        K, T = self.labels, self.label_ptr[i + 1] - self.label_ptr[i]
        c *= self.scale[2 * i + 1]
        push_dense(self.values, self.first[i] * self.width, T, K, self.width, c, delta, w, self.d - K * K)

    def pair_move(self, i, c, y, z, delta, w):
        K, T = self.labels, self.label_ptr[i + 1] - self.label_ptr[i]
        c *= self.scale[2 * i + 1]
        push_dense_pair(self.values, self.first[i] * self.width, T, K, self.width, c, y, z, w, self.d - K * K)

    def score_labels(self, i, w, labels, slots, theta, scores):
        K, T, first = self.labels, self.label_ptr[i + 1] - self.label_ptr[i], self.first[i] * self.width
        few_dense_scores(self.values, first, T, K, self.width, w, self.d - K * K, labels, slots, theta, scores)
        if self.scale[2 * i + 1] != 1.0:
            multiply_all(scores, self.scale[2 * i + 1])

    def touch(self, i, stage):
        if stage == 0:
            prefetch(self.grams.ptr, i)
        elif stage == 1:
            prefetch(self.first, i)
        elif stage == 3:
            prefetch_range(self.grams.values, self.grams.ptr[i], self.grams.ptr[i + 1])
            prefetch(self.truth, self.label_ptr[i])


def emissions_of(w: np.ndarray, K: int, dense: bool) -> np.ndarray:
    """Weights (p + 3, K) of attributes and biases, from w (d,)."""
    if not dense:
        return w[: w.size - K * K].reshape(-1, K)
    columns = (w.size - K * K) // K - 3
    return np.concatenate([w[: columns * K].reshape(K, columns).T, w[columns * K : -K * K].reshape(3, K)])


def grams(rows: np.ndarray, first: np.ndarray, lengths: np.ndarray) -> Iterator[np.ndarray]:
    """float32 (T * T,) of each block: inner products of its T rows from `first` on, summed in float64, biases included."""
    for start, T in zip(first.tolist(), lengths.tolist(), strict=True):
        block = rows[start : start + T].astype(np.float64)
        large = T * block.size >= BLAS  # it wakes its threads for each product
        gram = (block @ block.T if large else np.einsum("ta,sa->ts", block, block)) + 1.0
        gram[0, 0] += 1.0
        gram[-1, -1] += 1.0
        yield gram.astype(np.float32).reshape(-1)
