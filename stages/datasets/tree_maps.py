"""Your own score maps, such as a network's heat-maps, for a tree of parts: arrays in .npz or zarr.

`dataset.file` is for training, `dataset.test_file` for test: an .npz file, or a folder that zarr opens as
a group. n images, V nodes, A = V - 1 arcs numbered by their child, T types, maps of H x W cells:

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

The tree and the anchors are those of `dataset.file`. Images are read one by one from zarr; relation maps that are
uint8 stay so, times ``relation_scale`` (1,).

New input for `encoder`: a mapping for each image, with ``unary`` (V, H, W) and perhaps ``relations``. Files of new input
have these arrays, of which only ``unary`` is needed, and perhaps ``names`` (n,). Predictions are a table of places."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np

from gapwise.records import Facts, Record
from gapwise.stages.datasets import (
    NEW,
    UNREADABLE,
    DataError,
    MapBlocks,
    NewInput,
    Predicted,
    Raw,
    Reader,
    Report,
    Shown,
    Sink,
)
from gapwise.stages.datasets.common.files import csv_text
from gapwise.stages.datasets.common.options import Natural, Positive, Values, Whole
from gapwise.stages.datasets.poses.skeleton import check_images, clusters_of, types_of

MAPS = Values("an .npz file or a zarr folder of score maps")
NEEDED = ("unary", "places", "loss_scale", "parent")


@dataclass(frozen=True)
class TreeMaps(Reader):
    """Trees of parts with their score maps."""

    file: Annotated[Path, MAPS]
    test_file: Annotated[Path, MAPS]
    types: Whole = 13
    per_cell: Positive = 0.1
    seed: Natural = 0
    structure = "tree"
    where = ("file", "test_file")
    needs = ("zarr", "sklearn")

    def __post_init__(self) -> None:
        for name in self.where:
            if not getattr(self, name).exists():
                raise DataError(f"dataset.{name}: there is no {getattr(self, name)}")

    def files(self) -> dict[str, Path]:
        paths: dict[str, Path] = {}
        for split, path in (("train", self.file), ("test", self.test_file)):
            parts = sorted(part for part in path.rglob("*") if part.is_file())
            inside = {f"{split}/{part.relative_to(path).as_posix()}": part for part in parts}
            paths |= inside if path.is_dir() else {split: path}
        return paths

    def featurize(self, sink: Sink, map_blocks: MapBlocks, report: Report) -> Record:
        """Write the blocks of both files."""
        train, test = (_Maps(path) for path in (self.file, self.test_file))
        parent = train.whole("parent").astype(np.int64).reshape(-1)
        before = (parent[1:] >= 0) & (parent[1:] < np.arange(1, parent.size))
        if parent.size < 2 or parent[0] != -1 or not before.all():
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

    @classmethod
    def encoder(cls, meta: Facts, shared: Mapping[str, np.ndarray]) -> TreeEncoder:
        """The encoder of a feature store."""
        return TreeEncoder(np.asarray(shared["parent"]).size, int(meta["types"]))

    @classmethod
    def read_new(cls, inputs: Sequence[str], meta: Facts) -> NewInput:
        """The images of files of maps; they are called by ``names`` of the file, or numbered."""
        raw: list[dict[str, np.ndarray]] = []
        names: list[str] = []
        for name in inputs:
            file = _Maps(Path(name), ("unary",))
            numbers = range(len(raw), len(raw) + len(file))
            names += map(str, file.whole("names").tolist() if "names" in file else numbers)
            raw += [file.maps(i) for i in range(len(file))]
        return NewInput(raw, names)

    @classmethod
    def stored_input(cls, arrays: Mapping[str, np.ndarray], meta: Facts) -> NewInput:
        """The numbers of the test images."""
        return NewInput(None, [str(i) for i in range(np.asarray(arrays["grid"]).reshape(-1, 2).shape[0])])

    @classmethod
    def show(cls, new: NewInput, predicted: Predicted) -> Shown:
        """A row a node: image, node, row and column of its cell."""
        grids = np.asarray(predicted.arrays["grid"]).reshape(-1, 2)
        nodes = np.asarray(predicted.arrays["parent"]).size
        rows = [
            (name, node, *divmod(int(cell), int(grids[i, 1])))
            for i, name in enumerate(new.source)
            for node, cell in enumerate(predicted[i][:nodes])
        ]
        return Shown(csv_text(("image", "node", "row", "column"), rows))

    def _anchors(self, train: _Maps, parent: np.ndarray) -> np.ndarray:
        if "anchors" in train:
            anchors = np.asarray(train.whole("anchors"), float)
            if anchors.ndim != 4 or anchors.shape[:2] != (parent.size - 1, 2) or anchors.shape[3] != 2:
                raise DataError(f"{self.file}: anchors is {anchors.shape}, expected ({parent.size - 1}, 2, types, 2)")
            return anchors
        check_images(len(train), self.types, str(self.file))
        return clusters_of(train.whole("places")[:, :, ::-1].astype(float), parent, self.types, self.seed)


class _Maps:
    """The arrays of one file; DataError says which is missing or has another shape."""

    def __init__(self, path: Path, needed: Sequence[str] = NEEDED) -> None:
        self.path, self.arrays = path, _arrays_of(path)
        for name in needed:
            if name not in self.arrays:
                raise DataError(f"{path}: has no array {name}; expected at least {', '.join(needed)}")
        shape = self.arrays["unary"].shape
        if len(shape) != 4 or shape[0] == 0:
            raise DataError(f"{path}: unary is {shape}; expected (images, nodes, rows, columns)")
        nodes = int(np.prod(self.arrays["parent"].shape)) if "parent" in self.arrays else shape[1]
        for name, expected in (
            ("unary", (shape[0], nodes, *shape[2:])), ("places", (shape[0], nodes, 2)), ("loss_scale", (shape[0],)),
            ("types", (shape[0], nodes - 1)), ("size", (shape[0], 2)), ("names", (shape[0],)),
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

    def grid(self, i: int) -> tuple[int, int]:
        """Valid rows and columns of image i."""
        most = self.arrays["unary"].shape[2:]
        rows, columns = (int(k) for k in (np.asarray(self.arrays["size"][i]) if "size" in self.arrays else most))
        if not (0 < rows <= most[0] and 0 < columns <= most[1]):
            raise DataError(f"{self.path}: size of image {i} is {rows} x {columns}; its maps are {most}")
        return rows, columns

    def maps(self, i: int) -> dict[str, np.ndarray]:
        """``unary`` (V, H, W), and ``relations`` (A, 2, T, H, W) if there are any, of image i, cut to its grid."""
        rows, columns = self.grid(i)
        names = [name for name in ("unary", "relations") if name in self.arrays]
        return {name: np.asarray(self.arrays[name][i])[..., :rows, :columns] for name in names}

    def block(self, i: int, parent: np.ndarray, anchors: np.ndarray) -> dict[str, np.ndarray]:
        """Arrays of image i."""
        (rows, columns), nodes = self.grid(i), parent.size
        cells = np.asarray(self.arrays["places"][i]).astype(np.int64)
        if (cells < 0).any() or (cells >= (rows, columns)).any():
            raise DataError(
                f"{self.path}: image {i} has places up to {cells.max(axis=0).tolist()}; expected cells of "
                f"{rows} x {columns}"
            )
        scaled = _checked(self.maps(i), nodes, anchors.shape[2], f"{self.path}: image {i}")
        if "types" in self.arrays:
            types = np.asarray(self.arrays["types"][i])
        else:
            types = types_of(cells[None, :, ::-1].astype(float), parent, anchors)[0]
        return scaled | {
            "labels": np.append(cells[:, 0] * columns + cells[:, 1], np.repeat(types, 2)).astype(np.int16),
            "loss_scale": np.asarray(self.arrays["loss_scale"][i], float).reshape(1),
        }


def _arrays_of(path: Path) -> Facts:
    """Arrays by name; those of zarr are read when they are indexed. DataError if the file is neither."""
    try:
        if path.is_dir():
            import zarr

            return dict(zarr.open_group(path, mode="r").arrays())
        with np.load(path, allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    except UNREADABLE as error:
        raise DataError(f"{path}: cannot be read as an .npz file or a zarr group: {error}") from error


def _checked(maps: Mapping[str, np.ndarray], nodes: int, types: int, where: str) -> dict[str, np.ndarray]:
    """``unary``, ``relations`` (zeros where not given) and ``grid`` of a block; DataError begins with `where`."""
    unary = np.asarray(maps["unary"], np.float32)
    if unary.ndim != 3 or len(unary) != nodes:
        raise DataError(f"{where}: unary is {unary.shape}, expected ({nodes} nodes, rows, columns)")
    shape = (nodes - 1, 2, types, *unary.shape[1:])
    relations = np.asarray(maps["relations"]) if "relations" in maps else np.zeros(shape, np.uint8)
    if relations.shape != shape:
        raise DataError(f"{where}: relations is {relations.shape}, expected {shape}")
    return {
        "grid": np.array([unary.shape[1:]], np.int32),
        "unary": np.ascontiguousarray(unary).reshape(-1),
        "relations": np.ascontiguousarray(
            relations, relations.dtype if relations.dtype == np.uint8 else np.float32
        ).reshape(-1),
    }


@dataclass(frozen=True)
class TreeEncoder:
    """Blocks of new maps, for the tree of a feature store."""

    nodes: int
    types: int

    def encode(self, raw: Raw, sink: Sink, map_blocks: MapBlocks) -> None:
        """A mapping for each image: ``unary`` (V, H, W), and perhaps ``relations`` (A, 2, T, H, W)."""
        labels = np.zeros(self.nodes + 2 * (self.nodes - 1), np.int16)
        for k, maps in enumerate(raw):
            scaled = _checked(maps, self.nodes, self.types, f"input: image {k}")
            sink.append(NEW, **scaled, labels=labels, loss_scale=np.ones(1))
