"""Object stores, and whatever else fsspec opens by URL."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from gapwise.storage.backend.base import OTHER_SCHEMES, UrlPath
from gapwise.storage.backend.remote import RemoteBackend

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem
    from zarr.abc.store import Store

AT_A_TIME = 16
"""Objects read at a time: each is a chunk of an array or less, so this bounds memory."""

STAMPS = ("ETag", "etag", "generation", "VersionId", "LastModified", "last_modified", "updated", "mtime", "created")
"""What file systems call facts about a file that change when it is written again."""


class ObjectBackend(RemoteBackend):
    """Storage that fsspec supports. Swaps compare and then write; they are atomic only within this process."""

    schemes: ClassVar[tuple[str, ...]] = (OTHER_SCHEMES,)

    def locate(self, url: str) -> UrlPath:
        scheme, _, rest = url.partition("://")
        if not rest.strip("/"):
            raise ValueError(f"{url}: expected a bucket or a name after {scheme}://")
        try:
            import fsspec

            fsspec.get_filesystem_class(scheme)
        except (ImportError, ValueError) as error:
            raise ValueError(f"{url}: cannot be opened: {error}{self.hint(scheme)}") from None
        return UrlPath(url.rstrip("/"))

    def hint(self, scheme: str) -> str:
        """The end of a message: how to install what URLs of this scheme need."""
        return ""

    def is_shared(self, where: UrlPath) -> bool:
        return where.scheme != "memory"

    def file_system(self, where: UrlPath) -> AbstractFileSystem:
        """fsspec's file system, without cached listings, which other processes may have made stale."""
        from fsspec.core import url_to_fs

        fs, _ = url_to_fs(where.url)
        fs.invalidate_cache()
        return fs

    def _open(self, where: UrlPath) -> tuple[AbstractFileSystem, str]:
        """The file system and the name of `where` in it."""
        fs = self.file_system(where)
        return fs, str(fs._strip_protocol(where.url)).rstrip("/")

    def kind(self, where: UrlPath) -> str | None:
        try:
            with naming(where):
                fs, key = self._open(where)
                return str(fs.info(key)["type"])
        except FileNotFoundError:
            return None

    def iterdir(self, where: UrlPath) -> Iterator[UrlPath]:
        try:
            with naming(where):
                fs, key = self._open(where)
                names = [str(entry["name"]).rstrip("/") for entry in fs.ls(key, detail=True)]
        except (FileNotFoundError, NotADirectoryError):
            return
        yield from (where / name.rsplit("/", 1)[-1] for name in sorted(names) if name != key)

    def files(self, where: UrlPath) -> list[str]:
        with naming(where):
            fs, key = self._open(where)
            names = [str(name).removeprefix(key).lstrip("/") for name in fs.find(key) if str(name) != key]
        return sorted(names, key=lambda name: name.split("/"))

    def read_bytes(self, where: UrlPath) -> bytes:
        with naming(where):
            fs, key = self._open(where)
            return bytes(fs.cat_file(key))

    def read_ranges(self, where: UrlPath, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        starts, stops = [start for start, _ in ranges], [stop for _, stop in ranges]
        with naming(where):
            fs, key = self._open(where)
            return [bytes(data) for data in fs.cat_ranges([key] * len(ranges), starts, stops, on_error="raise")]

    def stamp(self, where: UrlPath) -> tuple[int, str]:
        with naming(where):
            fs, key = self._open(where)
            facts = fs.info(key)
        return int(facts["size"]), repr([facts[name] for name in STAMPS if name in facts])

    def read_all(self, where: UrlPath, names: list[str]) -> Iterator[tuple[str, bytes]]:
        for first in range(0, len(names), AT_A_TIME):
            part = names[first : first + AT_A_TIME]
            with naming(where):
                fs, key = self._open(where)
                objects = fs.cat([f"{key}/{name}" for name in part])
            yield from zip(part, (bytes(objects[f"{key}/{name}"]) for name in part), strict=True)

    def write_bytes(self, where: UrlPath, data: bytes) -> None:
        with naming(where):
            fs, key = self._open(where)
            fs.pipe_file(key, data)

    def unlink(self, where: UrlPath) -> None:
        with naming(where):
            fs, key = self._open(where)
            fs.rm_file(key)

    def upload(self, where: UrlPath, folder: Path, names: list[str]) -> None:
        with naming(where):
            fs, key = self._open(where)
            fs.put([str(folder / name) for name in names], [f"{key}/{name}" for name in names])

    def download(self, where: UrlPath, folder: Path, names: list[str]) -> None:
        for name in names:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
        with naming(where):
            fs, key = self._open(where)
            fs.get([f"{key}/{name}" for name in names], [str(folder / name) for name in names])

    def remove_all(self, where: UrlPath) -> None:
        with contextlib.suppress(FileNotFoundError), naming(where):
            fs, key = self._open(where)
            fs.rm(key, recursive=True)

    def zarr_store(self, where: UrlPath, read_only: bool) -> Store:
        from fsspec.core import url_to_fs
        from fsspec.implementations.asyn_wrapper import AsyncFileSystemWrapper
        from zarr.storage import FsspecStore

        fs, key = url_to_fs(where.url, asynchronous=True)
        fs.invalidate_cache()
        fs = fs if fs.async_impl else AsyncFileSystemWrapper(fs, asynchronous=True)
        return FsspecStore(fs, path=key, read_only=read_only)


@contextlib.contextmanager
def naming(where: UrlPath) -> Iterator[None]:
    """Raise errors of a storage library (no credentials, no connection ...) as OSErrors that name `where`."""
    try:
        yield
    except OSError as error:
        if str(where) in str(error):
            raise
        kind = type(error) if type(error).__module__ == "builtins" else OSError
        raise kind(f"{where}: {_brief(error)}") from error
    except Exception as error:
        raise OSError(f"{where}: {type(error).__name__}: {_brief(error)}") from error


def _brief(error: Exception) -> str:
    """A message without the dump of its internals that obstore appends."""
    return str(error).partition("\n\nDebug source:")[0]
