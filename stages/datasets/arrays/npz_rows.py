"""Examples in an .npz file: an array, or the parts of a sparse matrix as `scipy.sparse.save_npz` writes them, with labels.

Names: ``x``, ``X``, ``x_train`` or ``X_train`` (n, D), or CSR's ``data``, ``indices``, ``indptr`` and ``shape``; ``y``,
``labels``, ``y_train`` or ``labels_train`` (n,): whole numbers or text. The examples to test on may be in the same file, as
``x_test`` or ``X_test`` and ``y_test`` or ``labels_test``.
"""

from __future__ import annotations

import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from gapwise.stages.datasets import UNREADABLE, DataError
from gapwise.stages.datasets.arrays.rows import Csr, Label, Rows, refuse_endless

FEATURES = {"train": ("x", "X", "x_train", "X_train"), "test": ("x_test", "X_test")}
LABELS = {"train": ("y", "labels", "y_train", "labels_train"), "test": ("y_test", "labels_test")}
SPARSE = ("data", "indices", "indptr", "shape")


def names_in(file: Path) -> list[str]:
    """Names of the arrays in a file, which is not read; DataError if it is no .npz."""
    try:
        with zipfile.ZipFile(file) as archive:
            return [name.removesuffix(".npy") for name in archive.namelist()]
    except UNREADABLE as error:
        raise DataError(f"{file}: cannot be read as an .npz file ({error}); get or save it again") from error


def is_sparse(file: Path) -> bool:
    """Whether the features are a sparse matrix."""
    return set(SPARSE) <= set(names_in(file))


def has_test(file: Path) -> bool:
    """Whether the file also has examples to test on."""
    return bool(set(FEATURES["test"]) & set(names_in(file)))


def stored_type(file: Path) -> np.dtype[np.generic]:
    """The type that the features will have, from their header alone."""
    name = "data" if is_sparse(file) else _only(file, names_in(file), FEATURES["train"], "the features")
    try:
        with zipfile.ZipFile(file) as archive, archive.open(f"{name}.npy") as stream:
            version = np.lib.format.read_magic(stream)
            read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
            return np.dtype(np.float32 if read(stream)[2] == np.float32 else np.float64)
    except UNREADABLE as error:
        raise DataError(f"{file}: {name} cannot be read ({error})") from error


def read_npz(file: Path, split: str) -> Rows:
    """The examples of one split; DataError names file, array and row."""
    stored = names_in(file)
    label_name = _only(file, stored, LABELS[split], "the labels")
    sparse = split == "train" and is_sparse(file)
    name = "data" if sparse else _only(file, stored, FEATURES[split], "the features")
    try:
        with np.load(file, allow_pickle=False) as archive:
            labels = np.asarray(archive[label_name])
            arrays = (
                {part: np.asarray(archive[part]) for part in SPARSE} if sparse else {name: np.asarray(archive[name])}
            )
    except UNREADABLE as error:
        raise DataError(f"{file}: {name} or {label_name} cannot be read ({error}); Python objects are not") from error
    x = _csr(file, arrays) if sparse else _dense(file, name, arrays[name])
    n = x.row_ptr.size - 1 if isinstance(x, Csr) else len(x)
    if labels.shape != (n,) or n == 0:
        raise DataError(f"{file}: {label_name} has shape {labels.shape}, expected one label for each of {n} >= 1 rows")
    rows = Rows(file, "row", np.arange(n), labels_of(file, label_name, labels), x)
    refuse_endless(rows)
    return rows


def read_csr(file: Path) -> Csr:
    """The sparse matrix of a file; labels need not be there."""
    try:
        with np.load(file, allow_pickle=False) as archive:
            return _csr(file, {part: np.asarray(archive[part]) for part in SPARSE})
    except UNREADABLE as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{file}: the sparse matrix cannot be read ({error})") from error


def _only(file: Path, stored: Sequence[str], names: Sequence[str], content: str) -> str:
    matches = [name for name in names if name in stored]
    if len(matches) != 1:
        got = " and ".join(matches) if matches else f"there are: {', '.join(stored[:8]) or 'none'}"
        raise DataError(f"{file}: expected {content} in one array called {' or '.join(names)}; {got}")
    return matches[0]


def _dense(file: Path, name: str, x: np.ndarray) -> np.ndarray:
    if x.ndim != 2 or x.shape[1] == 0 or x.dtype.kind not in "biuf":
        raise DataError(f"{file}: {name} is {x.dtype}{x.shape}; expected numbers, (examples, features)")
    return x if x.dtype == np.float32 else x.astype(np.float64)


def _csr(file: Path, arrays: Mapping[str, np.ndarray]) -> Csr:
    """Rows with rising columns; DataError for arrays that are no CSR matrix."""
    values, ids, ptr, shape = (arrays[name] for name in SPARSE)
    sizes = ids.ndim == values.ndim == ptr.ndim == 1 and shape.shape == (2,) and ids.size == values.size
    if not sizes or ptr.size != shape[0] + 1 or ptr[0] != 0 or ptr[-1] != ids.size or (np.diff(ptr) < 0).any():
        raise DataError(
            f"{file}: data, indices, indptr and shape are no CSR matrix; save it with scipy.sparse.save_npz"
        )
    if values.dtype.kind not in "biuf" or ids.min(initial=0) < 0 or ids.max(initial=0) >= max(int(shape[1]), 1):
        raise DataError(f"{file}: expected numbers in data and 0..{int(shape[1]) - 1} in indices")
    row = np.repeat(np.arange(ptr.size - 1), np.diff(ptr))
    order = np.lexsort((ids, row))
    ids = ids[order]
    twice = (row[1:] == row[:-1]) & (ids[1:] == ids[:-1])
    if twice.any():
        k = int(np.argmax(twice))
        raise DataError(f"{file}: row {row[k]} has column {ids[k]} twice; call sum_duplicates() before saving")
    values = values[order] if values.dtype == np.float32 else values[order].astype(np.float64)
    return Csr(ptr.astype(np.int64), ids.astype(np.int32), values, int(shape[1]))


def labels_of(file: Path, name: str, labels: np.ndarray) -> list[Label]:
    """Labels of an array: whole numbers or text; DataError for anything else."""
    if labels.dtype.kind in "US":
        return labels.astype(str).tolist()
    whole = labels.dtype.kind in "biu" or (labels.dtype.kind == "f" and (np.mod(labels, 1) == 0).all())
    if not whole:
        raise DataError(f"{file}: {name} is {labels.dtype} and no whole numbers; expected whole numbers or text")
    return [int(label) for label in labels]
