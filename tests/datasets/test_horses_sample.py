"""The composed scenes: made only of pictures that the wheel ships, with the same bits wherever they are computed."""

from __future__ import annotations

import hashlib
import importlib.metadata
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from memory_sink import MemorySink, problems, read

from gapwise.stages.datasets import OptionError, open_dataset
from gapwise.stages.datasets.vision.horse_scenes import FILES, compose

TINY = {"n_train": 3, "n_test": 8, "superpixels": 40, "colour_words": 8, "sift_words": 12}


def digest(sink: MemorySink) -> str:
    """Of all arrays of both splits."""
    state = hashlib.sha256()
    for split in ("train", "test"):
        for name, array in sorted(sink.arrays(split).items()):
            state.update(f"{split} {name} {array.dtype} {array.shape}".encode() + array.tobytes())
    return state.hexdigest()


def test_scenes__use_only_pictures_inside_the_wheel():
    shipped = {str(file) for file in importlib.metadata.files("scikit-image") or ()}
    assert {f"skimage/data/{name}" for name in FILES} <= shipped


def test_compose__is_a_function_of_its_arguments():
    first, again = compose(0, 1, 5), compose.__wrapped__(0, 1, 5)
    assert (first.rgb == again.rgb).all()
    assert (first.mask == again.mask).all()
    for other in (compose(1, 1, 5), compose(0, 0, 5), compose(0, 1, 6)):
        assert (first.rgb != other.rgb).any()


def test_horses_sample__makes_the_arrays_of_the_segmentation_structure():
    train, test, sink, meta = problems(open_dataset("horses_sample", TINY))
    assert (train.n, test.n) == (3, 8)
    assert meta["d_unary"] == 1 + 3 * (16 + 8 + 12)
    assert train.d == meta["d_unary"] + 100
    arrays = sink.arrays("test")
    assert (np.diff(arrays["hw_ptr"]) == [1] * 6 + [0] * 2).all()
    assert (arrays["hw"] == [120, 160]).all()
    assert arrays["superpixel_map"].shape == arrays["mask"].shape == (6 * 120 * 160,)
    size = arrays["unary_ptr"][1]
    assert (np.bincount(arrays["superpixel_map"][: 120 * 160]) == arrays["area"][:size]).all()
    assert arrays["foreground"][:size].sum() == arrays["mask"][: 120 * 160].sum()
    assert "rgb" not in sink.arrays("train")


def test_horses_sample__scenes_do_not_depend_on_how_many_there_are():
    few, many = (read(open_dataset("horses_sample", {**TINY, "n_test": n}))[0].arrays("test") for n in (1, 2))
    assert (few["unary"] == many["unary"][: len(few["unary"])]).all()


def test_horses_sample__gives_the_same_bits_with_one_and_two_workers():
    reader = open_dataset("horses_sample", TINY)
    serial, _ = read(reader)
    spread = MemorySink("segmentation")
    with ThreadPoolExecutor(2) as workers:
        reader.featurize(spread, workers.map, lambda *_: None)
    assert digest(serial) == digest(spread)


def test_validation__scenes_are_more_scenes_and_change_no_other():
    sink, meta = read(open_dataset("horses_sample", TINY))
    more, facts = read(open_dataset("horses_sample", {**TINY, "validation": "scenes", "n_validation": 2}))
    assert digest(more) == digest(sink)
    assert (facts["n_train"], facts["n_validation"], facts["n_test"]) == (3, 2, 8)
    labels = more.arrays("validation")["labels_ptr"]
    assert labels.size == 3
    assert "n_validation" not in meta
    assert (compose(0, 2, 0).rgb != compose(0, 1, 0).rgb).any()
    with pytest.raises(OptionError, match=r"dataset\.n_validation: expected a whole number >= 1, got 0"):
        open_dataset("horses_sample", {**TINY, "validation": "scenes", "n_validation": 0})
