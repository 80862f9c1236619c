"""What a run directory says of itself, read without zarr or numpy, and without taking a lock.

For lists of many runs. Nothing here is verified by the checksums of large files; a reader that relies on what it reads
opens the run instead. A run that is being written to may be read: every file is replaced whole.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping

from gapwise.records import Record
from gapwise.storage.backend import Location
from gapwise.storage.files import changed_at, parsed, read_files, read_json, tree_files
from gapwise.storage.integrity import below, file_digest, unsealed


def record(path: Location) -> Record | None:
    """A sealed record, such as manifest.json; None if there is none. DamagedError names one that is damaged."""
    return unsealed(read_json(path), path) if path.is_file() else None


def attributes(group: Location) -> Record:
    """The attributes of a zarr group; {} if it is not there. DamagedError names one that is not JSON."""
    file = group / "zarr.json"
    if not file.is_file():
        return {}
    record = read_json(file)
    attrs = record.get("attributes", {}) if isinstance(record, dict) else {}
    return dict(attrs) if isinstance(attrs, dict) else {}


def rows(array: Location) -> int | None:
    """The length of a zarr array along its first dimension; None if it is not there or has none."""
    file = array / "zarr.json"
    shape = read_json(file).get("shape") if file.is_file() else None
    return int(shape[0]) if shape else None


def harmed(run: Location, outputs: Mapping[str, object]) -> str | None:
    """The first of a run's outputs that is not what the run left, in words; None if none is seen.

    `outputs` holds checksums by name, as in the manifest. Small records, in JSON, are compared with theirs; other files,
    trees and the chunks of zarr groups are only looked for, since reading them takes long.
    """
    for name, checksum in outputs.items():
        file = below(run, name.partition(":")[0])
        if not (file.is_file() or file.is_dir()):
            return f"{name} is missing"
        if name.endswith(".json") and file_digest(file) != checksum:
            return f"{name} has changed since the run wrote it"
        if name.endswith(".zarr") and (array := _incomplete(file)) is not None:
            return f"{name}: a chunk of {array} is missing"
    return None


def _incomplete(group: Location) -> str | None:
    """The first array of a zarr group that lacks a chunk (`storage.layout.whole`); None if all are there."""
    files = tree_files(group)
    held = Counter(name.split("/")[0] for name in files)
    for name, data in read_files(group, [name for name in files if name.endswith("/zarr.json")]):
        array, facts = name.split("/")[0], parsed(data, group / name)
        sizes = zip(facts["shape"], facts["chunk_grid"]["configuration"]["chunk_shape"], strict=True)
        if facts["fill_value"] != 0 and held[array] <= math.prod(-(-size // chunk) for size, chunk in sizes):
            return array
    return None


def committed(state: Location) -> Record | None:
    """The last commit in a run's ``state/``: `generation`, `at` (seconds since the epoch, or None) and the `counts` of the
    method (lambda, breakpoint …); None if nothing is committed. DamagedError names a file that is damaged.
    """
    head = record(state / "HEAD.json")
    if head is None:
        return None
    number = int(head["generation"])
    method = attributes(below(state, str(head.get("name", f"g{number:06d}.zarr")))).get("method", {})
    return {"generation": number, "at": changed_at(state / "HEAD.json"), "counts": dict(method.get("counts", {}))}
