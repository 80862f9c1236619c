"""The default data: 147 training and 60 test scenes composed by `vision.horse_scenes` from pictures that scikit-image
ships, without any download. Scene i of a split does not depend on the number of scenes. With `validation: scenes` there are
40 more (`n_validation`) to choose lambda on; the features are learnt on the training scenes alone.

New input for `encoder`: pictures, as `vision.new_pictures.PictureEncoder` describes."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from gapwise.records import Facts, Record
from gapwise.stages.datasets import MapBlocks, OptionError, Report, Sink
from gapwise.stages.datasets.vision import masks
from gapwise.stages.datasets.vision.new_pictures import picture_encoder
from gapwise.stages.datasets.vision.own_columns import ModelOptions, split_options
from gapwise.stages.datasets.vision.pictures import (
    PICTURE_PACKAGES,
    FeatureOptions,
    Picture,
    featurize_pictures,
    picture_specimen,
)
from gapwise.stages.datasets.vision.shipped_pictures import FILES, folder

NEEDS = PICTURE_PACKAGES
LATER = ModelOptions.names()
VALIDATION = {"scenes": ("n_validation",)}


@dataclass(frozen=True)
class HorsesSample:
    """Reader; the options of the configuration are its fields and those of `FeatureOptions` and `ModelOptions`."""

    n_train: int = 147
    n_test: int = 60
    n_validation: int = 40
    """Used only with validation scenes."""
    seed: int = 0
    validation: str | None = None
    """scenes; None: there are none."""
    features: FeatureOptions = field(default_factory=FeatureOptions)
    model: ModelOptions = field(default_factory=ModelOptions)
    structure: str = "segmentation"

    def files(self) -> dict[str, Path]:
        """The shipped pictures."""
        return {name: folder() / name for name in FILES if (folder() / name).is_file()}

    def source(self) -> Record:
        return {}

    def featurize(self, sink: Sink, map_blocks: MapBlocks, report: Report) -> Record:
        """Write the blocks of all splits; see `featurize_pictures`."""
        counts = {"train": self.n_train, "test": self.n_test}
        if self.validation is not None:
            counts["validation"] = self.n_validation
        items = {
            split: [(self.seed, part, number) for number in range(count)]
            for part, (split, count) in enumerate(counts.items())
        }
        return featurize_pictures(_scene, items, self.features, self.seed, sink, map_blocks, report, model=self.model)


encoder = picture_encoder
specimen = picture_specimen
read_new, stored_input, show = masks.read_new, masks.stored_input, masks.show


def open(options: Facts) -> HorsesSample:
    """Reader for the options that are its fields, and those of `FeatureOptions` and `ModelOptions`."""
    rest, model = split_options(options)
    own = ("n_train", "n_test", "n_validation", "seed", "validation")
    reader = HorsesSample(**FeatureOptions.taken_from(rest, also=own), model=model)
    if not isinstance(reader.n_validation, int) or reader.n_validation < 1:
        raise OptionError(f"dataset.n_validation: expected an integer >= 1, got {reader.n_validation!r}")
    return reader


def _scene(item: tuple[int, int, int]) -> Picture:
    from gapwise.stages.datasets.vision.horse_scenes import compose

    return compose(*item)
