"""The feature store: the arrays that featurize writes, memory-mapped when they are read.

Each array is one ``.npy`` file under ``<split>/`` (``shared/`` for those of all splits), written from start to end, so
30 GB need not fit in memory. ``meta.json``, written last, has the checksums of all files. The store is written to a scratch
location and then published, so it is complete or not there. Remote features are mapped through a copy on this machine.
"""

from __future__ import annotations

import contextlib
import shutil
from array import array as Numbers
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import IO

import numpy as np

from gapwise.records import Facts, Record
from gapwise.storage.backend import DamagedError, Location, UrlPath, location_in
from gapwise.storage.cache import keep, local_copy
from gapwise.storage.files import aside, make_directory, publish, read_json, write_json
from gapwise.storage.format import FORMAT_VERSION
from gapwise.storage.integrity import below, changed, checked_array, checksums, mapped_array, sealed, unsealed

_HEADER = 128
"""Bytes kept free for the header of a growing .npy file."""


class _Growing:
    """One .npy file that grows along its first axis; its header is written at the end."""

    def __init__(self, path: Path, first: np.ndarray) -> None:
        self.file: IO[bytes] = path.open("wb")
        self.file.write(b"\0" * _HEADER)
        self.dtype, self.tail, self.rows = first.dtype, first.shape[1:], 0

    def append(self, name: str, array: np.ndarray) -> None:
        if array.dtype != self.dtype or array.shape[1:] != self.tail:
            raise ValueError(
                f"features: {name}: expected {self.dtype}(*, {self.tail}) as before, got {array.dtype}{array.shape}"
            )
        self.file.write(np.ascontiguousarray(array).tobytes())
        self.rows += array.shape[0]

    def close(self) -> None:
        header = np.lib.format.header_data_from_array_1_0(np.empty((0, *self.tail), self.dtype))
        header["shape"] = (self.rows, *self.tail)
        text = str(header).encode("latin1")
        room = _HEADER - 10
        if len(text) >= room:
            raise ValueError(f"features: a header of {len(text)} bytes does not fit")
        self.file.seek(0)
        self.file.write(b"\x93NUMPY\x01\x00" + room.to_bytes(2, "little") + text.ljust(room - 1) + b"\n")
        self.file.close()


class FeatureWriter:
    """Writes a feature store, and publishes it when the ``with`` block ends without an error."""

    def __init__(self, target: Location) -> None:
        self.target = target
        self.folder = aside(target)
        self._growing: dict[tuple[str, str], _Growing] = {}
        self._offsets: dict[tuple[str, str], Numbers[int]] = {}
        self._names: dict[str, set[str]] = {}
        self.meta: Record | None = None

    def __enter__(self) -> FeatureWriter:
        shutil.rmtree(self.folder, ignore_errors=True)
        make_directory(self.target.parent)
        self.folder.mkdir()
        return self

    def _file(self, split: str, name: str) -> Path:
        folder = self.folder / (split or "shared")
        folder.mkdir(exist_ok=True)
        return folder / f"{name}.npy"

    def append(self, split: str, **arrays: np.ndarray) -> None:
        """Append one block to every array along its first axis; the offsets become ``<name>_ptr`` (int64).

        Raises
        ------
        ValueError
            If the arrays differ from those of the split's first block in name, dtype or trailing shape.
        """
        first = self._names.setdefault(split, set(arrays))
        if first != set(arrays):
            raise ValueError(
                f"features: {split}: every block needs the arrays of the first, {', '.join(sorted(first))}; "
                f"got {', '.join(sorted(arrays))}"
            )
        for name, given in arrays.items():
            values = np.asarray(given)
            key = (split, name)
            if key not in self._growing:
                self._growing[key] = _Growing(self._file(split, name), values)
                self._offsets[key] = Numbers("q", [0])
            self._growing[key].append(name, values)
            self._offsets[key].append(self._growing[key].rows)

    def put(self, split: str, name: str, array: np.ndarray) -> None:
        """Write a whole array; split "" means shared by all splits."""
        np.save(self._file(split, name), np.ascontiguousarray(array), allow_pickle=False)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                self._finish()
        finally:  # whatever fails (a full disk, say), nothing stays behind
            for growing in self._growing.values():
                with contextlib.suppress(OSError):
                    growing.file.close()
            shutil.rmtree(self.folder, ignore_errors=True)

    def _finish(self) -> None:
        for growing in self._growing.values():
            growing.close()
        for (split, name), offsets in self._offsets.items():
            self.put(split, f"{name}_ptr", np.array(offsets, np.int64))
        meta = {"format_version": FORMAT_VERSION, **(self.meta or {}), "files": checksums(self.folder)}
        write_json(self.folder / "meta.json", sealed(meta))
        if isinstance(self.target, UrlPath):
            keep(self.target, self.folder)
        else:
            publish(self.target)


HELD_BYTES = 1 << 28
"""Splits of this size are copied by a process that solves: pages of memory are large, those of mapped files small."""
LARGE_PAGE = 1 << 21


def in_memory(array: np.ndarray) -> np.ndarray:
    """A read-only copy of a mapped array that is larger than a large page; others are returned."""
    if type(array) is not np.memmap or array.nbytes <= LARGE_PAGE:
        return array
    copy = np.array(array, subok=False)
    copy.flags.writeable = False
    return copy


class Features:
    """An open feature store."""

    def __init__(self, path: Location) -> None:
        self.path = path
        self.meta: Record = unsealed(read_json(path / "meta.json"), path / "meta.json")
        if self.meta.get("format_version") != FORMAT_VERSION:
            raise ValueError(
                f"{path}: features of format version {self.meta.get('format_version')}, expected {FORMAT_VERSION}; "
                "delete the directory to make them again"
            )
        files = self.meta.get("files")
        if not isinstance(files, dict):
            raise DamagedError(f"{path / 'meta.json'}: does not list the store's own files; delete the directory")
        for name in files:
            below(path, name)

    def arrays(self, split: str) -> Mapping[str, np.ndarray]:
        """The arrays of a split and the shared ones by name, read-only and memory-mapped."""
        arrays = {}
        root = local_copy(self.path)
        for folder in ("shared", split):
            for name in sorted(self.meta["files"]):  # whatever else lies there is none of the store's
                if name.startswith(f"{folder}/"):
                    arrays[Path(name).stem] = mapped_array(root / name)
        return arrays

    def held(self, split: str) -> Mapping[str, np.ndarray]:
        """As `arrays`, but in memory if the split has at most HELD_BYTES: for a process that reads them often."""
        arrays = dict(self.arrays(split))
        if sum(array.nbytes for array in arrays.values()) > HELD_BYTES:
            return arrays
        return {name: in_memory(array) for name, array in arrays.items()}

    def has(self, split: str) -> bool:
        """Whether the store has blocks of `split`."""
        return any(name.startswith(f"{split}/") for name in self.meta["files"])

    def shared(self) -> dict[str, np.ndarray]:
        """The shared arrays by name, read into memory and compared with their checksums; DamagedError names a bad file."""
        names = [name for name in sorted(self.meta["files"]) if name.startswith("shared/")]
        return {Path(name).stem: checked_array(self.path, name, self.meta["files"][name]) for name in names}

    def damage(self) -> str | None:
        """The first file that does not match its checksum, in words, or None; reads the whole store once."""
        root = local_copy(self.path, check=True)
        return changed(root, self.meta.get("files", {}))


def is_complete(path: Location) -> bool:
    """Whether there is a feature store at `path`."""
    return (path / "meta.json").is_file()


def open_features(path: Location) -> Features:
    """Open a feature store; FileNotFoundError if featurize has not made it."""
    if not is_complete(path):
        raise FileNotFoundError(f"{path}: no features here; run the featurize stage first")
    return Features(path)


def damaged(target: Location) -> str | None:
    """What in a feature store differs from what was written, or None; reads the whole store once."""
    try:
        return open_features(target).damage()
    except DamagedError as error:
        return str(error)


def features_of(run: Location, facts: Facts) -> Features | None:
    """The features of a run: beside it, where they are made, also if both were moved; else where they were; None if gone.

    `facts` are the manifest's of the featurize stage, ``path`` and ``key``.
    """
    for folder in _recorded(run, str(facts["path"])):
        if is_complete(folder):
            features = Features(folder)
            if features.meta.get("key") == facts["key"]:
                return features
    return None


def _recorded(run: Location, path: str) -> Iterator[Location]:
    """Where features may be that were made at `path`; what the run's files name is looked at last."""
    yield run.parent / "features" / path.rstrip("/").rsplit("/", 1)[-1]
    yield location_in(path, run)
