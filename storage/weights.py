"""w as a file that other processes map into memory, or as an object that they fetch (DESIGN 4)."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Iterator

import numpy as np

from storage.files import working
from storage.places import ObjectPlace, Place


@contextlib.contextmanager
def published(folder: Place, w: np.ndarray) -> Iterator[Place]:
    """`w` in a file of `folder` as long as the block lasts; its name never comes again, so nobody reads an older one."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"w-{uuid.uuid4().hex}.npy"
    try:
        local = working(path)
        np.save(local, np.ascontiguousarray(w), allow_pickle=False)
        if isinstance(path, ObjectPlace):
            path.write_bytes(local.read_bytes())
            local.unlink()
        yield path
    finally:
        path.unlink(missing_ok=True)
        if not isinstance(folder, ObjectPlace):
            with contextlib.suppress(OSError):  # another w is still in use
                folder.rmdir()


def mapped(path: Place) -> np.ndarray:
    """The w of a file, memory-mapped; of an object, in memory."""
    if isinstance(path, ObjectPlace):
        return np.load(path.open(), allow_pickle=False)
    return np.load(path, mmap_mode="r", allow_pickle=False)
