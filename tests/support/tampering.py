"""Changes of a run's files that somebody makes on purpose; `reseal` then makes the checksums match again.

Each takes a run's directory and leaves files that can be read, unless its name says otherwise.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import zarr

Tamper = Callable[[Path], None]
Where = Callable[[Path], Path]


def path_of(run: Path) -> Path:
    return run / "path.zarr"


def trace_of(run: Path) -> Path:
    return run / "trace.zarr"


def generation_of(run: Path) -> Path:
    """The newest committed generation."""
    return max((run / "state").glob("g*.zarr"))


def segment_of(run: Path) -> Path:
    """The first finished breakpoints."""
    return min((run / "state").glob("s*.zarr"))


def features_of(run: Path) -> Path:
    (features,) = (meta.parent for meta in run.parent.glob("features/*/meta.json"))
    return features


def other(value: Any) -> Any:
    """Another value of the same type, close by."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + (1 if isinstance(value, int) else 1e-3 * (1.0 + abs(value)))
    if isinstance(value, list):
        return value[::-1]
    return f"{value}x"


def moved(array: np.ndarray) -> np.ndarray:
    """With another value in the middle."""
    index = tuple(size // 2 for size in array.shape)
    value = array[index]
    if array.dtype.kind == "f":
        array[index] = 1.0 if not np.isfinite(value) else other(float(value))
    else:
        array[index] = value + 1
    return array


def entry(name: str, where: Where = path_of, change: Callable[[np.ndarray], np.ndarray] = moved) -> Tamper:
    """Another value in the middle of a zarr array."""

    def tamper(run: Path) -> None:
        array: Any = zarr.open_group(where(run), mode="a")[name]
        array[...] = change(array[...])

    return tamper


def attribute(*names: str, where: Where = path_of, change: Callable[[Any], Any] = other) -> Tamper:
    """Another value of an attribute of a zarr group, or of a part of it."""

    def tamper(run: Path) -> None:
        attrs = zarr.open_group(where(run), mode="a").attrs
        top = {names[0]: json.loads(json.dumps(attrs[names[0]]))}
        _change(top, names, change)
        attrs[names[0]] = top[names[0]]

    return tamper


def without(name: str, where: Where = path_of) -> Tamper:
    """Without an array, or without an attribute."""

    def tamper(run: Path) -> None:
        if (where(run) / name).is_dir():
            shutil.rmtree(where(run) / name)
        else:
            del zarr.open_group(where(run), mode="a").attrs[name]

    return tamper


def unreadable(name: str, where: Where = path_of) -> Tamper:
    """One chunk of an array cannot be decoded."""

    def tamper(run: Path) -> None:
        file = next(path for path in (where(run) / name).rglob("*") if path.is_file() and path.name != "zarr.json")
        file.write_bytes(b"\0\0")

    return tamper


def field(file: str, *names: str, change: Callable[[Any], Any] = other) -> Tamper:
    """Another value in a JSON file."""

    def tamper(run: Path) -> None:
        record = json.loads((run / file).read_text())
        _change(record, names, change)
        (run / file).write_text(json.dumps(record))

    return tamper


def _change(record: Any, names: tuple[Any, ...], change: Callable[[Any], Any]) -> None:
    for name in names[:-1]:
        record = record[int(name) if isinstance(record, list) else name]
    record[names[-1]] = change(record[names[-1]])


def predictions(run: Path) -> None:
    """Another predicted label."""
    with np.load(run / "predictions.npz") as stored:
        arrays = dict(stored)
    arrays["labels"] = moved(arrays["labels"])
    np.savez(run / "predictions.npz", **arrays)


def feature(name: str) -> Tamper:
    """Another value in the middle of an array of the features, `split/name`."""

    def tamper(run: Path) -> None:
        file = features_of(run) / f"{name}.npy"
        array = np.load(file)
        index, most = array.size // 2, array.max()
        array[index] = 0 if array[index] == most else most  # whatever it counts or names, it stays in range
        np.save(file, array)

    return tamper


def without_breakpoint(run: Path) -> None:
    """Of a path with cells that match, the second breakpoint is missing."""
    group = zarr.open_group(path_of(run), mode="a")
    for _, array in list(group.arrays()):
        if array.metadata.dimension_names[0] == "breakpoint":
            values = np.delete(array[...], 1, axis=0)
            array.resize(values.shape)
            array[...] = values
