"""Stanford Background (Gould, Fulton, Koller, ICCV 2009): street and country scenes, eight classes of pixels and void.

`dataset.root` holds ``stanford_bg_99.npz`` with ``stanford_bg_99_features.npz``, and ``images.tar`` for figures: 99 of the
715 images, with superpixels (489 an image), their graph, and 519 features each.

Rows are four histograms of textons, 100 columns each, mean and deviation of three colours in 0..255, histograms of
colours, height and a position mask. Colours are divided by 255, then all values are replaced by their square roots, so that
histograms have L2 norm 1; a constant is added: 520 columns. Pairs have a constant and exp(-eta D) for eta = 2^-5 ... 2^5 and
three distances D: chi-square of the SIFT and of the filter textons, and 20 ||difference of the mean colours||^2: 34 columns.

The split is fixed: names in sorted order, permuted by `numpy.random.default_rng(2009)`; the first `n_train` train (four
fifths if null, the share of the usual 572 of 715), the rest test. Void pixels count for nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np

from gapwise.records import Record
from gapwise.stages.datasets import DataError, MapBlocks, Report, Sink
from gapwise.stages.datasets.common.files import named_arrays, one_of_files
from gapwise.stages.datasets.common.options import Values, Whole
from gapwise.stages.datasets.vision.features import ETAS
from gapwise.stages.datasets.vision.files import photographs, read_picture
from gapwise.stages.datasets.vision.options import PottsOptions
from gapwise.stages.datasets.vision.pictures import NO_PICTURE, SHOWN, picture_arrays
from gapwise.stages.datasets.vision.reader import MaskReader
from gapwise.stages.datasets.vision.superpixels import tally_classes
from gapwise.stages.problems.losses import VOID

CLASSES = ("sky", "tree", "road", "grass", "water", "building", "mountain", "foreground object")
ARCHIVE, FEATURES, PICTURES = "stanford_bg_99.npz", "stanford_bg_99_features.npz", "images.tar"
ARRAYS = ("id", "hw", "superpixel", "gt", "pix_offset", "sp_offset", "edges", "edge_offset")
SPLIT_SEED, TRAIN_SHARE = 2009, 0.8
SUPPLIED = 519
"""Columns of the features in the file."""
HISTOGRAMS, COLOURS = ((0, 100), (200, 300)), slice(400, 406)
COLOUR_SCALE = 20.0


@dataclass(frozen=True)
class Stanford(MaskReader):
    """The superpixels with their classes."""

    root: Annotated[Path, Values(f"the folder that holds {ARCHIVE} and {FEATURES}")]
    potts: PottsOptions
    pairwise: bool = True
    n_train: Whole | None = None
    structure = "potts"
    needs = ("PIL",)

    def __post_init__(self) -> None:
        self.files()

    def files(self) -> dict[str, Path]:
        pictures = {PICTURES: self.root / PICTURES} if (self.root / PICTURES).is_file() else {}
        return {name: one_of_files(self.root, name) for name in (ARCHIVE, FEATURES)} | pictures

    def featurize(self, sink: Sink, map_blocks: MapBlocks, report: Report) -> Record:
        """Write the blocks of both splits."""
        files = self.files()
        stored, rows = named_arrays(files[ARCHIVE], ARRAYS), named_arrays(files[FEATURES], ("feat",))["feat"]
        if rows.shape != (stored["sp_offset"][-1], SUPPLIED):
            raise DataError(f"{files[FEATURES]}: feat is {rows.shape}, expected {SUPPLIED} columns for the superpixels")
        if not (np.isfinite(rows).all() and rows.min(initial=0.0) >= 0.0):
            raise DataError(f"{files[FEATURES]}: feat holds a value that is negative or not finite")
        names = [str(name) for name in stored["id"]]
        n_train = round(TRAIN_SHARE * len(names)) if self.n_train is None else self.n_train
        if not 0 < n_train < len(names):
            raise DataError(f"dataset.n_train={n_train}: of {len(names)} images; each split needs at least one")
        jpegs = photographs(files[PICTURES]) if PICTURES in files else {}
        order = sorted(range(len(names)), key=names.__getitem__)
        order = [order[k] for k in np.random.default_rng(SPLIT_SEED).permutation(len(names))]
        superpixels = 0
        for number, k in enumerate(order):
            regions, classes = _pixels(stored, k)
            block = _block(stored, rows, k, self.pairwise) | tally_classes(regions, classes, len(CLASSES))
            superpixels += len(block["labels"])
            if number >= n_train:
                jpeg = jpegs.get(names[k]) if number < n_train + SHOWN else None
                where = f"{PICTURES}: {names[k]}.jpg"
                block |= NO_PICTURE
                if jpeg is not None:
                    block |= picture_arrays(regions, classes, read_picture(jpeg, where))
            sink.append("train" if number < n_train else "test", **block)
            report(number + 1, len(names), "superpixels and features")
        images = [names[k] for k in order]
        return {
            "d_unary": SUPPLIED + 1,
            "d_pairwise": 1 + 3 * ETAS.size,
            "n_train": n_train,
            "n_test": len(names) - n_train,
            "superpixels_mean": round(superpixels / len(names), 2),
            "images": {"train": images[:n_train], "test": images[n_train:]},
            "class_names": list(CLASSES),
            **self.facts(),
        }

    def facts(self) -> Record:
        return {"classes": len(CLASSES), **self.potts.facts()}


def _pixels(stored: Mapping[str, np.ndarray], k: int) -> tuple[np.ndarray, np.ndarray]:
    """Superpixels and classes of the pixels of image k, (H, W); in the file, classes count from 1, and 0 is void."""
    pixels = slice(*stored["pix_offset"][k : k + 2])
    regions, codes = (np.asarray(stored[name][pixels].reshape(stored["hw"][k])) for name in ("superpixel", "gt"))
    return regions, np.where(codes == 0, VOID, codes - 1).astype(np.uint8)


def _block(stored: Mapping[str, np.ndarray], rows: np.ndarray, k: int, pairs: bool) -> dict[str, np.ndarray]:
    """Features and edges of image k; without `pairs`, no edges."""
    edges = stored["edges"][slice(*stored["edge_offset"][k : k + 2])].astype(np.int32)
    edges = edges if pairs else edges[:0]
    x = rows[slice(*stored["sp_offset"][k : k + 2])].astype(np.float64)
    x[:, COLOURS] /= 255.0
    unary = np.concatenate([np.ones((len(x), 1)), np.sqrt(x)], axis=1).astype(np.float32)
    return {"unary": unary, "pairwise": pair_features(x, edges), "edges": edges}


def pair_features(x: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """float32 (E, 34): a constant, and exp(-eta D) for three distances between the rows of x, whose colours are in 0..1."""
    a, b = x[edges[:, 0]], x[edges[:, 1]]
    distances = []
    for first, last in HISTOGRAMS:
        p, q = a[:, first:last], b[:, first:last]
        both = p + q
        distances.append(0.5 * np.divide(np.square(p - q), both, out=np.zeros_like(both), where=both > 0).sum(axis=1))
    colour = slice(COLOURS.start, COLOURS.start + 3)
    distances.append(COLOUR_SCALE * np.square(a[:, colour] - b[:, colour]).sum(axis=1))
    columns = [np.ones((len(edges), 1)), *(np.exp(-distance[:, None] * ETAS) for distance in distances)]
    return np.concatenate(columns, axis=1).astype(np.float32)
