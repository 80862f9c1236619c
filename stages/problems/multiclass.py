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
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from gapwise.stages.problems.confusion import counted
from gapwise.stages.problems.marginals import class_marginals
from gapwise.stages.problems.prefetch import prefetch, prefetch_range
from gapwise.stages.problems.protocol import FAST, PLAIN, U, frozen
from gapwise.stages.problems.single_label import best_label, sum_of_squares, worst_label


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

    @property
    def labels(self) -> int:
        """K."""
        return len(self.cost)

    @property
    def unconstrained(self) -> bool:
        """Every class may be predicted for every example."""
        return True

    def scores(self, i, w, theta):
        x = self.x[i]
        for k in range(U(theta.size)):
            theta[k] = class_score(x, w, k)

    def max_oracle(self, i, theta, y, scratch):
        cost = self.cost[self.truth[i]]
        best = worst_label(theta, cost)
        y[0] = best
        return cost[best]

    def decode(self, i, theta, y, scratch):
        y[0] = best_label(theta)

    def marginals(self, i, theta, c, mu, scratch):
        return class_marginals(theta, c, self.cost[self.truth[i]], mu)

    def value(self, i, theta, y):
        return theta[y[0]]

    def add(self, i, y, c, out):
        out[y[0]] += c

    def norm2(self, i, delta):
        return sum_of_squares(delta) * self.norms2[i]

    def push(self, i, c, delta, w):
        x = self.x[i]
        for k in range(U(delta.size)):
            if delta[k] != 0.0:
                push_class(x, c * delta[k], w, k)

    def loss(self, i, y):
        return self.cost[self.truth[i], y[0]]

    def least_loss(self, i):
        return np.min(np.delete(self.cost[self.truth[i]], self.truth[i]), initial=np.inf)

    def scratch(self):
        return (np.empty(0),)

    def touch(self, i, stage):
        if stage == 1:
            prefetch_range(self.x, i * self.x.shape[1], (i + 1) * self.x.shape[1])
        elif stage == 3:
            prefetch(self.truth, i)
            prefetch(self.norms2, i)

    # -- moves between two classes, and few classes: `stages.problems.moves` ----------------------------------------------
    def pair_norm2(self, i, y, z, delta):
        return 2.0 * self.norms2[i] if y[0] != z[0] else 0.0

    def pair_push(self, i, c, y, z, delta, w):
        if y[0] != z[0]:
            x = self.x[i]
            push_class(x, c, w, y[0])
            push_class(x, -c, w, z[0])

    def pair_move(self, i, c, y, z, delta, w):
        if y[0] != z[0]:
            x = self.x[i]
            push_class(x, c, w, y[0])
            push_class(x, -c, w, z[0])

    def pair_follow(self, i, c, y, z, w, theta, delta):
        if y[0] != z[0]:
            theta[y[0]] += c * self.norms2[i]
            theta[z[0]] -= c * self.norms2[i]

    def score_labels(self, i, w, labels, slots, theta, found):
        x = self.x[i]
        for k in range(slots.size):
            found[k] = class_score(x, w, labels[slots[k], 0])


def build(arrays: Mapping[str, np.ndarray], meta: Mapping[str, Any]) -> Multiclass:
    """Multiclass problem over ``x`` (n, D) and ``labels`` (n,).

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
    bad = ~np.isfinite(x).all(axis=1)
    if bad.any():
        raise ValueError(f"multiclass: block {int(np.argmax(bad))} has a feature that is not finite")
    checked_labels("multiclass", labels, classes)
    cost = checked_cost("multiclass", arrays, meta, classes)
    n, width = x.shape
    x = frozen(x, np.float32 if x.dtype == np.float32 else np.float64)
    return Multiclass(
        n=n,
        d=classes * width,
        local_ptr=frozen(np.arange(n + 1) * classes, np.int64),
        label_ptr=frozen(np.arange(n + 1), np.int64),
        truth=frozen(labels, np.uint8 if classes <= 256 else np.int16),
        lower=frozen(np.asarray(meta.get("lower", ())), np.float64),
        upper=frozen(np.asarray(meta.get("upper", ())), np.float64),
        x=x,
        norms2=frozen((x.astype(np.float64) ** 2).sum(axis=1)),
        cost=frozen(cost),
    )


def checked_labels(structure: str, labels: np.ndarray, classes: int) -> None:
    """ValueError that names the first block whose label is no class."""
    bad = (labels < 0) | (labels >= classes)
    if bad.any():
        raise ValueError(f"{structure}: block {int(np.argmax(bad))} has a label outside 0..{classes - 1}")


def checked_cost(structure: str, arrays: Mapping[str, np.ndarray], meta: Mapping[str, Any], classes: int) -> np.ndarray:
    """float64 (K, K): ``cost`` among the arrays or in `meta`, else 1 for every error; ValueError if it is no cost matrix."""
    given = arrays["cost"] if "cost" in arrays else meta.get("cost", 1.0 - np.eye(classes))
    cost = np.asarray(given, dtype=float)
    if cost.shape != (classes, classes) or np.diag(cost).any() or not ((cost >= 0) & (cost < np.inf)).all():
        raise ValueError(
            f"{structure}: cost must be ({classes}, {classes}), finite and >= 0, with a zero diagonal; paths need "
            "a loss of 0 at the truth"
        )
    return cost


MARGINALS = True

WHOLE = ("x", "labels")
"""Arrays with a row a block that readers write at once."""


def derived(**block: np.ndarray) -> dict[str, np.ndarray]:
    """Nothing besides the features is stored."""
    return {}


def metrics(problem: Multiclass, arrays: Mapping[str, np.ndarray], predictions: np.ndarray) -> dict[str, float]:
    """Error rate of flat `predictions` (n,)."""
    return {"error_rate": float(np.mean(predictions != problem.truth))}


def confusion(
    problem: Multiclass, arrays: Mapping[str, np.ndarray], meta: Mapping[str, Any], predictions: np.ndarray
) -> tuple[list[str], np.ndarray]:
    """Names of classes (``class_names``, else their numbers), and examples (truth, prediction)."""
    names = [str(name) for name in meta.get("class_names", range(problem.labels))]
    return names, counted(problem.truth, predictions, problem.labels)
