"""Where things lie: a directory of this machine, or a prefix of an object store behind any URL that fsspec knows.

A `Place` is one or the other. `ObjectPlace` answers to the part of pathlib that is used on places, so that who joins
names, asks what is there and reads small files need not know which it is. What differs in kind (writing whole or not
at all, removing, opening zarr) is in `files`, `layout` and `pointer`.

Object stores have no directories and no rename. A prefix is "there" when an object begins with it; a zarr group is once
its root metadata is, which `files.publish` writes last. Names ``*.zarr`` are groups.
"""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import IO, Any

SCHEME = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*://")
AT_A_TIME = 16
"""Objects read at a time: each is a chunk of an array or less, so that memory stays small."""


@dataclass(frozen=True, order=True)
class ObjectPlace:
    """An object, or a prefix of objects; `url` has no trailing slash."""

    url: str

    def __str__(self) -> str:
        return self.url

    def __truediv__(self, name: str) -> ObjectPlace:
        return ObjectPlace(f"{self.url}/{name}")

    @property
    def name(self) -> str:
        return self.url.rsplit("/", 1)[-1]

    @property
    def stem(self) -> str:
        return Path(self.name).stem

    @property
    def parent(self) -> ObjectPlace:
        return ObjectPlace(self.url.rsplit("/", 1)[0])

    def with_name(self, name: str) -> ObjectPlace:
        return self.parent / name

    def with_suffix(self, suffix: str) -> ObjectPlace:
        return self.with_name(self.stem + suffix)

    @property
    def protocol(self) -> str:
        return self.url.split("://", 1)[0]

    @property
    def fs(self) -> Any:
        """fsspec's file system; it forgets the listings it had kept, which other processes may have made untrue."""
        from fsspec.core import url_to_fs

        fs, _ = url_to_fs(self.url)
        fs.invalidate_cache()
        return fs

    @property
    def key(self) -> str:
        """The name within the file system."""
        return str(self.fs._strip_protocol(self.url)).rstrip("/")

    def _kind(self) -> str | None:
        try:
            with named(self):
                return str(self.fs.info(self.key)["type"])
        except FileNotFoundError:
            return None

    def is_file(self) -> bool:
        """Whether there is such an object. Unlike fsspec's own: a store that cannot be reached is an error."""
        return self._kind() == "file"

    def is_dir(self) -> bool:
        if self.name.endswith(".zarr"):
            return (self / "zarr.json").is_file()
        return self._kind() == "directory"

    def exists(self) -> bool:
        return self.is_dir() if self.name.endswith(".zarr") else self._kind() is not None

    def mkdir(self, mode: int = 0o777, parents: bool = False, exist_ok: bool = False) -> None:
        """Nothing to do: writing an object makes its prefix. FileExistsError as pathlib's."""
        if not exist_ok and self.exists():
            raise FileExistsError(f"{self} is there already")

    def iterdir(self) -> Iterator[ObjectPlace]:
        """What lies directly below, in order; nothing if nothing does."""
        fs, key = self.fs, self.key
        try:
            with named(self):
                names = [str(found["name"]).rstrip("/") for found in fs.ls(key, detail=True)]
        except (FileNotFoundError, NotADirectoryError):
            names = []
        yield from (self / name.rsplit("/", 1)[-1] for name in sorted(names) if name != key)

    def glob(self, pattern: str) -> Iterator[ObjectPlace]:
        """As pathlib's, without ``**``."""
        first, _, rest = pattern.partition("/")
        for place in self.iterdir():
            if fnmatchcase(place.name, first):
                yield from place.glob(rest) if rest else (place,)

    def files(self) -> list[str]:
        """Names relative to this one of all objects below, in pathlib's order."""
        fs, key = self.fs, self.key
        with named(self):
            names = [str(name).removeprefix(key).lstrip("/") for name in fs.find(key) if str(name) != key]
        return sorted(names, key=lambda name: name.split("/"))

    def read_bytes(self) -> bytes:
        with named(self):
            return bytes(self.fs.cat_file(self.key))

    def read_text(self, encoding: str = "utf-8", errors: str = "strict") -> str:
        return self.read_bytes().decode(encoding, errors)

    def read_all(self, names: list[str]) -> Iterator[tuple[str, bytes]]:
        """(name, contents) of objects below, several on the way at a time."""
        fs, key = self.fs, self.key
        for first in range(0, len(names), AT_A_TIME):
            part = names[first : first + AT_A_TIME]
            with named(self):
                found = fs.cat([f"{key}/{name}" for name in part])
            yield from zip(part, (bytes(found[f"{key}/{name}"]) for name in part), strict=True)

    def open(self, mode: str = "rb") -> IO[bytes]:
        """For reading only."""
        if mode != "rb":
            raise ValueError(f"{self}: objects are opened for reading only; write aside and publish")
        return io.BytesIO(self.read_bytes())

    def write_bytes(self, data: bytes) -> int:
        """One PUT: whole or not at all."""
        with named(self):
            self.fs.pipe_file(self.key, data)
        return len(data)

    def unlink(self, missing_ok: bool = False) -> None:
        if not self.is_file():
            if missing_ok:
                return
            raise FileNotFoundError(f"{self}: no such object")
        with named(self):
            self.fs.rm_file(self.key)

    def upload(self, folder: Path, names: list[str]) -> None:
        """Put files of a local folder below, several on the way at a time."""
        with named(self):
            self.fs.put([str(folder / name) for name in names], [f"{self.key}/{name}" for name in names])

    def download(self, folder: Path, names: list[str]) -> None:
        """Get objects from below into a local folder, which is made."""
        for name in names:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
        with named(self):
            self.fs.get([f"{self.key}/{name}" for name in names], [str(folder / name) for name in names])

    def remove(self) -> None:
        """Remove the object, or all below; nothing if there is none."""
        with contextlib.suppress(FileNotFoundError), named(self):
            self.fs.rm(self.key, recursive=True)

    def zarr_store(self, read_only: bool) -> Any:
        """A zarr store of everything below."""
        from fsspec.core import url_to_fs
        from fsspec.implementations.asyn_wrapper import AsyncFileSystemWrapper
        from zarr.storage import FsspecStore

        fs, key = url_to_fs(self.url, asynchronous=True)
        fs.invalidate_cache()
        fs = fs if fs.async_impl else AsyncFileSystemWrapper(fs, asynchronous=True)
        return FsspecStore(fs, path=key, read_only=read_only)


Place = Path | ObjectPlace


def place(where: str | Path | ObjectPlace) -> Place:
    """The place that a path or a URL names.

    Raises
    ------
    ValueError
        If fsspec knows no such protocol, or the package for it is not installed.
    """
    if not isinstance(where, str) or not (scheme := SCHEME.match(where)):
        return where if isinstance(where, ObjectPlace) else Path(where).expanduser().resolve()
    if scheme[0] in ("file://", "local://"):
        return Path(where[scheme.end() :]).expanduser().resolve()
    try:
        import fsspec

        fsspec.get_filesystem_class(scheme[0].removesuffix("://"))
    except (ImportError, ValueError) as error:
        hint = ' (for s3://: pip install "gapwise[s3]")' if scheme[0] in ("s3://", "s3a://") else ""
        raise ValueError(f"{where}: cannot be opened: {error}{hint}") from None
    found = ObjectPlace(where.rstrip("/"))
    if not found.url[scheme.end() :]:
        raise ValueError(f"{where}: expected a bucket or a name after {scheme[0]}")
    return found


def listed(folder: Place, pattern: str) -> list[Place]:
    """What matches `pattern` in a folder, in order of name."""
    return sorted(folder.glob(pattern), key=lambda found: str(found).split("/"))


@contextlib.contextmanager
def named(where: ObjectPlace) -> Iterator[None]:
    """Errors of a store's own library (no credentials, no connection ...) as OSErrors that name the place."""
    try:
        yield
    except OSError as error:
        if str(where) in str(error):
            raise
        kind = type(error) if type(error).__module__ == "builtins" else OSError
        raise kind(f"{where}: {error}") from error
    except Exception as error:
        raise OSError(f"{where}: {type(error).__name__}: {error}") from error
