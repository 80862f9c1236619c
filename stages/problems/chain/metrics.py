"""Task metrics of chains (errors by token and by sequence, chunk F1, confusion), and how label names are stored."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

import numpy as np

from gapwise.stages.problems.confusion import counted
from gapwise.stages.problems.facts import Facts
from gapwise.stages.problems.protocol import Problem


def encode_names(names: list[str]) -> np.ndarray:
    """Label names as uint8 (labels, width), UTF-8 padded with zeros, which any store can keep."""
    raw = np.array([name.encode() for name in names], dtype=bytes)
    return raw.view(np.uint8).reshape(len(names), -1)


def decode_names(array: np.ndarray) -> list[str]:
    """Inverse of `encode_names`."""
    return [bytes(row).rstrip(b"\0").decode() for row in np.asarray(array)]


def metrics(problem: Problem, arrays: Mapping[str, np.ndarray], predictions: np.ndarray) -> dict[str, float]:
    """Share of wrong tokens and of sequences with a wrong token; with IOB label names also chunk precision, recall
    and F1.

    On OCR the first two are the errors by letter and by word. Names come from ``arrays["label_names"]``
    (`encode_names`), including those of labels that occur in a test split only.
    """
    wrong = np.asarray(predictions) != problem.truth
    by_sequence = np.add.reduceat(wrong, problem.label_ptr[:-1]) if problem.n else wrong
    result = {"token_error": float(wrong.mean()), "sequence_error": float((by_sequence > 0).mean())}
    names = decode_names(arrays["label_names"]) if "label_names" in arrays else []
    if "O" in names and all(name == "O" or name[:2] in ("B-", "I-") for name in names):
        result |= chunk_scores(names, problem.label_ptr, problem.truth, predictions)
    return result


def confusion(
    problem: Problem, arrays: Mapping[str, np.ndarray], meta: Facts, predictions: np.ndarray
) -> tuple[list[str], np.ndarray]:
    """Names of labels, those that occur in a test split only included, and tokens (truth, prediction)."""
    labels = max(problem.labels, int(problem.truth.max(initial=0)) + 1)
    names = decode_names(arrays["label_names"]) if "label_names" in arrays else [str(k) for k in range(labels)]
    return names, counted(problem.truth, predictions, len(names))


def chunk_scores(names: list[str], ptr: np.ndarray, truth: np.ndarray, predictions: np.ndarray) -> dict[str, float]:
    """Precision, recall and F1 of whole chunks as conlleval counts them (seqeval's default mode).

    seqeval reads only the sequences with an error: a whole training split would take it seconds, more than solving a
    lambda does. For the other sequences it is enough to count the chunks.
    """
    from seqeval.metrics.sequence_labeling import get_entities

    right = np.add.reduceat(truth != predictions, ptr[:-1]) == 0
    both = int(_begins(names, ptr, truth)[np.repeat(right, np.diff(ptr))].sum())
    wrong = [(a, b) for (a, b), is_right in zip(pairwise(ptr.tolist()), right, strict=True) if not is_right]

    def chunks(labels: np.ndarray) -> set[tuple[str, int, int]]:
        return set(get_entities([[names[label] for label in labels[a:b]] for a, b in wrong]))

    true, predicted = chunks(truth), chunks(predictions)
    hit = both + len(true & predicted)
    precision, recall = hit / max(both + len(predicted), 1), hit / max(both + len(true), 1)
    f1 = 2.0 * precision * recall / (precision + recall) if hit else 0.0
    return {"chunk_precision": precision, "chunk_recall": recall, "chunk_f1": f1}


def _begins(names: list[str], ptr: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Whether a chunk begins at each token: at a B-, and at an I- after anything but a label of its type."""
    types = [name[2:] for name in names]  # empty for "O"
    number = np.array([types.index(kind) for kind in types])[labels]
    before = np.concatenate([number[:1], number[:-1]])
    changed = number != before
    changed[ptr[:-1]] = True
    inside = np.array([name != "O" for name in names])[labels]
    return inside & (changed | np.array([name[0] == "B" for name in names])[labels])
