"""What a labelling of a `Matching` costs, and how two of them differ: methods of the class, and what they call."""

from __future__ import annotations

import numpy as np
from numba import njit

from gapwise.stages.problems import moves
from gapwise.stages.problems.matching.assignment import MOST
from gapwise.stages.problems.protocol import JIT, PLAIN, add_scaled, dot

WRONG, TRUE, POSSIBLE = 0, 1, 2
"""Roles of a candidate (`role`): not a link, a true link, a possible link, which is neither demanded nor quite wrong."""


@njit(**PLAIN)
def edge(self, i, j, entry):
    """The candidate that an entry of word j stands for, or -1: null, or more than the word has."""
    word = self.word_ptr[i] + j
    e = self.begin[word] + np.int64(entry) - 1
    return e if self.begin[word] <= e and e < self.begin[word + 1] else np.int64(-1)


@njit(**PLAIN)
def has_two(self, i, q, y):
    """Whether word q of a block, the words of the other sentence after those of the first, has two links."""
    rows, count = self.word_ptr[i + 1] - self.word_ptr[i], 0
    if q < rows:
        for s in range(q * self.fertility, (q + 1) * self.fertility):
            count += 1 if edge(self, i, q, y[s]) >= 0 else 0
    else:
        for j in range(rows):
            for s in range(j * self.fertility, (j + 1) * self.fertility):
                e = edge(self, i, j, y[s])
                if e >= 0 and self.column[e] == q - rows:
                    count += 1
    return 1.0 if count > 1 else 0.0


@njit(**PLAIN)
def _has(y, first, fertility, entry):
    """Whether a word, whose entries of y begin at `first`, has the entry `entry`."""
    for s in range(first, first + fertility):  # noqa: SIM110  # numba compiles no generators
        if y[s] == entry:
            return True
    return False


def loss(self, i, y):
    """The costs of missed true links and of links that are not true."""
    total, F = 0.0, self.fertility
    for j in range(self.word_ptr[i + 1] - self.word_ptr[i]):
        begin = self.begin[self.word_ptr[i] + j]
        for e in range(begin, self.begin[self.word_ptr[i] + j + 1]):
            if self.cost[e] > 0.0 and _has(y, j * F, F, e - begin + 1) != (self.role[e] == TRUE):
                total += self.cost[e]
    return total


def pair_move(self, i, c, y, z, delta, w):
    """By the links that only y or only z has."""
    width, F = self.x.shape[1], self.fertility
    features = w[:width]
    for j in range(self.word_ptr[i + 1] - self.word_ptr[i]):
        for s in range(j * F, (j + 1) * F):
            e = edge(self, i, j, y[s])
            if e >= 0 and not _has(z, j * F, F, y[s]):
                add_scaled(c, self.x[e], features)
            e = edge(self, i, j, z[s])
            if e >= 0 and not _has(y, j * F, F, z[s]):
                add_scaled(-c, self.x[e], features)
    if F == MOST:
        first = self.kind_ptr[i]
        for q in range(self.kind_ptr[i + 1] - first):
            change = has_two(self, i, q, y) - has_two(self, i, q, z)
            if change != 0.0:
                w[width + self.kind[first + q]] += c * change


@njit(**JIT)
def pair_norm(self, i, y, z):
    """||B (m(y) - m(z))||^2."""
    moved = np.zeros(self.d)
    moves.pair_move(self, i, 1.0, y, z, moved, moved)
    return dot(moved, moved)


def score_labels(self, i, w, labels, slots, theta, scores):
    """Links that all labellings have count as 0; each other one is scored once."""
    F, first, width = self.fertility, self.edge_ptr[i], self.x.shape[1]
    rows, reference = self.word_ptr[i + 1] - self.word_ptr[i], slots[0]
    for j in range(rows):
        differ = False
        for s in range(j * F, (j + 1) * F):
            for slot in slots:
                differ |= labels[slot, s] != labels[reference, s]
        for slot in slots:
            for s in range(j * F, (j + 1) * F):
                e = edge(self, i, j, labels[slot, s])
                if e >= 0:
                    theta[e - first] = np.nan if differ else 0.0
    features = w[:width]
    for k in range(slots.size):
        y, total = labels[slots[k]], 0.0
        for j in range(rows):
            for s in range(j * F, (j + 1) * F):
                e = edge(self, i, j, y[s])
                if e >= 0:
                    if np.isnan(theta[e - first]):
                        theta[e - first] = dot(self.x[e], features)
                    total += theta[e - first]
        if F == MOST:
            for q in range(self.kind_ptr[i + 1] - self.kind_ptr[i]):
                total += w[width + self.kind[self.kind_ptr[i] + q]] * has_two(self, i, q, y)
        scores[k] = total
