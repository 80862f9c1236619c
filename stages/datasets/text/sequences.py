"""Readers of tagged text: blocks of the chain structure for all splits and new input, and lines with predicted labels."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from gapwise.records import Facts, Record
from gapwise.stages.datasets import (
    NEW,
    DataError,
    Known,
    MapBlocks,
    NewInput,
    Predicted,
    Raw,
    Reader,
    Report,
    Shown,
    Sink,
)
from gapwise.stages.datasets.common.files import expanded
from gapwise.stages.datasets.text.attributes import rows_of_attributes, rows_of_lines
from gapwise.stages.datasets.text.tables import Table, joined, new_table, parse_table, read_table
from gapwise.stages.datasets.text.task import Task
from gapwise.stages.datasets.text.templates import Template, columns_of, expand, rows_by_name
from gapwise.stages.datasets.text.tokens import (
    ATTRIBUTES,
    COLUMNS,
    Tokens,
    has_dicts,
    lengths_of,
    matrix_of,
    rows_of_columns,
    sequences_of,
)
from gapwise.stages.datasets.text.vocabulary import Attributes, Rows, put_vocabulary, read_vocabulary


def write_splits(sink: Sink, report: Report, train: Table, test: Table, labels: tuple[list[str], list[str]],
                 attributes: Attributes, *, unseen: str, task: Task, splits: Mapping[str, int] | None = None,
                 ) -> Record:  # fmt: skip
    """Write all splits, the vocabulary and the text of the test split into `sink`; returns the meta of a chain problem.

    DataError names file, line, sequence and token, both from 0, of a label that breaks the constraints of `task`.

    `splits` says how many sequences of `test` belong to which split, in their order; None: all to "test". Labels are
    numbered by name; those that do not occur in training come after the others, are never predicted and always count as
    errors. With ``unseen="error"`` such a label raises DataError with its line instead.
    """
    from gapwise.stages.problems.chain.features import BIASES
    from gapwise.stages.problems.chain.metrics import encode_names

    known = sorted(set(labels[0]))
    late = sorted(set(labels[1]) - set(known))
    if late and unseen == "error":
        token = next(t for t, name in enumerate(labels[1]) if name in late)
        raise DataError(
            f"{test.where(token)}: label {labels[1][token]!r} never occurs in {train.source}; train on it, or count it as "
            "an error with dataset.unseen_labels=count"
        )
    number = {name: k for k, name in enumerate(known + late)}
    dtype = label_type(len(number))
    total = len(attributes.names) + len(BIASES)
    sink.put("", "label_names", encode_names(known + late))
    put_vocabulary(sink, attributes.names)
    sizes = {"test": test.start.size - 1} if splits is None else dict(splits)
    for split in sizes if late else ():
        sink.put(split, "decode_only", np.ones(1, dtype=np.uint8))
    truths = [np.array([number[name] for name in names], dtype=dtype) for names in labels]
    for table, truth in zip((train, test), truths, strict=True):
        task.check(known + late, len(known), truth, table.start, table.where_token)
    facts = task.write(sink, known, truths[0])
    write_blocks(sink, report, "train", train.start, truths[0], attributes.train, total)
    last = 0
    for split, size in sizes.items():
        start = test.start[last : last + size + 1]
        a, b = int(start[0]), int(start[-1])
        write_blocks(sink, report, split, start - a, truths[1][a:b], attributes.test.of_tokens(a, b), total)
        if split == "test":
            sink.put(split, "text", np.frombuffer(test.part(last, last + size).text().encode(), np.uint8))
        last += size
    return {
        "classes": len(known),
        "attributes": total,
        "d": total * len(known) + len(known) ** 2,
        "n_train": train.start.size - 1,
        **{f"n_{split}": size for split, size in sizes.items()},
        "label_names": known,
        "test_only_labels": late,
        **facts,
    }


def write_columns(sink: Sink, report: Report, train: Table, test: Table, templates: list[Template], *, lower: list[int],
                  one_pad: bool, min_count: int, unseen: str, task: Task, splits: Mapping[str, int] | None = None,
                  ) -> Record:  # fmt: skip
    """`write_splits` of columns, the label last, with the attributes of templates; columns in `lower` are lower-cased.

    Attributes that occur less than `min_count` times in training are left out.
    """
    rows, width = train.rows + test.rows, len(train.rows[0]) - 1
    columns = [[row[k].lower() if k in lower else row[k] for row in rows] for k in range(width)]
    attributes = expand(train, test, columns, templates, min_count=min_count, one_pad=one_pad)
    labels = train.labels(width), test.labels(width)
    facts = write_splits(sink, report, train, test, labels, attributes, unseen=unseen, task=task, splits=splits)
    lines = [[template.skeleton, template.macros] for template in templates]
    text = {"templates": lines, "columns": width, "lower": lower, "one_pad": one_pad, **separator_of(train)}
    return {**facts, "text": {**text, "min_count": min_count}}


PIECE = 10_000
"""Most sequences whose biases are added at a time."""
PIECE_ENTRIES = 1 << 21
"""About as many entries of their rows, on average: a token of an embedding has hundreds, and adding needs several copies."""


def label_type(labels: int) -> type[np.uint8] | type[np.int16]:
    """Integer type of labellings with this number of labels."""
    return np.uint8 if labels <= 256 else np.int16


def write_blocks(sink: Sink, report: Report, split: str, start: np.ndarray, labels: np.ndarray, rows: Rows,
                 attributes: int) -> None:  # fmt: skip
    """Write sequences start[i]:start[i + 1] into `split`, one block each; the biases are the last of the `attributes`."""
    edges = rows.edges(start)

    def part(first: int, last: int) -> Rows:
        return rows.of_tokens(*start[[first, last]].tolist(), *edges[[first, last]].tolist())

    piece = max(1, PIECE_ENTRIES * (start.size - 1) // max(int(edges[-1]), 1))
    write_parts(sink, report, split, start, labels, part, attributes, min(piece, PIECE))


def write_parts(sink: Sink, report: Report, split: str, start: np.ndarray, labels: np.ndarray,
                rows_of: Callable[[int, int], Rows], attributes: int, piece: int = PIECE) -> None:  # fmt: skip
    """`write_blocks` where `rows_of(first, last)` makes the rows of sequences first:last, `piece` of them at a time."""
    from gapwise.stages.problems.chain.features import with_biases

    total = start.size - 1
    for first in range(0, max(total, 1), piece):
        last = min(first + piece, total)
        rows, local = rows_of(first, last), start[first : last + 1] - start[first]
        flat = with_biases(rows.ids, rows.counts, local, attributes, rows.values)
        edge = np.concatenate([[0], np.cumsum(flat["counts"], dtype=np.int64)])[local]
        for i, (a, b) in enumerate(pairwise(start[first : last + 1].tolist())):
            if (first + i) % 500 == 0:
                report(first + i, total, f"{split} sequences")
            entries = {name: flat[name][edge[i] : edge[i + 1]] for name in ("ids", "values") if name in flat}
            sink.append(split, labels=labels[a:b], counts=flat["counts"][local[i] : local[i + 1]], **entries)
    report(total, total, f"{split} sequences")


def write_matrix(
    sink: Sink, report: Report, split: str, start: np.ndarray, labels: np.ndarray, matrix: np.ndarray, *, train: bool
) -> None:
    """Write sequences start[i]:start[i + 1] of the rows of `matrix` into `split`, one block each.

    The matrix stays one array, which parts of the blocks share. Blocks that are only decoded (not `train`) need no inner
    products.
    """
    from gapwise.stages.problems.chain.dense import grams

    sink.put(split, "values", matrix)
    lengths, total = np.diff(start), start.size - 1
    products = grams(matrix, start[:-1], lengths) if train else None
    for i, (a, b) in enumerate(zip(start[:-1].tolist(), start[1:].tolist(), strict=True)):
        if i % 500 == 0:
            report(i, total, f"{split} sequences")
        more = {} if products is None else {"gram": next(products)}
        sink.append(split, labels=labels[a:b], first=np.array([a]), **more)
    report(total, total, f"{split} sequences")


def write_specimen(sink: Sink, labels: int, attributes: int) -> Record:
    """Write two short training sequences; `labels` and `attributes`, biases not counted, decide the types of the arrays."""
    from gapwise.stages.problems.chain.features import BIASES

    total = attributes + len(BIASES)
    truth = np.array([0, 1, 1, 0, 1], label_type(labels))
    rows = Rows(np.ones(5, np.int64), np.array([0, 1, 1, 0, 2]))
    write_blocks(sink, lambda *_: None, "train", np.array([0, 2, 5]), truth, rows, total)
    return {"classes": labels, "attributes": total, "d": total * labels + labels**2}


def separator_of(train: Table) -> Record:
    """What separates columns in all files, where it cannot be told from each: a lone column needs no tab, and has blanks."""
    return {"separator": train.separator} if len(train.rows[0]) == 2 and train.separator == "\t" else {}


@dataclass(frozen=True)
class TextEncoder:
    """Blocks of new sequences, from the vocabulary and the facts under ``text`` of a feature store."""

    attributes: int
    labels: int
    """Label names, including those that occurred in test only."""
    facts: Facts
    numbers: Mapping[str, int]

    def encode(self, raw: Raw, sink: Sink, map_blocks: MapBlocks) -> Known:
        """Sequences as the text of a file, or as lists of rows of strings, in the form of the training file.

        With templates: the feature columns, optionally followed by a label, which is ignored. CRFsuite's lines: a label,
        which may be empty and is ignored, then attributes; or sequences of dicts of attributes, as in `text.tokens`. A model
        of `ChainSVM` takes what that was trained on, dicts or lists of attributes, and the text of CRFsuite's lines.
        """
        if self._lists_attributes(raw):
            start, sequences = starts(raw)
            rows, known = rows_of_attributes(sequences, lambda name: self.numbers.get(name, -1))
        elif self.facts["templates"] is None:
            table = new_table(raw, equal_columns=False)
            start = table.start
            rows, known = rows_of_lines(table, lambda name: self.numbers.get(name, -1))
        else:
            table = new_table(raw, separator=self.facts.get("separator"))
            columns = columns_of(table, self.facts["columns"])
            for column in self.facts["lower"]:
                columns[column] = [value.lower() for value in columns[column]]
            templates = [Template(text, tuple((o, c) for o, c in macros)) for text, macros in self.facts["templates"]]
            start = table.start
            rows = rows_by_name(columns, start, templates, self.numbers, one_pad=self.facts["one_pad"])
            known = Known(int(rows.ids.size), int(start[-1]) * len(templates))
        valued = rows.values is not None or self.facts.get(
            "valued", False
        )  # with values where the training data have them
        values = np.ones(rows.ids.size) if rows.values is None else rows.values
        rows = rows._replace(values=values.astype(np.float32) if valued else None)
        unknown = np.zeros(int(start[-1]), dtype=label_type(self.labels))
        write_blocks(sink, lambda *_: None, NEW, start, unknown, rows, self.attributes)
        return known

    def _lists_attributes(self, raw: Raw) -> bool:
        """Whether tokens list attributes, and are no rows of a file."""
        if self.facts["templates"] is not None or isinstance(raw, str | Table) or all(isinstance(s, str) for s in raw):
            return False
        return self.facts.get("tokens") == ATTRIBUTES or has_dicts(raw)


@dataclass(frozen=True)
class ColumnEncoder:
    """Blocks of new sequences of numbers, for a model of `ChainSVM` that was trained on arrays."""

    attributes: int
    labels: int
    dense: bool
    """Whether tokens are rows of a matrix (`chain.dense`), and no sparse rows."""

    def encode(self, raw: Raw, sink: Sink, map_blocks: MapBlocks) -> None:
        """Sequences as arrays or sparse matrices (tokens, p)."""
        if isinstance(raw, str | Table):
            raise DataError(
                "input: this model was trained on arrays of numbers, which text files do not have; predict in Python: "
                "gapwise.load_model(folder).predict(X)"
            )
        from gapwise.stages.problems.chain.features import BIASES

        start, sequences = starts(raw)
        width, unknown = self.attributes - len(BIASES), np.zeros(int(start[-1]), dtype=label_type(self.labels))
        if self.dense:
            write_matrix(sink, lambda *_: None, NEW, start, unknown, matrix_of(sequences, width), train=False)
            return
        rows, _ = rows_of_columns(sequences, width)
        write_blocks(sink, lambda *_: None, NEW, start, unknown, rows, self.attributes)


def starts(raw: Raw) -> tuple[np.ndarray, list[Tokens]]:
    """First token of each sequence, and the end; and the sequences. DataError if one has no tokens."""
    sequences = sequences_of(raw)
    lengths = lengths_of(sequences)
    if not lengths.size or not lengths.all():
        where = f"sequence {int(np.argmin(lengths))} has no tokens" if lengths.size else "holds no sequences"
        raise DataError(f"input: {where}")
    return np.cumsum(np.append(0, lengths)), sequences


def text_encoder(meta: Facts, shared: Mapping[str, np.ndarray]) -> TextEncoder | ColumnEncoder:
    """The encoder of a feature store made by `write_splits`, or of a model of `ChainSVM`."""
    sizes = int(meta["attributes"]), len(shared["label_names"])
    if meta["text"].get("tokens") == COLUMNS:
        return ColumnEncoder(*sizes, dense=bool(meta.get("dense", False)))
    return TextEncoder(*sizes, meta["text"], read_vocabulary(shared))


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
