"""The released HorseSeg layout, on a small release that the test writes itself."""

from __future__ import annotations

from pathlib import Path

import h5py
import numba
import numpy as np
import pytest
from hdseg_release import put_image, put_names, save
from leaves_home import check_same_bits, made
from memory_sink import problems, read
from PIL import Image

from gapwise.stages.datasets import DataError, OptionError, hdseg, open_dataset, specimen
from gapwise.stages.datasets.vision.features import pairwise_features, rings
from gapwise.stages.datasets.vision.own_columns import own_columns
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


@pytest.mark.parametrize("precision", ["f32", "u8"])
def test_s15__keeps_649_columns_of_the_released_rows(release, tmp_path_factory, precision):
    options = {"features": "s15", "precision": precision}
    train, test, _, meta = problems(reader(release, **options))
    assert (train.d, test.d, meta["d_unary"], meta["potts"]) == (649, 649, 649, 1.0)
    rows = problems(reader(release))[0].unary
    tolerance = 1e-6 if precision == "f32" else 1 / 510 + 1e-6
    np.testing.assert_allclose(train.unary * train.unary_scale, own_columns(rows, hdseg.WIDTHS), atol=tolerance)
    folder = tmp_path_factory.mktemp("made")
    given = {"name": "hdseg", "root": str(release), "n_train": 3, "n_test": 8, **options}
    feature_map, stored = made(given, folder)
    with h5py.File(release / hdseg.FILES["test"]) as file:
        regions = np.asarray(Image.open(release / hdseg.MAPS["test"] / "000000.png"))
        images = [(file[f"features_{k:06d}"][()], file[f"edge_structure_{k:06d}"][()], regions) for k in range(8)]
    check_same_bits(feature_map.encode(images), stored, pictures=True)
    encoded = specimen(given)
    stored_type = numba.typeof(open_problem(folder / "store", "train"))
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


def test_hdseg__sizes_are_those_of_the_papers(release):
    assert hdseg.SIZES == {"small": 147, "medium": 6121, "large": 25438}
    with pytest.raises(DataError, match="superpixel_count_000003 is missing"):
        read(open_dataset("hdseg", {"root": release, "size": "small"}))
    with pytest.raises(ValueError, match=r"dataset\.size: expected one of small, medium, large"):
        reader(release, size="huge")


@pytest.fixture
def u8_store(release, tmp_path) -> Path:
    """The release featurized with dataset.precision=u8."""
    options = {"name": "hdseg", "root": str(release), "n_train": 3, "n_test": 8, "precision": "u8"}
    featurize(options, tmp_path / "store", key="", map_blocks=map, report=lambda done, total, task: None)
    return tmp_path / "store"


@pytest.mark.parametrize("precision", ["f32", "u8"])
def test_hdseg__new_images_are_encoded_as_featurized(release, tmp_path, precision):
    options = {"name": "hdseg", "root": str(release), "n_train": 3, "n_test": 8, "precision": precision}
    feature_map, stored = made(options, tmp_path)
    with h5py.File(release / hdseg.FILES["test"]) as file:
        images = [
            (np.array(file[f"features_{k:06d}"]), np.array(file[f"edge_structure_{k:06d}"]), np.array(Image.open(path)))
            for k, path in enumerate(sorted((release / hdseg.MAPS["test"]).glob("*.png")))
        ]
    check_same_bits(feature_map.encode(images), stored, pictures=True)
    features, edges, regions = images[0]
    for image, message in (
        ((features[:, :9], edges, regions), r"features has shape \(6, 9\)"),
        ((features, edges + 1, regions), "edges: expected pairs of different ids in 0..5"),
        ((features, edges, regions[:6]), "superpixel_map: ids 0..2; expected a map"),
    ):
        with pytest.raises(DataError, match=f"^input: image 0: {message}"):
            feature_map.encode([image])


def test_hdseg__u8_is_off_by_at_most_half_a_code(release, u8_store):
    exact, stored = read(reader(release))[0].arrays("train"), open_features(u8_store).arrays("train")
    assert (stored["unary"].dtype, stored["unary_scale"].tolist()) == (np.uint8, [1 / 255])
    error = np.abs(stored["unary"] * stored["unary_scale"] - exact["unary"]).max()
    assert 1e-3 < error <= 1 / 510 + 1e-15
    assert (stored["pairwise"] == exact["pairwise"]).all()


def test_hdseg__u8_features_are_solved_where_they_lie(u8_store, monkeypatch):
    """Opened as written, neither copied nor scanned; derived arrays and kernels agree on the scale of the codes."""
    mapped = open_features(u8_store)
    monkeypatch.setattr(
        "gapwise.stages.problems.segmentation.images.check_features", lambda *_: pytest.fail("read the features")
    )
    monkeypatch.setattr("gapwise.stages.featurize.open_features", lambda _: mapped)
    arrays = mapped.arrays("train")
    monkeypatch.setattr(mapped, "arrays", lambda split: arrays)
    problem = open_problem(u8_store, "train")
    for name in ("unary", "pairwise", "gram"):
        assert isinstance(arrays[name], np.memmap)
        assert np.shares_memory(getattr(problem.images if name == "gram" else problem, name), arrays[name]), name
    rng = np.random.default_rng(0)
    for i in range(problem.n):
        nodes, arcs = (slice(*ptr[i : i + 2]) for ptr in (problem.label_ptr, problem.images.edge_ptr))
        x, p = arrays["unary"][nodes] / 255, arrays["pairwise"][arcs].astype(np.float64)
        delta, w = rng.normal(size=len(x) + len(p)), rng.random(problem.d)
        moved, theta = np.zeros(problem.d), np.empty(delta.size)
        problem.push(i, 1.0, delta, moved)
        problem.scores(i, w, theta)
        expected = np.concatenate([delta[: len(x)] @ x, delta[len(x) :] @ p])
        np.testing.assert_allclose(moved, expected, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(theta, np.concatenate([x @ w[: hdseg.COLUMNS], p @ w[hdseg.COLUMNS :]]), rtol=1e-9)
        assert problem.norm2(i, delta) == pytest.approx(expected @ expected, rel=1e-5)


def test_hdseg__specimen_has_the_types_of_the_codes(release, u8_store):
    encoded = specimen({"name": "hdseg", "root": str(release), "precision": "u8"})
    assert numba.typeof(build(encoded.structure, encoded.arrays, encoded.meta)) == numba.typeof(
        open_problem(u8_store, "train")
    )


def test_hdseg__precision_is_f32_or_u8(release):
    with pytest.raises(ValueError, match=r"dataset\.precision: expected one of f32, u8, got 'f16'"):
        reader(release, precision="f16")


@pytest.mark.parametrize("value", [1.01, -0.01])
def test_hdseg__u8_refuses_features_outside_the_unit_interval(release, value):
    edit(release, "features_000001", np.full((6, 1969), value))
    with pytest.raises(DataError, match=r"image 000001: features outside \[0, 1\].*dataset\.precision=f32"):
        read(reader(release, precision="u8"))


def test_hdseg__u8_takes_a_norm_that_rounding_made_larger_than_1(release):
    edit(release, "features_000001", np.full((6, 1969), np.nextafter(np.float32(1), np.float32(2))))
    arrays = read(reader(release, precision="u8"))[0].arrays("train")
    assert (arrays["unary"][6:12] == 255).all()


def test_hdseg__takes_labels_for_pixels_without_the_hdseg_archive(release):
    for path in sorted((release / "HDSeg").rglob("*"), reverse=True):
        path.unlink() if path.is_file() else path.rmdir()
    with pytest.raises(DataError, match=r"2007_000032\.gt\.png: missing.*dataset\.pictures=false"):
        read(reader(release))
    arrays = read(reader(release, pictures=False))[0].arrays("test")
    assert (arrays["foreground"] == arrays["area"] * arrays["labels"]).all()
    assert arrays["hw"].shape == (0, 2)


BROKEN = [
    ("features_000001", np.ones((1969, 6)), r"features_000001 has shape \(1969, 6\), expected \(6, 1969\)"),
    ("features_000001", np.full((6, 1969), np.nan), r"image 000001: unary\[0, 0\] is nan"),
    ("features_000001", None, "field features_000001 is missing"),
    ("labels_000000", np.zeros(5), r"labels_000000 has shape \(5,\), expected \(6,\)"),
    ("labels_000000", np.full(6, 2), "labels_000000 holds values other than 0 and 1"),
    ("edge_structure_000002", np.full((7, 2), 6), "edge_structure_000002: expected pairs of different ids in 0..5"),
    ("edge_count_000002", np.array([9]), r"edge_structure_000002 has shape \(7, 2\), expected \(9, 2\)"),
    ("annotation_file_000000", "anno_x", "annotation_file is 'anno_x'"),
]


@pytest.mark.parametrize(("field", "value", "message"), BROKEN)
def test_hdseg__names_file_and_field_of_what_is_wrong(release, field, value, message):
    edit(release, field, value)
    with pytest.raises(DataError, match=message) as caught:
        read(reader(release))
    assert "horse-features.bin" in str(caught.value)


def test_hdseg__names_a_superpixel_map_that_is_missing_or_does_not_fit(release):
    path = release / hdseg.MAPS["train"] / "000002.png"
    save(path, np.zeros((12, 16), np.uint8))
    with pytest.raises(DataError, match=r"000002\.png: ids 0\.\.0; expected a map .* every one of 0\.\.5"):
        read(reader(release))
    path.unlink()
    with pytest.raises(DataError, match=r"000002\.png: missing \(superpixel map"):
        read(reader(release))


def test_hdseg__names_a_mask_of_another_size(release):
    path = release / hdseg.MASKS / "n02/n02_7.bb.png"
    save(path, np.zeros((12, 15), np.uint8))
    with pytest.raises(DataError, match=r"n02_7\.bb\.png: size \(12, 15\)"):
        read(reader(release))


def test_hdseg__needs_a_root_with_the_feature_files(tmp_path):
    with pytest.raises(OptionError, match=r"dataset\.root: missing"):
        open_dataset("hdseg", {})
    with pytest.raises(DataError, match=r"no data/horse-features\.bin"):
        open_dataset("hdseg", {"root": tmp_path})


def test_synthetic_release__is_read_and_agrees_with_its_maps(tmp_path, monkeypatch):
    """That of tests/benchmarks, which has as many images as wanted."""
    monkeypatch.syspath_prepend(Path(__file__).resolve().parents[1] / "benchmarks")
    import synthetic_horseseg

    monkeypatch.setattr(synthetic_horseseg, "MAPS", 3)
    for count in (4, 2):
        synthetic_horseseg.make_release(tmp_path / str(count), count, test=2)
    options = {"pictures": False, "n_test": 2, "precision": "u8"}
    train, test, sink, _ = problems(reader(tmp_path / "4", n_train=4, **options))
    few = problems(reader(tmp_path / "2", n_train=2, **options))[2].arrays("train")
    arrays = sink.arrays("train")
    assert (train.n, test.n, train.d) == (4, 2, 2069)
    for name in ("unary", "pairwise", "labels"):
        assert (few[name] == arrays[name][: len(few[name])]).all()
    assert not np.array_equal(arrays["unary"][:9], sink.arrays("test")["unary"][:9])
    with h5py.File(tmp_path / "4" / hdseg.FILES["train"]) as file:
        for k in range(4):
            regions = np.asarray(Image.open(tmp_path / "4" / hdseg.MAPS["train"] / f"{k:06d}.png"))
            edges, rows = adjacency(regions), file[f"features_{k:06d}"][()]
            assert (arrays["edges"][slice(*arrays["edges_ptr"][k : k + 2])] == edges).all()
            cell = regions.ravel().astype(int) * 16 + cells(*regions.shape).ravel()
            position = np.bincount(cell, minlength=16 * len(rows))
            position = position.reshape(-1, 16) / position.reshape(-1, 16).sum(axis=1, keepdims=True)
            np.testing.assert_allclose(rows[:, 1:17] ** 2, position, atol=1e-6)
            own, near = rows[:, 49:177].astype(float) ** 2, rows[:, 177:305].astype(float) ** 2
            first, _ = rings(len(rows), edges)
            assert (near[first @ own > 1e-9] > 0).all()  # a ring has the words of its superpixels
            ends = 1 + np.cumsum([0, *np.repeat(hdseg.WIDTHS, 3)])
            sums = np.add.reduceat(rows.astype(float) ** 2, ends[:-1], axis=1)
            assert np.isclose(sums, 1.0, atol=1e-5).all()


def cells(height: int, width: int) -> np.ndarray:
    """The cell of the 4 x 4 raster that each pixel lies in."""
    return np.arange(height)[:, None] * 4 // height * 4 + np.arange(width) * 4 // width
