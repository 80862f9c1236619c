"""Stanford Background and MSRC: layouts, class counts, void pixels, splits, and errors for bad folders."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import numba
import numpy as np
import pytest
from memory_sink import problems, read
from PIL import Image

from gapwise.stages.datasets import DataError, FeatureMap, open_dataset, specimen
from gapwise.stages.datasets.msrc import USUAL
from gapwise.stages.datasets.vision.classes import tally_classes
from gapwise.stages.datasets.vision.horse_scenes import compose
from gapwise.stages.problems import build
from gapwise.stages.problems.certainty import certainty_of
from gapwise.stages.problems.void import VOID

SMALL = {"superpixels": 30, "colour_words": 6, "sift_words": 7}


def scene(number: int) -> tuple[np.ndarray, np.ndarray]:
    """A photograph and classes 0..2 of its pixels, a corner of which is void (-1)."""
    picture = compose(0, 0, number)
    classes = picture.mask.astype(int)
    classes[: len(classes) // 3][classes[: len(classes) // 3] == 0] = 2
    classes[-20:, :30] = -1
    return picture.rgb, classes


def jpeg(rgb: np.ndarray) -> bytes:
    out = io.BytesIO()
    Image.fromarray(rgb).save(out, "JPEG", quality=95)
    return out.getvalue()


def write_tar(path: Path, files: dict[str, bytes]) -> None:
    with tarfile.open(path, "w") as tar:
        for name, data in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))


@pytest.fixture
def published(tmp_path) -> Path:
    """Three scenes in the layout of iccv09Data."""
    for folder in ("images", "labels"):
        (tmp_path / folder).mkdir()
    for number in range(3):
        rgb, classes = scene(number)
        (tmp_path / f"images/{number:07d}.jpg").write_bytes(jpeg(rgb))
        np.savetxt(tmp_path / f"labels/{number:07d}.regions.txt", classes, fmt="%d")
    return tmp_path


@pytest.fixture
def archived(tmp_path) -> Path:
    """Three scenes as .npz: superpixels are squares of 20 pixels, features are random."""
    rng, parts, jpegs = np.random.default_rng(0), {"superpixel": [], "gt": [], "edges": [], "feat": []}, {}
    sizes = []
    for number in range(3):
        rgb, classes = scene(number)
        rows, columns = np.indices(classes.shape) // 20
        regions = rows * (columns.max() + 1) + columns
        _, regions = np.unique(regions, return_inverse=True)
        regions = regions.reshape(classes.shape)
        count = int(regions.max()) + 1
        edges = np.array([(p, p + 1) for p in range(count - 1)])
        feat = rng.random((count, 519))
        feat[:, 400:406] *= 255
        for name, value in (("superpixel", regions), ("gt", classes + 1), ("edges", edges), ("feat", feat)):
            parts[name].append(value.reshape(-1) if name in ("superpixel", "gt") else value)
        sizes.append((classes.shape, count, len(edges)))
        jpegs[f"{number:07d}.jpg"] = jpeg(rgb)
    write_tar(tmp_path / "images.tar", jpegs)
    np.savez(
        tmp_path / "stanford_bg_99.npz", id=np.array([f"{k:07d}" for k in range(3)]),
        hw=np.array([size for size, _, _ in sizes], np.int16),
        superpixel=np.concatenate(parts["superpixel"]).astype(np.uint16), gt=np.concatenate(parts["gt"]).astype(np.uint8),
        pix_offset=np.cumsum([0, *(h * w for (h, w), _, _ in sizes)]), sp_offset=np.cumsum([0, *(s for _, s, _ in sizes)]),
        edges=np.concatenate(parts["edges"]).astype(np.uint16), edge_offset=np.cumsum([0, *(e for _, _, e in sizes)]),
    )  # fmt: skip
    np.savez(tmp_path / "stanford_bg_99_features.npz", feat=np.concatenate(parts["feat"]).astype(np.float32))
    return tmp_path


def test_tally__takes_the_class_of_most_labelled_pixels():
    regions = np.array([[0, 0, 1, 1], [0, 0, 1, 2]])
    classes = np.array([[2, 2, VOID, VOID], [1, VOID, 0, VOID]], np.uint8)
    counted = tally_classes(regions, classes, 3)
    assert counted["labels"].tolist() == [2, VOID, VOID]
    assert counted["area"].tolist() == [3.0, 1.0, 0.0]
    assert counted["counts"].tolist() == [[0, 1, 2], [1, 0, 0], [0, 0, 0]]


def check(train, test, sink, meta):
    """What both ways to make features share: void superpixels have no features in training, and no loss."""
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


def test_stanford__reads_the_published_layout(published):
    options = {"root": published, "features": "pictures", "n_train": 2, **SMALL}
    train, test, sink, meta = problems(open_dataset("stanford", options))
    check(train, test, sink, meta)
    check_specimen({"name": "stanford", **options}, train)
    assert train.d == 8 * (1 + 3 * (16 + 6 + 7)) + 100
    encoded = FeatureMap({**meta, "dataset": "stanford", "structure": "potts"}, sink.whole[""]).encode([scene(0)[0]])
    assert encoded.arrays["unary"].shape[1] == 88


def test_stanford__reads_supplied_features(archived):
    train, test, sink, meta = problems(open_dataset("stanford", {"root": archived, "n_train": 2}))
    check(train, test, sink, meta)
    check_specimen({"name": "stanford", "root": archived}, train)
    assert train.d == 8 * 520 + 34
    unary = sink.arrays("test")["unary"]
    assert unary[:, 0].tolist() == [1.0] * len(unary)
    assert 0.0 <= unary.min() <= unary.max() <= 1.0
    with pytest.raises(DataError, match="cannot be computed for new pictures"):
        FeatureMap({**meta, "dataset": "stanford", "structure": "potts"}, sink.whole[""])


def test_msrc__drops_horse_and_mountain(tmp_path):
    pixels, sizes, jpegs = [], [], {}
    for number in range(3):
        rgb, classes = scene(number)
        pixels.append(np.array([0, 5, 8, 19], np.uint8)[classes + 1].ravel())  # void, horse, mountain, road
        sizes.append(classes.shape)
        jpegs[f"{number}_s.jpg"] = jpeg(rgb)
    write_tar(tmp_path / "images_jpg.tar", jpegs)
    np.savez(
        tmp_path / "msrc_v2_labels.npz", id=np.array([f"{k}_s" for k in range(3)]), hw=np.array(sizes, np.int16),
        offset=np.cumsum([0, *(h * w for h, w in sizes)]), gt23=np.concatenate(pixels),
        map23_to_stanford8=np.array([0, 6, 4, 2, *[8] * 4, 7, *[8] * 10, 3, *[8] * 4], np.uint8),
    )  # fmt: skip
    options = {"root": tmp_path, "n_train": 2, **SMALL}
    train, _, sink, meta = problems(open_dataset("msrc", options))
    check_specimen({"name": "msrc", **options}, train)
    assert set(sink.arrays("train")["labels"].tolist()) == {USUAL.index("road"), VOID}
    assert (meta["classes"], len(meta["class_names"])) == (21, 21)
    sink, meta = read(open_dataset("msrc", {"root": tmp_path, "classes": 8, "n_train": 2, **SMALL}))
    labels = set(sink.arrays("train")["labels"].tolist())
    assert labels <= {7, 6, 2, VOID}  # foreground object, mountain, road
    assert len(labels) == 4


def test_real_data__have_the_sizes_of_their_sources(shared_data):
    reader = open_dataset("stanford", {"root": shared_data / "stanford_bg"})
    assert sorted(reader.files()) == ["images.tar", "stanford_bg_99.npz", "stanford_bg_99_features.npz"]
    with np.load(shared_data / "stanford_bg" / "stanford_bg_99.npz") as file:
        assert file["sp_offset"][-1] == 48402
    masks = open_dataset("msrc", {"root": shared_data / "msrc_v2"})._masks()
    assert len(masks) == 591
    assert {int(k) for mask in masks.values() for k in np.unique(mask)} == {*range(21), VOID}
