"""Multiclass classification: the smallest structure (Crammer-Singer; the toy problem of O16 App. C).

Features x_i in R^D, K classes, w = (w_1, ..., w_K). Local coordinates m_i(y) = e_y in R^K and B_i = I_K (x) x_i, so
||B_i delta||^2 = ||x_i||^2 ||delta||^2. The task loss is a (K, K) cost matrix with a zero diagonal. A move between two
classes touches the weights of these two only (`stages.problems.moves`).

**Crammer-Singer SVM of LIBLINEAR.** With all costs 1, P_lambda = f / (n C), where lambda = 1 / (n C) and

    f(w) = (1/2) ||w||^2 + C sum_i max(0, max_{y != y_i} 1 - <w_{y_i} - w_y, x_i>)

is what LIBLINEAR minimises (`-s 4`; scikit-learn's LinearSVC with multi_class="crammer_singer" and fit_intercept=False),
with the same w.

**Binary SVM.** With two classes, all costs 1 and s_i = +1 for class 1, -1 for class 0, the hinge of block i is
max(0, 1 - s_i <w_1 - w_0, x_i>). It depends on u = w_1 - w_0 alone, and of all (w_0, w_1) with the same u the least norm has
w_1 = -w_0 = u/2, with ||w||^2 = ||u||^2 / 2. So the minimum over w is that of

    (lambda/4) ||u||^2 + (1/n) sum_i max(0, 1 - s_i <u, x_i>)
        =  (1/(n C)) [ ||u||^2 / 2 + C sum_i max(0, 1 - s_i <u, x_i>) ]

with lambda = 2 / (n C): what LIBLINEAR minimises (`-s 3`; scikit-learn's LinearSVC with loss="hinge", dual=True and
fit_intercept=False), divided by n C. Hence w_1 = u/2, P = f / (n C), and a constant column (`dataset.bias`) is LIBLINEAR's
`-B`. Dual points agree as well: the weight of block i's wrong label is LIBLINEAR's alpha_i / C.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from gapwise.records import Facts
from gapwise.stages.problems import moves
from gapwise.stages.problems.compiled import inner
from gapwise.stages.problems.losses import block_weights, counted, share
from gapwise.stages.problems.multiclass.kernel import OverKernel, product_of_halves
from gapwise.stages.problems.multiclass.rows import Csr, Dense
from gapwise.stages.problems.protocol import PLAIN, Problem, dot, frozen
from gapwise.stages.problems.scale import check_losses
from gapwise.stages.problems.simd import prefetch


@inner(**PLAIN)
def best_label(theta, cost, weight):
    """The label of the largest score plus weighted cost, both (K,); the first of equals."""
    best = 0
    for k in range(1, theta.size):
        if theta[k] + weight * cost[k] > theta[best] + weight * cost[best]:
            best = k
    return best


class Multiclass(NamedTuple):
    """n examples of K classes over `Dense` or `Csr` rows; d is K times the width of the rows."""

    n: int
    d: int
    local_ptr: np.ndarray
    label_ptr: np.ndarray
    truth: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    rows: Dense | Csr | OverKernel
    norms2: np.ndarray
    """float64, (n,): ||x_i||^2, with the weight of the block in x_i"""
    cost: np.ndarray
    """float64, (K, K): cost[truth, prediction]"""
    block_weight: np.ndarray
    """float64, (n,): weights of blocks, which the rows have, too"""

    @property
    def unconstrained(self) -> bool:
        """Every class may be predicted for every example."""
        return True

    @property
    def labels(self) -> int:
        """K."""
        return len(self.cost)

    def scores(self, i, w, theta):
        self.rows.scores(i, w, theta)

    def max_oracle(self, i, theta, y, scratch):
        cost = self.cost[self.truth[i]]
        best = best_label(theta, cost, self.block_weight[i])
        y[0] = best
        return self.block_weight[i] * cost[best]

    def decode(self, i, theta, y, scratch):
        y[0] = best_label(theta, self.cost[0], 0.0)

    def marginals(self, i, theta, c, mu, scratch):
        cost, weight = self.cost[self.truth[i]], self.block_weight[i]
        top, total, loss = -np.inf, 0.0, 0.0
        for k in range(mu.size):
            mu[k] = theta[k] + c * weight * cost[k]
            top = max(top, mu[k])
        for k in range(mu.size):
            mu[k] = np.exp(mu[k] - top)
            total += mu[k]
        for k in range(mu.size):
            mu[k] /= total
            loss += mu[k] * cost[k]
        return top + np.log(total), weight * loss

    def max_marginals(self, i, theta, y, out, scratch):
        self.decode(i, theta, y, scratch)
        for k in range(theta.size):
            out[0, k] = theta[k]

    def n_best(self, i, theta, m, labels, values, scratch):
        count = 0
        for k in range(theta.size):
            if count == m and not theta[k] > values[m - 1]:
                continue
            slot = min(count, m - 1)
            while slot > 0 and theta[k] > values[slot - 1]:
                labels[slot, 0], values[slot] = labels[slot - 1, 0], values[slot - 1]
                slot -= 1
            labels[slot, 0], values[slot] = k, theta[k]
            count = min(count + 1, m)
        return count

    def ranked_scratch(self, m):
        return (np.empty(0),)

    def value(self, i, theta, y):
        return theta[y[0]]

    def add(self, i, y, c, out):
        out[y[0]] += c

    def norm2(self, i, delta):
        return dot(delta, delta) * self.norms2[i]

    def push(self, i, c, delta, w):
        for k in range(delta.size):
            if delta[k] != 0.0:
                self.rows.push_class(i, c * delta[k], k, delta.size, w)

    def loss(self, i, y):
        return self.block_weight[i] * self.cost[self.truth[i], y[0]]

    def least_loss(self, i: int) -> float:
        """The least cost of another class."""
        others = np.delete(self.cost[self.truth[i]], self.truth[i])
        return float(self.block_weight[i] * np.min(others, initial=np.inf))

    def scratch(self):
        return (np.empty(0),)

    def touch(self, i, stage):
        moves.touch(self.rows, i, stage)
        if stage == 3:
            prefetch(self.truth, i)
            prefetch(self.norms2, i)

    # -- moves between two classes, and few classes: `stages.problems.moves` ----------------------------------------------
    def pair_norm2(self, i, y, z, delta):
        return 2.0 * self.norms2[i] if y[0] != z[0] else 0.0

    def pair_move(self, i, c, y, z, delta, w):
        if y[0] != z[0]:
            self.rows.push_class(i, c, int(y[0]), delta.size, w)
            self.rows.push_class(i, -c, int(z[0]), delta.size, w)

    def score_labels(self, i, w, labels, slots, theta, scores):
        for k in range(slots.size):
            scores[k] = self.rows.score_class(i, w, int(labels[slots[k], 0]), theta.size)


class KernelMulticlass(Multiclass):
    """The same over a kernel's rows, whose weights have inner products of their own (`stages.problems.moves`)."""

    __slots__ = ()

    def inner(self, a, b):
        """<a, b> of two weight vectors (d,)."""
        return product_of_halves(a, b)


def build(arrays: Mapping[str, np.ndarray], meta: Facts) -> Multiclass:
    """Multiclass problem over ``labels`` (n,) and perhaps ``block_weight`` (n,).

    The rows are ``x`` (n, D), over a kernel if there are ``points``, or sparse if there is ``row_ptr``: see `Dense`,
    `OverKernel` and `Csr`. `meta` gives ``classes``, what the rows need, and optionally ``cost`` (K, K), which may also be
    an array.

    Raises
    ------
    ValueError
        If the rows are not as their class wants them, or a label is not a class (the message names the first such block); if
        the cost matrix is not (K, K), non-negative with a zero diagonal (paths, O16 section 4, need L_i(y_i) = 0).
    """
    labels, classes = np.asarray(arrays["labels"]), int(meta["classes"])
    weight = block_weights("multiclass", arrays, labels.size)
    over_kernel = "points" in arrays
    kind: type[Dense | Csr | OverKernel] = OverKernel if over_kernel else Csr if "row_ptr" in arrays else Dense
    rows = kind.of(arrays, meta, weight)
    if labels.shape != (rows.n,):
        raise ValueError(f"multiclass: labels must be ({rows.n},), one for each row; got {labels.shape}")
    bad = (labels < 0) | (labels >= classes)
    if bad.any():
        raise ValueError(f"multiclass: block {int(np.argmax(bad))} has a label outside 0..{classes - 1}")
    steps = np.arange(labels.size + 1)
    return (KernelMulticlass if over_kernel else Multiclass)(
        n=labels.size,
        d=classes * rows.width,
        local_ptr=frozen(steps * classes, np.int64),
        label_ptr=frozen(steps, np.int64),
        truth=frozen(labels, np.uint8 if classes <= 256 else np.int16),
        lower=frozen(np.asarray(meta.get("lower", ())), np.float64),
        upper=frozen(np.asarray(meta.get("upper", ())), np.float64),
        rows=rows,
        norms2=frozen(rows.norms2()),
        cost=_checked_cost(arrays, meta, classes),
        block_weight=weight,
    )


def _checked_cost(arrays: Mapping[str, np.ndarray], meta: Facts, classes: int) -> np.ndarray:
    """float64 (K, K): ``cost`` among the arrays or in `meta`, else 1 for every error; ValueError if it is no cost matrix."""
    given = arrays["cost"] if "cost" in arrays else meta.get("cost", 1.0 - np.eye(classes))
    cost = np.asarray(given, dtype=float)
    if cost.shape != (classes, classes) or np.diag(cost).any() or not ((cost >= 0) & (cost < np.inf)).all():
        raise ValueError(
            f"multiclass: cost must be ({classes}, {classes}), finite and >= 0, with a zero diagonal; paths need "
            "a loss of 0 at the truth"
        )
    check_losses("multiclass", cost)
    return frozen(cost)


def derived(**block: np.ndarray) -> dict[str, np.ndarray]:
    """Nothing besides the features is stored."""
    return {}


def metrics(problem: Problem, arrays: Mapping[str, np.ndarray], predictions: np.ndarray) -> dict[str, float]:
    """Error rate of flat `predictions` (n,)."""
    return {"error_rate": share(predictions != problem.truth)}


def confusion(
    problem: Problem, arrays: Mapping[str, np.ndarray], meta: Facts, predictions: np.ndarray
) -> tuple[list[str], np.ndarray]:
    """Names of classes (``class_names``, else their numbers), and examples (truth, prediction)."""
    names = [str(name) for name in meta.get("class_names", range(problem.labels))]
    return names, counted(problem.truth, predictions, problem.labels)
