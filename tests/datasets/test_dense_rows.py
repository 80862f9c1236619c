"""Dense rows with classes: USPS digits in both formats, the toy of O16 App. C, and options of kernels."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
from memory_sink import problems

from gapwise.stages.datasets import NEW, Blocks, DataError, FeatureMap, OptionError, open_dataset, specimen
from gapwise.stages.featurize import featurize, open_problem
from gapwise.stages.problems import build


def arrays(seed: int = 0) -> dict[str, np.ndarray]:
    """Four digits to train, three to test; thousandths."""
    rng = np.random.default_rng(seed)
    made = {}
    for split, n in (("train", 4), ("test", 3)):
        made[f"X_{split}"] = rng.integers(-1000, 1001, size=(n, 256)).astype(np.int16)
        made[f"y_{split}"] = rng.integers(10, size=n).astype(np.uint8)
    return made


def lines(data: dict[str, np.ndarray], split: str) -> list[str]:
    """The same in the publisher's format."""
    rows = zip(data[f"y_{split}"], data[f"X_{split}"], strict=True)
    return [f"{digit:.4f} " + " ".join(f"{value / 1000:.4f}" for value in row) for digit, row in rows]


def write(folder, train: list[str], test: list[str], end: str = ""):
    for name, text in (("zip.train", train), ("zip.test", test)):
        raw = ("\n".join(text) + "\n").encode()
        (folder / f"{name}{end}").write_bytes(gzip.compress(raw) if end else raw)
    return {"root": folder}


@pytest.mark.parametrize("form", ["npz", "file", "text", "gz"])
def test_usps__all_formats_give_the_same_digits(tmp_path, form):
    data = arrays()
    root = tmp_path
    if form in ("npz", "file"):
        np.savez(tmp_path / "usps.npz", **data)
        root = tmp_path / "usps.npz" if form == "file" else tmp_path
    else:
        write(tmp_path, lines(data, "train"), lines(data, "test"), ".gz" if form == "gz" else "")
    train, test, _, meta = problems(open_dataset("usps", {"root": root}))
    assert (train.n, test.n, train.d, meta["d"]) == (4, 3, 2560, 2560)
    assert (meta["n_train"], meta["n_test"]) == (4, 3)
    for problem, split in ((train, "train"), (test, "test")):
        np.testing.assert_array_equal(problem.truth, data[f"y_{split}"])
        np.testing.assert_array_equal(problem.rows.x, (data[f"X_{split}"] / 1000).astype(np.float32))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: [t[0], "12" + t[1][1:], *t[2:]], r"zip\.train: line 2 has a digit that is not one of 0\.\.9"),
        (lambda t: [*t[:3], t[3].rsplit(" ", 1)[0] + " 1.5"], r"zip\.train: line 4 has a grey value outside"),
        (lambda t: [t[0], t[1].rsplit(" ", 1)[0], *t[2:]], r"zip\.train: expected a digit and 256 numbers a line"),
    ],
)
def test_usps__bad_lines_are_named(tmp_path, change, message):
    data = arrays()
    root = write(tmp_path, change(lines(data, "train")), lines(data, "test"))
    with pytest.raises(DataError, match=message):
        problems(open_dataset("usps", root))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"X_train": (arrays()["X_train"] % 256).astype(np.uint8)}, "whole numbers from 0 to 255, as 8-bit pixels are"),
        (
            {"X_train": arrays()["X_train"] % 256},
            r"grey values in \[-1, 1\] \(pixels / 127\.5 - 1\), or thousandths",
        ),
        ({"X_train": arrays()["X_train"][:, :100]}, r"256 grey values a row of train, got arrays of \(4, 100\)"),
    ],
)
def test_usps__bad_arrays_are_named(tmp_path, change, message):
    np.savez(tmp_path / "usps.npz", **{**arrays(), **change})
    with pytest.raises(DataError, match=message):
        problems(open_dataset("usps", {"root": tmp_path}))


def test_usps__grey_values_in_arrays_are_no_thousandths(tmp_path):
    data = arrays()
    np.savez(tmp_path / "usps.npz", **{name: x / 1000 if name[0] == "X" else x for name, x in data.items()})
    train, *_ = problems(open_dataset("usps", {"root": tmp_path}))
    np.testing.assert_array_equal(train.rows.x, (data["X_train"] / 1000).astype(np.float32))


def test_usps__real_data_has_the_sizes_of_the_papers(shared_data):
    train, test, _, _ = problems(open_dataset("usps", {"root": shared_data / "usps"}))
    assert (train.n, test.n, train.d) == (7291, 2007, 2560)
    assert np.bincount(train.truth).tolist() == [1194, 1005, 731, 658, 652, 556, 664, 645, 542, 644]
    assert np.bincount(test.truth).tolist() == [359, 264, 198, 166, 200, 160, 170, 147, 166, 177]
    assert train.rows.x.min() == -1.0
    assert train.rows.x.max() == 1.0


def test_usps__labels_of_8_bits_do_not_limit_the_columns():
    x = np.eye(3, 256, dtype=np.float32)
    problem = build("multiclass", {"x": x, "labels": np.array([0, 1, 2], np.uint8)}, {"classes": 3})
    w, scores = np.arange(768.0), np.empty(2)
    problem.score_labels(1, w, np.array([[1], [2]], np.uint8), np.arange(2), np.empty(3), scores)
    assert scores.tolist() == [257.0, 513.0]
    problem.pair_move(1, 1.0, np.array([2], np.uint8), np.array([1], np.uint8), np.empty(3), w)
    assert (w[257], w[513]) == (256.0, 514.0)


GIVEN = {"name": "hard_and_easy", "n": 6, "classes": 5, "lam": 0.01}


def test_problem__has_one_block_with_many_wrong_answers_and_others_with_one() -> None:
    reader, sink = open_dataset("hard_and_easy", GIVEN), Blocks("multiclass")
    facts = reader.featurize(sink, map, lambda done, total, task: None)
    problem = build("multiclass", sink.arrays("train"), facts)
    assert (problem.n, problem.d) == (6, 30)
    costs = problem.cost[problem.truth]
    assert costs.sum(axis=1).tolist() == [1, 1, 1, 4, 1, 1]
    np.testing.assert_allclose(problem.rows.x @ problem.rows.x.T, 0.4 * 0.01 * 6 * np.eye(6), rtol=1e-6)
    assert reader.files() == {}


X = np.array([[0.5, 0.0], [0.0, 1.25], [3.0, 0.0], [0.0, 0.5]])
OPTIONS = {"name": "multiclass_arrays", "kernel": None, "gamma": None, "coef0": None, "degree": None}


def with_kernel(folder: Path, **more) -> dict:
    np.savez(folder / "data.npz", x=X, y=np.array([0, 1, 0, 1]), x_test=X[:2] + 1.0, y_test=np.array([1, 0]))
    return {**OPTIONS, "file": str(folder / "data.npz"), **more}


def test_kernel__makes_the_training_rows_its_points(tmp_path: Path) -> None:
    train, test, sink, meta = problems(open_dataset("multiclass_arrays", with_kernel(tmp_path, kernel="rbf")))
    assert (meta["kernel"], meta["gamma"], meta["d"]) == ("rbf", 0.5, 2 * 2 * 4)
    assert "degree" not in meta
    assert train.rows.row.tolist() == [0, 1, 2, 3]
    assert test.rows.row.tolist() == [-1, -1]
    for problem in (train, test):
        np.testing.assert_array_equal(problem.rows.points, X)
    specimens = specimen(with_kernel(tmp_path, kernel="rbf"))
    assert {name: array.dtype for name, array in specimens.arrays.items()} == {
        name: array.dtype for name, array in sink.arrays("train").items()
    }
    assert type(build(specimens.structure, specimens.arrays, specimens.meta)) is type(train)
    shared = {"points": sink.arrays("train")["points"]}
    encoded = FeatureMap({**meta, "dataset": "multiclass_arrays", "structure": "multiclass"}, shared).encode(X)
    again = build("multiclass", encoded.arrays, encoded.meta)
    assert (again.rows.row.tolist(), again.d) == ([-1] * 4, train.d)
    assert NEW not in shared


def test_kernel__of_a_validation_split_keeps_held_out_rows_as_points(tmp_path: Path) -> None:
    given = with_kernel(tmp_path, kernel="linear")
    given["validation"] = {"share": 0.5, "seed": 0}
    featurize(given, tmp_path / "features", key="k", map_blocks=map, report=lambda *_: None)
    train, held_out = (open_problem(tmp_path / "features", split) for split in ("train", "validation"))
    assert sorted([*train.rows.row, *held_out.rows.row]) == [0, 1, 2, 3]
    assert train.rows.points.shape == held_out.rows.points.shape == (4, 2)
    w, theta = np.zeros(train.d), np.empty(2)
    train.push(0, 1.0, np.array([1.0, -1.0]), w)
    for i in range(2):  # scores that are kept for the points are those of held-out rows as well
        held_out.scores(i, w, theta)
        assert theta[0] == -theta[1] == pytest.approx(held_out.rows.x[i] @ train.rows.x[0])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kernel": "sigmoid"}, r"dataset\.kernel: expected one of linear, poly, rbf, or null, got 'sigmoid'"),
        ({"gamma": 0.1}, r"dataset\.gamma: only with dataset\.kernel=poly or rbf, got kernel None"),
        ({"kernel": "poly", "coef0": -1.0}, r"dataset\.coef0: expected a number >= 0, or null, got -1\.0"),
    ],
)
def test_options__that_cannot_be_used_are_named(tmp_path: Path, change, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        open_dataset("multiclass_arrays", with_kernel(tmp_path, **change))
