"""Binary segmentation of superpixels with a max-flow oracle (HorseSeg in O16 section 5).

Block i is an image of S superpixels and E edges between neighbours, labels y in {0, 1}^S (1: foreground). The score is

    sum_p <w_U, x_p> ([y_p = 1] - [y_p = 0])  -  sum_pq <w_P, x_pq> [y_p != y_q],      w_P >= 0,

so in local coordinates m_i(y) = (2 y_p - 1 on superpixels, -[y_p != y_q] on edges) in R^{S+E}, B_i = blockdiag(X', P')
with X (S, D_U) and P (E, D_P) >= 0, and theta = (X w_U, P w_P). The loss is the Hamming loss weighted by area, where each
class counts one half, or all of it if the other is absent. It is a sum over superpixels, so the loss-augmented argmax is
also one cut. Ties go to the background. *Void* superpixels have no true label and no loss; in training their feature rows
and those of their edges must be 0 (`stages.problems.void`).

Unary rows are the stored ones times `unary_scale`: float32, or uint8 codes, which the kernels read directly (the dtype
specialises the compiled code), so that a memory map is never expanded. Everything else is about the scaled rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from gapwise.stages.problems.inner import inner
from gapwise.stages.problems.protocol import PLAIN, frozen
from gapwise.stages.problems.segmentation.kernels import (
    add_labelling,
    gram_form,
    labelling_value,
    rows_add,
    rows_dot,
    rows_norm2,
)
from gapwise.stages.problems.segmentation.maxflow import adjacency, minimum_cut, workspace
from gapwise.stages.problems.void import VOID

NEGATIVE = 1e-9
"""An edge score below -NEGATIVE times the largest score is an error; between that and 0 it counts as 0."""


@inner(**PLAIN)
def _terminals(theta, truth, cost, augmented, size, excess):
    """Terminal capacities: minus the gain of labelling p foreground. ValueError if the scores do not make a cut problem."""
    finite, largest, least = True, 0.0, 0.0
    for p in range(size):
        gain = 2.0 * theta[p]
        if augmented:
            gain += cost[p] * (1.0 - 2.0 * truth[p])
        excess[p] = -gain
        finite &= abs(gain) < np.inf
    for e in range(size, theta.size):
        finite &= abs(theta[e]) < np.inf
        largest = max(largest, theta[e])
        least = min(least, theta[e])
    if not finite:
        raise ValueError("segmentation: a score is not finite; look for nan or infinity in the weights")
    if least < -NEGATIVE * largest:
        raise ValueError(
            "segmentation: an edge score is negative, so this is not a cut; clip the pairwise weights to >= 0"
        )


class Segmentation(NamedTuple):
    """n images; d = D_U + D_P, the unary weights first."""

    n: int
    d: int
    local_ptr: np.ndarray
    label_ptr: np.ndarray
    truth: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    unary: np.ndarray
    """float32 or uint8, (label_ptr[-1], D_U)"""
    unary_scale: float
    """the factor of `unary`; 1 for plain float32"""
    pairwise: np.ndarray
    """float32, (edge_ptr[-1], D_P), >= 0"""
    edge_ptr: np.ndarray
    """int64, (n + 1,)"""
    edges: np.ndarray
    """int32, (edge_ptr[-1], 2): superpixels of the image, from 0"""
    gram_ptr: np.ndarray
    """int64, (n + 1,)"""
    gram: np.ndarray
    """float32, (gram_ptr[-1],): X X' of every image, flat; X is scaled"""
    loss_if_wrong: np.ndarray
    """float64, (label_ptr[-1],): the loss of a wrong label at each superpixel"""
    arc_ptr: np.ndarray
    """int32, (label_ptr[-1] + n,); this and the next three are `maxflow.adjacency`"""
    head: np.ndarray
    """int32, (2 * edge_ptr[-1],)"""
    reverse: np.ndarray
    """int32, (2 * edge_ptr[-1],)"""
    edge: np.ndarray
    """int32, (2 * edge_ptr[-1],)"""
    most_superpixels: int
    most_edges: int

    @property
    def labels(self) -> int:
        """Background and foreground."""
        return 2

    @property
    def unconstrained(self) -> bool:
        """Every superpixel may have either label."""
        return True

    @property
    def features_per_block(self) -> float:
        """Mean number of features of a block: `scores` reads them all (`stages.solver.margins`)."""
        return (self.unary.size + self.pairwise.size) / self.n

    def scores(self, i, w, theta):
        size, width = self.label_ptr[i + 1] - self.label_ptr[i], self.unary.shape[1]
        rows_dot(self.unary, self.unary_scale, self.label_ptr[i], w[:width], theta[:size])
        rows_dot(self.pairwise, 1.0, self.edge_ptr[i], w[width:], theta[size:])

    def max_oracle(self, i, theta, y, scratch):
        _cut(self, i, theta, True, y, scratch)
        return _loss(self.truth, self.loss_if_wrong, self.label_ptr[i], y)

    def decode(self, i, theta, y, scratch):
        _cut(self, i, theta, False, y, scratch)

    def value(self, i, theta, y):
        return labelling_value(theta, y, self.edges[self.edge_ptr[i] : self.edge_ptr[i + 1]])

    def add(self, i, y, c, out):
        add_labelling(y, c, self.edges[self.edge_ptr[i] : self.edge_ptr[i + 1]], out)

    def norm2(self, i, delta):
        size = self.label_ptr[i + 1] - self.label_ptr[i]
        unary = gram_form(self.gram[self.gram_ptr[i] : self.gram_ptr[i + 1]], delta[:size])
        return max(unary, 0.0) + rows_norm2(self.pairwise, self.edge_ptr[i], delta[size:])

    def push(self, i, c, delta, w):
        size, width = self.label_ptr[i + 1] - self.label_ptr[i], self.unary.shape[1]
        rows_add(self.unary, self.label_ptr[i], c * self.unary_scale, delta[:size], w[:width])
        rows_add(self.pairwise, self.edge_ptr[i], c, delta[size:], w[width:])

    def by_sum(self):
        """The rows of a direction are read once: `norm2` reads the Gram matrix as well."""
        return True

    def loss(self, i, y):
        return _loss(self.truth, self.loss_if_wrong, self.label_ptr[i], y)

    def least_loss(self, i):
        """Void superpixels left out: a labelling that differs from the truth only there has the truth's score."""
        costs = self.loss_if_wrong[self.label_ptr[i] : self.label_ptr[i + 1]]
        return np.min(costs[costs > 0.0], initial=np.inf)

    def scratch(self):
        return workspace(self.most_superpixels, self.most_edges)


@inner(**PLAIN)
def _loss(truth, cost, first, y):
    total = 0.0
    for p in range(y.size):
        if y[p] != truth[first + p]:
            total += cost[first + p]
    return total


@inner(**PLAIN)
def _cut(self, i, theta, augmented, y, scratch):
    start, stop, arcs, end = self.label_ptr[i], self.label_ptr[i + 1], 2 * self.edge_ptr[i], 2 * self.edge_ptr[i + 1]
    size = stop - start
    _terminals(theta, self.truth[start:stop], self.loss_if_wrong[start:stop], augmented, size, scratch[0])
    minimum_cut(
        self.arc_ptr[start + i : stop + i + 1],
        self.head[arcs:end],
        self.reverse[arcs:end],
        self.edge[arcs:end],
        theta[size:],
        y,
        scratch,
    )


def build(arrays: Mapping[str, np.ndarray], meta: Mapping[str, Any]) -> Segmentation:
    """Segmentation problem over the ragged arrays of one split (each with its ``<name>_ptr``).

    Parameters
    ----------
    arrays : Mapping
        Per image: ``unary`` (S, D_U) float32 or uint8 and ``pairwise`` (E, D_P) float32, ``edges`` (E, 2) int with
        ends a < b < S, ``labels`` (S,) in {0, 1} or VOID, ``area`` (S,) in labelled pixels, ``gram`` (S * S,) float32 from
        `derived`.
        Features of these dtypes are not copied, so they may be memory-mapped. Shared by all images: ``unary_scale``
        (1,), which uint8 needs.
    meta : Mapping
        ``checked`` is true if every block has passed `check_features` (featurize runs it through `derived`); then opening
        tens of gigabytes does not read them.

    Raises
    ------
    ValueError
        If a field is invalid; the message names it and the block.
    """
    names = ("unary", "pairwise", "edges", "labels", "area", "gram")
    ptr = {name: np.asarray(arrays[f"{name}_ptr"], np.int64) for name in names}
    sizes, edge_counts = np.diff(ptr["unary"]), np.diff(ptr["pairwise"])
    for name, expected in (("labels", sizes), ("area", sizes), ("gram", sizes * sizes), ("edges", edge_counts)):
        got = np.diff(ptr[name])
        if got.size != expected.size:
            raise ValueError(f"segmentation: {name} has {got.size} blocks, expected {expected.size}")
        _refuse(got != expected, lambda i, n=name, g=got, x=expected: (i, f"{n} has length {g[i]}, expected {x[i]}"))
    n, label_ptr, edge_ptr = sizes.size, ptr["unary"], ptr["pairwise"]
    labels, area = np.asarray(arrays["labels"]).reshape(-1), np.asarray(arrays["area"], float).reshape(-1)
    edges = np.asarray(arrays["edges"]).reshape(-1, 2)
    scale, codes = scale_of(arrays), arrays["unary"].dtype == np.uint8
    unary, pairwise = frozen(arrays["unary"], None if codes else np.float32), frozen(arrays["pairwise"], np.float32)

    def block(pointer: np.ndarray, k: int) -> int:
        return int(np.searchsorted(pointer, k, side="right")) - 1

    _refuse(sizes == 0, lambda i: (i, "unary has no superpixels"))
    void = labels == VOID
    bad_label = (labels != 0) & (labels != 1) & ~void
    _refuse(
        bad_label, lambda k: (block(label_ptr, k), f"labels holds {labels[k]}, expected 0 or 1, or {VOID} for void")
    )
    bad_area = ~(np.isfinite(area) & ((area > 0) | (void & (area >= 0))))
    _refuse(bad_area, lambda k: (block(label_ptr, k), f"area holds {area[k]}, expected a positive number of pixels"))
    within = np.repeat(sizes, edge_counts)
    bad_edge = (edges[:, 0] < 0) | (edges[:, 0] >= edges[:, 1]) | (edges[:, 1] >= within)
    _refuse(bad_edge, lambda k: (block(edge_ptr, k), f"edges holds {edges[k].tolist()}, expected a < b < {within[k]}"))
    if not meta.get("checked", False):
        for i in range(n):
            x, edge_x = unary[label_ptr[i] : label_ptr[i + 1]], pairwise[edge_ptr[i] : edge_ptr[i + 1]]
            check_features(x, edge_x, f"segmentation: block {i}")
    width = unary.shape[1] + pairwise.shape[1]
    lower = np.concatenate([np.full(unary.shape[1], -np.inf), np.zeros(pairwise.shape[1])])
    arc_ptr, head, reverse, edge = adjacency(edges, edge_ptr, label_ptr)
    return Segmentation(
        n=n,
        d=width,
        local_ptr=frozen(label_ptr + edge_ptr),
        label_ptr=frozen(label_ptr),
        truth=frozen(np.where(void, 0, labels), np.uint8),
        lower=frozen(lower),
        upper=frozen(np.full(width, np.inf)),
        unary=unary,
        unary_scale=scale,
        pairwise=pairwise,
        edge_ptr=frozen(edge_ptr),
        edges=frozen(edges, np.int32),
        gram_ptr=frozen(ptr["gram"]),
        gram=frozen(arrays["gram"], np.float32).reshape(-1),
        loss_if_wrong=frozen(_costs(np.where(void, 0, labels), np.where(void, 0.0, area), label_ptr)),
        arc_ptr=frozen(arc_ptr),
        head=frozen(head),
        reverse=frozen(reverse),
        edge=frozen(edge),
        most_superpixels=int(sizes.max()),
        most_edges=int(edge_counts.max()),
    )


def _refuse(bad: np.ndarray, describe: Any) -> None:
    if bad.any():
        i, what = describe(int(np.argmax(bad)))
        raise ValueError(f"segmentation: block {i}: {what}")


def _costs(labels: np.ndarray, area: np.ndarray, label_ptr: np.ndarray) -> np.ndarray:
    """The loss of a wrong label: the superpixel's share of its class's area, times one half if both classes occur.

    Where the area is 0, as that of void superpixels is here, so is the loss.
    """
    image = np.repeat(np.arange(label_ptr.size - 1), np.diff(label_ptr))
    group = 2 * image + labels
    total = np.bincount(group, area, minlength=2 * (label_ptr.size - 1))
    classes = (total.reshape(-1, 2) > 0).sum(axis=1)
    return np.divide(area, total[group] * classes[image], out=np.zeros_like(area), where=area > 0.0)


def scale_of(arrays: Mapping[str, np.ndarray]) -> float:
    """Factor of the stored unary values: ``unary_scale``; 1 for float rows without it."""
    missing = () if arrays["unary"].dtype == np.uint8 else (1.0,)
    scale = np.asarray(arrays.get("unary_scale", missing), np.float64).reshape(-1)
    if scale.size != 1 or not 0.0 < scale[0] < np.inf:
        raise ValueError(
            f"segmentation: unary is {arrays['unary'].dtype} and unary_scale has the entries {scale[:3].tolist()} "
            f"({scale.size} in all); expected one positive number, the factor of the stored values"
        )
    return float(scale[0])


def check_features(unary: np.ndarray, pairwise: np.ndarray, where: str) -> None:
    """ValueError, beginning with `where`, unless all features are finite and the pairwise ones >= 0."""
    for name, values in (("unary", unary), ("pairwise", pairwise)):
        if not np.isfinite(values).all():
            row, column = (int(k) for k in np.argwhere(~np.isfinite(values))[0])
            raise ValueError(f"{where}: {name} is {values[row, column]} in row {row}, feature {column}")
    if pairwise.size and pairwise.min() < 0:
        row, column = (int(k) for k in np.argwhere(pairwise < 0)[0])
        raise ValueError(
            f"{where}: pairwise is {pairwise[row, column]} in row {row}, feature {column}; "
            "expected >= 0, or the max-oracle is not a cut"
        )


def derived(**block: np.ndarray) -> dict[str, np.ndarray]:
    """``gram`` (S * S,) float32: X X' of one image, scaled, summed in float64. Checks the block's features first.

    A block of uint8 ``unary`` must include the shared ``unary_scale``.
    """
    check_features(block["unary"], block["pairwise"], "segmentation")
    x = scale_of(block) * np.asarray(block["unary"], np.float64)
    return {"gram": (x @ x.T).astype(np.float32).reshape(-1)}


def metrics(problem: Segmentation, arrays: Mapping[str, np.ndarray], predictions: np.ndarray) -> dict[str, float]:
    """Pixel accuracy and foreground intersection over union, from each superpixel's ``area`` and ``foreground`` in pixels.

    ``foreground_iou`` is the mean over images (1 where neither truth nor prediction has foreground);
    ``foreground_iou_pooled`` is over the pixels of all images together.
    """
    area, foreground = (np.asarray(arrays[name], float).reshape(-1) for name in ("area", "foreground"))
    chosen = predictions == 1
    correct = np.where(chosen, foreground, area - foreground)
    both = np.add.reduceat(np.where(chosen, foreground, 0.0), problem.label_ptr[:-1])
    either = np.add.reduceat(np.where(chosen, area, foreground), problem.label_ptr[:-1])
    each = np.divide(both, either, out=np.ones_like(both), where=either > 0)
    return {
        "pixel_accuracy": float(correct.sum() / area.sum()),
        "foreground_iou": float(each.mean()),
        "foreground_iou_pooled": float(both.sum() / either.sum()) if either.sum() > 0 else 1.0,
    }


def confusion(
    problem: Segmentation, arrays: Mapping[str, np.ndarray], meta: Mapping[str, Any], predictions: np.ndarray
) -> tuple[list[str], np.ndarray]:
    """Background and foreground (or ``class_names``), and labelled pixels (truth, prediction)."""
    area, foreground = (np.asarray(arrays[name], float).reshape(-1) for name in ("area", "foreground"))
    rows = [np.bincount(predictions, pixels, minlength=2) for pixels in (area - foreground, foreground)]
    return [str(name) for name in meta.get("class_names", ("background", "foreground"))], np.array(rows)
