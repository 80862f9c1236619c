"""Matchings of the words of two sentences: word alignment (LJ13 section 6).

The model is that of Taskar, Lacoste-Julien and Klein, *A Discriminative Matching Approach to Word Alignment*, 2005. Block i
is a pair of sentences of J and K words with E candidate links (j, k), each with a row of features. A labelling is a set of
candidates, at most one at every word; a word without one is aligned to null. Its score is the sum of <w, x_jk> over its
links: local coordinates are the E link indicators, B_i has the feature rows as columns.

With `fertility` 2 a word may have two links, at a price: every word with two adds the weight of its class (side and
frequency) to the score, which is <= 0 (Lacoste-Julien, Taskar, Klein and Jordan, *Word Alignment via Quadratic Assignment*,
2006, learn such prices). Then J + K more local coordinates say which words have two. As the second link of a word never
earns more than the first, the oracle is a flow of least cost (`assignment`).

The loss counts links: a missed true one costs `missed`, a link that is not true `extra`, and one that the annotators call
possible costs `possible`, each / (J + K). True links that are no candidates cannot be chosen and are not counted. A
labelling is stored as `fertility` entries for each of the J words: one more than the rank of the link among the word's
candidates, rising, and 0 for none. So label 0 everywhere is the alignment to null.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numba import njit

from gapwise.records import Facts
from gapwise.stages.problems.images.kernels import rows_add, rows_dot, rows_norm2
from gapwise.stages.problems.matching import labellings
from gapwise.stages.problems.matching.assignment import MOST, best_matching, workspace
from gapwise.stages.problems.matching.labellings import (
    TRUE,
    edge,
    has_two,
    pair_norm,
)
from gapwise.stages.problems.protocol import PLAIN, frozen, takes

NEGATIVE = 1e-9
"""A second link that earns more than this share of the largest price is an error; between that and 0 it is free."""
COSTS = {"missed": 1.0, "extra": 1.0, "possible": 0.0}
"""Costs of a link in the loss, unless `meta` says otherwise."""


@takes(labellings, "loss", "pair_move", "score_labels")
class Matching(NamedTuple):
    """n pairs of sentences; d = features, and with fertility 2 one weight more for each class of words."""

    n: int
    d: int
    local_ptr: np.ndarray
    label_ptr: np.ndarray
    truth: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    labels: int
    """one more than the most candidates of a word"""
    fertility: int
    """1 or 2"""
    x: np.ndarray
    """float32, (edge_ptr[-1], features)"""
    edge_ptr: np.ndarray
    """int64, (n + 1,)"""
    word_ptr: np.ndarray
    """int64, (n + 1,): the J words of block i are word_ptr[i]:word_ptr[i + 1]"""
    begin: np.ndarray
    """int64, (word_ptr[-1] + 1,): candidates of each of these words"""
    column: np.ndarray
    """int32, (edge_ptr[-1],): k of each candidate"""
    columns: np.ndarray
    """int64, (n,): K"""
    role: np.ndarray
    """uint8, (edge_ptr[-1],): WRONG, TRUE or POSSIBLE"""
    cost: np.ndarray
    """float64, (edge_ptr[-1],): the loss if a true candidate is missed, or another one chosen"""
    kind: np.ndarray
    """uint8, flat: classes of the J, then the K words of a block; block i begins at kind_ptr[i]"""
    kind_ptr: np.ndarray
    """int64, (n + 1,)"""
    most_words: int
    most_columns: int
    most_edges: int

    @property
    def oracle_cost(self) -> float:
        """Of a search for an assignment."""
        return 2.5

    def scores(self, i, w, theta):
        width, first = self.x.shape[1], self.edge_ptr[i]
        edges = self.edge_ptr[i + 1] - first
        rows_dot(self.x, 1.0, first, w[:width], theta[:edges])
        for q in range(theta.size - edges):
            theta[edges + q] = w[width + self.kind[self.kind_ptr[i] + q]]

    def max_oracle(self, i, theta, y, scratch):
        first, gain = self.edge_ptr[i], scratch[0]
        for e in range(self.edge_ptr[i + 1] - first):
            cost = self.cost[first + e]
            gain[e] = theta[e] - cost if self.role[first + e] == TRUE else theta[e] + cost
        _match(self, i, theta, y, scratch)
        return self.loss(i, y)  # type: ignore[attr-defined]  # of labellings

    def decode(self, i, theta, y, scratch):
        gain = scratch[0]
        for e in range(self.edge_ptr[i + 1] - self.edge_ptr[i]):
            gain[e] = theta[e]
        _match(self, i, theta, y, scratch)

    def value(self, i, theta, y):
        total, first = 0.0, self.edge_ptr[i]
        for j in range(self.word_ptr[i + 1] - self.word_ptr[i]):
            for s in range(j * self.fertility, (j + 1) * self.fertility):
                e = edge(self, i, j, y[s])
                if e >= 0:
                    total += theta[e - first]
        if self.fertility == MOST:
            edges = self.edge_ptr[i + 1] - first
            for q in range(theta.size - edges):
                total += theta[edges + q] * has_two(self, i, q, y)
        return total

    def add(self, i, y, c, out):
        first = self.edge_ptr[i]
        for j in range(self.word_ptr[i + 1] - self.word_ptr[i]):
            for s in range(j * self.fertility, (j + 1) * self.fertility):
                e = edge(self, i, j, y[s])
                if e >= 0:
                    out[e - first] += c
        if self.fertility == MOST:
            edges = self.edge_ptr[i + 1] - first
            for q in range(out.size - edges):
                out[edges + q] += c * has_two(self, i, q, y)

    def norm2(self, i, delta):
        edges = self.edge_ptr[i + 1] - self.edge_ptr[i]
        total = rows_norm2(self.x, self.edge_ptr[i], delta[:edges])
        if self.fertility == MOST:
            first = self.kind_ptr[i]
            for k in range(self.d - self.x.shape[1]):
                count = 0.0
                for q in range(delta.size - edges):
                    if self.kind[first + q] == k:
                        count += delta[edges + q]
                total += count * count
        return total

    def push(self, i, c, delta, w):
        width, edges = self.x.shape[1], self.edge_ptr[i + 1] - self.edge_ptr[i]
        rows_add(self.x, self.edge_ptr[i], c, delta[:edges], w[:width])
        for q in range(delta.size - edges):
            if delta[edges + q] != 0.0:
                w[width + self.kind[self.kind_ptr[i] + q]] += c * delta[edges + q]

    def pair_norm2(self, i, y, z, delta):
        return pair_norm(self, i, y, z)

    def least_loss(self, i: int) -> float:
        """The least cost of a candidate; 0 where possible links cost nothing."""
        return np.min(self.cost[self.edge_ptr[i] : self.edge_ptr[i + 1]], initial=np.inf)

    def forbidden(self, block: np.ndarray, label: np.ndarray, label_offset: np.ndarray) -> np.ndarray:
        """Which stored rows are no matchings: links that are no candidates, out of order, or too many at a word."""
        return not_matchings(self, block, np.asarray(label, np.int64), label_offset)

    def scratch(self):
        return workspace(self.most_words, self.most_columns, self.most_edges)


@njit(**PLAIN)
def _match(self, i, theta, y, scratch):
    """y <- the best matching by the gains in scratch[0]; ValueError if a second link would earn something."""
    edges, rows = self.edge_ptr[i + 1] - self.edge_ptr[i], self.word_ptr[i + 1] - self.word_ptr[i]
    second, largest, least = scratch[3], 0.0, 0.0
    for q in range(theta.size - edges):
        price = -theta[edges + q]
        largest = max(largest, price)
        least = min(least, price)
        second[q] = max(price, 0.0)
    if not least >= -NEGATIVE * largest:
        raise ValueError(
            "matching: a second link has a positive score, so this is not a flow problem; clip its weights to <= 0"
        )
    best_matching(self.begin, self.word_ptr[i], rows, self.columns[i], self.column, self.fertility, y, scratch)


def build(arrays: Mapping[str, np.ndarray], meta: Facts) -> Matching:
    """Matching problem of one split, over ragged arrays (each with its ``<name>_ptr``).

    Parameters
    ----------
    arrays
        Per pair of J and K words with E candidates: ``x`` (E, features) float32, ``counts`` (J,) candidates of each word,
        ``column`` (E,) the other word of each, from 0, rising within a word, ``role`` (E,) WRONG, TRUE or POSSIBLE,
        ``labels`` (J * fertility,) the true labelling, ``kind`` (J + K,) classes of the words.
    meta
        ``fertility`` 1 or 2; ``kinds``, the number of classes of words; optional ``costs`` (`COSTS`) and
        ``nonnegative``, features whose weights must be >= 0.

    Raises
    ------
    ValueError
        If an array does not fit the others, or a true labelling is no matching; the message names the block.
    """
    fertility, kinds = int(meta["fertility"]), int(meta["kinds"])
    names = ("x", "counts", "column", "role", "labels", "kind")
    ptr = {name: np.asarray(arrays[f"{name}_ptr"], np.int64) for name in names}
    n, edges, words = ptr["x"].size - 1, np.diff(ptr["x"]), np.diff(ptr["counts"])
    x, flat = arrays["x"], {name: np.asarray(arrays[name]) for name in names[1:]}
    if fertility not in (1, MOST):
        raise ValueError(f"matching: fertility is {fertility}, expected 1 or {MOST}")
    for name, expected in (("column", edges), ("role", edges), ("labels", words * fertility)):
        got = np.diff(ptr[name])
        if got.size != n or (got != expected).any():
            raise ValueError(f"matching: {name} does not have the lengths that x and counts ask for; featurize again")
    if not meta.get("checked", False):
        for i in range(n):
            block = {name: flat[name][ptr[name][i] : ptr[name][i + 1]] for name in names[1:]}
            try:
                derived(x=x[ptr["x"][i] : ptr["x"][i + 1]], **block)
            except ValueError as error:
                raise ValueError(f"matching: block {i}: {error}") from error
    costs = {**COSTS, **meta.get("costs", {})}
    by_role = np.array([costs["extra"], costs["missed"], costs["possible"]], np.float64)
    size = np.diff(ptr["kind"])
    d = x.shape[1] + (kinds if fertility == MOST else 0)
    lower, upper = np.full(d, -np.inf), np.full(d, np.inf)
    lower[list(meta.get("nonnegative", ()))] = 0.0
    upper[x.shape[1] :] = 0.0
    box = bool(np.isfinite(lower).any() or np.isfinite(upper).any())
    most = int(flat["counts"].max(initial=0))
    return Matching(
        n=n,
        d=d,
        local_ptr=frozen(ptr["x"] + (ptr["kind"] if fertility == MOST else 0)),
        label_ptr=frozen(ptr["labels"]),
        truth=frozen(flat["labels"], np.uint8 if most < 256 else np.int16),
        lower=frozen(lower if box else lower[:0]),
        upper=frozen(upper if box else upper[:0]),
        labels=most + 1,
        fertility=fertility,
        x=frozen(x, np.float32),
        edge_ptr=frozen(ptr["x"]),
        word_ptr=frozen(ptr["counts"]),
        begin=frozen(np.concatenate([[0], np.cumsum(flat["counts"], dtype=np.int64)])),
        column=frozen(flat["column"], np.int32),
        columns=frozen(size - words),
        role=frozen(flat["role"], np.uint8),
        cost=frozen(by_role[flat["role"]] / np.repeat(size, edges)),
        kind=frozen(flat["kind"], np.uint8),
        kind_ptr=frozen(ptr["kind"]),
        most_words=int(words.max(initial=1)),
        most_columns=int((size - words).max(initial=1)),
        most_edges=int(edges.max(initial=1)),
    )


def derived(**block: np.ndarray) -> dict[str, np.ndarray]:
    """Nothing; ValueError unless a block's arrays (`build`) describe candidates and a true matching of them."""
    counts, column, role = (np.asarray(block[name]).astype(np.int64) for name in ("counts", "column", "role"))
    labels, rows = np.asarray(block["labels"]).astype(np.int64), counts.size
    K = block["kind"].size - rows
    if rows < 1 or K < 1 or labels.size % rows or labels.size // rows not in (1, MOST):
        raise ValueError(
            f"{rows} and {K} words and {labels.size} labels; expected words, and one or {MOST} labels each"
        )
    if counts.min() < 0 or counts.sum() != column.size or role.size != column.size:
        raise ValueError(f"counts name {counts.sum()} candidates, but column has {column.size} and role {role.size}")
    if not np.isfinite(block["x"]).all():
        edge, feature = (int(k) for k in np.argwhere(~np.isfinite(block["x"]))[0])
        raise ValueError(f"feature {feature} of candidate {edge} is {block['x'][edge, feature]}")
    cells = np.repeat(np.arange(rows), counts) * K + column
    if column.size and (column.min() < 0 or column.max() >= K or (np.diff(cells) <= 0).any()):
        raise ValueError(f"column must hold words 0..{K - 1}, rising within each word of the other sentence")
    entries = labels.reshape(rows, -1)
    if entries.min() < 0 or (entries > counts[:, None]).any():
        raise ValueError("a label names a candidate that its word does not have")
    row, slot = np.nonzero(entries)
    chosen = np.concatenate([[0], np.cumsum(counts)])[row] + entries[row, slot] - 1
    tidy = (np.diff(np.where(entries, entries, entries.max() + 1), axis=1) >= 0).all()
    if not tidy or not np.array_equal(np.sort(chosen), np.flatnonzero(role == TRUE)):
        raise ValueError("labels must name the candidates whose role is true, rising, each once")
    if np.bincount(column[chosen], minlength=1).max(initial=0) > entries.shape[1]:
        raise ValueError(f"a word has more than {entries.shape[1]} true links")
    return {}


def not_matchings(problem: Matching, block: np.ndarray, label: np.ndarray, label_offset: np.ndarray) -> np.ndarray:
    """bool, (labellings,): see `Matching.forbidden`; each label has the right number of entries."""
    F, sizes = problem.fertility, np.diff(label_offset)
    which = np.repeat(np.arange(block.size), sizes)
    entry = np.arange(label.size) - np.repeat(label_offset[:-1], sizes)
    word = problem.word_ptr[block[which]] + entry // F
    many = np.diff(problem.begin)[word]
    wrong = (label < 0) | (label > many)
    if F == MOST:
        entries = label.reshape(-1, MOST)
        wrong[1::MOST] |= (entries[:, 1] > 0) & ((entries[:, 0] == 0) | (entries[:, 1] <= entries[:, 0]))
    used = (label > 0) & ~wrong
    column = problem.column[problem.begin[word[used]] + label[used] - 1]
    pair, links_there = np.unique(which[used] * problem.most_columns + column, return_counts=True)
    result = np.bincount(which, wrong, minlength=block.size) > 0
    result[pair[links_there > F] // problem.most_columns] = True
    return result
