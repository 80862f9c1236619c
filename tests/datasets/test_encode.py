"""New input through the stored feature map: the bits of a test split, without raw data."""

from __future__ import annotations

import pytest
from leaves_home import check_same_bits, made

from gapwise.stages.datasets import DataError, FeatureMap
from gapwise.stages.datasets.text.vocabulary import read_vocabulary

TRAIN = "The DT B\ncat NN I\nsat VB V\n\nthe DT B\nCat NN I\nran VB V\n\ncats NNS B\n"
TEST = "THE DT B\nÉlan NN I\n\n_B-1 DT Q\n\nsat VB V\nthe DT B\ncat NN I\nran VB V\n"
TEMPLATE = (
    "U00:%x[0,0]\nU01:%x[-1,0]/%x[0,1]\nU02:%x[-2,0]\nU:%x[-1,0]\nU:%x[1,0]\nU:%x[-2,0]\nU03:%x[2,1]/%x[-3,0]\nB\n"
)
SLASHES = "a/b c P\na b/c P\n\na/b c Q\na b/c Q\n_B-1 x P\n"
LINES = "P\tw=a\tlen:0.5\nQ\tw=b\ta\\:b:2\n\nP\tw=a\tw=a\n"
NEW_LINES = "P\tw=b\tqq:3\tlen:0.25\n\nQ\ta\\:b\nP\n"


def sequences(folder, train, test, template=None, **options):
    """Options of `sequences_csv` for these texts."""
    given = {"file": train, "test_file": test} | ({"template": template} if template else {})
    for name, text in given.items():
        (folder / name).write_text(text)
    return {"name": "sequences_csv", "unseen_labels": "count"} | options | {n: str(folder / n) for n in given}


def rows(text, separator=None, drop=0):
    """A text as lists of rows, without the last `drop` columns."""
    blocks = text.strip("\n").split("\n\n")
    return [[line.split(separator)[: -drop or None] for line in block.split("\n")] for block in blocks]


@pytest.mark.parametrize("min_count", [1, 2])
@pytest.mark.parametrize(("train", "test"), [(TRAIN, TEST), (SLASHES, SLASHES), (SLASHES, TRAIN)])
def test_columns__of_a_template_are_encoded_as_featurized(tmp_path, train, test, min_count):
    feature_map, stored = made(sequences(tmp_path, train, test, TEMPLATE, min_count=min_count), tmp_path)
    for raw in (test, rows(test), rows(test, drop=1)):
        check_same_bits(feature_map.encode(raw), stored)


def test_vocabulary__has_the_names_of_attributes_in_order_of_their_ids(tmp_path):
    template = "U0:%x[-2,0]/%x[1,1]\nB\n"
    train = "a x P\nb y P\nc z P\n\na x P\n\na x Q\n"
    feature_map, _ = made(sequences(tmp_path, train, "a x P\n", template), tmp_path)
    names = [name.split("\t") for name in read_vocabulary(feature_map.shared)]
    assert names[0] == ["U0:%x/%x", " _B-2", " _B+1"]
    assert sorted(name[1:] for name in names[1:]) == [[" _B-1", "z"], [" _B-2", "y"], ["a", " _B+1"]]


@pytest.mark.parametrize("test", [NEW_LINES, LINES])
def test_lines__of_crfsuite_are_encoded_as_featurized(tmp_path, test):
    feature_map, stored = made(sequences(tmp_path, LINES, test), tmp_path)
    for raw in (test, rows(test, "\t"), test.replace("Q\t", "\t")):
        check_same_bits(feature_map.encode(raw), stored)


def test_lines__keep_values_out_of_stores_that_have_none(tmp_path):
    plain = "P\ta\tb\nQ\tb\n"
    feature_map, stored = made(sequences(tmp_path, plain, plain), tmp_path)
    check_same_bits(feature_map.encode(plain), stored)
    assert "values" not in feature_map.encode(plain).arrays
    assert feature_map.encode("\tb:2\n").arrays["values"].tolist() == [2.0, 1.0, 1.0, 1.0]


def test_conll__is_encoded_as_featurized(tmp_path):
    (tmp_path / "train.txt").write_text(TRAIN)
    (tmp_path / "test.txt").write_text(TEST)
    feature_map, stored = made({"name": "conll", "root": str(tmp_path), "min_count": 2}, tmp_path)
    for raw in (TEST, rows(TEST), rows(TEST, drop=1)):
        check_same_bits(feature_map.encode(raw), stored)


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        ("a\nb\n", r"^input: line 1: 1 columns; expected the 2 feature columns"),
        ([[["a", "x"]], [["b", "x"], ["c", "x", "P"]]], r"^input: line 4: 3 columns, but 2 on line 1"),
        ([[["New York\t", "x"]]], r"^input: line 1: .*: expected text without tabs and line breaks"),
        (
            "a\tx y\nb x\n",
            r"^input: line 2: 1 columns, but 2 on line 1; a line has a tab, so only tabs separate columns",
        ),
        ([[["a", "x"]], []], "^input: sequence 1 has no tokens"),
    ],
)
def test_columns__that_cannot_be_encoded_are_named(tmp_path, raw, message):
    feature_map, _ = made(sequences(tmp_path, TRAIN, TRAIN, TEMPLATE), tmp_path)
    with pytest.raises(DataError, match=message):
        feature_map.encode(raw)


def test_reader__without_encoder_is_named():
    with pytest.raises(DataError, match=r"dataset\.name=usps: .*must define encoder\(meta, shared\)"):
        FeatureMap({"dataset": "usps", "structure": "multiclass"}, {})
