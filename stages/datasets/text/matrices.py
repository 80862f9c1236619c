"""Sequences whose tokens are rows of a matrix, such as embeddings of a network: blocks of `chain.dense`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gapwise.stages.datasets import Report, Sink
from gapwise.stages.datasets.text.tokens import Tokens, is_sparse, lengths_of
from gapwise.stages.problems.scale import check_single


def prefers_matrix(X: Sequence[Tokens]) -> bool:
    """Whether training sequences are arrays of floats of which more than half are not 0.

    Otherwise sparse rows take less memory and time.
    """
    filled = size = 0
    for sequence in X:
        if is_sparse(sequence):
            return False
        try:
            rows = np.asarray(sequence)
        except ValueError:  # rows of different lengths, which `rows_of_columns` refuses by name
            return False
        if rows.ndim != 2 or rows.dtype.kind != "f":
            return False
        filled, size = filled + int(np.count_nonzero(rows)), size + rows.size
    return 2 * filled > size


def matrix_of(X: Sequence[Tokens], width: int | None) -> np.ndarray:
    """float32 (tokens, p), the rows of all sequences; `width`: the p they must have. ValueError names a sequence."""
    start, matrix = np.cumsum([0, *lengths_of(X)]), np.empty((0, 0), np.float32)
    largest = np.zeros(int(start[-1]))  # of each token, before it becomes float32
    for i, sequence in enumerate(X):
        try:
            rows = sequence.toarray() if is_sparse(sequence) else np.asarray(sequence)
            rows = rows if rows.dtype.kind == "f" else rows.astype(np.float64)
        except (ValueError, TypeError) as error:
            raise ValueError(f"X: sequence {i}: expected an array of numbers (tokens, p): {error}") from error
        if rows.ndim != 2 or width not in (None, rows.shape[1]):
            wanted = "p" if width is None else width
            raise ValueError(f"X: sequence {i}: expected an array (tokens, {wanted}), got shape {rows.shape}")
        if i == 0:
            width = rows.shape[1]
            matrix = np.empty((int(start[-1]), width), np.float32)
        with np.errstate(over="ignore"):  # refused below
            matrix[start[i] : start[i + 1]] = rows
        largest[start[i] : start[i + 1]] = np.maximum(rows.max(axis=1, initial=0.0), -rows.min(axis=1, initial=0.0))
    if not np.isfinite(largest).all():
        token = int(np.argmin(np.isfinite(largest)))
        raise ValueError(f"X: {_place(start, token)}: a value is NaN or infinite")
    check_single(largest, lambda token: f"X: {_place(start, token)}")
    return matrix


def _place(start: np.ndarray, token: int) -> str:
    i = int(np.searchsorted(start, token, side="right")) - 1
    return f"sequence {i}, token {token - int(start[i])}"


def write_matrix(
    sink: Sink, report: Report, split: str, start: np.ndarray, labels: np.ndarray, matrix: np.ndarray, *, train: bool
) -> None:
    """Write sequences start[i]:start[i + 1] of the rows of `matrix` into `split`, one block each.

    The matrix stays one array, which parts of the blocks share. Blocks that are only decoded (not `train`) need no inner
    products.
    """
    from gapwise.stages.problems.chain.dense import grams

    sink.put(split, "values", matrix)
    lengths, total = np.diff(start), start.size - 1
    products = grams(matrix, start[:-1], lengths) if train else None
    for i, (a, b) in enumerate(zip(start[:-1].tolist(), start[1:].tolist(), strict=True)):
        if i % 500 == 0:
            report(i, total, f"{split} sequences")
        more = {} if products is None else {"gram": next(products)}
        sink.append(split, labels=labels[a:b], first=np.array([a]), **more)
    report(total, total, f"{split} sequences")
