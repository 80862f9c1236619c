"""Files and trees that are written whole or not at all, wherever they are stored.

Write to `aside(path)`, a path on this machine, then call `publish(path)`. The backend of the location
(`gapwise.storage.backend`) does the rest: fsync and rename on a disk, requests in a safe order on an object store.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from gapwise.storage.backend import DamagedError, Holder, L, Location, LockedError, backend
from gapwise.storage.format import MEASURES
from gapwise.storage.integrity import below, file_digest

__all__ = [
    "DamagedError",
    "LockedError",
    "aside",
    "changed_at",
    "deliver",
    "fetched",
    "holder",
    "listed",
    "locked",
    "make_directory",
    "make_durable",
    "once",
    "output_checksum",
    "publish",
    "read_json",
    "remove",
    "remove_leftovers",
    "rename",
    "tree_checksum",
    "working",
    "write_json",
]


def make_directory(path: Location) -> None:
    """Make a directory and its parents so that they survive a power loss; does nothing if it exists."""
    backend(path).make_directory(path)


def make_durable(path: Location, names: Sequence[str] | None = None) -> None:
    """Return when everything below and including `path` would survive a power loss; of its children, those of these `names`
    only."""
    backend(path).make_durable(path, names)


def aside(path: Location) -> Path:
    """Scratch location on this machine for a file or tree that `publish` will move to `path`."""
    return backend(path).aside(path)


def publish(path: Location) -> None:
    """Move what is at `aside(path)` to `path`, durably and atomically, replacing what is there."""
    backend(path).publish(path)


def working(path: Location) -> Path:
    """A path on this machine to write to freely, file by file; `deliver` copies it to `path`."""
    return backend(path).working(path)


def deliver(path: Location, last: bool = False) -> None:
    """Copy what is at `working(path)` to `path`; with `last`, remove the working copy."""
    backend(path).deliver(path, last)


def fetched(path: Location) -> Path:
    """`path` as a path on this machine: itself, or a copy that is removed when the process ends."""
    return backend(path).fetched(path)


def once(path: L) -> L:
    """`path` under a name that only the holder of the lock can write."""
    return backend(path).once(path)


def remove(path: Location) -> None:
    """Remove a file or a tree."""
    backend(path).remove(path)


def rename(path: Location, name: str) -> None:
    """Give a file another name in its directory."""
    backend(path).rename(path, name)


def remove_leftovers(folder: Location) -> None:
    """Remove what killed processes left at `aside` of anything in `folder`, and undo half-done replacements."""
    backend(folder).remove_leftovers(folder)


def writable(folder: Location) -> bool:
    """Whether this process may write here; what is not there yet, or a URL, is tried when it is written."""
    return not isinstance(folder, Path) or not folder.is_dir() or os.access(folder, os.W_OK | os.X_OK)


def locked(
    path: Location, waiting: Callable[[str], None] | None = None, seconds: float = 0.5
) -> AbstractContextManager[None]:
    """Hold the lock file or lease `path` for the duration of the block.

    If another process holds it: LockedError, or, with `waiting`, call it with the holder's name every `seconds` until
    the lock is free.
    """
    return backend(path).locked(path, waiting, seconds)


def holder(path: Location) -> Holder | None:
    """Who holds the lock file or lease `path`; None if nobody does. Does not take it."""
    return backend(path).holder(path)


def changed_at(path: Location) -> float | None:
    """When a file was last written, in seconds since the epoch; None if there is none or the storage does not say."""
    return backend(path).changed_at(path)


def listed(folder: Location, pattern: str) -> list[Location]:
    """The children of `folder` that match `pattern`, sorted by name."""
    matches: Iterable[Location] = folder.glob(pattern)
    return sorted(matches, key=lambda path: str(path).split("/"))


def write_json(path: Location, value: object) -> None:
    """Write JSON durably; a reader sees the old or the new value."""
    backend(path).write(path, json_bytes(value))


def json_bytes(value: object) -> bytes:
    """`value` as JSON, in the format of all JSON files of a run."""
    return (json.dumps(value, indent=1, allow_nan=True) + "\n").encode()


def read_json(path: Location) -> Any:
    """The parsed contents of a JSON file; DamagedError if they are not JSON."""
    return parsed(path.read_bytes(), path)


def parsed(data: bytes, path: Location) -> Any:
    """JSON that was read from `path`, parsed; DamagedError if it is not JSON."""
    try:
        return json.loads(data.decode())
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise DamagedError(f"{path}: not valid JSON ({error}); the file is damaged") from error


def tree_checksum(root: Location, without: Sequence[str] = (), only: Sequence[str] = ("*",)) -> str:
    """sha256 over names and contents of all files in the children of `root` that match a pattern of `only`.

    Children that match a pattern of `without` are left out.
    """
    where, digest = backend(root), hashlib.sha256()

    def wanted(name: str) -> bool:
        child = name.split("/")[0]
        return any(fnmatchcase(child, like) for like in only) and not any(fnmatchcase(child, like) for like in without)

    names = [name for name in where.files(root) if wanted(name)]
    for name, data in where.read_all(root, names):
        digest.update(name.encode() + b"\0")
        digest.update(hashlib.sha256(data).digest())
    return digest.hexdigest()


def output_checksum(run: Location, name: str) -> str | None:
    """That of an output of a run; None if it is not there. A tree is taken without what evaluate adds to it.

    ``tree:pattern,pattern`` names the children of a tree that match a pattern.
    """
    child, _, patterns = name.partition(":")
    path = below(run, child)
    if path.is_dir():
        return tree_checksum(path, only=patterns.split(",")) if patterns else tree_checksum(path, without=MEASURES)
    return file_digest(path) if path.is_file() else None
