"""Trees of objects behind URLs: files are written on this machine and sent, and conditional writes move what others rely on.

Object stores have no directories and no rename. A prefix exists when an object's name begins with it. A tree of objects
(a zarr group, features) is sent with its root metadata last and removed with it first: without them the tree does not
exist. An object is durable when the request that wrote it has returned.
"""

from __future__ import annotations

import contextlib
import hashlib
import shutil
import threading
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from gapwise.storage.backend.locations import PACKAGES, ChangedError, UrlPath
from gapwise.storage.backend.staging import staged

if TYPE_CHECKING:
    from zarr.abc.store import Store

AT_A_TIME = 16
"""Objects read at a time: each is a chunk of an array or less, so this bounds memory."""
ROOTS = ("zarr.json", "meta.json", "model.json")
"""Root metadata: the file without which a tree does not exist, of zarr groups, of features and of models."""
WRITER = uuid.uuid4().hex[:8]
"""The part of a name that makes it unique to this process."""
_swapping = threading.Lock()


def tree_files(where: UrlPath) -> list[str]:
    """Relative names of all files below, sorted as pathlib sorts paths."""
    with where.opened() as (fs, key):
        names = [str(name).removeprefix(key).lstrip("/") for name in fs.find(key) if str(name) != key]
    return sorted(names, key=lambda name: name.split("/"))


def read_files(where: UrlPath, names: list[str]) -> Iterator[tuple[str, bytes]]:
    """(name, contents) of files below `where`; few are in memory at a time."""
    for first in range(0, len(names), AT_A_TIME):
        part = names[first : first + AT_A_TIME]
        with where.opened() as (fs, key):
            objects = fs.cat([f"{key}/{name}" for name in part])
        yield from zip(part, (bytes(objects[f"{key}/{name}"]) for name in part), strict=True)


def once(where: UrlPath) -> UrlPath:
    """With a part unique to this process: one that has lost its lease may go on writing for a while."""
    return where.with_name(f"{where.stem}.{WRITER}{Path(where.name).suffix}")


def remove(where: UrlPath) -> None:
    """Remove the file, or all files below, the root metadata first."""
    names = tree_files(where)
    for name in ROOTS:
        if name in names:
            (where / name).unlink()
    with contextlib.suppress(FileNotFoundError), where.opened() as (fs, key):
        fs.rm(key, recursive=True)


def send(where: UrlPath, source: Path) -> None:
    """Write a local file or tree to `where`, after removing the tree that is there."""
    if source.is_file():
        where.write_bytes(source.read_bytes())
        return
    names = sorted(path.relative_to(source).as_posix() for path in source.rglob("*") if path.is_file())
    if tree_files(where):
        remove(where)
        if left := tree_files(where):
            raise OSError(f"{where}: {left[0]} cannot be removed, so the new files would be mixed with old ones")
    first = [name for name in names if name not in ROOTS]
    with where.opened() as (fs, key):
        fs.put([str(source / name) for name in first], [f"{key}/{name}" for name in first])
    for name in ROOTS:
        if name in names:
            (where / name).write_bytes((source / name).read_bytes())


def download(where: UrlPath, folder: Path) -> None:
    """Read all files below `where` into a new local folder."""
    names = tree_files(where)
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
    with where.opened() as (fs, key):
        fs.get([f"{key}/{name}" for name in names], [str(folder / name) for name in names])


def fetched(where: UrlPath) -> Path:
    """A copy of a file or tree on this machine, removed when the process ends."""
    copy = staged(where)
    if tree_files(where):
        shutil.rmtree(copy, ignore_errors=True)
        download(where, copy)
    else:
        copy.write_bytes(where.read_bytes())
    return copy


def zarr_store(where: UrlPath, read_only: bool) -> Store:
    """The store through which zarr opens the group at `where`."""
    from fsspec.core import url_to_fs
    from fsspec.implementations.asyn_wrapper import AsyncFileSystemWrapper
    from zarr.storage import FsspecStore

    fs, key = url_to_fs(where.url, asynchronous=True)
    fs.invalidate_cache()
    fs = fs if fs.async_impl else AsyncFileSystemWrapper(fs, asynchronous=True)
    return FsspecStore(fs, path=key, read_only=read_only)


# -- one writer at a time ---------------------------------------------------------------------------------------------
def look(where: UrlPath) -> tuple[bytes | None, str | None]:
    """(contents, version) of a file; (None, None) if it does not exist."""
    if where.scheme in PACKAGES:
        from gapwise.storage.backend import cloud

        return cloud.look(where)
    try:
        data = where.read_bytes()
    except FileNotFoundError:
        return None, None
    return data, hashlib.sha256(data).hexdigest()


def swap(where: UrlPath, data: bytes, seen: str | None) -> str:
    """Write `data` if the file still has the version `seen` (None: does not exist); returns the new version.

    No two writers may ever write the same bytes: finding `data` already there counts as success, because a client
    repeats a request whose answer was lost. Stores without conditional writes compare and then write, which misses a writer
    in another process that comes in between.

    Raises
    ------
    ChangedError
        If the file has another version.
    """
    if where.scheme in PACKAGES:
        from gapwise.storage.backend import cloud

        version = cloud.put(where, data, seen)
        if version is not None:
            return version
        current, version = look(where)
    else:
        with _swapping:
            current, version = look(where)
            if version == seen:
                where.write_bytes(data)
                return hashlib.sha256(data).hexdigest()
    if version is None or current != data:
        raise ChangedError(f"{where}: another process has written it")
    return version
