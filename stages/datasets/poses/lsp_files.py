"""The files of Leeds Sports Pose (`stages.datasets.lsp`): photographs in a tar archive, joints in an .npz file."""

from __future__ import annotations

import tarfile
from pathlib import Path
from typing import NamedTuple

import numpy as np

from gapwise.stages.datasets import UNREADABLE, DataError
from gapwise.stages.datasets.poses.skeleton import JOINTS

ARCHIVE, ANNOTATION = "lspet_1000_images.tar", "lspet_1000_joints.npz"


class Photograph(NamedTuple):
    """One image with its pose."""

    name: str
    jpeg: bytes
    joints: np.ndarray
    """float (14, 2): x, y in pixels"""


def read_photographs(root: Path) -> list[Photograph]:
    """All images with their joints, in the order of the file of joints."""
    try:
        with np.load(root / ANNOTATION, allow_pickle=False) as file:
            numbers, joints = file["image_no"], np.asarray(file["joints"], float)
    except UNREADABLE as error:
        raise DataError(f"{root / ANNOTATION}: expected an .npz with image_no and joints: {error}") from error
    if joints.shape != (len(numbers), len(JOINTS), 2) or not np.isfinite(joints).all():
        raise DataError(
            f"{root / ANNOTATION}: joints is {joints.shape}; expected finite numbers ({len(numbers)}, {len(JOINTS)}, 2)"
        )
    try:
        with tarfile.open(root / ARCHIVE) as tar:
            jpegs = {Path(m.name).stem: tar.extractfile(m).read() for m in tar.getmembers() if m.isfile()}  # type: ignore[union-attr]
    except UNREADABLE as error:
        raise DataError(f"{root / ARCHIVE}: cannot be read as a tar archive: {error}") from error
    names = [f"im{number:05d}" for number in numbers.tolist()]
    missing = [name for name in names if name not in jpegs]
    if missing:
        raise DataError(f"{root / ARCHIVE}: has no {missing[0]}.jpg, which {ANNOTATION} lists")
    return [Photograph(name, jpegs[name], pose) for name, pose in zip(names, joints, strict=True)]
