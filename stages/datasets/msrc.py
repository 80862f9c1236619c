"""MSRC version 2 (Shotton, Winn, Rother, Criminisi, ECCV 2006; masks of Malisiewicz, Efros, BMVC 2007): 591 photographs.

`dataset.root` holds ``msrc_v2_labels.npz`` (classes of pixels) and ``images_jpg.tar``. The 21 usual classes are learned: all
but horse and mountain, which have few examples and count as void.

Superpixels and features are those of the horses (`vision.pictures`). The split is fixed: names in sorted order, permuted by
`numpy.random.default_rng(2006)`; the first `n_train` train (335, as many as the usual training and validation images), the
other 256 test. The published lists of the usual split are not part of these files.

New input for `encoder`: pictures of about 320 x 213 pixels."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated

import numpy as np

from gapwise.records import Record
from gapwise.stages.datasets import DataError, MapBlocks, Report, Sink
from gapwise.stages.datasets.common.files import named_arrays, one_of_files
from gapwise.stages.datasets.common.options import Natural, Values, Whole
from gapwise.stages.datasets.vision.files import photographs, read_picture, size_of
from gapwise.stages.datasets.vision.options import PottsOptions
from gapwise.stages.datasets.vision.pictures import Picture, featurize_pictures
from gapwise.stages.datasets.vision.reader import PictureReader
from gapwise.stages.datasets.vision.superpixels import tally_classes
from gapwise.stages.problems.losses import VOID

ALL = (
    "building", "grass", "tree", "cow", "horse", "sheep", "sky", "mountain", "aeroplane", "water", "face", "car", "bicycle",
    "flower", "sign", "bird", "book", "chair", "road", "cat", "dog", "body", "boat",
)  # fmt: skip
"""The classes 1, 2, ... of the file; 0 is void."""
USUAL = tuple(name for name in ALL if name not in ("horse", "mountain"))
LABELS, PICTURES = "msrc_v2_labels.npz", "images_jpg.tar"
SPLIT_SEED = 2006


@dataclass(frozen=True)
class Msrc(PictureReader):
    """The photographs with their masks."""

    root: Annotated[Path, Values(f"the folder that holds {LABELS} and {PICTURES}")]
    potts: PottsOptions
    n_train: Whole = 335
    n_test: Whole | None = None
    seed: Natural = 0
    structure = "potts"

    def __post_init__(self) -> None:
        self.files()

    def files(self) -> dict[str, Path]:
        return {name: one_of_files(self.root, name) for name in (LABELS, PICTURES)}

    def featurize(self, sink: Sink, map_blocks: MapBlocks, report: Report) -> Record:
        """Write the blocks of both splits; see `featurize_pictures`."""
        masks = self._masks()
        jpegs = photographs(self.root / PICTURES, masks)
        order = [sorted(masks)[k] for k in np.random.default_rng(SPLIT_SEED).permutation(len(masks))]
        images = {"train": order[: self.n_train], "test": order[self.n_train :][: self.n_test]}
        items = {split: [(name, jpegs[name], masks[name]) for name in names] for split, names in images.items()}
        count = partial(tally_classes, count=len(USUAL))
        facts = featurize_pictures(_load, items, self.features, self.seed, sink, map_blocks, report, count=count)
        return facts | {"class_names": list(USUAL), "images": images, **self.facts()}

    def facts(self) -> Record:
        return {"classes": len(USUAL), **self.potts.facts()}

    def _masks(self) -> dict[str, np.ndarray]:
        """Classes of the pixels of every photograph, uint8 (H, W), by name."""
        path = self.root / LABELS
        names, hw, offset, values = named_arrays(path, ("id", "hw", "offset", "gt23")).values()
        table = np.array([VOID, *(USUAL.index(name) if name in USUAL else VOID for name in ALL)], np.uint8)
        if values.max(initial=0) >= table.size:
            raise DataError(f"{path}: gt23 holds {values.max()}, expected 0 to {table.size - 1}")
        return {
            str(name): table[values[first:last]].reshape(size)
            for name, size, first, last in zip(names, hw, offset[:-1], offset[1:], strict=True)
        }


def _load(item: tuple[str, bytes, np.ndarray]) -> Picture:
    """A picture from its name, its JPEG and the classes of its pixels."""
    name, jpeg, classes = item
    rgb = read_picture(jpeg, f"{PICTURES}: {name}.jpg")
    if rgb.shape[:2] != classes.shape:
        raise DataError(f"{PICTURES}: {name}.jpg is {size_of(rgb)}, but its labels in {LABELS} are {size_of(classes)}")
    return Picture(rgb, classes)
