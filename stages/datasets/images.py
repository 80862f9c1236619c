"""A user's own folder of pictures and label masks, with two classes or more.

`dataset.root` holds ``classes.yaml``, which names the classes and says how masks show them (`vision.masks`), and pictures
and masks of equal names:

* ``images/`` and ``masks/``, with ``train.txt`` or ``test.txt`` (or both): a name a line, without its ending or with it; or
* ``train/images``, ``train/masks``, ``test/images`` and ``test/masks``; or
* ``images/`` and ``masks/`` alone: a share of them, drawn at random, is for test.

 Superpixels and features are made from the pictures as for the
horses (`vision.pictures`); descriptors look at 15 and 30 pixels, so pictures with sides of 150 to 500 pixels suit them, and
larger ones are better reduced before. `vision.files` says which files can be read. Masks are drawn on the upright
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
from gapwise.stages.datasets.common.files import read_lines
from gapwise.stages.datasets.common.options import Natural, Share, Values, one_of
from gapwise.stages.datasets.vision.files import ENDINGS, by_name
from gapwise.stages.datasets.vision.masks import ClassList, load_masked, read_classes
from gapwise.stages.datasets.vision.options import ModelOptions, PottsOptions
from gapwise.stages.datasets.vision.pictures import featurize_pictures
from gapwise.stages.datasets.vision.reader import PictureReader
from gapwise.stages.datasets.vision.superpixels import tally, tally_classes
from gapwise.stages.problems.losses import VOID

CLASSES = "classes.yaml"
MASKS = (".png", ".bmp", ".tif", ".tiff", ".gif", ".pgm", ".ppm", ".jpg", ".jpeg")
LISTS = {"train": "train.txt", "test": "test.txt"}
Pair = tuple[Path, Path]


@dataclass(frozen=True)
class Images(PictureReader):
    """The pictures with their masks."""

    root: Annotated[Path, Values(f"the folder that holds images/, masks/ and {CLASSES}")]
    potts: PottsOptions
    test_fraction: Share = 0.25
    unseen_classes: Annotated[str, one_of("error", "count")] = "error"
    seed: Natural = 0
    needs = (*PictureReader.needs, "yaml")
    version = 2

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
        pairs = [path for split in self.pairs.values() for pair in split.values() for path in pair]
        paths = [self.classes.file, *lists_in(self.root).values(), *pairs]
        return {path.relative_to(self.root).as_posix(): path for path in paths}

    def featurize(self, sink: Sink, map_blocks: MapBlocks, report: Report) -> Record:
        """Read all files once to check them, then write the blocks of both splits; see `featurize_pictures`."""
        items = {split: list(pairs.values()) for split, pairs in self.pairs.items()}
        self._check(items, map_blocks, report)
        count = partial(tally_classes, count=len(self.classes.names)) if self.structure == "potts" else tally
        load = partial(load_masked, classes=self.classes)
        facts = featurize_pictures(load, items, self.features, self.seed, sink, map_blocks, report, count=count)
        images = {split: list(pairs) for split, pairs in self.pairs.items()}
        return facts | {"images": images} | self.classes.facts() | self.facts()

    def facts(self) -> Record:
        if self.structure == "potts":
            return {"classes": len(self.classes.names), **self.potts.facts()}
        return ModelOptions(potts=self.potts.potts, loss=self.potts.loss).facts()

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
                mark = self.classes.shown(int(self.classes.void or 0))
                advice = f"all other pixels are void ({mark}); if that marks {name}, give it to that class, not to void"
            elif not few:
                advice += ", leave the class out, or set dataset.unseen_classes=count"
            raise DataError(f"{file}: no training mask shows the class {name}{shown}; {advice}")


def _pixels(item: Pair, classes: ClassList) -> np.ndarray:
    """int64 (VOID + 1,): pixels of each class of one picture, and of void, whose files are checked."""
    return np.bincount(load_masked(item, classes).mask.ravel(), minlength=VOID + 1)


def find_pairs(root: Path, test_fraction: float, seed: int) -> dict[str, dict[str, Pair]]:
    """Picture and mask of every example by name, for the splits "train" and "test"; DataError names what is missing."""
    if (root / "train").is_dir() and (root / "test").is_dir():
        return {split: _pairs(root / split) for split in LISTS}
    if not ((root / "images").is_dir() and (root / "masks").is_dir()):
        raise DataError(
            f"dataset.root={root}: expected the folders images/ and masks/ in it, or train/ and test/ with these two each"
        )
    pairs = _pairs(root)
    lists = {split: root / name for split, name in LISTS.items() if (root / name).is_file()}
    chosen = _listed(lists, pairs) if lists else _drawn(root, sorted(pairs), test_fraction, seed)
    return {split: {name: pairs[name] for name in chosen[split]} for split in LISTS}


def lists_in(root: Path) -> dict[str, Path]:
    """The lists that `find_pairs` reads, by their names."""
    if (root / "train").is_dir() and (root / "test").is_dir():
        return {}
    return {name: root / name for name in LISTS.values() if (root / name).is_file()}


def _pairs(folder: Path) -> dict[str, Pair]:
    """Pictures and masks below a folder by their common names, sorted."""
    pictures, masks = by_name(folder / "images"), by_name(folder / "masks", MASKS)
    for name, path in pictures.items():
        if name not in masks:
            raise DataError(f"{path}: has no mask; expected {folder / 'masks' / name}.png")
    for name, path in masks.items():
        if name not in pictures:
            raise DataError(f"{path}: has no picture; expected {folder / 'images' / name}.jpg, .png or the like")
    if not pictures:
        raise DataError(f"{folder / 'images'}: holds no pictures ({', '.join(ENDINGS)})")
    return {name: (pictures[name], masks[name]) for name in sorted(pictures)}


def _listed(lists: Mapping[str, Path], pairs: Mapping[str, Pair]) -> dict[str, list[str]]:
    """Names of the splits, from one list or two. With one list, all other names are in the other split; with two, unused."""
    chosen: dict[str, list[str]] = {}
    seen: dict[str, str] = {}
    for split, file in lists.items():
        chosen[split] = []
        for number, line in enumerate(read_lines(file), 1):
            name = line.partition("#")[0].strip()
            if not name:
                continue
            where = f"{file}: line {number}"
            name = name if name in pairs else Path(name).stem
            if name not in pairs:
                raise DataError(f"{where}: there is no picture {line.strip()!r} in images/")
            if name in seen:
                raise DataError(f"{where}: {name} was on {seen[name]} already")
            seen[name] = f"line {number} of {file.name}"
            chosen[split].append(name)
        if not chosen[split]:
            raise DataError(f"{file}: names no picture")
    for split in LISTS:
        if split not in chosen:
            chosen[split] = [name for name in pairs if name not in seen]
            if not chosen[split]:
                raise DataError(f"{next(iter(lists.values()))}: names all pictures, so none are left to {split}")
    return chosen


def _drawn(root: Path, names: list[str], share: float, seed: int) -> dict[str, list[str]]:
    """A random share for test, at least one picture each."""
    if len(names) < 2:
        raise DataError(
            f"{root / 'images'}: holds {len(names)} picture; expected one to train and one to test at least"
        )
    count = min(max(round(share * len(names)), 1), len(names) - 1)
    order = [names[k] for k in np.random.default_rng(seed).permutation(len(names))]
    return {"train": sorted(order[count:]), "test": sorted(order[:count])}
