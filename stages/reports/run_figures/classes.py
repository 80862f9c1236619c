"""The classes: test photographs, the classes predicted for their superpixels, the true classes; one column per image."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from gapwise.stages.reports.paint import finish
from gapwise.stages.reports.photographs import class_colours, has_classes, has_photographs, photographs
from gapwise.stages.reports.stored import StoredRun

SIZE = (11.0, 5.4)
SHOWN = 6
"""Most images."""


def applies(run: StoredRun) -> bool:
    """True if the features contain pictures with classes and the run has predictions."""
    return bool(run.predictions) and has_photographs(run) and has_classes(run)


def paint(figure: Figure, run: StoredRun) -> None:
    labels, label_ptr, shown = run.predictions["labels"], run.predictions["label_ptr"], photographs(run, SHOWN)
    names = [str(name) for name in run.features.meta["class_names"]]
    colours = class_colours(run)
    rows, present = figure.subplots(3, len(shown), squeeze=False), set()
    for k, photo in enumerate(shown):
        truth, labelled = photo.truth, photo.labelled
        predicted = labels[label_ptr[photo.block] : label_ptr[photo.block + 1]][photo.regions]
        present |= {int(label) for label in np.unique(np.append(predicted, truth[labelled]))}
        rows[0, k].imshow(photo.rgb)
        rows[1, k].imshow(colours[predicted])
        rows[2, k].imshow(np.where(labelled[..., None], colours[np.where(labelled, truth, 0)], 0))
        right = np.mean((predicted == truth)[labelled]) if labelled.any() else None
        rows[1, k].set_title("" if right is None else f"{right:.2f} right", loc="center")
    finish(rows, ("image", "prediction", "classes"))
    handles = [Patch(color=colours[label] / 255, label=names[label]) for label in sorted(present)]
    figure.legend(handles=handles, loc="outside lower center", ncols=min(len(handles), 8))
