"""Multiclass classification: the smallest structure (Crammer-Singer; the toy problem of O16 App. C).

Features x_i in R^D, K classes, w = (w_1, ..., w_K) stacked class by class. Local coordinates m_i(y) = e_y in R^K and
B_i = I_K (x) x_i, so ||B_i delta||^2 = ||x_i||^2 ||delta||^2. The task loss is a (K, K) cost matrix with a zero diagonal.

A move between two classes touches the weights of these two only, and a cached labelling needs the score of one class
(`stages.problems.moves`). Inner loops count in unsigned integers: a signed index may be negative, which numba has to allow
for and which keeps loops from being vectorised.

**Crammer-Singer SVM of LIBLINEAR.** With all costs 1, P_lambda = f / (n C), where lambda = 1 / (n C) and

    f(w) = (1/2) ||w||^2 + C sum_i max(0, max_{y != y_i} 1 - <w_{y_i} - w_y, x_i>)

is what LIBLINEAR minimises (`-s 4`; scikit-learn's LinearSVC with multi_class="crammer_singer" and fit_intercept=False),
with the same w.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numba import njit

from gapwise.records import Facts
from gapwise.stages.problems.block_weight import block_weights
from gapwise.stages.problems.capabilities import Capabilities
from gapwise.stages.problems.marginals import class_marginals
from gapwise.stages.problems.operations import Operations
from gapwise.stages.problems.prefetch import prefetch, prefetch_range
from gapwise.stages.problems.protocol import FAST, PLAIN, U, frozen
from gapwise.stages.problems.single_label import (
    check_finite,
    checked_cost,
    confusion,
    derived,
    floats,
    labelled,
    metrics,
    one_label,
)

__all__ = ["CAPABILITIES", "Multiclass", "build", "derived", "metrics"]


@njit(**FAST)
def class_score(x, w, k):
    """<w_k, x>."""
    total, start = 0.0, U(k) * U(x.size)
    for j in range(U(x.size)):
        total += x[j] * w[start + j]
    return total


@njit(**PLAIN)
def push_class(x, c, w, k):
    """w_k += c x."""
    start = U(k) * U(x.size)
    for j in range(U(x.size)):
        w[start + j] += c * x[j]


@one_label
class Multiclass(NamedTuple):
    """n examples of D features and K classes; d = K * D."""

    n: int
    d: int
    local_ptr: np.ndarray
    label_ptr: np.ndarray
    truth: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    x: np.ndarray
    """float32 or float64, (n, D)"""
    norms2: np.ndarray
    """float64, (n,): ||x_i||^2"""
    cost: np.ndarray
    """float64, (K, K): cost[truth, prediction]"""
    block_weight: np.ndarray
    """float64, (n,): weights of blocks, which x has, too"""

    @property
    def operations(self) -> Operations:
        """K products of D; in a visit four, two scored and two pushed."""
        return Operations(float(self.d), 4.0 * self.x.shape[1])

    def scores(self, i, w, theta):
        x = self.x[i]
        for k in range(U(theta.size)):
            theta[k] = class_score(x, w, k)

    def marginals(self, i, theta, c, mu, scratch):
        return class_marginals(theta, c, self.cost[self.truth[i]], self.block_weight[i], mu)

    def push(self, i, c, delta, w):
        x = self.x[i]
        for k in range(U(delta.size)):
            if delta[k] != 0.0:
                push_class(x, c * delta[k], w, k)

    def touch(self, i, stage):
        if stage == 1:
            prefetch_range(self.x, i * self.x.shape[1], (i + 1) * self.x.shape[1])
        elif stage == 3:
            prefetch(self.truth, i)
            prefetch(self.norms2, i)

    # -- moves between two classes, and few classes: `stages.problems.moves` ----------------------------------------------
    def pair_norm2(self, i, y, z, delta):
        return 2.0 * self.norms2[i] if y[0] != z[0] else 0.0

    def pair_move(self, i, c, y, z, delta, w):
        if y[0] != z[0]:
            x = self.x[i]
            push_class(x, c, w, y[0])
            push_class(x, -c, w, z[0])

    def pair_follow(self, i, c, y, z, w, theta, delta):
        if y[0] != z[0]:
            theta[y[0]] += c * self.norms2[i]
            theta[z[0]] -= c * self.norms2[i]

    def score_labels(self, i, w, labels, slots, theta, scores):
        x = self.x[i]
        for k in range(slots.size):
            scores[k] = class_score(x, w, labels[slots[k], 0])


def build(arrays: Mapping[str, np.ndarray], meta: Facts) -> Multiclass:
    """Multiclass problem over ``x`` (n, D), ``labels`` (n,) and perhaps ``block_weight`` (n,).

    `meta` gives ``classes`` and optionally ``cost`` (K, K), which may also be an array.

    Raises
    ------
    ValueError
        If a block's features are not finite or its label is not a class (the message names the first such block), or if
        the cost matrix is not (K, K), non-negative with a zero diagonal (paths, O16 section 4, need L_i(y_i) = 0).
    """
    x, labels, classes = np.asarray(arrays["x"]), np.asarray(arrays["labels"]), int(meta["classes"])
    if x.ndim != 2 or labels.shape != (x.shape[0],):
        raise ValueError(f"multiclass: x must be (n, D) and labels (n,); got {x.shape} and {labels.shape}")
    check_finite("multiclass", "block", x)
    of_labels = labelled("multiclass", labels, classes, meta)
    (n, width), x, weight = x.shape, floats(x), block_weights("multiclass", arrays, len(x))
    if (weight != 1.0).any():
        x = frozen(x * weight[:, None].astype(x.dtype))
    return Multiclass(
        n,
        classes * width,
        *of_labels,
        x=x,
        norms2=frozen((x.astype(np.float64) ** 2).sum(axis=1)),
        cost=checked_cost("multiclass", arrays, meta, classes),
        block_weight=weight,
    )


CAPABILITIES = Capabilities(
    margins=True,
    n_best=True,
    whole=("x", "labels", "block_weight"),
    features=("x",),
    counts=("classes",),
    falling=("error_rate",),
    confusion=confusion,
)
