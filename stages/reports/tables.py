"""Tables as files: CSV and Markdown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NotRequired, TypedDict

import pandas as pd

from gapwise.storage.backend import Location
from gapwise.storage.files import aside, publish

Row = dict[str, object]
"""A row of a table: cells that JSON can hold, by column"""


class Compared(TypedDict):
    """What a figure over the runs of a sweep returns."""

    figures: list[str]
    """names of the files, as PNG"""
    table: list[Row]
    """one row per variant and lambda"""
    text: list[str]
    """the table as lines"""
    paths: NotRequired[list[Row]]
    """one row per path, of `frontier`; goes into summary.json unchanged, as other entries do"""


def write_csv(path: Location, rows: Sequence[Mapping[str, object]]) -> None:
    """Write all rows, atomically; a cell is empty if the row lacks the name or has None."""
    frame = pd.DataFrame(rows, dtype=object)  # numbers stay as they are: a column of int and None would become float
    frame.to_csv(aside(path), index=False, lineterminator="\r\n")
    publish(path)


def markdown(cells: Sequence[Sequence[str]]) -> list[str]:
    """A table whose first row is the header, padded so that the source is readable too.

    pandas' own writer needs the package tabulate.
    """
    wide = [max(map(len, column)) for column in zip(*cells, strict=True)]
    rows = ["| " + " | ".join(cell.ljust(w) for cell, w in zip(row, wide, strict=True)) + " |" for row in cells]
    return [rows[0], "|" + "|".join("-" * (w + 2) for w in wide) + "|", *rows[1:]]
