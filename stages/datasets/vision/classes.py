"""What data sets of pictures with several classes share: class counts of superpixels, the options of the Potts structure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from gapwise.records import Record
from gapwise.stages.datasets.common.options import NonNegative, Whole, one_of
from gapwise.stages.problems.losses import PICTURE_LOSSES
from gapwise.stages.problems.void import VOID


@dataclass(frozen=True)
class PottsOptions:
    """Options of the structure `potts`, which its problems find among the facts of the features."""

    potts: NonNegative | None = None
    """Fixed weight of all pairwise features, which allows no paths; None: learned, >= 0."""
    oracle: Annotated[str, one_of("trws", "expansion", "trws_expansion")] = "trws_expansion"
    sweeps: Whole = 150
    slack: NonNegative = 5e-4
    loss: Annotated[str, one_of(*PICTURE_LOSSES)] | None = None
    """None: per_image for more than two classes, else balanced."""

    def facts(self) -> Record:
        """Facts for the structure."""
        return {name: value for name, value in vars(self).items() if name != "loss" or value is not None}


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


def permuted_split(names: Sequence[str], n_train: int, seed: int) -> tuple[list[str], list[str]]:
    """Training and test names: a fixed permutation of the sorted names, cut after `n_train`."""
    order = [sorted(names)[k] for k in np.random.default_rng(seed).permutation(len(names))]
    return order[:n_train], order[n_train:]
