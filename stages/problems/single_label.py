"""What structures have in common whose blocks are one label each: multiclass over dense rows, sparse rows, or kernels.

Their fields `norms2`, `cost` and `block_weight` mean the same, local coordinates are m_i(y) = e_y in R^K, and
||B_i delta||^2 = ||x_i||^2 ||delta||^2. So `one_label` gives each class the same methods; a class defines those that read
its rows. The rows that it reads are those of the data times the weight of their block (`stages.problems.block_weight`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, TypeVar

import numpy as np
from numba import njit

from gapwise.records import Facts
from gapwise.stages.problems.confusion import counted, share
from gapwise.stages.problems.kernel_types import Kernel
from gapwise.stages.problems.protocol import PLAIN, Problem, frozen
from gapwise.stages.problems.scale import check_losses

Structure = TypeVar("Structure")


@njit(**PLAIN)
def best_label(theta):
    """The label of the largest score in theta (K,); the first of equals."""
    best = 0
    for k in range(1, theta.size):
        if theta[k] > theta[best]:
            best = k
    return best


@njit(**PLAIN)
def worst_label(theta, cost, weight):
    """The label of the largest score plus weighted cost, both (K,); the first of equals."""
    best = 0
    for k in range(1, theta.size):
        if theta[k] + weight * cost[k] > theta[best] + weight * cost[best]:
            best = k
    return best


@njit(**PLAIN)
def best_labels(theta, m, labels, values):
    """labels (m, 1), values (m,) <- the labels of largest score, by falling score; of equals the first; returns how many."""
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


@njit(**PLAIN)
def sum_of_squares(delta):
    """||delta||^2, summed in order."""
    total = 0.0
    for k in range(delta.size):
        total += delta[k] * delta[k]
    return total


def max_oracle(self, i, theta, y, scratch):
    cost = self.cost[self.truth[i]]
    best = worst_label(theta, cost, self.block_weight[i])
    y[0] = best
    return self.block_weight[i] * cost[best]


def decode(self, i, theta, y, scratch):
    y[0] = best_label(theta)


def max_marginals(self, i, theta, y, out, scratch):
    y[0] = best_label(theta)
    for k in range(theta.size):
        out[0, k] = theta[k]


def n_best(self, i, theta, m, labels, values, scratch):
    return best_labels(theta, m, labels, values)


def ranked_scratch(self, m):
    return (np.empty(0),)


def value(self, i, theta, y):
    return theta[y[0]]


def add(self, i, y, c, out):
    out[y[0]] += c


def norm2(self, i, delta):
    return sum_of_squares(delta) * self.norms2[i]


def loss(self, i, y):
    return self.block_weight[i] * self.cost[self.truth[i], y[0]]


def least_loss(self, i):
    return self.block_weight[i] * np.min(np.delete(self.cost[self.truth[i]], self.truth[i]), initial=np.inf)


def scratch(self):
    return (np.empty(0),)


METHODS: tuple[Kernel, ...] = (
    max_oracle, decode, max_marginals, n_best, value, add, norm2, loss, least_loss, scratch, ranked_scratch,
)  # fmt: skip


def one_label(structure: type[Structure]) -> type[Structure]:
    """Decorate a problem class with the fields of the module's first lines: `METHODS`, `labels` and `unconstrained`."""
    for method in METHODS:
        setattr(structure, method.__name__, method)
    structure.labels = property(lambda self: len(self.cost), doc="K.")  # type: ignore[attr-defined]
    structure.unconstrained = property(lambda self: True, doc="Every class may be predicted for every example.")  # type: ignore[attr-defined]
    return structure


class Labelled(NamedTuple):
    """The fields of a problem after n and d, for n blocks of one label each."""

    local_ptr: np.ndarray
    label_ptr: np.ndarray
    truth: np.ndarray
    lower: np.ndarray
    upper: np.ndarray


def labelled(structure: str, labels: np.ndarray, classes: int, meta: Facts) -> Labelled:
    """The fields for `labels` (n,); `meta` may have ``lower`` and ``upper``. ValueError names a block without a class."""
    bad = (labels < 0) | (labels >= classes)
    if bad.any():
        raise ValueError(f"{structure}: block {int(np.argmax(bad))} has a label outside 0..{classes - 1}")
    steps = np.arange(labels.size + 1)
    return Labelled(
        local_ptr=frozen(steps * classes, np.int64),
        label_ptr=frozen(steps, np.int64),
        truth=frozen(labels, np.uint8 if classes <= 256 else np.int16),
        lower=frozen(np.asarray(meta.get("lower", ())), np.float64),
        upper=frozen(np.asarray(meta.get("upper", ())), np.float64),
    )


def checked_cost(structure: str, arrays: Mapping[str, np.ndarray], meta: Facts, classes: int) -> np.ndarray:
    """float64 (K, K): ``cost`` among the arrays or in `meta`, else 1 for every error; ValueError if it is no cost matrix."""
    given = arrays["cost"] if "cost" in arrays else meta.get("cost", 1.0 - np.eye(classes))
    cost = np.asarray(given, dtype=float)
    if cost.shape != (classes, classes) or np.diag(cost).any() or not ((cost >= 0) & (cost < np.inf)).all():
        raise ValueError(
            f"{structure}: cost must be ({classes}, {classes}), finite and >= 0, with a zero diagonal; paths need "
            "a loss of 0 at the truth"
        )
    check_losses(structure, cost)
    return frozen(cost)


def floats(values: np.ndarray) -> np.ndarray:
    """Frozen features: float32 stays, all else becomes float64."""
    return frozen(values, np.float32 if values.dtype == np.float32 else np.float64)


def check_finite(structure: str, unit: str, rows: np.ndarray) -> None:
    """ValueError that names the first row (a block, or what `unit` names) with a feature that is not finite."""
    bad = ~np.isfinite(rows).all(axis=1)
    if bad.any():
        raise ValueError(f"{structure}: {unit} {int(np.argmax(bad))} has a feature that is not finite")


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
