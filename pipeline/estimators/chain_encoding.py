"""How sequences become blocks of the structure `chain`: learned from training sequences, applied to new ones."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from gapwise.pipeline.estimators.data import Data, Samples, listed
from gapwise.pipeline.estimators.portable import stored_labels
from gapwise.pipeline.estimators.sequences import sorted_labels
from gapwise.pipeline.estimators.token_losses import TokenLosses
from gapwise.records import Record
from gapwise.stages.datasets import Blocks, Known, tell_known
from gapwise.stages.datasets.arrays.rows import Label
from gapwise.stages.datasets.text.attributes import rows_of_attributes
from gapwise.stages.datasets.text.sequences import label_type, write_blocks, write_matrix
from gapwise.stages.datasets.text.tokens import (
    ATTRIBUTES,
    COLUMNS,
    Tokens,
    has_columns,
    lengths_of,
    matrix_of,
    prefers_matrix,
    rows_of_columns,
    sequences_of,
)
from gapwise.stages.datasets.text.vocabulary import Rows, number_rows, put_vocabulary
from gapwise.stages.problems import build
from gapwise.stages.problems.chain.metrics import encode_names
from gapwise.stages.problems.losses import BLOCK_WEIGHT
from gapwise.stages.problems.protocol import Problem

CHAIN = "chain"


class ChainEncoding(NamedTuple):
    """What was learned from training sequences."""

    classes: list[Label]
    """Labels, sorted."""
    vocabulary: dict[str, int] | None
    """Number of each attribute; None for arrays."""
    width: int
    """Attributes, or columns of arrays."""
    dense: bool
    """Whether tokens are rows of a matrix."""
    tables: dict[str, np.ndarray]
    """Costs and constraints over `classes`."""
    facts: Record
    """Of the loss."""

    @property
    def meta(self) -> Record:
        """Of the problem."""
        dense = {"dense": True} if self.dense else {}
        return {"classes": len(self.classes), "attributes": self.width + 3, **dense, **self.facts}

    @property
    def numbers(self) -> dict[object, int]:
        """Number of each label."""
        return {label: k for k, label in enumerate(self.classes)}

    def put(self, sink: Blocks, train: Data, held: Data | None, rows: Rows | np.ndarray) -> None:
        """Write the training data, of these rows, and others as the split "test"."""
        for name, table in self.tables.items():
            sink.put("", name, table)
        sink.put("", "label_names", encode_names(names_of_all(self.classes)))
        self.write(sink, "train", train.y, rows)
        if held is not None:
            self.write(sink, "test", held.y, self.rows(held.x)[0])
            sink.put("test", "decode_only", np.ones(1, np.uint8))
        for split, data in (("train", train), ("test", held)):
            if data is not None and data.relative is not None:
                sink.put(split, BLOCK_WEIGHT, data.relative)

    def write(self, sink: Blocks, split: str, y: Sequence[Sequence[object]], rows: Rows | np.ndarray) -> None:
        """Write sequences of these labels and rows; labels without a number get the one after the last."""
        number, unknown = self.numbers, len(self.classes)
        start = np.cumsum([0, *(len(labels) for labels in y)], dtype=np.int64)
        flat = np.array([number.get(label, unknown) for labels in y for label in labels], label_type(unknown + 1))
        if isinstance(rows, np.ndarray):
            write_matrix(sink, lambda *_: None, split, start, flat, rows, train=split != "new")
        else:
            write_blocks(sink, lambda *_: None, split, start, flat, rows, self.width + 3)

    def rows(self, X: Sequence[Tokens]) -> tuple[Rows | np.ndarray, Known | None]:
        """Rows of new sequences without attributes that did not occur in training, and how many did; None for arrays."""
        if has_columns(X) is not (self.vocabulary is None):
            wanted = "arrays" if self.vocabulary is None else "dicts or lists of attributes"
            raise ValueError(f"X: expected tokens as in training, {wanted}")
        if self.vocabulary is None:
            return matrix_of(X, self.width) if self.dense else rows_of_columns(X, self.width)[0], None
        vocabulary = self.vocabulary
        return rows_of_attributes(X, lambda name: vocabulary.get(name, -1))

    def problem(self, X: Samples) -> tuple[Problem | None, list[tuple[int, int]]]:
        """The problem over new sequences, None if all are empty; and the first token of each, and the end."""
        sequences = sequences_of(listed("X", X, "sequences"))
        lengths = lengths_of(sequences)
        edges = [*pairwise(np.cumsum([0, *lengths.tolist()]).tolist())]
        full = [sequences[i] for i in np.flatnonzero(lengths)]
        if not full:
            return None, edges
        sink = Blocks(CHAIN, self.tables, decoding=True)
        rows, known = self.rows(full)
        tell_known(known)
        self.write(sink, "new", [[self.classes[0]] * k for k in lengths[lengths > 0]], rows)
        return build(CHAIN, sink.arrays("new"), self.meta), edges

    @property
    def portable(self) -> tuple[Record, dict[str, np.ndarray]]:
        """Facts and shared arrays of a feature store with this feature map."""
        sink = Blocks(CHAIN, {"label_names": encode_names([*map(str, self.classes)]), **self.tables})
        text: Record = {
            "templates": None,
            "valued": True,
            "tokens": COLUMNS if self.vocabulary is None else ATTRIBUTES,
        }
        if self.vocabulary is not None:
            put_vocabulary(sink, list(self.vocabulary))
        facts = {"dataset": "sequences_csv", "structure": CHAIN, "label_names": stored_labels(self.classes)}
        return {**facts, **self.meta, "test_only_labels": [], "text": text}, sink.whole[""]


def learned(train: Data, losses: TokenLosses, min_count: int) -> tuple[ChainEncoding, Rows | np.ndarray]:
    """The encoding of training sequences, and their rows. Attributes that occur less than `min_count` times are left out."""
    flat = [label for labels in train.y for label in labels]
    classes = sorted_labels(set(flat))
    if len(classes) < 2:
        raise ValueError(f"y: expected at least two labels, got one only: {classes[0]!r}")
    rows: Rows | np.ndarray
    vocabulary, dense = None, has_columns(train.x) and prefers_matrix(train.x)
    if dense:
        rows = matrix_of(train.x, None)
        width = rows.shape[1]
    elif has_columns(train.x):
        rows, width = rows_of_columns(train.x, None)
    else:
        ids: dict[str, int] = {}
        rows, _ = rows_of_attributes(train.x, lambda name: ids.setdefault(name, len(ids)))
        rows, _, order = number_rows(rows.ids, rows.counts, rows.counts.size, min_count, rows.values)
        names = list(ids)
        vocabulary = {names[k]: number for number, k in enumerate(order.tolist())}
        width = len(vocabulary)
    lengths = np.array([len(labels) for labels in train.y])
    number = {label: k for k, label in enumerate(classes)}
    each = np.ones(lengths.size) if train.relative is None else train.relative
    counts = np.bincount([number[label] for label in flat], weights=np.repeat(each, lengths))
    facts = losses.facts(counts, lengths.size)
    tables = losses.arrays(np.flatnonzero([name in number for name in losses.names]))
    return ChainEncoding(classes, vocabulary, width, dense, tables, facts), rows


def names_of_all(classes: Sequence[Label]) -> list[str]:
    """The names of labels, and at the end one for all labels that training lacks: of chunks, a chunk of its own type."""
    names = [str(name) for name in classes]
    return [*names, "B-" if "O" in names else ""]
