"""The segmentations: test images, the superpixels predicted as foreground, and the masks, one column per image."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from gapwise.stages.reports.paint import finish
from gapwise.stages.reports.photographs import has_classes, has_photographs, photographs
from gapwise.stages.reports.stored import StoredRun

SIZE = (11.0, 4.8)
SHOWN = 6
"""Most images."""


def applies(run: StoredRun) -> bool:
    """True if the features contain pictures of two classes and the run has predictions."""
    return bool(run.predictions) and has_photographs(run) and not has_classes(run)


def paint(figure: Figure, run: StoredRun) -> None:
    labels, label_ptr, shown = run.predictions["labels"], run.predictions["label_ptr"], photographs(run, SHOWN)
    rows = figure.subplots(3, len(shown), squeeze=False)
    for k, (i, image, regions, truth) in enumerate(shown):
        mask, labelled = truth == 1, shown[k].labelled
        predicted = labels[label_ptr[i] : label_ptr[i + 1]][regions] > 0
        rows[0, k].imshow(image)
        rows[1, k].imshow(_marked(image, predicted, _borders(regions)))
        rows[2, k].imshow(_marked(image, mask, np.zeros_like(mask)))
        both, either = np.sum(predicted & mask), np.sum((predicted | mask) & labelled)
        rows[1, k].set_title(f"IoU {both / either:.2f}" if either else "no foreground", loc="center")
    finish(rows, ("image", "prediction", "mask"))


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
