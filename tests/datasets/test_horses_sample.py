"""The composed scenes: made only of pictures that the wheel ships, with the same bits wherever they are computed."""

from __future__ import annotations

import hashlib
import importlib.metadata
import multiprocessing
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor

import numpy as np
import pytest
from memory_sink import MemorySink, problems, read

from gapwise.stages.datasets import DataError, OptionError, open_dataset
from gapwise.stages.datasets.vision import shipped_pictures
from gapwise.stages.datasets.vision.horse_scenes import compose, posed_horse
from gapwise.stages.datasets.vision.shipped_pictures import FILES

pytestmark = pytest.mark.slow

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


def test_shipped__names_a_picture_that_is_missing():
    with pytest.raises(DataError, match=r"no_such_horse\.png: missing"):
        shipped_pictures.shipped("no_such_horse.png")


def test_compose__is_a_function_of_its_arguments():
    first, again = compose(0, 1, 5), compose.__wrapped__(0, 1, 5)
    assert (first.rgb == again.rgb).all()
    assert (first.mask == again.mask).all()
    for other in (compose(1, 1, 5), compose(0, 0, 5), compose(0, 1, 6)):
        assert (first.rgb != other.rgb).any()


def test_compose__shows_a_horse_of_fair_size_in_every_scene():
    shares = [compose(0, 0, number).mask.mean() for number in range(147)]
    assert min(shares) > 0.03
    assert max(shares) < 0.45
    assert 0.12 < np.mean(shares) < 0.28


def test_posed_horse__differs_from_scene_to_scene():
    poses = [posed_horse(np.random.default_rng(seed)) for seed in range(6)]
    overlap = [(a & b).sum() / (a | b).sum() for k, a in enumerate(poses) for b in poses[:k]]
    assert max(overlap) < 0.85


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


def pool(kind: str) -> Executor:
    if kind == "threads":
        return ThreadPoolExecutor(2)
    return ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn"))


@pytest.mark.parametrize("kind", [pytest.param("threads", marks=pytest.mark.long), "processes"])
def test_horses_sample__gives_the_same_bits_with_one_and_two_workers(kind):
    reader = open_dataset("horses_sample", TINY)
    serial, _ = read(reader)
    spread = MemorySink("segmentation")
    with pool(kind) as workers:
        reader.featurize(spread, workers.map, lambda *_: None)
    assert digest(serial) == digest(spread)


def test_horses_sample__reports_progress_to_the_end():
    seen: dict[str, tuple[int, int]] = {}
    sink = MemorySink("segmentation")
    open_dataset("horses_sample", TINY).featurize(
        sink, map, lambda done, total, task: seen.update({task: (done, total)})
    )
    assert len(seen) == 3
    assert all(done == total for done, total in seen.values())


def test_horses_sample__lists_its_options_when_one_is_unknown():
    with pytest.raises(ValueError, match=r"dataset\.sift_wrods.*n_train.*sift_words"):
        open_dataset("horses_sample", {"name": "horses_sample", "sift_wrods": 3})


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
