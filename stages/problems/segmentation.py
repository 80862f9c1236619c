"""Binary segmentation of superpixels with a max-flow oracle (HorseSeg in O16 section 5).

Block i is an image of S superpixels and E edges between neighbours, labels y in {0, 1}^S (1: foreground). The score is

    sum_p <w_U, x_p> ([y_p = 1] - [y_p = 0])  -  sum_pq <w_P, x_pq> [y_p != y_q],      w_P >= 0,

so in local coordinates m_i(y) = (2 y_p - 1 on superpixels, -[y_p != y_q] on edges) in R^{S+E}, B_i = blockdiag(X', P')
with X (S, D_U) and P (E, D_P) >= 0, and theta = (X w_U, P w_P). The loss is the Hamming loss weighted by area. Each class
counts one half, or all of it if the other is absent (``balanced``), or all pixels count alike (``per_image``). It is a sum
over superpixels, so the loss-augmented argmax is also one cut. Ties go to the background. *Void* superpixels have no true
label and no loss; in training their feature rows and those of their edges must be 0 (`stages.problems.losses`).

w_P is learned, or one number that all of it is equal to (`graph.bounds`; S15).

Unary rows are the stored ones times `unary_scale`: float32, or uint8 codes, which the kernels read directly (the dtype
specialises the compiled code), so that a memory map is never expanded. Everything else is about the scaled rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from gapwise.records import Facts
from gapwise.stages.problems.capabilities import Capabilities
from gapwise.stages.problems.compiled import inner
from gapwise.stages.problems.images.cut import best_labelling, forced_scores, forced_workspace
from gapwise.stages.problems.images.graph import (
    PIXELS,
    Images,
    check_features,
    image_fields,
)
from gapwise.stages.problems.images.kernels import (
    add_labelling,
    gram_form,
    labelling_value,
    rows_add,
    rows_dot,
    rows_norm2,
)
from gapwise.stages.problems.images.maxflow import workspace
from gapwise.stages.problems.losses import BALANCED, IN_WORDS, PICTURE_LOSSES, block_weights, silenced
from gapwise.stages.problems.protocol import PLAIN

MOST_SUPERPIXELS = 1 << 14
"""Of an image to train on: its matrix of inner products, which every step reads, then takes 1 GiB."""


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
    images: Images
    block_weight: np.ndarray
    """float64, (n,): weights of images; the loss of `images` has them, features have not"""

    @property
    def unconstrained(self) -> bool:
        """Every superpixel may have any label."""
        return True

    @property
    def labels(self) -> int:
        """Background and foreground."""
        return 2

    @property
    def features_per_block(self) -> float:
        """Mean number of features of a block: `scores` reads them all (`stages.solver.block.by_margins`)."""
        return (self.unary.size + self.pairwise.size) / self.n

    def scores(self, i, w, theta):
        size, width = self.label_ptr[i + 1] - self.label_ptr[i], self.unary.shape[1]
        rows_dot(self.unary, self.unary_scale, self.label_ptr[i], w[:width], theta[:size])
        rows_dot(self.pairwise, 1.0, self.images.edge_ptr[i], w[width:], theta[size:])
        if self.block_weight[i] != 1.0:
            for j in range(theta.size):
                theta[j] *= self.block_weight[i]

    def max_oracle(self, i, theta, y, scratch):
        _cut(self, i, theta, True, y, scratch)
        return self.loss(i, y)

    def decode(self, i, theta, y, scratch):
        _cut(self, i, theta, False, y, scratch)

    def max_marginals(self, i, theta, y, out, scratch):
        start, stop = self.label_ptr[i], self.label_ptr[i + 1]
        forced_scores(self.images, self.truth, i, start, stop, theta, y, out, scratch)

    def value(self, i, theta, y):
        return labelling_value(theta, y, self.images.edges[self.images.edge_ptr[i] : self.images.edge_ptr[i + 1]])

    def add(self, i, y, c, out):
        add_labelling(y, c, self.images.edges[self.images.edge_ptr[i] : self.images.edge_ptr[i + 1]], out)

    def norm2(self, i, delta):
        size = self.label_ptr[i + 1] - self.label_ptr[i]
        unary = gram_form(self.images.gram[self.images.gram_ptr[i] : self.images.gram_ptr[i + 1]], delta[:size])
        norm2 = max(unary, 0.0) + rows_norm2(self.pairwise, self.images.edge_ptr[i], delta[size:])
        return self.block_weight[i] ** 2 * norm2

    def push(self, i, c, delta, w):
        size, width = self.label_ptr[i + 1] - self.label_ptr[i], self.unary.shape[1]
        c *= self.block_weight[i]
        rows_add(self.unary, self.label_ptr[i], c * self.unary_scale, delta[:size], w[:width])
        rows_add(self.pairwise, self.images.edge_ptr[i], c, delta[size:], w[width:])

    def loss(self, i, y):
        total, first = 0.0, self.label_ptr[i]
        for p in range(y.size):
            if y[p] != self.truth[first + p]:
                total += self.images.loss_if_wrong[first + p]
        return total

    def least_loss(self, i: int) -> float:
        """The least cost of a superpixel that is not void: labels of those that are change no score."""
        costs = self.images.loss_if_wrong[self.label_ptr[i] : self.label_ptr[i + 1]]
        return float(np.min(costs[costs > 0.0], initial=np.inf))

    def scratch(self):
        return workspace(self.images.most_superpixels, self.images.most_edges)

    def ranked_scratch(self, m):
        return forced_workspace(self.images.most_superpixels, self.images.most_edges)


@inner(**PLAIN)
def _cut(self, i, theta, augmented, y, scratch):
    start, stop = self.label_ptr[i], self.label_ptr[i + 1]
    best_labelling(self.images, self.truth, i, start, stop, theta, augmented, y, scratch)


def build(arrays: Mapping[str, np.ndarray], meta: Facts) -> Segmentation:
    """Segmentation problem over the ragged arrays of one split (each with its ``<name>_ptr``).

    Parameters
    ----------
    arrays : Mapping
        Per image: ``unary`` (S, D_U) float32 or uint8 and ``pairwise`` (E, D_P) float32, ``edges`` (E, 2) int with
        ends a < b < S, ``labels`` (S,) in {0, 1} or VOID, ``area`` (S,) in labelled pixels, ``gram`` (S * S,) float32 from
        `derived`.
        Features of these dtypes are not copied, so they may be memory-mapped. Shared by all images: ``unary_scale``
        (1,), which uint8 needs. ``block_weight`` (n,) may hold weights of images.
    meta : Mapping
        ``loss``: a name of `graph.costs_by`, by default ``balanced``; ``per_pixel`` needs ``mean_area``. ``potts``: the
        fixed weight of all pairwise features, None to learn them (`graph.bounds`). ``checked`` is
        true if every block has passed `check_features` (featurize runs it through `derived`); then opening tens of gigabytes
        does not read them.

    Raises
    ------
    ValueError
        If a field is invalid; the message names it and the block.
    """
    scale = scale_of(arrays)
    fields = image_fields("segmentation", arrays, meta, 2, loss=BALANCED, rows=1, codes=True)
    return Segmentation(**fields, unary_scale=scale, block_weight=block_weights("segmentation", arrays, fields["n"]))


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


def derived(**block: np.ndarray) -> dict[str, np.ndarray]:
    """``gram`` (S * S,) float32: X X' of one image, scaled, summed in float64. Checks the block's features first.

    A block of uint8 ``unary`` must include the shared ``unary_scale``. ValueError, before it takes memory, for an image
    that is too large to train on.
    """
    count = len(block["unary"])
    if count > MOST_SUPERPIXELS:
        needed, most = 4 * count**2 / 2**30, 4 * MOST_SUPERPIXELS**2 / 2**30
        raise ValueError(
            f"{count:,} superpixels, whose inner products with each other take {needed:,.3g} GiB in training; expected at "
            f"most {MOST_SUPERPIXELS:,} ({most:g} GiB); divide the image, or use larger superpixels"
        )
    check_features(block["unary"], block["pairwise"], "segmentation")
    x = scale_of(block) * np.asarray(block["unary"], np.float64)
    return {"gram": (x @ x.T).astype(np.float32).reshape(-1)}


def metrics(problem: Segmentation, arrays: Mapping[str, np.ndarray], predictions: np.ndarray) -> dict[str, float]:
    """Pixel accuracy and foreground intersection over union, from each superpixel's ``area`` and ``foreground`` in pixels.

    ``foreground_iou`` is the mean over images; ``foreground_iou_pooled`` is over the pixels of all images together. An IoU
    is 1 where neither truth nor prediction has foreground, and the accuracy where all is void: nothing is wrong there.
    """
    area, foreground = (np.asarray(arrays[name], float).reshape(-1) for name in ("area", "foreground"))
    chosen = predictions == 1
    correct = np.where(chosen, foreground, area - foreground)
    both = np.add.reduceat(np.where(chosen, foreground, 0.0), problem.label_ptr[:-1])
    either = np.add.reduceat(np.where(chosen, area, foreground), problem.label_ptr[:-1])
    each = np.divide(both, either, out=np.ones_like(both), where=either > 0)
    return {
        "pixel_accuracy": float(correct.sum() / area.sum()) if area.any() else 1.0,  # all void
        "foreground_iou": float(each.mean()),
        "foreground_iou_pooled": float(both.sum() / either.sum()) if either.sum() > 0 else 1.0,
    }


def confusion(
    problem: Segmentation, arrays: Mapping[str, np.ndarray], meta: Facts, predictions: np.ndarray
) -> tuple[list[str], np.ndarray]:
    """Background and foreground (or ``class_names``), and labelled pixels (truth, prediction)."""
    area, foreground = (np.asarray(arrays[name], float).reshape(-1) for name in ("area", "foreground"))
    rows = [np.bincount(predictions, pixels, minlength=2) for pixels in (area - foreground, foreground)]
    return [str(name) for name in meta.get("class_names", ("background", "foreground"))], np.array(rows)


CAPABILITIES = Capabilities(
    learns="segment images into object and background",
    losses={name: IN_WORDS[name] for name in PICTURE_LOSSES},
    new_data="pictures/",
    margins=True,
    whole=("block_weight",),
    features=("unary", "pairwise"),
    single=True,
    unit=PIXELS,
    confusion=confusion,
    for_training=silenced,
    rising=("pixel_accuracy", "foreground_iou", "foreground_iou_pooled"),
)
