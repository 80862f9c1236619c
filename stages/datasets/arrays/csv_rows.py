"""Comma-separated examples, one a line: the label in one column, numbers in the others; and matrices of costs.

If the training file has a header, all later files need one with the same names, in any order (`rows.Columns`). Otherwise
columns go by their place, and a header is passed over.

The first line is a header if `label_column` is a name, or if another cell than the label's is neither a number nor a missing
value. If all are numbers, it is a header if it counts the columns from 0, as pandas does by default, or if its label alone
is no number; its label must then occur in no other line. Where that does not tell, the file is refused. A first column whose
name is empty has row numbers, as pandas and R write them, and is left out.
"""

from __future__ import annotations

import csv
import logging
import math
from array import array
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from gapwise.stages.datasets import DataError
from gapwise.stages.datasets.arrays.rows import UNNAMED, Columns, Label, Rows, few, refuse_endless, written
from gapwise.stages.datasets.common.files import read_lines

MISSING = ("", "NA", "N/A", "<NA>", "NULL", "null", "None", "?")
log = logging.getLogger("gapwise")


def read_csv(file: Path, label_column: int | str | None) -> Rows:
    """The training examples of a file, gzipped or not; DataError names file, line and column.

    Parameters
    ----------
    label_column : int, str or None
        Column of the label: its number (from 0; negative from the end), its name in the header line, or None for the last.
    """
    cells, lines = cells_of(file)
    first, where = cells[0], f"{file}: line {lines[0]}"
    header: bool | None = True
    if isinstance(label_column, str):
        if first.count(label_column) != 1:
            raise DataError(
                f"{where}: the header must name the column {label_column!r} of dataset.label_column once; it has "
                f"{few(first)}"
            )
        label_at = first.index(label_column)
    else:
        label_at = -1 if label_column is None else label_column
        label_at += len(first) if label_at < 0 else 0
        if not 0 <= label_at < len(first):
            raise DataError(f"{file}: has {len(first)} columns, so there is no dataset.label_column={label_column}")
        header = _is_header(cells, label_at)
    features = [column for column in range(len(first)) if column != label_at]
    if header and first[0] in UNNAMED and features[:1] == [0]:
        log.warning("%s: the first column has no name, like the row numbers of pandas' to_csv(); it is left out", where)
        del features[0]
    if not features:
        raise DataError(f"{where}: one column only; expected features and a label, separated by commas")
    names = [first[column] for column in features] if header else None
    return _rows(file, cells, lines, Columns(names, first[label_at] if header else label_column, len(features)))


def read_later(file: Path, columns: Columns, *, labelled: bool = True) -> Rows:
    """Further examples with the columns of a training file; unless they must be `labelled`, perhaps without labels."""
    return _rows(file, *cells_of(file), columns, labelled)


def _is_header(cells: Sequence[Sequence[str]], label_at: int | None) -> bool | None:
    """Whether the first line is a header, given the column of the label, if there is any; None: that cannot be told."""
    first, counted = cells[0], [str(column) for column in range(len(cells[0]))]
    features = [cell for column, cell in enumerate(first) if column != label_at and cell not in MISSING]
    if any(number_of(cell) is None for cell in features):
        return True
    if label_at is None:
        return None if first == counted and len(first) > 2 else False
    label, others = first[label_at], {row[label_at].strip(" ") for row in cells[1:] if label_at < len(row)}
    if number_of(label) is not None:
        return False if first != counted else True if label not in others and len(first) > 2 else None
    if label in others:
        return False
    counts = len(features) > 1 and features == counted[: len(features)]
    return True if counts or all(number_of(other) is not None for other in others) else None


def _rows(
    file: Path, cells: Sequence[Sequence[str]], lines: Sequence[int], columns: Columns, labelled: bool = True
) -> Rows:
    first, where = cells[0], f"{file}: line {lines[0]}"
    order, label_at = columns.places(first, where, labelled=labelled)
    header = columns.names is not None or _is_header(cells, label_at)
    if header:
        cells, lines = cells[1:], lines[1:]
        if any(not first[column] for column in order):
            raise DataError(f"{where}: a column of the header has no name; give it one, or leave it out")
    if not cells:
        raise DataError(f"{file}: holds a header but no examples")
    values, labels = array("d"), []
    for row, line in zip(cells, lines, strict=True):
        if len(row) != len(first):
            raise DataError(f"{file}: line {line}: {len(row)} columns, expected {len(first)} as in the first line")
        features = [row[column] for column in order]
        try:
            values.extend(map(float, features))
        except ValueError:
            features.append("_")
        if "_" in "".join(features):  # Python reads 1_0 as a number, too
            k = next(k for k, cell in enumerate(features) if number_of(cell) is None)
            name = "" if columns.names is None else f" ({columns.names[k]})"
            raise DataError(
                f"{file}: line {line}: column {order[k]}{name} is {features[k]!r}; expected a number, such as 1.5, in all "
                "columns but the label's"
            )
        if label_at is not None:
            labels.append(row[label_at].strip(" "))
            if not labels[-1]:
                raise DataError(f"{file}: line {line}: column {label_at} is empty; expected the label")
    x = np.frombuffer(values).reshape(len(cells), len(order))
    rows = Rows(file, "line", np.array(lines), written(labels), x, columns)
    refuse_endless(rows)
    if header is None:
        raise DataError(
            f"{where}: {few(first)} may be a header or an example. If it is a header, give its columns names that are no "
            "numbers; if not, move it below another line"
        )
    return rows


def cells_of(file: Path) -> tuple[list[list[str]], list[int]]:
    """Cells of the lines that are not empty, those of the first without blanks around them, and their numbers from 1."""
    reader, cells, numbers = csv.reader(read_lines(file), strict=True), [], []
    try:
        for row in reader:
            if row and any(cell.strip(" \t") for cell in row):
                cells.append(row)
                numbers.append(reader.line_num)
    except csv.Error as error:
        raise DataError(f"{file}: line {reader.line_num}: {error}; expected comma-separated values") from error
    if not cells:
        raise DataError(f"{file}: holds no examples")
    cells[0] = [cell.strip(" ") for cell in cells[0]]
    if any(";" in cell or "\t" in cell for cell in cells[0]):
        raise DataError(
            f"{file}: line {numbers[0]}: has semicolons or tabs; expected commas between columns, and numbers such as 1.5"
        )
    return cells, numbers


def number_of(cell: str) -> float | None:
    """The number that a cell holds; None: it holds none."""
    try:
        return None if "_" in cell else float(cell)
    except ValueError:
        return None


def read_costs(file: Path, names: Sequence[Label]) -> np.ndarray:
    """float64 (K, K), a row for each true class and a column for each prediction, in the order of `names`.

    Comma-separated numbers. The first line may name the columns, and the first cell of each line its row; names may then
    come in any order. DataError names file and line.
    """
    cells, lines = cells_of(file)
    known = [str(name) for name in names]
    named = sorted(cells[0][1:]) == sorted(known) and len(cells) == len(known) + 1
    rows, columns = [*range(len(cells))], [*range(len(known))]
    if named:
        first = [row[0].strip(" ") for row in cells]
        if sorted(first[1:]) != sorted(known):
            named_rows = ", ".join(first[1:])
            raise DataError(f"{file}: the first column names {named_rows}; expected {few(names)}, as in the first line")
        rows, columns = ([where.index(name, 1) for name in known] for where in (first, cells[0]))
    if len(rows) != len(known):
        raise DataError(f"{file}: {len(rows)} rows; expected {len(known)}, one for each of {few(names)}")
    cost = np.empty((len(known), len(known)))
    for a, row in enumerate(rows):
        where, count = f"{file}: line {lines[row]}", len(cells[row]) - named
        if count != len(known):
            raise DataError(f"{where}: {count} numbers, expected {len(known)}, one for each of {few(names)}")
        for b, column in enumerate(columns):
            number = number_of(cells[row][column])
            if number is None or not 0 <= number < math.inf:
                raise DataError(f"{where}: {cells[row][column]!r}: expected a number >= 0")
            cost[a, b] = number
        if cost[a, a] != 0.0:
            name = names[a]
            raise DataError(f"{where}: the cost of {name!r} for {name!r} is {cost[a, a]:g}; expected 0 on the diagonal")
    return cost
