"""Rows of features with labels, dense or sparse, that know where in their file they come from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from gapwise.stages.datasets import DataError

Label = int | str


class Csr(NamedTuple):
    """Sparse rows."""

    row_ptr: np.ndarray
    """int64, (n + 1,)"""
    ids: np.ndarray
    """int32, (row_ptr[-1],): column numbers from 0, rising in every row"""
    values: np.ndarray
    """float32 or float64, (row_ptr[-1],)"""
    width: int
    """Number of columns."""

    def taken(self, rows: np.ndarray) -> Csr:
        """Some of the rows, in the order given."""
        counts = np.diff(self.row_ptr)[rows]
        ptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        entry = np.arange(ptr[-1]) - np.repeat(ptr[:-1], counts) + np.repeat(self.row_ptr[rows], counts)
        return Csr(ptr, self.ids[entry], self.values[entry], self.width)

    def cut(self, width: int) -> Csr:
        """The same rows with `width` columns: values in later columns are left out, and so are zeros."""
        keep = (self.ids < width) & (self.values != 0.0)
        ptr = np.concatenate([[0], np.cumsum(keep)]).astype(np.int64)[self.row_ptr]
        return Csr(ptr, self.ids[keep], self.values[keep], width)

    def with_constant(self, value: float) -> Csr:
        """One more column, which is `value` in every row."""
        ends = self.row_ptr[1:]
        ids = np.insert(self.ids, ends, np.int32(self.width))
        values = np.insert(self.values, ends, self.values.dtype.type(value))
        return Csr(self.row_ptr + np.arange(self.row_ptr.size), ids, values, self.width + 1)


@dataclass(frozen=True)
class Rows:
    """Examples of one file."""

    file: Path
    unit: str
    """What the file counts: "line" or "row"."""
    numbers: np.ndarray
    """int64, (n,): line or row of each example"""
    labels: Sequence[Label]
    x: np.ndarray | Csr
    """(n, D), float32 or float64"""

    def where(self, k: int) -> str:
        """File and line of example k, with which error messages begin."""
        return f"{self.file}: {self.unit} {self.numbers[k]}"

    @property
    def width(self) -> int:
        """Number of columns."""
        return self.x.width if isinstance(self.x, Csr) else int(self.x.shape[1])

    def taken(self, chosen: np.ndarray) -> Rows:
        """Some of the examples, in the order given."""
        x = self.x.taken(chosen) if isinstance(self.x, Csr) else self.x[chosen]
        return replace(self, numbers=self.numbers[chosen], labels=[self.labels[k] for k in chosen], x=x)


def label_of(text: str) -> Label:
    """A written label as a value: an int for a whole number, also for +1 or 1.0; otherwise the name itself."""
    try:
        number = float(text)
    except ValueError:
        return text
    return int(number) if number.is_integer() else text


def unified(labels: Sequence[Label]) -> list[Label]:
    """Labels of one kind: names, unless all are whole numbers."""
    return list(labels) if all(isinstance(label, int) for label in labels) else [str(label) for label in labels]


def numbered(rows: Rows, names: Sequence[Label], elsewhere: str) -> np.ndarray:
    """int64 (n,): positions of the labels in `names`; DataError names the first that is not there."""
    text = any(isinstance(name, str) for name in names)
    position = {name: k for k, name in enumerate(names)}
    positions = np.array([position.get(str(label) if text else label, -1) for label in rows.labels], dtype=np.int64)
    if (positions < 0).any():
        k = int(np.argmin(positions))
        known = ", ".join(map(str, names[:8])) + (", ..." if len(names) > 8 else "")
        raise DataError(
            f"{rows.where(k)}: the label {rows.labels[k]!r} does not occur in {elsewhere}, whose labels are {known}; a "
            "model cannot predict it, so leave these examples out"
        )
    return positions


def refuse_endless(rows: Rows) -> None:
    """DataError for the first value that is not finite."""
    values = rows.x.values if isinstance(rows.x, Csr) else rows.x
    bad = ~np.isfinite(values)
    if not bad.any():
        return
    if isinstance(rows.x, Csr):
        e = int(np.argmax(bad))
        k, column = int(np.searchsorted(rows.x.row_ptr, e, side="right")) - 1, int(rows.x.ids[e])
    else:
        k, column = (int(j) for j in np.argwhere(bad)[0])
    raise DataError(f"{rows.where(k)}: feature {column} (from 0) is not a finite number")
