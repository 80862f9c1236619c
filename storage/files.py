"""Small durable file operations: write aside, fsync, rename (DESIGN 3.2)."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any


class DamagedError(ValueError):
    """A file that is not what was written; names it."""


def fsync_path(path: Path) -> None:
    """fsync one file or directory."""
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def make_directory(path: Path) -> None:
    """Make a directory, with its parents, that power loss does not take away; nothing if it is there."""
    if path.is_dir():
        return
    make_directory(path.parent)
    path.mkdir(exist_ok=True)
    fsync_path(path.parent)


def fsync_tree(root: Path) -> None:
    """fsync all files and directories below and including `root`."""
    for folder, _, files in os.walk(root):
        for name in files:
            fsync_path(Path(folder, name))
        fsync_path(Path(folder))


def aside(path: Path) -> Path:
    """Where `path` is written before it is renamed; same directory, so that the rename is atomic."""
    return path.with_name(f".tmp-{path.name}")


def publish(path: Path) -> None:
    """Make what was written at `aside(path)` durable and give it its name, replacing what was there."""
    tmp = aside(path)
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


def write_json(path: Path, value: Any) -> None:
    """Write JSON durably and atomically."""
    tmp = aside(path)
    tmp.write_text(json.dumps(value, indent=1, allow_nan=True) + "\n", encoding="utf-8")
    publish(path)


def read_json(path: Path) -> Any:
    """Parsed JSON of a file; DamagedError names one that is none."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise DamagedError(f"{path}: not valid JSON ({error}); the file is damaged") from error


def tree_checksum(root: Path, without: Sequence[str] = ()) -> str:
    """sha256 over the names and contents of all files below `root`, but for children that match a pattern of `without`."""
    digest = hashlib.sha256()
    for file in sorted(p for p in root.rglob("*") if p.is_file()):
        name = file.relative_to(root).as_posix()
        if any(fnmatchcase(name.split("/")[0], pattern) for pattern in without):
            continue
        digest.update(name.encode() + b"\0")
        digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()


def remove_leftovers(folder: Path) -> None:
    """Remove what a killed process had written aside; a renamed-away original is put back first."""
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
