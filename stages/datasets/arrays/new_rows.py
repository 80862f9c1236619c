"""New examples from files, in the forms of training examples with or without labels, and predictions for them as CSV."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from gapwise.records import Facts
from gapwise.stages.datasets import DataError, NewInput, Predicted, Shown
from gapwise.stages.datasets.arrays.csv_rows import read_more
from gapwise.stages.datasets.arrays.npz_rows import FEATURES, LABELS, is_sparse, labels_of, names_in, read_csr
from gapwise.stages.datasets.arrays.rows import Columns, Csr, Label, Rows, numbered
from gapwise.stages.datasets.arrays.svmlight import read_svmlight
from gapwise.stages.datasets.common.files import array_of, arrays_of, csv_text

if TYPE_CHECKING:
    from scipy import sparse

Matrix: TypeAlias = "np.ndarray | sparse.csr_array"


def read_new(inputs: Sequence[str], meta: Facts) -> NewInput:
    """Examples of files: .npy, .npz (features under one of the names of training, or the only array; or CSR's parts),
    SVMlight's lines, else comma-separated numbers with the columns of training, in any order if they have names there.
    Labels may be there as in training, and are shown beside predictions."""
    parts = [_examples(Path(name), meta) for name in inputs]
    labelled = [rows for _, rows in parts if rows is not None]
    return NewInput(_stacked([x for x, _ in parts]), labelled if len(labelled) == len(parts) else None)


def stored_input(arrays: Mapping[str, np.ndarray], meta: Facts) -> NewInput:
    """Features and labels of a test split, without the constant column."""
    names, width = meta["class_names"], int(meta["arrays"]["width"])
    labels = [names[k] for k in np.asarray(arrays["labels"]).tolist()]
    source = [_labelled(Path("test split"), labels)]
    if "x" in arrays:
        x = np.asarray(arrays["x"])[:, :width]
        example, columns = x[0].tolist(), meta["arrays"].get("columns")
        return NewInput(x, source, example=dict(zip(columns, example, strict=True)) if columns else example)
    rows = Csr(np.asarray(arrays["row_ptr"]), np.asarray(arrays["ids"]), np.asarray(arrays["values"]), width)
    return NewInput(_matrix(rows.cut(width), width), source)


def truth(new: NewInput, meta: Facts) -> list[str]:
    """The labels of new examples by name; DataError unless all have one that the training data have."""
    if new.source is None:
        raise DataError(
            "input: has no labels to compare predictions with; expected examples with labels, as in training"
        )
    for rows in new.source:
        numbered(rows, meta["class_names"], "the training data")
    return [str(label) for rows in new.source for label in rows.labels]


def show(new: NewInput, predicted: Predicted) -> Shown:
    """CSV: the example's number from 0, its label if the input has it, the predicted label."""
    labels = [predicted.named(i)[0] for i in range(len(predicted))]
    if new.source is None:
        return Shown(csv_text(("example", "predicted"), enumerate(labels)))
    true = [label for rows in new.source for label in rows.labels]
    return Shown(csv_text(("example", "label", "predicted"), zip(range(len(labels)), true, labels, strict=True)))


def _examples(file: Path, meta: Facts) -> tuple[Matrix, Rows | None]:
    """Features of a file, an array or a sparse matrix, and its examples if they have labels."""
    width, ending = int(meta["arrays"]["width"]), file.name.removesuffix(".gz").rpartition(".")[2]
    if ending == "npy":
        return array_of(file), None
    if ending == "npz":
        return _of_npz(file, width)
    if ending in ("svmlight", "svm", "libsvm"):
        rows, _ = read_svmlight(file, meta.get("first_index"))
        assert isinstance(rows.x, Csr)
        return _matrix(rows.x.cut(width), width), rows
    if not file.exists():
        raise DataError(f"{file}: no such file; expected examples (.npy, .npz, .csv or .svmlight)")
    rows = read_more(file, Columns(meta["arrays"].get("columns"), meta.get("label_column"), width), labelled=False)
    assert not isinstance(rows.x, Csr)
    return rows.x, rows if rows.labels else None


def _of_npz(file: Path, width: int) -> tuple[Matrix, Rows | None]:
    if is_sparse(file):
        rows = read_csr(file)
        if rows.width != width:
            raise DataError(f"{file}: {rows.width} features; expected {width}, one for each training feature")
        x: Matrix = _matrix(rows, width)
    else:
        wanted = [*FEATURES["train"], *FEATURES["test"]]
        arrays = arrays_of(file, [*wanted, *LABELS["train"], *LABELS["test"]])
        features = [x for name, x in arrays.items() if name in wanted]
        if len(features) != 1:
            raise DataError(f"{file}: expected the features in one array called {', '.join(wanted)}")
        (x,) = features
    known = set(names_in(file)) & {*LABELS["train"], *LABELS["test"]}
    labels = arrays_of(file, sorted(known)) if len(known) == 1 else {}
    fitting = [labels_of(file, name, array) for name, array in labels.items() if array.shape == x.shape[:1]]
    return x, _labelled(file, fitting[0]) if fitting else None


def _labelled(file: Path, labels: Sequence[Label]) -> Rows:
    """Examples whose features are elsewhere."""
    return Rows(file, "row", np.arange(len(labels)), labels, np.empty((len(labels), 0)))


def _matrix(rows: Csr, width: int) -> sparse.csr_array:
    """Sparse rows as scipy has them."""
    from scipy import sparse

    return sparse.csr_array((rows.values, rows.ids, rows.row_ptr), shape=(rows.row_ptr.size - 1, width))


def _stacked(parts: Sequence[Matrix]) -> Matrix:
    """All examples together; sparse if the examples of any file are."""
    from scipy import sparse

    if any(sparse.issparse(x) for x in parts):
        return sparse.vstack([sparse.csr_array(x) for x in parts], format="csr")
    if len({x.shape[1:] for x in parts}) > 1:
        raise DataError(
            f"input: files with {', '.join(str(x.shape[1:]) for x in parts)} features; expected equally many"
        )
    return np.concatenate(parts)
