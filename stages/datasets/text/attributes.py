r"""Attributes of tokens, as dicts, lists and CRFsuite's lines have them, as sparse rows of numbers.

They follow python-crfsuite. In a list, each string is one, with the value 1. In a dict, ``{"word": "the"}`` is the
attribute ``word:the``, ``{"bias": 1.5}`` is ``bias`` with the value 1.5, ``{"upper": True}`` is ``upper`` with the value 1
(False: there is none), and names inside are prefixed: ``{"suffix": ["ing", "g"]}``, ``{"shape": {"x": 2.0}}``.
Lines are ``label<TAB>attribute<TAB>attribute:value...``, with ``\:`` and ``\\`` for a colon and a backslash in names.

A data set has few different attributes and a million of them, so each is read when it is first met and looked up, as it
stands in the token, ever after. No Python code runs for the others.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from gapwise.stages.datasets import DataError, Known
from gapwise.stages.datasets.text.tables import Table
from gapwise.stages.datasets.text.vocabulary import Attributes, Rows, number_rows
from gapwise.stages.problems.scale import check_single

LAST_COLON = re.compile(r"(?<!\\)(?:\\\\)*:(?=[^:]*$)")
SEPARATOR = ":"
LISTS = {list, tuple, set, frozenset}


class Entries(NamedTuple):
    """Attributes of all tokens, one after the other."""

    counts: np.ndarray
    """int64, (tokens,)"""
    which: np.ndarray
    """int64, (sum of counts,): numbers in `names` and `values`, by first use; two may be the same attribute"""
    names: list[str]
    values: list[float]


class _Met(dict[Any, int]):
    """Numbers of attributes as they stand in tokens; a new one is read, and appended to `names` and `weights`."""

    def __init__(self, read: Callable[[Any], tuple[str, float]]) -> None:
        self.names, self.weights, self.read = list[str](), list[float](), read

    def __missing__(self, item: Any) -> int:
        name, weight = self.read(item)
        self[item] = number = len(self.names)
        self.names.append(name)
        self.weights.append(weight)
        return number


def rows_of_attributes(X: Sequence[Iterable[object]], number: Callable[[str], int]) -> tuple[Rows, Known]:
    """Rows of tokens that list attributes, and how many have a number.

    `number` is asked for each different attribute once or more, in the order in which they come; those whose number is
    negative are left out, like those with the value 0. ValueError names sequence and token of what is no attribute.
    """
    rows, known = _rows(_entries(X), lambda name, value: number(name) if value else -1, zeros=False)
    if rows.values is not None:
        ends = np.cumsum(rows.counts)
        check_single(rows.values, lambda entry: f"X: token {int(np.searchsorted(ends, entry, side='right'))} of all")
    return rows._replace(values=None if rows.values is None else rows.values.astype(np.float32)), known


def rows_of_lines(table: Table, number: Callable[[str], int]) -> tuple[Rows, Known]:
    """The same of CRFsuite's lines, whose zeros stay; values are float64. DataError names file and line."""
    for token, row in enumerate(table.rows):
        if len(row) == 1 and " " in row[0].strip(" "):
            raise DataError(
                f"{table.where(token)}: no tab in {row[0]!r}; expected a label and attributes separated by tabs. Columns "
                "separated by blanks need dataset.template"
            )
    tokens = [[*filter(None, row[1:])] for row in table.rows]
    try:
        return _rows(_of_items(tokens, attribute_of_line), lambda name, value: number(name), zeros=True)
    except ValueError:
        for token, fields in enumerate(tokens):
            try:
                _of_items([fields], attribute_of_line)
            except ValueError as error:
                raise DataError(f"{table.where(token)}: {error}") from None
        raise


def number_attributes(train: Table, test: Table, min_count: int) -> Attributes:
    """Attributes of the tokens of two files of CRFsuite's lines; DataError names file and line."""
    vocabulary: dict[str, int] = {}
    parts = [
        rows_of_lines(table, lambda name: vocabulary.setdefault(name, len(vocabulary)))[0] for table in (train, test)
    ]
    ids, counts = (np.concatenate([getattr(rows, name) for rows in parts]) for name in ("ids", "counts"))
    values = np.concatenate([np.ones(rows.ids.size) if rows.values is None else rows.values for rows in parts])
    train_rows, test_rows, chosen = number_rows(ids, counts, len(train.rows), min_count, values)
    names = list(vocabulary)
    return Attributes(train_rows, test_rows, [names[k] for k in chosen])


def _rows(entries: Entries, number: Callable[[str, float], int], zeros: bool) -> tuple[Rows, Known]:
    """Rows of the entries whose number is not negative, float64 values unless all are 1; and how many these are.

    Without `zeros`, entries with the value 0 do not count as unknown.
    """
    pairs = zip(entries.names, entries.values, strict=True)
    of_entry = np.array([number(name, value) for name, value in pairs], np.int32)
    ids, of_value, counts = of_entry[entries.which], np.array(entries.values), entries.counts
    ones = bool((of_value == 1.0).all())
    values = None if ones else of_value[entries.which]
    asked = ids.size if values is None or zeros else int(np.count_nonzero(values))
    if (of_entry < 0).any():
        kept = ids >= 0
        ends = np.append(0, np.cumsum(kept))[np.cumsum(counts)]
        ids, counts, values = ids[kept], np.diff(ends, prepend=0), None if values is None else values[kept]
    ones = values is None or bool((values == 1.0).all())
    return Rows(counts, ids, None if ones else values), Known(int(ids.size), asked)


def _entries(X: Sequence[Iterable[object]]) -> Entries:
    tokens: list[Any] = [*chain.from_iterable(X)]
    kinds = set(map(type, tokens))
    try:
        if kinds <= LISTS:
            return _of_items(tokens, _plain)
        if kinds == {dict}:
            return _of_items(tokens, _single, dict.items)
    except (TypeError, ValueError):
        pass  # dicts in dicts, lists in dicts, and what is no attribute
    return _of_items([*_expanded(X)], lambda pair: pair)


def _of_items(
    tokens: Sequence[Any], read: Callable[[Any], tuple[str, float]], items: Callable[[Any], Iterable[Any]] = iter
) -> Entries:
    """Of tokens whose `items` are what `read` takes."""
    counts = np.fromiter(map(len, tokens), np.int64, len(tokens))
    met = _Met(read)
    which = np.fromiter(map(met.__getitem__, chain.from_iterable(map(items, tokens))), np.int64, int(counts.sum()))
    return Entries(counts, which, met.names, met.weights)


def _expanded(X: Sequence[Iterable[object]]) -> Iterator[list[tuple[str, float]]]:
    """Names and values of the attributes of every token."""
    for i, sequence in enumerate(X):
        for t, token in enumerate(sequence):
            try:
                yield [*attributes(token)]
            except (TypeError, ValueError) as error:
                raise ValueError(f"X: sequence {i}, token {t}: {error}") from error


def _plain(name: object) -> tuple[str, float]:
    if not isinstance(name, str):
        raise TypeError(f"expected attributes as strings, got {name!r}")
    return name, 1.0


def _single(item: tuple[object, object]) -> tuple[str, float]:
    """The one attribute that a name and its value are; ValueError or TypeError where that is not clear."""
    name, value = item
    if not isinstance(name, str):
        raise TypeError
    if isinstance(value, str):
        return f"{name}{SEPARATOR}{value}", 1.0
    (attribute,) = _named(name, value)
    return attribute


def attribute_of_line(field: str) -> tuple[str, float]:
    """Name and value (1 by default) of ``name`` or ``name:value``; ValueError for another value."""
    colon = LAST_COLON.search(field)
    name, text = (field[: colon.end() - 1], field[colon.end() :]) if colon else (field, "1")
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ValueError(
            f"{field!r}: expected a finite number after the colon, the attribute's value; a colon in a name is written "
            rf"\:, as in {name}\:{text}"
        )
    return re.sub(r"\\(.)", r"\1", name), value


def attributes(token: object) -> Iterator[tuple[str, float]]:
    """Names and values of a token's attributes; ValueError or TypeError says what cannot be one."""
    if isinstance(token, Mapping):
        for name, value in token.items():
            yield from _named(str(name), value)
    elif isinstance(token, list | tuple | set | frozenset):
        yield from map(_plain, token)
    else:
        raise TypeError(f"expected a dict or a list of attributes, got {token!r}")


def _named(name: str, value: object) -> Iterator[tuple[str, float]]:
    if isinstance(value, str):
        yield f"{name}{SEPARATOR}{value}", 1.0
    elif isinstance(value, bool | int | float | np.number | np.bool_):
        number = float(value)
        if not math.isfinite(number):
            raise ValueError(f"attribute {name!r} has the value {number}; expected a finite number")
        yield name, number
    elif isinstance(value, Mapping):
        for inner, deeper in value.items():
            yield from _named(f"{name}{SEPARATOR}{inner}", deeper)
    elif isinstance(value, list | tuple | set | frozenset):
        for inner in value:
            if not isinstance(inner, str):
                raise TypeError(f"attribute {name!r}: expected strings in its list, got {inner!r}")
            yield f"{name}{SEPARATOR}{inner}", 1.0
    else:
        raise TypeError(f"attribute {name!r}: expected a string, number, bool, dict or list, got {value!r}")
