"""Training blocks, and validation blocks behind them: byte for byte those of the features that were not divided."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from predict_runs import text
from python_task import Pairs

from gapwise.stages.choice.held_out import join
from gapwise.stages.featurize import featurize, open_problem
from gapwise.storage.features import Features, open_features


def made(dataset: dict[str, Any], target: Path) -> Features:
    featurize(dataset, target, key="k", map_blocks=map, report=lambda *_: None)
    return open_features(target)


def rows(folder: Path, sparse: bool) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    lines = []
    for k in range(31):
        columns = sorted(rng.choice(9, size=rng.integers(1, 5), replace=False).tolist())
        lines.append(f"{k % 3} " + " ".join(f"{column + 1}:{rng.normal():.3f}" for column in columns))
    (folder / "rows.svm").write_text("\n".join(lines) + "\n")
    x, y = rng.normal(size=(31, 4)), np.arange(31) % 3
    np.savez(folder / "rows.npz", x=x, y=y)
    return {"name": "multiclass_arrays", "file": str(folder / ("rows.svm" if sparse else "rows.npz"))}


def sequences(folder: Path) -> dict[str, Any]:
    for seed, name in enumerate(("train", "test", "validation")):
        (folder / name).write_text(text(seed, 15), encoding="utf-8")
    (folder / "template").write_text("U00:%x[0,0]\nB\n", encoding="utf-8")
    files = {"file": str(folder / "train"), "test_file": str(folder / "test"), "template": str(folder / "template")}
    return {"name": "sequences_csv", **files}


@pytest.mark.parametrize(
    ("kind", "validation"),
    [
        ("dense", {"share": 0.3, "seed": 1}),
        ("sparse", {"share": 0.6, "seed": 0}),
        ("chain", {"share": 0.3, "seed": 1}),
    ],
)
def test_join__puts_the_blocks_that_were_held_out_behind_the_others(
    kind: str, validation: dict[str, Any], tmp_path: Path
) -> None:
    dataset = sequences(tmp_path) if kind == "chain" else rows(tmp_path, sparse=kind == "sparse")
    whole = made(dataset, tmp_path / "whole")
    divided = made({**dataset, "validation": validation}, tmp_path / "divided")
    join(divided, tmp_path / "joined", lambda *_: None)
    joined = open_features(tmp_path / "joined")
    ours, theirs = joined.arrays("train"), whole.arrays("train")
    order = np.concatenate([divided.arrays(split)["block"] for split in ("train", "validation")])
    assert ours.keys() == theirs.keys() | {"block"}
    np.testing.assert_array_equal(ours["block"], order)
    assert sorted(order) == list(range(order.size))
    for k, number in enumerate(order):
        for (name, expected), (other, found) in zip(block_of(theirs, number), block_of(ours, k), strict=True):
            assert (name, expected.dtype) == (other, found.dtype)
            np.testing.assert_array_equal(expected, found, err_msg=name)
    for name, array in whole.arrays("shared").items():
        np.testing.assert_array_equal(ours[name], array, err_msg=name)
    if kind == "chain":  # one unit, in which lambda was chosen and the losses of the warm start were counted
        stores = (("joined", "train"), ("divided", "train"), ("divided", "validation"))
        scales = [open_problem(tmp_path / folder, split).scale for folder, split in stores]
        assert np.unique(np.concatenate(scales)).size == 2  # the unit, and weights of 1
    assert not joined.has("test")


def block_of(arrays: Mapping[str, np.ndarray], k: int) -> Iterator[tuple[str, np.ndarray]]:
    """The arrays of block k; those that all blocks share are left out."""
    for name, array in sorted(arrays.items()):
        if name in ("vocabulary", "label_names"):
            continue
        pointer = arrays.get(f"{name}_ptr", arrays.get("row_ptr") if name in ("ids", "values") else None)
        if pointer is not None:
            yield name, array[slice(*pointer[k : k + 2])]
        elif name in ("x", "labels"):
            yield name, array[k]


def test_join__of_two_splits_of_an_oracle_asks_each_object_for_its_own_blocks(tmp_path: Path) -> None:
    dataset = {"name": "python_oracle", "oracle": "python_task:Pairs", "arguments": {"n": 5}, "validation": "split"}
    join(made(dataset, tmp_path / "divided"), tmp_path / "joined", lambda *_: None)
    problem, w = open_problem(tmp_path / "joined", "train"), np.random.default_rng(0).normal(size=7)
    own = [(Pairs(split, n=5), i) for split in ("train", "validation") for i in range(5)]
    assert problem.n == len(own)
    for k, (oracle, i) in enumerate(own):
        y = np.zeros(2, problem.truth.dtype)
        loss = problem.max_oracle(k, w, y, problem.scratch())
        np.testing.assert_array_equal(y, oracle.max_oracle(i, w))
        assert loss == oracle.loss(i, y)
        np.testing.assert_array_equal(problem.truth[2 * k : 2 * k + 2], oracle.truth(i))


def test_join__of_an_oracle_s_held_out_blocks_asks_it_for_their_numbers(tmp_path: Path) -> None:
    validation = {"folds": 3, "fold": 1, "seed": 0}
    dataset = {"name": "python_oracle", "oracle": "python_task:Pairs", "arguments": {"n": 11}, "validation": validation}
    divided = made(dataset, tmp_path / "divided")
    join(divided, tmp_path / "joined", lambda *_: None)
    problem, oracle = open_problem(tmp_path / "joined", "train"), Pairs("train", n=11)
    order = [int(k) for split in ("train", "validation") for k in divided.arrays(split)["block"]]
    np.testing.assert_array_equal(problem.truth.reshape(-1, 2), [oracle.truth(k) for k in order])
    w, y = np.random.default_rng(0).normal(size=7), np.zeros(2, problem.truth.dtype)
    for k, number in enumerate(order):
        assert problem.max_oracle(k, w, y, problem.scratch()) == oracle.loss(number, y)
        np.testing.assert_array_equal(y, oracle.max_oracle(number, w))
