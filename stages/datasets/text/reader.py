"""Readers of tagged text: new sequences from files; lines of the input with the predicted label as one more column."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from gapwise.records import Facts, Record
from gapwise.stages.datasets import DataError, NewInput, Predicted, Reader, Shown
from gapwise.stages.datasets.common.files import expanded
from gapwise.stages.datasets.text.sequences import text_encoder
from gapwise.stages.datasets.text.tables import Table, joined, parse_table, read_table
from gapwise.stages.datasets.text.templates import columns_of

if TYPE_CHECKING:
    from gapwise.stages.datasets.text.sequences import ColumnEncoder, TextEncoder


class TextReader(Reader):
    """A reader of columns or of CRFsuite's lines."""

    structure = "chain"

    @classmethod
    def encoder(cls, meta: Facts, shared: Mapping[str, np.ndarray]) -> TextEncoder | ColumnEncoder:
        return text_encoder(meta, shared)

    @classmethod
    def read_new(cls, inputs: Sequence[str], meta: Facts) -> NewInput:
        """Sequences of files in the form of the training file, with its label column or without.

        Patterns such as ``new-*.txt`` and ``/dev/stdin`` are files, too.
        """
        return NewInput(joined([_checked(read_table(file, **_form(meta)), meta) for file in expanded(inputs)]))

    @classmethod
    def truth(cls, new: NewInput, meta: Facts) -> list[str]:
        """The labels of new sequences, flat; DataError names the first line that has none."""
        table: Table = new.raw
        width = meta["text"].get("columns")
        for token, row in enumerate(table.rows if width is not None else ()):
            if len(row) != width + 1:
                raise DataError(f"{table.where(token)}: {len(row)} columns; expected {width} and then the label")
        return table.labels(0 if width is None else width)

    @classmethod
    def stored_input(cls, arrays: Mapping[str, np.ndarray], meta: Facts) -> NewInput | None:
        """The text of a test split, with its labels; None in stores made before text was kept."""
        if "text" not in arrays:
            return None
        lines = np.asarray(arrays["text"]).tobytes().decode().split("\n")
        table = parse_table("test", lines, **_form(meta))
        first = table.rows[: int(table.start[1])]
        width = meta["text"].get("columns")  # of CRFsuite's lines None: the label comes first, and stays
        return NewInput(table, example="\n".join(table.separator.join(row[:width]) for row in first))

    @classmethod
    def show(cls, new: NewInput, predicted: Predicted) -> Shown:
        """Tagged text, which conlleval reads if the input has its labels."""
        table: Table = new.raw
        return Shown(table.text([predicted.names[label] for label in predicted.labels.tolist()]), ".txt")


def _form(meta: Facts) -> Record:
    """How a file of these data is read."""
    return {"separator": meta["text"].get("separator"), "equal_columns": meta["text"]["templates"] is not None}


def _checked(table: Table, meta: Facts) -> Table:
    """The table if it has the columns of the training data; DataError names its file."""
    if meta["text"]["templates"] is not None:
        columns_of(table, meta["text"]["columns"])
    return table
