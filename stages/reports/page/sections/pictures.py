"""Test pictures, what is predicted for them along the path, and the truth; a slider goes through the lambdas."""

from __future__ import annotations

import numpy as np
from markupsafe import Markup

from gapwise.stages.model.predict import predictions
from gapwise.stages.problems import build
from gapwise.stages.reports.page.engine import fill
from gapwise.stages.reports.page.html import number
from gapwise.stages.reports.page.pixels import label_map, photograph
from gapwise.stages.reports.page.stored import ReportedRun
from gapwise.stages.reports.photographs import class_colours, has_classes, has_photographs, photographs
from gapwise.stages.reports.vega import plain
from gapwise.storage.mixture import weights_at

ORDER = 50
TITLE = "Pictures along the path"
PICTURES, LAMBDAS = 12, 12
"""Most pictures; most lambdas of the slider."""
OPAQUE = 165
"""Of 255: how much a class hides of the photograph below it."""


def applies(run: ReportedRun) -> bool:
    """True if the features contain test pictures."""
    return run.has_features and has_photographs(run)


def content(run: ReportedRun) -> Markup:
    photos = photographs(run, PICTURES)
    lams = chosen_lambdas(run)
    several = has_classes(run)
    colours = colours_of(run, several)
    labels = predicted(run, lams, np.array([photo.block for photo in photos]))
    shots, moving, start = [], [], first_shown(run, lams)
    for k, photo in enumerate(photos):
        regions, mask, counted = photo.regions, photo.truth, photo.labelled
        truth = np.where(counted, mask if several else mask > 0, len(colours) - 1).astype(np.uint8)
        maps = [labels[a][k][regions].astype(np.uint8) for a in range(len(lams))]
        right = [float(np.mean((predicted_map == truth)[counted])) if counted.any() else None for predicted_map in maps]
        drawn = [label_map(predicted_map, colours) for predicted_map in maps]
        unique = list(dict.fromkeys(drawn))
        moving.append({"maps": unique, "which": [unique.index(uri) for uri in drawn], "right": right})
        shots.append({
            "photo": photograph(photo.rgb), "predicted": drawn[start], "truth": label_map(truth, colours),
            "number": photo.block + 1, "right": number(right[start], ".1%"),
        })  # fmt: skip
    facts = {"pictures": moving, "lambdas": [f"λ = {number(lam, '.4g')}" for lam in lams], "losses": losses(run, lams)}
    return fill(
        "pictures",
        facts=plain(facts),
        start=start,
        shots=shots,
        colours=legend(run, several, colours),
        outlined=not several,
    )


def chosen_lambdas(run: ReportedRun) -> list[float]:
    """At most LAMBDAS of the solved lambdas, evenly spaced, and the best one, falling."""
    lams = np.unique(run.arrays["lambda"])[::-1]
    if lams.size > LAMBDAS:
        lams = lams[np.linspace(0, lams.size - 1, LAMBDAS).round().astype(int)]
    if (best := run.measured.get("best_lambda")) is not None and best not in lams:
        if lams.size < LAMBDAS:
            lams = np.append(lams, best)
        else:
            lams[1 + int(np.argmin(np.abs(np.log(lams[1:-1] / best))))] = best
    return sorted((float(lam) for lam in lams), reverse=True)


def first_shown(run: ReportedRun, lams: list[float]) -> int:
    """The number of the best lambda, or of the last."""
    best = run.measured.get("best_lambda")
    return lams.index(best) if best in lams else len(lams) - 1


def predicted(run: ReportedRun, lams: list[float], blocks: np.ndarray) -> list[list[np.ndarray]]:
    """Labels of each block at each lambda, with the run's own weights."""
    problem = build(run.structure, run.test_blocks, run.features.meta)
    weights = weights_at(run.run_dir / "path.zarr")
    ends = np.cumsum(problem.label_ptr[blocks + 1] - problem.label_ptr[blocks])[:-1]
    return [np.split(predictions(problem, weights(lam), blocks)[0], ends) for lam in lams]


def losses(run: ReportedRun, lams: list[float]) -> list[str]:
    """The losses at each lambda in words; empty where none was measured."""
    words = []
    for lam in lams:
        (row,) = np.nonzero(run.arrays["lambda"] == lam)
        splits = [split for split in ("train", "validation", "test") if row.size and f"{split}_loss" in run.arrays]
        said = [f"{split} loss {number(float(run.arrays[f'{split}_loss'][row[0]]))}" for split in splits]
        words.append(" · ".join(said + ["best λ"] * (lam == run.measured.get("best_lambda"))))
    return words


def colours_of(run: ReportedRun, several: bool) -> np.ndarray:
    """Red, green, blue and opacity of each label, (labels + 1, 4); the last row is for pixels without a label."""
    if not several:
        return np.array([[0, 0, 0, 0], [213, 94, 0, 255], [0, 0, 0, 0]])
    count = int(run.features.meta.get("classes", max(len(run.label_names), 2)))
    base = class_colours(run)[:count].astype(int)
    return np.vstack([np.column_stack([base, np.full(len(base), OPAQUE)]), [[0, 0, 0, 0]]])


def legend(run: ReportedRun, several: bool, colours: np.ndarray) -> list[tuple[str, str]]:
    """Colour and name of each label."""
    names = [run.label(k) for k in range(len(colours) - 1)] if several else ["background: no colour", "object"]
    paint = [f"rgb({','.join(map(str, colour[:3]))})" if colour[3] else "transparent" for colour in colours]
    return list(zip(paint, names, strict=False))
