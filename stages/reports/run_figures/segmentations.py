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
        rows[1, k].imshow(_marked(image, predicted))
        rows[2, k].imshow(_marked(image, mask))
        both, either = np.sum(predicted & mask), np.sum((predicted | mask) & labelled)
        rows[1, k].set_title(f"IoU {both / either:.2f}" if either else "no foreground", loc="center")
    finish(rows, ("image", "prediction", "mask"))


def _outline(foreground: np.ndarray) -> np.ndarray:
    """Pixels (H, W) of the foreground that have a neighbour outside it."""
    inside = foreground.copy()
    inside[1:] &= foreground[:-1]
    inside[:-1] &= foreground[1:]
    inside[:, 1:] &= foreground[:, :-1]
    inside[:, :-1] &= foreground[:, 1:]
    return foreground & ~inside


def _marked(image: np.ndarray, foreground: np.ndarray) -> np.ndarray:
    """The image in grey with its foreground in orange and outlined in white."""
    grey = np.repeat(image.mean(axis=2, keepdims=True), 3, axis=2)
    out = np.where(foreground[..., None], 0.45 * image + 0.55 * np.array([213, 94, 0]), grey)
    out[_outline(foreground)] = 255
    return out.astype(np.uint8)
