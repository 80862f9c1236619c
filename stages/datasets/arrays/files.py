"""Files of examples: SVMlight's lines, arrays in .npz and .npy, and comma-separated values (`arrays.csv_rows`).

SVMlight: ``label index:value index:value ... # comment``, indices rising from 1 (or 0), read by scikit-learn. A label is a
number: 1, +1 and 1.0 are the same class.

Names in .npz: ``x``, ``X``, ``x_train`` or ``X_train`` (n, D), or CSR's ``data``, ``indices``, ``indptr`` and ``shape``, as
`scipy.sparse.save_npz` writes them; ``y``, ``labels``, ``y_train`` or ``labels_train`` (n,): whole numbers or text. The
examples to test on may be in the same file, as ``x_test`` or ``X_test`` and ``y_test`` or ``labels_test``.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gapwise.stages.datasets import UNREADABLE, DataError
from gapwise.stages.datasets.arrays.csv_rows import read_later
from gapwise.stages.datasets.arrays.rows import Columns, Label, Rows, refuse_endless, written
from gapwise.stages.datasets.common.files import array_of, arrays_of, read_lines

if TYPE_CHECKING:
    from scipy import sparse

ENDINGS = {
    ".npz": "npz", ".npy": "npz", ".csv": "csv", ".svmlight": "svmlight", ".svm": "svmlight", ".libsvm": "svmlight",
}  # fmt: skip
FEATURES = {"train": ("x", "X", "x_train", "X_train"), "test": ("x_test", "X_test"), "new": ("arr_0",)}
LABELS = {"train": ("y", "labels", "y_train", "labels_train"), "test": ("y_test", "labels_test"), "new": ()}
SPARSE = ("data", "indices", "indptr", "shape")


def form_of(file: Path) -> str | None:
    """The format that the ending of a file says, after which texts may have .gz; None for another ending."""
    return ENDINGS.get(file.with_suffix("").suffix if file.suffix == ".gz" else file.suffix)


def read_more(file: Path, form: str, columns: Columns, *, labelled: bool = True) -> Rows:
    """Further examples with the columns of a training file; unless they must be `labelled`, perhaps without labels.

    Rows of SVMlight's lines may have more columns, or fewer.
    """
    if form == "svmlight":
        return read_svmlight(file, columns.first)
    rows = (
        read_later(file, columns, labelled=labelled) if form == "csv" else read_npz(file, "train" if labelled else None)
    )
    if rows.x.shape[1] != columns.width:
        raise DataError(f"{file}: {rows.x.shape[1]} features, but {columns.width} in the training data")
    return rows


class SvmLines(NamedTuple):
    """What lines of SVMlight's format hold."""

    x: sparse.csr_array
    """float64; a column for each index from 0"""
    labels: np.ndarray
    """float64, (n,)"""
    query: np.ndarray
    """int64, one for each line that has a qid"""
    numbers: np.ndarray
    """int64, (n,): the line of each example in the file"""


def read_svm_lines(file: Path, expected: str) -> SvmLines:
    """The lines of a file, gzipped or not; DataError names file and line, and says what was `expected`."""
    from scipy import sparse
    from sklearn.datasets import load_svmlight_file

    lines = read_lines(file)

    def read(count: int) -> tuple[Any, ...] | Exception:
        """What the first lines hold, or what is wrong with them."""
        text = BytesIO("\n".join(lines[:count]).encode())
        try:
            return tuple(load_svmlight_file(text, dtype=np.float64, query_id=True, zero_based=True))
        except (ValueError, OverflowError) as error:
            return error

    parsed = read(len(lines))
    if isinstance(parsed, Exception):
        line = 1 + bisect_left(range(len(lines)), True, key=lambda k: isinstance(read(k + 1), Exception))
        raise DataError(f"{file}: line {line}: {str(parsed).rstrip('.')}; {expected}")
    x, labels, query = parsed
    numbers = np.array([k for k, line in enumerate(lines, 1) if line.partition("#")[0].strip()], np.int64)
    if not x.nnz:
        raise DataError(f"{file}: holds no example with a feature; {expected}")
    wrong = np.flatnonzero(~np.isfinite(labels))
    if wrong.size:
        raise DataError(f"{file}: line {numbers[wrong[0]]}: {labels[wrong[0]]} for a label; {expected}")
    return SvmLines(sparse.csr_array(x), labels, query, numbers)


def first_column(file: Path, lines: SvmLines, first: int | None) -> int:
    """Index of the first column: `first`, that of the training data, or, if that is None, 0 if an index is 0, else 1."""
    zeros = np.flatnonzero(lines.x.indices == 0)
    if first == 1 and zeros.size:
        line = lines.numbers[np.searchsorted(lines.x.indptr, zeros[0], side="right") - 1]
        raise DataError(f"{file}: line {line}: index 0, but in the training file they count from 1")
    return int(not zeros.size) if first is None else first


def read_svmlight(file: Path, first: int | None = None) -> Rows:
    """The examples of a file; `first`: index of the first column, or None for what the file says (`first_column`)."""
    lines = read_svm_lines(file, "expected lines like '1 3:0.5 17:1', with a number for a label and indices that rise")
    if lines.query.size:
        raise DataError(f"{file}: has a qid; dataset=ranking reads queries, dataset=sequences_csv SVM-HMM's sequences")
    begin = first_column(file, lines, first)
    x = lines.x[:, begin:]
    columns = Columns(width=int(x.shape[1]), first=begin)
    labels = written([str(label).removesuffix(".0") for label in lines.labels.tolist()])
    rows = Rows(file, "line", lines.numbers, labels, x, columns)
    refuse_endless(rows)
    return rows


def has_sparse(file: Path) -> bool:
    """Whether an .npz file holds a sparse matrix."""
    return len(arrays_of(file, SPARSE)) == len(SPARSE)


def read_npz(file: Path, split: str | None) -> Rows:
    """The examples of one split; None: new ones, perhaps without labels. DataError names file, array and row."""
    splits = ("train", "test", "new") if split is None else (split,)
    names = {name for which in splits for name in FEATURES[which]}
    if file.suffix == ".npy":
        arrays = {"arr_0": array_of(file)}
    else:
        labels = [name for which in splits for name in LABELS[which]]
        arrays = arrays_of(file, [*sorted(names), *labels, *(() if split == "test" else SPARSE)])
    found = [name for name in arrays if name in names]
    if len(found) != 1 and not {*SPARSE} <= {*arrays}:
        called = " or ".join(FEATURES[splits[0]])
        raise DataError(f"{file}: expected the features in one array called {called}; there are: {', '.join(arrays)}")
    x = _dense(file, found[0], arrays[found[0]]) if found else _csr(file, arrays)
    n = int(x.shape[0])
    of_labels = {name: array for name, array in arrays.items() if name not in (*names, *SPARSE)}
    if split is None and [array.shape for array in of_labels.values()] != [(n,)]:
        of_labels = {}
    elif split is not None and (len(of_labels) != 1 or n == 0):
        raise DataError(
            f"{file}: expected the labels of {n} >= 1 rows in one array called {' or '.join(LABELS[split])}"
        )
    named = [label for name, array in of_labels.items() for label in _labels(file, name, array, n)]
    rows = Rows(file, "row", np.arange(n), named, x, Columns(width=int(x.shape[1])))
    refuse_endless(rows)
    return rows


def _dense(file: Path, name: str, x: np.ndarray) -> np.ndarray:
    if x.ndim != 2 or x.shape[1] == 0 or x.dtype.kind not in "biuf":
        raise DataError(f"{file}: {name} is {x.dtype}{x.shape}; expected numbers, (examples, features)")
    return x if x.dtype == np.float32 else x.astype(np.float64)


def _csr(file: Path, arrays: Mapping[str, np.ndarray]) -> sparse.csr_array:
    """Rows with rising columns; DataError for arrays that are no CSR matrix."""
    from scipy import sparse

    values, ids, ptr, shape = (arrays[name] for name in SPARSE)
    try:
        x = sparse.csr_array(
            (values if values.dtype == np.float32 else values.astype(np.float64), ids, ptr), tuple(shape)
        )
        x.check_format()
    except UNREADABLE as error:
        raise DataError(
            f"{file}: data, indices, indptr and shape are no CSR matrix ({error}); save it with scipy.sparse.save_npz"
        ) from error
    x.sum_duplicates()
    return x


def _labels(file: Path, name: str, labels: np.ndarray, n: int) -> Sequence[Label]:
    """Labels of an array: whole numbers or text; DataError for anything else."""
    if labels.shape != (n,):
        raise DataError(f"{file}: {name} has shape {labels.shape}, expected one label for each of {n} rows")
    if labels.dtype.kind in "US":
        return list(labels.astype(str).tolist())
    if labels.dtype.kind not in "biuf" or (np.mod(labels, 1) != 0).any():
        raise DataError(f"{file}: {name} is {labels.dtype} and no whole numbers; expected whole numbers or text")
    return [int(label) for label in labels]
