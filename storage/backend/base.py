"""Locations, and what every kind of storage can do with them.

A `Location` is a `pathlib.Path` on this machine or a `UrlPath` anywhere else. Both join names, list contents and
read small files with pathlib's methods, so most code need not know which one it has. Whatever differs between kinds of
storage (atomic writes, locks, opening zarr) is a method of `Backend`.

To add a kind of storage, add a file to this package with a subclass of `Backend`, or of `remote.RemoteBackend`, that
lists its URL schemes.
"""

from __future__ import annotations

import hashlib
import io
import pkgutil
import re
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NamedTuple, TypeVar, cast

if TYPE_CHECKING:
    import numpy as np
    from zarr.abc.store import Store

SCHEME = re.compile(r"([a-zA-Z][a-zA-Z0-9+.-]*)://")
OTHER_SCHEMES = "*"
"""In `Backend.schemes` this stands for every URL scheme that no other backend lists."""


class DamagedError(ValueError):
    """A file does not hold what was written; the message names it."""


class ChangedError(OSError):
    """Another process has written the file since it was last read."""


class LockedError(RuntimeError):
    """Another process holds the lock; the message names its pid and host."""


class Holder(NamedTuple):
    """Who holds a lock."""

    process: int | None
    host: str
    since: float | None
    """Seconds since the epoch."""
    certain: bool
    """False if only the lock's own words say so: its process is on another machine, or cannot be looked up."""

    def __str__(self) -> str:
        return "another process" if self.process is None else f"process {self.process} on host {self.host}"


@dataclass(frozen=True, order=True)
class UrlPath:
    """The location of a file or directory behind a URL, in the part of pathlib's interface that locations need.

    `url` has no trailing slash. Creating one reads nothing.
    """

    url: str

    def __str__(self) -> str:
        return self.url

    def __truediv__(self, name: str) -> UrlPath:
        return UrlPath(f"{self.url}/{name}")

    @property
    def scheme(self) -> str:
        return self.url.split("://", 1)[0]

    @property
    def name(self) -> str:
        return self.url.rsplit("/", 1)[-1]

    @property
    def stem(self) -> str:
        return Path(self.name).stem

    @property
    def parent(self) -> UrlPath:
        return UrlPath(self.url.rsplit("/", 1)[0])

    def with_name(self, name: str) -> UrlPath:
        return self.parent / name

    def with_suffix(self, suffix: str) -> UrlPath:
        return self.with_name(self.stem + suffix)

    @property
    def _backend(self) -> Any:  # `remote.RemoteBackend`, whose module imports this one
        return backend(self)

    def is_file(self) -> bool:
        """Whether there is such a file. Unlike pathlib's, raises an error if the storage cannot be reached."""
        return bool(self._backend.is_file(self))

    def is_dir(self) -> bool:
        return bool(self._backend.is_dir(self))

    def exists(self) -> bool:
        return bool(self._backend.exists(self))

    def mkdir(self, mode: int = 0o777, parents: bool = False, exist_ok: bool = False) -> None:
        """Like pathlib's, but `mode` and `parents` are ignored."""
        if not exist_ok and self.exists():
            raise FileExistsError(f"{self} already exists")
        self._backend.make_directory(self)

    def rmdir(self) -> None:
        """Does nothing: a prefix disappears with the last object below it."""

    def iterdir(self) -> Iterator[UrlPath]:
        """The children, sorted by name; none if there is no such directory."""
        yield from self._backend.iterdir(self)

    def glob(self, pattern: str) -> Iterator[UrlPath]:
        """Like pathlib's, without ``**``."""
        first, _, rest = pattern.partition("/")
        for child in self.iterdir():
            if fnmatchcase(child.name, first):
                yield from child.glob(rest) if rest else (child,)

    def read_bytes(self) -> bytes:
        return cast(bytes, self._backend.read_bytes(self))

    def read_text(self, encoding: str = "utf-8", errors: str = "strict") -> str:
        return self.read_bytes().decode(encoding, errors)

    def open(self, mode: str = "rb") -> io.BytesIO:
        """The contents as a binary stream."""
        if mode != "rb":
            raise ValueError(f"{self}: mode must be 'rb', got {mode!r}; to write, use storage.files.aside and publish")
        return io.BytesIO(self.read_bytes())

    def write_bytes(self, data: bytes) -> int:
        self._backend.write_bytes(self, data)
        return len(data)

    def unlink(self, missing_ok: bool = False) -> None:
        if self.is_file():
            self._backend.unlink(self)
        elif not missing_ok:
            raise FileNotFoundError(f"{self}: no such file")


Location = Path | UrlPath
L = TypeVar("L", bound=Location)
_swapping = threading.Lock()


class Backend(ABC, Generic[L]):
    """A kind of storage. It has no state, and its methods take locations of its own kind."""

    schemes: ClassVar[tuple[str, ...]] = ()
    """The URL schemes that this backend serves."""
    kinds: ClassVar[list[type[Backend[Any]]]] = []

    def __init_subclass__(cls) -> None:
        if "schemes" in cls.__dict__:
            Backend.kinds.append(cls)

    # -- locations ----------------------------------------------------------------------------------------------------
    @abstractmethod
    def locate(self, url: str) -> L:
        """The location that `url` names; ValueError if the URL or this installation cannot serve it."""

    @abstractmethod
    def is_shared(self, where: L) -> bool:
        """Whether other processes see what this one writes."""

    @abstractmethod
    def local_directory(self, where: L) -> Path:
        """A directory on this machine for files that belong to a run at `where` but need not be stored there."""

    @abstractmethod
    def once(self, where: L) -> L:
        """`where` under a name that only the holder of the lock can write."""

    # -- trees --------------------------------------------------------------------------------------------------------
    @abstractmethod
    def files(self, where: L) -> list[str]:
        """Relative names of all files below, sorted as pathlib sorts paths."""

    @abstractmethod
    def read_all(self, where: L, names: list[str]) -> Iterator[tuple[str, bytes]]:
        """(name, contents) of files below `where`; few are in memory at a time."""

    @abstractmethod
    def make_directory(self, where: L) -> None:
        """Make a directory and its parents so that they survive a power loss; does nothing if it exists."""

    @abstractmethod
    def make_durable(self, where: L, names: Sequence[str] | None = None) -> None:
        """Return when everything below and including `where` would survive a power loss; of its children, those of these
        `names` only."""

    @abstractmethod
    def remove(self, where: L) -> None:
        """Remove a file or a tree. A tree's root metadata goes first, so a partly removed tree does not exist."""

    @abstractmethod
    def rename(self, where: L, name: str) -> None:
        """Give a file another name in its directory."""

    @abstractmethod
    def remove_leftovers(self, folder: L) -> None:
        """Remove what killed processes left at `aside` of anything in `folder`, and undo half-done replacements."""

    # -- writing ------------------------------------------------------------------------------------------------------
    @abstractmethod
    def aside(self, where: L) -> Path:
        """Scratch location on this machine for a file or tree that `publish` will move to `where`."""

    @abstractmethod
    def publish(self, where: L) -> None:
        """Move what is at `aside(where)` to `where`, durably and atomically, replacing what is there."""

    def write(self, where: L, data: bytes) -> None:
        """Write a small file durably; a reader sees the old or the new contents."""
        self.aside(where).write_bytes(data)
        self.publish(where)

    @abstractmethod
    def working(self, where: L) -> Path:
        """A path on this machine to write to freely, file by file; `deliver` copies it to `where`."""

    @abstractmethod
    def deliver(self, where: L, last: bool = False) -> None:
        """Copy what is at `working(where)` to `where`; with `last`, remove the working copy."""

    @abstractmethod
    def publish_mapped(self, where: L) -> None:
        """Like `publish`, for a tree that will be read through `mapped_folder`."""

    # -- reading ------------------------------------------------------------------------------------------------------
    @abstractmethod
    def fetched(self, where: L) -> Path:
        """`where` as a path on this machine: itself, or a copy that is removed when the process ends."""

    @abstractmethod
    def mapped_folder(self, where: L, check: bool = False) -> Path:
        """A directory on this machine with the files of `where`, to be mapped into memory.

        With `check`, a local copy is compared with its checksums and replaced if it is damaged.
        """

    def read_ranges(self, where: L, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        """Bytes start to stop - 1 of a file, for each (start, stop); this implementation reads the whole file."""
        data = where.read_bytes()
        return [data[start:stop] for start, stop in ranges]

    def stamp(self, where: L) -> tuple[int, str]:
        """Size of a file, and a word that changes when it is written again; this implementation reads the whole file."""
        data = where.read_bytes()
        return len(data), hashlib.sha256(data).hexdigest()

    @abstractmethod
    def copy_here(self, where: L) -> Path | None:
        """A directory on this machine with all files of the features at `where`; None if they would have to be fetched."""

    @abstractmethod
    def load_array(self, where: L) -> np.ndarray:
        """The array of an .npy file, memory-mapped if possible."""

    @abstractmethod
    def zarr_store(self, where: L, read_only: bool) -> Store | Path:
        """The store through which zarr opens the group at `where`."""

    # -- one writer at a time -----------------------------------------------------------------------------------------
    @abstractmethod
    def locked(
        self, where: L, waiting: Callable[[str], None] | None = None, seconds: float = 0.5
    ) -> AbstractContextManager[None]:
        """Hold the lock `where` for the duration of the block.

        If another process holds it: LockedError, or, with `waiting`, call it with the holder's name every `seconds`
        until the lock is free.
        """

    @abstractmethod
    def holder(self, where: L) -> Holder | None:
        """Who holds the lock `where`; None if nobody does. Never takes it, so no process is ever refused because of this."""

    def changed_at(self, where: L) -> float | None:
        """When a file was last written, in seconds since the epoch; None if there is none or the storage does not say."""
        return None

    def look(self, where: L) -> tuple[bytes | None, str | None]:
        """(contents, version) of a file; (None, None) if it does not exist."""
        try:
            data = where.read_bytes()
        except FileNotFoundError:
            return None, None
        return data, hashlib.sha256(data).hexdigest()

    def swap(self, where: L, data: bytes, seen: str | None) -> str:
        """Write `data` if the file still has the version `seen` (None: does not exist); returns the new version.

        No two writers may ever write the same bytes: finding `data` already there counts as success, because a client
        repeats a request whose answer was lost.

        This implementation compares and then writes. It misses a writer in another process that comes in between; backends
        whose storage can compare and write in one request override it.

        Raises
        ------
        ChangedError
            If the file has another version.
        """
        with _swapping:
            current, version = self.look(where)
            if version == seen:
                self.write(where, data)
                return hashlib.sha256(data).hexdigest()
        return already(where, data, current, version)


def already(where: Location, data: bytes, current: bytes | None, version: str | None) -> str:
    """The version of a file that holds `data` already; ChangedError if it holds anything else."""
    if version is None or current != data:
        raise ChangedError(f"{where}: another process has written it")
    return version


@cache
def _backends() -> dict[str, Backend[Any]]:
    """A backend for each URL scheme; imports every module of the package."""
    package = import_module(__package__)
    for module in pkgutil.iter_modules(package.__path__):
        import_module(f"{__package__}.{module.name}")
    return {scheme: made for made in (kind() for kind in Backend.kinds) for scheme in made.schemes}


def _serving(scheme: str) -> Backend[Any]:
    known = _backends()
    return known.get(scheme.lower(), known[OTHER_SCHEMES])


@cache
def _local() -> Backend[Any]:
    """The backend of paths, without importing the others."""
    return cast(Backend[Any], import_module(f"{__package__}.local").LocalBackend())


def backend(where: L) -> Backend[L]:
    """The backend that serves `where`."""
    return _serving(where.scheme) if isinstance(where, UrlPath) else _local()


def location(where: str | Location) -> Location:
    """The location that a path or a URL names.

    Raises
    ------
    ValueError
        If no installed package serves URLs of this scheme.
    """
    if isinstance(where, UrlPath):
        return where
    if isinstance(where, str) and (scheme := SCHEME.match(where)):
        return cast(Location, _serving(scheme[1]).locate(where))
    return Path(where).expanduser().resolve()


def location_in(words: str, files: Location) -> Location:
    """The location that a file below `files` names: a path, or a URL of the scheme that `files` itself was opened with.

    fsspec imports whatever serves a URL, and a stranger's file must not choose it: ValueError for any other URL.
    """
    scheme = SCHEME.match(words)
    if scheme is not None and ("::" in words or not isinstance(files, UrlPath) or scheme[1] != files.scheme):
        raise ValueError(
            f"{files}: names {words}, which is not opened; expected a path, or a URL with the scheme of {files}"
        )
    return location(words)
