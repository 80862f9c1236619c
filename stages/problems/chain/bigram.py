"""Chains whose transitions look at the input: attributes of pairs of neighbouring labels (CRF++'s bigram templates).

Beside its attributes a token has *pair attributes*, sparse rows of ids that all have the value 1. Each has a weight for
every pair of labels, of the token before and of the token itself; the first token of a block has none. The last pair
attribute, "always", belongs to all other tokens: its weights are the transitions of `chain`. With q pair attributes,

    w = (E[p, K], as of `chain`;  W[q, K, K], W[., a, b] for a before b, the last of which are the transitions)

and d = p K + q K^2. A token with its pair attributes is, for these, a token with K^2 labels. So scores, pushes, Gram
matrices and moves are those of tokens, called once for K labels and once for K^2. Local coordinates of a block are its T K
label indicators and then T K^2 indicators of pairs; those of the first token are 0. Oracles, losses and constraints are
those of `Chain`, whose transitions are `edge_stride` apart here.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gapwise.stages.problems.chain.chain import Chain, multiply_all
from gapwise.stages.problems.chain.grams import Grams, MixedGrams
from gapwise.stages.problems.chain.kernels import push_tokens, tokens_scores
from gapwise.stages.problems.chain.losses import CostTables, ZeroOne
from gapwise.stages.problems.chain.moves import few_scores, push_pair_tokens
from gapwise.stages.problems.inner import inner
from gapwise.stages.problems.operations import SEARCH, Operations, mean_size
from gapwise.stages.problems.protocol import PLAIN, U
from gapwise.stages.problems.shared import takes


@inner(**PLAIN)
def number_pairs(y, T, K, pairs):
    """pairs[t] <- the number of labels t - 1 and t among all K^2 pairs; 0 at the first token."""
    pairs[0] = 0
    for t in range(1, T):
        pairs[t] = np.int64(y[t - 1]) * K + np.int64(y[t])


@inner(**PLAIN)
def push_pairs(ids, row_ptr, first, T, K, c, y, z, w):
    """w += c B (m(y) - m(z)), only the weights of pair attributes."""
    for t in range(1, T):
        a, b = U(y[t - 1]) * U(K) + U(y[t]), U(z[t - 1]) * U(K) + U(z[t])
        if a == b:
            continue
        for j in range(row_ptr[first + t], row_ptr[first + t + 1]):
            row = U(ids[U(j)]) * U(K * K)
            w[row + a] += c
            w[row + b] -= c


@inner(**PLAIN)
def add_pair_scores(ids, row_ptr, first, T, K, w, labels, slots, scores):
    """scores[k] += the weights of the pairs of labels[slots[k]] for all pair attributes but the last of each row, "always".

    Tokens at which all labellings have the same pair are left out.
    """
    reference = U(slots[0])
    for t in range(1, T):
        before, here, others = labels[reference, U(t - 1)], labels[reference, U(t)], 0
        for slot in slots:
            others += 1 if labels[U(slot), U(t - 1)] != before or labels[U(slot), U(t)] != here else 0
        if others == 0:
            continue
        for j in range(row_ptr[first + t], row_ptr[first + t + 1] - 1):
            row = U(ids[U(j)]) * U(K)
            for k in range(slots.size):
                slot = U(slots[U(k)])
                scores[U(k)] += w[(row + U(labels[slot, U(t - 1)])) * U(K) + U(labels[slot, U(t)])]


@takes(  # what reads no features, and what fetches those of tokens
    Chain, "decodes_only", "block_weight", "unconstrained", "max_oracle", "max_oracles", "decode", "marginals",
    "max_marginals", "n_best", "value", "add", "loss", "least_loss", "forbidden", "scratch", "max_oracles_scratch",
    "ranked_scratch", "touch",
)  # fmt: skip
class BigramChain(NamedTuple):
    """n label sequences over `labels` labels; d = attributes * labels + pairs * labels**2."""

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
    row_ptr: np.ndarray
    ids: np.ndarray
    values: np.ndarray
    grams: Grams | MixedGrams
    """These four as of `Chain`."""
    pairs: int
    """q, "always" included."""
    pair_ptr: np.ndarray
    """int64, (tokens + 1,): token t has the pair attributes pair_ids[pair_ptr[t]:pair_ptr[t + 1]], "always" the last"""
    pair_ids: np.ndarray
    """uint32, (pair_ptr[-1],)"""
    pair_grams: Grams | MixedGrams
    """Inner products of the rows of pair attributes."""
    scale: np.ndarray
    """float64, (2 n,), as of `Chain`."""
    costs: ZeroOne | CostTables
    """As of `Chain`."""

    @property
    def operations(self) -> Operations:
        """As of `Chain`, with K^2 for each pair attribute, and two pairs of them in a visit."""
        nnz, T = mean_size(self.row_ptr[[0, -1]]) / self.n, mean_size(self.label_ptr)
        pairs, K = mean_size(self.pair_ptr[[0, -1]]) / self.n, self.labels
        return Operations(nnz * K + (T + pairs) * K**2, 4.0 * SEARCH * (nnz + pairs))

    def edge_stride(self):
        return self.labels * self.labels

    def scores(self, i, w, theta):
        K, first, T = self.labels, self.label_ptr[i], self.label_ptr[i + 1] - self.label_ptr[i]
        edges, weights = theta[T * K :], w[self.d - self.pairs * K * K :]
        tokens_scores(self.ids, self.values, self.row_ptr, first, T, K, w, theta)
        tokens_scores(self.pair_ids, self.values[:0], self.pair_ptr, first, T, K * K, weights, edges)
        if self.scale[2 * i + 1] != 1.0:
            multiply_all(theta, self.scale[2 * i + 1])

    def norm2(self, i, delta):
        K, T = self.labels, self.label_ptr[i + 1] - self.label_ptr[i]
        norm2 = self.grams.rows_norm2(i, delta, T, K) + self.pair_grams.rows_norm2(i, delta[T * K :], T, K * K)
        return norm2 * self.scale[2 * i + 1] ** 2

    def push(self, i, c, delta, w):
        K, first, T = self.labels, self.label_ptr[i], self.label_ptr[i + 1] - self.label_ptr[i]
        edges, weights = delta[T * K :], w[self.d - self.pairs * K * K :]
        c *= self.scale[2 * i + 1]
        push_tokens(self.ids, self.values, self.row_ptr, first, T, K, c, delta, w)
        push_tokens(self.pair_ids, self.values[:0], self.pair_ptr, first, T, K * K, c, edges, weights)

    def pair_norm2(self, i, y, z, delta):
        K, T = self.labels, self.label_ptr[i + 1] - self.label_ptr[i]
        a, b, work = delta[:T], delta[T : 2 * T], delta[2 * T :]
        number_pairs(y, T, K, a)
        number_pairs(z, T, K, b)
        norm2 = self.grams.pair_rows_norm2(i, y, z, T, K, work)
        norm2 += self.pair_grams.pair_rows_norm2(i, a, b, T, K * K, work)
        return max(norm2, 0.0) * self.scale[2 * i + 1] ** 2

    def pair_move(self, i, c, y, z, delta, w):
        K, first, T = self.labels, self.label_ptr[i], self.label_ptr[i + 1] - self.label_ptr[i]
        c *= self.scale[2 * i + 1]
        push_pair_tokens(self.ids, self.values, self.row_ptr, first, T, K, c, y, z, w, delta)
        push_pairs(self.pair_ids, self.pair_ptr, first, T, K, c, y, z, w[self.d - self.pairs * K * K :])

    def pair_follow(self, i, c, y, z, w, theta, delta):
        K, T, c = self.labels, self.label_ptr[i + 1] - self.label_ptr[i], c * self.scale[2 * i + 1] ** 2
        a, b, work = delta[:T], delta[T : 2 * T], delta[2 * T :]
        number_pairs(y, T, K, a)
        number_pairs(z, T, K, b)
        self.grams.follow_rows(i, y, z, T, K, c, theta, work)
        self.pair_grams.follow_rows(i, a, b, T, K * K, c, theta[T * K :], work)

    def score_labels(self, i, w, labels, slots, theta, scores):
        K, first, T = self.labels, self.label_ptr[i], self.label_ptr[i + 1] - self.label_ptr[i]
        weights = w[self.d - self.pairs * K * K :]
        few_scores(self.ids, self.values, self.row_ptr, first, T, K, w, self.d - K * K, labels, slots, theta, scores)
        add_pair_scores(self.pair_ids, self.pair_ptr, first, T, K, weights, labels, slots, scores)
        if self.scale[2 * i + 1] != 1.0:
            multiply_all(scores, self.scale[2 * i + 1])
