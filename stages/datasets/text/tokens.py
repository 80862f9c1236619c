"""Sequences as users have them: tokens as dicts or lists of attributes (`attributes`), arrays, sparse matrices.

A pandas DataFrame is a sequence, too: its rows are tokens, dicts of its columns.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias, TypeGuard

import numpy as np

from gapwise.stages.datasets.text.vocabulary import Rows
from gapwise.stages.problems.scale import check_single

if TYPE_CHECKING:
    from scipy import sparse

ATTRIBUTES, COLUMNS = "attributes", "columns"
"""What the tokens of a `ChainSVM` are: dicts and lists of attributes, or rows of numbers."""

Tokens: TypeAlias = "sparse.sparray | sparse.spmatrix | Collection[object]"
"""A sequence: rows of numbers, or tokens that list attributes."""


def is_sparse(sequence: object) -> TypeGuard[sparse.sparray | sparse.spmatrix]:
    """Whether a sequence is a sparse matrix. Whoever has one has imported scipy.sparse; readers of text need not."""
    loaded = sys.modules.get("scipy.sparse")
    return loaded is not None and bool(loaded.issparse(sequence))


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


def rows_of_columns(X: Sequence[Tokens], width: int | None) -> tuple[Rows, int]:
    """Rows of arrays or sparse matrices (T, p), without their zeros, and p; `width`: the p they must have."""
    from scipy import sparse

    counts, ids, values, ones = [], [], [], True
    largest: list[tuple[float, int]] = []
    for i, sequence in enumerate(X):
        if is_sparse(sequence):
            rows = sparse.csr_array(sequence, dtype=np.float64, copy=True)
            rows.sum_duplicates()
            rows.eliminate_zeros()
        else:
            dense = _dense(i, sequence)
            rows = sparse.csr_array(dense) if dense.ndim == 2 else dense
        if rows.ndim != 2 or width not in (None, rows.shape[1]):
            wanted = "p" if width is None else width
            raise ValueError(f"X: sequence {i}: expected an array (tokens, {wanted}), got shape {rows.shape}")
        width = rows.shape[1]
        counts.append(np.diff(rows.indptr))
        ids.append(rows.indices.astype(np.int32, copy=False))
        with np.errstate(over="ignore"):  # refused below
            values.append(rows.data.astype(np.float32))  # each by itself: all numbers of an embedding are there once
        entry = int(np.argmax(np.abs(rows.data))) if rows.data.size else 0
        token = int(np.searchsorted(rows.indptr, entry, side="right")) - 1
        largest.append((abs(float(rows.data[entry])) if rows.data.size else 0.0, token))
        ones = ones and bool((rows.data == 1.0).all())
    check_single(np.array([size for size, _ in largest]), lambda i: f"X: sequence {i}, token {largest[i][1]}")
    return _rows(np.concatenate(counts), np.concatenate(ids), np.concatenate(values), ones), width or 0


def _dense(i: int, sequence: Tokens) -> np.ndarray:
    try:
        return np.asarray(sequence, np.float64)
    except (ValueError, TypeError) as error:
        raise ValueError(f"X: sequence {i}: expected an array of numbers (tokens, p): {error}") from error


def _rows(counts: np.ndarray, ids: np.ndarray, values: np.ndarray, ones: bool) -> Rows:
    """Rows in the form of the chain structure, from float32 values: no values where all are `ones`."""
    if not np.isfinite(values).all():
        token = int(np.searchsorted(np.cumsum(counts), np.argmax(~np.isfinite(values)), side="right"))
        raise ValueError(f"X: token {token} of all has a value that is NaN, infinite or beyond float32")
    return Rows(counts.astype(np.int64), ids.astype(np.int32, copy=False), None if ones else values)
