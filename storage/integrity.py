"""Detects damage: by seals of small JSON files and checksums of large files.

JSON with a flipped bit may still parse. So records that others rely on contain a checksum of themselves, and features the
checksums of their files.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from gapwise.storage.backend.base import DamagedError, Location
from gapwise.storage.records import Record

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


def checksums(folder: Path) -> dict[str, dict[str, object]]:
    """Size in bytes and sha256 of every file below `folder`, by its relative name; large files are read in pieces."""
    sums = {}
    for file in sorted(path for path in folder.rglob("*") if path.is_file()):
        sums[file.relative_to(folder).as_posix()] = {"bytes": file.stat().st_size, "sha256": file_digest(file)}
    return sums


def changed(folder: Path, expected: Mapping[str, Mapping[str, object]]) -> str | None:
    """The first file below `folder` that does not match `expected` (of `checksums`), in words; None if all match."""
    for name, facts in expected.items():
        file = folder / name
        if not file.is_file():
            return f"{name} is missing"
        if file.stat().st_size != facts["bytes"]:
            return f"{name} has {file.stat().st_size:,} bytes, was written with {facts['bytes']:,}"
    for name, facts in expected.items():
        if file_digest(folder / name) != facts["sha256"]:
            return f"{name} does not match its checksum"
    return None


def checked_array(folder: Location, name: str, expected: Mapping[str, object]) -> np.ndarray:
    """The array of the file `name` below `folder`; DamagedError unless it matches `expected` (of `checksums`)."""
    import numpy as np  # not needed by a complete run

    try:
        data = (folder / name).read_bytes()
    except FileNotFoundError as error:
        raise DamagedError(f"{folder / name}: missing; it was there when {folder} was written") from error
    if len(data) != expected.get("bytes") or hashlib.sha256(data).hexdigest() != expected.get("sha256"):
        raise DamagedError(f"{folder / name}: does not match its checksum; the file is damaged")
    try:
        return np.asarray(np.load(io.BytesIO(data), allow_pickle=False))
    except (ValueError, EOFError) as error:
        raise DamagedError(f"{folder / name}: not an .npy file without pickled objects ({error})") from error


def _seal(bare: Mapping[str, object]) -> str:
    """sha256 of the canonical JSON of `bare` as a reader of the file gets it: tuples as lists."""
    plain = json.loads(json.dumps(bare))
    return hashlib.sha256(json.dumps(plain, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def file_digest(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
