"""Training blocks held out for validation: drawn by their number alone, exact shares, nothing on both sides."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from python_task import Pairs

from gapwise.stages import featurize as module
from gapwise.stages.datasets import DataError
from gapwise.stages.featurize import featurize, open_problem
from gapwise.stages.problems.held_out import HeldOut
from gapwise.storage.features import open_features


@pytest.mark.parametrize("share", [0.05, 0.37, 0.8])
def test_share__is_exact_at_every_number_of_blocks(share: float) -> None:
    rule = HeldOut.of({"share": share})
    held_out = rule.among(500)
    counts = np.cumsum(held_out)
    assert np.all(np.abs(counts - share * np.arange(1, 501)) <= 1)
    assert counts[-1] in (int(500 * share), int(500 * share) + 1)
    np.testing.assert_array_equal(held_out[:300], rule.among(300))  # whatever follows


def test_folds__hold_every_block_out_once() -> None:
    parts = np.array([HeldOut.of({"folds": 5, "fold": fold, "seed": 3}).among(127) for fold in range(5)])
    assert np.all(parts.sum(axis=0) == 1)
    assert set(parts.sum(axis=1)) <= {25, 26}


def test_rule__is_drawn_by_its_seed_and_stays_what_it_is() -> None:
    """Another version of numpy has to hold out the same blocks, or stored runs would mean something else."""
    drawn = {seed: np.flatnonzero(HeldOut(Fraction(1, 5), None, seed).among(40)).tolist() for seed in (0, 1)}
    assert drawn == {
        0: [2, 6, 14, 18, 22, 25, 31, 35],
        1: [4, 6, 14, 15, 20, 26, 31, 39],
    }
    assert HeldOut.of(None) is HeldOut.of("file") is None


class Numbered:
    """A reader of `count` training blocks; every feature of block k is k + 1."""

    def __init__(self, structure: str, count: int) -> None:
        self.structure, self.count = "multiclass" if structure == "sparse" else structure, count
        self.sparse = structure == "sparse"

    def featurize(self, sink, map_blocks, report):
        for split, count in (("train", self.count), ("test", 3)):
            numbers = np.arange(1, count + 1, dtype=np.float32)
            if self.structure == "multiclass" and not self.sparse:
                sink.put(split, "x", np.repeat(numbers[:, None], 2, axis=1))
                sink.put(split, "labels", np.zeros(count, np.uint8))
                continue
            if self.sparse:  # block k has the first k % 3 features
                sizes = np.arange(1, count + 1) % 3
                sink.put(split, "row_ptr", np.append(0, np.cumsum(sizes)))
                sink.put(split, "ids", np.concatenate([np.arange(size, dtype=np.int32) for size in sizes]))
                sink.put(split, "values", np.repeat(numbers, sizes))
                sink.put(split, "labels", np.zeros(count, np.uint8))
                continue
            for number in numbers:
                block = {
                    "unary": np.full((2, 3), number, np.float32), "pairwise": np.ones((1, 2), np.float32),
                    "edges": np.array([[0, 1]], np.int32), "area": np.ones(2), "counts": np.ones((2, 3), np.float32),
                    "labels": np.array([0, 255 if self.structure == "potts" else 1], np.uint8),
                }  # fmt: skip
                sink.append(split, **block)
        return {"classes": 3, "width": 2, "n_train": self.count, "n_test": 3}


def stored(monkeypatch, target: Path, structure: str, count: int, validation):
    monkeypatch.setattr(module, "open_dataset", lambda name, options: Numbered(structure, count))
    monkeypatch.setattr(module, "version_of", lambda name, structure: "of no reader")
    dataset = {"name": "numbered", "validation": validation}
    featurize(dataset, target, key="k", map_blocks=map, report=lambda done, total, task: None)
    return open_features(target)


@pytest.mark.parametrize("structure", ["multiclass", "potts"])
def test_featurize__puts_every_training_block_on_one_side(monkeypatch, tmp_path: Path, structure: str) -> None:
    store = stored(monkeypatch, tmp_path / "store", structure, 23, {"folds": 5, "fold": 2, "seed": 0})
    numbers = {}
    for split in ("train", "validation"):
        arrays = store.arrays(split)
        name = "x" if structure == "multiclass" else "unary"
        rows = arrays[name].reshape(-1, 2 if structure == "multiclass" else 6)
        numbers[split] = rows[:, 0].astype(int) - 1
        np.testing.assert_array_equal(numbers[split], arrays["block"])
        assert store.meta[f"n_{split}"] == len(rows)
    assert sorted([*numbers["train"], *numbers["validation"]]) == list(range(23))
    np.testing.assert_array_equal(numbers["validation"], np.flatnonzero(HeldOut(Fraction(1, 5), 2).among(23)))
    assert not open_features(tmp_path / "store").has("new")
    assert "block" not in store.arrays("test")
    without = stored(monkeypatch, tmp_path / "whole", structure, 23, None)
    assert not without.has("validation")
    assert "validation" not in without.meta
    assert "block" not in without.arrays("train")


@pytest.mark.parametrize(
    ("count", "validation", "says"),
    [
        (4, {"folds": 5, "fold": 0}, "dataset.validation: 5 folds of 4 training blocks; ask for at most as many folds"),
        (3, {"share": 0.01}, "dataset.validation: a share of 0.01 holds out none of 3 training blocks; at least one"),
        (1, {"share": 0.99}, "dataset.validation: a share of 0.99 holds out every one of 1 training blocks"),
    ],
)
def test_featurize__refuses_an_empty_side(monkeypatch, tmp_path: Path, count: int, validation: dict, says: str) -> None:
    with pytest.raises(DataError, match=says):
        stored(monkeypatch, tmp_path / "store", "multiclass", count, validation)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("structure", ["sparse", "segmentation", "potts"])
def test_featurize__divides_features_that_are_there(monkeypatch, tmp_path: Path, structure: str) -> None:
    validation = {"folds": 4, "fold": 1, "seed": 0}
    alone = stored(monkeypatch, tmp_path / "alone", structure, 13, validation)
    stored(monkeypatch, tmp_path / "whole", structure, 13, None)
    made = []

    class Counted(Numbered):
        def featurize(self, sink, map_blocks, report):
            made.append(self.count)
            return super().featurize(sink, map_blocks, report)

    monkeypatch.setattr(module, "open_dataset", lambda name, options: Counted(structure, 13))
    monkeypatch.setattr(module, "version_of", lambda name, structure: "of no reader")
    dataset, target = {"name": "numbered", "validation": validation}, tmp_path / "divided"
    featurize(dataset, target, key="k", map_blocks=map, report=lambda *_: None, whole=tmp_path / "whole")
    divided = open_features(target)
    assert made == ([13] if structure == "potts" else [])  # its training blocks lack what validation blocks need
    for split in ("train", "validation", "test"):
        expected, arrays = alone.arrays(split), divided.arrays(split)
        assert arrays.keys() == expected.keys()
        for name, array in expected.items():
            assert (arrays[name].dtype, arrays[name].tobytes()) == (array.dtype, array.tobytes()), name
    assert {**divided.meta, "files": None} == {**alone.meta, "files": None}


def test_python_oracle__is_asked_for_the_right_blocks(tmp_path: Path) -> None:
    def made(validation, folder: str):
        dataset = {"name": "python_oracle", "oracle": "python_task:Pairs", "arguments": {"n": 11}} | validation
        target = tmp_path / folder
        featurize(dataset, target, key="k", map_blocks=map, report=lambda *_: None)
        return target

    target, whole = made({"validation": {"folds": 3, "fold": 1, "seed": 0}}, "parts"), Pairs("train", n=11)
    w, seen = np.random.default_rng(0).normal(size=whole.d), []
    for split in ("train", "validation"):
        problem, numbers = open_problem(target, split), open_features(target).arrays(split)["block"]
        assert problem.n == len(numbers)
        for k, number in enumerate(numbers):
            y, theta = np.zeros(2, problem.truth.dtype), np.empty(whole.d)
            problem.scores(k, w, theta)
            loss = problem.max_oracle(k, theta, y, problem.scratch())
            np.testing.assert_array_equal(y, whole.max_oracle(int(number), w))
            assert loss == whole.loss(int(number), y)
            np.testing.assert_array_equal(problem.truth[2 * k : 2 * k + 2], whole.truth(int(number)))
            seen.append(int(number))
    assert sorted(seen) == list(range(11))
    own = open_problem(made({"validation": "split"}, "own"), "validation")
    np.testing.assert_array_equal(own.truth, Pairs("validation", n=11).truths.ravel())


def texts(folder: Path) -> dict[str, str]:
    lines = {
        "file": "a P\nb Q\n\nc P\n",
        "test_file": "a P\n\nb Q\n",
        "validation_file": "z Z\na P\n\nb Q\na P\n\nb P\n",
    }
    for name, text in lines.items():
        (folder / name).write_text(text)
    (folder / "template").write_text("U:%x[0,0]\nUb:%x[-1,0]\n")
    return {name: str(folder / name) for name in (*lines, "template")}


def test_sequences__of_a_validation_file_teach_nothing(tmp_path: Path) -> None:
    files = {"name": "sequences_csv", "unseen_labels": "count", **texts(tmp_path)}
    stores = []
    for number, validation in enumerate(({}, {"validation": "file"})):
        target = tmp_path / str(number)
        featurize({**files, **validation}, target, key="k", map_blocks=map, report=lambda *_: None)
        stores.append(target)
    without, with_file = (open_features(store) for store in stores)
    for split in ("", "train", "test"):
        for name, array in without.arrays(split or "shared").items():
            if name not in ("label_names", "label_names_ptr"):
                np.testing.assert_array_equal(
                    with_file.arrays(split or "shared")[name], array, err_msg=f"{split} {name}"
                )
    validation = open_problem(stores[1], "validation")
    assert validation.n == 3
    np.testing.assert_array_equal(validation.truth, [2, 0, 1, 0, 0])  # Z, which training lacks, comes last
    assert open_problem(stores[1], "train").d == open_problem(stores[0], "train").d
