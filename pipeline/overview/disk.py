"""Sizes of files and folders of this machine; symbolic links are never followed."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from gapwise.storage.backend import Location


def bytes_below(path: Location) -> int | None:
    """Bytes of a file, or of all files below a folder; of a link its own; None for a location on another machine."""
    if not isinstance(path, Path):
        return None
    if path.is_symlink() or not path.is_dir():
        with contextlib.suppress(OSError):
            return path.lstat().st_size
        return 0
    total = 0
    for folder, _, names in os.walk(path):
        for name in names:
            with contextlib.suppress(OSError):  # removed since it was listed
                total += os.lstat(os.path.join(folder, name)).st_size
    return total
