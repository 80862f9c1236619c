"""Files that are opened for writing by a fixed name, and never through a symbolic link: its target is somebody else's."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import IO


def open_lock(path: Path, make: bool = True) -> IO[str]:
    """The lock file `path`, made if absent, to read and append to, or only to read; OSError names a symbolic link."""
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND if make else os.O_RDONLY
    try:
        handle = os.open(path, flags | os.O_NOFOLLOW, 0o666)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise OSError(f"{path}: expected a lock file, found a symbolic link; remove the link") from None
        raise
    return os.fdopen(handle, "a+" if make else "r", encoding="utf-8", errors="replace")


def write_new(path: Path, data: bytes) -> None:
    """Write a temporary file in place of what was left under its name; a link there is removed and not followed."""
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o666), "wb") as file:
        file.write(data)
