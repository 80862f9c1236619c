"""Multiclass classification over sparse rows: `multiclass` for features that are mostly 0, such as words.

Features x_i in R^D are rows of feature numbers and values (CSR), K classes. Local coordinates, oracle and loss are those of
`multiclass`: m_i(y) = e_y in R^K and ||B_i delta||^2 = ||x_i||^2 ||delta||^2. Weights are stacked feature by feature,
w[j K + k] for feature j and class k, so that one feature of a row touches K neighbouring weights; `class_weights` gives them
by class.

**Binary SVM.** With two classes, all costs 1 and s_i = +1 for class 1, -1 for class 0, the hinge of block i is
max(0, 1 - s_i <w_1 - w_0, x_i>). It depends on u = w_1 - w_0 alone, and of all (w_0, w_1) with the same u the least norm has
w_1 = -w_0 = u/2, with ||w||^2 = ||u||^2 / 2. So the minimum over w is that of

    (lambda/4) ||u||^2 + (1/n) sum_i max(0, 1 - s_i <u, x_i>)
        =  (1/(n C)) [ ||u||^2 / 2 + C sum_i max(0, 1 - s_i <u, x_i>) ]

with lambda = 2 / (n C): what LIBLINEAR minimises (`-s 3`; scikit-learn's LinearSVC with loss="hinge", dual=True and
fit_intercept=False), divided by n C. Hence w_1 = u/2, P = f / (n C), and a constant column (`dataset.bias`) is LIBLINEAR's
`-B`. Dual points agree as well: the weight of block i's wrong label is LIBLINEAR's alpha_i / C. All of this holds for
`multiclass`, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from gapwise.records import Facts
from gapwise.stages.problems.block_weight import block_weights
from gapwise.stages.problems.capabilities import Capabilities
from gapwise.stages.problems.marginals import class_marginals
from gapwise.stages.problems.operations import SEARCH, Operations, mean_size
from gapwise.stages.problems.protocol import U, frozen
from gapwise.stages.problems.single_label import (
    checked_cost,
    confusion,
    derived,
    floats,
    labelled,
    metrics,
    one_label,
)

__all__ = ["CAPABILITIES", "MulticlassSparse", "build", "class_weights", "derived", "metrics"]


@one_label
class MulticlassSparse(NamedTuple):
    """n examples of D features and K classes; d = D * K."""

    n: int
    d: int
    local_ptr: np.ndarray
    label_ptr: np.ndarray
    truth: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    row_ptr: np.ndarray
    """int64, (n + 1,): row i is ids[row_ptr[i]:row_ptr[i + 1]]"""
    ids: np.ndarray
    """int32, (row_ptr[-1],): feature numbers, rising in every row"""
    values: np.ndarray
    """float32 or float64, (row_ptr[-1],)"""
    norms2: np.ndarray
    """float64, (n,): ||x_i||^2"""
    cost: np.ndarray
    """float64, (K, K): cost[truth, prediction]"""
    block_weight: np.ndarray
    """float64, (n,): weights of blocks, which the values have, too"""

    @property
    def operations(self) -> Operations:
        """nnz rows of K; in a visit the same, and two pushed columns out of order."""
        nnz = mean_size(self.row_ptr)
        return Operations(nnz * len(self.cost), nnz * (len(self.cost) + 2.0 * SEARCH))

    def scores(self, i, w, theta):
        theta[:] = 0.0
        for e in range(self.row_ptr[i], self.row_ptr[i + 1]):
            x, first = self.values[e], np.int64(self.ids[e]) * theta.size
            of = w[first : first + theta.size]
            for k in range(theta.size):
                theta[k] += x * of[k]

    def push(self, i, c, delta, w):
        for k in range(delta.size):
            if delta[k] != 0.0:
                step = c * delta[k]
                for e in range(self.row_ptr[i], self.row_ptr[i + 1]):
                    w[U(self.ids[e]) * U(delta.size) + U(k)] += step * self.values[e]

    def marginals(self, i, theta, c, mu, scratch):
        return class_marginals(theta, c, self.cost[self.truth[i]], self.block_weight[i], mu)


def build(arrays: Mapping[str, np.ndarray], meta: Facts) -> MulticlassSparse:
    """Multiclass problem over ``ids`` and ``values`` (nnz,), ``row_ptr`` (n + 1,) and ``labels`` (n,), and
    perhaps ``block_weight`` (n,).

    `meta` gives ``classes``, ``width`` D, and optionally ``cost`` (K, K), which may also be an array.

    Raises
    ------
    ValueError
        If the rows are no CSR matrix of D columns with rising column numbers, if a value is not finite or a label is not a
        class (the message names the first such block), or if the cost matrix is not as `multiclass.build` wants it.
    """
    ids, values, ptr = (np.asarray(arrays[name]) for name in ("ids", "values", "row_ptr"))
    labels, classes, width = np.asarray(arrays["labels"]), int(meta["classes"]), int(meta["width"])
    n, ptr = ptr.size - 1, ptr.astype(np.int64)
    if ids.shape != values.shape or ids.ndim != 1 or labels.shape != (n,):
        raise ValueError(
            f"multiclass_sparse: expected ids and values (nnz,), row_ptr (n + 1,) and labels (n,); got {ids.shape}, "
            f"{values.shape}, {ptr.shape} and {labels.shape}"
        )
    if n < 1 or ptr[0] != 0 or ptr[-1] != ids.size or (np.diff(ptr) < 0).any():
        raise ValueError(f"multiclass_sparse: row_ptr must rise from 0 to {ids.size}, the number of values")
    row = np.repeat(np.arange(n), np.diff(ptr))
    same_row = row[1:] == row[:-1]
    for fault, bad in (
        ("a value that is not finite", ~np.isfinite(values)),
        (f"a feature number outside 0..{width - 1}", (ids < 0) | (ids >= width)),
        ("feature numbers that do not rise", np.append(False, same_row & (ids[1:] <= ids[:-1]))[: ids.size]),
    ):
        if bad.any():
            raise ValueError(f"multiclass_sparse: block {row[int(np.argmax(bad))]} has {fault}")
    of_labels, values = labelled("multiclass_sparse", labels, classes, meta), floats(values)
    weight = block_weights("multiclass_sparse", arrays, n)
    if (weight != 1.0).any():
        values = frozen(values * weight[row].astype(values.dtype))
    return MulticlassSparse(
        n,
        classes * width,
        *of_labels,
        row_ptr=frozen(ptr),
        ids=frozen(ids, np.int32),
        values=values,
        norms2=frozen(np.bincount(row, values.astype(np.float64) ** 2, minlength=n)),
        cost=checked_cost("multiclass_sparse", arrays, meta, classes),
        block_weight=weight,
    )


CAPABILITIES = Capabilities(
    margins=True,
    n_best=True,
    whole=("labels", "block_weight"),
    rows=("row_ptr", "ids", "values"),
    features=("values",),
    counts=("classes", "width"),
    falling=("error_rate",),
    confusion=confusion,
)


def class_weights(w: np.ndarray, classes: int) -> np.ndarray:
    """w (d,) as (K, D): the weights of each class."""
    return np.ascontiguousarray(w.reshape(-1, classes).T)
