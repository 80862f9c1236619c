"""Training sequences and their labels as users give them, checked."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from gapwise.pipeline.estimators.data import Data, Samples, same_length
from gapwise.stages.datasets.arrays.rows import Label
from gapwise.stages.datasets.text.tokens import lengths_of, sequences_of


def paired(X: Samples, y: Samples) -> Data:
    """Sequences and their labels, as many as there are tokens; ValueError names the sequence."""
    same_length(X, y, "sequences")
    sequences = sequences_of(X)
    lengths, outputs = lengths_of(sequences), []
    for i, (length, labels) in enumerate(zip(lengths.tolist(), y, strict=True)):
        if length == 0:
            raise ValueError(f"X: sequence {i} is empty; leave it out")
        if not isinstance(labels, Collection) or len(labels) != length:
            got = len(labels) if isinstance(labels, Collection) else repr(labels)
            raise ValueError(f"y: sequence {i}: expected {length} labels, as X has tokens there, got {got}")
        outputs.append(_plain(labels))
    return Data(sequences, outputs)


def sorted_labels(labels: set[object]) -> list[Label]:
    """The labels in order; ValueError unless all are strings or all are integers."""
    words = sorted(label for label in labels if isinstance(label, str))
    numbers = sorted(label for label in labels if isinstance(label, int))
    if len(labels) not in (len(words), len(numbers)):
        kinds = sorted({type(label).__name__ for label in labels})
        raise ValueError(f"y: expected labels that are all strings or all integers, got {' and '.join(kinds)}")
    return [*words, *numbers]


def _plain(labels: Collection[object]) -> list[object]:
    """Labels as Python's own strings and numbers."""
    return labels.tolist() if isinstance(labels, np.ndarray) else [_item(label) for label in labels]


def _item(label: object) -> object:
    return label.item() if isinstance(label, np.generic) else label
