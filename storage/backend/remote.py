"""What all storage behind URLs has in common: files are written on this machine and sent, and leases replace locks.

Object stores have no directories and no rename. A prefix exists when an object's name begins with it. A tree of objects
(a zarr group, features) is sent with its root metadata last and removed with it first: without them the tree does not
exist. Names ``*.zarr`` are zarr groups.
"""

from __future__ import annotations

import shutil
import uuid
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

from gapwise.storage.backend import cache
from gapwise.storage.backend.base import Backend, Holder, UrlPath
from gapwise.storage.backend.locks import lease_holder, leased
from gapwise.storage.backend.staging import cache_root, staged

if TYPE_CHECKING:
    import numpy as np

ROOTS = ("zarr.json", "meta.json", "model.json")
"""Root metadata: the file without which a tree does not exist, of zarr groups, of features and of models."""
WRITER = uuid.uuid4().hex[:8]
"""The part of a name that makes it unique to this process."""


class RemoteBackend(Backend[UrlPath]):
    """Storage behind URLs; a subclass says how files are listed, read, written and removed."""

    # -- what a subclass provides -------------------------------------------------------------------------------------
    @abstractmethod
    def kind(self, where: UrlPath) -> str | None:
        """ "file", "directory", or None if nothing is there; OSError if the storage cannot be reached."""

    @abstractmethod
    def iterdir(self, where: UrlPath) -> Iterator[UrlPath]:
        """The children, sorted by name; none if there is no such directory."""

    @abstractmethod
    def read_bytes(self, where: UrlPath) -> bytes:
        """The contents of a file; FileNotFoundError if there is none."""

    @abstractmethod
    def write_bytes(self, where: UrlPath, data: bytes) -> None:
        """Write a file whole or not at all."""

    @abstractmethod
    def unlink(self, where: UrlPath) -> None:
        """Remove a file."""

    @abstractmethod
    def upload(self, where: UrlPath, folder: Path, names: list[str]) -> None:
        """Write files of a local folder below `where`."""

    @abstractmethod
    def download(self, where: UrlPath, folder: Path, names: list[str]) -> None:
        """Read files below `where` into a new local folder."""

    @abstractmethod
    def remove_all(self, where: UrlPath) -> None:
        """Remove the file, or all files below; does nothing if there are none."""

    # -- what follows from it -----------------------------------------------------------------------------------------
    def is_file(self, where: UrlPath) -> bool:
        return self.kind(where) == "file"

    def is_dir(self, where: UrlPath) -> bool:
        return self.is_file(where / "zarr.json") if where.name.endswith(".zarr") else self.kind(where) == "directory"

    def exists(self, where: UrlPath) -> bool:
        return self.is_dir(where) if where.name.endswith(".zarr") else self.kind(where) is not None

    def local_directory(self, where: UrlPath) -> Path:
        return cache_root()

    def once(self, where: UrlPath) -> UrlPath:
        """With a part unique to this process: one that has lost its lease may go on writing for a while."""
        return where.with_name(f"{where.stem}.{WRITER}{Path(where.name).suffix}")

    def make_directory(self, where: UrlPath) -> None:
        """Does nothing: writing an object makes its prefix."""

    def make_durable(self, where: UrlPath, names: Sequence[str] | None = None) -> None:
        """Does nothing: an object is durable when the request that wrote it has returned."""

    def remove(self, where: UrlPath) -> None:
        names = self.files(where)
        for name in ROOTS:
            if name in names:
                self.unlink(where / name)
        self.remove_all(where)

    def rename(self, where: UrlPath, name: str) -> None:
        self.write_bytes(where.with_name(name), self.read_bytes(where))
        self.unlink(where)

    def remove_leftovers(self, folder: UrlPath) -> None:
        """Does nothing: `staging` removes what killed processes left on this machine."""

    def aside(self, where: UrlPath) -> Path:
        return staged(where)

    def write(self, where: UrlPath, data: bytes) -> None:
        self.write_bytes(where, data)

    def publish(self, where: UrlPath) -> None:
        self.deliver(where, last=True)

    def working(self, where: UrlPath) -> Path:
        return staged(where)

    def deliver(self, where: UrlPath, last: bool = False) -> None:
        source = staged(where)
        self.send(where, source)
        if last:
            if source.is_dir():
                shutil.rmtree(source)
            else:
                source.unlink()

    def send(self, where: UrlPath, source: Path) -> None:
        """Write a local file or tree to `where`, after removing the tree that is there."""
        if source.is_file():
            self.write_bytes(where, source.read_bytes())
            return
        names = sorted(path.relative_to(source).as_posix() for path in source.rglob("*") if path.is_file())
        if self.files(where):
            self.remove(where)
            if left := self.files(where):
                raise OSError(f"{where}: {left[0]} cannot be removed, so the new files would be mixed with old ones")
        self.upload(where, source, [name for name in names if name not in ROOTS])
        for name in ROOTS:
            if name in names:
                self.write_bytes(where / name, (source / name).read_bytes())

    def publish_mapped(self, where: UrlPath) -> None:
        source = staged(where)
        self.send(where, source)
        cache.keep(where, source)

    def fetched(self, where: UrlPath) -> Path:
        copy, names = staged(where), self.files(where)
        if names:
            shutil.rmtree(copy, ignore_errors=True)
            self.download(where, copy, names)
        else:
            copy.write_bytes(self.read_bytes(where))
        return copy

    def mapped_folder(self, where: UrlPath, check: bool = False) -> Path:
        return (cache.checked_copy if check else cache.local_copy)(where, self._download)

    def copy_here(self, where: UrlPath) -> Path | None:
        return cache.existing_copy(where)

    def _download(self, where: UrlPath, folder: Path) -> None:
        self.download(where, folder, self.files(where))

    def load_array(self, where: UrlPath) -> np.ndarray:
        import numpy as np  # not needed by a complete run

        return np.load(where.open(), allow_pickle=False)

    def locked(
        self, where: UrlPath, waiting: Callable[[str], None] | None = None, seconds: float = 0.5
    ) -> AbstractContextManager[None]:
        return leased(self, where, waiting, seconds)

    def holder(self, where: UrlPath) -> Holder | None:
        return lease_holder(self, where)
