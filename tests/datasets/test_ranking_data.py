"""Ranking data: SVMlight's format with qid, splits, new input, and errors that name the file."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
from memory_sink import problems, read

from gapwise.stages.datasets import DataError, FeatureMap, Predicted, open_dataset, specimen
from gapwise.stages.datasets.ranking import Queries
from gapwise.stages.problems import build

TRAIN = """# two queries, whose documents take turns, and one without pairs
1 qid:7 1:0.5 3:2 # doc a
0 qid:3 2:1.5
2 qid:7 1:1
1 qid:3 3:4
0 qid:7 2:0.25
1 qid:9 1:1
1 qid:9 2:1
"""
TEST = "0 qid:7 1:1 4:9\n3 qid:7 2:1\n1 qid:8 1:1\n0 qid:8 3:1\n"


def options(folder: Path, train: str = TRAIN, test: str | None = TEST, **more) -> dict:
    (folder / "train.svmlight").write_text(train, encoding="utf-8")
    given = {"name": "ranking", "file": str(folder / "train.svmlight"), **more}
    if test is not None:
        (folder / "test.svmlight").write_text(test, encoding="utf-8")
        given["test_file"] = str(folder / "test.svmlight")
    return given


def opened(*arguments, **more):
    given = options(*arguments, **more)
    return open_dataset(given["name"], given)


def test_queries__are_blocks_by_falling_relevance_and_columns_those_of_training(tmp_path: Path) -> None:
    train, test, sink, meta = problems(opened(tmp_path))
    assert meta == {"d": 3, "first_index": 1, "n_train": 2, "n_test": 2, "without_pairs": {"train": 1, "test": 0}}
    arrays = sink.arrays("train")
    assert arrays["document"].tolist() == [2, 0, 4, 3, 1]
    assert arrays["query"].tolist() == [7, 3]
    assert train.x.tolist() == [[1, 0, 0], [0.5, 0, 2], [0, 0.25, 0], [0, 0, 4], [0, 1.5, 0]]
    assert (train.share.tolist(), train.worse.tolist()) == ([1 / 3, 1.0], [1, 2, 3, 1, 2])
    assert test.x.tolist() == [[0, 1, 0], [1, 0, 0], [1, 0, 0], [0, 0, 1]]  # the test file's fourth column is left out
    encoded = specimen(options(tmp_path))
    assert {name: array.dtype for name, array in encoded.arrays.items()} == {
        name: array.dtype for name, array in arrays.items()
    }
    assert type(build("ranking", encoded.arrays, encoded.meta)) is type(train)


def test_indices__count_from_0_if_one_is_0_and_files_may_be_gzipped(tmp_path: Path) -> None:
    given = options(tmp_path, "1 qid:1 0:5 1:2\n0 qid:1 1:3\n", "1 qid:1 1:2\n0 qid:1 1:3\n")
    packed = tmp_path / "packed.gz"
    packed.write_bytes(gzip.compress(Path(given["file"]).read_bytes()))
    train, test, _, meta = problems(open_dataset("ranking", {**given, "file": str(packed)}))
    assert (meta["first_index"], meta["d"]) == (0, 2)
    assert (train.x.tolist(), test.x.tolist()) == ([[5, 2], [0, 3]], [[0, 2], [0, 3]])


def test_splits__are_of_whole_queries_drawn_with_a_seed_or_of_a_validation_file(tmp_path: Path) -> None:
    text = "".join(f"{k} qid:{query} 1:{query + 0.1 * k}\n" for query in range(8) for k in range(3))
    chosen = []
    for seed in (0, 0, 1):
        sink, meta = read(opened(tmp_path, text, None, seed=seed))
        assert (meta["n_train"], meta["n_test"]) == (6, 2)
        split = [set(sink.arrays(name)["query"].tolist()) for name in ("train", "test")]
        assert split[0] | split[1] == set(range(8))
        chosen.append(sorted(split[1]))
    assert chosen[0] == chosen[1] != chosen[2]
    given = options(tmp_path, validation="file", validation_file=str(tmp_path / "test.svmlight"))
    sink, _ = read(open_dataset("ranking", given))
    assert sink.arrays("validation")["query"].tolist() == [7, 8]


def test_new_input__is_ranked_without_its_relevance_in_the_order_of_its_file(tmp_path: Path) -> None:
    sink, meta = read(opened(tmp_path))
    meta = {**meta, "dataset": "ranking", "structure": "ranking"}
    mixed = tmp_path / "new.svmlight"
    mixed.write_text("0 qid:5 1:1\n0 qid:4 1:3\n0 qid:5 1:2\n0 qid:4 1:9\n0 qid:5 1:3\n", encoding="utf-8")
    new = Queries.read_new([str(mixed)], meta)
    encoded = FeatureMap(meta, {}).encode(new.raw)
    problem = build("ranking", encoded.arrays, encoded.meta)
    assert problem.label_ptr.tolist() == [0, 6, 10]
    labels = np.zeros(10, np.int16)
    for i in range(2):
        theta = np.empty(problem.local_ptr[i + 1] - problem.local_ptr[i])
        problem.scores(i, np.array([1.0, 0, 0]), theta)
        problem.decode(i, theta, labels[problem.label_ptr[i] : problem.label_ptr[i + 1]], problem.scratch())
    shown = Queries.show(new, Predicted(labels, problem.label_ptr, [], encoded.arrays)).text.splitlines()
    assert shown == ["document,query,relevance,rank", "0,5,0.0,3", "1,4,0.0,2", "2,5,0.0,2", "3,4,0.0,1", "4,5,0.0,1"]
    two = Queries.read_new([str(mixed), str(mixed)], meta)
    assert FeatureMap(meta, {}).encode(two.raw).arrays["x_ptr"].tolist() == [0, 3, 5, 8, 10]
    stored = Queries.stored_input(sink.arrays("test"), meta)
    assert stored.raw["query"].tolist() == [7, 7, 8, 8]
    assert stored.source.tolist() == [0, 3, 1, 0]
    with pytest.raises(DataError, match=r"input: x is \(2, 2\) and query \(2,\); expected \(documents, 3\)"):
        FeatureMap(meta, {}).encode({"x": np.ones((2, 2)), "query": [1, 1]})


@pytest.mark.parametrize(
    ("train", "message"),
    [
        ("1 1:2\n0 1:3\n", r"train.svmlight: 2 documents, 0 of them with a qid; expected lines like"),
        ("1 qid:a 1:2\n", r"train.svmlight: line 1: invalid literal.*; expected lines like"),
        ("1 qid:1 1:2\n1 qid:1 1:3\n", "train.svmlight: no train query has documents of different relevance"),
        ("1 qid:1 1:2\n0 qid:1 1:inf\n", r"train.svmlight: line 2: feature 1 \(from 0\) is not a finite number"),
    ],
)
def test_files__that_cannot_be_used_are_named(tmp_path: Path, train: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read(opened(tmp_path, train))
