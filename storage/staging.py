"""This machine's share of a run that lies on an object store: what is written before it is sent, what was fetched.

``$GAPWISE_CACHE``, else ``$XDG_CACHE_HOME/gapwise``, else ``~/.cache/gapwise``. Each process has a folder of its own
under ``staging/``, gone when it ends; that of a process that was killed is removed by the next one.
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

from storage.places import ObjectPlace


def cache_root() -> Path:
    """Where this machine keeps what it fetched."""
    given = os.environ.get("GAPWISE_CACHE")
    if given:
        return Path(given).expanduser().resolve()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "gapwise"


def staged(place: ObjectPlace) -> Path:
    """Where `place` is written before it is sent; the folder it lies in is made."""
    folder = _own(os.getpid(), cache_root()) / hashlib.sha256(place.url.encode()).hexdigest()[:16]
    folder.mkdir(exist_ok=True)
    return folder / place.name


@cache
def _own(pid: int, root: Path) -> Path:
    """This process's folder. A lock on a file in it says that the process lives, and ends with it."""
    staging = root / "staging"
    staging.mkdir(parents=True, exist_ok=True)
    with (staging / "lock").open("a") as gate:
        fcntl.flock(gate, fcntl.LOCK_EX)  # no one removes a folder between its making and its lock
        for folder in staging.iterdir():
            if folder.is_dir() and not _in_use(folder):
                shutil.rmtree(folder, ignore_errors=True)
        own = Path(tempfile.mkdtemp(prefix=f"{pid}-", dir=staging))
        held = os.open(own / "alive", os.O_CREAT | os.O_RDWR)
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
