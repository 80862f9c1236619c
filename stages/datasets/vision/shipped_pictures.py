"""The pictures inside scikit-image's wheel that scenes are composed of."""

from __future__ import annotations

from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from gapwise.stages.datasets import DataError

PHOTOGRAPHS = ("astronaut.png", "chelsea.png", "coffee.png", "motorcycle_left.png", "rocket.jpg", "camera.png")
TEXTURES = ("grass.png", "gravel.png", "brick.png", "moon.png", "ihc.png")
FUR = ("chelsea.png", (60, 20, 150, 110))
"""A file, and a box (left, top, right, bottom) in it that shows only fur."""
SILHOUETTE = "horse.png"
FILES = tuple(sorted({*PHOTOGRAPHS, *TEXTURES, FUR[0], SILHOUETTE}))


def folder() -> Path:
    """Where scikit-image keeps the pictures it ships; does not import it."""
    spec = find_spec("skimage")
    if spec is None or spec.origin is None:
        raise DataError("scikit-image is not installed; the scenes are composed of pictures that it ships")
    return Path(spec.origin).parent / "data"


@lru_cache(maxsize=len(FILES))
def shipped(name: str) -> np.ndarray:
    """One shipped picture as float32 (h, w, 3) RGB in 0..255; nothing is downloaded, DataError if it is missing."""
    from PIL import Image

    path = folder() / name
    if not path.is_file():
        raise DataError(f"{path}: missing; the installed scikit-image does not ship it")
    return np.asarray(Image.open(path).convert("RGB"), dtype=np.float32)


@lru_cache(maxsize=1)
def silhouette() -> np.ndarray:
    """The horse, cut to its bounding box: float32 (h, w), 1 inside."""
    inside = shipped(SILHOUETTE)[..., 0] < 128
    rows, columns = np.flatnonzero(inside.any(axis=1)), np.flatnonzero(inside.any(axis=0))
    return inside[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1].astype(np.float32)
