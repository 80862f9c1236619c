"""Training sequences and their labels as users give them, checked."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from gapwise.pipeline.estimators.data import Data, Samples, listed, pairs
from gapwise.stages.datasets.arrays.rows import Label
from gapwise.stages.datasets.text.tokens import lengths_of, sequences_of

KINDS = (bool, int, str)
"""Types of labels; True is an integer to Python, but not to people."""


def paired(X: Samples, y: Samples) -> Data:
    """Sequences and their labels, as many as there are tokens; ValueError names the sequence."""
    data = pairs(X, y, "sequences")
    sequences = sequences_of(data.x)
    lengths, outputs = lengths_of(sequences), []
    for i, (length, labels) in enumerate(zip(lengths.tolist(), data.y, strict=True)):
        if length == 0:
            raise ValueError(f"X: sequence {i} is empty; leave it out")
        own = _plain(i, labels)
        if len(own) != length:
            raise ValueError(f"y: sequence {i}: expected {length} labels, as X has tokens there, got {len(own)}")
        outputs.append(own)
    return Data(sequences, outputs)


def sorted_labels(labels: set[object]) -> list[Label]:
    """The labels in order; ValueError unless all are strings, all are integers, or all are True or False."""
    kinds = {next((kind for kind in KINDS if isinstance(label, kind)), type(label)) for label in labels}
    if len(kinds) != 1 or not kinds <= {*KINDS}:
        got = " and ".join(sorted(kind.__name__ for kind in kinds))
        raise ValueError(f"y: expected labels that are all strings or all integers, got {got}")
    found: list[Any] = sorted(labels)
    return found


def _plain(i: int, labels: object) -> list[object]:
    """The labels of sequence i as Python's own strings and numbers; a string is the list of its letters."""
    rows = list(labels) if isinstance(labels, str) else listed(f"y: sequence {i}", labels, "labels")
    plain = [label.item() if isinstance(label, np.generic) else label for label in rows]
    for label in plain:
        if isinstance(label, Iterable) and not isinstance(label, str):
            raise ValueError(f"y: sequence {i}: expected strings or integers, got a {type(label).__name__}")
    return plain
