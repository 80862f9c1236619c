"""Leeds Sports Pose (Johnson and Everingham, BMVC 2010, CVPR 2011): human poses in photographs, as in O16 App. I.4.

`dataset.root` holds ``lspet_1000_images.tar`` and ``lspet_1000_joints.npz``: 1,000 photographs of LSP Extended with all 14
joints, which stand in for LSP. The split is fixed: the images in the order of the file are permuted by
`numpy.random.default_rng(2010)`; the first 100 (`size=small`) or 800 (`full`), or `n_train`, train, the last `n_test` test
(200 if null).

A pose is a tree of 26 nodes (`poses.skeleton`) on a grid of one cell for 4 x 4 pixels, with 13 types of every relation
(`poses.skeleton`): 26 + 2 * 25 * (13 * 4 + 1) = 2,676 weights. Score maps come from classifiers of gradient patches that are
learned on the training images (`poses.part_maps`), and are stored, not their products with weights: about 1.5 MB an image.
Maps and displacements have units in which one penalty is meant to treat them alike (`MapSpread`). Maps
of a network are read by `tree_maps`.

Loss: mean over the 14 joints of min(1, squared distance / s^2), where s is `loss_scale` times the length of the trunk and
distances are between centres of cells."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Annotated, NamedTuple

import numpy as np

from gapwise.records import Record
from gapwise.stages.datasets import DataError, MapBlocks, Reader, Report, Sink
from gapwise.stages.datasets.common.files import named_arrays, one_of_files
from gapwise.stages.datasets.common.options import Natural, Positive, Values, Whole, at_least, one_of
from gapwise.stages.datasets.poses import part_maps
from gapwise.stages.datasets.poses.skeleton import (
    JOINT_NODES,
    JOINTS,
    LIMBS,
    NODES,
    PARENT,
    check_images,
    clusters_of,
    nodes_of,
    trunk_length,
    types_of,
)
from gapwise.stages.datasets.vision.files import photographs, read_picture

ARCHIVE, ANNOTATION = "lspet_1000_images.tar", "lspet_1000_joints.npz"
SPLIT_SEED = 2010
SIZES = {"small": 100, "full": 800}
N_TEST = 200
PATCHES = 15000
"""Of all training images together, that principal components are found from."""
MEASURED = 50
"""Training images that the units of maps are measured on."""
SHOWN = 12
"""Test photographs that are stored, for figures."""


class Photograph(NamedTuple):
    """One image with its pose."""

    name: str
    jpeg: bytes
    joints: np.ndarray
    """float (14, 2): x, y in pixels"""

    def rgb(self) -> np.ndarray:
        """Its pixels, uint8 (H, W, 3)."""
        return read_picture(self.jpeg, f"{ARCHIVE}: {self.name}.jpg")


@dataclass(frozen=True)
class Poses(Reader):
    """The poses."""

    root: Annotated[Path, Values(f"the folder that holds {ARCHIVE} and {ANNOTATION}")]
    size: Annotated[str, one_of(*SIZES)] = "small"
    n_train: Annotated[int, at_least(2)] | None = None
    n_test: Whole | None = None
    seed: Natural = 0
    types: Whole = 13
    components: Whole = 96
    """Principal components of a patch, at either scale."""
    hidden: Whole = 128
    """Units of the network that tells parts apart."""
    variants: Whole = 6
    """Of every training image: the image, its mirror image, and others turned and resized at random."""
    folds: Annotated[int, at_least(2)] = 5
    """Parts of the training images; the maps of a part come from classifiers learned on the other parts."""
    loss_scale: Positive = 0.5
    structure = "tree"
    where = ("root",)
    needs = ("skimage", "sklearn", "PIL")

    def __post_init__(self) -> None:
        self.files()

    def files(self) -> dict[str, Path]:
        return {name: one_of_files(self.root, name) for name in (ARCHIVE, ANNOTATION)}

    def featurize(self, sink: Sink, map_blocks: MapBlocks, report: Report) -> Record:
        """Learn types and classifiers on the training images; then write the maps of both splits."""
        train, test = self._split(self._photographs())
        nodes = nodes_of(np.array([photograph.joints for photograph in train])) / part_maps.CELL
        anchors = clusters_of(nodes, PARENT, self.types, self.seed)
        radius = max(round(float(np.mean([self._reach(photograph) for photograph in train]))), 1)
        spread = MapSpread(len(NODES), self.types, PARENT, radius)
        models = self._learn(train, anchors, map_blocks, report)
        numbers = [k % self.folds for k in range(len(train))] + [self.folds] * len(test)
        block = partial(_block, models=models, anchors=anchors, reach=self._reach)
        blocks = iter(map_blocks(block, list(zip(train + test, numbers, strict=True))))
        first = list(islice(blocks, min(MEASURED, len(train))))
        for arrays in first:
            spread.add(arrays)
        of_unary, of_codes = spread.values()
        _write_shared(sink, anchors, relation_scale=-1.0 / of_codes)
        for k, arrays in enumerate(chain(first, blocks)):
            if k < len(train):
                sink.append("train", **arrays)
            else:
                number = k - len(train)
                sink.append("test", **arrays, **(_photo(test[number]) if number < SHOWN else NO_PHOTO))
            report(k + 1, len(train) + len(test), "score maps")
        per_cell, per_square = deformation_units(radius, self.types)
        return {
            "nodes": list(NODES), "joints": list(JOINTS), "types": self.types, "radius": radius,
            "per_unary": 1.0 / of_unary, "per_cell": per_cell, "per_square": per_square,
            "n_train": len(train), "n_test": len(test),
            "images": {"train": [p.name for p in train], "test": [p.name for p in test]},
        }  # fmt: skip

    def specimen(self, sink: Sink) -> Record:
        """Blocks to compile for, on grids of 2 x 2 cells with two nodes and two types."""
        for name, array in (
            ("parent", np.array([-1, 0])), ("anchors", np.zeros((1, 2, 2, 2))), ("node_loss", np.array([0.5, 0.5])),
            ("relation_scale", np.array([part_maps.RELATION_SCALE])),
        ):  # fmt: skip
            sink.put("", name, array)
        for number in range(2):
            sink.append(
                "train",
                grid=np.array([[2, 2]], np.int32),
                unary=np.arange(8, dtype=np.float32),
                relations=np.arange(16, dtype=np.uint8),
                labels=np.array([0, 3, number, 1], np.int16),
                loss_scale=np.ones(1),
            )
        return {"per_cell": 1.0, "per_square": 1.0, "per_unary": 1.0}

    def _reach(self, photograph: Photograph) -> float:
        """s of the loss, in cells."""
        return max(self.loss_scale * float(trunk_length(photograph.joints)) / part_maps.CELL, 1.0)

    def _photographs(self) -> list[Photograph]:
        """All images with their joints, in the order of the file of joints."""
        path = self.root / ANNOTATION
        numbers, joints = named_arrays(path, ("image_no", "joints")).values()
        if joints.shape != (len(numbers), len(JOINTS), 2) or not np.isfinite(joints).all():
            raise DataError(
                f"{path}: joints is {joints.shape}; expected finite numbers ({len(numbers)}, {len(JOINTS)}, 2)"
            )
        names = [f"im{number:05d}" for number in numbers.tolist()]
        jpegs = photographs(self.root / ARCHIVE, names)
        return [Photograph(name, jpegs[name], pose) for name, pose in zip(names, joints.astype(float), strict=True)]

    def _split(self, every: list[Photograph]) -> tuple[list[Photograph], list[Photograph]]:
        n_train = SIZES[self.size] if self.n_train is None else self.n_train
        n_test = N_TEST if self.n_test is None else self.n_test
        if n_train + n_test > len(every):
            raise DataError(
                f"dataset.n_test: {n_train} training and {n_test} test images are wanted; {self.root / ANNOTATION} has "
                f"{len(every)}"
            )
        check_images(n_train, self.types, "dataset.n_train")
        if n_train < self.folds:
            raise DataError(f"dataset.folds={self.folds}: more than the {n_train} training images")
        order = np.random.default_rng(SPLIT_SEED).permutation(len(every))
        return [every[k] for k in order[:n_train]], [every[k] for k in order[len(order) - n_test :]]

    def _learn(
        self, train: list[Photograph], anchors: np.ndarray, map_blocks: MapBlocks, report: Report
    ) -> list[part_maps.PartModel]:
        """Classifiers from all images outside each fold, and last from all images."""
        patches = partial(_patches, count=max(PATCHES // max(len(train), 100), 1))
        reduction = part_maps.reduce(
            np.concatenate(list(map_blocks(patches, [(p, self.seed + k) for k, p in enumerate(train)])), axis=1),
            self.components,
        )
        tasks = [(p, self.seed + k, number) for k, p in enumerate(train) for number in range(self.variants)]
        samples = []
        for done, drawn in enumerate(map_blocks(partial(_samples, reduction=reduction), tasks), 1):
            samples.append(drawn)
            report(done, len(tasks), "sampling patches")
        kinds = types_of(np.array([s.nodes for s in samples]), PARENT, anchors)
        fold, models = np.arange(len(tasks)) // self.variants % self.folds, []
        for k in range(self.folds + 1):
            report(k, self.folds + 1, "learning part classifiers")
            rows = np.flatnonzero(fold != k)
            models.append(
                part_maps.learn([samples[i] for i in rows], kinds[rows], PARENT, self.types, reduction, self.hidden)
            )
        report(self.folds + 1, self.folds + 1, "learning part classifiers")
        return models


def _patches(task: tuple[Photograph, int], count: int) -> np.ndarray:
    photograph, seed = task
    return part_maps.anywhere(photograph.rgb(), count, seed)


def _samples(task: tuple[Photograph, int, int], reduction: part_maps.Reduction) -> part_maps.Samples:
    photograph, seed, number = task
    picture, joints = part_maps.variant(photograph.rgb(), photograph.joints, number, seed)
    return part_maps.draw(picture, nodes_of(joints) / part_maps.CELL, reduction, seed)


NO_PHOTO: dict[str, np.ndarray] = {"photo": np.zeros((0, 3), np.uint8), "photo_hw": np.zeros((0, 2), np.int32)}


def _block(
    task: tuple[Photograph, int],
    models: Sequence[part_maps.PartModel],
    anchors: np.ndarray,
    reach: Callable[[Photograph], float],
) -> dict[str, np.ndarray]:
    """Arrays of one block, a photograph and the number of the classifiers that see it."""
    photograph, number = task
    rgb, nodes = photograph.rgb(), nodes_of(photograph.joints)
    rows, columns = part_maps.grid_of(rgb.shape)
    cells = np.clip((nodes[:, ::-1] / part_maps.CELL).astype(np.int64), 0, (rows - 1, columns - 1))
    type_of = types_of(nodes[None] / part_maps.CELL, PARENT, anchors)[0]
    return part_maps.maps_of(rgb, models[number], len(NODES), anchors.shape[2]) | {
        "labels": np.concatenate([cells[:, 0] * columns + cells[:, 1], np.repeat(type_of, 2)]).astype(np.int16),
        "loss_scale": np.array([reach(photograph)]),
        "points": photograph.joints.astype(np.float32).reshape(-1),
        "trunk": np.array([trunk_length(photograph.joints)], np.float32),
    }


def _photo(photograph: Photograph) -> dict[str, np.ndarray]:
    """A photograph that is stored."""
    rgb = photograph.rgb()
    return {"photo": rgb.reshape(-1, 3), "photo_hw": np.array([rgb.shape[:2]], np.int32)}


def _write_shared(sink: Sink, anchors: np.ndarray, relation_scale: float) -> None:
    """The tree, its anchors, and what measures need."""
    share = np.zeros(len(NODES))
    share[JOINT_NODES] = 1.0 / len(JOINTS)
    ends = np.zeros((len(LIMBS) + 1, 2, len(JOINTS)), np.float32)
    for k, limb in enumerate(LIMBS):
        ends[k, 0, limb[0]] = ends[k, 1, limb[1]] = 1.0
    ends[-1, 0, JOINTS.index("neck")] = 1.0
    ends[-1, 1, [JOINTS.index("right hip"), JOINTS.index("left hip")]] = 0.5
    shared = {
        "parent": PARENT, "anchors": anchors, "node_loss": share, "limb_ends": ends, "point_nodes": JOINT_NODES,
        "cell": np.array([float(part_maps.CELL)]), "relation_scale": np.array([relation_scale]),
    }  # fmt: skip
    for name, array in shared.items():
        sink.put("", name, array)


class MapSpread:
    """Collects the spread of score maps about the true places, block by block: the units of the features of a pose, chosen
    so that one ridge penalty treats all groups alike.

    The penalty charges every weight alike, so a group whose features are small needs large weights and is hardly used. Each
    group is therefore divided by its spread over plausible alternatives: the labellings in which one node is within r cells
    of its true place along both axes. r is the mean distance, in cells, at which a joint's loss stops growing:

    * unary maps: the root mean square, over some training images and all nodes, of the standard deviation of U_v(l) over
      these places;
    * relation maps: likewise of R_t(l), over these places and all types t.

    Maps of training images are those that the solver sees, which come from classifiers that have not seen the image.
    """

    def __init__(self, nodes: int, types: int, parent: np.ndarray, radius: int) -> None:
        self.nodes, self.types, self.parent, self.radius = nodes, types, parent, radius
        self.variances: tuple[list[float], list[float]] = ([], [])

    def add(self, block: Mapping[str, np.ndarray]) -> None:
        """A training block: ``unary``, ``relations``, ``grid`` and ``labels``, as the structure `tree` has them."""
        rows, columns = (int(k) for k in block["grid"].reshape(-1))
        unary = block["unary"].reshape(self.nodes, rows, columns)
        relations = block["relations"].reshape(self.nodes - 1, 2, self.types, rows, columns)
        windows = []
        for cell in block["labels"][: self.nodes].tolist():
            r, c = divmod(cell, columns)
            windows.append(tuple(slice(max(k - self.radius, 0), k + self.radius + 1) for k in (r, c)))
        for v, (tall, wide) in enumerate(windows):
            self.variances[0].append(float(unary[v, tall, wide].var(dtype=float)))
        for arc, ends in enumerate(zip(self.parent[1:], range(1, self.nodes), strict=True)):
            for side, v in enumerate(ends):
                tall, wide = windows[v]
                self.variances[1].append(float(relations[arc, side, :, tall, wide].var(dtype=float)))

    def values(self) -> tuple[float, float]:
        """Spread of unary maps and of stored relation maps; 1 for maps that are constant."""
        unary, relations = (float(np.sqrt(np.mean(v))) for v in self.variances)
        return unary or 1.0, relations or 1.0


def deformation_units(radius: int, types: int) -> tuple[float, float]:
    """What a cell of displacement counts, and the factor of its square: (sqrt(T) / s1, sqrt(T) / (s2 unit^2)).

    s1 and s2 are the standard deviations of k and of k^2 over k = -r..r (`MapSpread`). Of the T types of an end of an arc, a
    labelling uses one. T equal springs b would cost T b^2 where a single one would cost b^2, hence sqrt(T).
    """
    r = radius
    of_cells, of_squares = np.sqrt(r * (r + 1) / 3), np.sqrt(r * (r + 1) * (2 * r - 1) * (2 * r + 3) / 45)
    per_cell = np.sqrt(types) / of_cells
    return float(per_cell), float(np.sqrt(types) / (of_squares * per_cell**2))
