"""A user's own classification data: all formats alike, splits, costs, bias, and errors that name file and line."""

from __future__ import annotations

import gzip
from pathlib import Path

import numba
import numpy as np
import pytest
from leaves_home import check_same_bits, made
from memory_sink import problems, read
from scipy import sparse

from gapwise.stages.datasets import DataError, OptionError, open_dataset, specimen
from gapwise.stages.featurize import featurize, open_problem
from gapwise.stages.problems import build

X = np.array([[0.5, 0.0, -2.0], [0.0, 1.25, 0.0], [3.0, 0.0, 0.0], [0.0, 0.0, 1.0], [1.0, 1.0, 1.0], [0.0, 2.0, 0.5]])
Y = np.array([7, -1, 7, 3, -1, 3])
NAMES = {7: "seven", -1: "minus", 3: "three"}


def svmlight(x: np.ndarray, labels, first: int = 1) -> str:
    """Text in SVMlight's format, with a comment and an empty line."""
    rows = [
        " ".join([str(label), *(f"{j + first}:{row[j]!r}" for j in np.flatnonzero(row))])
        for row, label in zip(x.tolist(), labels, strict=True)
        for row in [np.array(row)]
    ]
    return "# made by a test\n\n" + "\n".join(rows).replace("np.float64(", "").replace(")", "") + " # the last\n"


def csv(x: np.ndarray, labels, header: str = "") -> str:
    lines = [",".join([*map(str, row), str(label)]) for row, label in zip(x.tolist(), labels, strict=True)]
    return "\n".join([header, *lines] if header else lines) + "\n"


def save(folder: Path, name: str, content) -> str:
    """Write a text, or arrays by name; the path."""
    path = folder / name
    if isinstance(content, dict):
        np.savez(path, **content)
    else:
        path.write_bytes(gzip.compress(content.encode()) if name.endswith(".gz") else content.encode())
    return str(path)


def options(folder: Path, train, test=None, ending: str = ".csv", **more) -> dict:
    files = {"file": save(folder, "train" + ending, train)}
    if test is not None:
        files["test_file"] = save(folder, "test" + ending, test)
    return {"name": "multiclass_arrays", **files, **more}


def opened(*arguments, **more):
    given = options(*arguments, **more)
    return open_dataset(given["name"], given)


def dense(problem) -> np.ndarray:
    """The rows of a problem of either structure, (n, D)."""
    if hasattr(problem, "x"):
        return problem.x
    width = problem.d // problem.labels
    return sparse.csr_array((problem.values, problem.ids, problem.row_ptr), shape=(problem.n, width)).toarray()


@pytest.mark.parametrize("labels", [Y, [NAMES[y] for y in Y]], ids=["numbers", "names"])
@pytest.mark.parametrize(
    ("ending", "content"),
    [
        (".csv", csv),
        (".csv", lambda x, y: csv(x, y, "a,b,c,class")),
        (".csv.gz", csv),
        (".svmlight", svmlight),
        (".svm.gz", svmlight),
        (".libsvm", lambda x, y: svmlight(x, y, first=0)),
        (".npz", lambda x, y: {"x": x, "y": np.array(y)}),
        (".npz", lambda x, y: {f"X_{s}": x for s in ("train", "test")} | {f"y_{s}": y for s in ("train", "test")}),
        (".npz", lambda x, y: {**parts(x), "labels": np.array(y)}),
    ],
)
def test_formats__give_the_same_examples(tmp_path, labels, ending, content):
    train, test, _, meta = problems(opened(tmp_path, content(X, labels), content(X, labels), ending))
    names = sorted(set(np.asarray(labels).tolist()))
    assert meta["class_names"] == names
    assert (train.labels, train.d, meta["n_train"], meta["n_test"]) == (3, 9, 6, 6)
    for problem in (train, test):
        np.testing.assert_array_equal(dense(problem), X)
        assert [names[k] for k in problem.truth] == list(labels)


def parts(x: np.ndarray) -> dict[str, np.ndarray]:
    """What scipy.sparse.save_npz writes."""
    rows = sparse.csr_array(x)
    return {"data": rows.data, "indices": rows.indices[::1], "indptr": rows.indptr, "shape": np.array(rows.shape)}


def test_npz__may_hold_both_splits_and_keeps_float32(tmp_path):
    given = {"x": X.astype(np.float32), "y": Y, "x_test": X[:2].astype(np.float32), "y_test": Y[:2]}
    train, test, _, _ = problems(opened(tmp_path, given, ending=".npz"))
    assert (train.n, test.n, train.x.dtype) == (6, 2, np.float32)


def test_csv__label_column_by_number_and_by_name(tmp_path):
    text = "class,a,b\nx,1,2\ny,3,4\nx,5,6\ny,7,8\n"
    for column in (0, -3, "class"):
        train, _, _, meta = problems(opened(tmp_path, text, text, label_column=column))
        assert meta["class_names"] == ["x", "y"]
        assert train.x[:, 1].tolist() == [2.0, 4.0, 6.0, 8.0]


def test_split__takes_a_share_of_each_class_and_depends_on_the_seed(tmp_path):
    y = np.repeat([0, 1], [40, 8])
    x = np.arange(48.0)[:, None]
    first = problems(opened(tmp_path, csv(x, y), seed=1))
    train, test = first[:2]
    assert np.bincount(train.truth).tolist() == [30, 6]
    assert np.bincount(test.truth).tolist() == [10, 2]
    assert sorted([*train.x[:, 0], *test.x[:, 0]]) == x[:, 0].tolist()
    again, other = (problems(opened(tmp_path, csv(x, y), seed=seed))[1].x for seed in (1, 2))
    assert (again == test.x).all()
    assert not np.array_equal(other, test.x)


def test_split__leaves_every_class_an_example_to_learn_from(tmp_path):
    train, test, _, _ = problems(opened(tmp_path, csv(X, Y), test_fraction=0.9))
    assert np.bincount(train.truth).tolist() == [1, 1, 1]
    assert test.n == 3


@pytest.mark.parametrize(("ending", "content"), [(".csv", csv), (".svm", svmlight)])
def test_bias__is_a_last_column(tmp_path, ending, content):
    train, test, _, _ = problems(opened(tmp_path, content(X, Y), content(X, Y), ending, bias=2.5))
    for problem in (train, test):
        np.testing.assert_array_equal(dense(problem), np.hstack([X, np.full((6, 1), 2.5)]))
        np.testing.assert_allclose(problem.norms2, (X**2).sum(axis=1) + 6.25)


def test_svmlight__columns_of_the_test_file_alone_are_left_out_and_counted(tmp_path):
    given = opened(tmp_path, svmlight(X[:, :2], Y), svmlight(X, Y), ".svm", bias=1.0)
    train, test, _, meta = problems(given)
    assert (train.d, test.d, meta["values_in_test_columns_only"]) == (9, 9, 4)
    np.testing.assert_array_equal(dense(test), np.hstack([X[:, :2], np.ones((6, 1))]))


COSTS = np.array([[0.0, 2.0, 5.0], [1.0, 0.0, 1.5], [0.25, 4.0, 0.0]])


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize(("ending", "content"), [(".csv", csv), (".svm", svmlight)])
def test_costs__are_those_of_the_file(tmp_path, named, ending, content):
    text = "\n".join(",".join(map(str, row)) for row in COSTS.tolist())
    if named:  # columns and rows in other orders than the classes -1, 3, 7
        text = "true,7,-1,3\n3,1.5,1,0\n-1,5,0,2\n7,0,0.25,4\n"
    costs = save(tmp_path, "costs.csv", text)
    for problem in problems(opened(tmp_path, content(X, Y), content(X, Y), ending, costs=costs))[:2]:
        np.testing.assert_array_equal(problem.cost, COSTS)
    np.save(tmp_path / "costs.npy", COSTS)
    given = opened(tmp_path, content(X, Y), content(X, Y), ending, costs=str(tmp_path / "costs.npy"))
    np.testing.assert_array_equal(problems(given)[0].cost, COSTS)
    assert sorted(given.files()) == ["costs", "test", "train"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0,1\n1,0\n", r"costs\.csv: line 1: 2 numbers, expected 3, one for each of -1, 3, 7"),
        ("0,1,1\n1,0,1\n", r"costs\.csv: is \(2, 3\); expected \(3, 3\)"),
        ("0,1,1\n1,0,x\n1,1,0\n", r"costs\.csv: line 2: 'x': expected a number"),
        ("0,1,1\n\n1,0.5,1\n1,1,0\n", r"costs\.csv: line 3: the cost of 3 for 3 is 0\.5; expected 0 on the diagonal"),
        ("0,1,1\n1,0,1\n1,-1,0\n", r"costs\.csv: line 3: the cost of 3 for 7 is -1; expected a number >= 0"),
        (
            "true,-1,3,7\n-1,0,1,1\n3,1,0,1\n9,1,1,0\n",
            r"costs\.csv: the first column names -1, 3, 9; expected -1, 3, 7",
        ),
    ],
)
def test_costs__that_are_wrong_are_named(tmp_path, text, message):
    costs = save(tmp_path, "costs.csv", text)
    with pytest.raises(DataError, match=message):
        read(opened(tmp_path, csv(X, Y), csv(X, Y), costs=costs))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1,2,a\n3,4\n", r"train\.csv: line 2: 2 columns, expected 3 as in the first line"),
        ("1,2,a\n\n3,x,b\n", r"train\.csv: line 3: column 1 is 'x'; expected a number"),
        ("p,q,class\n1,,a\n", r"train\.csv: line 2: column 1 \(q\) is ''; expected a number"),
        ("1,2,a\n1,inf,b\n", r"train\.csv: line 2: feature 1 \(from 0\) is not a finite number"),
        ("1,2,a\n1,2, \n", r"train\.csv: line 2: column 2 is empty; expected the label"),
        ("1,2,a\n1,3,a\n", r"train\.csv: has 1 classes of labels; expected 2 to"),
        ("1\n2\n", r"train\.csv: line 1: one column only"),
        ("\n", r"train\.csv: holds no examples"),
        ("a,b\n", r"train\.csv: holds a header but no examples"),
        ('1,2,"a\n', r"train\.csv: line 1: .*expected comma-separated values"),
    ],
)
def test_csv__bad_lines_are_named(tmp_path, text, message):
    with pytest.raises(DataError, match=message):
        read(opened(tmp_path, text, csv(X[:, :2], Y)))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 1:2\n2 3:1 2:5\n", r"train\.svm: line 2: index 2 after 3; expected indices that rise"),
        ("1 1:2\n2 2:1 2:5\n", r"train\.svm: line 2: index 2 after 2; expected indices that rise"),
        ("1 1:2\n\n2 x:1\n", r"train\.svm: line 3: 'x:1': expected index:value"),
        ("1 1:2\n2 7\n", r"train\.svm: line 2: '7': expected index:value"),
        ("1 -1:2\n2 7:1\n", r"train\.svm: line 1: '-1:2': expected index:value"),
        ("1 1:2\n2 7:nan\n", r"train\.svm: line 2: feature 6 \(from 0\) is not a finite number"),
        (
            "1 qid:3 1:2\n",
            r"train\.svm: line 1: has a qid; dataset=ranking reads queries, dataset=sequences_csv SVM-HMM",
        ),
        ("1:2 3:4\n", r"train\.svm: line 1: begins with '1:2'; expected a label"),
        ("1,2 3:4\n", r"train\.svm: line 1: has the labels '1,2'; expected one label a line"),
        ("1\n2\n", r"train\.svm: no example has a feature"),
        ("# nothing\n", r"train\.svm: holds no examples"),
    ],
)
def test_svmlight__bad_lines_are_named(tmp_path, text, message):
    with pytest.raises(DataError, match=message):
        read(opened(tmp_path, text, "1 1:1\n", ".svm"))


def test_test_file__must_fit_the_training_file(tmp_path):
    with pytest.raises(
        DataError, match=r"test\.csv: line 2: the label 5 does not occur in .*train\.csv, whose labels are -1, "
    ):
        read(opened(tmp_path, csv(X, Y), csv(X[:2], [3, 5])))
    with pytest.raises(DataError, match=r"test\.csv: 2 features, but 3 in"):
        read(opened(tmp_path, csv(X, Y), csv(X[:, :2], Y)))
    with pytest.raises(DataError, match=r"test\.svm: line 3: index 0, but in the training file they count from 1"):
        read(opened(tmp_path, svmlight(X, Y), svmlight(X, Y, first=0), ".svm"))
    save(tmp_path, "test.npz", {**parts(X), "y": Y})
    with pytest.raises(DataError, match=r"test\.npz: one of training and test features is sparse"):
        read(opened(tmp_path, {"x": X, "y": Y}, None, ".npz", test_file=str(tmp_path / "test.npz")))


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"y": Y}, r"expected the features in one array called x or X or x_train or X_train; there are: y"),
        ({"x": X, "X": X, "y": Y}, r"expected the features in one array .*; x and X"),
        ({"x": X}, r"expected the labels in one array called y or labels"),
        ({"x": X, "y": Y[:3]}, r"y has shape \(3,\), expected one label for each of 6 >= 1 rows"),
        ({"x": X, "y": Y + 0.5}, r"y is float64 and no whole numbers; expected whole numbers or text"),
        ({"x": X[0], "y": Y}, r"x is float64\(3,\); expected numbers, \(examples, features\)"),
        ({"x": np.where(X == 3, np.nan, X), "y": Y}, r"row 2: feature 0 \(from 0\) is not a finite number"),
        ({"x": X.astype(object), "y": Y}, r"x or y cannot be read"),
        ({**parts(X), "indptr": np.array([0, 1]), "y": Y}, r"data, indices, indptr and shape are no CSR matrix"),
        ({**parts(X), "indices": parts(X)["indices"] + 1, "y": Y}, r"expected numbers in data and 0\.\.2 in indices"),
        ({**parts(X), "indices": parts(X)["indices"] * 0, "y": Y}, r"row 0 has column 0 twice"),
    ],
)
def test_npz__bad_arrays_are_named(tmp_path, arrays, message):
    with pytest.raises(DataError, match=message):
        read(opened(tmp_path, arrays, ending=".npz"))


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"file": "gone.csv"}, DataError, r"dataset\.file: there is no file gone\.csv"),
        ({"costs": "gone.npy"}, DataError, r"dataset\.costs: there is no file gone\.npy"),
        ({"format": "arff"}, OptionError, r"dataset\.format: expected one of npz, csv, svmlight, or null, got 'arff'"),
        ({"bias": "big"}, OptionError, r"dataset\.bias: expected a number other than 0, or null, got 'big'"),
        ({"test_fraction": 1}, OptionError, r"dataset\.test_fraction: expected a number between 0 and 1, got 1"),
        (
            {"label_column": 5.5},
            OptionError,
            r"dataset\.label_column: expected a number or a name of the header, or null",
        ),
    ],
)
def test_options__are_checked(tmp_path, given, error, message):
    with pytest.raises(error, match=message):
        opened(tmp_path, csv(X, Y), **given)


def test_format__unknown_endings_ask_for_it(tmp_path):
    with pytest.raises(OptionError, match=r"dataset\.format: must be given for train\.data, as in dataset\.format=svm"):
        opened(tmp_path, svmlight(X, Y), ending=".data")
    assert problems(opened(tmp_path, svmlight(X, Y), ending=".data", format="svmlight", test_fraction=0.5))[0].n == 3
    with pytest.raises(DataError, match=r"train\.npz: cannot be read as an \.npz file"):
        opened(tmp_path, "text", ending=".npz")
    with pytest.raises(DataError, match=r"leave none to test on with dataset\.test_fraction=0\.25"):
        read(opened(tmp_path, csv(X[:2], Y[:2])))
    for column, message in (("class", "must name the column 'class'"), (9, "there is no dataset.label_column=9")):
        with pytest.raises(DataError, match=message):
            read(opened(tmp_path, csv(X, Y), label_column=column))


@pytest.mark.parametrize("bias", [None, 1.0])
@pytest.mark.parametrize(
    ("ending", "content"),
    [
        (".csv", csv),
        (".svm", lambda x, y: svmlight(x, y).replace("7 1:0.5", "7 1:0.5 2:0")),
        (".npz", lambda x, y: {"x": x.astype(np.float32), "y": y}),
    ],
)
def test_new_examples__are_encoded_as_featurized(tmp_path, ending, content, bias):
    feature_map, stored = made(options(tmp_path, content(X, Y), content(X, Y), ending, bias=bias), tmp_path)
    for raw in (X, sparse.csr_array(X), sparse.coo_matrix(X)):
        check_same_bits(feature_map.encode(raw), stored)
    for raw, message in (
        (X[:, :2], r"^input: is float64\(6, 2\); expected numbers, \(examples, 3\)"),
        (np.where(X == 3, np.inf, X), r"^input: row 2: feature 0 \(from 0\) is not a finite number"),
        (["a"], r"^input: is <U1\(1,\); expected numbers"),
    ):
        with pytest.raises(DataError, match=message):
            feature_map.encode(raw)


@pytest.mark.parametrize(
    ("ending", "content"),
    [
        (".csv", csv),
        (".svm", svmlight),
        (".npz", lambda x, y: {"x": x.astype(np.float32), "y": y}),
        (".npz", lambda x, y: {**parts(x.astype(np.float32)), "y": y}),
    ],
)
def test_specimen__has_the_types_of_what_is_featurized(tmp_path, ending, content):
    given = options(tmp_path, content(X, Y), ending=ending, test_fraction=0.5)
    featurize(given, tmp_path / "store", key="", map_blocks=map, report=lambda *_: None)
    encoded = specimen(given)
    stored = open_problem(tmp_path / "store", "train")
    assert numba.typeof(build(encoded.structure, encoded.arrays, encoded.meta)) == numba.typeof(stored)


NAMED = "a,b,c,class\n1,2,3,x\n4,5,6,y\n7,8,9.5,x\n"


@pytest.mark.parametrize(
    "text",
    [
        NAMED,
        "\ufeff" + NAMED,  # a byte order mark
        NAMED.replace("\n", "\r\n"),
        NAMED.replace("a,b", '"first, or a", b').replace("4,5", '"4", 5'),
        ",a,b,c,class\n0,1,2,3,x\n1,4,5,6,y\n2,7,8,9.5,x\n",  # row numbers of pandas' to_csv()
        NAMED.replace("a,b,c", "0,1,2"),  # pandas' names of columns without names
        ",0,1,2,class\n0,1,2,3,x\n1,4,5,6,y\n2,7,8,9.5,x\n",
        "0,1,2,3\n1,2,3,10\n4,5,6,20\n7,8,9.5,10\n",
        "400,410,420,class\n1,2,3,10\n4,5,6,20\n7,8,9.5,10\n",  # names are numbers, and so are all labels but the first
        "1,2,3,x\n4,5,6,y\n7,8,9.5,x\n",
        "1,2,3,10\n4,5,6,20\n7,8,9.5,10\n",
    ],
)
def test_csv__header_is_told_from_an_example(tmp_path, text):
    train, _, _, meta = problems(opened(tmp_path, text, text))
    assert train.x.tolist() == [[1, 2, 3], [4, 5, 6], [7, 8, 9.5]]
    assert [meta["class_names"][k] for k in train.truth] in (["x", "y", "x"], [10, 20, 10])


@pytest.mark.parametrize(
    "first", ["0,1,2,3\n", "400,410,class\n", "0,1\n"], ids=["counts, but 3 is a class", "a name among names", "short"]
)
def test_csv__first_line_that_may_be_either_is_refused(tmp_path, first):
    labels = [3, 1] if "class" not in first else ["p", "q"]
    text = first + csv(np.ones((4, first.count(","))), labels * 2)
    with pytest.raises(
        DataError, match=r"train\.csv: line 1: .* may be a header or an example. If it is a header, give"
    ):
        read(opened(tmp_path, text, text))


def test_csv__columns_go_by_name(tmp_path):
    for label in (None, "class", -1):
        train, test, _, meta = problems(opened(tmp_path, NAMED, "class,c,a,b\ny,3,1,2\nx,6,4,5\n", label_column=label))
        assert (test.x.tolist(), test.truth.tolist()) == ([[1, 2, 3], [4, 5, 6]], [1, 0])
        assert (meta["arrays"]["columns"], meta["label_column"], train.n) == (["a", "b", "c"], "class", 3)


@pytest.mark.parametrize(
    ("header", "says"),
    [
        ("a,b,d,class", "missing: c, unknown: d"),
        ("a,b,C,class", "missing: c, unknown: C"),
        ("a,b,c,d,class", "unknown: d"),
        ("a,b,c,kind", "missing: class, unknown: kind"),
        ("a,b,class", "missing: c"),
        ("1,2,3,x", "missing: a, b, c, class, unknown: 1, 2, 3, x"),
    ],
)
def test_csv__other_columns_than_those_of_training_are_named(tmp_path, header, says):
    row = ",".join(["1"] * header.count(",")) + ",x\n"
    with pytest.raises(DataError, match=rf"test\.csv: line 1: expected the columns of the training data, .*; {says}$"):
        read(opened(tmp_path, NAMED, f"{header}\n{row}"))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a,b,a,class\n1,2,3,x\n", "line 1: two columns are called 'a'; give them different names"),
        ("a,,c,class\n1,2,3,x\n", "line 1: a column of the header has no name"),
        ("a;b;class\n1;2;x\n", "line 1: has semicolons or tabs; expected commas"),
        ("a\tb\tclass\n1\t2\tx\n", "line 1: has semicolons or tabs; expected commas"),
        ("1,5;2,5;x\n2,5;3,5;y\n", "line 1: has semicolons or tabs; expected commas"),
        ('a,b,class\n"1,5",2,x\n', r"line 2: column 0 \(a\) is '1,5'; expected a number, such as 1\.5"),
        ("a,b,class\n1,2,x\n1,NA,y\n", r"line 3: column 1 \(b\) is 'NA'; expected a number"),
        ("a,b,class\n1,nan,x\n", r"line 2: feature 1 \(from 0\), b is not a finite number"),
        ("NA,2,x\n3,4,x\n5,6,y\n", "line 1: column 0 is 'NA'; expected a number"),
        ("a,b,class\n1_0,2,x\n", r"line 2: column 0 \(a\) is '1_0'; expected a number"),
    ],
)
def test_csv__tables_that_cannot_be_read_are_named(tmp_path, text, says):
    with pytest.raises(DataError, match=rf"train\.csv: {says}"):
        read(opened(tmp_path, text, text))


SPELLINGS = ["1", "01", "10", "1_0", "1e1", "+1", "1.0"]


@pytest.mark.parametrize(
    ("ending", "content", "classes"),
    [
        (".csv", csv, 7),
        (".npz", lambda x, y: {"x": x, "y": np.array(y)}, 7),
        (".svm", svmlight, 5),  # there, a label is a number: 1, +1 and 1.0 are the same
    ],
)
def test_labels__keep_their_spelling(tmp_path, ending, content, classes):
    given = content(np.ones((14, 2)), SPELLINGS * 2)
    train, _, _, meta = problems(opened(tmp_path, given, given, ending))
    names = [meta["class_names"][k] for k in train.truth]
    assert (len(set(names)), sorted({*names} - {*SPELLINGS})) == (classes, [])
    assert names == (SPELLINGS if classes == 7 else [*SPELLINGS[:5], "1", "1"]) * 2


def test_labels__of_csv_are_any_text(tmp_path):
    names = ["\u3000", "\u00a0a", "a", "NA", "nan", str(2**70), str(2**70 + 1), "true", "True"]
    text = csv(np.ones((18, 1)), names * 2)
    train, _, _, meta = problems(opened(tmp_path, text, text))
    assert [meta["class_names"][k] for k in train.truth] == names * 2


def test_labels__of_new_spellings_are_unknown(tmp_path):
    for label in ("07", "7.0"):
        with pytest.raises(
            DataError, match=rf"test\.csv: line 1: the label '{label}' does not occur in .*, whose labels"
        ):
            read(opened(tmp_path, csv(X, Y), csv(X[:1], [label])))
    text = [str(k) for k in range(11)] * 2
    meta = problems(opened(tmp_path, {"x": np.ones((22, 1)), "y": np.array(text)}, ending=".npz", test_fraction=0.5))[3]
    assert meta["class_names"] == text[:11]  # in the order of numbers, and text


def test_new_tables__go_by_name(tmp_path):
    import pandas as pd

    feature_map, stored = made(options(tmp_path, NAMED, NAMED), tmp_path)
    table = pd.DataFrame([[1, 2, 3.0], [4, 5, 6], [7, 8, 9.5]], columns=["a", "b", "c"])
    for columns in (["a", "b", "c"], ["c", "a", "b"], ["class", "b", "c", "a"]):
        check_same_bits(feature_map.encode(table.assign(**{"class": "x"})[columns]), stored)
    check_same_bits(feature_map.encode(table.to_numpy()), stored)
    for wrong, says in (
        (table.rename(columns={"a": "A"}), "missing: a, unknown: A"),
        (table.assign(d=1), "unknown: d"),
        (table[["a", "b"]], "missing: c"),
        (pd.DataFrame(table.to_numpy()), "missing: a, b, c, unknown: 0, 1, 2"),
    ):
        with pytest.raises(DataError, match=f"^input: expected the columns of the training data, .*; {says}$"):
            feature_map.encode(wrong)


def test_csv__line_of_blanks_of_other_scripts_is_no_empty_line(tmp_path):
    text = csv(X, Y) + "\u3000,\u3000,\u3000\n"
    with pytest.raises(DataError, match=rf"line {text.count(chr(10))}: "):
        read(opened(tmp_path, text, csv(X, Y)))
