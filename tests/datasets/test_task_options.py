"""Losses and constraints of sequences as options of data sets: their meaning, their keys, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from memory_sink import problems

from gapwise.stages.datasets import DataError, OptionError, open_dataset
from gapwise.stages.datasets.arrays.csv_rows import read_costs
from gapwise.stages.datasets.text.constraints import read_constraints, scheme
from gapwise.stages.featurize import featurize, open_problem
from gapwise.stages.problems.chain.costs import blocked_of
from gapwise.storage.features import open_features

TRAIN = "a O\nb B-N\nc I-N\n\nd B-V\n\na O\nb O\n\nb B-N\n\nc O\nc B-V\n"
"""Five sequences of 3, 1, 2, 1 and 2 tokens."""
NAMES = ["B-N", "B-V", "I-N", "O"]


def options(folder: Path, train: str = TRAIN, test: str = "b B-N\na O\n", **more: Any) -> dict[str, Any]:
    for name, text in (("train.txt", train), ("test.txt", test), ("template", "U:%x[0,0]\n")):
        (folder / name).write_text(text)
    files = {"file": "train.txt", "test_file": "test.txt", "template": "template"}
    return {"name": "sequences_csv", **{name: str(folder / file) for name, file in files.items()}, **more}


def given(folder: Path, name: str, text: str) -> str:
    (folder / name).write_text(text)
    return str(folder / name)


def test_sequences__are_counted_per_token_in_all_splits_unless_asked_otherwise(tmp_path: Path) -> None:
    train, test, *_ = problems(open_dataset("sequences_csv", options(tmp_path)))
    np.testing.assert_allclose(train.scale[::2], 9 / 5)
    np.testing.assert_allclose(test.scale[::2], 9 / 5)
    papers, test, _, meta = problems(open_dataset("sequences_csv", options(tmp_path, loss="per_sequence")))
    np.testing.assert_array_equal(papers.scale[::2], [3, 1, 2, 1, 2])
    np.testing.assert_array_equal(test.scale[::2], [2])
    assert not {"loss", "label_counts"} & meta.keys()


@pytest.mark.parametrize("known", [False, True])
def test_validation__is_measured_in_the_unit_of_the_training_blocks_that_stay(tmp_path: Path, known: bool) -> None:
    """Also where the blocks of a store without validation are divided."""
    asked = options(tmp_path, label_weights="balanced")
    whole = tmp_path / "whole"
    if known:
        featurize(asked, whole, key="k", map_blocks=map, report=lambda *_: None)
    asked["validation"] = {"folds": 3, "fold": 0, "seed": 0}
    featurize(asked, tmp_path / "store", key="k", map_blocks=map, report=lambda *_: None, whole=whole)
    meta, train = open_features(tmp_path / "store").meta, open_problem(tmp_path / "store", "train")
    assert meta["n_validation"] > 0
    assert train.n == meta["n_train"] < 5
    assert meta["label_counts"] == np.bincount(train.truth, minlength=4).tolist()
    for split in ("train", "validation", "test"):
        problem = open_problem(tmp_path / "store", split)
        np.testing.assert_allclose(problem.scale[::2], train.truth.size / train.n)
        np.testing.assert_array_equal(problem.costs, train.costs)


def test_label_weights__are_a_table_or_balanced(tmp_path: Path) -> None:
    usual = 1.0 - np.eye(4)
    train, *_ = problems(open_dataset("sequences_csv", options(tmp_path, label_weights={"O": 0.5, "I-N": 3})))
    np.testing.assert_array_equal(train.costs[:16].reshape(4, 4), usual * np.array([1, 1, 3, 0.5])[:, None])
    train, *_ = problems(open_dataset("sequences_csv", options(tmp_path, label_weights="balanced")))
    expected = 9 / 4 / np.array([2, 2, 1, 4])
    np.testing.assert_allclose(train.costs[:16].reshape(4, 4), usual * expected[:, None])


def test_costs__have_the_truth_in_the_rows_and_names_in_any_order(tmp_path: Path) -> None:
    text = ",O,B-N,B-V,I-N\nB-N,2,0,1,3\nB-V,1,1,0,1\nI-N,1,1,1,0\nO,0,4,1,5\n"
    asked = options(tmp_path, costs=given(tmp_path, "costs.csv", text), label_weights={"O": 0.5})
    train, *_ = problems(open_dataset("sequences_csv", asked))
    expected = [[0, 1, 3, 2], [1, 0, 1, 1], [1, 1, 0, 1], [2, 0.5, 2.5, 0]]
    np.testing.assert_array_equal(train.costs[:16].reshape(4, 4), expected)


def test_costs__of_names_with_blanks_of_other_scripts(tmp_path: Path) -> None:
    (tmp_path / "costs.csv").write_text(",\u00a0a,b\n\u00a0a,0,2\nb,1,0\n", encoding="utf-8")
    np.testing.assert_array_equal(read_costs(tmp_path / "costs.csv", ["\u00a0a", "b"]), [[0, 2], [1, 0]])


def test_bio__lets_an_inside_follow_its_own_type_only() -> None:
    table = scheme("bio", NAMES)
    forbidden = {(a, b) for a in range(4) for b in range(4) if table[a, b]}
    assert forbidden == {(1, 2), (3, 2)}  # B-V and O before I-N; B-N and I-N may precede it
    assert table[4].tolist() == [0, 0, 1, 0]
    assert not table[5].any()


def test_iobes__wants_a_chunk_to_end() -> None:
    names = ["B-N", "E-N", "I-N", "O", "S-N", "B-V"]
    table = scheme("iobes", names)
    allowed = {"B-N": {"I-N", "E-N"}, "I-N": {"I-N", "E-N"}, "B-V": set()}
    fresh = {"B-N", "O", "S-N", "B-V"}
    for a, name in enumerate(names):
        assert {names[b] for b in np.flatnonzero(table[a] == 0)} == allowed.get(name, fresh)
    assert {names[b] for b in np.flatnonzero(table[6] == 0)} == fresh
    assert {names[b] for b in np.flatnonzero(table[7] == 0)} == {"E-N", "O", "S-N"}


def test_iob1__lets_a_begin_follow_its_own_type_only() -> None:
    table = scheme("iob1", NAMES)
    assert {(a, b) for a in range(4) for b in range(4) if not table[a, b] and NAMES[b][0] == "B"} == {
        (0, 0), (2, 0), (1, 1),
    }  # fmt: skip
    assert table[4].tolist() == [1, 1, 0, 0]
    assert not table[:, 2:].any()


@pytest.mark.parametrize(
    ("name", "letters"), [("iobes", "BIESO"), ("iobes", "BILUO"), ("bilou", "BILUO"), ("iobes", "BMESO")]
)
def test_schemes__have_other_letters_and_labels_without_types(name: str, letters: str) -> None:
    """Which are one type."""
    expected = scheme("iobes", ["B-x", "I-x", "E-x", "S-x", "O"])
    for kind in ("", "-x", "-x-y"):
        table = scheme(name, [letter + kind * (letter != "O") for letter in letters])
        np.testing.assert_array_equal(table, expected)
    np.testing.assert_array_equal(scheme("bio", ["B", "I", "O"]), scheme("bio", ["B-x", "I-x", "O"]))


def test_constraints__of_a_file_forbid_pairs_starts_and_ends(tmp_path: Path) -> None:
    file = Path(given(tmp_path, "rules", "O I-N\n<start>\tI-N\n\nB-N <end>\n"))
    table = read_constraints(file, NAMES)
    assert [tuple(pair) for pair in np.argwhere(table).tolist()] == [(3, 2), (4, 2), (5, 0)]
    train, *_ = problems(open_dataset("sequences_csv", options(tmp_path, constraints="bio")))
    assert (blocked_of(train.costs, train.labels) != 0).tolist() == (scheme("bio", NAMES) != 0).tolist()


@pytest.mark.parametrize(
    ("texts", "says"),
    [
        (
            {"train": "a O\nb B-N\n\nc O\na I-N\n"},
            r"train\.txt: line 5: sequence 1, token 1: the true label 'I-N' may not come right after 'O'",
        ),
        (
            {"test": "a O\n\na B-V\na I-N\n"},
            r"test\.txt: line 4: sequence 1, token 1: the true label 'I-N' may not come right after 'B-V', by dataset\.con",
        ),
        (
            {"train": "a U-N\nb O\n", "test": "a O\n"},
            r"constraints=bio: the label 'U-N' is none of B-\.\.\., I-\.\.\., O \(these are labels of BILOU: give iobes\); ",
        ),
    ],
)  # fmt: skip
def test_truths__that_break_the_constraints_are_named(tmp_path: Path, texts: dict[str, str], says: str) -> None:
    asked = options(tmp_path, **texts, constraints="bio", unseen_labels="count")
    with pytest.raises((DataError, OptionError), match=says):
        problems(open_dataset("sequences_csv", asked))


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("constraints", "O I-N\nO B-N I-N\n", "line 2: 'O B-N I-N': expected a label, or <start>, and the label, or <end>"),
        ("constraints", "O Z\n", "line 1: the label 'Z' never occurs in training; known: B-N, B-V, I-N, O"),
    ],
)  # fmt: skip
def test_files__errors_name_file_and_line(tmp_path: Path, name: str, text: str, says: str) -> None:
    file = given(tmp_path, "given.csv", text)
    with pytest.raises(DataError, match=rf"given\.csv: {says}"):
        problems(open_dataset("sequences_csv", options(tmp_path, **{name: file})))


# -- keys ----------------------------------------------------------------------------------------------------------------
