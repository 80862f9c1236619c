"""A user's own sequences: CRF++ templates, CRFsuite's lines, errors with file and line."""

from __future__ import annotations

import gzip
from itertools import pairwise

import numpy as np
import pytest
from memory_sink import problems, read

from gapwise.stages.datasets import Blocks, DataError, Predicted, open_dataset, sequences_csv
from gapwise.stages.featurize import featurize, open_problem

COLUMNS = "a x P\nb x Q\n\na y P\n"
TEMPLATE = "# words\nU00:%x[0,0]\nU01:%x[-1,0]/%x[0,1]\nU02:%x[-2,0]\n\nB\n"
LINES = "P\tw=a\tlen:0.5\nQ\tw=b\ta\\:b:2\n\nP\tw=a\tw=a\n"


def write(tmp_path, train=COLUMNS, test=COLUMNS, template=TEMPLATE, **options):
    files = {"file": "train.txt", "test_file": "test.txt"}
    for name, text in ((files["file"], train), (files["test_file"], test), ("template", template)):
        if text is not None:
            (tmp_path / name).write_text(text)
    if template is not None:
        files["template"] = "template"
    return {name: str(tmp_path / file) for name, file in files.items()} | options


def rows(problem):
    return [sorted(problem.tokens.ids[a:b]) for a, b in pairwise(problem.tokens.row_ptr)]


def test_columns__templates_expand_as_in_crfpp(tmp_path):
    train, test, _, meta = problems(open_dataset("sequences_csv", write(tmp_path)))
    # U00: a, b; U01: _B-1/x, a/x, _B-1/y; U02: _B-2 (twice), _B-1: the two distances outside differ
    assert meta["attributes"] == 2 + 3 + 2 + 3
    assert meta["label_names"] == ["P", "Q"]
    assert (train.n, train.d) == (2, 10 * 2 + 4)
    first, second, third = (set(row) for row in rows(train))
    bias = {7, 8, 9}
    assert len((first & third) - bias) == 2  # U00:a and U02:_B-2
    assert not (first & second) - bias
    assert rows(test) == rows(train)


def test_columns__templates_of_one_name_share_their_attributes(tmp_path):
    """A bag of words, in CRF++: U:%x[-1,0] and U:%x[1,0] see the same attribute."""
    bag = write(tmp_path, train="a P\nb P\na P\n", test="a P\n", template="U:%x[-1,0]\nU:%x[1,0]\n")
    train, _, _, meta = problems(open_dataset("sequences_csv", bag))
    assert meta["attributes"] == 4 + 3  # a, b, _B-1, _B+1
    both = train.tokens.ids[train.tokens.row_ptr[1] : train.tokens.row_ptr[2]]
    assert both[0] == both[1]
    assert train.gram[4] == 4 + 1


def test_lines__of_crfsuite_have_values_and_escapes(tmp_path):
    train, _test, _, meta = problems(open_dataset("sequences_csv", write(tmp_path, LINES, LINES, None)))
    assert meta["attributes"] == 4 + 3
    np.testing.assert_allclose(
        train.tokens.values[train.tokens.row_ptr[0] : train.tokens.row_ptr[1]], [1.0, 0.5, 1.0, 1.0]
    )
    assert 2.0 in train.tokens.values[train.tokens.row_ptr[1] : train.tokens.row_ptr[2]]
    assert train.gram[train.gram_ptr[1]] == 4 + 3  # w=a twice, and three biases


WORDS = ["\u3000", "\xa0", "10\xa0000", "\u2028", "\x85", "\x0b", "\x0c", "\x1c", "\x1d\x1e"]
"""Tokens that `str.split` takes for white space or for the end of a line."""


@pytest.mark.parametrize("by", [" ", "\t"])
def test_columns__are_separated_by_blanks_and_tabs_alone(tmp_path, by):
    text = "".join(f"{word}{by}{label}\n" for word, label in zip(WORDS, "PQPQPQPQP", strict=True))
    train, *_ = problems(open_dataset("sequences_csv", write(tmp_path, f"\ufeff{text}", text, "U:%x[0,0]\n")))
    assert (train.n, train.truth.size, train.d) == (1, len(WORDS), (len(WORDS) + 3) * 2 + 4)


@pytest.mark.parametrize(
    ("train", "new", "tagged", "met"),
    [
        ("New York\tP\nis\tQ\n\n\nRome\tP\n", "New York\nis\n\n\nNew  \n", "New York\tP\nis\tP\n\nNew\tP\n", 2),
        ("New York\tP\nis\tQ\n", "New York\tQ\r\nis\tQ\r\n", "New York\tQ\tP\nis\tQ\tP\n", 2),
        ("Rome P\nis Q\n", "Rome\tQ\n\nNew York\tQ\n", "Rome\tQ\tP\n\nNew York\tQ\tP\n", 1),
        ("Rome\tx\tP\nis\ty\tQ\n", "Rome x\nis  y \n", "Rome x P\nis y P\n", 2),
    ],
)  # fmt: skip
def test_predictions__have_the_separator_of_the_input(tmp_path, train, new, tagged, met):
    sink, meta = read(open_dataset("sequences_csv", write(tmp_path, train, train, "U:%x[0,0]\n")))
    (tmp_path / "new.txt").write_bytes(new.encode())
    given = sequences_csv.Sequences.read_new([str(tmp_path / "new.txt")], meta)
    labels = np.zeros(given.raw.start[-1], np.uint8)
    assert sequences_csv.Sequences.show(given, Predicted(labels, given.raw.start, ["P", "Q"])).text == tagged
    test = sequences_csv.Sequences.stored_input(sink.arrays("test"), meta)
    assert test.raw.rows == [line.split("\t" if "\t" in train else None) for line in train.splitlines() if line]
    encoded = Blocks("chain", decoding=True)
    known = sequences_csv.Sequences.encoder(meta, sink.whole[""]).encode(given.raw, encoded, map)
    assert known.known == met


def test_lines__of_svm_hmm_are_those_of_crfsuite(tmp_path):
    hmm = "# tags\n3 qid:1 1:0.5 7:1 # w\n#\n\n12  qid:1 2:1#\n3\tqid:2 1:0.5\n12 qid:1 7:2 # x qid:3\n"
    lines = "3\t1:0.5\t7:1\n12\t2:1\n\n3\t1:0.5\n\n12\t7:2\n"
    (one, facts), (other, _) = (
        read(open_dataset("sequences_csv", write(tmp_path, text, text, None))) for text in (hmm, lines)
    )
    for split in ("train", "test"):
        ours, theirs = one.arrays(split), other.arrays(split)
        assert all(np.array_equal(ours[name], theirs[name]) for name in theirs)
    assert (facts["n_train"], facts["label_names"]) == (3, ["12", "3"])


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ({"train": "a x P\nb Q\n"}, r"train\.txt: line 2: 2 columns, but 3 on line 1"),
        ({"test": "a x P\n\na x Z\n"}, r"test\.txt: line 3: label 'Z' never occurs in"),
        ({"template": "U00:%x[0,2]\n"}, r"template: line 1: .*there is no column 2; feature columns are 0\.\.1"),
        (
            {"template": "U00:%x[0,0]\nU01:%x\n"},
            r"template: line 2: .*expected U.*, B, or a comment",
        ),
        (
            {"template": "U00:%x[0,0]\nB01:%x[0,0]\n"},
            r"template: line 2: .*do not depend on the text; begin this line with U",
        ),
        ({"train": "P\n", "test": "P\n"}, r"train\.txt: line 1: one column only"),
        ({"train": "P\ta\n\ta\n", "template": None}, r"train\.txt: line 2: no label before the first tab"),
        ({"test": "a\tx\tP\nb\tx\t\n"}, r"test\.txt: line 2: no label after the last tab"),
        (
            {"train": "a x P\nb\tx y\tP\n"},
            r"train\.txt: line 2: 3 columns, but 1 on line 1; a line has a tab, so only tabs",
        ),
    ],
)
def test_sequences__bad_input_is_named(tmp_path, texts, message):
    with pytest.raises(DataError, match=message):
        problems(open_dataset("sequences_csv", write(tmp_path, **texts)))


def test_sequences__labels_never_seen_can_count_as_errors(tmp_path):
    options = write(tmp_path, test="a x P\nb x Z\n", unseen_labels="count")
    _, test, _, meta = problems(open_dataset("sequences_csv", options))
    assert meta["test_only_labels"] == ["Z"]
    assert test.truth[1] == 2


@pytest.mark.parametrize("first", ["whole", "divided"])
def test_validation__blocks_store_no_gram_matrix(tmp_path, first):
    """Whether they are made or taken from features without a validation split."""
    options = write(tmp_path, train="a x P\nb x Q\n\n" * 6) | {"name": "sequences_csv", "validation": None}
    given = {"key": "k", "map_blocks": map, "report": lambda done, total, task: None}
    if first == "whole":
        featurize(options, tmp_path / "whole", **given)
    options["validation"] = {"share": 0.5, "seed": 0}
    featurize(options, tmp_path / "store", whole=tmp_path / "whole", **given)
    assert open_problem(tmp_path / "store", "validation").gram.size == 0
    assert open_problem(tmp_path / "store", "train").gram.size == 3 * 2**2


def test_files__in_parts_packed_and_from_windows_give_the_features_of_one(tmp_path):
    (tmp_path / "one").mkdir()
    whole, _ = read(open_dataset("sequences_csv", write(tmp_path / "one", "a x P\nb x Q\n\na y P\n\nb y Q\n")))
    (tmp_path / "train-1.txt").write_bytes(b"\xef\xbb\xbfa x P\r\nb x Q\r\n")
    (tmp_path / "train-2.txt.gz").write_bytes(gzip.compress("\ufeffa y P\n\nb y Q".encode()))
    for given in (f"{tmp_path}/train-*", [f"{tmp_path}/train-1.txt", f"{tmp_path}/*-2.*"]):
        parts, _ = read(open_dataset("sequences_csv", {**write(tmp_path), "file": given}))
        for split in ("train", "test"):
            ours, theirs = parts.arrays(split), whole.arrays(split)
            assert all(np.array_equal(ours[name], theirs[name]) for name in theirs)


@pytest.mark.parametrize(
    ("second", "message"),
    [
        ("b Q\n", r"part-2: line 1: 2 columns, but 3 in .*part-1"),
        ("\n\nb x Q\n\nb Q\n", r"part-2: line 5: 2 columns, but 3 on line 3"),
        ("\xff", "part-2: cannot be read as UTF-8"),
    ],
)
def test_files__of_several_the_one_at_fault_is_named(tmp_path, second, message):
    (tmp_path / "part-1").write_text(COLUMNS)
    (tmp_path / "part-2").write_bytes(second.encode("latin-1"))
    with pytest.raises(DataError, match=message):
        problems(open_dataset("sequences_csv", {**write(tmp_path), "file": f"{tmp_path}/part-*"}))
