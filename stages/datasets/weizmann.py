"""Weizmann horses (Borenstein and Ullman, ECCV 2002): 328 photographs with hand-made masks.

`dataset.root` holds the publisher's folders ``rgb``, ``figure_ground`` and ``gray`` in one .tar file. Masks set the size:
the longer side becomes 160 pixels, photographs are reduced by Lanczos, masks by a box filter and a threshold.

The split is fixed: names in sorted order are permuted by `numpy.random.default_rng(2004).permutation`;
byte-identical photographs (horse006 = horse018, horse240 = horse274) stay together, at the position of the first of
them; the first 147 are for training, the other 181 for test. A pair that would straddle the border goes to test, and
the next single photograph replaces it. `dataset.seed` does not change the split.

New input for `encoder`: pictures whose longer side is about 160 pixels (`vision.reader.PictureEncoder`)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np

from gapwise.records import Record
from gapwise.stages.datasets import DataError, MapBlocks, Report, Sink
from gapwise.stages.datasets.common.files import one_of_files
from gapwise.stages.datasets.common.options import Natural, Values, Whole
from gapwise.stages.datasets.vision.files import opened, photographs, read_picture
from gapwise.stages.datasets.vision.options import ModelOptions
from gapwise.stages.datasets.vision.pictures import Picture, featurize_pictures
from gapwise.stages.datasets.vision.reader import PictureReader

SPLIT_SEED = 2004
TWINS = (("horse006", "horse018"), ("horse240", "horse274"))
LONGER_SIDE = 160
ASPECT_TOLERANCE = 0.02
TAR = "weizmann_horses_original.tar"


@dataclass(frozen=True)
class Weizmann(PictureReader):
    """The horses."""

    root: Annotated[Path, Values(f"the folder that holds {TAR}")]
    model: ModelOptions
    n_train: Whole = 147
    n_test: Whole | None = None
    seed: Natural = 0
    structure = "segmentation"
    longer_side = LONGER_SIDE

    def __post_init__(self) -> None:
        self.files()

    def files(self) -> dict[str, Path]:
        return {"pictures": one_of_files(self.root, TAR)}

    def featurize(self, sink: Sink, map_blocks: MapBlocks, report: Report) -> Record:
        """Write the blocks of both splits; see `featurize_pictures`."""
        archive = self.root / TAR
        rgb, grey = photographs(archive, folder="rgb"), photographs(archive, folder="gray")
        masks = photographs(archive, rgb, folder="figure_ground")
        train, test = split([*rgb], self.n_train)
        if len(train) < self.n_train:
            raise DataError(f"{archive}: {len(rgb)} images, too few for dataset.n_train={self.n_train}")
        images = {"train": train, "test": test[: self.n_test]}
        items = {part: [(name, rgb[name], masks[name], grey.get(name)) for name in images[part]] for part in images}
        meta = featurize_pictures(_load, items, self.features, self.seed, sink, map_blocks, report, own=self.model.own)
        return meta | {"images": images} | self.facts()

    def facts(self) -> Record:
        return self.model.facts()


def split(names: list[str], n_train: int) -> tuple[list[str], list[str]]:
    """Training and test names, as the module's docstring describes."""
    first_of_pair = {b: a for a, b in TWINS if a in names and b in names}
    groups: dict[str, list[str]] = {}
    for name in sorted(names):
        groups.setdefault(first_of_pair.get(name, name), []).append(name)
    heads = sorted(groups)
    train: list[str] = []
    test: list[str] = []
    for k in np.random.default_rng(SPLIT_SEED).permutation(len(heads)):
        group = groups[heads[k]]
        (train if len(train) + len(group) <= n_train else test).extend(group)
    return train, test


def _load(item: tuple[str, bytes, bytes, bytes | None]) -> Picture:
    """One image, reduced to a longer side of 160 pixels, from its name and the files of colours, mask and grey values."""
    from PIL import Image

    name, colours, drawn, grey = item
    rgb, mask = read_picture(colours, f"{TAR}: rgb/{name}.jpg"), opened(drawn, f"{TAR}: figure_ground/{name}.jpg")
    if grey is not None and rgb.max() <= 2:
        rgb = read_picture(grey, f"{TAR}: gray/{name}.jpg")  # horse318: the colour file is black
    inside = mask.image.convert("L")
    height, width = rgb.shape[:2]
    if abs((width / height) / (inside.width / inside.height) - 1) > ASPECT_TOLERANCE:
        raise DataError(
            f"{mask.where}: is {inside.width} x {inside.height} pixels but rgb/{name}.jpg {width} x {height}: "
            f"shapes differ by more than {ASPECT_TOLERANCE:.0%}"
        )
    scale = LONGER_SIDE / max(inside.size)
    size = (round(inside.width * scale), round(inside.height * scale))
    small = np.asarray(inside.resize(size, Image.Resampling.BOX)) > 127
    return Picture(np.asarray(Image.fromarray(rgb).resize(size, Image.Resampling.LANCZOS)), small.astype(np.uint8))
