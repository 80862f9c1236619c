"""The released HorseSeg layout, on a small release that the test writes itself."""

from __future__ import annotations

from pathlib import Path

import h5py
import numba
import numpy as np
import pytest
from hdseg_release import put_image, put_names, save
from memory_sink import problems, read
from PIL import Image

from gapwise.stages.datasets import DataError, hdseg, open_dataset, specimen
from gapwise.stages.datasets.vision.features import own_columns, pairwise_features
from gapwise.stages.datasets.vision.superpixels import adjacency
from gapwise.stages.featurize import featurize, open_problem
from gapwise.stages.problems import build
from gapwise.storage.features import open_features

GROUND_TRUTH = [
    ("annoa_2007_000032", "voc12/2007_000032.gt"),
    ("annob_n02_7", "n02/n02_7.bb"),
    ("annoc_n03_8", "n03/n03_8.no"),
]


def rows(rng: np.random.Generator, size: int) -> np.ndarray:
    """Unary rows as released: every histogram with L2 norm 1."""
    parts = [np.sqrt(rng.dirichlet(np.full(w, 0.05), size)) for w in np.repeat(hdseg.WIDTHS, 3)]
    return np.concatenate([np.ones((size, 1)), *parts], axis=1).astype(np.float32)


@pytest.fixture
def release(tmp_path) -> Path:
    """Three training and eight test images of 12 x 16 pixels in six superpixels."""
    rng = np.random.default_rng(0)
    regions = (np.arange(12)[:, None] // 6 * 3 + np.minimum(np.arange(16)[None, :] // 5, 2)).astype(np.uint8)
    for split, count in (("train", 3), ("test", 8)):
        path = tmp_path / hdseg.FILES[split]
        path.parent.mkdir(parents=True, exist_ok=True)
        with h5py.File(path, "w") as file:
            for number in range(count):
                index = f"{number:06d}"
                mask = (rng.random((12, 16)) < rng.random(6)[regions]).astype(np.uint8)
                share = np.bincount(regions.ravel(), mask.ravel()) / np.bincount(regions.ravel())
                edges = adjacency(regions)
                if split == "train":
                    annotation, stored = GROUND_TRUTH[number]
                    name = annotation.replace("anno", "img")
                else:
                    annotation, stored, name = f"t{number}.gt.png", f"test/t{number}.gt", f"t{number}"
                put_image(file, number, rows(rng, 6), edges[::-1, ::-1], share > 0.5)  # pairs in any order
                put_names(file, number, annotation, name)
                save(tmp_path / hdseg.MAPS[split] / f"{index}.png", regions)
                save(tmp_path / hdseg.MASKS / f"{stored}.png", mask)
                save(tmp_path / hdseg.IMAGES / f"test/{name}.JPEG", np.full((12, 16, 3), 99, np.uint8))
    return tmp_path


def reader(root: Path, **options):
    return open_dataset("hdseg", {"root": str(root), "n_train": 3, "n_test": 8, **options})


def edit(root: Path, field: str, value) -> None:
    """Replace (or, with None, delete) a field of the training file."""
    with h5py.File(root / hdseg.FILES["train"], "r+") as file:
        del file[field]
        if value is not None:
            file[field] = value


def test_s15__keeps_649_columns_of_the_released_rows(release, tmp_path_factory):
    options = {"features": "s15"}
    train, test, _, meta = problems(reader(release, **options))
    assert (train.d, test.d, meta["d_unary"], meta["potts"]) == (650, 650, 649, 1.0)
    rows = problems(reader(release))[0].unary
    np.testing.assert_allclose(train.unary, own_columns(rows, hdseg.WIDTHS), atol=1e-6)
    given = {"name": "hdseg", "root": str(release), "n_train": 3, "n_test": 8, **options}
    store = tmp_path_factory.mktemp("made") / "store"
    featurize(given, store, key="k", map_blocks=map, report=lambda done, total, activity: None)
    encoded = specimen(given)
    stored_type = numba.typeof(open_problem(store, "train"))
    assert numba.typeof(build(encoded.structure, encoded.arrays, encoded.meta)) == stored_type


def test_hdseg__reads_the_released_layout(release):
    train, test, sink, meta = problems(reader(release))
    assert (train.n, test.n, train.d, meta["n_train"]) == (3, 8, 2069, 3)
    arrays = sink.arrays("train")
    with h5py.File(release / hdseg.FILES["train"]) as file:
        assert (arrays["unary"][6:12] == file["features_000001"][()]).all()
    edges = arrays["edges"][: arrays["edges_ptr"][1]]
    assert edges.tolist() == [[0, 1], [0, 3], [1, 2], [1, 4], [2, 5], [3, 4], [4, 5]]
    assert (arrays["pairwise"][:7] == pairwise_features(arrays["unary"][:6], edges, hdseg.WIDTHS)).all()
    assert arrays["area"][:6].tolist() == [30, 30, 36, 30, 30, 36]
    for number, (_, stored) in enumerate(GROUND_TRUTH):
        mask = np.asarray(Image.open(release / hdseg.MASKS / f"{stored}.png"))
        assert arrays["foreground"][6 * number : 6 * number + 6].sum() == mask.sum()
    assert (np.diff(sink.arrays("test")["hw_ptr"]) == [1] * 6 + [0] * 2).all()


def test_features__are_solved_where_they_lie(release, tmp_path, monkeypatch):
    """Opened as written, neither copied nor scanned."""
    store = tmp_path / "store"
    options = {"name": "hdseg", "root": str(release), "n_train": 3, "n_test": 8}
    featurize(options, store, key="", map_blocks=map, report=lambda done, total, task: None)
    mapped = open_features(store)
    monkeypatch.setattr(
        "gapwise.stages.problems.images.graph.check_features", lambda *_: pytest.fail("read the features")
    )
    monkeypatch.setattr("gapwise.stages.featurize.open_features", lambda _: mapped)
    arrays = mapped.arrays("train")
    monkeypatch.setattr(mapped, "arrays", lambda split: arrays)
    problem = open_problem(store, "train")
    for name in ("unary", "pairwise", "gram"):
        assert isinstance(arrays[name], np.memmap)
        assert np.shares_memory(getattr(problem.images if name == "gram" else problem, name), arrays[name]), name


BROKEN = [
    ("features_000001", np.ones((1969, 6)), r"features_000001 has shape \(1969, 6\), expected \(6, 1969\)"),
    ("features_000001", np.full((6, 1969), np.nan), r"image 000001: unary\[0, 0\] is nan"),
    ("labels_000000", np.zeros(5), r"labels_000000 has shape \(5,\), expected \(6,\)"),
    ("edge_structure_000002", np.full((7, 2), 6), "edge_structure_000002: expected pairs of different ids in 0..5"),
    ("annotation_file_000000", "anno_x", "annotation_file is 'anno_x'"),
]


@pytest.mark.parametrize(("field", "value", "message"), BROKEN)
def test_hdseg__names_file_and_field_of_what_is_wrong(release, field, value, message):
    edit(release, field, value)
    with pytest.raises(DataError, match=message) as caught:
        read(reader(release))
    assert "horse-features.bin" in str(caught.value)
