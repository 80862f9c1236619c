"""A user's own classification data: all formats alike, splits, costs, bias, and errors that name file and line."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
from leaves_home import check_same_bits, made
from memory_sink import problems, read
from scipy import sparse

from gapwise.stages.datasets import DataError, open_dataset

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
    """The rows of a problem, (n, D)."""
    rows = problem.rows
    if hasattr(rows, "x"):
        return rows.x
    return sparse.csr_array((rows.values, rows.ids, rows.ptr), shape=(rows.n, rows.width)).toarray()


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
def test_formats__give_the_same_examples(tmp_path, ending, content):
    for labels in (Y, [NAMES[y] for y in Y]):
        if isinstance(labels, list) and str(content(X, Y)).startswith("#"):
            continue  # SVMlight's labels are numbers
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


def test_split__takes_a_share_of_each_class_and_depends_on_the_seed(tmp_path):
    y = np.repeat([0, 1], [40, 8])
    x = np.arange(48.0)[:, None]
    first = problems(opened(tmp_path, csv(x, y), seed=1))
    train, test = first[:2]
    assert np.bincount(train.truth).tolist() == [30, 6]
    assert np.bincount(test.truth).tolist() == [10, 2]
    assert sorted([*train.rows.x[:, 0], *test.rows.x[:, 0]]) == x[:, 0].tolist()
    again, other = (problems(opened(tmp_path, csv(x, y), seed=seed))[1].rows.x for seed in (1, 2))
    assert (again == test.rows.x).all()
    assert not np.array_equal(other, test.rows.x)


@pytest.mark.parametrize(("ending", "content"), [(".csv", csv), (".svm", svmlight)])
def test_bias__is_a_last_column(tmp_path, ending, content):
    train, test, _, _ = problems(opened(tmp_path, content(X, Y), content(X, Y), ending, bias=2.5))
    for problem in (train, test):
        np.testing.assert_array_equal(dense(problem), np.hstack([X, np.full((6, 1), 2.5)]))
        np.testing.assert_allclose(problem.norms2, (X**2).sum(axis=1) + 6.25)


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
    given = opened(tmp_path, content(X, Y), content(X, Y), ending, costs=costs)
    assert sorted(given.files()) == ["costs", "test", "train"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0,1\n1,0\n1,1\n", r"costs\.csv: line 1: 2 numbers, expected 3, one for each of -1, 3, 7"),
        ("0,1,1\n\n1,0.5,1\n1,1,0\n", r"costs\.csv: line 3: the cost of 3 for 3 is 0\.5; expected 0 on the diagonal"),
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


def test_test_file__must_fit_the_training_file(tmp_path):
    with pytest.raises(
        DataError, match=r"test\.csv: line 2: the label 5 does not occur in .*train\.csv, whose labels are -1, "
    ):
        read(opened(tmp_path, csv(X, Y), csv(X[:2], [3, 5])))
    with pytest.raises(DataError, match=r"test\.csv: line 1: 3 columns; expected 3 features, and a label"):
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
        ({"x": X, "y": Y[:3]}, r"y has shape \(3,\), expected one label for each of 6 rows"),
        ({"x": np.where(X == 3, np.nan, X), "y": Y}, r"row 2: feature 0 \(from 0\) is not a finite number"),
        ({"x": X.astype(object), "y": Y}, "cannot be read as an .npz file without pickled objects"),
        ({**parts(X), "indptr": np.array([0, 1]), "y": Y}, r"data, indices, indptr and shape are no CSR matrix"),
    ],
)
def test_npz__bad_arrays_are_named(tmp_path, arrays, message):
    with pytest.raises(DataError, match=message):
        read(opened(tmp_path, arrays, ending=".npz"))


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
    assert train.rows.x.tolist() == [[1, 2, 3], [4, 5, 6], [7, 8, 9.5]]
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
        assert (test.rows.x.tolist(), test.truth.tolist()) == ([[1, 2, 3], [4, 5, 6]], [1, 0])
        assert (meta["arrays"]["columns"], meta["label_column"], train.n) == (["a", "b", "c"], "class", 3)


@pytest.mark.parametrize(
    ("header", "says"),
    [
        ("a,b,d,class", "missing: c, unknown: d"),
        ("a,b,c,kind", "missing: class, unknown: kind"),
        ("1,2,3,x", "missing: a, b, c, class, unknown: 1, 2, 3, x"),
    ],
)
def test_csv__other_columns_than_those_of_training_are_named(tmp_path, header, says):
    row = ",".join(["1"] * header.count(",")) + ",x\n"
    with pytest.raises(DataError, match=rf"test\.csv: line 1: expected the columns of the training data, .*; {says}$"):
        read(opened(tmp_path, NAMED, f"{header}\n{row}"))


BAD_LINES = {
    ".csv": [
        ("1,2,a\n3,4\n", r"line 2: 2 columns, expected 3 as in the first line"),
        ("1,2,a\n\n3,x,b\n", r"line 3: column 1 is 'x'; expected a number"),
        ("1,2,a\n1,inf,b\n", r"line 2: feature 1 \(from 0\) is not a finite number"),
        ("1,2,a\n\u3000,\u3000,\u3000\n", r"line 2: column 0 is .*; expected a number"),  # no empty line
        ("1\n2\n", r"line 1: one column only"),
        ('1,2,"a\n', r"line 1: .*expected comma-separated values"),
        ("a,b,a,class\n1,2,3,x\n", "line 1: two columns are called 'a'; give them different names"),
        ("a;b;class\n1;2;x\n", "line 1: has semicolons or tabs; expected commas"),
        ('a,b,class\n"1,5",2,x\n', r"line 2: column 0 \(a\) is '1,5'; expected a number, such as 1\.5"),
        ("NA,2,x\n3,4,x\n5,6,y\n", "line 1: column 0 is 'NA'; expected a number"),
        ("a,b,class\n1_0,2,x\n", r"line 2: column 0 \(a\) is '1_0'; expected a number"),
        ("", "holds no examples"),
    ],
    ".svm": [
        ("1 1:2\n2 3:1 2:5\n", r"line 2: Feature indices .* should be sorted and unique; expected lines like"),
        ("1 1:2\n\n2 x:1\n", r"line 3: invalid literal for int.*'x'; expected lines like"),
        ("1 qid:3 1:2\n", r"has a qid; dataset=ranking reads queries, dataset=sequences_csv SVM-HMM"),
        ("1,2 3:4\n", r"line 1: could not convert.*'1,2'; .* with a number for a label"),
        ("1 1:2\n# no example\nnan 1:2\n", r"line 3: nan for a label; expected lines like"),
        ("1 1:2\n\n1 2:nan\n", r"line 3: feature 1 \(from 0\) is not a finite number"),
        ("\n", "holds no example with a feature"),
    ],
}


@pytest.mark.parametrize(("ending", "text", "says"), [(e, *line) for e, lines in BAD_LINES.items() for line in lines])
def test_lines__that_cannot_be_read_are_named(tmp_path, ending, text, says):
    with pytest.raises(DataError, match=rf"train\{ending}: {says}"):
        read(opened(tmp_path, text, text, ending))


SPELLINGS = ["1", "01", "10", "1_0", "1e1", "+1", "1.0"]


@pytest.mark.parametrize(
    ("ending", "content", "names"),
    [
        (".csv", csv, SPELLINGS),
        (".npz", lambda x, y: {"x": x, "y": np.array(y)}, SPELLINGS),
        (".svm", svmlight, [1, 1, 10, 10, 10, 1, 1]),  # there, a label is a number
    ],
)
def test_labels__keep_their_spelling(tmp_path, ending, content, names):
    given = content(np.ones((14, 2)), SPELLINGS * 2)
    train, _, _, meta = problems(opened(tmp_path, given, given, ending))
    assert [meta["class_names"][k] for k in train.truth] == names * 2


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
