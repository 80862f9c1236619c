"""Attributes numbered by a hash of their names, for vocabularies without end: no name is stored, and each has a number.

Names that share a number share a weight. The hash is CRC-32, the same on every machine.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass

import numpy as np

from gapwise.stages.datasets.text.crfsuite import listed
from gapwise.stages.datasets.text.tables import Table
from gapwise.stages.datasets.text.templates import Template, rows_by_name
from gapwise.stages.datasets.text.vocabulary import Attributes, Rows, known_rows

MOST_BITS = 28
"""A chain addresses attributes times labels with 31 bits."""


@dataclass(frozen=True)
class Hashed:
    """Numbers of all names, from 0 to 2**bits - 1."""

    bits: int

    def get(self, name: str, default: int, /) -> int:
        """The number of a name; `default` is for mappings that do not know every name."""
        return zlib.crc32(name.encode()) >> (32 - self.bits)


def hashed(
    train: Table, test: Table, columns: list[list[str]] | None, templates: list[Template], bits: int
) -> Attributes:
    """Attributes of train and test tokens: by templates of `columns`, or without columns those of CRFsuite's lines."""
    numbers = Hashed(bits)
    if columns is None:
        train_rows, test_rows = (_of_lines(table, numbers) for table in (train, test))
    else:
        start = np.concatenate([train.start, train.start[-1] + test.start[1:]])
        rows = rows_by_name(columns, start, templates, numbers, one_pad=False)
        edge = int(train.start[-1])
        train_rows, test_rows = rows.of_tokens(0, edge), rows.of_tokens(edge, int(start[-1]))
    return Attributes(train_rows, test_rows, [], 1 << bits)


def _of_lines(table: Table, numbers: Hashed) -> Rows:
    ids, counts, values = listed(table, lambda name: numbers.get(name, -1))
    return known_rows(ids, np.repeat(np.arange(counts.size), counts), counts.size, values)
