"""Images as graphs of superpixels: what segmentation and Potts segmentation share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from gapwise.records import Facts
from gapwise.stages.problems.compiled import inner
from gapwise.stages.problems.images.maxflow import adjacency
from gapwise.stages.problems.losses import (
    BALANCED,
    BLOCK_WEIGHT,
    PER_PIXEL,
    PICTURE_LOSSES,
    VOID,
    LossUnit,
    block_weights,
)
from gapwise.stages.problems.protocol import PLAIN, frozen

NEGATIVE = 1e-9
"""An edge score below -NEGATIVE times the largest score is an error; between that and 0 it counts as 0."""


class Images(NamedTuple):
    """The graphs of n images, their Gram matrices, and what wrong labels cost. label_ptr (n + 1,) is the structure's."""

    edge_ptr: np.ndarray
    """int64, (n + 1,)"""
    edges: np.ndarray
    """int32, (edge_ptr[-1], 2): superpixels of the image, from 0"""
    gram_ptr: np.ndarray
    """int64, (n + 1,)"""
    gram: np.ndarray
    """float32, (gram_ptr[-1],): X X' of every image, flat; X is scaled"""
    loss_if_wrong: np.ndarray
    """float64, (label_ptr[-1],): the task loss of a wrong label at each superpixel; 0 where it is void"""
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


@inner(**PLAIN)
def arcs_of(images, i, start, stop):
    """arc_ptr, head, reverse and edge of block i; to be called from compiled code, as views do not get out of it.

    The block's superpixels are start, ..., stop - 1.
    """
    arcs, end = 2 * images.edge_ptr[i], 2 * images.edge_ptr[i + 1]
    rows = images.arc_ptr[start + i : stop + i + 1]
    return rows, images.head[arcs:end], images.reverse[arcs:end], images.edge[arcs:end]


Costs = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]
"""From labels, areas (both 0 where void) and label_ptr to the loss of a wrong label at each superpixel."""


def costs_by(loss: str, classes: int, mean_area: float | None = None) -> Costs:
    """The loss of this name; it is 0 where the area is, as that of void superpixels is.

    ``per_image``: the superpixel's share of the image's labelled pixels. ``per_pixel``: its pixels / `mean_area`, the mean
    number of labelled pixels of a training image, so that a wrong pixel costs the same in all images. ``balanced``: its
    share of its class's pixels in the image, divided by the number of classes that occur there.
    """

    def per_pixel(labels: np.ndarray, area: np.ndarray, label_ptr: np.ndarray) -> np.ndarray:
        return area / mean_area

    def shares(labels: np.ndarray, area: np.ndarray, label_ptr: np.ndarray) -> np.ndarray:
        image = np.repeat(np.arange(label_ptr.size - 1), np.diff(label_ptr))
        group = classes * image + (labels if loss == BALANCED else 0)
        total = np.bincount(group, area, minlength=classes * (label_ptr.size - 1))
        present = (total.reshape(-1, classes) > 0).sum(axis=1)
        return np.divide(area, total[group] * present[image], out=np.zeros_like(area), where=area > 0.0)

    if loss not in PICTURE_LOSSES:
        raise ValueError(f"loss is {loss!r}, expected {' or '.join(PICTURE_LOSSES)}")
    if loss == PER_PIXEL and (mean_area is None or not 0.0 < mean_area < np.inf):
        raise ValueError(f"loss {PER_PIXEL}: mean_area is {mean_area}, expected pixels > 0 of a mean training image")
    return per_pixel if loss == PER_PIXEL else shares


def labelled_pixels(block: Mapping[str, np.ndarray]) -> float:
    """The labelled pixels of ``area`` (S,), of one image or of several in a row; void superpixels have none.

    An image of several counts as often as its ``block_weight`` says.
    """
    area, labels = np.asarray(block["area"], float).reshape(-1), np.asarray(block["labels"]).reshape(-1)
    if BLOCK_WEIGHT in block and "labels_ptr" in block:
        area = area * np.repeat(block[BLOCK_WEIGHT], np.diff(block["labels_ptr"]))
    return float(np.sum(area[labels != VOID]))


PIXELS = LossUnit(PER_PIXEL, "mean_area", labelled_pixels)
"""The unit of ``per_pixel``."""


def bounds(structure: str, unary: int, pairwise: int, potts: float | None = None) -> tuple[np.ndarray, np.ndarray]:
    """lower and upper (unary + pairwise,): weights of pairs are >= 0, or all equal to `potts` unless it is None.

    A fixed weight adds lambda / 2 times its square, once for each pairwise weight, to every objective. Unless it is 0, it
    allows single lambdas and grids but no path (`objective.require_cone`). ValueError for one that is < 0 or not finite.
    """
    if potts is not None and not 0.0 <= float(potts) < np.inf:
        raise ValueError(f"{structure}: potts is {potts!r}, expected a number >= 0, or null to learn the weights")
    lower, upper = np.full(unary + pairwise, -np.inf), np.full(unary + pairwise, np.inf)
    lower[unary:] = 0.0 if potts is None else float(potts)
    upper[unary:] = np.inf if potts is None else float(potts)
    return frozen(lower), frozen(upper)


def image_fields(
    structure: str, arrays: Mapping[str, np.ndarray], meta: Facts, classes: int, *, loss: str, rows: int, codes: bool
) -> dict[str, Any]:
    """The fields of a problem over images, by name, from the ragged arrays of one split (each with its ``<name>_ptr``).

    Parameters
    ----------
    structure : str
        The name that messages begin with.
    arrays : Mapping
        Per image: ``unary`` (S, D_U), ``pairwise`` (E, D_P), ``edges`` (E, 2) int with ends a < b < S, ``labels`` (S,) in 0,
        ..., classes - 1 or VOID, ``area`` (S,) in labelled pixels, ``gram`` (S * S,) float32.
    meta : Mapping
        ``loss`` and ``mean_area`` of `costs_by`, ``potts`` of `bounds`; ``checked``: whether every block has passed
        `check_features`.
    loss : str
        The usual one.
    rows : int
        How often w holds weights of the unary features.
    codes : bool
        Whether uint8 unary rows stay as they are.

    Raises
    ------
    ValueError
        If a field is invalid; the message names it and the block.
    """
    costs = costs_by(meta.get("loss") or loss, classes, meta.get("mean_area"))

    def refuse(bad: np.ndarray, describe: Callable[[int], tuple[int, str]]) -> None:
        if bad.any():
            i, fault = describe(int(np.argmax(bad)))
            raise ValueError(f"{structure}: block {i}: {fault}")

    def block(pointer: np.ndarray, k: int) -> int:
        return int(np.searchsorted(pointer, k, side="right")) - 1

    names = ("unary", "pairwise", "edges", "labels", "area", "gram")
    ptr = {name: np.asarray(arrays[f"{name}_ptr"], np.int64) for name in names}
    sizes, edge_counts = np.diff(ptr["unary"]), np.diff(ptr["pairwise"])
    for name, expected in (("labels", sizes), ("area", sizes), ("gram", sizes * sizes), ("edges", edge_counts)):
        got = np.diff(ptr[name])
        if got.size != expected.size:
            raise ValueError(f"{structure}: {name} has {got.size} blocks, expected {expected.size}")
        wrong = got != expected
        if wrong.any():
            i = int(np.argmax(wrong))
            raise ValueError(f"{structure}: block {i}: {name} has length {got[i]}, expected {expected[i]}")
    label_ptr, edge_ptr = ptr["unary"], ptr["pairwise"]
    labels, area = np.asarray(arrays["labels"]).reshape(-1), np.asarray(arrays["area"], float).reshape(-1)
    edges = np.asarray(arrays["edges"]).reshape(-1, 2)
    codes_stored = codes and arrays["unary"].dtype == np.uint8
    unary, pairwise = (
        frozen(arrays["unary"], None if codes_stored else np.float32),
        frozen(arrays["pairwise"], np.float32),
    )
    refuse(sizes == 0, lambda i: (i, "unary has no superpixels"))
    void, allowed = labels == VOID, "0 or 1" if classes == 2 else f"0 to {classes - 1}"
    refuse(
        ((labels < 0) | (labels >= classes) | (labels % 1 != 0)) & ~void,
        lambda k: (block(label_ptr, k), f"labels holds {labels[k]}, expected {allowed}, or {VOID} for void"),
    )
    bad_area = ~(np.isfinite(area) & ((area > 0) | (void & (area >= 0))))
    refuse(bad_area, lambda k: (block(label_ptr, k), f"area holds {area[k]}, expected a positive number of pixels"))
    within = np.repeat(sizes, edge_counts)
    bad_edge = (edges[:, 0] < 0) | (edges[:, 0] >= edges[:, 1]) | (edges[:, 1] >= within)
    refuse(bad_edge, lambda k: (block(edge_ptr, k), f"edges holds {edges[k].tolist()}, expected a < b < {within[k]}"))
    if not meta.get("checked", False):
        for i in range(sizes.size):
            x, edge_x = unary[label_ptr[i] : label_ptr[i + 1]], pairwise[edge_ptr[i] : edge_ptr[i + 1]]
            check_features(x, edge_x, f"{structure}: block {i}")
    truth, weight = np.where(void, 0, labels), np.repeat(block_weights(structure, arrays, sizes.size), sizes)
    arc_ptr, head, reverse, edge = adjacency(edges, edge_ptr, label_ptr)
    images = Images(
        edge_ptr=frozen(edge_ptr),
        edges=frozen(edges, np.int32),
        gram_ptr=frozen(ptr["gram"]),
        gram=frozen(arrays["gram"], np.float32).reshape(-1),
        loss_if_wrong=frozen(weight * costs(truth, np.where(void, 0.0, area), label_ptr)),
        arc_ptr=frozen(arc_ptr),
        head=frozen(head),
        reverse=frozen(reverse),
        edge=frozen(edge),
        most_superpixels=int(sizes.max()),
        most_edges=int(edge_counts.max()),
    )
    lower, upper = bounds(structure, rows * unary.shape[1], pairwise.shape[1], meta.get("potts"))
    return {
        "n": sizes.size, "d": lower.size, "local_ptr": frozen(rows * label_ptr + edge_ptr), "label_ptr": frozen(label_ptr),
        "truth": frozen(truth, np.uint8), "lower": lower, "upper": upper, "unary": unary, "pairwise": pairwise,
        "images": images,
    }  # fmt: skip


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
