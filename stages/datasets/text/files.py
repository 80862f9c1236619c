"""The files that an option or a command names: one, a pattern such as ``train-*.txt``, or a list of both."""

from __future__ import annotations

import glob
from collections.abc import Iterable, Sequence
from pathlib import Path

from gapwise.stages.datasets import DataError
from gapwise.stages.datasets.text.tables import Table, joined, read_table


def expanded(words: Iterable[str | Path]) -> list[Path]:
    """The files that `words` name, in that order; those of a pattern in the order of their names.

    A word that is the name of something there is no pattern. DataError if nothing matches a pattern.
    """
    files: list[Path] = []
    for word in map(str, words):
        is_pattern = glob.has_magic(word) and not Path(word).exists()
        matched = sorted(Path(name) for name in glob.glob(word, recursive=True)) if is_pattern else [Path(word)]
        matched = [file for file in matched if not (is_pattern and file.is_dir())]
        if not matched:
            raise DataError(f"no file matches {word}")
        files += matched
    return files


def refuse_twice(files: Sequence[Path]) -> None:
    """Raise DataError if one file has two names among `files`: its sequences would count twice."""
    seen: dict[Path, Path] = {}
    for file in files:
        other = seen.setdefault(file.resolve(), file)
        if other is not file:
            raise DataError(f"{other} is named twice, also as {file}; name each file once")


def read_tables(files: Sequence[Path], *, separator: str | None = None, equal_columns: bool = True) -> Table:
    """Tokens of several files as one table; DataError names file and line, also where files differ in their columns."""
    tables = [read_table(file, separator=separator, equal_columns=equal_columns) for file in files]
    first = tables[0]
    for other in tables[1:] if equal_columns else ():
        if len(other.rows[0]) != len(first.rows[0]):
            raise DataError(f"{other.where(0)}: {len(other.rows[0])} columns, but {len(first.rows[0])} in {first.file}")
    return joined(tables)
