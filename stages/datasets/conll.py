"""CoNLL-2000 text chunking with the feature map of O16: 74,658 attributes, 22 labels, d = 1,643,026.

Options: ``root``, a folder with the publisher's ``train.txt`` and ``test.txt`` (or ``.gz``), each line a word, its part of
speech and chunk label; ``min_count`` (3), how often a value must occur in training to be an attribute. Words are
lower-cased; one symbol stands for everything before a sentence and one for everything after. Attributes that do not occur
in training are dropped from test; a label that occurs in test only is never predicted, so it counts as an error there.
``loss`` (``per_sequence``), ``label_weights``, ``costs`` and ``constraints``: see `text.task`.

New input for `encoder`: sentences of words and parts of speech, as `text.sequences.TextEncoder` describes.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from gapwise.records import Record
from gapwise.stages.datasets import DataError, MapBlocks, Report, Sink
from gapwise.stages.datasets.common.files import one_of_files
from gapwise.stages.datasets.common.options import Values, Whole
from gapwise.stages.datasets.text.sequences import TextReader, write_columns, write_specimen
from gapwise.stages.datasets.text.tables import Table, read_table
from gapwise.stages.datasets.text.task import OPTIONS, Task
from gapwise.stages.datasets.text.templates import Template

WORD, TAG = 0, 1
WINDOWS = {
    WORD: ((-2,), (-1,), (0,), (1,), (2,), (-1, 0), (0, 1)),
    TAG: ((-2,), (-1,), (0,), (1,), (2,), (-2, -1), (-1, 0), (0, 1), (1, 2), (-2, -1, 0), (-1, 0, 1), (0, 1, 2)),
}
TEMPLATES = [
    Template(f"U{column}{offsets}", tuple((offset, column) for offset in offsets))
    for column, windows in WINDOWS.items()
    for offsets in windows
]
"""The 19 templates."""
CHUNK_LABELS, MANY_ATTRIBUTES = 22, 1000
"""Sizes of a specimen: the labels of the task, and more attributes than one byte can number."""


@dataclass(frozen=True)
class Conll(TextReader):
    """The chunking task."""

    root: Annotated[Path, Values("the folder that holds train.txt and test.txt (or .gz)")]
    task: Task
    min_count: Whole = 3
    where = ("root", *OPTIONS)

    def __post_init__(self) -> None:
        self.files()

    def files(self) -> dict[str, Path]:
        files = {name: one_of_files(self.root, f"{name}.txt.gz", f"{name}.txt") for name in ("train", "test")}
        return {**files, **self.task.files()}

    def source(self) -> Record:
        return self.task.source()

    def featurize(self, sink: Sink, map_blocks: MapBlocks, report: Report) -> Record:
        files = self.files()
        train, test = read(files["train"]), read(files["test"])
        form: Record = {"lower": [WORD], "one_pad": True, "unseen": "count"}
        return write_columns(sink, report, train, test, TEMPLATES, min_count=self.min_count, task=self.task, **form)

    def specimen(self, sink: Sink) -> Record:
        return write_specimen(sink, CHUNK_LABELS, MANY_ATTRIBUTES)


def read(file: Path) -> Table:
    """Tokens of one file; DataError names the line unless they are word, part of speech and chunk label."""
    table = read_table(file)
    if len(table.rows[0]) != 3:
        raise DataError(
            f"{table.where(0)}: {len(table.rows[0])} columns, expected 3 (word, part of speech, chunk label) "
            "separated by blanks or tabs"
        )
    return table
