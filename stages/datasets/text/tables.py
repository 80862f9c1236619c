"""Tokens in columns, one per line, with empty lines after each sequence: from a file, a text, or lists of strings.

Where a line of a file has a tab, tabs alone separate its columns, and tokens may have blanks; otherwise blanks do. All other
characters, such as U+00A0 and U+3000, belong to tokens, as for CRF++ and conlleval.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import numpy as np

from gapwise.stages.datasets import DataError, Raw
from gapwise.stages.datasets.common.files import lines_of, read_lines

BLANKS = " \t"
SVM_HMM = re.compile(r"[ \t]*[^ \t#]+[ \t]+qid:|[ \t]*(#|$)")
"""How all lines of SVM-HMM begin: ``tag qid:sequence index:value ... # word``."""


@dataclass(frozen=True)
class Table:
    """Tokens of files: rows[t] the columns of token t, start (sequences + 1,), line[t] its line, counted from 1."""

    files: tuple[tuple[int, Path | str], ...]
    """First token and name of each file: several are joined."""
    rows: list[list[str]]
    start: np.ndarray
    line: np.ndarray
    separator: str = " "
    """What separates columns."""

    def where(self, token: int) -> str:
        """File and line of a token, with which error messages begin."""
        file = [name for first, name in self.files if first <= token][-1]
        return f"{file}: line {self.line[token]}"

    @property
    def source(self) -> str:
        """The file, or the first of several."""
        more = len(self.files) - 1
        return f"{self.files[0][1]} and {more} more" if more else str(self.files[0][1])

    def where_token(self, sequence: int, token: int) -> str:
        """The same with the numbers of a sequence and of a token in it, both from 0."""
        return f"{self.where(int(self.start[sequence]) + token)}: sequence {sequence}, token {token}"

    def labels(self, column: int) -> list[str]:
        """The labels, which are a column of the tokens; DataError names the line of a token that has none."""
        labels = [row[column] for row in self.rows]
        if "" in labels:
            where = "before the first tab" if column == 0 else "after the last tab"
            raise DataError(f"{self.where(labels.index(''))}: no label {where}")
        return labels

    def part(self, first: int, end: int) -> Table:
        """Sequences first:end."""
        a, b = int(self.start[first]), int(self.start[end])
        files = tuple((edge - a, file) for edge, file in self.files)
        return Table(files, self.rows[a:b], self.start[first : end + 1] - a, self.line[a:b], self.separator)

    def text(self, last: Sequence[str] | None = None) -> str:
        """The lines of a file with these tokens, each with its value of `last` as one more column, if given."""
        lines = [self.separator.join(row) for row in self.rows]
        if last is not None:
            lines = [f"{line}{self.separator}{value}" for line, value in zip(lines, last, strict=True)]
        return "\n\n".join("\n".join(lines[a:b]) for a, b in pairwise(self.start.tolist())) + "\n"


def words_of(line: str) -> list[str]:
    """What stands between blanks and tabs."""
    return [word for word in line.replace("\t", " ").split(" ") if word]


def cells(line: str, separator: str | None = None) -> list[str]:
    """Columns of a line, without blanks around them: at each tab, or at blanks if `separator`, or the line, has no tab."""
    if "\t" in (separator or line):
        return [cell.strip(" ") for cell in line.split("\t")]
    return words_of(line)


def read_table(file: Path, *, separator: str | None = None, equal_columns: bool = True) -> Table:
    """Tokens of a file; raises the errors of `parse_table`."""
    return parse_table(file, read_lines(file), separator=separator, equal_columns=equal_columns)


def parse_table(
    file: Path | str, lines: list[str], *, separator: str | None = None, equal_columns: bool = True
) -> Table:
    """Tokens of the lines of `file`; DataError names file and line.

    Without a `separator` tabs separate columns if a line has one, and blanks otherwise. With `equal_columns`, a token whose
    number of columns differs from the first one's is an error. Without, only tabs separate columns. Lines of SVM-HMM then
    become columns of tag and ``index:value``, and another qid begins a sequence.
    """
    separator = separator or ("\t" if not equal_columns or any("\t" in text for text in lines) else " ")
    svm_hmm = not equal_columns and all(map(SVM_HMM.match, lines))
    rows: list[list[str]] = []
    line: list[int] = []
    start, query = [0], ""
    for number, text in enumerate(lines, 1):
        if svm_hmm:
            row = words_of(text.partition("#")[0])
            if not row:
                continue
            if row[1] != query:
                start.append(len(rows))
            query = row.pop(1)
        else:
            row = cells(text, separator) if equal_columns else text.split(separator)
        if not any(cell.strip(BLANKS) for cell in row):
            start.append(len(rows))
            continue
        if equal_columns and rows and len(row) != len(rows[0]):
            by = "; a line has a tab, so only tabs separate columns" if separator == "\t" else ""
            raise DataError(f"{file}: line {number}: {len(row)} columns, but {len(rows[0])} on line {line[0]}{by}")
        rows.append(row)
        line.append(number)
    if not rows:
        raise DataError(f"{file}: holds no tokens")
    return Table(((0, file),), rows, np.unique([*start, len(rows)]).astype(np.int64), np.array(line), separator)


def joined(tables: Sequence[Table]) -> Table:
    """The sequences of several files as one table; `where` still names the file of a token."""
    sizes = [len(table.rows) for table in tables]
    first = np.concatenate([[0], np.cumsum(sizes)]).tolist()
    return Table(
        tuple(
            (edge + offset, file) for table, offset in zip(tables, first, strict=False) for edge, file in table.files
        ),
        [row for table in tables for row in table.rows],
        np.concatenate([[0], *(table.start[1:] + offset for table, offset in zip(tables, first, strict=False))]),
        np.concatenate([table.line for table in tables]),
        min(table.separator for table in tables),  # a tab, if one has tabs
    )


def new_table(raw: Raw, *, separator: str | None = None, equal_columns: bool = True) -> Table:
    """Tokens of new input: a table, the text of a file, or a list of sequences, each a text or a list of rows of strings.

    Errors call it "input" and count lines as if each row were one line, with an empty line after each sequence.
    """
    if isinstance(raw, Table):
        return raw
    if isinstance(raw, str):
        return parse_table("input", lines_of(raw), separator=separator, equal_columns=equal_columns)
    if raw and all(isinstance(sequence, str) for sequence in raw):
        tables = [
            parse_table(f"input: sequence {i}", lines_of(text), separator=separator, equal_columns=equal_columns)
            for i, text in enumerate(raw)
        ]
        for table in tables:
            if table.start.size > 2:
                raise DataError(f"{table.where(int(table.start[1]))}: a second sequence begins; give each its own text")
        return joined(tables)
    if not all(_is_list(sequence) and all(map(_is_row, sequence)) for sequence in raw):
        raise DataError("input: expected the text of a file, or a list of sequences, each a list of rows of strings")
    sizes = np.array([len(sequence) for sequence in raw], dtype=np.int64)
    if not sizes.size or not sizes.all():
        where = f"sequence {int(np.argmin(sizes))} has no tokens" if sizes.size else "holds no sequences"
        raise DataError(f"input: {where}")
    lines: list[str] = []
    for row in (row for sequence in raw for row in (*sequence, ())):
        blank = not any(value.strip(BLANKS) for value in row)
        if (row and blank) or any(set(value) & {"\t", "\n"} for value in row):
            raise DataError(f"input: line {len(lines) + 1}: {row!r}: expected text without tabs and line breaks")
        lines.append("\t".join(row))
    table = parse_table("input", lines, separator="\t", equal_columns=equal_columns)
    tabs = separator or not equal_columns or any(not value or " " in value for row in table.rows for value in row)
    return replace(table, separator="\t" if tabs else " ")


def _is_list(value: object) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _is_row(row: object) -> bool:
    if not isinstance(row, Sequence) or isinstance(row, str) or not row:
        return False
    return all(isinstance(value, str) for value in row)
