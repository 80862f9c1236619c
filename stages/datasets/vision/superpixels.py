"""Pixels to a graph of superpixels: SLIC regions, which of them touch, and how many of their pixels are foreground. The
result depends only on the picture, to the bit: every decision rests on integers, or on sums of one thread in fixed order."""

from __future__ import annotations

import numpy as np

from gapwise.stages.problems.losses import VOID

COMPACTNESS = 20.0
"""SLIC's weight of distance against colour (CIELAB units). Among 5, 10 and 20, its superpixels cross the masks of 28
Weizmann photographs least, at about equal numbers of superpixels."""

ASKED_PER_GOT = 1.1
"""SLIC merges small fragments, so it is asked for this multiple of the wanted number of superpixels."""


def to_lab(rgb: np.ndarray) -> np.ndarray:
    """8-bit CIELAB of an RGB picture, uint8 (H, W, 3) to uint8 (H, W, 3): integers, so nothing later depends on
    the order of floating-point sums."""
    import cv2

    return cv2.cvtColor(np.ascontiguousarray(rgb), cv2.COLOR_RGB2LAB)


def segment(rgb: np.ndarray, count: int) -> np.ndarray:
    """SLIC superpixels of one picture.

    Parameters
    ----------
    rgb : uint8 (H, W, 3).
    count : wanted number of superpixels; the result differs by about a tenth.

    Returns
    -------
    uint16 (H, W), ids 0..S-1, each one connected region.
    """
    from skimage.segmentation import slic

    lab = to_lab(rgb).astype(np.float64)
    lab[..., 0] *= 100.0 / 255.0
    spread = (
        float(lab.max() - lab.min()) or 1.0
    )  # slic first scales values to [0, 1]; the compactness compensates for it
    regions = slic(
        lab,
        n_segments=max(1, round(ASKED_PER_GOT * count)),
        compactness=COMPACTNESS / spread,
        convert2lab=False,
        start_label=0,
        channel_axis=-1,
    )
    used = np.bincount(regions.ravel()) > 0
    dense = np.cumsum(used) - 1  # the number of each id among those that occur
    return dense[regions].astype(np.uint16)


def adjacency(regions: np.ndarray) -> np.ndarray:
    """Pairs of regions that share a pixel side: int32 (E, 2), a < b, sorted, each pair once."""
    regions = regions.astype(np.int64)
    a = np.concatenate([regions[:, :-1].ravel(), regions[:-1].ravel()])
    b = np.concatenate([regions[:, 1:].ravel(), regions[1:].ravel()])
    differ = np.flatnonzero(a != b)
    a, b = a[differ], b[differ]
    count = int(regions.max()) + 1
    pairs = np.unique(np.minimum(a, b) * count + np.maximum(a, b))
    return np.stack(np.divmod(pairs, count), axis=1).astype(np.int32)


def tally(regions: np.ndarray, mask: np.ndarray) -> dict[str, np.ndarray]:
    """Pixel counts of each region and its majority label. Void pixels are not counted.

    Parameters
    ----------
    regions : (H, W) ids 0..S-1.   mask : (H, W), 0, 1 (foreground) or VOID.

    Returns
    -------
    labels : uint8 (S,), 1 where more than half of the labelled pixels are foreground, VOID where at least half of all
    pixels are void.   area : float64 (S,), labelled pixels.   foreground : float64 (S,), foreground pixels.
    """
    flat, values = regions.ravel(), mask.ravel()
    total = np.bincount(flat)
    area, foreground = (np.bincount(flat[kind], minlength=total.size) for kind in (values != VOID, values == 1))
    labels = np.where(2 * area > total, 2 * foreground > area, VOID)
    return {"labels": labels.astype(np.uint8), "area": area.astype(float), "foreground": foreground.astype(float)}


def tally_classes(regions: np.ndarray, classes: np.ndarray, count: int) -> dict[str, np.ndarray]:
    """Labels of superpixels, and the pixels they are scored by.

    Parameters
    ----------
    regions : (H, W) ids 0..S-1.   classes : uint8 (H, W), 0..count-1, or VOID.

    Returns
    -------
    labels : uint8 (S,), the class of most labelled pixels, VOID where at least half of all pixels are void.
    area : float64 (S,), labelled pixels.   counts : float32 (S, count), pixels of each class.
    """
    flat, values = regions.ravel().astype(np.int64), classes.ravel()
    size, labelled = int(flat.max()) + 1, values != VOID
    index = flat[labelled] * count + values[labelled]
    counts = np.bincount(index, minlength=size * count).reshape(size, count)
    area, total = counts.sum(axis=1), np.bincount(flat, minlength=size)
    labels = np.where(2 * area > total, np.argmax(counts, axis=1), VOID)
    return {
        "labels": labels.astype(np.uint8),
        "area": area.astype(np.float64),
        "counts": counts.astype(np.float32),
    }
