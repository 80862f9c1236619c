"""Small durable operations: write aside, fsync, rename (DESIGN 3.2); on an object store, stage here and PUT.

`aside` is a path of this machine for either kind of place, so that writers of files, arrays and pictures need not know
where they go. An object is PUT whole. A tree of objects (a zarr group, features) is sent with its root metadata last:
before that it is not there.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import uuid
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from storage.places import ObjectPlace, Place

ROOTS = ("zarr.json", "meta.json")
"""The file of a tree that says it is whole: a zarr group's metadata, that of features."""
_WRITER = uuid.uuid4().hex[:8]


class DamagedError(ValueError):
    """A file that is not what was written; names it."""


def fsync_path(path: Path) -> None:
    """fsync one file or directory."""
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def make_directory(path: Place) -> None:
    """Make a directory, with its parents, that power loss does not take away; nothing if it is there, or a prefix."""
    if isinstance(path, ObjectPlace) or path.is_dir():
        return
    make_directory(path.parent)
    path.mkdir(exist_ok=True)
    fsync_path(path.parent)


def fsync_tree(root: Place) -> None:
    """fsync all files and directories below and including `root`; objects are durable when their PUT has returned."""
    if isinstance(root, ObjectPlace):
        return
    for folder, _, files in os.walk(root):
        for name in files:
            fsync_path(Path(folder, name))
        fsync_path(Path(folder))


def aside(path: Place) -> Path:
    """Where `path` is written before it is renamed, in the same directory, so that the rename is atomic; or sent."""
    if isinstance(path, ObjectPlace):
        from storage.staging import staged

        return staged(path)
    return path.with_name(f".tmp-{path.name}")


def publish(path: Place) -> None:
    """Make what was written at `aside(path)` durable and give it its name, replacing what was there."""
    tmp = aside(path)
    if isinstance(path, ObjectPlace):
        send(path, tmp)
        remove(tmp)
        return
    if tmp.is_dir():
        fsync_tree(tmp)
        if path.exists():
            old = path.with_name(f".old-{path.name}")
            shutil.rmtree(old, ignore_errors=True)
            os.rename(path, old)
            os.rename(tmp, path)
            shutil.rmtree(old)
        else:
            os.rename(tmp, path)
    else:
        fsync_path(tmp)
        os.replace(tmp, path)
    fsync_path(path.parent)


def send(path: ObjectPlace, source: Path) -> None:
    """PUT a file, or a tree of files with its root metadata last; what lay at `path` goes first, root metadata first."""
    if source.is_file():
        path.write_bytes(source.read_bytes())
        return
    names = _files(source)
    roots = [name for name in ROOTS if name in names]
    if path.files():
        remove(path)
        if left := path.files():
            raise OSError(f"{path}: {left[0]} cannot be removed; what is to be written would be mixed with it")
    path.upload(source, [name for name in names if name not in roots])
    for name in roots:
        (path / name).write_bytes((source / name).read_bytes())


def remove(path: Place) -> None:
    """Remove a file or a tree."""
    if isinstance(path, ObjectPlace):
        names = path.files()
        for name in ROOTS:
            if name in names:
                (path / name).unlink()
        path.remove()
    elif path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()


def put_away(path: Place, name: str) -> None:
    """Give a file another name beside it."""
    if isinstance(path, ObjectPlace):
        path.with_name(name).write_bytes(path.read_bytes())
        path.unlink()
    else:
        os.replace(path, path.with_name(name))


def working(path: Place) -> Path:
    """Where a process may write as it likes what is to lie at `path`: there itself, or in its place on this machine."""
    return aside(path) if isinstance(path, ObjectPlace) else path


def fetched(path: Place) -> Path:
    """`path` on this machine: itself, or a copy of the object or the tree, which is gone when the process ends."""
    if not isinstance(path, ObjectPlace):
        return path
    copy, names = aside(path), path.files()
    if not names:
        copy.write_bytes(path.read_bytes())
        return copy
    shutil.rmtree(copy, ignore_errors=True)
    path.download(copy, names)
    return copy


def once(path: Place) -> Place:
    """`path` under a name that no other process will write.

    On an object store a process that was thought dead may go on writing beside its successor; on a disk the lock
    excludes it, and names stay plain.
    """
    return path.with_name(f"{path.stem}.{_WRITER}{Path(path.name).suffix}") if isinstance(path, ObjectPlace) else path


def write_json(path: Place, value: Any) -> None:
    """Write JSON durably and atomically."""
    tmp = aside(path)
    tmp.write_text(json.dumps(value, indent=1, allow_nan=True) + "\n", encoding="utf-8")
    publish(path)


def read_json(path: Place) -> Any:
    """Parsed JSON of a file; DamagedError names one that is none."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise DamagedError(f"{path}: not valid JSON ({error}); the file is damaged") from error


def tree_checksum(root: Place, without: Sequence[str] = ()) -> str:
    """sha256 over the names and contents of all files below `root`, but for children that match a pattern of `without`."""
    digest = hashlib.sha256()
    names = root.files() if isinstance(root, ObjectPlace) else _files(root)
    names = [name for name in names if not any(fnmatchcase(name.split("/")[0], pattern) for pattern in without)]
    read = root.read_all(names) if isinstance(root, ObjectPlace) else ((n, (root / n).read_bytes()) for n in names)
    for name, data in read:
        digest.update(name.encode() + b"\0")
        digest.update(hashlib.sha256(data).digest())
    return digest.hexdigest()


def _files(root: Path) -> list[str]:
    """Names relative to a folder of all files below it, in order."""
    return [p.relative_to(root).as_posix() for p in sorted(root.rglob("*")) if p.is_file()]


def remove_leftovers(folder: Place) -> None:
    """Remove what a killed process had written aside; a renamed-away original is put back first."""
    if isinstance(folder, ObjectPlace):
        return  # what is written aside lies elsewhere (`storage.staging`)
    for old in folder.glob(".old-*"):
        original = folder / old.name.removeprefix(".old-")
        if original.exists():
            shutil.rmtree(old, ignore_errors=True)
        else:
            os.rename(old, original)
    for tmp in folder.glob(".tmp-*"):
        if tmp.is_dir():
            shutil.rmtree(tmp, ignore_errors=True)
        else:
            tmp.unlink(missing_ok=True)
