"""A feature store, and the part of it that suffices to encode new inputs elsewhere: its facts and shared arrays."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from gapwise.stages.datasets import Encoded, FeatureMap
from gapwise.stages.featurize import featurize
from gapwise.stages.problems import build
from gapwise.storage.features import open_features

TRUTH = {"labels", "foreground", "mask", "rgb", "decode_only", "text"}
"""Arrays of a test split that new input cannot have, or need not repeat."""


def made(options: dict, folder: Path) -> tuple[FeatureMap, dict[str, np.ndarray]]:
    """The feature map of a store made with `options`, from nothing but facts and shared arrays; and the test split."""
    store = folder / "store"
    featurize(options, store, key="k", map_blocks=map, report=lambda done, total, activity: None)
    features = open_features(store)
    shared = {file.stem: np.load(file, allow_pickle=False) for file in (store / "shared").glob("*.npy")}
    return FeatureMap(features.meta, shared), dict(features.arrays("test"))


def check_same_bits(encoded: Encoded, stored: dict[str, np.ndarray], pictures: bool = False) -> None:
    """Compare every array of the test split but the truth; with `pictures` also the maps, of which the store keeps few."""
    apart = TRUTH | ({"superpixel_map", "hw"} if pictures else set())
    names = {name for name in stored if name.removesuffix("_ptr") not in apart}
    assert names <= encoded.arrays.keys()
    for name in sorted(names):
        first, second = encoded.arrays[name], stored[name]
        assert (first.dtype, first.shape) == (second.dtype, second.shape), name
        assert first.tobytes() == second.tobytes(), name
    assert encoded.arrays["labels"].dtype == stored["labels"].dtype
    if pictures:
        shown = len(stored["superpixel_map"])
        assert shown
        assert encoded.arrays["superpixel_map"].dtype == stored["superpixel_map"].dtype
        assert (encoded.arrays["superpixel_map"][:shown] == stored["superpixel_map"]).all()
        assert (encoded.arrays["hw"][: len(stored["hw"])] == stored["hw"]).all()
        assert len(encoded.arrays["hw"]) == len(stored["area_ptr"]) - 1
    problem = build(encoded.structure, encoded.arrays, encoded.meta)
    assert not problem.truth.any()
    assert problem.d == encoded.meta.get("d", problem.d)
