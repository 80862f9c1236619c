"""Task metrics of chains: errors by token and by sequence, chunk F1; and how label names are stored."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

import numpy as np

from stages.problems.protocol import Problem


def encode_names(names: list[str]) -> np.ndarray:
    """Label names as uint8 (labels, width), UTF-8 padded with zeros: a form that any store keeps."""
    raw = np.array([name.encode() for name in names], dtype=bytes)
    return raw.view(np.uint8).reshape(len(names), -1)


def decode_names(array: np.ndarray) -> list[str]:
    """Inverse of `encode_names`."""
    return [bytes(row).rstrip(b"\0").decode() for row in np.asarray(array)]


def metrics(problem: Problem, arrays: Mapping[str, np.ndarray], predictions: np.ndarray) -> dict[str, float]:
    """Share of wrong tokens and of sequences with a wrong token; with IOB label names also chunk precision, recall
    and F1.

    On OCR the first two are the errors by letter and by word. Names come from ``arrays["label_names"]``
    (`encode_names`), those of labels that occur in a test split only included.
    """
    wrong = np.asarray(predictions) != problem.truth
    by_sequence = np.add.reduceat(wrong, problem.label_ptr[:-1]) if problem.n else wrong
    result = {"token_error": float(wrong.mean()), "sequence_error": float((by_sequence > 0).mean())}
    names = decode_names(arrays["label_names"]) if "label_names" in arrays else []
    if "O" in names and all(name == "O" or name[:2] in ("B-", "I-") for name in names):
        result |= chunk_scores(names, problem.label_ptr, problem.truth, predictions)
    return result


def chunk_scores(names: list[str], ptr: np.ndarray, truth: np.ndarray, predictions: np.ndarray) -> dict[str, float]:
    """Precision, recall and F1 of whole chunks as conlleval counts them (seqeval's default mode)."""
    from seqeval.metrics.sequence_labeling import precision_recall_fscore_support

    def sequences(labels: np.ndarray) -> list[list[str]]:
        words = [names[label] for label in labels]
        return [words[a:b] for a, b in pairwise(ptr)]

    precision, recall, f1, _ = precision_recall_fscore_support(
        sequences(truth), sequences(predictions), average="micro", zero_division=0
    )
    return {"chunk_precision": float(precision), "chunk_recall": float(recall), "chunk_f1": float(f1)}
