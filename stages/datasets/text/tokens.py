"""Sequences as users have them: tokens as dicts or lists of attributes (`attributes`), arrays, sparse matrices.

A pandas DataFrame is a sequence, too: its rows are tokens, dicts of its columns.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from gapwise.stages.datasets.arrays.rows import is_sparse
from gapwise.stages.datasets.text.vocabulary import Rows
from gapwise.stages.problems.scale import check_single

if TYPE_CHECKING:
    from scipy import sparse

ATTRIBUTES, COLUMNS = "attributes", "columns"
"""What the tokens of a `ChainSVM` are: dicts and lists of attributes, or rows of numbers."""

Tokens: TypeAlias = "sparse.sparray | sparse.spmatrix | Collection[object]"
"""A sequence: rows of numbers, or tokens that list attributes."""


def sequences_of(X: Iterable[object]) -> list[Tokens]:
    """The sequences of `X`; ValueError names what is none."""
    sequences: list[Tokens] = []
    pandas = sys.modules.get("pandas")  # whoever has a DataFrame has imported it
    for i, given in enumerate(X):
        sequence = given
        if pandas is not None and isinstance(given, pandas.DataFrame):
            sequence = given.to_dict("records")
        if not is_sparse(sequence) and (isinstance(sequence, str | Mapping) or not isinstance(sequence, Collection)):
            raise ValueError(f"X: sequence {i}: expected a list of tokens or an array, got {type(sequence).__name__}")
        sequences.append(sequence)
    return sequences


def lengths_of(X: Sequence[Tokens]) -> np.ndarray:
    """Number of tokens of each sequence."""
    return np.array([s.shape[0] if is_sparse(s) else len(s) for s in X], np.int64)


def has_columns(X: Sequence[Tokens]) -> bool:
    """Whether tokens are rows of numbers; otherwise they list attributes. The first token of all decides."""
    for sequence in X:
        if is_sparse(sequence):
            return True
        for token in sequence:
            return not isinstance(token, str | Mapping | set | frozenset) and np.asarray(token).dtype.kind in "fiub"
    return False


def has_dicts(X: Sequence[object]) -> bool:
    """Whether tokens are dicts of attributes. The first token of all decides."""
    for sequence in X:
        for token in sequence if isinstance(sequence, list | tuple) else ():
            return isinstance(token, Mapping)
    return False


def prefers_matrix(X: Sequence[Tokens]) -> bool:
    """Whether training sequences are arrays of floats of which more than half are not 0.

    Otherwise sparse rows take less memory and time.
    """
    filled = size = 0
    for sequence in X:
        try:
            rows = None if is_sparse(sequence) else np.asarray(sequence)
        except ValueError:  # rows of different lengths, which are refused by name later
            return False
        if rows is None or rows.ndim != 2 or rows.dtype.kind != "f":
            return False
        filled, size = filled + int(np.count_nonzero(rows)), size + rows.size
    return 2 * filled > size


def rows_of_columns(X: Sequence[Tokens], width: int | None) -> tuple[Rows, int]:
    """Rows of arrays or sparse matrices (T, p), without their zeros, and p; `width`: the p they must have."""
    from scipy import sparse

    counts, ids, values, largest = [], [], [], []
    for i, sequence in enumerate(X):
        given = _numbers(i, sequence, width)
        rows, width = sparse.csr_array(given, copy=is_sparse(given)), given.shape[1]
        rows.sum_duplicates()
        rows.eliminate_zeros()
        counts.append(np.diff(rows.indptr))
        ids.append(rows.indices.astype(np.int32, copy=False))
        largest.append(_largest(i, rows.data, rows.indptr))
        with np.errstate(over="ignore"):  # refused below
            values.append(rows.data.astype(np.float32))  # each by itself: all numbers of an embedding are there once
    check_single(np.array([size for size, _ in largest]), lambda i: largest[i][1])
    flat = np.concatenate(values)
    return Rows(
        np.concatenate(counts).astype(np.int64), np.concatenate(ids), None if (flat == 1).all() else flat
    ), width or 0


def matrix_of(X: Sequence[Tokens], width: int | None) -> np.ndarray:
    """float32 (tokens, p), the rows of all sequences; `width`: the p they must have. ValueError names a sequence."""
    start, matrix, largest = np.cumsum([0, *lengths_of(X)]), np.empty((0, 0), np.float32), []
    for i, sequence in enumerate(X):
        given = _numbers(i, sequence, width)
        rows, width = np.asarray(given.toarray() if is_sparse(given) else given), given.shape[1]
        if i == 0:
            matrix = np.empty((int(start[-1]), width), np.float32)
        largest.append(_largest(i, rows.ravel(), np.arange(len(rows) + 1) * width))
        with np.errstate(over="ignore"):  # refused below
            matrix[start[i] : start[i + 1]] = rows
    check_single(np.array([size for size, _ in largest]), lambda i: largest[i][1])
    return matrix


def _numbers(i: int, sequence: Tokens, width: int | None) -> np.ndarray | sparse.sparray:
    """Floats (tokens, p); ValueError names sequence i, which has others, or not `width` columns."""
    try:
        rows: Any = sequence if is_sparse(sequence) else np.asarray(sequence)
        rows = rows if rows.dtype.kind == "f" else rows.astype(np.float64)
    except (ValueError, TypeError) as error:
        raise ValueError(f"X: sequence {i}: expected an array of numbers (tokens, p): {error}") from error
    if rows.ndim != 2 or width not in (None, rows.shape[1]):
        wanted = "p" if width is None else width
        raise ValueError(f"X: sequence {i}: expected an array (tokens, {wanted}), got shape {rows.shape}")
    return rows


def _largest(i: int, values: np.ndarray, ends: np.ndarray) -> tuple[float, str]:
    """The largest size among the values of sequence i, and its place; token t has ``values[ends[t]:ends[t + 1]]``.

    ValueError names the first that is not finite.
    """
    if not values.size:
        return 0.0, f"X: sequence {i}"
    size = np.abs(values)
    entry = int(np.argmax(size))  # NaN is the largest of all
    place = f"X: sequence {i}, token {int(np.searchsorted(ends, entry, side='right')) - 1}"
    if not np.isfinite(size[entry]):
        raise ValueError(f"{place}: a value is NaN or infinite")
    return float(size[entry]), place
