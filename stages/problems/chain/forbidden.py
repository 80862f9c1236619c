"""Constraints of chains: labels that may not follow one another, nor begin or end a sequence.

A table ``forbidden`` (K + 2, K): entry (a, b) says whether label b may not come right after a; row K, whether b may not be
the first label; row K + 1, whether it may not be the last one.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

BLOCKED = -1e100
"""Score of what may not occur. Finite: no sum of a block's scores reaches it, sums of it do not overflow, and differences
of such sums are numbers, where those of infinities are not."""


def blocked_scores(arrays: Mapping[str, np.ndarray], K: int) -> np.ndarray:
    """float64 (K + 2, K), 0 or BLOCKED, from ``forbidden`` among the arrays; (0, 0) if it is missing or forbids nothing."""
    table = np.asarray(arrays.get("forbidden", np.zeros((K + 2, K))))
    if table.shape != (K + 2, K):
        raise ValueError(f"chain: forbidden must be ({K + 2}, {K}), is {table.shape}")
    return np.where(table != 0, BLOCKED, 0.0) if table.any() else np.empty((0, 0))


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
    if label_offset.size < 2 or not blocked.size:
        return np.zeros(label_offset.size - 1, bool)
    wrong: np.ndarray = np.logical_or.reduceat(broken(blocked, label, label_offset) >= 0, label_offset[:-1])
    return wrong
