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

import numpy as np

from gapwise.records import Facts
from gapwise.stages.problems.inner import inner
from gapwise.stages.problems.loss_names import LOSSES, PER_SEQUENCE, PER_TOKEN
from gapwise.stages.problems.protocol import PLAIN, U


def units_of(lengths: np.ndarray, meta: Facts) -> np.ndarray:
    """Units (n,) of blocks with `lengths` (n,) tokens, by ``loss`` of `meta` (default: per_sequence); per_token needs
    ``label_counts`` (K), the training tokens with each label, and ``n_train``."""
    loss = meta.get("loss", PER_SEQUENCE)
    if loss not in LOSSES:
        raise ValueError(f"chain: loss must be {' or '.join(LOSSES)}, is {loss!r}")
    unit = lengths.astype(np.float64)
    if loss == PER_TOKEN:
        unit = np.full(lengths.size, sum(meta["label_counts"]) / int(meta["n_train"]))
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
    return np.concatenate([cost, np.ones((1, K))])


def balanced_weights(counts: np.ndarray) -> np.ndarray:
    """Weights (K,) inverse to the counts of labels, of mean 1 over all that is counted; 1 for a label without any."""
    known = np.maximum(counts, 1)
    return np.where(counts > 0, counts.sum() / (np.count_nonzero(counts) * known), 1.0)


def tables_of(cost: np.ndarray, blocked: np.ndarray) -> np.ndarray:
    """Both tables flat, one after the other; (0,) if neither says anything. The sizes are (0, 0) for one that does not."""
    K = max(cost.shape[1], blocked.shape[1])
    if not K:
        return np.empty(0)
    usual = np.concatenate([1.0 - np.eye(K), np.ones((1, K))])
    both = cost if cost.size else usual, blocked if blocked.size else np.zeros((K + 2, K))
    return np.concatenate([table.reshape(-1) for table in both])


@inner(**PLAIN)
def augmented(theta, T, K, c, tables, truth, first, out):
    """out <- theta, plus c times the costs of `tables`, and with BLOCKED at what may not occur."""
    step = T * K
    for j in range(step + K * K):
        out[j] = theta[j]
    if c != 0.0:
        for t in range(T):
            row, here = U(min(np.int64(truth[first + t]), K) * K), U(t * K)
            for b in range(K):
                out[here + U(b)] += c * tables[row + U(b)]
    blocked, last = (K + 1) * K, (T - 1) * K
    for j in range(K * K):
        out[step + j] += tables[blocked + j]
    for b in range(K):
        out[b] += tables[blocked + K * K + b]
        out[last + b] += tables[blocked + (K + 1) * K + b]


@inner(**PLAIN)
def sum_of_costs(tables, y, truth, first, T, K):
    """Sum over tokens of the cost of their label."""
    total = 0.0
    for t in range(T):
        total += tables[min(np.int64(truth[first + t]), K) * K + np.int64(y[t])]
    return total


@inner(**PLAIN)
def mean_costs(tables, mu, truth, first, T, K):
    """Sum over tokens of the mean cost of their label; mu (T K + K K,) holds the weights of labels."""
    total = 0.0
    for t in range(T):
        row, here = U(min(np.int64(truth[first + t]), K) * K), U(t * K)
        for b in range(K):
            total += mu[here + U(b)] * tables[row + U(b)]
    return total
