"""MSRC version 2 (Shotton, Winn, Rother, Criminisi, ECCV 2006; masks of Malisiewicz, Efros, BMVC 2007): 591 photographs.

`dataset.root` holds ``msrc_v2_labels.npz`` (classes of pixels) and ``images_jpg.tar``. `dataset.classes` is 21, the usual
classes: all but horse and mountain, which have few examples and count as void; or 8, those of Stanford Background.

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
from gapwise.stages.datasets.common.files import named_arrays
from gapwise.stages.datasets.common.options import Natural, Values, Whole, one_of
from gapwise.stages.datasets.stanford import CLASSES as STANFORD_CLASSES
from gapwise.stages.datasets.vision.classes import PottsOptions, permuted_split, tally_classes
from gapwise.stages.datasets.vision.photographs import photographs, with_classes
from gapwise.stages.datasets.vision.pictures import FeatureOptions, featurize_pictures, write_specimen
from gapwise.stages.datasets.vision.reader import PictureReader
from gapwise.stages.problems.void import VOID

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
    features: FeatureOptions
    potts: PottsOptions
    classes: Annotated[int, one_of(len(USUAL), len(STANFORD_CLASSES))] = len(USUAL)
    n_train: Whole = 335
    n_test: Whole | None = None
    seed: Natural = 0
    structure = "potts"

    def __post_init__(self) -> None:
        missing = [name for name, file in self.files().items() if not file.is_file()]
        if missing:
            raise DataError(f"dataset.root: {self.root} does not hold {', '.join(missing)}")

    @property
    def names(self) -> tuple[str, ...]:
        """The classes."""
        return USUAL if self.classes == len(USUAL) else STANFORD_CLASSES

    def files(self) -> dict[str, Path]:
        return {name: self.root / name for name in (LABELS, PICTURES)}

    def featurize(self, sink: Sink, map_blocks: MapBlocks, report: Report) -> Record:
        """Write the blocks of both splits; see `featurize_pictures`."""
        masks = self._masks()
        jpegs = photographs(self.root / PICTURES, masks)
        train, test = permuted_split(list(masks), self.n_train, SPLIT_SEED)
        images = {"train": train, "test": test[: self.n_test]}
        items = {split: [(jpegs[name], masks[name]) for name in names] for split, names in images.items()}
        facts = featurize_pictures(
            with_classes, items, self.features, self.seed, sink, map_blocks, report,
            count=partial(tally_classes, count=self.classes),
        )  # fmt: skip
        return facts | {
            "classes": self.classes,
            "class_names": list(self.names),
            "images": images,
            **self.potts.facts(),
        }

    def _masks(self) -> dict[str, np.ndarray]:
        """Classes of the pixels of every photograph, uint8 (H, W), by name."""
        path = self.root / LABELS
        stored = named_arrays(path, ("id", "hw", "offset", "gt23", "map23_to_stanford8"))
        names, hw, offset, values, to_stanford = stored.values()
        if self.classes == len(USUAL):
            table = np.array([VOID, *(USUAL.index(name) if name in USUAL else VOID for name in ALL)], np.uint8)
        else:
            table = np.where(to_stanford == 0, VOID, to_stanford - 1).astype(np.uint8)
        if values.max(initial=0) >= table.size:
            raise DataError(f"{path}: gt23 holds {values.max()}, expected 0 to {table.size - 1}")
        return {
            str(name): table[values[first:last]].reshape(size)
            for name, size, first, last in zip(names, hw, offset[:-1], offset[1:], strict=True)
        }

    def specimen(self, sink: Sink) -> Record:
        return write_specimen(sink) | {"classes": 3, **self.potts.facts()}
