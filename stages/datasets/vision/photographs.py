"""Photographs of several classes: JPEGs in a .tar archive, with the class of each pixel beside them."""

from __future__ import annotations

import tarfile
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from gapwise.stages.datasets import UNREADABLE, DataError
from gapwise.stages.datasets.vision.picture_files import decoded
from gapwise.stages.datasets.vision.pictures import Picture


def photographs(archive: Path, wanted: Iterable[str] = ()) -> dict[str, bytes]:
    """JPEGs of a .tar archive by name; DataError if it cannot be read or one of the `wanted` is missing."""
    try:
        with tarfile.open(archive) as tar:
            members = [m for m in tar.getmembers() if m.isfile() and m.name.endswith(".jpg")]
            contents = {Path(m.name).stem: tar.extractfile(m).read() for m in members}  # type: ignore[union-attr]
    except UNREADABLE as error:
        raise DataError(f"{archive}: cannot be read as a tar archive: {error}") from error
    for name in wanted:
        if name not in contents:
            raise DataError(f"{archive}: has no {name}.jpg")
    return contents


def with_classes(item: tuple[bytes, np.ndarray]) -> Picture:
    """A picture from its JPEG and its classes, uint8 (H, W)."""
    rgb = decoded(item[0], "dataset: a photograph")
    if rgb.shape[:2] != item[1].shape:
        raise DataError(f"dataset: a photograph is {rgb.shape[:2]}, its labels are {item[1].shape} pixels")
    return Picture(rgb, item[1])
