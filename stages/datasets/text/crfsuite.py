r"""Attributes as CRFsuite's lines list them: ``label<TAB>attribute<TAB>attribute:value...``, with ``\:`` and ``\\`` for a
colon and a backslash in names."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np

from gapwise.stages.datasets import DataError
from gapwise.stages.datasets.text.tables import Table
from gapwise.stages.datasets.text.vocabulary import Attributes, number_rows

LAST_COLON = re.compile(r"(?<!\\)(?:\\\\)*:(?=[^:]*$)")


def number_attributes(train: Table, test: Table, min_count: int) -> Attributes:
    """Attributes of the tokens of both files; DataError names file and line."""
    vocabulary: dict[str, int] = {}
    parts = []
    for table in (train, test):
        parts.append(listed(table, lambda name: vocabulary.setdefault(name, len(vocabulary))))
    ids, counts, values = (np.concatenate(both) for both in zip(*parts, strict=True))
    train_rows, test_rows, chosen = number_rows(ids, counts, len(train.rows), min_count, values)
    names = list(vocabulary)
    return Attributes(train_rows, test_rows, [names[k] for k in chosen])


def listed(table: Table, number: Callable[[str], int]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Attributes of all tokens, numbered by name: ids, how many of them each token has, values."""
    ids: list[int] = []
    values: list[float] = []
    counts: list[int] = []
    for token, row in enumerate(table.rows):
        if len(row) == 1 and " " in row[0].strip(" "):
            raise DataError(
                f"{table.where(token)}: no tab in {row[0]!r}; expected a label and attributes separated by tabs. Columns "
                "separated by blanks need dataset.template"
            )
        fields = [field for field in row[1:] if field]
        for field in fields:
            name, value = parse_attribute(field, table, token)
            ids.append(number(name))
            values.append(value)
        counts.append(len(fields))
    return np.array(ids, dtype=np.int64), np.array(counts, dtype=np.int64), np.array(values)


def parse_attribute(field: str, table: Table, token: int) -> tuple[str, float]:
    """Name and value (1 by default) of ``name`` or ``name:value``; DataError names the token's line."""
    colon = LAST_COLON.search(field)
    name, text = (field[: colon.end() - 1], field[colon.end() :]) if colon else (field, "1")
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not np.isfinite(value):
        raise DataError(
            f"{table.where(token)}: {field!r}: expected a finite number after the colon, the attribute's value; a colon in "
            rf"a name is written \:, as in {name}\:{text}"
        )
    return re.sub(r"\\(.)", r"\1", name), value
