"""Weizmann horses: the fixed split, the same pixels from either layout, and errors for bad folders."""

from __future__ import annotations

import tarfile
from pathlib import Path

import numpy as np
import pytest
from memory_sink import problems, read
from PIL import Image

from gapwise.stages.datasets import DataError, open_dataset, weizmann
from gapwise.stages.datasets.vision.horse_scenes import compose

FIRST = ["horse231", "horse311", "horse180", "horse316"]
"""The first training images: the split must never change."""

TINY = {"n_train": 2, "n_test": 1, "superpixels": 40, "colour_words": 6, "sift_words": 7}


@pytest.fixture
def horses(shared_data) -> Path:
    return shared_data / "horses"


@pytest.fixture
def originals(tmp_path) -> Path:
    """Three scenes in the publisher's layout, masks larger than photographs."""
    for number in range(3):
        picture = compose(0, 0, number)
        for folder, pixels, size in (
            ("rgb", picture.rgb, (160, 120)),
            ("figure_ground", picture.mask * 255, (240, 180)),
        ):
            (tmp_path / folder).mkdir(exist_ok=True)
            Image.fromarray(pixels).resize(size).save(tmp_path / folder / f"horse{number:03d}.jpg", quality=95)
    return tmp_path


def featurize(root: Path, **options):
    return read(open_dataset("weizmann", {"root": str(root), **TINY, **options}))


def test_split__has_147_and_181_images_and_keeps_twins_together():
    names = [f"horse{number:03d}" for number in range(1, 329)]
    for wanted in (147, *range(1, 40)):
        train, test = weizmann.split(names[::-1], wanted)
        assert (len(train), len(test)) == (wanted, 328 - wanted)
        assert sorted(train + test) == names
        for pair in weizmann.TWINS:
            assert set(pair) <= set(train) or set(pair) <= set(test)
    assert weizmann.split(names, 147)[0][:4] == FIRST


def test_weizmann__reads_the_real_photographs(horses):
    reader = open_dataset("weizmann", {**TINY, "root": horses, "superpixels": 147})
    assert reader.files() == {"pictures": horses / "weizmann_horses_160.npz"}
    train, test, sink, meta = problems(reader)
    assert (train.n, test.n) == (2, 1)
    assert meta["images"]["train"] == FIRST[:2]
    sizes = np.diff(train.label_ptr)
    assert ((sizes > 100) & (sizes < 200)).all()
    assert sink.arrays("test")["hw"].max() == 160


def test_weizmann__makes_the_same_pixels_from_the_originals_as_the_npz_holds(horses):
    stored = weizmann._open_npz(horses / weizmann.NPZ)
    for name in ("horse001", "horse028", "horse262", "horse318"):
        made = weizmann._load_original(name, str(horses / weizmann.TAR))
        assert (made.mask == stored[name].mask).all(), name
        assert (made.rgb == stored[name].rgb).all(), name


def test_weizmann__reads_folders_and_tar_alike(originals, tmp_path_factory):
    packed = tmp_path_factory.mktemp("packed")
    with tarfile.open(packed / weizmann.TAR, "w") as tar:
        for folder in ("rgb", "figure_ground"):
            tar.add(originals / folder, arcname=folder)
    (from_folders, meta), (from_tar, _) = featurize(originals), featurize(packed)
    assert sorted(meta["images"]["train"] + meta["images"]["test"]) == ["horse000", "horse001", "horse002"]
    for name, array in from_folders.arrays("train").items():
        assert (from_tar.arrays("train")[name] == array).all(), name


def test_weizmann__allows_a_mask_with_one_class(originals):
    for path in (originals / "figure_ground").iterdir():
        Image.fromarray(np.zeros((180, 240), np.uint8)).save(path)
    sink, _ = featurize(originals)
    assert not sink.arrays("train")["labels"].any()


def test_weizmann__names_an_image_without_a_mask(originals):
    (originals / "figure_ground" / "horse001.jpg").unlink()
    with pytest.raises(DataError, match=r"rgb/horse001\.jpg has no mask"):
        featurize(originals)
