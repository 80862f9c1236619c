"""Snapshots of a running solve in append-only parts, joined into ``snapshots.zarr`` at its end.

A part is written once, before the commit that lists it. A resumed solve keeps exactly the parts that its generation lists
and takes the later snapshots again, with the same bits.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence

import numpy as np

from gapwise.records import Facts, Record
from gapwise.storage.backend import Location
from gapwise.storage.files import aside, make_directory, once, publish, remove, remove_leftovers, tree_checksum
from gapwise.storage.integrity import below
from gapwise.storage.layout import SNAPSHOTS, create_array, new_group, open_group, read_group, write_group


class SnapshotParts:
    """The ``snapshots/`` directory of one unfinished solve.

    Parameters
    ----------
    folder : Path or UrlPath
        Made at the first part, removed by `join`.
    """

    def __init__(self, folder: Location) -> None:
        self.folder = folder
        self.parts: list[Record] = []
        """Name, checksum and rows of each part, in order; each commit records them."""

    def resume(self, parts: Sequence[Facts]) -> dict[str, np.ndarray]:
        """Go on after the committed `parts`; returns the arrays of the last one ({} if there is none).

        Raises
        ------
        ValueError
            If one of them is missing or damaged.
        """
        self.parts = [dict(part) for part in parts]
        names = {part["name"] for part in self.parts}
        if self.folder.is_dir():
            remove_leftovers(self.folder)
            for path in self.folder.glob("p??????.*"):
                if path.name not in names:
                    remove(path)
        for part in self.parts:
            path = below(self.folder, part["name"])
            if not path.is_dir() or tree_checksum(path) != part["checksum"]:
                raise ValueError(
                    f"{path}: a part of the snapshots is missing or damaged. Restore the run directory from a copy, or "
                    "delete its state/ and snapshots/ to solve again from the beginning."
                )
        return read_group(self.folder / self.parts[-1]["name"])[0] if self.parts else {}

    def append(self, rows: Sequence[Mapping[str, object]]) -> None:
        """Write one more part: one row per snapshot, under the names of `gapwise.storage.layout.SNAPSHOTS`."""
        arrays = {spec.name: np.asarray([row[spec.name] for row in rows], spec.dtype) for spec in SNAPSHOTS}
        make_directory(self.folder)
        path = once(self.folder / f"p{len(self.parts):06d}.zarr")
        write_group(aside(path), SNAPSHOTS, arrays, {})
        self.parts.append({"name": path.name, "checksum": tree_checksum(aside(path)), "rows": len(rows)})
        publish(path)

    def join(self, target: Location, attrs: Facts) -> None:
        """Write `target` from all parts, one in memory at a time."""
        shapes, dtypes = {}, {}
        if self.parts:
            group = open_group(self.folder / self.parts[0]["name"])
            shapes = {name: array.shape for name, array in group.arrays()}
            dtypes = {name: array.dtype for name, array in group.arrays()}
        total = sum(part["rows"] for part in self.parts)
        joined = new_group(aside(target), attrs)
        arrays = {}
        for spec in SNAPSHOTS:
            tail = shapes.get(spec.name, (0,) * len(spec.dims))[1:]
            arrays[spec.name] = create_array(joined, spec, (total, *tail), dtypes.get(spec.name, spec.dtype))
        row = 0
        for part in self.parts:
            for name, array in read_group(self.folder / part["name"])[0].items():
                arrays[name][row : row + part["rows"]] = array
            row += part["rows"]
        publish(target)

    def remove(self) -> None:
        """Remove the parts, once the solve is over."""
        with contextlib.suppress(OSError):
            remove(self.folder)
