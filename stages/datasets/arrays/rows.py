"""Rows of features with labels, dense or sparse, that know where in their file they come from."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from gapwise.stages.datasets import DataError

Label = int | float | str
"""A class as its user has it: a number, true or false, or a name."""

UNNAMED = ("", "Unnamed: 0")
"""Names of a first column of row numbers, which pandas' to_csv() writes, and what pandas' read_csv() makes of it."""

WHOLE = re.compile(r"0|-?[1-9][0-9]*")
"""A whole number as Python writes it, so that different texts are different numbers."""


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


class Columns(NamedTuple):
    """The columns of the training data, by which later tables are read."""

    names: Sequence[str] | None = None
    """Of the features, as they are learned; None: they have none, and columns go by their place."""
    label: int | str | None = None
    """Of the label: its name if columns have names, else its number, from the end if it is negative. None: whichever column
    is no feature, or the last."""
    width: int = 0
    """Number of features."""

    def places(self, found: Sequence[str], where: str, *, labelled: bool = False) -> tuple[list[int], int | None]:
        """Where a table with the columns `found` has the features, and the label; None: it has none.

        DataError, beginning with `where`, for other columns than those of the training data, and unless there is a label if
        there must be one.
        """
        count = len(found)
        if self.names is None:
            if not labelled and count == self.width:
                return [*range(count)], None
            if not labelled and count != self.width + 1:
                raise DataError(f"{where}: {count} columns; expected {self.width} features, perhaps with a label")
            label_at = (-1 if self.label is None else int(self.label)) % count
            return [column for column in range(count) if column != label_at], label_at
        place = {name: column for column, name in enumerate(found)}
        others = [name for name in found[found[0] in UNNAMED :] if name not in {*self.names, self.label}]
        missing = [name for name in self.names if name not in place]
        label = others.pop() if self.label is None and len(others) == 1 and not missing else self.label
        if labelled and label not in place:
            missing.append("the label" if label is None else str(label))
        if missing or others:
            faults = [f"{what}: {few(names)}" for what, names in (("missing", missing), ("unknown", others)) if names]
            raise DataError(f"{where}: expected the columns of the training data, in any order; {', '.join(faults)}")
        if len(place) < count:
            twice = next(name for column, name in enumerate(found) if place[name] != column)
            raise DataError(f"{where}: two columns are called {twice!r}; give them different names")
        return [place[name] for name in self.names], None if label is None else place.get(str(label))


BY_PLACE = Columns()


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
    columns: Columns = BY_PLACE
    """How further files are read."""

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


def written(labels: Sequence[str]) -> Sequence[Label]:
    """Labels of a text: whole numbers, if all are written as Python writes them; otherwise they keep their spelling."""
    return [*map(int, labels)] if all(map(WHOLE.fullmatch, labels)) else labels


def classes_of(labels: Iterable[Label]) -> list[Label]:
    """The different labels in order: whole numbers by value, also as text, and names as text."""
    names = set(labels)
    return sorted(names, key=int if all(WHOLE.fullmatch(str(name)) for name in names) else str)


def few(names: Sequence[object]) -> str:
    """The first names of a list, for messages."""
    return ", ".join(map(str, names[:8])) + (", ..." if len(names) > 8 else "")


def numbered(rows: Rows, names: Sequence[Label], elsewhere: str) -> np.ndarray:
    """int64 (n,): positions of the labels in `names`; DataError names the first that is not there."""
    position = {str(name): k for k, name in enumerate(names)}
    positions = np.array([position.get(str(label), -1) for label in rows.labels], dtype=np.int64)
    if (positions < 0).any():
        k = int(np.argmin(positions))
        raise DataError(
            f"{rows.where(k)}: the label {rows.labels[k]!r} does not occur in {elsewhere}, whose labels are {few(names)}; a "
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
    name = "" if rows.columns.names is None else f", {rows.columns.names[column]}"
    raise DataError(f"{rows.where(k)}: feature {column} (from 0){name} is not a finite number")
