"""Score maps that somebody else's detector has made of photographs of people, such as a network's heat-maps.

A file (.npz, HDF5, or a zarr folder) holds, for n pictures and maps of at most H x W cells of 4 x 4 pixels:

| array | shape | |
|---|---|---|
| ``unary`` | (n, N, H, W) | logarithms of how likely each node is at each cell |
| ``nodes`` | (N,) | names of the nodes, among the 26 of `poses.skeleton`; others have no maps |
| ``names`` | (n,) | names of the pictures, without suffix |
| ``size`` | (n, 2) | rows and columns of each picture's grid; the rest of its maps is padding |
| ``map_scale`` | (1,), optional | factor of the stored values |

Relation maps follow from the node maps, as the conditional probabilities of types in Chen and Yuille, NIPS 2014: with U the
map of the other end of the arc and r_t the usual displacement of type t,

    R_t(l) = log softmax_t [ max of U over the 3 x 3 cells around l + r_t ],

which is how likely each type is, if this end is at l; values below `part_maps.FLOOR` are cut.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from gapwise.records import Facts
from gapwise.stages.datasets import NEW, DataError, MapBlocks, Raw, Sink
from gapwise.stages.datasets.poses.map_files import arrays_of, words
from gapwise.stages.datasets.poses.part_maps import CODES, MOST, RELATION_SCALE, log_softmax
from gapwise.stages.datasets.poses.skeleton import NODES, PARENT

NEEDED = ("unary", "nodes", "names", "size")


def given(meta: Facts) -> bool:
    """Whether the maps of a feature store were given."""
    return bool(meta["given_maps"])


class GivenMaps:
    """The maps of one file; DataError names the file and what is wrong with it.

    Attributes
    ----------
    names : list of str
        Of the pictures, in the order of the file.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.arrays = path, arrays_of(path)
        for name in NEEDED:
            if name not in self.arrays:
                raise DataError(f"{path}: has no array {name}; expected {', '.join(NEEDED)}")
        self.names, nodes = words(self.arrays["names"]), words(self.arrays["nodes"])
        if unknown := [name for name in nodes if name not in NODES] or [
            name for name in nodes if nodes.count(name) > 1
        ]:
            raise DataError(
                f"{path}: nodes has {unknown[0]!r}; expected each of these at most once: {', '.join(NODES)}"
            )
        self.node = np.array([NODES.index(name) for name in nodes], np.int64)
        shape = self.arrays["unary"].shape
        if len(shape) != 4 or shape[:2] != (len(self.names), len(nodes)):
            raise DataError(
                f"{path}: unary is {shape}; expected ({len(self.names)} pictures, {len(nodes)} nodes, rows, columns)"
            )
        self.size = np.asarray(self.arrays["size"][...], np.int64)
        if self.size.shape != (shape[0], 2) or (self.size < 1).any() or (self.size > shape[2:]).any():
            raise DataError(f"{path}: size must be rows and columns of {shape[0]} grids, at most {shape[2:]} each")
        self.scale = (
            float(np.asarray(self.arrays["map_scale"][...]).reshape(-1)[0]) if "map_scale" in self.arrays else 1.0
        )
        self.number = {name: k for k, name in enumerate(self.names)}

    def unary(self, name: str, grid: tuple[int, int] | None = None) -> np.ndarray:
        """float32 (26, rows, columns): the maps of a picture, 0 for nodes without; its grid must be `grid`, where given."""
        if name not in self.number:
            raise DataError(f"{self.path}: has no maps of {name}; its names begin {', '.join(self.names[:3])}")
        k = self.number[name]
        rows, columns = self.size[k].tolist()
        if grid is not None and grid != (rows, columns):
            raise DataError(
                f"{self.path}: the grid of {name} is {rows} x {columns}; expected {grid[0]} x {grid[1]}, a cell for 4 x 4 "
                "pixels"
            )
        maps = np.zeros((len(NODES), rows, columns), np.float32)
        maps[self.node] = np.asarray(self.arrays["unary"][k], np.float32)[:, :rows, :columns] * np.float32(self.scale)
        if not np.isfinite(maps).all():
            raise DataError(f"{self.path}: unary of {name} has a value that is not finite")
        return maps


def maps_of(unary: np.ndarray, parent: np.ndarray, anchors: np.ndarray) -> dict[str, np.ndarray]:
    """``unary`` (V H W,) float32, ``relations`` (A 2 T H W,) uint8 and ``grid`` (1, 2) of one picture's maps (V, H, W)."""
    from scipy.ndimage import maximum_filter

    nodes, rows, columns = unary.shape
    steps, types = np.rint(anchors).astype(np.int64), anchors.shape[2]
    margin = int(np.abs(steps).max(initial=0))
    lowest = float(unary.min(initial=0.0))
    around = maximum_filter(unary, size=(1, 3, 3), mode="nearest")
    around = np.pad(around, ((0, 0), (margin, margin), (margin, margin)), constant_values=lowest)
    codes = np.empty((nodes - 1, 2, types, rows, columns), np.uint8)
    for arc in range(nodes - 1):
        for side, other in enumerate((arc + 1, parent[arc + 1])):
            scores = np.empty((rows, columns, types), np.float32)
            for t, (dx, dy) in enumerate(steps[arc, side].tolist()):
                top, left = margin + dy, margin + dx
                scores[..., t] = around[other, top : top + rows, left : left + columns]
            scaled = np.clip(log_softmax(scores) / RELATION_SCALE, 0, CODES)
            codes[arc, side] = np.rint(scaled).astype(np.uint8).transpose(2, 0, 1)
    return {
        "unary": np.ascontiguousarray(unary, np.float32).reshape(-1),
        "relations": codes.reshape(-1),
        "grid": np.array([[rows, columns]], np.int32),
    }


@dataclass(frozen=True)
class MapEncoder:
    """Relation maps of new pictures, from maps that are given."""

    anchors: np.ndarray

    def encode(self, raw: Raw, sink: Sink, map_blocks: MapBlocks) -> None:
        """Maps of pictures, each float (26, rows, columns), in the order of `poses.skeleton.NODES`."""
        for k, unary in enumerate(raw):
            maps = np.asarray(unary, np.float32)
            if maps.ndim != 3 or len(maps) != len(NODES) or not 0 < maps[0].size <= MOST or not np.isfinite(maps).all():
                raise DataError(
                    f"input: the maps of picture {k} are {maps.shape}; expected finite numbers ({len(NODES)}, rows, "
                    f"columns), at most {MOST} cells"
                )
            labels = np.zeros(len(NODES) + 2 * (len(NODES) - 1), np.int16)
            sink.append(NEW, **maps_of(maps, PARENT, self.anchors), labels=labels, loss_scale=np.ones(1))
