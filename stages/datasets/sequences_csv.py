"""A user's own sequences: columns with a CRF++ template file, or CRFsuite's attribute lines.

Options: ``file`` and ``test_file``, one token per line and an empty line after each sequence, each option a file, a pattern
such as ``train-*.txt`` or a list of both; in UTF-8, gzipped if the name ends in .gz. ``template``, a CRF++ template file:
then tokens are columns, the label last, separated by tabs if a line of the file has one, and by blanks otherwise
(``U01:%x[-1,0]/%x[0,1]`` looks at column 0 of the previous token and column 1 of this one; a ``B`` stands for the
transitions, which are always there; a ``B`` with ``%x`` is refused). Without ``template`` the lines are CRFsuite's, see
`text.attributes`, or SVM-HMM's (``tag qid:sequence index:value ... # word``), which are read and predicted as if they were
CRFsuite's.
``min_count`` (1): attributes that occur less often in training are dropped, as are those that occur in test only.
``unseen_labels``: a label that never occurs in training is an ``error`` (default), or is ``count``-ed as a wrong prediction.
With ``validation: file``, ``validation_file`` is a third file of the same form; nothing is learnt from it but lambda.
``loss`` (``per_token``), ``label_weights``, ``costs`` and ``constraints``: see `text.task`.

New input for `encoder`: sequences in the form of the training file, as `text.sequences.TextEncoder` describes.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar

from gapwise.records import Record
from gapwise.stages.datasets import DataError, MapBlocks, OptionError, Report, Sink
from gapwise.stages.datasets.common.files import existing, expanded, read_lines
from gapwise.stages.datasets.common.options import Whole, one_of
from gapwise.stages.datasets.text.attributes import number_attributes
from gapwise.stages.datasets.text.sequences import (
    TextReader,
    separator_of,
    write_columns,
    write_splits,
)
from gapwise.stages.datasets.text.tables import BLANKS, Table, joined, read_table
from gapwise.stages.datasets.text.task import OPTIONS, TokenTask
from gapwise.stages.datasets.text.templates import Template

MACRO = re.compile(r"%x\[(-?\d+),(\d+)\]")


@dataclass(frozen=True)
class Sequences(TextReader):
    """A user's own sequences; `paths` checks the three options of files."""

    task: TokenTask
    file: object = None
    test_file: object = None
    validation: Annotated[str, one_of("file")] | None = None
    validation_file: object = None
    template: Path | None = None
    min_count: Whole = 1
    unseen_labels: Annotated[str, one_of("error", "count")] = "error"
    where = ("file", "test_file", "template", "validation_file", *OPTIONS)
    validations: ClassVar = {"file": ("validation_file",)}

    def __post_init__(self) -> None:
        if self.template is not None:
            existing(self.template, "dataset.template")
        self.files()

    @functools.cached_property
    def paths(self) -> dict[str, tuple[Path, ...]]:
        """The files of each split."""
        options = {"train": "file", "test": "test_file"} | (
            {"validation": "validation_file"} if self.validation else {}
        )
        return {split: _files(option, getattr(self, option)) for split, option in options.items()}

    def files(self) -> dict[str, Path]:
        files = {} if self.template is None else {"template": self.template}
        for name, part in self.paths.items():
            files |= {name if len(part) == 1 else f"{name} {k} of {len(part)}": file for k, file in enumerate(part, 1)}
        return files | self.task.files()

    def source(self) -> Record:
        return self.task.source()

    def featurize(self, sink: Sink, map_blocks: MapBlocks, report: Report) -> Record:
        columns: Record = {"equal_columns": self.template is not None}
        parts = {"train": [read_table(file, **columns) for file in self.paths["train"]]}
        train = joined(parts["train"])
        columns |= {} if self.template is None else separator_of(train)
        for split in self.paths.keys() - {"train"}:
            parts[split] = [read_table(file, **columns) for file in self.paths[split]]
        others = {split: joined(parts[split]) for split in self.paths if split != "train"}
        after, sizes = joined([*others.values()]), {split: table.start.size - 1 for split, table in others.items()}
        given: Record = {"unseen": self.unseen_labels, "task": self.task, "splits": sizes}
        if self.template is None:
            labels = train.labels(0), after.labels(0)
            attributes = number_attributes(train, after, self.min_count)
            facts = write_splits(sink, report, train, after, labels, attributes, **given)
            valued = attributes.train.values is not None  # values other than 1
            return {**facts, "text": {"templates": None, "valued": valued, "min_count": self.min_count}}
        width = same_width([table for split in self.paths for table in parts[split]])
        templates = read_template(self.template, width - 1)
        form: Record = {"lower": [], "one_pad": False, "min_count": self.min_count}
        return write_columns(sink, report, train, after, templates, **form, **given)


def same_width(tables: Sequence[Table]) -> int:
    """Number of columns of all files; DataError if they differ, or if the label is the only column."""
    first = tables[0]
    width = len(first.rows[0])
    if width < 2:
        raise DataError(
            f"{first.where(0)}: one column only; expected features and then the label, separated by blanks or tabs"
        )
    for other in tables[1:]:
        if len(other.rows[0]) != width:
            raise DataError(f"{other.where(0)}: {len(other.rows[0])} columns, but {width} in {first.source}")
    return width


def read_template(file: Path, columns: int) -> list[Template]:
    """The templates of a CRF++ template file over `columns` feature columns; DataError names the line."""
    templates: list[Template] = []
    for number, line in enumerate(read_lines(file), 1):
        text = line.strip(BLANKS)
        macros = tuple((int(offset), int(column)) for offset, column in MACRO.findall(text))
        if not text or text[0] == "#" or (text[0] == "B" and "%" not in text):
            continue
        where = f"{file}: line {number}: {text!r}"
        if text[0] == "B":
            raise DataError(
                f"{where}: the weights of pairs of labels do not depend on the text; begin this line with U, for weights of "
                "single labels, and keep a line B"
            )
        if text[0] != "U" or "%" in MACRO.sub("", text):
            raise DataError(f"{where}: expected U<name>:%x[row,column]..., B, or a comment starting with #")
        for _, column in macros:
            if column >= columns:
                raise DataError(f"{where}: there is no column {column}; feature columns are 0..{columns - 1}")
        templates.append(Template(MACRO.sub("%x", text), macros))
    if not templates:
        raise DataError(f"{file}: no U template")
    return templates


def _files(name: str, given: object) -> tuple[Path, ...]:
    """The files of an option: a file, a pattern, or a list of both; OptionError or DataError names the option."""
    several: list[object] = [*given] if isinstance(given, list | tuple) else [given]
    words = [word for word in several if isinstance(word, str | Path) and str(word)]
    if not words or len(words) < len(several):
        raise OptionError(f"dataset.{name}: missing; give a file of sequences, one token per line, a pattern or a list")
    try:
        files = expanded(words)
    except DataError as error:
        raise DataError(f"dataset.{name}: {error}") from error
    seen: dict[Path, Path] = {}
    for file in files:
        other = seen.setdefault(existing(file, f"dataset.{name}").resolve(), file)
        if other is not file:
            raise DataError(f"dataset.{name}: {other} is named twice, also as {file}; name each file once")
    return tuple(files)
