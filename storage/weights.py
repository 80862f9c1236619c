"""w as a file that other processes map into memory (DESIGN 4)."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Iterator
from pathlib import Path

import numpy as np


@contextlib.contextmanager
def published(folder: Path, w: np.ndarray) -> Iterator[Path]:
    """`w` in a file of `folder` as long as the block lasts; its name never comes again, so nobody reads an older one."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"w-{uuid.uuid4().hex}.npy"
    try:
        np.save(path, np.ascontiguousarray(w), allow_pickle=False)
        yield path
    finally:
        path.unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # another w is still in use
            folder.rmdir()


def mapped(path: Path) -> np.ndarray:
    """The w of a file, memory-mapped."""
    return np.load(path, mmap_mode="r", allow_pickle=False)
