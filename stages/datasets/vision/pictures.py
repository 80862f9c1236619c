"""From pictures with masks to blocks of the segmentation structure, in two parallel passes over the pictures: the first
learns the vocabularies on training pictures, the second writes all blocks. `reader` encodes others with them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from gapwise.records import Record
from gapwise.stages.datasets import DataError, MapBlocks, Report, Sink
from gapwise.stages.datasets.vision.features import (
    Words,
    dense_sift,
    features_of,
    keypoints,
    learn_words,
    sizes_of,
    unary_features,
)
from gapwise.stages.datasets.vision.options import FeatureOptions
from gapwise.stages.datasets.vision.superpixels import adjacency, segment, tally, to_lab

SHOWN = 6
"""Number of test pictures kept for the figures."""


class Picture(NamedTuple):
    """One picture and its mask."""

    rgb: np.ndarray
    """uint8 (H, W, 3)"""
    mask: np.ndarray
    """uint8 (H, W), 1 = foreground; or the class of each pixel"""


Tally = Callable[[np.ndarray, np.ndarray], dict[str, np.ndarray]]
"""tally(regions, mask): labels and areas of the superpixels of a block, such as `superpixels.tally`; must be picklable,
like `Load`."""

Item = Any
"""What a reader's `Load` makes a picture of: a path, or a number."""

Load = Callable[[Item], Picture]
"""Makes the picture of an item; a module-level function or a `partial` of it, so that it can be sent to workers."""


def _sample(
    numbered: tuple[int, Item], load: Load, options: FeatureOptions, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Rows for the two vocabularies from training picture number `numbered[0]`."""
    number, item = numbered
    rng = np.random.default_rng([seed, number])
    rgb = load(item).rgb
    colours = to_lab(rgb).reshape(-1, 3)
    raster = len(keypoints(*rgb.shape[:2]))
    pick = partial(rng.choice, replace=False, shuffle=False)
    drawn = colours[pick(len(colours), min(options.colour_samples, len(colours)))]
    chosen = np.asarray(pick(raster, min(options.sift_samples, raster)))
    return drawn, dense_sift(rgb, chosen)[1]


def described(
    rgb: np.ndarray, superpixels: int, words: Words, with_pairs: bool, own: bool
) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Superpixel map uint16 (H, W) of a picture, and its features and edges; `own`: those of `features.own_columns`."""
    import cv2

    cv2.setNumThreads(1)
    regions = segment(rgb, superpixels)
    edges = adjacency(regions)
    unary = unary_features(rgb, regions, edges, words)
    if not with_pairs:
        edges = edges[:0]
    return regions, {**features_of(unary, edges, words.widths, own), "edges": edges}


def _block(
    task: tuple[bool, Item], load: Load, words: Words, options: FeatureOptions, count: Tally, own: bool
) -> dict[str, np.ndarray]:
    """Arrays of one block; if the first of `task` is true, including the picture, for figures."""
    shown, item = task
    rgb, mask = load(item)
    regions, arrays = described(rgb, options.superpixels, words, options.pairwise, own)
    arrays |= count(regions, mask)
    return arrays | picture_arrays(regions, mask, rgb) if shown else arrays


def picture_arrays(regions: np.ndarray, mask: np.ndarray, rgb: np.ndarray) -> dict[str, np.ndarray]:
    """Arrays that keep a picture for figures."""
    return {
        "superpixel_map": regions.astype(np.uint16).ravel(),
        "mask": mask.ravel(),
        "rgb": rgb.reshape(-1, 3),
        "hw": np.array([regions.shape], dtype=np.int32),
    }


NO_PICTURE: dict[str, np.ndarray] = {
    "superpixel_map": np.zeros(0, np.uint16),
    "mask": np.zeros(0, np.uint8),
    "rgb": np.zeros((0, 3), np.uint8),
    "hw": np.zeros((0, 2), np.int32),
}
"""Arrays of a test block without a stored picture: all blocks of a split have the same arrays."""


def featurize_pictures(
    load: Load,
    items: Mapping[str, Sequence[Item]],
    options: FeatureOptions,
    seed: int,
    sink: Sink,
    map_blocks: MapBlocks,
    report: Report,
    count: Tally = tally,
    own: bool = False,
) -> Record:
    """Learn the vocabularies on `items["train"]`, then write every block of "train" and "test", and of "validation" if
    `items` has it.

    Parameters
    ----------
    load : makes the picture of an item, in a worker.   items : the items of each split, small and picklable.
    seed : draws the samples the vocabularies are learned from.
    count : labels and areas of superpixels.
    own : whether blocks have `features.own_columns`.

    Returns
    -------
    Facts for the features' meta: `d_unary`, `d_pairwise`, numbers of blocks as `n_train` etc., sizes of the vocabularies.

    Raises
    ------
    DataError : an empty split, or too few samples for the vocabularies; what `load` raises passes through.
    """
    train, test = items["train"], items["test"]
    if not train or not test:
        raise DataError(f"dataset: {len(train)} training and {len(test)} test images; at least one of each is needed")
    draws = []
    gather = partial(_sample, load=load, options=options, seed=seed)
    for done, drawn in enumerate(map_blocks(gather, list(enumerate(train))), 1):
        draws.append(drawn)
        report(done, len(train), "sampling colours and SIFT descriptors")
    report(0, 2, "learning vocabularies")
    colours, sifts = (np.concatenate(rows) for rows in zip(*draws, strict=True))
    words = Words(
        learn_words(colours, options.colour_words, seed=seed, option="colour_words"),
        learn_words(sifts, options.sift_words, seed=seed, option="sift_words"),
    )
    report(2, 2, "learning vocabularies")
    sink.put("", "colour_words", words.colour)
    sink.put("", "sift_words", words.sift)

    where = [split for split, images in items.items() for _ in images]
    shown = [split == "test" and number < SHOWN for split, images in items.items() for number in range(len(images))]
    tasks = list(zip(shown, (item for images in items.values() for item in images), strict=True))
    describe = partial(_block, load=load, words=words, options=options, count=count, own=own)
    superpixels = 0
    for done, arrays in enumerate(map_blocks(describe, tasks), 1):
        check_finite(arrays, f"image {done - 1}")
        superpixels += len(arrays["labels"])
        split = where[done - 1]
        sink.append(split, **(NO_PICTURE | arrays if split == "test" else arrays))
        report(done, len(tasks), "superpixels and features")
    return {
        **sizes_of(words.widths, own),
        **{f"n_{split}": len(images) for split, images in items.items()},
        "superpixels_mean": round(superpixels / len(tasks), 2),
        "pictures": {"superpixels": options.superpixels, "pairwise": options.pairwise, "own": own},
    }


SPECIMEN = 40
"""Superpixels of an image to compile for: enough that its features outnumber the weights as those of real images do, on
which the choice of compiled code depends (`stages.solver.block.by_margins`)."""


def write_specimen(sink: Sink) -> Record:
    """Write two training images of a row of superpixels each."""
    for number in range(2):
        labels = np.arange(SPECIMEN, dtype=np.uint8) % 2
        unary = np.stack([np.ones(SPECIMEN), number * (1 - labels), labels], axis=1)
        sink.append(
            "train",
            unary=unary.astype(np.float32),
            pairwise=np.ones((SPECIMEN - 1, 2), np.float32),
            edges=np.stack([np.arange(SPECIMEN - 1), np.arange(1, SPECIMEN)], axis=1).astype(np.int32),
            labels=labels,
            area=np.where(labels, 7.0, 5.0),
            foreground=np.where(labels, 7.0, 0.0),
        )
    return {"d_unary": 3, "d_pairwise": 2}


def check_finite(arrays: Mapping[str, np.ndarray], where: str) -> None:
    """Raise DataError, naming image and field, if a feature is NaN or infinite."""
    for name in ("unary", "pairwise"):
        if not np.isfinite(arrays[name]).all():
            row, column = np.argwhere(~np.isfinite(arrays[name]))[0]
            raise DataError(f"{where}: {name}[{row}, {column}] is {arrays[name][row, column]}; finite numbers expected")
