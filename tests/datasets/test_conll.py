"""CoNLL-2000: the feature map against a plain one, errors with line numbers, sizes of the real data."""

from __future__ import annotations

import gzip
from collections import Counter

import numpy as np
import pytest
from memory_sink import problems

from gapwise.stages.datasets import DataError, open_dataset
from gapwise.stages.datasets.conll import TEMPLATES, WORD
from gapwise.stages.datasets.text.tables import read_table
from gapwise.stages.problems.chain import metrics

TRAIN = ["the DT B-NP", "cat NN I-NP", "sat VB B-VP", "", "The DT B-NP", "cat NN I-NP", "ran VB B-VP", "",
         "the DT B-NP", "dog NN I-NP", "sat VB B-VP", "", "cats NNS B-NP", ""]  # fmt: skip
TEST = ["the DT B-NP", "bird XX B-LST", "", "sat VB B-VP", ""]


def write(tmp_path, train=TRAIN, test=TEST, packed=False):
    for name, text in (("train.txt", train), ("test.txt", test)):
        raw = ("\n".join(text) + "\n").encode()
        (tmp_path / (name + ".gz" * packed)).write_bytes(gzip.compress(raw) if packed else raw)
    return {"root": tmp_path}


def plain_features(sentence, t):
    """What each template sees at token t, in plain Python."""
    for number, template in enumerate(TEMPLATES):
        seen = []
        for offset, column in template.macros:
            if t + offset < 0:
                seen.append("<")
            elif t + offset >= len(sentence):
                seen.append(">")
            else:
                value = sentence[t + offset][column]
                seen.append(value.lower() if column == WORD else value)
        yield number, *seen


def sentences(text):
    return [[line.split() for line in block.split("\n")] for block in "\n".join(text).strip().split("\n\n")]


@pytest.mark.parametrize("packed", [False, True])
def test_conll__attributes_are_those_of_a_plain_feature_map(tmp_path, packed):
    train, test, _sink, meta = problems(open_dataset("conll", {**write(tmp_path, packed=packed), "min_count": 2}))
    met = Counter(key for s in sentences(TRAIN) for t in range(len(s)) for key in plain_features(s, t))
    frequent = {key for key, count in met.items() if count >= 2}
    assert meta["attributes"] == len(frequent) + 3
    names: dict[int, tuple] = {}
    for problem, text in ((train, TRAIN), (test, TEST)):
        token = 0
        for sentence in sentences(text):
            for t in range(len(sentence)):
                ids = problem.tokens.ids[problem.tokens.row_ptr[token] : problem.tokens.row_ptr[token + 1]]
                expected = [key for key in plain_features(sentence, t) if key in frequent]
                assert (ids[: len(expected)] < len(frequent)).all()
                assert all(names.setdefault(k, key) == key for k, key in zip(ids, expected, strict=False))
                biases = (
                    [len(frequent)] + [len(frequent) + 1] * (t == 0) + [len(frequent) + 2] * (t == len(sentence) - 1)
                )
                np.testing.assert_array_equal(ids[len(expected) :], biases)
                token += 1
    assert len(names) == len(set(names.values())) == len(frequent)


def test_conll__label_of_test_only_is_an_error_there(tmp_path):
    _train, test, sink, meta = problems(open_dataset("conll", write(tmp_path)))
    assert meta["label_names"] == ["B-NP", "B-VP", "I-NP"]
    assert meta["test_only_labels"] == ["B-LST"]
    np.testing.assert_array_equal(test.truth, [0, 3, 1])
    best = np.array([0, 0, 1], dtype=test.truth.dtype)
    assert metrics(test, sink.arrays("test"), best)["token_error"] == pytest.approx(1 / 3)


@pytest.mark.parametrize(
    ("train", "message"),
    [
        ([*TRAIN[:5], "cat NN", *TRAIN[6:]], "line 6: 2 columns, but 3 on line 1"),
        (["", "the DT B-NP extra"], "line 2: 4 columns, expected 3"),
        ([""], "holds no tokens"),
    ],
)
def test_conll__bad_lines_are_named(tmp_path, train, message):
    with pytest.raises(DataError, match=rf"train\.txt: {message}"):
        problems(open_dataset("conll", write(tmp_path, train=train)))


def test_empty_lines__count_as_one_wherever_they_stand(tmp_path):
    (tmp_path / "x.txt").write_text("\n\na b c\n\n \t\nd e f\n\n\n")
    table = read_table(tmp_path / "x.txt")
    assert table.start.tolist() == [0, 1, 2]
    assert table.line.tolist() == [3, 6]


@pytest.mark.slow
def test_conll__real_data_has_the_sizes_of_the_papers(shared_data):
    train, test, sink, meta = problems(open_dataset("conll", {"root": shared_data / "conll2000"}))
    assert (train.n, test.n, train.d) == (8936, 2012, 1_643_026)
    assert (meta["classes"], meta["attributes"], train.longest) == (22, 74_661, 78)
    assert (train.truth.size, test.truth.size) == (211_727, 47_377)
    assert meta["test_only_labels"] == ["I-LST"]
    assert (test.truth >= 22).sum() == 2
    perfect = np.minimum(test.truth, 21)
    scores = metrics(test, sink.arrays("test"), perfect)
    assert scores["token_error"] == pytest.approx(2 / 47_377)
    assert 0.999 < scores["chunk_f1"] < 1.0
