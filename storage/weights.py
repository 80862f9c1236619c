"""Weights, or another array, in a file that the processes of a computation map into memory, or an object that they fetch."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Iterator

import numpy as np

from gapwise.storage.backend import Location, backend
from gapwise.storage.files import deliver, working


@contextlib.contextmanager
def published(folder: Location, w: np.ndarray) -> Iterator[Location]:
    """`w` in a new file of `folder` for the duration of the block; names are never used again, so readers may cache."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"w-{uuid.uuid4().hex}.npy"
    try:
        np.save(working(path), np.ascontiguousarray(w), allow_pickle=False)
        deliver(path, last=True)
        yield path
    finally:
        path.unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # the folder still holds other weights
            folder.rmdir()


def mapped(path: Location) -> np.ndarray:
    """The weights in a file, memory-mapped if it lies on this machine."""
    return backend(path).load_array(path)
