"""Files and trees that are written whole or not at all, wherever they are stored.

Write to `aside(path)`, a path on this machine, then call `publish(path)`. On a disk everything is written to a scratch file
in the same directory, fsynced and renamed, so that it is there whole or not at all, even after a power loss. What happens
behind a URL is in `backend.remote`.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gapwise.storage.backend import DamagedError, Holder, Location, LockedError, UrlPath, remote
from gapwise.storage.backend.locks import flock_holder, flocked, lease_holder, leased
from gapwise.storage.backend.no_links import write_new
from gapwise.storage.backend.staging import staged
from gapwise.storage.format import MEASURES
from gapwise.storage.integrity import below, file_digest

if TYPE_CHECKING:
    from zarr.abc.store import Store

__all__ = ["DamagedError", "LockedError"]


# -- trees ------------------------------------------------------------------------------------------------------------
def make_directory(path: Location) -> None:
    """Make a directory and its parents so that they survive a power loss; does nothing if it exists."""
    if isinstance(path, UrlPath) or path.is_dir():  # writing an object makes its prefix
        return
    make_directory(path.parent)
    path.mkdir(exist_ok=True)
    _fsync(path.parent)


def make_durable(path: Location, names: Sequence[str] | None = None) -> None:
    """Return when everything below and including `path` would survive a power loss; of its children, those of these `names`
    only."""
    if isinstance(path, UrlPath):
        return
    if names is not None:
        for name in names:
            make_durable(path / name)
    elif path.is_dir():
        for folder, _, files in os.walk(path):
            for name in files:
                _fsync(Path(folder, name))
            _fsync(Path(folder))
        return
    _fsync(path)


def tree_files(path: Location) -> list[str]:
    """Relative names of all files below, sorted as pathlib sorts paths."""
    if isinstance(path, UrlPath):
        return remote.tree_files(path)
    return [file.relative_to(path).as_posix() for file in sorted(path.rglob("*")) if file.is_file()]


def read_files(path: Location, names: list[str]) -> Iterator[tuple[str, bytes]]:
    """(name, contents) of files below `path`; few are in memory at a time."""
    if isinstance(path, UrlPath):
        return remote.read_files(path, names)
    return ((name, (path / name).read_bytes()) for name in names)


def listed(folder: Location, pattern: str) -> list[Location]:
    """The children of `folder` that match `pattern`, sorted by name."""
    matches: Iterable[Location] = folder.glob(pattern)
    return sorted(matches, key=lambda path: str(path).split("/"))


def remove(path: Location) -> None:
    """Remove a file or a tree."""
    if isinstance(path, UrlPath):
        remote.remove(path)
    elif path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()


def rename(path: Location, name: str) -> None:
    """Give a file another name in its directory."""
    if isinstance(path, UrlPath):
        path.with_name(name).write_bytes(path.read_bytes())
        path.unlink()
    else:
        os.replace(path, path.with_name(name))


def remove_leftovers(folder: Location) -> None:
    """Remove what killed processes left at `aside` of anything in `folder`, and undo half-done replacements."""
    if isinstance(folder, UrlPath):  # `staging` removes what they left on this machine
        return
    for old in folder.glob(".old-*"):
        original = folder / old.name.removeprefix(".old-")
        if original.exists() or old.is_symlink():  # `publish` renames what it wrote, never a link
            _discard(old)
        else:
            os.rename(old, original)
    for tmp in folder.glob(".tmp-*"):
        _discard(tmp)


# -- writing ----------------------------------------------------------------------------------------------------------
def aside(path: Location) -> Path:
    """Scratch location on this machine for a file or tree that `publish` will move to `path`.

    On a disk it is in the same directory. A link of that name is removed: writing would follow it.
    """
    if isinstance(path, UrlPath):
        return staged(path)
    tmp = path.with_name(f".tmp-{path.name}")
    if tmp.is_symlink():
        tmp.unlink()
    return tmp


def publish(path: Location) -> None:
    """Move what is at `aside(path)` to `path`, durably and atomically, replacing what is there."""
    tmp = aside(path)
    if isinstance(path, UrlPath):
        remote.send(path, tmp)
        remove(tmp)
        return
    make_durable(tmp)
    if not tmp.is_dir():
        os.replace(tmp, path)
    elif not path.exists():
        os.rename(tmp, path)
    else:  # replacing a directory takes two renames; `remove_leftovers` undoes the first if the second is missing
        old = path.with_name(f".old-{path.name}")
        _discard(old)
        os.rename(path, old)
        os.rename(tmp, path)
        remove(old)
    _fsync(path.parent)


def write(path: Location, data: bytes) -> None:
    """Write a small file durably; a reader sees the old or the new contents."""
    if isinstance(path, UrlPath):
        path.write_bytes(data)
    else:
        write_new(aside(path), data)
        publish(path)


def refuse_others(folder: Location, mark: str, what: str, own: Callable[[str], bool]) -> None:
    """Raise ValueError unless `folder` may be replaced: nothing is there, an empty folder, or `what`.

    That is a folder with the file `mark` in which all names are `own`.
    """
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return
    if not (folder / mark).is_file():
        why, hint = f"exists and is not {what}", f"It has no {mark}; give"
    elif others := sorted(path.name for path in folder.iterdir() if not own(path.name)):
        why, hint = f"holds {others[0]} besides {what}", "Give"
    else:
        return
    raise ValueError(f"{folder}: {why}; nothing is overwritten. {hint} another place, or delete it")


@contextlib.contextmanager
def replaced(folder: Location) -> Iterator[Path]:
    """A path on this machine, with nothing there, for a folder that takes the place of `folder` when the block ends.

    If the block writes nothing or raises an error, `folder` stays as it is and nothing is left of the other.
    """
    make_directory(folder.parent)
    made = aside(folder)
    shutil.rmtree(made, ignore_errors=True)
    try:
        yield made
        if made.exists():
            publish(folder)
    finally:
        shutil.rmtree(made, ignore_errors=True)


@contextlib.contextmanager
def written_to(path: Location) -> Iterator[Path]:
    """A folder on this machine to write to freely: `path` itself, or one that is sent there when the block ends."""
    if isinstance(path, Path):
        yield path
        return
    try:
        yield aside(path)
    finally:
        publish(path)


def writable(folder: Location) -> bool:
    """Whether this process may write here; what is not there yet, or a URL, is tried when it is written."""
    return isinstance(folder, UrlPath) or not folder.is_dir() or os.access(folder, os.W_OK | os.X_OK)


def once(path: Location) -> Location:
    """`path` under a name that only the holder of the lock can write: a lock excludes all others, a lease does not."""
    return remote.once(path) if isinstance(path, UrlPath) else path


def _discard(path: Path) -> None:
    with contextlib.suppress(OSError):
        remove(path)


def _fsync(path: Path) -> None:
    """fsync one file or directory."""
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


# -- reading ----------------------------------------------------------------------------------------------------------
def fetched(path: Location) -> Path:
    """`path` as a path on this machine: itself, or a copy that is removed when the process ends."""
    return remote.fetched(path) if isinstance(path, UrlPath) else path


def zarr_store(path: Location, read_only: bool) -> Store | Path:
    """The store through which zarr opens the group at `path`."""
    return remote.zarr_store(path, read_only) if isinstance(path, UrlPath) else path


# -- one writer at a time ---------------------------------------------------------------------------------------------
def locked(
    path: Location, waiting: Callable[[str], None] | None = None, seconds: float = 0.5
) -> AbstractContextManager[None]:
    """Hold the lock file or lease `path` for the duration of the block.

    If another process holds it: LockedError, or, with `waiting`, call it with the holder's name every `seconds` until
    the lock is free.
    """
    if isinstance(path, UrlPath):
        return leased(path, waiting, seconds)
    make_directory(path.parent)
    return flocked(path, waiting, seconds)


def holder(path: Location) -> Holder | None:
    """Who holds the lock file or lease `path`; None if nobody does. Never takes it, so no process is refused for it."""
    return lease_holder(path) if isinstance(path, UrlPath) else flock_holder(path)


def changed_at(path: Location) -> float | None:
    """When a file was last written, in seconds since the epoch; None if there is none or the storage does not say."""
    with contextlib.suppress(OSError):
        return path.stat().st_mtime if isinstance(path, Path) else None
    return None


# -- JSON, checksums --------------------------------------------------------------------------------------------------
def write_json(path: Location, value: object) -> None:
    """Write JSON durably; a reader sees the old or the new value."""
    write(path, json_bytes(value))


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
    digest = hashlib.sha256()

    def wanted(name: str) -> bool:
        child = name.split("/")[0]
        return any(fnmatchcase(child, like) for like in only) and not any(fnmatchcase(child, like) for like in without)

    for name, data in read_files(root, [name for name in tree_files(root) if wanted(name)]):
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
