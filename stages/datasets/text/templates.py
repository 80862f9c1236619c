"""Attributes by templates, which look at some columns at some offsets from a token (CRF++'s notion).

Each combination of values that a template sees often enough in training is one attribute. For training, all templates are
expanded for all tokens at once, on integer codes. Attributes of new tokens are looked up by name: the template's text
without the macros, then the values, separated by tabs. A value outside the sequence is " _B-1", " _B+2" and so on, which
cannot be a token because it begins with a space.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise, repeat

import numpy as np

from gapwise.stages.datasets import DataError
from gapwise.stages.datasets.text.tables import Table
from gapwise.stages.datasets.text.vocabulary import Attributes, Rows, known_rows, number_rows


@dataclass(frozen=True)
class Template:
    """One line of a template file: its text without the macros, and the macros' (offset, column)."""

    skeleton: str
    macros: tuple[tuple[int, int], ...]


def expand(train: Table, test: Table, columns: list[list[str]], templates: list[Template], *, min_count: int,
           one_pad: bool) -> Attributes:  # fmt: skip
    """Attributes of train and test tokens.

    Parameters
    ----------
    columns
        Values of each column for the tokens of train followed by those of test.
    min_count
        Values of a template that occur less often in training are dropped, as are those that occur in test only.
    one_pad
        One symbol for everything before a sequence and one for everything after (else one for each distance, as in CRF++).
    """
    start = np.concatenate([train.start, train.start[-1] + test.start[1:]])
    tokens, n_train = int(start[-1]), int(train.start[-1])
    sentence = np.repeat(np.arange(start.size - 1), np.diff(start))
    before, after = np.arange(tokens) - start[sentence], start[sentence + 1] - np.arange(tokens) - 1
    reach = max((abs(offset) for template in templates for offset, _ in template.macros), default=0)
    vocabulary: dict[str, int] = {}
    base = 2 * reach
    codes = [np.array([vocabulary.setdefault(x, len(vocabulary)) for x in column]) + base for column in columns]
    base += len(vocabulary)

    def look(offset: int, column: int) -> np.ndarray:
        """Codes of `column` at `offset` from each token; k places before a sequence 2(k - 1), k after it 2(k - 1) + 1."""
        seen = np.roll(codes[column], -offset)
        outside = -before - offset if offset < 0 else offset - after
        if offset == 0:
            return seen
        distance = np.ones_like(outside) if one_pad else outside
        return np.where(outside > 0, 2 * (distance - 1) + (offset > 0), seen)

    def keys(members: list[int]) -> np.ndarray:
        """One integer for the values that each template sees at each token, (members, tokens)."""
        key = np.zeros((len(members), tokens), dtype=np.int64)
        for macro in range(len(templates[members[0]].macros)):
            if int(key.max()) >= 2**62 // base:
                key = np.unique(key, return_inverse=True)[1].reshape(key.shape)
            key = key * base + np.stack([look(*templates[number].macros[macro]) for number in members])
        return key

    alike: dict[tuple[str, int], list[int]] = {}  # as in CRF++, equal skeletons share attributes
    for number, template in enumerate(templates):
        alike.setdefault((template.skeleton, len(template.macros)), []).append(number)
    ids = np.empty((tokens, len(templates)), dtype=np.int64)
    examples: list[np.ndarray] = []
    """(template, token) where each candidate is seen first"""
    offset = 0
    for members in alike.values():
        values, first, inverse = np.unique(keys(members), return_index=True, return_inverse=True)
        inverse = inverse.reshape(len(members), tokens)
        ids[:, members] = inverse.T + offset
        examples.append(np.stack([np.array(members)[first // tokens], first % tokens]))
        offset += values.size
    every = np.full(tokens, len(templates))
    train_rows, test_rows, chosen = number_rows(ids.reshape(-1), every, n_train, min_count)
    template_of, token_of = np.concatenate(examples, axis=1)[:, chosen].tolist()
    look_up = _Shifted(columns, start, one_pad)
    names = [look_up.name(templates[k], t) for k, t in zip(template_of, token_of, strict=True)]
    return Attributes(train_rows, test_rows, names)


def rows_by_name(columns: list[list[str]], start: np.ndarray, templates: list[Template], numbers: Mapping[str, int], *,
                 one_pad: bool) -> Rows:  # fmt: skip
    """Attribute rows of new tokens, as `expand` makes them: ids by name, unknown attributes dropped."""
    tokens = int(start[-1])
    look_up = _Shifted(columns, start, one_pad)
    ids = np.empty((tokens, len(templates)), dtype=np.int64)
    for k, template in enumerate(templates):
        seen = [look_up[macro] for macro in template.macros]
        names = map("\t".join, zip([template.skeleton] * tokens, *seen, strict=True))
        ids[:, k] = list(map(numbers.get, names, repeat(-1)))  # a million names: no Python code runs for each
    return known_rows(ids.reshape(-1), np.repeat(np.arange(tokens), len(templates)), tokens, None)


class _Shifted(dict[tuple[int, int], list[str]]):
    """For each macro (offset, column), the value that each token sees; computed at first use."""

    def __init__(self, columns: list[list[str]], start: np.ndarray, one_pad: bool) -> None:
        self.columns, self.edges, self.one_pad = columns, start.tolist(), one_pad

    def __missing__(self, macro: tuple[int, int]) -> list[str]:
        offset, column = macro
        values, seen = self.columns[column], []
        sign, far = ("-" if offset < 0 else "+"), abs(offset)
        pads = [f" _B{sign}{1 if self.one_pad else k}" for k in range(1, far + 1)]
        for a, b in pairwise(self.edges):
            out = min(far, b - a)
            if offset < 0:
                seen += pads[::-1][:out] + values[a : b - out]
            else:
                seen += values[a + out : b] + pads[far - out :]
        self[macro] = seen
        return seen

    def name(self, template: Template, token: int) -> str:
        """Name of the attribute that a template sees at a token."""
        return "\t".join([template.skeleton, *(self[macro][token] for macro in template.macros)])


def columns_of(table: Table, width: int) -> list[list[str]]:
    """The first `width` columns of new tokens; one more, a label, is allowed, any other number is a DataError."""
    if len(table.rows[0]) not in (width, width + 1):
        raise DataError(
            f"{table.where(0)}: {len(table.rows[0])} columns; expected the {width} feature columns of the training data, "
            "optionally followed by a label, which is ignored"
        )
    return [[row[column] for row in table.rows] for column in range(width)]
