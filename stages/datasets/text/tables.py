"""Tokens in columns, one per line, with an empty line after each sequence: from a file, a text, or lists of strings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

from gapwise.stages.datasets import DataError, Raw, unpacked


@dataclass(frozen=True)
class Table:
    """Tokens of one file: rows[t] the columns of token t, start (sequences + 1,), line[t] its line, counted from 1."""

    file: Path | str
    rows: list[list[str]]
    start: np.ndarray
    line: np.ndarray
    separator: str | None = None
    """What separates columns; None for white space."""
    more: tuple[tuple[int, Path | str], ...] = ()
    """First token and file of every further file, if several are joined."""

    def where(self, token: int) -> str:
        """File and line of a token, with which error messages begin."""
        return f"{self.file_of(token)}: line {self.line[token]}"

    def file_of(self, token: int) -> Path | str:
        """The file that a token is from."""
        return [self.file, *(file for first, file in self.more if first <= token)][-1]

    @property
    def source(self) -> str:
        """The file, or the first of several."""
        return f"{self.file} and {len(self.more)} more" if self.more else str(self.file)

    def where_token(self, sequence: int, token: int) -> str:
        """The same with the numbers of a sequence and of a token in it, both from 0."""
        return f"{self.where(int(self.start[sequence]) + token)}: sequence {sequence}, token {token}"

    def part(self, first: int, end: int) -> Table:
        """Sequences first:end."""
        a, b = int(self.start[first]), int(self.start[end])
        more = tuple((edge - a, file) for edge, file in self.more if a < edge < b)
        start = self.start[first : end + 1] - a
        return Table(self.file_of(a), self.rows[a:b], start, self.line[a:b], self.separator, more)

    def text(self, last: Sequence[str] | None = None) -> str:
        """The lines of a file with these tokens, each with its value of `last` as one more column, if given."""
        by, rows = self.separator or " ", self.rows
        lines = [by.join(row) for row in rows]
        if last is not None:
            lines = [f"{line}{by}{value}" for line, value in zip(lines, last, strict=True)]
        return "\n\n".join("\n".join(lines[a:b]) for a, b in pairwise(self.start.tolist())) + "\n"


def lines_of(text: str) -> list[str]:
    """Lines of a text, whichever way they end; unlike `str.splitlines` at no other characters, which tokens may have."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return lines if lines[-1] else lines[:-1]


def read_lines(file: Path) -> list[str]:
    """Lines of a text file in UTF-8, gzipped or not, with a byte order mark or without."""
    raw = unpacked(file)
    try:
        return lines_of(raw.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise DataError(f"{file}: cannot be read as UTF-8 text: {error}") from error


def read_table(file: Path, *, separator: str | None = None, equal_columns: bool = True) -> Table:
    """Tokens of a file; raises the errors of `parse_table`."""
    return parse_table(file, read_lines(file), separator=separator, equal_columns=equal_columns)


def parse_table(
    file: Path | str, lines: list[str], *, separator: str | None = None, equal_columns: bool = True
) -> Table:
    """Tokens of the lines of `file`; DataError names file and line.

    A sequence with no tokens (two empty lines in a row) is an error. With `equal_columns`, so is a token whose number of
    columns differs from the first one's. Empty lines at the end are allowed.
    """
    lines = list(lines)
    while lines and not lines[-1].strip():
        lines.pop()
    if not lines:
        raise DataError(f"{file}: holds no tokens")
    rows: list[list[str]] = []
    line: list[int] = []
    start, empty_before = [0], True
    for number, text in enumerate(lines, 1):
        if not text.strip():
            if empty_before:
                raise DataError(f"{file}: line {number}: a sequence with no tokens")
            start.append(len(rows))
            empty_before = True
            continue
        row = text.split(separator)
        if equal_columns and rows and len(row) != len(rows[0]):
            raise DataError(f"{file}: line {number}: {len(row)} columns, but {len(rows[0])} on line {line[0]}")
        rows.append(row)
        line.append(number)
        empty_before = False
    return Table(file, rows, np.array([*start, len(rows)], dtype=np.int64), np.array(line), separator)


def joined(tables: Sequence[Table]) -> Table:
    """The sequences of several files as one table; `where` still names the file of a token."""
    sizes = [len(table.rows) for table in tables]
    first = np.concatenate([[0], np.cumsum(sizes)]).tolist()
    return Table(
        tables[0].file,
        [row for table in tables for row in table.rows],
        np.concatenate([[0], *(table.start[1:] + offset for table, offset in zip(tables, first, strict=False))]),
        np.concatenate([table.line for table in tables]),
        tables[0].separator,
        tuple(edge for k, table in enumerate(tables) for edge in _edges(table, first[k], k > 0)),
    )


def _edges(table: Table, offset: int, further: bool) -> list[tuple[int, Path | str]]:
    """What `Table.more` has of a table whose first token becomes token `offset` of a joined one."""
    own = [(offset, table.file)] if further else []
    return own + [(offset + edge, file) for edge, file in table.more]


def new_table(raw: Raw, *, separator: str | None, equal_columns: bool) -> Table:
    """Tokens of new input: a table, the text of a file, or a list of sequences, each a text or a list of rows of strings.

    Errors call it "input" and count lines as if each row were one line, with an empty line after each sequence.
    """
    if isinstance(raw, Table):
        return raw
    if not isinstance(raw, str) and raw and all(isinstance(sequence, str) for sequence in raw):
        raw = "\n\n".join(sequence.strip("\n") for sequence in raw)
    if isinstance(raw, str):
        return parse_table("input", lines_of(raw), separator=separator, equal_columns=equal_columns)
    if not all(_is_list(sequence) and all(map(_is_row, sequence)) for sequence in raw):
        raise DataError("input: expected the text of a file, or a list of sequences, each a list of rows of strings")
    sizes = np.array([len(sequence) for sequence in raw], dtype=np.int64)
    if not sizes.size or not sizes.all():
        where = f"sequence {int(np.argmin(sizes))} has no tokens" if sizes.size else "holds no sequences"
        raise DataError(f"input: {where}")
    rows = [list(row) for sequence in raw for row in sequence]
    line = 1 + np.arange(len(rows)) + np.repeat(np.arange(sizes.size), sizes)
    for row, number in zip(rows, line, strict=True):
        if equal_columns and len(row) != len(rows[0]):
            raise DataError(f"input: line {number}: {len(row)} columns, but {len(rows[0])} on line 1")
        for value in row:
            if separator is None and value.split() != [value]:
                raise DataError(f"input: line {number}: {value!r}: a column must be one word without white space")
    return Table("input", rows, np.concatenate([[0], np.cumsum(sizes)]), line, separator)


def _is_list(value: object) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _is_row(row: object) -> bool:
    if not isinstance(row, Sequence) or isinstance(row, str) or not row:
        return False
    return all(isinstance(value, str) for value in row)
