"""The cost matrix of a classification task: what it costs to predict class b where class a is true."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from gapwise.stages.datasets import UNREADABLE, DataError
from gapwise.stages.datasets.arrays.csv_rows import cells_of, number_of
from gapwise.stages.datasets.arrays.rows import Label, few


def read_costs(file: Path, names: Sequence[Label]) -> np.ndarray:
    """float64 (K, K), a row for each true class and a column for each prediction, in the order of `names`.

    An .npy file, or comma-separated numbers. There the first line may name the columns, and the first cell of each line
    its row; names may then come in any order. DataError names file and line.
    """
    if file.suffix == ".npy":
        try:
            cost, lines = np.asarray(np.load(file, allow_pickle=False)), None
        except UNREADABLE as error:
            raise DataError(f"{file}: cannot be read as an .npy file ({error})") from error
        if cost.dtype.kind not in "biuf":
            raise DataError(f"{file}: is {cost.dtype}; expected numbers")
        cost = cost.astype(np.float64)
    else:
        cost, lines = _table(file, names)
    count = len(names)
    if cost.shape != (count, count):
        raise DataError(
            f"{file}: is {cost.shape}; expected ({count}, {count}), a row and a column for each of {few(names)}"
        )
    for fault, bad in (
        ("expected a number >= 0", ~((cost >= 0.0) & np.isfinite(cost))),
        ("expected 0 on the diagonal, where the prediction is right", np.diag(np.diag(cost) != 0.0)),
    ):
        if bad.any():
            a, b = (int(k) for k in np.argwhere(bad)[0])
            where = f"row {a}" if lines is None else f"line {lines[a]}"
            raise DataError(f"{file}: {where}: the cost of {names[b]!r} for {names[a]!r} is {cost[a, b]:g}; {fault}")
    return cost


def _table(file: Path, names: Sequence[Label]) -> tuple[np.ndarray, list[int]]:
    """The numbers in the order of `names`, and the line of each row."""
    cells, lines = cells_of(file)
    known = [str(name) for name in names]
    header = cells[0]
    if sorted(header[1:]) != sorted(known) or len(cells) != len(known) + 1:
        rows = [_numbers(file, line, row) for row, line in zip(cells, lines, strict=True)]
        wrong = next((k for k, row in enumerate(rows) if len(row) != len(known)), None)
        if wrong is not None:
            raise DataError(
                f"{file}: line {lines[wrong]}: {len(rows[wrong])} numbers, expected {len(known)}, "
                f"one for each of {few(names)}"
            )
        return np.array(rows), lines
    row_of = {row[0].strip(" "): k for k, row in enumerate(cells) if k}
    if sorted(row_of) != sorted(known):
        raise DataError(
            f"{file}: the first column names {', '.join(row_of)}; expected {few(names)}, as in the first line"
        )
    order = [header.index(name) for name in known]
    rows = []
    for name in known:
        row, line = cells[row_of[name]], lines[row_of[name]]
        if len(row) != len(header):
            raise DataError(f"{file}: line {line}: {len(row)} columns, expected {len(header)} as in the first line")
        rows.append(_numbers(file, line, [row[column] for column in order]))
    return np.array(rows), [lines[row_of[name]] for name in known]


def _numbers(file: Path, line: int, row: Sequence[str]) -> list[float]:
    numbers = [number_of(cell) for cell in row]
    if None in numbers:
        raise DataError(f"{file}: line {line}: {row[numbers.index(None)]!r}: expected a number")
    return [number for number in numbers if number is not None]
