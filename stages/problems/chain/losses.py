"""Losses of chains: what each wrong label costs, and what the costs of a block are divided by.

L_i(y) = sum_t cost(truth_t, y_t) / unit_i. `per_sequence`, the papers' loss, divides by the block's own number of tokens T,
`per_token` by the mean number of the training blocks: then an error costs the same in short and in long sequences, and the
mean loss over the training blocks is the share of wrong tokens. Test blocks are measured in the same unit.

``cost`` (K, K) holds costs of predicting b where a is true, else every error costs 1. With ``balanced`` the costs of a true
label are multiplied by (training tokens) / (K x training tokens with that label), whose mean over these tokens is 1. A
true label that training lacks costs 1. The weight of a block (`block_weight`) divides its unit.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from gapwise.records import Facts
from gapwise.stages.problems.inner import inner
from gapwise.stages.problems.loss_names import LOSSES, PER_SEQUENCE, PER_TOKEN
from gapwise.stages.problems.protocol import PLAIN, U, compile_methods, frozen
from gapwise.stages.problems.scale import check_losses


def units_of(lengths: np.ndarray, meta: Facts) -> np.ndarray:
    """Units (n,) of blocks with `lengths` (n,) tokens, by ``loss`` of `meta` (default: per_sequence); per_token needs
    ``label_counts`` (K), the training tokens with each label, and ``n_train``."""
    loss = meta.get("loss", PER_SEQUENCE)
    if loss not in LOSSES:
        raise ValueError(f"chain: loss must be {' or '.join(LOSSES)}, is {loss!r}")
    unit = lengths.astype(np.float64)
    if loss == PER_TOKEN:
        tokens, n_train = float(sum(meta["label_counts"])), int(meta["n_train"])
        if not (n_train > 0 and 0.0 < tokens < np.inf):
            raise ValueError(
                f"chain: label_counts of {n_train} training sequences must count tokens, they sum to {tokens:g}"
            )
        unit = np.full(lengths.size, tokens / n_train)
    return unit


def costs_of(arrays: Mapping[str, np.ndarray], meta: Facts, K: int) -> np.ndarray:
    """Costs (K + 1, K), the last row for labels that training lacks; (0, 0) where every error costs 1."""
    balanced = bool(meta.get("balanced", False))
    if "cost" not in arrays and not balanced:
        return np.empty((0, 0))
    cost = np.array(arrays.get("cost", 1.0 - np.eye(K)), np.float64)
    if cost.shape != (K, K) or np.diag(cost).any() or not ((cost >= 0) & (cost < np.inf)).all() or not cost.any():
        raise ValueError(f"chain: cost must be ({K}, {K}), finite, >= 0 and not all 0, with a zero diagonal")
    if balanced:
        cost *= balanced_weights(np.asarray(meta["label_counts"]))[:, None]
    check_losses("chain", cost)
    return np.concatenate([cost, np.ones((1, K))])


def balanced_weights(counts: np.ndarray) -> np.ndarray:
    """Weights (K,) inverse to the counts or total weights of labels, of mean 1 over all; 1 for a label without any."""
    shares = np.count_nonzero(counts) * np.asarray(counts, np.float64)
    return np.divide(counts.sum(), shares, out=np.ones(shares.shape), where=shares > 0.0)


class ZeroOne(NamedTuple):
    """Every wrong label costs 1, and every sequence of labels may occur."""

    labels: int
    """K"""

    @property
    def blocked(self) -> np.ndarray:
        """(K + 2, K): zeros."""
        return np.zeros((self.labels + 2, self.labels))

    def least_cost(self, truth: np.ndarray) -> float:
        """1."""
        return 1.0

    def room_for_scores(self, size):
        return 0

    def with_costs(self, theta, T, c, truth, first, out):
        return theta, c

    def scores_within(self, theta, out):
        return theta

    def sum_of_costs(self, y, truth, first, T):
        wrong = 0
        for t in range(T):
            wrong += y[t] != truth[first + t]
        return wrong

    def mean_costs(self, mu, truth, first, T):
        total = 0.0
        for t in range(T):
            here, true = U(t * self.labels), np.int64(truth[first + t])
            for b in range(self.labels):
                if b != true:
                    total += mu[here + U(b)]
        return total


@inner(**PLAIN)
def _row(true, K):
    """Where the costs of a true label begin; labels that training lacks share the last row."""
    return U(min(np.int64(true), K) * K)


class CostTables(NamedTuple):
    """Costs of labels, and sequences that may not occur. A type of its own: chains that have neither compile none of it."""

    labels: int
    """K"""
    values: np.ndarray
    """float64, flat (2 K + 3, K): costs (K + 1, K) of label b where a is true, the last row for a >= K; then, 0 or BLOCKED,
    (K + 2, K) for b after a, first, and last"""

    @property
    def blocked(self) -> np.ndarray:
        """(K + 2, K): BLOCKED at what may not occur, else 0."""
        return self.values.reshape(-1, self.labels)[self.labels + 1 :]

    def least_cost(self, truth: np.ndarray) -> float:
        """The least cost of one wrong label where `truth` is true; constraints may forbid to change one alone."""
        costs = self.values.reshape(-1, self.labels)
        return float(min(np.min(np.delete(costs[k], k)) for k in np.unique(truth).tolist()))

    def room_for_scores(self, size):
        """Numbers of workspace for a copy of scores."""
        return size

    def with_costs(self, theta, T, c, truth, first, out):
        """(theta plus c times the costs, with BLOCKED at what may not occur; what each wrong label adds to that)."""
        K, step = self.labels, T * self.labels
        for j in range((T + K) * K):
            out[j] = theta[j]
        if c != 0.0:
            for t in range(T):
                row, here = _row(truth[first + t], K), U(t * K)
                for b in range(K):
                    out[here + U(b)] += c * self.values[row + U(b)]
        blocked, last = (K + 1) * K, (T - 1) * K
        for j in range(K * K):
            out[step + j] += self.values[blocked + j]
        for b in range(K):
            out[b] += self.values[blocked + K * K + b]
            out[last + b] += self.values[blocked + (K + 1) * K + b]
        return out, 0.0

    def scores_within(self, theta, out):
        """The scores that `with_costs` returned last."""
        return out

    def sum_of_costs(self, y, truth, first, T):
        """Sum over tokens of the cost of their label."""
        total, K = 0.0, self.labels
        for t in range(T):
            total += self.values[_row(truth[first + t], K) + U(y[t])]
        return total

    def mean_costs(self, mu, truth, first, T):
        """Sum over tokens of the mean cost of their label; mu (p_i,) holds the weights of labels."""
        total, K = 0.0, self.labels
        for t in range(T):
            row, here = _row(truth[first + t], K), U(t * K)
            for b in range(K):
                total += mu[here + U(b)] * self.values[row + U(b)]
        return total


compile_methods(CostTables, "room_for_scores", "with_costs", "scores_within", "sum_of_costs", "mean_costs")


def costs_and_constraints(K: int, cost: np.ndarray, blocked: np.ndarray) -> ZeroOne | CostTables:
    """The record of both tables; one that says nothing is (0, 0)."""
    if not (cost.size or blocked.size):
        return ZeroOne(K)
    usual = np.concatenate([1.0 - np.eye(K), np.ones((1, K))])
    both = cost if cost.size else usual, blocked if blocked.size else np.zeros((K + 2, K))
    return CostTables(K, frozen(np.concatenate([table.reshape(-1) for table in both])))
