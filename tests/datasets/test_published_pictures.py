"""Weizmann, Stanford Background and MSRC: layouts, class counts, void pixels, fixed splits, and errors for bad folders."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import numba
import numpy as np
import pytest
from memory_sink import problems, read
from PIL import Image

from gapwise.stages.datasets import DataError, open_dataset, specimen, weizmann
from gapwise.stages.datasets.msrc import USUAL
from gapwise.stages.datasets.vision.horse_scenes import compose
from gapwise.stages.datasets.vision.superpixels import tally_classes
from gapwise.stages.problems import build
from gapwise.stages.problems.capabilities import certainty_of
from gapwise.stages.problems.losses import VOID

SMALL = {"superpixels": 30, "colour_words": 6, "sift_words": 7}
FIRST = ["horse231", "horse311", "horse180", "horse316"]
"""The first training images of Weizmann: the split must never change."""


def scene(number: int) -> tuple[np.ndarray, np.ndarray]:
    """A photograph and classes 0..2 of its pixels, a corner of which is void (-1)."""
    picture = compose(0, 0, number)
    classes = picture.mask.astype(int)
    classes[: len(classes) // 3][classes[: len(classes) // 3] == 0] = 2
    classes[-20:, :30] = -1
    return picture.rgb, classes


def jpeg(rgb: np.ndarray, size: tuple[int, int] | None = None) -> bytes:
    out, image = io.BytesIO(), Image.fromarray(rgb)
    (image if size is None else image.resize(size)).save(out, "JPEG", quality=95)
    return out.getvalue()


def write_tar(path: Path, files: dict[str, bytes]) -> None:
    with tarfile.open(path, "w") as tar:
        for name, data in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))


def check(train, test, sink, meta):
    """Void superpixels have no features in training, and no loss."""
    assert (train.n, test.n, train.classes) == (2, 1, meta["classes"])
    assert certainty_of(train) == "upper-bounded"
    arrays = sink.arrays("train")
    void = arrays["labels"] == VOID
    assert void.any()
    assert not arrays["unary"][void].any()
    assert arrays["unary"][~void].any(axis=1).all()
    assert not train.images.loss_if_wrong[void].any()
    other = sink.arrays("test")
    assert other["unary"].any(axis=1).all()  # void ones too: they are neighbours
    assert other["hw_ptr"][-1] == 1


def check_specimen(options, train):
    """What is compiled while features are made is what the solver will call."""
    encoded = specimen(options)
    assert numba.typeof(build(encoded.structure, encoded.arrays, encoded.meta)) == numba.typeof(train)


def test_tally__takes_the_class_of_most_labelled_pixels():
    regions = np.array([[0, 0, 1, 1], [0, 0, 1, 2]])
    classes = np.array([[2, 2, VOID, VOID], [1, VOID, 0, VOID]], np.uint8)
    counted = tally_classes(regions, classes, 3)
    assert counted["labels"].tolist() == [2, VOID, VOID]
    assert counted["area"].tolist() == [3.0, 1.0, 0.0]
    assert counted["counts"].tolist() == [[0, 1, 2], [1, 0, 0], [0, 0, 0]]


def test_stanford__reads_supplied_features(tmp_path):
    """Three scenes: superpixels are squares of 20 pixels, features are random."""
    scenes = [scene(k) for k in range(3)]
    write_tar(tmp_path / "images.tar", {f"{k:07d}.jpg": jpeg(rgb) for k, (rgb, _) in enumerate(scenes)})
    rows, columns = np.indices((120, 160)) // 20
    np.savez(
        tmp_path / "stanford_bg_99.npz", id=np.array([f"{k:07d}" for k in range(3)]), hw=np.tile([120, 160], (3, 1)),
        superpixel=np.tile((8 * rows + columns).ravel(), 3), gt=np.concatenate([c.ravel() + 1 for _, c in scenes]),
        pix_offset=120 * 160 * np.arange(4), sp_offset=48 * np.arange(4), edge_offset=47 * np.arange(4),
        edges=np.tile([(p, p + 1) for p in range(47)], (3, 1)),
    )  # fmt: skip
    feat = np.random.default_rng(0).random((3 * 48, 519))
    feat[:, 400:406] *= 255
    features = tmp_path / "stanford_bg_99_features.npz"
    np.savez(features, feat=feat.astype(np.float32))
    train, test, sink, meta = problems(open_dataset("stanford", {"root": tmp_path, "n_train": 2}))
    check(train, test, sink, meta)
    check_specimen({"name": "stanford", "root": tmp_path}, train)
    assert train.d == 8 * 520 + 34
    unary = sink.arrays("test")["unary"]
    assert unary[:, 0].tolist() == [1.0] * len(unary)
    assert 0.0 <= unary.min() <= unary.max() <= 1.0
    np.savez(features, feat=-np.ones((meta["n_train"], 3)))
    with pytest.raises(DataError, match=r"feat is \(2, 3\), expected 519 columns"):
        read(open_dataset("stanford", {"root": tmp_path}))


def test_msrc__drops_horse_and_mountain(tmp_path):
    pixels, sizes, jpegs = [], [], {}
    for number in range(3):
        rgb, classes = scene(number)
        pixels.append(np.array([0, 5, 8, 19], np.uint8)[classes + 1].ravel())  # void, horse, mountain, road
        sizes.append(classes.shape)
        jpegs[f"{number}_s.jpg"] = jpeg(rgb)
    write_tar(tmp_path / "images_jpg.tar", jpegs)
    labels = {"id": np.array([f"{k}_s" for k in range(3)]), "hw": np.array(sizes, np.int16),
              "offset": np.cumsum([0, *(h * w for h, w in sizes)]), "gt23": np.concatenate(pixels)}  # fmt: skip
    np.savez(tmp_path / "msrc_v2_labels.npz", **labels)
    options = {"root": tmp_path, "n_train": 2, **SMALL}
    train, test, sink, meta = problems(open_dataset("msrc", options))
    check_specimen({"name": "msrc", **options}, train)
    check(train, test, sink, meta)
    assert set(sink.arrays("train")["labels"].tolist()) == {USUAL.index("road"), VOID}
    assert (meta["classes"], len(meta["class_names"])) == (21, 21)
    np.savez(tmp_path / "msrc_v2_labels.npz", **labels | {"hw": labels["hw"][:, ::-1]})
    with pytest.raises(DataError, match=r"_s\.jpg is 160 x 120 pixels, but its labels in .* are 120 x 160 pixels"):
        read(open_dataset("msrc", options))


def horses(folder: Path, **changed: bytes | None) -> dict[str, object]:
    """Options for three scenes in the publisher's layout, masks larger than photographs."""
    files = {}
    for number in range(3):
        picture = compose(0, 0, number)
        files[f"rgb/horse{number:03d}"] = jpeg(picture.rgb, (160, 120))
        files[f"figure_ground/horse{number:03d}"] = jpeg(picture.mask * 255, (240, 180))
    given = {name.replace("_", "/"): contents for name, contents in changed.items()}
    given = {name.replace("figure/ground", "figure_ground"): contents for name, contents in given.items()}
    kept = {f"{name}.jpg": contents for name, contents in (files | given).items() if contents is not None}
    write_tar(folder / weizmann.TAR, kept)
    return {"root": str(folder), "n_train": 2, "n_test": 1, **SMALL}


def test_weizmann__reads_photographs_and_masks_of_other_sizes(tmp_path):
    black = jpeg(np.zeros((120, 160, 3), np.uint8))
    grey, empty = jpeg(np.full((120, 160), 99, np.uint8)), jpeg(np.zeros((180, 240), np.uint8))
    options = horses(tmp_path, rgb_horse001=black, gray_horse001=grey, figure_ground_horse001=empty)
    sink, meta = read(open_dataset("weizmann", options | {"n_test": None}))
    names = [*meta["images"]["train"], *meta["images"]["test"]]
    assert sorted(names) == ["horse000", "horse001", "horse002"]
    assert sink.arrays("test")["hw"].tolist() == [[120, 160]]
    loaded = weizmann._load(("horse001", black, empty, grey))  # horse318: the colour file is black
    assert set(np.unique(loaded.rgb)) == {99}
    assert not loaded.mask.any()
    scenes = {name: compose(0, 0, int(name[-1])) for name in ("horse000", "horse002")}
    shares = {name: scene.mask.mean() for name, scene in scenes.items()} | {"horse001": 0.0}
    arrays = sink.arrays("train")
    for k, name in enumerate(meta["images"]["train"]):
        part = slice(*arrays["area_ptr"][k : k + 2])
        assert arrays["foreground"][part].sum() / arrays["area"][part].sum() == pytest.approx(shares[name], abs=0.01)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"figure_ground_horse001": None}, r"original\.tar: has no figure_ground/horse001\.jpg"),
        ({"rgb_horse000": b"no picture"}, r"original\.tar: rgb/horse000\.jpg: cannot be decoded"),
        (
            {"rgb_horse000": jpeg(np.ones((90, 90, 3), np.uint8))},
            r"figure_ground/horse000\.jpg: is 240 x 180 pixels but",
        ),
    ],
)
def test_weizmann__names_the_picture_that_is_wrong(tmp_path, changed, message):
    with pytest.raises(DataError, match=message):
        read(open_dataset("weizmann", horses(tmp_path, **changed)))


def test_weizmann__split_has_147_and_181_images_and_keeps_twins_together():
    names = [f"horse{number:03d}" for number in range(1, 329)]
    for wanted in (147, *range(1, 40)):
        train, test = weizmann.split(names[::-1], wanted)
        assert (len(train), len(test)) == (wanted, 328 - wanted)
        assert sorted(train + test) == names
        for pair in weizmann.TWINS:
            assert set(pair) <= set(train) or set(pair) <= set(test)
    assert weizmann.split(names, 147)[0][:4] == FIRST


@pytest.mark.parametrize(
    ("name", "files"),
    [
        ("weizmann", "weizmann_horses_original.tar"), ("stanford", "stanford_bg_99.npz"), ("msrc", "msrc_v2_labels.npz"),
        ("lsp", "lspet_1000_images.tar"), ("hdseg", "data/horse-features.bin"),
    ],
)  # fmt: skip
def test_folders__without_the_files_are_named(tmp_path, name, files):
    with pytest.raises(DataError, match=f"dataset.root: {tmp_path} holds none of {files}"):
        open_dataset(name, {"root": str(tmp_path)})


def test_real_data__have_the_sizes_of_their_sources(shared_data):
    reader = open_dataset("stanford", {"root": shared_data / "stanford_bg"})
    assert sorted(reader.files()) == ["images.tar", "stanford_bg_99.npz", "stanford_bg_99_features.npz"]
    with np.load(shared_data / "stanford_bg" / "stanford_bg_99.npz") as file:
        assert file["sp_offset"][-1] == 48402
    masks = open_dataset("msrc", {"root": shared_data / "msrc_v2"})._masks()
    assert len(masks) == 591
    assert {int(k) for mask in masks.values() for k in np.unique(mask)} == {*range(21), VOID}
    options = {"root": shared_data / "horses", "n_train": 2, "n_test": 1, **SMALL, "superpixels": 147}
    train, test, sink, meta = problems(open_dataset("weizmann", options))
    assert (train.n, test.n, meta["images"]["train"]) == (2, 1, FIRST[:2])
    sizes = np.diff(train.label_ptr)
    assert ((sizes > 100) & (sizes < 200)).all()
    assert sink.arrays("test")["hw"].max() == 160
