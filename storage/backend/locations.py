"""Locations: a `pathlib.Path` on this machine, or a `UrlPath` for whatever fsspec opens.

Both join names, list contents and read small files with pathlib's methods, so most code need not know which one it has.
Whatever differs (atomic writes, locks, opening zarr) is a function of `storage.files`.
"""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem

SCHEME = re.compile(r"([a-zA-Z][a-zA-Z0-9+.-]*)://")
HERE = ("file", "local")
"""Schemes of this machine's files."""
S3 = ("s3", "s3a")
GCS = ("gs", "gcs")
AZURE = ("az", "abfs", "abfss")
PACKAGES = (
    dict.fromkeys(S3, '"gapwise[s3]"') | dict.fromkeys(GCS, "gcsfs obstore") | dict.fromkeys(AZURE, "adlfs obstore")
)
"""What to install for the schemes whose stores compare and write in one request."""


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

    `url` has no trailing slash. Creating one reads nothing. Names ``*.zarr`` are zarr groups, which exist once their root
    metadata do. Errors of a storage library (no credentials, no connection ...) are OSErrors that name the URL.
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

    @contextlib.contextmanager
    def opened(self) -> Iterator[tuple[AbstractFileSystem, str]]:
        """fsspec's file system, without cached listings, which other processes may have made stale, and the name in it."""
        from fsspec.core import url_to_fs

        with naming(self):
            fs, key = url_to_fs(self.url)
            fs.invalidate_cache()
            yield fs, str(key).rstrip("/")

    def _type(self) -> str | None:
        """ "file", "directory", or None if nothing is there; OSError if the storage cannot be reached."""
        try:
            with self.opened() as (fs, key):
                return str(fs.info(key)["type"])
        except FileNotFoundError:
            return None

    def is_file(self) -> bool:
        """Whether there is such a file. Unlike pathlib's, raises an error if the storage cannot be reached."""
        return self._type() == "file"

    def is_dir(self) -> bool:
        return (self / "zarr.json").is_file() if self.name.endswith(".zarr") else self._type() == "directory"

    def exists(self) -> bool:
        return self.is_dir() if self.name.endswith(".zarr") else self._type() is not None

    def mkdir(self, mode: int = 0o777, parents: bool = False, exist_ok: bool = False) -> None:
        """Like pathlib's, but makes nothing, because writing an object makes its prefix."""
        if not exist_ok and self.exists():
            raise FileExistsError(f"{self} already exists")

    def rmdir(self) -> None:
        """Does nothing: a prefix disappears with the last object below it."""

    def iterdir(self) -> Iterator[UrlPath]:
        """The children, sorted by name; none if there is no such directory."""
        try:
            with self.opened() as (fs, key):
                names = [str(entry["name"]).rstrip("/") for entry in fs.ls(key, detail=True)]
        except (FileNotFoundError, NotADirectoryError):
            return
        yield from (self / name.rsplit("/", 1)[-1] for name in sorted(names) if name != key)

    def glob(self, pattern: str) -> Iterator[UrlPath]:
        """Like pathlib's, without ``**``."""
        first, _, rest = pattern.partition("/")
        for child in self.iterdir():
            if fnmatchcase(child.name, first):
                yield from child.glob(rest) if rest else (child,)

    def read_bytes(self) -> bytes:
        with self.opened() as (fs, key):
            return bytes(fs.cat_file(key))

    def read_text(self, encoding: str = "utf-8", errors: str = "strict") -> str:
        return self.read_bytes().decode(encoding, errors)

    def open(self, mode: str = "rb") -> io.BytesIO:
        """The contents as a binary stream."""
        if mode != "rb":
            raise ValueError(f"{self}: mode must be 'rb', got {mode!r}; to write, use storage.files.aside and publish")
        return io.BytesIO(self.read_bytes())

    def write_bytes(self, data: bytes) -> int:
        """Write a file whole or not at all."""
        with self.opened() as (fs, key):
            fs.pipe_file(key, data)
        return len(data)

    def unlink(self, missing_ok: bool = False) -> None:
        if self.is_file():
            with self.opened() as (fs, key):
                fs.rm_file(key)
        elif not missing_ok:
            raise FileNotFoundError(f"{self}: no such file")


Location = Path | UrlPath
L = TypeVar("L", bound=Location)


@contextlib.contextmanager
def naming(where: UrlPath) -> Iterator[None]:
    """Raise errors of a storage library as OSErrors that name `where`."""
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


def location(where: str | Location) -> Location:
    """The location that a path or a URL names.

    Raises
    ------
    ValueError
        If no installed package serves URLs of this scheme.
    """
    if isinstance(where, UrlPath):
        return where
    scheme = SCHEME.match(where) if isinstance(where, str) else None
    if scheme is None or scheme[1].lower() in HERE:
        return Path(SCHEME.sub("", where) if isinstance(where, str) else where).expanduser().resolve()
    return _served(str(where), scheme[1])


def _served(url: str, scheme: str) -> UrlPath:
    """The location of a URL; ValueError if it names nothing, or no installed package serves it."""
    import fsspec

    if not url.partition("://")[2].strip("/"):
        raise ValueError(f"{url}: expected a bucket or a name after {scheme}://")
    packages = PACKAGES.get(scheme)
    hint = f" (for {scheme}://: pip install {packages})" if packages else ""
    try:
        fsspec.get_filesystem_class(scheme)
    except (ImportError, ValueError) as error:
        raise ValueError(f"{url}: cannot be opened: {error}{hint}") from None
    if packages and find_spec("obstore") is None:
        raise ValueError(f"{url}: cannot be opened: conditional writes need obstore{hint}")
    return UrlPath(url.rstrip("/"))


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
