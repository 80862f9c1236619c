"""Losses of chains, what each wrong label costs in which unit; and constraints, which sequences of labels may not occur.

L_i(y) = sum_t cost(truth_t, y_t) / unit_i. `per_sequence`, the papers' loss, divides by the block's own number of tokens T,
`per_token` by the mean number of the training blocks: then an error costs the same in short and in long sequences, and the
mean loss over the training blocks is the share of wrong tokens. Test blocks are measured in the same unit.

``cost`` (K, K) holds costs of predicting b where a is true, else every error costs 1. With ``balanced`` the costs of a true
label are multiplied by (training tokens) / (K x training tokens with that label), whose mean over these tokens is 1. A
true label that training lacks costs 1. The weight of a block (`losses.block_weights`) divides its unit.

Constraints are a table ``forbidden`` (K + 2, K): entry (a, b) says whether label b may not come right after a; row K,
whether b may not be the first label; row K + 1, whether it may not be the last one. What may not occur scores `BLOCKED`.

A chain holds both in one flat float64 array, `costs`: (K + 1, K), and then, if there are constraints, (K + 2, K) of 0 or
BLOCKED. Oracles add it to a copy of the scores, so Viterbi's algorithm and its relatives know of neither.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from gapwise.records import Facts
from gapwise.stages.problems.compiled import inner
from gapwise.stages.problems.losses import LOSSES, PER_SEQUENCE, PER_TOKEN
from gapwise.stages.problems.protocol import PLAIN, U
from gapwise.stages.problems.scale import check_losses

BLOCKED = -1e100
"""Score of what may not occur. Finite: no sum of a block's scores reaches it, sums of it do not overflow, and differences
of such sums are numbers, where those of infinities are not."""


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


def cost_table(arrays: Mapping[str, np.ndarray], meta: Facts, K: int) -> np.ndarray:
    """Costs (K + 1, K), the last row for labels that training lacks."""
    cost = np.array(arrays.get("cost", 1.0 - np.eye(K)), np.float64)
    wrong = cost.shape != (K, K) or np.diag(cost).any() or not ((cost >= 0) & (cost < np.inf)).all()
    if wrong or ("cost" in arrays and not cost.any()):
        raise ValueError(f"chain: cost must be ({K}, {K}), finite, >= 0 and not all 0, with a zero diagonal")
    if meta.get("balanced", False):
        cost *= balanced_weights(np.asarray(meta["label_counts"]))[:, None]
    check_losses("chain", cost)
    return np.concatenate([cost, np.ones((1, K))])


def balanced_weights(counts: np.ndarray) -> np.ndarray:
    """Weights (K,) inverse to the counts or total weights of labels, of mean 1 over all; 1 for a label without any."""
    shares = np.count_nonzero(counts) * np.asarray(counts, np.float64)
    return np.divide(counts.sum(), shares, out=np.ones(shares.shape), where=shares > 0.0)


def blocked_scores(arrays: Mapping[str, np.ndarray], K: int) -> np.ndarray:
    """float64 (K + 2, K), 0 or BLOCKED, from ``forbidden`` among the arrays; (0, K) if it is missing or forbids nothing."""
    table = np.asarray(arrays.get("forbidden", np.zeros((K + 2, K))))
    if table.shape != (K + 2, K):
        raise ValueError(f"chain: forbidden must be ({K + 2}, {K}), is {table.shape}")
    return np.where(table != 0, BLOCKED, 0.0) if table.any() else np.empty((0, K))


def refuse_lengths(blocked: np.ndarray, lengths: np.ndarray) -> None:
    """Raise ValueError if constraints leave a block without a labelling, naming it."""
    if not blocked.size:
        return
    follows, may_end = blocked[:-2] == 0, blocked[-1] == 0
    reached, wanted = blocked[-2] == 0, set(lengths.tolist())
    for T in range(1, int(lengths.max(initial=0)) + 1):
        if T in wanted and not (reached & may_end).any():
            block = int(np.argmax(lengths == T))
            raise ValueError(f"chain: block {block}: the constraints allow no labelling of {T} tokens")
        reached = follows[reached].any(axis=0)


def broken(table: np.ndarray, labels: np.ndarray, ptr: np.ndarray) -> np.ndarray:
    """For each flat label, the row of a table that it breaks, or -1. Sequence i is ptr[i]:ptr[i + 1], and none is empty.

    The row is the label before, K for a first label, K + 1 for a last one. Labels >= K, which training lacks, break nothing.
    """
    labels, K = np.asarray(labels, np.int64), table.shape[1]
    rows = np.full(labels.size, -1)
    first, last = np.asarray(ptr[:-1]), np.asarray(ptr[1:]) - 1
    follows = np.ones(labels.size, bool)
    follows[first] = False
    inner = np.flatnonzero(follows)
    before = labels[inner - 1]
    inner, before = inner[before < K], before[before < K]
    for tokens, row in ((last, np.full(last.size, K + 1)), (first, np.full(first.size, K)), (inner, before)):
        known = labels[tokens] < K
        wrong = np.flatnonzero(known)[table[row[known], labels[tokens[known]]] != 0]
        rows[tokens[wrong]] = row[wrong]
    return rows


def breaks(blocked: np.ndarray, label: np.ndarray, label_offset: np.ndarray) -> np.ndarray:
    """Whether each of some labellings, the flat labels label_offset[a]:label_offset[a + 1], breaks the constraints."""
    if label_offset.size < 2 or not blocked.any():
        return np.zeros(label_offset.size - 1, bool)
    wrong: np.ndarray = np.logical_or.reduceat(broken(blocked, label, label_offset) >= 0, label_offset[:-1])
    return wrong


def blocked_of(costs: np.ndarray, K: int) -> np.ndarray:
    """(K + 2, K): BLOCKED at what may not occur, else 0."""
    return costs[(K + 1) * K :].reshape(K + 2, K) if constrained(costs, K) else np.zeros((K + 2, K))


@inner(**PLAIN)
def constrained(costs, K):
    """Whether there are constraints."""
    return costs.size > (K + 1) * K


@inner(**PLAIN)
def _row(true, K):
    """Where the costs of a true label begin; labels that training lacks share the last row."""
    return U(min(np.int64(true), K) * K)


@inner(**PLAIN)
def with_costs(costs, theta, T, K, c, truth, first, out):
    """out (T, K) <- node scores plus c times the costs of labels.

    With constraints what may not occur scores BLOCKED, and out[T K:] are the scores of transitions, too.
    """
    for t in range(T):
        row, here = _row(truth[first + t], K), U(t * K)
        for b in range(K):
            out[here + U(b)] = theta[here + U(b)] + c * costs[row + U(b)]
    blocked, pairs, last, edges = U((K + 1) * K), U(K * K), U((T - 1) * K), U(T * K)
    if constrained(costs, K):
        for j in range(pairs):
            out[edges + U(j)] = theta[edges + U(j)] + costs[blocked + U(j)]
        for b in range(K):
            out[U(b)] += costs[blocked + pairs + U(b)]
            out[last + U(b)] += costs[blocked + pairs + U(K + b)]


@inner(**PLAIN)
def cost_of(costs, y, T, K, truth, first):
    """Sum over tokens of the cost of their label."""
    total = 0.0
    for t in range(T):
        total += costs[_row(truth[first + t], K) + U(y[t])]
    return total


@inner(**PLAIN)
def mean_cost(costs, mu, T, K, truth, first):
    """Sum over tokens of the mean cost of their label; mu (p_i,) holds the weights of labels."""
    total = 0.0
    for t in range(T):
        row, here = _row(truth[first + t], K), U(t * K)
        for b in range(K):
            total += mu[here + U(b)] * costs[row + U(b)]
    return total
