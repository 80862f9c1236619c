"""Stanford Background (Gould, Fulton, Koller, ICCV 2009): street and country scenes, eight classes of pixels and void.

`dataset.root` holds one of

* ``stanford_bg_99.npz`` with ``stanford_bg_99_features.npz`` and ``images.tar``: 99 of the 715 images, with superpixels (489
  an image), their graph, and 519 features each;
* ``images/*.jpg`` and ``labels/*.regions.txt``, the publisher's layout (iccv09Data).

`dataset.features` is ``supplied`` (the .npz only): the 519 features and the graph that are there; or ``pictures``:
superpixels and features from the photographs, as for the horses (`vision.pictures`), with `dataset.superpixels` an image.

Supplied rows are four histograms of textons, 100 columns each, mean and deviation of three colours in 0..255, histograms of
colours, height and a position mask. Colours are divided by 255, then all values are replaced by their square roots, so that
histograms have L2 norm 1; a constant is added: 520 columns. Pairs have a constant and exp(-eta D) for eta = 2^-5 ... 2^5 and
three distances D: chi-square of the SIFT and of the filter textons, and 20 ||difference of the mean colours||^2: 34 columns.

The split is fixed: names in sorted order, permuted by `numpy.random.default_rng(2009)`; the first `n_train` train (four
fifths if null, the share of the usual 572 of 715), the rest test. Void pixels count for nothing.

New input for `encoder`: pictures, if the features were made from pictures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated

import numpy as np

from gapwise.records import Facts, Record
from gapwise.stages.datasets import UNREADABLE, DataError, MapBlocks, Report, Sink
from gapwise.stages.datasets.common.files import named_arrays
from gapwise.stages.datasets.common.options import Natural, Values, Whole, one_of
from gapwise.stages.datasets.vision.classes import PottsOptions, permuted_split, tally_classes
from gapwise.stages.datasets.vision.features import ETAS
from gapwise.stages.datasets.vision.photographs import photographs, with_classes
from gapwise.stages.datasets.vision.pictures import (
    NO_PICTURE,
    SHOWN,
    FeatureOptions,
    featurize_pictures,
    write_specimen,
)
from gapwise.stages.datasets.vision.reader import PictureEncoder, PictureReader
from gapwise.stages.problems.void import VOID

CLASSES = ("sky", "tree", "road", "grass", "water", "building", "mountain", "foreground object")
ARCHIVE, FEATURES, PICTURES = "stanford_bg_99.npz", "stanford_bg_99_features.npz", "images.tar"
SPLIT_SEED, TRAIN_SHARE = 2009, 0.8
SUPPLIED = 519
"""Columns of the supplied features."""
HISTOGRAMS, COLOURS = ((0, 100), (200, 300)), slice(400, 406)
COLOUR_SCALE = 20.0


@dataclass(frozen=True)
class Stanford(PictureReader):
    """The photographs with their classes."""

    root: Annotated[Path, Values(f"the folder that holds {ARCHIVE}, or images/ and labels/")]
    pictures: FeatureOptions
    potts: PottsOptions
    features: Annotated[str, one_of("supplied", "pictures")] = "supplied"
    n_train: Whole | None = None
    seed: Natural = 0
    structure = "potts"

    def __post_init__(self) -> None:
        root = self.root
        has_folders = (root / "labels").is_dir() and (root / "images").is_dir() and self.features == "pictures"
        if not ((root / ARCHIVE).is_file() or has_folders):
            expected = f"{ARCHIVE}, or with dataset.features=pictures the folders images/ and labels/"
            raise DataError(f"dataset.root: {root} does not hold {expected}")

    def files(self) -> dict[str, Path]:
        if not (self.root / ARCHIVE).is_file():
            folders = ((self.root / "images").glob("*.jpg"), (self.root / "labels").glob("*.regions.txt"))
            return {path.relative_to(self.root).as_posix(): path for folder in folders for path in sorted(folder)}
        return {name: self.root / name for name in (ARCHIVE, FEATURES, PICTURES) if (self.root / name).is_file()}

    def featurize(self, sink: Sink, map_blocks: MapBlocks, report: Report) -> Record:
        """Write the blocks of both splits."""
        if self.features == "supplied":
            facts = self._supplied(sink, report)
        else:
            pictures = self._pictures()
            train, test = self._split(list(pictures))
            items = {"train": [pictures[name] for name in train], "test": [pictures[name] for name in test]}
            facts = featurize_pictures(
                with_classes, items, self.pictures, self.seed, sink, map_blocks, report,
                count=partial(tally_classes, count=len(CLASSES)),
            ) | {"images": {"train": train, "test": test}}  # fmt: skip
        return facts | {"classes": len(CLASSES), "class_names": list(CLASSES), **self.potts.facts()}

    def specimen(self, sink: Sink) -> Record:
        return write_specimen(sink) | {"classes": 3, **self.potts.facts()}

    @classmethod
    def encoder(cls, meta: Facts, shared: Mapping[str, np.ndarray]) -> PictureEncoder:
        """DataError for supplied features, which cannot be made again."""
        if "pictures" not in meta:
            raise DataError(
                "dataset.features=supplied: these features cannot be computed for new pictures; use pictures"
            )
        return super().encoder(meta, shared)

    def _split(self, names: list[str]) -> tuple[list[str], list[str]]:
        n_train = round(TRAIN_SHARE * len(names)) if self.n_train is None else self.n_train
        train, test = permuted_split(names, n_train, SPLIT_SEED)
        if not train or not test:
            raise DataError(
                f"dataset.n_train={n_train}: of {len(names)} images; at least one must be left for each split"
            )
        return train, test

    def _pictures(self) -> dict[str, tuple[bytes, np.ndarray]]:
        """JPEG and classes of every picture by name."""
        if (self.root / ARCHIVE).is_file():
            stored = _open(self.root / ARCHIVE)
            jpegs = photographs(self.root / PICTURES, stored.names)
            return {name: (jpegs[name], stored.classes(k)) for k, name in enumerate(stored.names)}
        pictures = {}
        for path in sorted((self.root / "labels").glob("*.regions.txt")):
            name = path.name.removesuffix(".regions.txt")
            picture = self.root / "images" / f"{name}.jpg"
            if not picture.is_file():
                raise DataError(f"{path}: there is no {picture}")
            try:
                regions = np.loadtxt(path, dtype=np.int64, ndmin=2)
            except UNREADABLE as error:
                raise DataError(f"{path}: expected rows of whole numbers: {error}") from error
            if regions.min() < -1 or regions.max() >= len(CLASSES):
                raise DataError(f"{path}: holds {regions.min()} to {regions.max()}, expected -1 to {len(CLASSES) - 1}")
            pictures[name] = picture.read_bytes(), np.where(regions < 0, VOID, regions).astype(np.uint8)
        return pictures

    def _supplied(self, sink: Sink, report: Report) -> Record:
        stored, rows = _open(self.root / ARCHIVE), _features(self.root / FEATURES)
        if rows.shape != (stored.arrays["sp_offset"][-1], SUPPLIED):
            raise DataError(
                f"{self.root / FEATURES}: feat is {rows.shape}, expected {SUPPLIED} columns for the superpixels"
            )
        jpegs = photographs(self.root / PICTURES) if (self.root / PICTURES).is_file() else {}
        where = {name: k for k, name in enumerate(stored.names)}
        train, test = self._split(list(stored.names))
        superpixels = 0
        for number, name in enumerate([*train, *test]):
            k = where[name]
            block = stored.block(k, rows, pairs=self.pictures.pairwise)
            superpixels += len(block["labels"])
            if number < len(train):
                sink.append("train", **block)
            else:
                shown = number - len(train) < SHOWN and name in jpegs
                picture = stored.shown(k, jpegs[name]) if shown else NO_PICTURE
                sink.append("test", **block, **picture)
            report(number + 1, len(where), "superpixels and features")
        return {
            "d_unary": SUPPLIED + 1,
            "d_pairwise": 1 + 3 * ETAS.size,
            "n_train": len(train),
            "n_test": len(test),
            "superpixels_mean": round(superpixels / len(where), 2),
            "images": {"train": train, "test": test},
        }


class _Stored:
    """The arrays of the .npz."""

    def __init__(self, arrays: Mapping[str, np.ndarray]) -> None:
        self.arrays = arrays
        self.names = [str(name) for name in arrays["id"]]

    def classes(self, k: int) -> np.ndarray:
        """uint8 (H, W): 0 (unknown) becomes VOID, 1..8 become 0..7."""
        codes = self._image(k, "gt")
        return np.where(codes == 0, VOID, codes - 1).astype(np.uint8)

    def _image(self, k: int, name: str) -> np.ndarray:
        first, last = self.arrays["pix_offset"][k : k + 2]
        return np.asarray(self.arrays[name][first:last].reshape(self.arrays["hw"][k]))

    def block(self, k: int, rows: np.ndarray, *, pairs: bool) -> dict[str, np.ndarray]:
        """Features, edges and labels of image k; without `pairs`, no edges."""
        first, last = self.arrays["sp_offset"][k : k + 2]
        start, stop = self.arrays["edge_offset"][k : k + 2]
        edges = self.arrays["edges"][start:stop].astype(np.int32) if pairs else np.zeros((0, 2), np.int32)
        x = rows[first:last].astype(np.float64)
        x[:, COLOURS] /= 255.0
        unary = np.concatenate([np.ones((len(x), 1)), np.sqrt(x)], axis=1).astype(np.float32)
        counted = tally_classes(self._image(k, "superpixel"), self.classes(k), len(CLASSES))
        return {"unary": unary, "pairwise": pair_features(x, edges), "edges": edges, **counted}

    def shown(self, k: int, jpeg: bytes) -> dict[str, np.ndarray]:
        """The picture of image k, for figures."""
        rgb = with_classes((jpeg, self.classes(k))).rgb
        return {
            "superpixel_map": self._image(k, "superpixel").ravel(),
            "mask": self.classes(k).ravel(),
            "rgb": rgb.reshape(-1, 3),
            "hw": np.array([self.arrays["hw"][k]], dtype=np.int32),
        }


def pair_features(x: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """float32 (E, 34): a constant, and exp(-eta D) for three distances between the rows of x, whose colours are in 0..1."""
    columns = [np.ones((len(edges), 1))]
    a, b = x[edges[:, 0]], x[edges[:, 1]]
    distances = []
    for first, last in HISTOGRAMS:
        p, q = a[:, first:last], b[:, first:last]
        both = p + q
        distances.append(0.5 * np.divide(np.square(p - q), both, out=np.zeros_like(both), where=both > 0).sum(axis=1))
    colour = slice(COLOURS.start, COLOURS.start + 3)
    distances.append(COLOUR_SCALE * np.square(a[:, colour] - b[:, colour]).sum(axis=1))
    columns += [np.exp(-distance[:, None] * ETAS) for distance in distances]
    return np.concatenate(columns, axis=1).astype(np.float32)


def _open(path: Path) -> _Stored:
    names = ("id", "hw", "superpixel", "gt", "pix_offset", "sp_offset", "edges", "edge_offset")
    return _Stored(named_arrays(path, names))


def _features(path: Path) -> np.ndarray:
    rows = named_arrays(path, ("feat",), "; or use dataset.features=pictures")["feat"]
    if not (np.isfinite(rows).all() and rows.min(initial=0.0) >= 0.0):
        raise DataError(f"{path}: feat holds a value that is negative or not finite")
    return rows
