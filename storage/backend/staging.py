"""Scratch space on this machine for files that go to remote storage, and copies of files that came from there.

`cache_root` is ``$GAPWISE_CACHE``, else ``$XDG_CACHE_HOME/gapwise``, else ``~/.cache/gapwise``. Each process has a folder
of its own under ``staging/`` there. It removes it when it ends; the next process removes that of one that was killed.
"""

from __future__ import annotations

import atexit
import fcntl
import hashlib
import os
import shutil
import tempfile
from functools import cache
from pathlib import Path

from gapwise.storage.backend.locations import UrlPath
from gapwise.storage.backend.no_links import open_lock


def cache_root() -> Path:
    """The cache directory of this machine."""
    given = os.environ.get("GAPWISE_CACHE")
    if given:
        return Path(given).expanduser().resolve()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "gapwise"


def staged(where: UrlPath) -> Path:
    """Scratch location of this process for the contents of `where`, in a folder that exists."""
    folder = _own(os.getpid(), cache_root()) / hashlib.sha256(where.url.encode()).hexdigest()[:16]
    folder.mkdir(exist_ok=True)
    return folder / where.name


@cache
def _own(pid: int, root: Path) -> Path:
    """The folder of this process. While the process lives, it holds a lock on the file ``alive`` in it."""
    staging = root / "staging"
    staging.mkdir(parents=True, exist_ok=True)
    with open_lock(staging / "lock") as gate:
        fcntl.flock(gate, fcntl.LOCK_EX)  # so that nobody removes a new folder that is not locked yet
        for folder in staging.iterdir():
            if folder.is_dir() and not _in_use(folder):
                shutil.rmtree(folder, ignore_errors=True)
        own = Path(tempfile.mkdtemp(prefix=f"{pid}-", dir=staging))
        held = os.open(own / "alive", os.O_CREAT | os.O_EXCL | os.O_RDWR)
        fcntl.flock(held, fcntl.LOCK_EX)
    atexit.register(shutil.rmtree, own, ignore_errors=True)
    return own


def _in_use(folder: Path) -> bool:
    try:
        with (folder / "alive").open() as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False
