"""Features behind a URL of which this process holds the byte ranges of some blocks only, as a worker of a cluster does.

Each array is mapped from a file on this machine without a name, as long as the remote one. Holes take no space, and the
file is gone when the process is. Before a task, the ranges of its blocks are read from the store and written into the
holes. So block numbers, kernels and bits are the same as with the whole file.

Files that are read whole are compared with their checksums. A range cannot be: its file's size and header are checked when
it is opened, every range has to be as long as it should, and the file has to be the same version after each reading.
"""

from __future__ import annotations

import io
import os
import tempfile
import weakref
from collections.abc import Iterator, Mapping, Sequence
from threading import Lock
from typing import IO, NamedTuple

import numpy as np

from gapwise.storage.backend import ChangedError, DamagedError, UrlPath, backend
from gapwise.storage.backend.staging import cache_root
from gapwise.storage.integrity import check_npy, checked_npy

PIECE, AT_A_TIME = 1 << 23, 1 << 26
"""Most bytes of a request, and of those that are made at a time: they are in memory until they are written."""

HEADER = 1 << 10
"""Bytes from a file's beginning that hold its header."""


class _File(NamedTuple):
    """An array of which ranges are read."""

    where: UrlPath
    version: str
    descriptor: int
    """Of the file on this machine, open for writing."""
    first: int
    """Bytes before the first row."""
    row: int
    """Bytes of a row."""
    ptr: np.ndarray


class RangedArrays(Mapping[str, np.ndarray]):
    """The arrays of a split and the shared ones by name, each opened when it is first asked for.

    Parameters
    ----------
    root : UrlPath
        The feature store.
    files : mapping
        Names and checksums of the files of the split and of the shared ones, by the names of arrays.
    ranged : sequence of str
        Arrays with a ``<name>_ptr`` of which `need` reads the rows of blocks; all others are read whole.
    """

    def __init__(
        self, root: UrlPath, files: Mapping[str, tuple[str, Mapping[str, object]]], ranged: Sequence[str]
    ) -> None:
        self.root, self.files, self.fetched = root, files, 0
        self.ranged = {name for name in ranged if name in files and f"{name}_ptr" in files}
        self._open: dict[str, np.ndarray] = {}
        self._files: dict[str, _File] = {}
        self._held: dict[str, np.ndarray] = {}
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self.files)

    def __iter__(self) -> Iterator[str]:
        return iter(self.files)

    def __getitem__(self, name: str) -> np.ndarray:
        if name not in self._open:
            self._open[name] = self._opened(name) if name in self.ranged else self._whole(name)
        return self._open[name]

    def need(self, blocks: np.ndarray) -> None:
        """Read what is missing of the rows of these blocks (int64), of all arrays that are open.

        Raises
        ------
        ChangedError
            If a file is no longer what it was when it was opened, or gone.
        OSError
            If it cannot be read.
        """
        with self._lock:  # a worker may have several threads
            for name, of in self._files.items():
                held = self._held[name]
                missing = np.unique(blocks[~held[blocks]])
                if missing.size:
                    self._fetch(of, missing)
                    held[missing] = True

    def read_whole(self, names: Sequence[str]) -> None:
        """From now on hold all of these arrays, compared with their checksums."""
        for name in names:
            self.ranged.discard(name)
            for known in (self._open, self._files, self._held):
                known.pop(name, None)

    def _opened(self, name: str) -> np.ndarray:
        """The array of a file of which nothing but the header is there."""
        file, facts = self.files[name]
        where, storage = self.root / file, backend(self.root)
        size, version = storage.stamp(where)
        if size != facts["bytes"]:
            raise DamagedError(f"{where}: has {size:,} bytes, was written with {facts['bytes']:,}")
        stream = io.BytesIO(self._read(where, [(0, min(size, HEADER))])[0])
        check_npy(stream, size, where)
        first = stream.tell()
        ptr = np.asarray(self[f"{name}_ptr"], np.int64)
        with _local(size) as local:
            local.write(stream.getvalue()[:first])
            array, descriptor = _mapped(local), os.dup(local.fileno())
        weakref.finalize(self, os.close, descriptor)
        row = array.itemsize * int(np.prod(array.shape[1:]))
        self._files[name] = _File(where, version, descriptor, first, row, ptr)
        self._held[name] = np.zeros(ptr.size - 1, bool)
        return array

    def _whole(self, name: str) -> np.ndarray:
        file, facts = self.files[name]
        data = checked_npy(self.root, file, facts)
        self.fetched += len(data)
        with _local(len(data)) as local:
            local.write(data)
            return _mapped(local)

    def _fetch(self, of: _File, blocks: np.ndarray) -> None:
        """Read the rows of `blocks` (rising); consecutive ones are one range."""
        breaks = np.flatnonzero(np.diff(blocks) > 1) + 1
        ends = [(run[0], run[-1] + 1) for run in np.split(blocks, breaks)]
        ranges = [(of.first + int(of.ptr[a]) * of.row, of.first + int(of.ptr[b]) * of.row) for a, b in ends]
        pieces = [(k, min(k + PIECE, stop)) for start, stop in ranges for k in range(start, stop, PIECE)]
        try:
            while pieces:
                total = np.cumsum([stop - start for start, stop in pieces])
                now = max(1, int(np.searchsorted(total, AT_A_TIME, side="right")))
                for (start, _), data in zip(pieces[:now], self._read(of.where, pieces[:now]), strict=True):
                    _put(of.descriptor, data, start)
                pieces = pieces[now:]
            version = backend(self.root).stamp(of.where)[1]
        except FileNotFoundError:
            version = ""
        if version != of.version:
            raise ChangedError(
                f"{of.where}: was removed or written again while this run reads it; repeat the command, and start no other "
                "that makes these features meanwhile"
            )

    def _read(self, where: UrlPath, ranges: list[tuple[int, int]]) -> list[bytes]:
        read = backend(where).read_ranges(where, ranges)
        for (start, stop), data in zip(ranges, read, strict=True):
            if len(data) != stop - start:
                raise OSError(f"{where}: expected {stop - start:,} bytes from {start:,} on, got {len(data):,}")
            self.fetched += len(data)
        return read


def _put(descriptor: int, data: bytes, start: int) -> None:
    """Write all of `data` at `start`."""
    try:
        while data:
            written = os.pwrite(descriptor, data, start)
            data, start = data[written:], start + written
    except OSError as error:
        raise OSError(
            f"{cache_root()}: {error.strerror}; features of this worker's blocks go there ($GAPWISE_CACHE)"
        ) from error


def _local(size: int) -> IO[bytes]:
    """A file of this size without a name, all of it a hole; at its beginning."""
    cache_root().mkdir(parents=True, exist_ok=True)
    local = tempfile.TemporaryFile(dir=cache_root())  # noqa: SIM115 - its callers close it
    local.truncate(size)
    return local


def _mapped(local: IO[bytes]) -> np.ndarray:
    """The array of an open .npy file, memory-mapped and read-only; the mapping outlives the file object."""
    local.flush()
    local.seek(0)
    version = np.lib.format.read_magic(local)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, fortran, dtype = read(local)
    if 0 in shape:
        return np.empty(shape, dtype)
    return np.memmap(local, dtype, "r", local.tell(), shape, "F" if fortran else "C")
