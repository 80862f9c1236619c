"""The classes: test photographs, the classes predicted for their superpixels, the true classes; one column per image."""

from __future__ import annotations

import numpy as np
from matplotlib import colormaps
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from gapwise.stages.problems.void import VOID
from gapwise.stages.reports.run_figures.segmentations import _block
from gapwise.stages.reports.stored import StoredRun

SIZE = (11.0, 5.4)
SHOWN = 6
"""Most images."""


def applies(run: StoredRun) -> bool:
    """True if the features contain pictures with classes and the run has predictions."""
    pictures = run.test_blocks
    return bool(run.predictions) and {"hw", "counts"} <= set(pictures) and pictures["hw"].size > 0


def paint(figure: Figure, run: StoredRun) -> None:
    pictures, labels, label_ptr = run.test_blocks, run.predictions["labels"], run.predictions["label_ptr"]
    names = [str(name) for name in run.features.meta["class_names"]]
    colours = (255 * colormaps["tab20"](np.arange(max(len(names), 20)) % 20)[:, :3]).astype(np.uint8)
    if run.features.meta.get("class_colours"):
        colours = np.array(run.features.meta["class_colours"], np.uint8)
    shown = min(SHOWN, pictures["hw"].shape[0])
    rows, there = figure.subplots(3, shown, squeeze=False), set()
    for i in range(shown):
        height, width = (int(size) for size in pictures["hw"][i])
        regions = _block(pictures, "superpixel_map", i).reshape(height, width)
        truth = _block(pictures, "mask", i).reshape(height, width)
        predicted = labels[label_ptr[i] : label_ptr[i + 1]][regions]
        labelled = truth != VOID
        there |= {int(k) for k in np.unique(np.append(predicted, truth[labelled]))}
        rows[0, i].imshow(_block(pictures, "rgb", i).reshape(height, width, 3))
        rows[1, i].imshow(colours[predicted])
        rows[2, i].imshow(np.where(labelled[..., None], colours[np.where(labelled, truth, 0)], 0))
        rows[1, i].set_title(
            f"{np.mean((predicted == truth)[labelled]):.2f} right" if labelled.any() else "", loc="center"
        )
    for axes in rows.ravel():
        axes.set(xticks=[], yticks=[])
        axes.grid(False)
        axes.spines[:].set_visible(False)
    for axes, title in zip(rows[:, 0], ("image", "prediction", "classes"), strict=True):
        axes.set_ylabel(title)
    handles = [Patch(color=colours[k] / 255, label=names[k]) for k in sorted(there)]
    figure.legend(handles=handles, loc="outside lower center", ncols=min(len(handles), 8))
