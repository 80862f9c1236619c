"""Test pictures with their regions and true labels, as figures and report show them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from matplotlib import colormaps

from gapwise.stages.problems.void import VOID
from gapwise.stages.reports.stored import StoredRun


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


def has_photographs(run: StoredRun) -> bool:
    """Whether the features contain test pictures."""
    return "hw" in run.test_blocks and run.test_blocks["hw"].size > 0


def has_classes(run: StoredRun) -> bool:
    """Whether pictures have several classes, and not object and background alone."""
    return "counts" in run.test_blocks


def class_colours(run: StoredRun) -> np.ndarray:
    """uint8 (classes, 3): red, green, blue of each class, by its own colour if the data set gives one."""
    if own := run.features.meta.get("class_colours"):
        return np.array(own, np.uint8)
    count = int(run.features.meta.get("classes", len(run.features.meta.get("class_names", ()))))
    return (255 * colormaps["tab20"](np.arange(max(count, 20)) % 20)[:, :3]).astype(np.uint8)


def photographs(run: StoredRun, most: int) -> list[Photograph]:
    """The first `most` test pictures of a run that `has_photographs`."""
    arrays = run.test_blocks
    stored = np.flatnonzero(np.diff(arrays["hw_ptr"]) > 0)[:most]
    return [_photograph(arrays, int(i)) for i in stored]


def _photograph(arrays: Mapping[str, np.ndarray], i: int) -> Photograph:
    height, width = (int(size) for size in _entries(arrays, "hw", i).reshape(-1))
    rgb = _entries(arrays, "rgb", i).reshape(height, width, 3)
    return Photograph(
        i, rgb, *(_entries(arrays, name, i).reshape(height, width) for name in ("superpixel_map", "mask"))
    )


def _entries(arrays: Mapping[str, np.ndarray], name: str, i: int) -> np.ndarray:
    """The entries of block `i`."""
    pointer = arrays[f"{name}_ptr"]
    return np.asarray(arrays[name][pointer[i] : pointer[i + 1]])
