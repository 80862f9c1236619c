"""The default data: 147 training and 60 test scenes composed by `vision.horse_scenes` from pictures that scikit-image
ships, without any download. Scene i of a split does not depend on the number of scenes.

New input for `encoder`: pictures, as `vision.pictures.PictureEncoder` describes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from stages.datasets import MapBlocks, Report, Sink
from stages.datasets.vision import masks
from stages.datasets.vision.own_columns import ModelOptions, split_options
from stages.datasets.vision.pictures import (
    FEATURES_VERSION,
    PICTURE_PACKAGES,
    FeatureOptions,
    Picture,
    featurize_pictures,
    picture_encoder,
    picture_specimen,
)
from stages.datasets.vision.shipped_pictures import FILES, folder

NEEDS = PICTURE_PACKAGES
LATER = ModelOptions.names()


@dataclass(frozen=True)
class HorsesSample:
    """Reader; the options of the configuration are its fields and those of `FeatureOptions` and `ModelOptions`."""

    n_train: int = 147
    n_test: int = 60
    seed: int = 0
    features: FeatureOptions = field(default_factory=FeatureOptions)
    model: ModelOptions = field(default_factory=ModelOptions)
    structure: str = "segmentation"

    def files(self) -> dict[str, Path]:
        """The shipped pictures."""
        return {name: folder() / name for name in FILES if (folder() / name).is_file()}

    def source(self) -> dict[str, Any]:
        return {"features_version": FEATURES_VERSION}

    def featurize(self, sink: Sink, map_blocks: MapBlocks, report: Report) -> dict[str, Any]:
        """Write the blocks of both splits; see `featurize_pictures`."""
        items = {
            "train": [(self.seed, 0, number) for number in range(self.n_train)],
            "test": [(self.seed, 1, number) for number in range(self.n_test)],
        }
        return featurize_pictures(_scene, items, self.features, self.seed, sink, map_blocks, report, model=self.model)


encoder = picture_encoder
specimen = picture_specimen
read_new, stored_input, show = masks.read_new, masks.stored_input, masks.show


def open(options: Mapping[str, Any]) -> HorsesSample:
    """Reader for the options `n_train`, `n_test`, `seed` and the fields of `FeatureOptions` and `ModelOptions`."""
    rest, model = split_options(options)
    return HorsesSample(**FeatureOptions.taken_from(rest, also=("n_train", "n_test", "seed")), model=model)


def _scene(item: tuple[int, int, int]) -> Picture:
    from stages.datasets.vision.horse_scenes import compose

    return compose(*item)
