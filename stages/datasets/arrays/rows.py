"""Rows of features with labels, dense or sparse, that know where in their file they come from; and kernels of them."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple, TypeAlias, TypeGuard

import numpy as np

from gapwise.records import Record
from gapwise.stages.datasets import DataError, OptionError, Sink
from gapwise.stages.datasets.common.options import NonNegative, Positive, Whole, one_of

if TYPE_CHECKING:
    from scipy import sparse

Matrix: TypeAlias = "np.ndarray | sparse.csr_array"
Label = int | float | str
"""A class as its user has it: a number, true or false, or a name."""

UNNAMED = ("", "Unnamed: 0")
"""Names of a first column of row numbers, which pandas' to_csv() writes, and what pandas' read_csv() makes of it."""

OF_KERNEL = {"linear": (), "poly": ("gamma", "coef0", "degree"), "rbf": ("gamma",)}
"""Kernels and their options; `stages.problems.multiclass.kernel` has the formulas."""

WHOLE = re.compile(r"0|-?[1-9][0-9]*")
"""A whole number as Python writes it, so that different texts are different numbers."""


def is_sparse(x: object) -> TypeGuard[sparse.sparray | sparse.spmatrix]:
    """Whether `x` is a sparse matrix. Whoever has one has imported scipy.sparse; readers of text need not."""
    loaded = sys.modules.get("scipy.sparse")
    return loaded is not None and bool(loaded.issparse(x))


class Columns(NamedTuple):
    """The columns of the training data, by which later tables are read."""

    names: Sequence[str] | None = None
    """Of the features, as they are learned; None: they have none, and columns go by their place."""
    label: int | str | None = None
    """Of the label: its name if columns have names, else its number, from the end if it is negative. None: whichever column
    is no feature, or the last."""
    width: int = 0
    """Number of features."""
    first: int | None = None
    """Index of the first column in SVMlight's lines."""

    def places(self, found: Sequence[str], where: str, *, labelled: bool = False) -> tuple[list[int], int | None]:
        """Where a table with the columns `found` has the features, and the label; None: it has none.

        DataError, beginning with `where`, for other columns than those of the training data, and unless there is a label if
        there must be one.
        """
        count = len(found)
        if self.names is None:
            if not labelled and count == self.width:
                return [*range(count)], None
            if count != self.width + 1:
                also = "and a label" if labelled else "perhaps with a label"
                raise DataError(f"{where}: {count} columns; expected {self.width} features, {also}")
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
    x: Matrix
    """(n, D), float32 or float64; sparse rows with rising columns"""
    columns: Columns = BY_PLACE
    """How further files are read."""

    def where(self, k: int) -> str:
        """File and line of example k, with which error messages begin."""
        return f"{self.file}: {self.unit} {self.numbers[k]}"

    def taken(self, chosen: np.ndarray) -> Rows:
        """Some of the examples, in the order given."""
        labels = [self.labels[k] for k in chosen]
        return replace(self, numbers=self.numbers[chosen], labels=labels, x=self.x[chosen])


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
    x = rows.x.tocoo() if is_sparse(rows.x) else rows.x
    bad = np.flatnonzero(~np.isfinite(x.data if is_sparse(x) else x))
    if not bad.size:
        return
    k, column = (int(j) for j in ((x.row[bad[0]], x.col[bad[0]]) if is_sparse(x) else divmod(bad[0], x.shape[1])))
    name = "" if rows.columns.names is None else f", {rows.columns.names[column]}"
    raise DataError(f"{rows.where(k)}: feature {column} (from 0){name} is not a finite number")


@dataclass(frozen=True)
class KernelOptions:
    """Options that turn dense rows with labels into a problem over kernels; null: none, or the kernel's default.

    ``gamma`` is 1 / columns by default, ``coef0`` 0 and ``degree`` 3.
    """

    kernel: Annotated[str, one_of(*OF_KERNEL)] | None = None
    gamma: Positive | None = None
    coef0: NonNegative | None = None
    degree: Whole | None = None

    def __post_init__(self) -> None:
        used = OF_KERNEL[self.kernel] if self.kernel else ()
        for key in ("gamma", "coef0", "degree"):
            if getattr(self, key) is not None and key not in used:
                having = [kernel for kernel, keys in OF_KERNEL.items() if key in keys]
                raise OptionError(
                    f"dataset.{key}: only with dataset.kernel={' or '.join(having)}, got kernel {self.kernel}"
                )

    def write(self, sink: Sink, x: np.ndarray, classes: int) -> Record:
        """Store the training rows x (m, D) as points of the kernel; returns its facts. Without a kernel, there are none."""
        if self.kernel is None:
            return {}
        write_points(sink, x)
        defaults = {"gamma": 1.0 / x.shape[1], "coef0": 0.0, "degree": 3}
        given = {key: getattr(self, key) for key in OF_KERNEL[self.kernel]}
        facts = {key: defaults[key] if value is None else value for key, value in given.items()}
        return {"kernel": self.kernel, **facts, "d": 2 * classes * len(x)}


def write_points(sink: Sink, x: np.ndarray) -> None:
    """Store training rows also as points, and which point each of them is."""
    sink.put("", "points", x)
    sink.put("train", "row", np.arange(len(x), dtype=np.int64))
