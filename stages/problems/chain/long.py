"""Chains too long for a Gram matrix: what it would give, from the attributes of the tokens, in time proportional to these.

In the place of T x T inner products a long block has its *entries*: its pairs (token, value) by attribute, so that the row
of B delta of an attribute is summed in one go. An entry is two float32 numbers, t + 1 and the value of the attribute at
token t; t + 1 is negative at the first entry of each attribute. One 0 follows where there would be T * T numbers.
"""

from __future__ import annotations

import numpy as np

from gapwise.stages.problems.inner import inner
from gapwise.stages.problems.protocol import PLAIN, U

LONGEST = 4096
"""Tokens of the longest block with a Gram matrix, which takes 64 MiB."""

MOST = (1 << 24) - 1
"""Tokens of the longest block: float32 holds their numbers exactly."""


def entries_of(token: np.ndarray, column: np.ndarray, values: np.ndarray | None, tokens: int) -> np.ndarray:
    """The entries of a block of `tokens` tokens, of which entry j says that token[j] has the attribute column[j]."""
    order = np.argsort(column, kind="stable")
    first = np.diff(column[order], prepend=-1) != 0
    entries = np.ones((order.size, 2), np.float32)
    entries[:, 0] = np.where(first, -1, 1) * (token[order] + 1)
    if values is not None:
        entries[:, 1] = values[order]
    return np.concatenate([entries.reshape(-1), np.zeros(int(2 * order.size == tokens**2), np.float32)])


def sizes_of(entries: np.ndarray, tokens: np.ndarray) -> np.ndarray:
    """How many numbers the entries of blocks take, of which each has so many entries and tokens."""
    return 2 * entries + (2 * entries == tokens**2)


@inner(**PLAIN)
def _token(entries, j):
    """The token of the entry at j."""
    return U(abs(entries[U(j)])) - U(1)


@inner(**PLAIN)
def _end(entries, j, stop):
    """Where the entries of the attribute end that begin at j."""
    j += 2
    while j + 1 < stop and entries[U(j)] > 0.0:
        j += 2
    return j


@inner(**PLAIN)
def long_norm2(delta, K, entries, start, stop):
    """||B delta||^2 without the transitions."""
    total, begin = 0.0, start
    while begin + 1 < stop:
        end = _end(entries, begin, stop)
        for k in range(K):
            x = 0.0
            for j in range(begin, end, 2):
                x += entries[U(j + 1)] * delta[_token(entries, j) * U(K) + U(k)]
            total += x * x
        begin = end
    return total


@inner(**PLAIN)
def _row(y, z, entries, begin, end, row):
    """row (K,) += the row of B (m(y) - m(z)) of one attribute; returns whether the labellings differ where it occurs."""
    differ = False
    for j in range(begin, end, 2):
        t = _token(entries, j)
        if y[t] != z[t]:
            row[U(y[t])] += entries[U(j + 1)]
            row[U(z[t])] -= entries[U(j + 1)]
            differ = True
    return differ


@inner(**PLAIN)
def long_pair_norm2(y, z, K, entries, start, stop, row):
    """||B (m(y) - m(z))||^2 without the transitions. row (at least K,) is workspace."""
    row[:K] = 0.0
    total, begin = 0.0, start
    while begin + 1 < stop:
        end = _end(entries, begin, stop)
        if _row(y, z, entries, begin, end, row):
            for k in range(K):
                total += row[U(k)] * row[U(k)]
                row[U(k)] = 0.0
        begin = end
    return total


@inner(**PLAIN)
def long_follow_pair(y, z, K, entries, start, stop, c, theta, row):
    """theta += c B' B (m(y) - m(z)), without the transitions. row (at least K,) is workspace."""
    row[:K] = 0.0
    begin = start
    while begin + 1 < stop:
        end = _end(entries, begin, stop)
        if _row(y, z, entries, begin, end, row):
            for j in range(begin, end, 2):
                o, x = _token(entries, j) * U(K), c * entries[U(j + 1)]
                for k in range(K):
                    theta[o + U(k)] += x * row[U(k)]
            for k in range(K):
                row[U(k)] = 0.0
        begin = end
