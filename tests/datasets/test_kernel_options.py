"""Options of kernels: what readers write for them, and what is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from memory_sink import problems

from gapwise.stages.datasets import NEW, FeatureMap, OptionError, open_dataset, specimen
from gapwise.stages.problems import build

X = np.array([[0.5, 0.0], [0.0, 1.25], [3.0, 0.0], [0.0, 0.5]])
OPTIONS = {"name": "multiclass_arrays", "kernel": None, "gamma": None, "coef0": None, "degree": None}


def options(folder: Path, **more) -> dict:
    np.savez(folder / "data.npz", x=X, y=np.array([0, 1, 0, 1]), x_test=X[:2] + 1.0, y_test=np.array([1, 0]))
    return {**OPTIONS, "file": str(folder / "data.npz"), **more}


def opened(*arguments, **more):
    given = options(*arguments, **more)
    return open_dataset(given["name"], given)


def test_kernel__makes_the_training_rows_its_points(tmp_path: Path) -> None:
    train, test, sink, meta = problems(opened(tmp_path, kernel="rbf"))
    assert (meta["kernel"], meta["gamma"], meta["d"]) == ("rbf", 0.5, 2 * 2 * 4)
    assert "degree" not in meta
    assert train.rows.row.tolist() == [0, 1, 2, 3]
    assert test.rows.row.tolist() == [-1, -1]
    for problem in (train, test):
        np.testing.assert_array_equal(problem.rows.points, X)
    specimens = specimen(options(tmp_path, kernel="rbf"))
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
    from gapwise.stages.featurize import featurize, open_problem

    given = options(tmp_path, kernel="linear")
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
        opened(tmp_path, **change)
