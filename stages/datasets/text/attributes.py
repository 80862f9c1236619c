"""Attributes of tokens as dicts and lists have them, as sparse rows of numbers.

They follow python-crfsuite. In a list, each string is one, with the value 1. In a dict, ``{"word": "the"}`` is the
attribute ``word:the``, ``{"bias": 1.5}`` is ``bias`` with the value 1.5, ``{"upper": True}`` is ``upper`` with the value 1
(False: there is none), and names inside are prefixed: ``{"suffix": ["ing", "g"]}``, ``{"shape": {"x": 2.0}}``.

A data set has few different attributes and a million of them, so each is read when it is first met and looked up, as it
stands in the token, ever after: in a dict of strings for lists, and for dicts in one of the values below each key. No Python
code runs for the others.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from gapwise.stages.datasets import Known
from gapwise.stages.datasets.text.vocabulary import Rows
from gapwise.stages.problems.scale import check_single

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

    def __init__(self, names: list[str], weights: list[float], read: Callable[[Any], tuple[str, float]]) -> None:
        self.names, self.weights, self.read = names, weights, read

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
    entries = _entries(X)
    pairs = zip(entries.names, entries.values, strict=True)
    of_entry = np.array([number(name) if value else -1 for name, value in pairs], np.int32)
    ids, values, counts = of_entry[entries.which], np.array(entries.values), entries.counts
    ones = bool((values == 1.0).all())
    each = values[:0] if ones else values[entries.which]
    known, asked = ids.size, ids.size if ones else int(np.count_nonzero(each))
    if (of_entry < 0).any():
        kept = ids >= 0
        ends = np.append(0, np.cumsum(kept))[np.cumsum(counts)]
        ids, each, counts, known = ids[kept], each if ones else each[kept], np.diff(ends, prepend=0), int(kept.sum())
    ends = np.cumsum(counts)
    check_single(each, lambda entry: f"X: token {int(np.searchsorted(ends, entry, side='right'))} of all")
    return Rows(counts, ids, None if (each == 1.0).all() else each.astype(np.float32)), Known(known, asked)


def _entries(X: Sequence[Iterable[object]]) -> Entries:
    tokens: list[Any] = [*chain.from_iterable(X)]
    kinds = set(map(type, tokens))
    try:
        if kinds <= LISTS:
            return _of_items(tokens, _plain)
        if kinds == {dict}:
            return _of_dicts(tokens)
    except (TypeError, ValueError):
        pass  # dicts in dicts, lists in dicts, and what is no attribute
    return _of_items([*_expanded(X)], lambda pair: pair)


def _of_items(tokens: Sequence[Any], read: Callable[[Any], tuple[str, float]]) -> Entries:
    """Of tokens that are lists of what `read` takes."""
    counts = np.fromiter(map(len, tokens), np.int64, len(tokens))
    met = _Met([], [], read)
    which = np.fromiter(map(met.__getitem__, chain.from_iterable(tokens)), np.int64, int(counts.sum()))
    return Entries(counts, which, met.names, met.weights)


def _of_dicts(tokens: Sequence[dict[Any, Any]]) -> Entries:
    """Of dicts whose keys are strings and whose values are strings and numbers."""
    counts = np.fromiter(map(len, tokens), np.int64, len(tokens))
    met = _MetKeys()
    below = chain.from_iterable(map(met.__getitem__, map(tuple, tokens)))
    values = chain.from_iterable(map(dict.values, tokens))
    which = np.fromiter(map(dict.__getitem__, below, values), np.int64, int(counts.sum()))
    return Entries(counts, which, met.names, met.weights)


class _MetKeys(dict[tuple[Any, ...], tuple[_Met, ...]]):
    """For the keys of a token, what was met below each."""

    def __init__(self) -> None:
        self.names, self.weights, self.below = list[str](), list[float](), dict[Any, _Met]()

    def __missing__(self, keys: tuple[Any, ...]) -> tuple[_Met, ...]:
        for key in keys:
            if not isinstance(key, str):
                raise TypeError  # 1 and True are the same key of a dict, and different names
            if key not in self.below:
                self.below[key] = _Met(self.names, self.weights, partial(_single, key))
        self[keys] = met = tuple([self.below[key] for key in keys])
        return met


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


def _single(name: str, value: object) -> tuple[str, float]:
    """The one attribute that a value below `name` is; ValueError if it is none or several."""
    if isinstance(value, str):
        return f"{name}{SEPARATOR}{value}", 1.0
    (attribute,) = _named(name, value)
    return attribute


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
