"""Directories on this machine, or on a file system that it has mounted.

Everything is written to a scratch file in the same directory, fsynced and renamed, so it is there whole or not at all, even
after a power loss. Locks are held by flock; swaps rely on them.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

from gapwise.storage.backend.base import SCHEME, Backend, Holder
from gapwise.storage.backend.locks import flock_holder, flocked
from gapwise.storage.backend.no_links import write_new

if TYPE_CHECKING:
    import numpy as np


class LocalBackend(Backend[Path]):
    """Paths of this machine."""

    schemes = ("file", "local")

    def locate(self, url: str) -> Path:
        return Path(SCHEME.sub("", url, count=1)).expanduser().resolve()

    def is_shared(self, where: Path) -> bool:
        return True

    def local_directory(self, where: Path) -> Path:
        return where

    def once(self, where: Path) -> Path:
        """`where` itself: the lock excludes every other writer."""
        return where

    def files(self, where: Path) -> list[str]:
        return [path.relative_to(where).as_posix() for path in sorted(where.rglob("*")) if path.is_file()]

    def read_all(self, where: Path, names: list[str]) -> Iterator[tuple[str, bytes]]:
        return ((name, (where / name).read_bytes()) for name in names)

    def make_directory(self, where: Path) -> None:
        if where.is_dir():
            return
        self.make_directory(where.parent)
        where.mkdir(exist_ok=True)
        _fsync(where.parent)

    def make_durable(self, where: Path, names: Sequence[str] | None = None) -> None:
        if names is not None:
            for name in names:
                self.make_durable(where / name)
            _fsync(where)
            return
        if not where.is_dir():
            _fsync(where)
        for folder, _, files in os.walk(where):
            for name in files:
                _fsync(Path(folder, name))
            _fsync(Path(folder))

    def remove(self, where: Path) -> None:
        if where.is_dir() and not where.is_symlink():
            shutil.rmtree(where)
        else:
            where.unlink()

    def rename(self, where: Path, name: str) -> None:
        os.replace(where, where.with_name(name))

    def remove_leftovers(self, folder: Path) -> None:
        for old in folder.glob(".old-*"):
            original = folder / old.name.removeprefix(".old-")
            if original.exists() or old.is_symlink():  # `publish` renames what it wrote, never a link
                self._discard(old)
            else:
                os.rename(old, original)
        for tmp in folder.glob(".tmp-*"):
            self._discard(tmp)

    def _discard(self, where: Path) -> None:
        with contextlib.suppress(OSError):
            self.remove(where)

    def aside(self, where: Path) -> Path:
        """In the same directory, so that `publish` is a rename. A link of that name is removed: writing would follow it."""
        tmp = where.with_name(f".tmp-{where.name}")
        if tmp.is_symlink():
            tmp.unlink()
        return tmp

    def write(self, where: Path, data: bytes) -> None:
        write_new(self.aside(where), data)
        self.publish(where)

    def publish(self, where: Path) -> None:
        tmp = self.aside(where)
        self.make_durable(tmp)
        if not tmp.is_dir():
            os.replace(tmp, where)
        elif not where.exists():
            os.rename(tmp, where)
        else:  # replacing a directory takes two renames; `remove_leftovers` undoes the first if the second is missing
            old = where.with_name(f".old-{where.name}")
            self._discard(old)
            os.rename(where, old)
            os.rename(tmp, where)
            self.remove(old)
        _fsync(where.parent)

    def working(self, where: Path) -> Path:
        return where

    def deliver(self, where: Path, last: bool = False) -> None:
        """Does nothing: the working copy is `where` itself."""

    def publish_mapped(self, where: Path) -> None:
        self.publish(where)

    def fetched(self, where: Path) -> Path:
        return where

    def mapped_folder(self, where: Path, check: bool = False) -> Path:
        return where

    def copy_here(self, where: Path) -> Path:
        return where

    def load_array(self, where: Path) -> np.ndarray:
        import numpy as np  # not needed by a complete run

        return np.load(where, mmap_mode="r", allow_pickle=False)

    def zarr_store(self, where: Path, read_only: bool) -> Path:
        return where

    def locked(
        self, where: Path, waiting: Callable[[str], None] | None = None, seconds: float = 0.5
    ) -> AbstractContextManager[None]:
        self.make_directory(where.parent)
        return flocked(where, waiting, seconds)

    def holder(self, where: Path) -> Holder | None:
        return flock_holder(where)

    def changed_at(self, where: Path) -> float | None:
        try:
            return where.stat().st_mtime
        except OSError:
            return None


def _fsync(path: Path) -> None:
    """fsync one file or directory."""
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
