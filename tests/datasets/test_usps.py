"""USPS digits: both file formats, errors with line numbers, sizes of the real data."""

from __future__ import annotations

import gzip

import numpy as np
import pytest
from memory_sink import problems

from gapwise.stages.datasets import DataError, open_dataset
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
