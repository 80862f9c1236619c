"""The model of a run with a calibration of its margins to probabilities, fitted on blocks that its training has not seen.

These are the blocks of the validation split, which chose lambda. The model that leaves home may be that of all blocks, those
of the validation split included (`stages.refit`), whose margins there would look too good. So the calibration is fitted to
the model of the same lambda that the path holds, which was trained without them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from gapwise.stages.model.calibration import Calibration, fitted
from gapwise.stages.model.confidence import refuse_without_margins, scores_of
from gapwise.stages.model.from_run import features_of_run
from gapwise.stages.model.model import Model
from gapwise.stages.problems import build
from gapwise.stages.problems.held_out import VALIDATION
from gapwise.stages.problems.losses import VOID
from gapwise.stages.problems.parallel import HERE, Spread
from gapwise.stages.problems.protocol import Problem
from gapwise.storage.backend import Location, location
from gapwise.storage.mixture import model_at


def calibrated(model: Model, run: str | Location, method: str) -> Model:
    """`model` of `run` with a calibration of this method, fitted on the run's validation split.

    Raises
    ------
    ValueError
        If the structure has no margins, the run no validation split, or the split too few predictions.
    """
    refuse_without_margins(str(model.meta["structure"]))
    folder = location(run)
    features = features_of_run(folder)
    if not features.has(VALIDATION):
        raise ValueError(
            f"calibration: {folder} held out no blocks to fit it on; run it again with dataset.validation=0.2, say"
        )
    arrays = features.arrays(VALIDATION)
    problem = build(features.meta["structure"], arrays, features.meta)
    w = model_at(folder / "path.zarr", model.lambda_).weights
    split = f"the validation split of {folder.name}"
    return replace(model, calibration=calibration_of(problem, w, method, split, counted(problem, arrays)))


def calibration_of(
    problem: Problem, w: np.ndarray, method: str, split: str, counts: np.ndarray, spread: Spread = HERE,
    weight: np.ndarray | None = None,
) -> Calibration:  # fmt: skip
    """The calibration of weights w (d,), fitted to the predictions of those entries of a problem that count, bool.

    The entries of a block have its `weight` (n,); None: all have the same.
    """
    labels, margins, _ = scores_of(problem, w, spread)
    right = labels == problem.truth
    each = None if weight is None else np.repeat(weight, np.diff(problem.label_ptr))[counts]
    return fitted(method, margins[counts], right[counts], split, each)


def counted(problem: Problem, arrays: Mapping[str, np.ndarray]) -> np.ndarray:
    """bool (entries,): which entries of a split have a true label; void superpixels have none."""
    if "superpixel_map" not in arrays and "edges" not in arrays:
        return np.ones(problem.truth.size, bool)
    known: np.ndarray = np.asarray(arrays["labels"]).reshape(-1) != VOID
    return known
