"""Pictures and masks of equal names in a user's folders, and which of them train.

* ``images/`` and ``masks/``, with ``train.txt`` or ``test.txt`` (or both): a name a line, without its ending or with it; or
* ``train/images``, ``train/masks``, ``test/images`` and ``test/masks``; or
* ``images/`` and ``masks/`` alone: a share of them, drawn at random, is for test.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from gapwise.stages.datasets import DataError
from gapwise.stages.datasets.common.files import read_lines
from gapwise.stages.datasets.vision.picture_files import ENDINGS, by_name

MASKS = (".png", ".bmp", ".tif", ".tiff", ".gif", ".pgm", ".ppm", ".jpg", ".jpeg")
LISTS = {"train": "train.txt", "test": "test.txt"}
Pair = tuple[Path, Path]


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
