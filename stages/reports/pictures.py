"""Test pictures, what is predicted for them along the path, and the truth; a slider goes through the lambdas."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from markupsafe import Markup
from matplotlib import colormaps
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from gapwise.stages.model.predict import predictions
from gapwise.stages.problems import build
from gapwise.stages.problems.losses import VOID
from gapwise.stages.reports.html import fill, label_map, number, photograph, plain
from gapwise.stages.reports.paint import Draw, Size
from gapwise.stages.reports.stored import StoredRun
from gapwise.storage.mixture import weights_at

PICTURES, LAMBDAS, IN_FILE = 12, 12, 6
"""Most pictures; most lambdas of the slider; most pictures of the figure."""
OPAQUE = 165
"""Of 255: how much a class hides of the photograph below it."""


class Photograph(NamedTuple):
    """A test picture of H x W pixels."""

    block: int
    rgb: np.ndarray
    """uint8 (H, W, 3)"""
    regions: np.ndarray
    """(H, W): the superpixel of each pixel, and so the position of its label among those of the block"""
    truth: np.ndarray
    """(H, W): labels, `VOID` for pixels without a label"""

    @property
    def labelled(self) -> np.ndarray:
        """(H, W): pixels that have a true label."""
        return self.truth != VOID


def photographs(run: StoredRun, most: int) -> list[Photograph]:
    """The first `most` test pictures; [] for other data."""
    arrays = run.test_blocks
    if not arrays.get("hw", np.empty(0)).size:
        return []
    return [_photograph(arrays, int(i)) for i in np.flatnonzero(np.diff(arrays["hw_ptr"]) > 0)[:most]]


def _photograph(arrays: Mapping[str, np.ndarray], i: int) -> Photograph:
    def entries(name: str) -> np.ndarray:
        pointer = arrays[f"{name}_ptr"]
        return np.asarray(arrays[name][pointer[i] : pointer[i + 1]])

    height, width = (int(size) for size in entries("hw").reshape(-1))
    maps = (entries(name).reshape(height, width) for name in ("superpixel_map", "mask"))
    return Photograph(i, entries("rgb").reshape(height, width, 3), *maps)


def has_classes(run: StoredRun) -> bool:
    """Whether pictures have several classes, and not object and background alone."""
    return "counts" in run.test_blocks


def colours_of(run: StoredRun) -> np.ndarray:
    """Red, green, blue and opacity of each label, (labels + 1, 4); the last row is for pixels without a label.

    A class has its own colour where the data set gives one; the background of an object has none.
    """
    if not has_classes(run):
        return np.array([[0, 0, 0, 0], [213, 94, 0, 255], [0, 0, 0, 0]])
    count = int(run.meta.get("classes", max(len(run.label_names), 2)))
    base = run.meta.get("class_colours") or 255 * colormaps["tab20"](np.arange(count) % 20)[:, :3]
    colours = np.array(base)[:count].astype(int)
    return np.vstack([np.column_stack([colours, np.full(len(colours), OPAQUE)]), [[0, 0, 0, 0]]])


def true_labels(run: StoredRun, photo: Photograph, colours: np.ndarray) -> np.ndarray:
    """uint8 (H, W): rows of `colours`."""
    truth = photo.truth if has_classes(run) else photo.truth == 1
    return np.where(photo.labelled, truth, len(colours) - 1).astype(np.uint8)


def figure(run: StoredRun) -> tuple[Draw, Size] | None:
    """Pictures, the labels predicted for their superpixels, and the true ones, a column each; None without predictions."""
    photos = photographs(run, IN_FILE) if run.predictions else []
    if not photos:
        return None

    def draw(figure: Figure) -> None:
        labels, pointer, colours = run.predictions["labels"], run.predictions["label_ptr"], colours_of(run)
        rows = figure.subplots(3, len(photos), squeeze=False)
        present: set[int] = set()
        for column, photo in zip(rows.T, photos, strict=True):
            truth = true_labels(run, photo, colours)
            predicted = labels[pointer[photo.block] : pointer[photo.block + 1]][photo.regions].astype(np.uint8)
            column[0].imshow(photo.rgb)
            column[1].imshow(_over(photo.rgb, colours[predicted]))
            column[1].set_title(_right(run, predicted, truth, photo.labelled), loc="center")
            column[2].imshow(_over(photo.rgb, colours[truth]))
            present |= {*np.unique(predicted).tolist(), *np.unique(truth[photo.labelled]).tolist()}
        for axes in rows.ravel():
            axes.set(xticks=[], yticks=[])
            axes.spines[:].set_visible(False)
        for axes, name in zip(rows[:, 0], ("picture", "prediction", "truth"), strict=True):
            axes.set_ylabel(name)
        if has_classes(run):
            handles = [Patch(color=tuple((colours[k, :3] / 255).tolist()), label=run.label(k)) for k in sorted(present)]
            figure.legend(handles=handles, loc="outside lower center", ncols=min(len(handles), 8))

    return draw, (11.0, 5.2)


def _over(rgb: np.ndarray, shades: np.ndarray) -> np.ndarray:
    """A picture below colours with opacity, (H, W, 4); at least two fifths of it show through."""
    share = np.minimum(shades[..., 3:] / 255, 0.6)
    return ((1 - share) * rgb + share * shades[..., :3]).astype(np.uint8)


def _right(run: StoredRun, predicted: np.ndarray, truth: np.ndarray, labelled: np.ndarray) -> str:
    """How good a prediction is, in words."""
    if has_classes(run):
        return f"{np.mean((predicted == truth)[labelled]):.2f} right" if labelled.any() else ""
    found, object_ = (predicted == 1) & labelled, (truth == 1) & labelled
    either = np.sum(found | object_)
    return f"IoU {np.sum(found & object_) / either:.2f}" if either else "no foreground"


def content(run: StoredRun) -> Markup | None:
    """The section of the report; None without pictures."""
    photos = photographs(run, PICTURES)
    if not photos:
        return None
    lams, several, colours = run.some_lambdas(LAMBDAS), has_classes(run), colours_of(run)
    labels = _predicted(run, lams, np.array([photo.block for photo in photos]))
    best = run.measured.get("best_lambda")
    start = lams.index(best) if best in lams else len(lams) - 1
    shots, moving = [], []
    for k, photo in enumerate(photos):
        truth, counted = true_labels(run, photo, colours), photo.labelled
        maps = [labels[a][k][photo.regions].astype(np.uint8) for a in range(len(lams))]
        right = [float(np.mean((predicted_map == truth)[counted])) if counted.any() else None for predicted_map in maps]
        drawn = [label_map(predicted_map, colours) for predicted_map in maps]
        unique = list(dict.fromkeys(drawn))
        moving.append({"maps": unique, "which": [unique.index(uri) for uri in drawn], "right": right})
        shots.append({
            "photo": photograph(photo.rgb), "predicted": drawn[start], "truth": label_map(truth, colours),
            "number": photo.block + 1, "right": number(right[start], ".1%"),
        })  # fmt: skip
    facts = {"pictures": moving, "lambdas": [f"λ = {number(lam, '.4g')}" for lam in lams], "losses": _losses(run, lams)}
    names = [run.label(k) for k in range(len(colours) - 1)] if several else ["background: no colour", "object"]
    shades = [f"rgb({','.join(map(str, colour[:3]))})" if colour[3] else "transparent" for colour in colours]
    return fill(
        "pictures", facts=plain(facts), start=start, shots=shots, colours=list(zip(shades, names, strict=False)),
        outlined=not several,
    )  # fmt: skip


def _predicted(run: StoredRun, lams: list[float], blocks: np.ndarray) -> list[list[np.ndarray]]:
    """Labels of each block at each lambda, with the run's own weights."""
    problem = build(run.structure, run.test_blocks, run.meta)
    weights = weights_at(run.run_dir / "path.zarr")
    ends = np.cumsum(problem.label_ptr[blocks + 1] - problem.label_ptr[blocks])[:-1]
    return [np.split(predictions(problem, weights(lam), blocks)[0], ends) for lam in lams]


def _losses(run: StoredRun, lams: list[float]) -> list[str]:
    """The losses at each lambda in words; empty where none was measured."""
    words = []
    for lam in lams:
        (row,) = np.nonzero(run.arrays["lambda"] == lam)
        splits = [split for split in ("train", "validation", "test") if row.size and f"{split}_loss" in run.arrays]
        said = [f"{split} loss {number(float(run.arrays[f'{split}_loss'][row[0]]))}" for split in splits]
        words.append(" · ".join(said + ["best λ"] * (lam == run.measured.get("best_lambda"))))
    return words
