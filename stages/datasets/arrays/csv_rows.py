"""Comma-separated examples, one a line: the label in one column, numbers in the others; a header line is optional."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

from gapwise.stages.datasets import DataError
from gapwise.stages.datasets.arrays.rows import Rows, label_of, refuse_endless
from gapwise.stages.datasets.text.tables import read_lines


def read_csv(file: Path, label_column: int | str | None) -> Rows:
    """The examples of a file, gzipped or not; DataError names file, line and column.

    Parameters
    ----------
    label_column : int, str or None
        Column of the label: its number (from 0; negative from the end), its name in the header line, or None for the last.
        The first line is a header if another column of it is no number.
    """
    cells, numbers = cells_of(file)
    header = cells[0]
    if isinstance(label_column, str):
        if header.count(label_column) != 1:
            raise DataError(
                f"{file}: line {numbers[0]}: the header must name the column {label_column!r} of dataset.label_column "
                f"once; it has {', '.join(header[:8])}{', ...' if len(header) > 8 else ''}"
            )
        label_at, named = header.index(label_column), True
    else:
        label_at = -1 if label_column is None else label_column
        label_at += len(header) if label_at < 0 else 0
        if not 0 <= label_at < len(header):
            raise DataError(f"{file}: has {len(header)} columns, so there is no dataset.label_column={label_column}")
        named = any(number_of(cell) is None for column, cell in enumerate(header) if column != label_at)
    if len(header) < 2:
        raise DataError(
            f"{file}: line {numbers[0]}: one column only; expected features and a label, separated by commas"
        )
    if named:
        cells, numbers = cells[1:], numbers[1:]
    if not cells:
        raise DataError(f"{file}: holds a header but no examples")
    x = np.empty((len(cells), len(header) - 1))
    for k, (row, number) in enumerate(zip(cells, numbers, strict=True)):
        if len(row) != len(header):
            raise DataError(f"{file}: line {number}: {len(row)} columns, expected {len(header)} as in the first line")
        features = row[:label_at] + row[label_at + 1 :]
        try:
            x[k] = [float(cell) for cell in features]
        except ValueError:
            column = next(c for c, cell in enumerate(row) if c != label_at and number_of(cell) is None)
            name = f" ({header[column]})" if named else ""
            raise DataError(
                f"{file}: line {number}: column {column}{name} is {row[column]!r}; expected a number"
            ) from None
        if not row[label_at].strip():
            raise DataError(f"{file}: line {number}: column {label_at} is empty; expected the label")
    rows = Rows(file, "line", np.array(numbers), [label_of(row[label_at].strip()) for row in cells], x)
    refuse_endless(rows)
    return rows


def cells_of(file: Path) -> tuple[list[list[str]], list[int]]:
    """Cells of the lines that are not empty, and their numbers from 1."""
    reader, cells, numbers = csv.reader(read_lines(file), strict=True), [], []
    try:
        for row in reader:
            if row and any(cell.strip() for cell in row):
                cells.append(row)
                numbers.append(reader.line_num)
    except csv.Error as error:
        raise DataError(f"{file}: line {reader.line_num}: {error}; expected comma-separated values") from error
    if not cells:
        raise DataError(f"{file}: holds no examples")
    return cells, numbers


def number_of(cell: str) -> float | None:
    try:
        return float(cell)
    except ValueError:
        return None
