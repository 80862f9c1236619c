"""Score maps of one's own, of a network's heat-maps, say, for a tree of parts: arrays in .npz, HDF5 or zarr.

`dataset.file` is for training, `dataset.test_file` for test: an .npz file, an HDF5 file (.h5, .hdf5), or a folder that zarr
opens as a group. n images, V nodes, A = V - 1 arcs numbered by their child, T types, maps of H x W cells:

| array | shape | |
|---|---|---|
| ``unary`` | (n, V, H, W) | scores of every node at every cell, such as logarithms of probabilities |
| ``places`` | (n, V, 2) | row and column of the true cells |
| ``loss_scale`` | (n,) | s in cells: a node this far away costs all it can |
| ``parent`` | (V,) | -1 for node 0; every node comes after its parent |
| ``relations`` | (n, A, 2, T, H, W), optional | scores of every type of every arc, at its parent and at its child |
| ``anchors`` | (A, 2, T, 2), optional | usual displacement x, y of each type in cells; else `dataset.types` clusters |
| ``types`` | (n, A), optional | the type of every arc; else the nearest anchor |
| ``node_loss`` | (V,), optional | shares of the loss that sum to one; else equal ones |
| ``size`` | (n, 2), optional | rows and columns that are valid; maps are cut to them |

The tree and the anchors are those of `dataset.file`. Images are read one by one from HDF5 and zarr; relation maps that are
uint8 stay so, times ``relation_scale`` (1,)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from stages.datasets import UNREADABLE, DataError, MapBlocks, OptionError, Report, Sink
from stages.datasets.poses import types as clusters

WHERE = ("file", "test_file")
NEEDS = ("h5py", "zarr", "sklearn")
HDF5 = (".h5", ".hdf5")
NEEDED = ("unary", "places", "loss_scale", "parent")


@dataclass(frozen=True)
class TreeMaps:
    """Reader; the options of the configuration are its fields."""

    file: Path
    test_file: Path
    types: int = 13
    per_cell: float = 0.1
    seed: int = 0
    structure: str = "tree"

    def files(self) -> dict[str, Path]:
        found: dict[str, Path] = {}
        for name, path in (("train", self.file), ("test", self.test_file)):
            parts = sorted(part for part in path.rglob("*") if part.is_file()) if path.is_dir() else [path]
            found |= {f"{name}/{part.relative_to(path).as_posix()}" if path.is_dir() else name: part for part in parts}
        return found

    def source(self) -> dict[str, Any]:
        return {}

    def featurize(self, sink: Sink, map_blocks: MapBlocks, report: Report) -> dict[str, Any]:
        """Write the blocks of both files."""
        train, test = (_Maps(path) for path in (self.file, self.test_file))
        parent = train.whole("parent").astype(np.int64).reshape(-1)
        if (
            parent.size < 2
            or parent[0] != -1
            or not ((parent[1:] >= 0) & (parent[1:] < np.arange(1, parent.size))).all()
        ):
            raise DataError(
                f"{self.file}: parent is {parent.tolist()}; expected -1 for node 0 and for every other node one before it"
            )
        anchors = self._anchors(train, parent)
        share = train.whole("node_loss") if "node_loss" in train else np.full(parent.size, 1.0 / parent.size)
        scale = train.whole("relation_scale") if "relation_scale" in train else np.ones(1)
        shared = {"parent": parent, "anchors": anchors, "node_loss": share, "relation_scale": scale}
        for name, array in shared.items():
            sink.put("", name, np.asarray(array))
        total, done = len(train) + len(test), 0
        for split, maps in (("train", train), ("test", test)):
            for i in range(len(maps)):
                sink.append(split, **maps.block(i, parent, anchors))
                done += 1
                report(done, total, "score maps")
        return {"types": anchors.shape[2], "per_cell": self.per_cell, "n_train": len(train), "n_test": len(test)}

    def _anchors(self, train: _Maps, parent: np.ndarray) -> np.ndarray:
        if "anchors" in train:
            found = np.asarray(train.whole("anchors"), float)
            if found.ndim != 4 or found.shape[:2] != (parent.size - 1, 2) or found.shape[3] != 2:
                raise DataError(f"{self.file}: anchors is {found.shape}, expected ({parent.size - 1}, 2, types, 2)")
            return found
        if len(train) < self.types:
            raise DataError(f"dataset.types={self.types}: more than the {len(train)} images of {self.file}")
        return clusters.cluster(train.whole("places")[:, :, ::-1].astype(float), parent, self.types, self.seed)


class _Maps:
    """The arrays of one file; DataError says which is missing or has another shape."""

    def __init__(self, path: Path) -> None:
        self.path, self.arrays = path, _opened(path)
        for name in NEEDED:
            if name not in self.arrays:
                raise DataError(f"{path}: has no array {name}; expected at least {', '.join(NEEDED)}")
        shape = self.arrays["unary"].shape
        if len(shape) != 4 or shape[0] == 0:
            raise DataError(f"{path}: unary is {shape}; expected (images, nodes, rows, columns)")
        nodes = int(np.prod(self.arrays["parent"].shape))
        for name, expected in (
            ("unary", (shape[0], nodes, *shape[2:])), ("places", (shape[0], nodes, 2)), ("loss_scale", (shape[0],)),
            ("types", (shape[0], nodes - 1)), ("size", (shape[0], 2)),
        ):  # fmt: skip
            if name in self.arrays and self.arrays[name].shape != expected:
                raise DataError(f"{path}: {name} is {self.arrays[name].shape}, expected {expected}")

    def __len__(self) -> int:
        return int(self.arrays["unary"].shape[0])

    def __contains__(self, name: str) -> bool:
        return name in self.arrays

    def whole(self, name: str) -> np.ndarray:
        """All of an array."""
        return np.asarray(self.arrays[name][...])

    def block(self, i: int, parent: np.ndarray, anchors: np.ndarray) -> dict[str, np.ndarray]:
        """Arrays of image i."""
        nodes, count = parent.size, anchors.shape[2]
        unary = np.asarray(self.arrays["unary"][i], np.float32)
        rows, columns = np.asarray(self.arrays["size"][i]).tolist() if "size" in self.arrays else unary.shape[1:]
        places = np.asarray(self.arrays["places"][i]).astype(np.int64)
        if not (0 < rows <= unary.shape[1] and 0 < columns <= unary.shape[2]):
            raise DataError(f"{self.path}: size of image {i} is {rows} x {columns}; its maps are {unary.shape[1:]}")
        if nodes != len(unary) or (places < 0).any() or (places >= (rows, columns)).any():
            raise DataError(
                f"{self.path}: image {i} has {len(unary)} nodes and places up to {places.max(axis=0).tolist()}; expected "
                f"{nodes} nodes on {rows} x {columns} cells"
            )
        if "relations" in self.arrays:
            relations = np.asarray(self.arrays["relations"][i])
            if relations.shape != (nodes - 1, 2, count, *unary.shape[1:]):
                raise DataError(
                    f"{self.path}: relations of image {i} is {relations.shape}, expected "
                    f"{(nodes - 1, 2, count, *unary.shape[1:])}"
                )
            relations = relations[..., :rows, :columns]
        else:
            relations = np.zeros((nodes - 1, 2, count, rows, columns), np.uint8)
        if relations.dtype != np.uint8:
            relations = relations.astype(np.float32)
        if "types" in self.arrays:
            found = np.asarray(self.arrays["types"][i])
        else:
            found = clusters.nearest(places[None, :, ::-1].astype(float), parent, anchors)[0]
        return {
            "grid": np.array([[rows, columns]], np.int32),
            "unary": np.ascontiguousarray(unary[:, :rows, :columns]).reshape(-1),
            "relations": np.ascontiguousarray(relations).reshape(-1),
            "labels": np.append(places[:, 0] * columns + places[:, 1], np.repeat(found, 2)).astype(np.int16),
            "loss_scale": np.asarray(self.arrays["loss_scale"][i], float).reshape(1),
        }


def _opened(path: Path) -> Mapping[str, Any]:
    """Arrays by name, which need not be in memory."""
    try:
        if path.is_dir():
            import zarr

            group: Any = zarr.open_group(path, mode="r")
            return {name: group[name] for name in group.array_keys()}
        if path.suffix in HDF5:
            import h5py

            file = h5py.File(path, "r")
            return {name: file[name] for name in file if isinstance(file[name], h5py.Dataset)}
        with np.load(path, allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    except UNREADABLE as error:
        raise DataError(f"{path}: cannot be read as .npz, HDF5 ({', '.join(HDF5)}) or a zarr group: {error}") from error


def open(options: Mapping[str, Any]) -> TreeMaps:
    """Reader for the options that are its fields."""
    given = {name: value for name, value in options.items() if name != "name"}
    if unknown := sorted(set(given) - {"file", "test_file", "types", "per_cell", "seed"}):
        raise OptionError(f"dataset.{unknown[0]}: not an option of tree_maps")
    for name in WHERE:
        if not given.get(name):
            raise OptionError(f"dataset.{name}: must be given: an .npz or HDF5 file, or a zarr folder, of score maps")
        if not Path(given[name]).expanduser().exists():
            raise DataError(f"dataset.{name}: there is no {given[name]}")
    reader = TreeMaps(**{**given, **{name: Path(given[name]).expanduser() for name in WHERE}})
    for name, least in (("types", 1), ("seed", 0)):
        if type(getattr(reader, name)) is not int or getattr(reader, name) < least:
            raise OptionError(f"dataset.{name}: expected a whole number >= {least}, got {getattr(reader, name)!r}")
    if type(reader.per_cell) not in (int, float) or not 0 < reader.per_cell < np.inf:
        raise OptionError(f"dataset.per_cell: expected a positive number, got {reader.per_cell!r}")
    return reader
