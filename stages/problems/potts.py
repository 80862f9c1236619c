"""Segmentation of superpixels with K labels and Potts terms, whose max-oracle is approximate and comes with a bound.

Block i is an image of S superpixels and E edges between neighbours, labels y in {0, ..., K - 1}^S. The score is

    sum_p <w_{y_p}, x_p>  -  sum_pq <w_P, x_pq> [y_p != y_q],      w_P >= 0,

so in local coordinates m_i(y) = ([y_p = k] label by label, -[y_p != y_q] on edges) in R^{K S + E}, B_i = blockdiag(X', ...,
X', P') with X (S, D_U) and P (E, D_P) >= 0, and theta = (X w_0, ..., X w_{K-1}, P w_P). The loss is the share of the image's
labelled pixels that lie in superpixels with a wrong label, or the mean of that share over the classes that occur there
(`meta["loss"]`, as `graph.costs_by` names them). *Void* superpixels have no true label: they have no loss, and in
training their feature rows and those of their edges are 0 (`losses.silenced`), so that they do not enter the score either.

w_P is learned, or one number that all of it is equal to (`graph.bounds`; S15's is 1).

With K > 2 the maximum is NP-hard. `meta["oracle"]` chooses how it is approached:

* ``trws``: message passing (`trws`), whose messages also give the bound of `max_bound`;
* ``expansion``: alpha-expansion (`expansion`; S15), without a useful bound, so that no gap is more than an estimate;
* ``trws_expansion``: message passing, then alpha-expansion where that leaves too much slack, with the bound of its messages.

The answer is never worse than the truth. Methods that are those of binary segmentation are taken from `Segmentation`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numba import njit

from gapwise.records import Facts
from gapwise.stages.problems.capabilities import ESTIMATE, UPPER_BOUNDED, Capabilities
from gapwise.stages.problems.images.expansion import expand
from gapwise.stages.problems.images.graph import (
    NEGATIVE,
    PIXELS,
    Images,
    arcs_of,
    image_fields,
)
from gapwise.stages.problems.images.kernels import (
    add_cut,
    gram_form,
    label_scores,
    rows_add,
    rows_dot,
    rows_norm2,
    without_cut,
)
from gapwise.stages.problems.images.maxflow import workspace as cut_workspace
from gapwise.stages.problems.images.trws import NEVER, bound, maximise, padded, value_of, workspace
from gapwise.stages.problems.losses import BALANCED, IN_WORDS, PER_IMAGE, PER_PIXEL, silenced
from gapwise.stages.problems.protocol import PLAIN, U, takes
from gapwise.stages.problems.segmentation import Segmentation
from gapwise.stages.problems.segmentation import derived as segmentation_derived

MOST_LABELS = 254

ORACLES = ("trws", "expansion", "trws_expansion")
TRWS, EXPANSION, TRWS_EXPANSION = range(3)

SWEEPS, SLACK = 300, 5e-4
"""Defaults of `meta["sweeps"]` and `meta["slack"]`: message passing ends after so many sweeps, or once the bound exceeds the
answer's value by no more than so much (in units of the loss, whose largest value is 1)."""

PROVEN = 1e-10
"""Share of the answer's value that the bound may exceed it by where more sweeps would only remove rounding."""


@takes(Segmentation, "unconstrained", "features_per_block", "loss", "least_loss")
class Potts(NamedTuple):
    """n images; d = K D_U + D_P, the unary weights first, label by label."""

    n: int
    d: int
    local_ptr: np.ndarray
    label_ptr: np.ndarray
    truth: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    classes: int
    """K"""
    oracle: int
    """index into ORACLES"""
    sweeps: int
    slack: float
    unary: np.ndarray
    """float32, (label_ptr[-1], D_U)"""
    pairwise: np.ndarray
    """float32, (edge_ptr[-1], D_P), >= 0"""
    images: Images

    @property
    def oracle_cost(self) -> float:
        """Of passes of messages over the edges."""
        return 1.5

    @property
    def labels(self) -> int:
        """K."""
        return self.classes

    @property
    def certainty(self) -> str:
        """Bounded, unless alpha-expansion works alone."""
        return ESTIMATE if self.oracle == EXPANSION else UPPER_BOUNDED

    def tightened(self) -> Potts:
        """With all sweeps, whatever the slack: the bound never rises from sweep to sweep."""
        return self._replace(slack=0.0)

    def scores(self, i, w, theta):
        size, width = self.label_ptr[i + 1] - self.label_ptr[i], self.unary.shape[1]
        label_scores(self.unary, self.label_ptr[i], size, self.classes, w, theta, 1, size)
        rows_dot(self.pairwise, 1.0, self.images.edge_ptr[i], w[self.classes * width :], theta[self.classes * size :])

    def max_oracle(self, i, theta, y, scratch):
        _maximise(self, i, theta, True, y, scratch)
        return self.loss(i, y)  # type: ignore[attr-defined]  # of Segmentation

    def max_bound(self, i, theta, y, scratch):
        return _bound(self, i, theta, y, scratch[0])

    def decode(self, i, theta, y, scratch):
        _maximise(self, i, theta, False, y, scratch)

    def value(self, i, theta, y):
        edges = self.images.edges[self.images.edge_ptr[i] : self.images.edge_ptr[i + 1]]
        total = 0.0
        for p in range(y.size):
            total += theta[U(y[p]) * U(y.size) + U(p)]
        return without_cut(total, theta[self.classes * y.size :], y, edges)

    def add(self, i, y, c, out):
        edges = self.images.edges[self.images.edge_ptr[i] : self.images.edge_ptr[i + 1]]
        for p in range(y.size):
            out[U(y[p]) * U(y.size) + U(p)] += c
        add_cut(y, c, edges, out[self.classes * y.size :])

    def norm2(self, i, delta):
        size, total = self.label_ptr[i + 1] - self.label_ptr[i], 0.0
        gram = self.images.gram[self.images.gram_ptr[i] : self.images.gram_ptr[i + 1]]
        for k in range(self.classes):
            total += max(gram_form(gram, delta[k * size : (k + 1) * size]), 0.0)
        return total + rows_norm2(self.pairwise, self.images.edge_ptr[i], delta[self.classes * size :])

    def push(self, i, c, delta, w):
        size, width = self.label_ptr[i + 1] - self.label_ptr[i], self.unary.shape[1]
        for k in range(self.classes):
            of = w[k * width : (k + 1) * width]
            rows_add(self.unary, self.label_ptr[i], c, delta[k * size : (k + 1) * size], of)
        rows_add(self.pairwise, self.images.edge_ptr[i], c, delta[self.classes * size :], w[self.classes * width :])

    def scratch(self):
        nodes, edges = self.images.most_superpixels, self.images.most_edges
        messages = workspace(nodes, edges, self.classes)
        moves = np.empty(nodes, np.uint8), np.empty(nodes, np.uint8), np.empty(edges)
        return messages, cut_workspace(nodes, edges), moves


@njit(**PLAIN)
def _fill(self, i, theta, augmented, size, scores):
    """scores <- theta's part for superpixels, row by row, with the loss if `augmented`. ValueError for impossible scores."""
    labels, columns, first = self.classes, padded(self.classes), self.label_ptr[i]
    for p in range(size):
        for k in range(columns):
            scores[p * columns + k] = NEVER
    for k in range(labels):
        for p in range(size):
            scores[p * columns + k] = theta[k * size + p]
    if augmented:
        for p in range(size):
            cost = self.images.loss_if_wrong[first + p]
            for k in range(labels):
                if k != self.truth[first + p]:
                    scores[p * columns + k] += cost
    finite, largest, least = True, 0.0, 0.0
    for j in range(theta.size):
        finite &= abs(theta[j]) < np.inf
    for e in range(labels * size, theta.size):
        largest, least = max(largest, theta[e]), min(least, theta[e])
    if not finite:
        raise ValueError("potts: a score is not finite; look for nan or infinity in the weights")
    if least < -NEGATIVE * largest:
        raise ValueError(
            "potts: an edge score is negative, so message passing gives no bound; clip the pairwise weights to >= 0"
        )


@njit(**PLAIN)
def _capacities(self, i, theta, cap):
    """cap <- theta's part for edges, at least 0; returns the arrays of the block's graph (`graph.arcs_of`)."""
    size = self.label_ptr[i + 1] - self.label_ptr[i]
    for e in range(cap.size):
        cap[e] = max(theta[self.classes * size + e], 0.0)
    return arcs_of(self.images, i, self.label_ptr[i], self.label_ptr[i + 1])


@njit(**PLAIN)
def _bound(self, i, theta, y, messages):
    """The bound on the maximum with the loss, from the messages that `messages` holds; at least the worth of y."""
    labels, cap = self.classes, messages.cap[: theta.size - self.classes * y.size]
    _fill(self, i, theta, True, y.size, messages.theta)
    rows, head, _, edge = _capacities(self, i, theta, cap)
    score = value_of(labels, messages.theta, cap, rows, head, edge, y)
    most = bound(labels, messages.theta, messages.u, messages.rows, cap, rows, head, edge)
    return score if most < score else most


@njit(**PLAIN)
def _maximise(self, i, theta, augmented, y, scratch):
    """y <- the best labelling that the oracle finds, with or without the loss."""
    labels, columns, size, first = self.classes, padded(self.classes), y.size, self.label_ptr[i]
    messages, cut, moves = scratch
    scores, cap = messages.theta, messages.cap[: theta.size - labels * size]
    _fill(self, i, theta, augmented, size, scores)
    rows, head, reverse, edge = _capacities(self, i, theta, cap)
    for p in range(size):
        if augmented:
            y[p] = self.truth[first + p]
        else:
            y[p] = 0
            for k in range(1, labels):
                if scores[p * columns + k] > scores[p * columns + np.int64(y[p])]:
                    y[p] = k
    score = value_of(labels, scores, cap, rows, head, edge, y)
    slack, most = max(self.slack if augmented else 0.0, PROVEN * abs(score)), np.inf
    if self.oracle != EXPANSION:
        score, most = maximise(
            labels, self.sweeps, slack, score, scores, messages.u, messages.rows, cap, rows, head, edge,
            messages.y[:size], y, messages.unit,
        )  # fmt: skip
    if self.oracle != TRWS and most - score > slack:
        expand(labels, score, cap, rows, head, reverse, edge, scores, y, moves[0], cut, moves[2], moves[1])


def build(arrays: Mapping[str, np.ndarray], meta: Facts) -> Potts:
    """Potts problem over the ragged arrays of one split (each with its ``<name>_ptr``).

    Parameters
    ----------
    arrays : Mapping
        Per image: ``unary`` (S, D_U) and ``pairwise`` (E, D_P) float32, ``edges`` (E, 2) int with ends a < b < S, ``labels``
        (S,) in 0, ..., K - 1 or VOID, ``area`` (S,) in labelled pixels, ``gram`` (S * S,) float32 from `derived`.
    meta : Mapping
        ``classes`` K; ``potts``: the fixed weight of all pairwise features, None to learn them; ``oracle``, ``sweeps`` and
        ``slack`` as above, each with a default. ``checked`` as in `segmentation.build`.

    Raises
    ------
    ValueError
        If a field is invalid; the message names it and the block.
    """
    classes, oracle, sweeps, slack = _options(meta)
    fields = image_fields("potts", arrays, meta, classes, loss=PER_IMAGE, rows=classes, codes=False)
    return Potts(**fields, classes=classes, oracle=ORACLES.index(oracle), sweeps=sweeps, slack=slack)


def _options(meta: Facts) -> tuple[int, str, int, float]:
    """classes, oracle, sweeps and slack; ValueError names what is wrong."""
    classes, oracle = int(meta["classes"]), str(meta.get("oracle", "trws"))
    sweeps, slack = meta.get("sweeps", SWEEPS), float(meta.get("slack", SLACK))
    for name, value, ok, expected in (
        ("classes", classes, 2 <= classes <= MOST_LABELS, f"2 to {MOST_LABELS}"),
        ("oracle", oracle, oracle in ORACLES, "one of " + ", ".join(ORACLES)),
        ("sweeps", sweeps, isinstance(sweeps, int) and sweeps >= 1, "a whole number >= 1"),
        ("slack", slack, 0.0 <= slack < np.inf, "a number >= 0"),
    ):
        if not ok:
            raise ValueError(f"potts: {name} is {value!r}, expected {expected}")
    return classes, oracle, int(sweeps), slack


def derived(**block: np.ndarray) -> dict[str, np.ndarray]:
    """``gram`` (S * S,) float32: X X' of one image, summed in float64. Checks the block's features first."""
    return segmentation_derived(**block)


def metrics(problem: Potts, arrays: Mapping[str, np.ndarray], predictions: np.ndarray) -> dict[str, float]:
    """Pixel accuracy, and its mean over the classes that occur, from each superpixel's ``counts`` (S, K) of pixels.

    Both are 1 where all is void: nothing is wrong there.
    """
    counts = np.asarray(arrays["counts"], float).reshape(-1, problem.classes)
    total, right = counts.sum(axis=0), np.zeros(problem.classes)
    np.add.at(right, predictions, counts[np.arange(predictions.size), predictions])
    present = total > 0.0
    return {
        "pixel_accuracy": float(right.sum() / total.sum()) if present.any() else 1.0,
        "class_accuracy": float(np.mean(right[present] / total[present])) if present.any() else 1.0,
    }


def confusion(
    problem: Potts, arrays: Mapping[str, np.ndarray], meta: Facts, predictions: np.ndarray
) -> tuple[list[str], np.ndarray]:
    """Names of classes (``class_names``, else their numbers), and labelled pixels (truth, prediction)."""
    counts = np.asarray(arrays["counts"], float).reshape(-1, problem.classes)
    pixels = np.zeros((problem.classes, problem.classes))
    np.add.at(pixels.T, predictions, counts)
    return [str(name) for name in meta.get("class_names", range(problem.classes))], pixels


CAPABILITIES = Capabilities(
    learns="label the regions of images",
    losses={name: IN_WORDS[name] for name in (PER_IMAGE, BALANCED, PER_PIXEL)},
    new_data="pictures/",
    features=("unary", "pairwise"),
    single=True,
    counts=("classes",),
    unit=PIXELS,
    confusion=confusion,
    for_training=silenced,
    rising=("pixel_accuracy", "class_accuracy"),
)
