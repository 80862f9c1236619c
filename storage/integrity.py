"""Detects damage: by seals of small JSON files and checksums of large files.

JSON with a flipped bit may still parse. So records that others rely on contain a checksum of themselves, and features the
checksums of their files.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING, cast

from gapwise.records import Record
from gapwise.storage.backend.locations import DamagedError, L, Location

if TYPE_CHECKING:
    import numpy as np


def sealed(value: Mapping[str, object]) -> dict[str, object]:
    """`value` with a checksum of itself under the last key, `seal`."""
    bare = {name: item for name, item in value.items() if name != "seal"}
    return {**bare, "seal": _seal(bare)}


def unsealed(value: object, where: object) -> Record:
    """`value` without its seal; DamagedError, naming `where` it came from, if the seal is missing or wrong."""
    if not isinstance(value, dict):
        raise DamagedError(f"{where}: expected an object, got {type(value).__name__}; the file is damaged")
    bare = {name: item for name, item in value.items() if name != "seal"}
    if value.get("seal") != _seal(bare):
        raise DamagedError(f"{where}: does not match its own checksum; the file is damaged")
    return bare


def below(folder: L, name: str) -> L:
    """``folder / name``; DamagedError for a name, as a file may give it, that leads out of the folder."""
    if name.startswith("/") or ".." in name.split("/"):
        raise DamagedError(
            f"{folder}: names the file {name}, which is outside it; it is damaged, or somebody changed it"
        )
    return cast(L, folder / name)


def file_digest(file: Location) -> str:
    """sha256 of a file's contents; on a disk it is read in pieces."""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def checksums(folder: Path) -> dict[str, dict[str, object]]:
    """Size in bytes and sha256 of every file below `folder`, by its relative name; large files are read in pieces."""
    sums = {}
    for file in sorted(path for path in folder.rglob("*") if path.is_file()):
        sums[file.relative_to(folder).as_posix()] = {"bytes": file.stat().st_size, "sha256": file_digest(file)}
    return sums


def changed(folder: Path, expected: Mapping[str, Mapping[str, object]]) -> str | None:
    """The first file below `folder` that does not match `expected` (of `checksums`), in words; None if all match."""
    for name, facts in expected.items():
        file = below(folder, name)
        if not file.is_file():
            return f"{name} is missing"
        if file.stat().st_size != facts["bytes"]:
            return f"{name} has {file.stat().st_size:,} bytes, was written with {facts['bytes']:,}"
    for name, facts in expected.items():
        if file_digest(folder / name) != facts["sha256"]:
            return f"{name} does not match its checksum"
    return None


def checked_array(folder: Location, name: str, expected: object) -> np.ndarray:
    """The array of the file `name` below `folder`; DamagedError unless it matches `expected` (of `checksums`)."""
    import numpy as np  # not needed by a complete run

    if not isinstance(expected, Mapping):
        raise DamagedError(
            f"{folder}: has {expected!r} for {name}, expected its size and checksum; the file is damaged"
        )
    try:
        data = below(folder, name).read_bytes()
    except FileNotFoundError as error:
        raise DamagedError(f"{folder / name}: missing; it was there when {folder} was written") from error
    if len(data) != expected.get("bytes") or hashlib.sha256(data).hexdigest() != expected.get("sha256"):
        raise DamagedError(f"{folder / name}: does not match its checksum; the file is damaged")
    check_npy(io.BytesIO(data), len(data), folder / name)
    return np.asarray(np.load(io.BytesIO(data), allow_pickle=False))


def mapped_array(file: Path) -> np.ndarray:
    """The array of an .npy file, memory-mapped; DamagedError if it is missing, or not as long as its header says."""
    import numpy as np

    try:
        with file.open("rb") as stream:
            size = check_npy(stream, file.stat().st_size, file)
    except FileNotFoundError as error:
        raise DamagedError(f"{file}: missing; it was there when the features were written") from error
    array: np.ndarray = np.load(file, mmap_mode="r" if size else None, allow_pickle=False)
    return array


def check_npy(stream: IO[bytes], size: int, where: object) -> int:
    """Bytes of the array in an .npy file of `size` bytes; DamagedError, before anything is allocated, if it holds another
    number of bytes than its header says, or objects, or has no such header."""
    import numpy as np

    try:
        version = np.lib.format.read_magic(stream)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, _, dtype = read(stream)
        if dtype.hasobject or min(shape, default=0) < 0:
            raise ValueError("objects, or a negative size")
    except (ValueError, EOFError) as error:
        raise DamagedError(f"{where}: not an .npy file without pickled objects ({error})") from error
    claimed, held = math.prod(shape) * dtype.itemsize, size - stream.tell()
    if claimed != held:
        raise DamagedError(
            f"{where}: its header says {claimed:,} bytes of numbers, the file holds {held:,}; it is damaged"
        )
    return held


def _seal(bare: Mapping[str, object]) -> str:
    """sha256 of the canonical JSON of `bare` as a reader of the file gets it: tuples as lists."""
    plain = json.loads(json.dumps(bare))
    return hashlib.sha256(json.dumps(plain, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
