"""New input as arrays in files, and predictions as CSV."""

from __future__ import annotations

import csv
import io
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from gapwise.stages.datasets import UNREADABLE, DataError, unpacked


def arrays_of(file: Path, wanted: Sequence[str]) -> dict[str, np.ndarray]:
    """The `wanted` arrays that an .npz file holds; a file with a single array gives it under the first name."""
    try:
        with np.load(file, allow_pickle=False) as archive:
            names = {name: name for name in wanted if name in archive.files}
            if not names and len(archive.files) == 1:
                names = {wanted[0]: archive.files[0]}
            return {name: archive[stored] for name, stored in names.items()}
    except UNREADABLE as error:
        raise DataError(f"{file}: cannot be read as an .npz file without pickled objects ({error})") from error


def table_of(file: Path) -> np.ndarray:
    """Numbers of a text file, gzipped or not, (rows, columns), separated by white space or commas."""
    text = unpacked(file).decode(errors="replace")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of an empty file; the shape says that
            return np.loadtxt(io.StringIO(text), delimiter="," if "," in text.partition("\n")[0] else None, ndmin=2)
    except ValueError as error:
        raise DataError(f"{file}: expected rows of numbers, separated by white space or commas: {error}") from error


def array_of(file: Path) -> np.ndarray:
    """The array of an .npy file."""
    try:
        return np.asarray(np.load(file, allow_pickle=False))
    except UNREADABLE as error:
        raise DataError(f"{file}: cannot be read as an .npy file without pickled objects ({error})") from error


def csv_text(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table as CSV."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return out.getvalue()
