"""The segmentations: test images, the superpixels predicted as foreground, and the masks, one column per image."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure

from gapwise.stages.problems.void import VOID
from gapwise.stages.reports.stored import StoredRun

SIZE = (11.0, 4.8)
SHOWN = 6
"""Most images."""


def applies(run: StoredRun) -> bool:
    """True if the features contain pictures of two classes and the run has predictions."""
    pictures = run.test_blocks
    return bool(run.predictions) and "hw" in pictures and "counts" not in pictures and pictures["hw"].size > 0


def paint(figure: Figure, run: StoredRun) -> None:
    pictures, labels, label_ptr = run.test_blocks, run.predictions["labels"], run.predictions["label_ptr"]
    shown = min(SHOWN, pictures["hw"].shape[0])
    rows = figure.subplots(3, shown, squeeze=False)
    for i in range(shown):
        height, width = (int(size) for size in pictures["hw"][i])
        image = _block(pictures, "rgb", i).reshape(height, width, 3)
        regions = _block(pictures, "superpixel_map", i).reshape(height, width)
        truth = _block(pictures, "mask", i).reshape(height, width)
        mask, labelled = truth == 1, truth != VOID
        predicted = labels[label_ptr[i] : label_ptr[i + 1]][regions] > 0
        rows[0, i].imshow(image)
        rows[1, i].imshow(_marked(image, predicted, _borders(regions)))
        rows[2, i].imshow(_marked(image, mask, np.zeros_like(mask)))
        both, either = np.sum(predicted & mask), np.sum((predicted | mask) & labelled)
        rows[1, i].set_title(f"IoU {both / either:.2f}" if either else "no foreground", loc="center")
    for axes in rows.ravel():
        axes.set(xticks=[], yticks=[])
        axes.grid(False)
        axes.spines[:].set_visible(False)
    for axes, title in zip(rows[:, 0], ("image", "prediction", "mask"), strict=True):
        axes.set_ylabel(title)


def _block(arrays: Mapping[str, np.ndarray], name: str, i: int) -> np.ndarray:
    pointer = arrays[f"{name}_ptr"]
    return np.asarray(arrays[name][pointer[i] : pointer[i + 1]])


def _borders(regions: np.ndarray) -> np.ndarray:
    """Pixels (H, W) whose right or lower neighbour belongs to another superpixel."""
    edge = np.zeros(regions.shape, dtype=bool)
    edge[:, :-1] |= regions[:, :-1] != regions[:, 1:]
    edge[:-1] |= regions[:-1] != regions[1:]
    return edge


def _marked(image: np.ndarray, foreground: np.ndarray, lines: np.ndarray) -> np.ndarray:
    """The image with its foreground in orange, its background darkened and greyed, and `lines` drawn in."""
    grey = np.repeat(image.mean(axis=2, keepdims=True), 3, axis=2)
    out = np.where(foreground[..., None], 0.45 * image + 0.55 * np.array([255, 140, 0]), 0.45 * grey)
    out[lines] = 0.6 * out[lines] + 0.4 * 255
    return out.astype(np.uint8)
