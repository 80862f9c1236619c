"""The default data: 147 training and 60 test scenes composed by `vision.horse_scenes` from pictures that scikit-image
ships, without any download. Scene i of a split does not depend on the number of scenes. With `validation: scenes` there are
40 more (`n_validation`) to choose lambda on; the features are learnt on the training scenes alone.

New input for `encoder`: pictures, as `vision.reader.PictureEncoder` describes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar

from gapwise.records import Record
from gapwise.stages.datasets import MapBlocks, Report, Sink
from gapwise.stages.datasets.common.options import Natural, Whole, one_of
from gapwise.stages.datasets.vision.horse_scenes import FILES, compose, folder
from gapwise.stages.datasets.vision.options import ModelOptions
from gapwise.stages.datasets.vision.pictures import Picture, featurize_pictures
from gapwise.stages.datasets.vision.reader import PictureReader


@dataclass(frozen=True)
class HorsesSample(PictureReader):
    """The scenes."""

    model: ModelOptions
    n_train: Whole = 147
    n_test: Whole = 60
    n_validation: Whole = 40
    """Used only with validation scenes."""
    seed: Natural = 0
    validation: Annotated[str, one_of("scenes")] | None = None
    """scenes; None: there are none."""
    structure = "segmentation"
    where = ()
    validations: ClassVar = {"scenes": ("n_validation",)}

    def files(self) -> dict[str, Path]:
        """The shipped pictures."""
        return {name: folder() / name for name in FILES if (folder() / name).is_file()}

    def featurize(self, sink: Sink, map_blocks: MapBlocks, report: Report) -> Record:
        """Write the blocks of all splits; see `featurize_pictures`."""
        counts = {"train": self.n_train, "test": self.n_test}
        if self.validation is not None:
            counts["validation"] = self.n_validation
        items = {
            split: [(self.seed, part, number) for number in range(count)]
            for part, (split, count) in enumerate(counts.items())
        }
        meta = featurize_pictures(_scene, items, self.features, self.seed, sink, map_blocks, report, own=self.model.own)
        return meta | self.facts()

    def facts(self) -> Record:
        return self.model.facts()


def _scene(item: tuple[int, int, int]) -> Picture:
    return compose(*item)
