"""A user's own folder of pictures and label masks, with two classes or more.

`dataset.root` holds pictures and masks of equal names (layouts: `vision.folders`) and ``classes.yaml``, which names the
classes and says how masks show them (`vision.class_list`). Superpixels and features are made from the pictures as for the
horses (`vision.pictures`); descriptors look at 15 and 30 pixels, so pictures with sides of 150 to 500 pixels suit them, and
larger ones are better reduced before. `vision.picture_files` says which files can be read. Masks are drawn on the upright
picture.

Two classes, the second of which is the foreground, make the structure `segmentation`, whose oracle is exact; more make
`potts`, with the options of `PottsOptions`. Void pixels count for nothing. `dataset.unseen_classes`: a class that no
training mask shows is an ``error`` (default), or is ``count``-ed as wrong wherever a test mask shows it.

New input for `encoder`: pictures, as `vision.reader.PictureEncoder` describes."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated

import numpy as np

from gapwise.records import Record
from gapwise.stages.datasets import DataError, MapBlocks, Report, Sink
from gapwise.stages.datasets.common.options import Natural, Share, Values, one_of
from gapwise.stages.datasets.vision.class_list import ClassList, read_classes
from gapwise.stages.datasets.vision.classes import PottsOptions, tally_classes
from gapwise.stages.datasets.vision.folders import Pair, find_pairs, lists_in
from gapwise.stages.datasets.vision.masked_picture import load_masked
from gapwise.stages.datasets.vision.own_columns import ModelOptions
from gapwise.stages.datasets.vision.pictures import FeatureOptions, featurize_pictures, write_specimen
from gapwise.stages.datasets.vision.reader import PictureReader
from gapwise.stages.datasets.vision.superpixels import tally_labelled
from gapwise.stages.problems.void import VOID

CLASSES = "classes.yaml"


@dataclass(frozen=True)
class Images(PictureReader):
    """The pictures with their masks."""

    root: Annotated[Path, Values(f"the folder that holds images/, masks/ and {CLASSES}")]
    features: FeatureOptions
    potts: PottsOptions
    test_fraction: Share = 0.25
    unseen_classes: Annotated[str, one_of("error", "count")] = "error"
    seed: Natural = 0
    needs = (*PictureReader.needs, "yaml")

    def __post_init__(self) -> None:
        if not self.root.is_dir():
            raise DataError(f"dataset.root: {self.root} is no folder; give one with images/, masks/ and {CLASSES}")
        self.files()

    @functools.cached_property
    def classes(self) -> ClassList:
        """The classes of the masks."""
        if not (self.root / CLASSES).is_file():
            raise DataError(
                f"{self.root / CLASSES}: missing; it names the classes, such as 'classes: [background, horse]'"
            )
        return read_classes(self.root / CLASSES)

    @functools.cached_property
    def pairs(self) -> Mapping[str, Mapping[str, Pair]]:
        """Picture and mask of every example by name, for each split."""
        return find_pairs(self.root, self.test_fraction, self.seed)

    @property
    def structure(self) -> str:
        """Exact for two classes."""
        return "segmentation" if len(self.classes.names) == 2 else "potts"

    def files(self) -> dict[str, Path]:
        """The classes, and all pictures and masks, and the lists of the splits, by their paths below `root`."""
        classes = self.classes.file
        pairs = [path for split in self.pairs.values() for pair in split.values() for path in pair]
        paths = {path.relative_to(self.root).as_posix(): path for path in pairs}
        return {**paths, **lists_in(self.root), CLASSES: classes}

    def featurize(self, sink: Sink, map_blocks: MapBlocks, report: Report) -> Record:
        """Read all files once to check them, then write the blocks of both splits; see `featurize_pictures`."""
        items = {split: list(pairs.values()) for split, pairs in self.pairs.items()}
        self._check(items, map_blocks, report)
        two, count = len(self.classes.names) == 2, len(self.classes.names)
        facts = featurize_pictures(
            partial(load_masked, classes=self.classes), items, self.features, self.seed, sink, map_blocks, report,
            count=tally_labelled if two else partial(tally_classes, count=count),
        )  # fmt: skip
        facts |= {
            "class_names": list(self.classes.names),
            "images": {split: list(pairs) for split, pairs in self.pairs.items()},
        }
        if self.classes.by_colour:
            facts |= {"class_colours": [list(colour) for colour in self.classes.marks]}  # type: ignore[arg-type]
        if two:
            return facts | ModelOptions(potts=self.potts.potts, loss=self.potts.loss).facts()
        return facts | {"classes": count, **self.potts.facts()}

    def specimen(self, sink: Sink) -> Record:
        if self.structure == "segmentation":
            return write_specimen(sink) | ModelOptions(potts=self.potts.potts, loss=self.potts.loss).facts()
        return write_specimen(sink) | {"classes": 3, **self.potts.facts()}

    def _check(self, items: Mapping[str, list[Pair]], map_blocks: MapBlocks, report: Report) -> None:
        """Decode every file; DataError for the first bad one, or for a class or split without a labelled pixel."""
        names, file = self.classes.names, self.classes.file
        tasks = [pair for split in ("train", "test") for pair in items[split]]
        work, pixels = partial(_pixels, classes=self.classes), np.zeros((len(tasks), VOID + 1))
        for done, size in enumerate(map_blocks(work, tasks), 1):
            pixels[done - 1] = size
            report(done, len(tasks), "checking pictures and masks")
        void, pixels = pixels[:, VOID].any(), pixels[:, : len(names)]
        train, test = np.split(pixels, [len(items["train"])])
        for split, counts, use in (("training", train, "learn from"), ("test", test, "test on")):
            if not counts.any():
                raise DataError(f"{self.root}: all pixels of the {split} masks are void, so there is nothing to {use}")
        unseen = np.flatnonzero(~train.any(axis=0))
        few = len(names) - unseen.size < 2
        if unseen.size and (self.unseen_classes == "error" or few):
            name, tested = names[unseen[0]], test[:, unseen[0]] > 0
            shown = f", only {items['test'][np.argmax(tested)][1]}" if tested.any() else " and no test mask"
            advice = "choose the training pictures by a list (train.txt)"
            if few and void and not test[:, unseen].any():
                mark = [*self.classes.void] if isinstance(self.classes.void, tuple) else self.classes.void
                advice = (
                    f"all other pixels are void ({mark}); if {mark} marks {name}, give it to that class, not to void"
                )
            elif not few:
                advice += ", leave the class out, or set dataset.unseen_classes=count"
            raise DataError(f"{file}: no training mask shows the class {name}{shown}; {advice}")


def _pixels(item: Pair, classes: ClassList) -> np.ndarray:
    """int64 (VOID + 1,): pixels of each class of one picture, and of void, whose files are checked."""
    return np.bincount(load_masked(item, classes).mask.ravel(), minlength=VOID + 1)
