"""Ranking: one block per query, whose documents are to be ordered by <w, x_j> (Joachims, *Training Linear SVMs in Linear
Time*, KDD 2006, section 4; two levels of relevance: 1 - area under the ROC curve).

A query has k documents with features x_j in R^D and relevances r_j of any number of levels. P counts its pairs (j, l) with
r_j > r_l. A labelling says which of them are swapped, and costs

    L(y) = swapped / P,    phi(x, y) = (1/P) sum over swapped (j, l) of (x_l - x_j),

so that the hinge of a query is the mean of max(0, 1 - <w, x_j - x_l>) over its pairs: the ranking SVM, each query weighted
alike. Local coordinates are per document, p = k: B_i has the columns x_j, and m_j(y) = (b_j - a_j) / P, where a_j counts the
pairs in which j is swapped as the better document, b_j those as the worse one.

*Labellings* are 2 k whole numbers: a bar u_j and a place v_j for each document; (j, l) is swapped where v_l >= u_j. Every
such row is a labelling. The pairs that a w swaps, those with theta_l > theta_j - 1, have this form: sort the documents by
theta; v is a document's place, u the number of documents with theta <= theta_j - 1. So the max-oracle takes O(k log k),
and what a labelling costs or scores takes O(k) for each level of relevance, with counts of places above a bar. The
max-oracle writes bars and places in a normal form, in which equal sets of swapped pairs of two levels are equal rows.
`decode` writes bars and places as they are: v is the predicted order, the best document last; equal scores are in the worst
order.

Documents are stored by falling relevance.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numba import njit

from gapwise.records import Facts
from gapwise.stages.problems.capabilities import Capabilities
from gapwise.stages.problems.protocol import JIT, add_scaled, dot, frozen

MOST_DOCUMENTS = 2**15 - 2
"""Of a query: bars and places are int16."""
CUT = 10
"""NDCG counts this many of the first documents."""


@njit(**JIT)
def bars_and_places(theta, margin, ties, y):
    """y[:k] <- number of documents with theta_l <= theta_j - margin (`ties`), or below that; y[k:] <- places in the order
    of theta, from 0. Returns the documents in that order."""
    k = theta.size
    order = np.argsort(theta, kind="mergesort")
    below = 0
    for position in range(k):
        j = order[position]
        bar = theta[j] - margin
        while below < k and (theta[order[below]] < bar or (ties and theta[order[below]] == bar)):
            below += 1
        y[j], y[k + j] = below, position
    return order


@njit(**JIT)
def normal_form(order, worse, y):
    """Rewrite bars and places so that equal sets of pairs between documents with worse and with better ones are equal rows.

    A bar becomes 1 + the number of places below it, a place the highest bar that it clears, 0 if none. Documents without
    worse ones have the bar k, documents without better ones the place 0.
    """
    k = order.size
    counted = np.zeros(k + 1, np.int64)
    for position in range(k):
        counted[position + 1] = counted[position] + (order[position] >= worse[0])
    cleared, bar = 0, 0
    for position in range(k):
        while bar < k and y[order[bar]] <= position:
            if worse[order[bar]] < k:
                cleared = 1 + counted[y[order[bar]]]
            bar += 1
        y[k + order[position]] = cleared if order[position] >= worse[0] else 0
    for j in range(k):
        y[j] = 1 + counted[y[j]] if worse[j] < k else k


@njit(**JIT)
def swapped(worse, y, a, b):
    """a, b (k,) <- the number of swapped pairs in which each document is the better one, the worse one."""
    k = worse.size
    level, at_least, at_most = np.zeros(k + 1, np.int64), np.zeros(k + 1, np.int64), np.zeros(k + 1, np.int64)
    end = k
    while end > 0:  # from the lowest level up; at_least counts the places of the levels below
        start = end - 1
        while start > 0 and worse[start - 1] == end:
            start -= 1
        for j in range(start, end):
            a[j] = at_least[min(y[j], k)]
            level[min(y[k + j], k)] += 1
        running = 0
        for value in range(k, -1, -1):
            running += level[value]
            at_least[value] += running
            level[value] = 0
        end = start
    start = 0
    while start < k:  # from the highest level down; at_most counts the bars of the levels above
        end = worse[start]
        for j in range(start, end):
            b[j] = at_most[min(y[k + j], k)]
            level[min(y[j], k)] += 1
        running = 0
        for value in range(k + 1):
            running += level[value]
            at_most[value] += running
            level[value] = 0
        start = end


@njit(**JIT)
def _add(worse, y, c, out):
    a, b = np.empty(worse.size, np.int64), np.empty(worse.size, np.int64)
    swapped(worse, y, a, b)
    for j in range(worse.size):
        out[j] += c * (b[j] - a[j])


@njit(**JIT)
def _value(worse, y, theta):
    """Sum of theta_j (b_j - a_j)."""
    a, b, total = np.empty(worse.size, np.int64), np.empty(worse.size, np.int64), 0.0
    swapped(worse, y, a, b)
    for j in range(worse.size):
        total += theta[j] * (b[j] - a[j])
    return total


@njit(**JIT)
def _pairs(worse, y):
    a, b = np.empty(worse.size, np.int64), np.empty(worse.size, np.int64)
    swapped(worse, y, a, b)
    return a.sum()


@njit(**JIT)
def _norm2(ranking, i, delta):
    """||sum_j delta_j x_j||^2."""
    total = np.zeros(ranking.d)
    ranking.push(i, 1.0, delta, total)
    return dot(total, total)


class Ranking(NamedTuple):
    """n queries over documents of D features; d = D."""

    n: int
    d: int
    local_ptr: np.ndarray
    label_ptr: np.ndarray
    truth: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    x: np.ndarray
    """float32 or float64, (documents, D), by query and falling relevance"""
    worse: np.ndarray
    """int64, (documents,): number, within its query, of the first document of less relevance; k if there is none"""
    share: np.ndarray
    """float64, (n,): 1 / P; 0 for a query without pairs"""
    longest: int
    """Documents of the longest query."""

    @property
    def unconstrained(self) -> bool:
        """Any bars and places are a labelling."""
        return True

    @property
    def labels(self) -> int:
        """One more than the documents of the longest query."""
        return self.longest + 1

    def scores(self, i, w, theta):
        first = self.local_ptr[i]
        for j in range(theta.size):
            theta[j] = dot(self.x[first + j], w)

    def max_oracle(self, i, theta, y, scratch):
        order = bars_and_places(theta, 1.0, True, y)
        normal_form(order, self.worse[self.local_ptr[i] : self.local_ptr[i + 1]], y)
        return self.loss(i, y)

    def decode(self, i, theta, y, scratch):
        bars_and_places(theta, 0.0, False, y)

    def value(self, i, theta, y):
        return _value(self.worse[self.local_ptr[i] : self.local_ptr[i + 1]], y, theta) * self.share[i]

    def add(self, i, y, c, out):
        _add(self.worse[self.local_ptr[i] : self.local_ptr[i + 1]], y, c * self.share[i], out)

    def norm2(self, i, delta):
        return _norm2(self, i, delta)

    def push(self, i, c, delta, w):
        first = self.local_ptr[i]
        for j in range(delta.size):
            if delta[j] != 0.0:
                add_scaled(c * delta[j], self.x[first + j], w)

    def loss(self, i, y):
        return _pairs(self.worse[self.local_ptr[i] : self.local_ptr[i + 1]], y) * self.share[i]

    def least_loss(self, i: int) -> float:
        return self.share[i] if self.share[i] > 0.0 else np.inf

    def scratch(self):
        return (np.empty(0),)


def build(arrays: Mapping[str, np.ndarray], meta: Facts) -> Ranking:
    """Ranking problem over ``x`` (documents, D) and ``relevance`` (documents,), with ``x_ptr`` (n + 1,).

    Raises
    ------
    ValueError
        If the arrays do not fit, features are not finite, relevance rises within a query, or a query has more than
        `MOST_DOCUMENTS` documents; names the first such block.
    """
    x, relevance, ptr = np.asarray(arrays["x"]), np.asarray(arrays["relevance"]), np.asarray(arrays["x_ptr"], np.int64)
    if x.ndim != 2 or relevance.shape != x.shape[:1] or ptr[0] != 0 or ptr[-1] != len(x) or (np.diff(ptr) < 1).any():
        raise ValueError(
            f"ranking: x must be (documents, D), relevance (documents,), x_ptr rising; got {x.shape}, {relevance.shape}"
        )
    n, counts = ptr.size - 1, np.diff(ptr)
    block = np.repeat(np.arange(n), counts)
    fit = relevance[1:] <= relevance[:-1]
    fit[ptr[1:-1] - 1] = True
    for bad, of, fault in (
        (~np.isfinite(x).all(axis=1), block, "has a feature that is not finite"),
        (~np.isfinite(relevance), block, "has a relevance that is not finite"),
        (~fit, block, "has documents whose relevance rises; expected them by falling relevance"),
        (counts > MOST_DOCUMENTS, np.arange(n), f"has more than {MOST_DOCUMENTS} documents"),
    ):
        if bad.any():
            raise ValueError(f"ranking: block {of[int(np.argmax(bad))]} {fault}")
    worse, share, truth = np.empty(len(x), np.int64), np.zeros(n), np.zeros(2 * len(x), np.int16)
    for i in range(n):
        levels, k = -relevance[ptr[i] : ptr[i + 1]], counts[i]
        worse[ptr[i] : ptr[i + 1]] = np.searchsorted(levels, levels, side="right")
        of = worse[ptr[i] : ptr[i + 1]]
        pairs = int(np.sum(k - of))
        share[i] = 1.0 / pairs if pairs else 0.0
        truth[2 * ptr[i] : 2 * ptr[i] + k] = np.where(of < k, k - of[0] + 1, k)
    x = frozen(x, np.float32 if x.dtype == np.float32 else np.float64)
    return Ranking(
        n=n,
        d=x.shape[1],
        local_ptr=frozen(ptr),
        label_ptr=frozen(2 * ptr),
        truth=frozen(truth),
        lower=frozen(np.asarray(meta.get("lower", ())), np.float64),
        upper=frozen(np.asarray(meta.get("upper", ())), np.float64),
        x=x,
        worse=frozen(worse),
        share=frozen(share),
        longest=int(counts.max()),
    )


CAPABILITIES = Capabilities(
    learns="rank documents",
    losses={"": "how much worse the ranking is than the ideal one, from 0 to 1"},
    features=("x",),
    rising=(f"ndcg_at_{CUT}",),
    falling=("swapped_pairs",),
)


def derived(**block: np.ndarray) -> dict[str, np.ndarray]:
    """Nothing besides the features is stored."""
    return {}


def places_of(problem: Ranking, predictions: np.ndarray, i: int) -> np.ndarray:
    """Places (k,) of block i's documents in the predicted order, from 0 for the worst; `predictions` flat as by `decode`."""
    first, last = problem.label_ptr[i], problem.label_ptr[i + 1]
    return np.asarray(predictions[(first + last) // 2 : last], dtype=np.int64)


def metrics(problem: Ranking, arrays: Mapping[str, np.ndarray], predictions: np.ndarray) -> dict[str, float]:
    """Mean share of swapped pairs, and mean NDCG@10 by scikit-learn, with the relevance above the least one as gain.

    Queries whose documents are all equally relevant count for neither.
    """
    from sklearn.metrics import ndcg_score

    relevance = np.asarray(arrays["relevance"], np.float64)
    gains, shares, ndcg = relevance - relevance.min(), [], []
    for i in np.flatnonzero(problem.share > 0.0).tolist():
        of = slice(int(problem.local_ptr[i]), int(problem.local_ptr[i + 1]))
        positions = places_of(problem, predictions, i)
        ndcg.append(ndcg_score(gains[None, of], positions[None], k=CUT))
        shares.append(problem.loss(i, predictions[problem.label_ptr[i] : problem.label_ptr[i + 1]]))
    if not shares:
        return {"swapped_pairs": 0.0, f"ndcg_at_{CUT}": 1.0}
    return {"swapped_pairs": float(np.mean(shares)), f"ndcg_at_{CUT}": float(np.mean(ndcg))}
