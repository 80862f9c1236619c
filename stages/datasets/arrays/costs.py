"""The cost matrix of a classification task: what it costs to predict class b where class a is true."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from gapwise.stages.datasets import DataError
from gapwise.stages.datasets.arrays.csv_rows import cells_of, number_of
from gapwise.stages.datasets.arrays.rows import Label, few


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
