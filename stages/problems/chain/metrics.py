"""Task metrics of chains (errors by token and by sequence, chunk F1, confusion), and how label names are stored."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from gapwise.records import Facts
from gapwise.stages.problems.losses import chunk_roles, counted, share
from gapwise.stages.problems.protocol import Problem


def encode_names(names: list[str]) -> np.ndarray:
    """Label names as uint8 (labels, width), UTF-8 padded with zeros, which any store can keep."""
    raw = np.array([name.encode() for name in names], dtype=bytes)
    return raw.view(np.uint8).reshape(len(names), -1)


def decode_names(array: np.ndarray) -> list[str]:
    """Inverse of `encode_names`."""
    return [bytes(row).rstrip(b"\0").decode() for row in np.asarray(array)]


def metrics(problem: Problem, arrays: Mapping[str, np.ndarray], predictions: np.ndarray) -> dict[str, float]:
    """Share of wrong tokens and of sequences with a wrong token; with labels of chunks, such as B-NP, I-NP and O, also chunk
    precision, recall and F1.

    On OCR the first two are the errors by letter and by word. Names come from ``arrays["label_names"]``
    (`encode_names`), including those of labels that occur in a test split only.
    """
    wrong = np.asarray(predictions) != problem.truth
    by_sequence = np.add.reduceat(wrong, problem.label_ptr[:-1]) if problem.n else wrong
    result = {"token_error": share(wrong), "sequence_error": share(by_sequence > 0)}
    names = decode_names(arrays["label_names"]) if "label_names" in arrays else []
    if _are_of_chunks(names):
        result |= chunk_scores(names, problem.label_ptr, problem.truth, predictions)
    return result


def _are_of_chunks(names: list[str]) -> bool:
    """Whether labels are those of chunks, and do not only begin with the same letters by chance."""
    try:
        _, roles = chunk_roles(names)
    except ValueError:
        return False
    letters, typed = {letter for letter, _ in roles}, all(kind for letter, kind in roles if letter != "O")
    return {"B", "E"} <= letters or ("O" in letters and ("B" in letters or typed))


def confusion(
    problem: Problem, arrays: Mapping[str, np.ndarray], meta: Facts, predictions: np.ndarray
) -> tuple[list[str], np.ndarray]:
    """Names of labels, those that occur in a test split only included, and tokens (truth, prediction)."""
    labels = max(problem.labels, int(problem.truth.max(initial=0)) + 1)
    names = decode_names(arrays["label_names"]) if "label_names" in arrays else [str(k) for k in range(labels)]
    return names, counted(problem.truth, predictions, len(names))


def chunk_scores(names: list[str], ptr: np.ndarray, truth: np.ndarray, predictions: np.ndarray) -> dict[str, float]:
    """Precision, recall and F1 of whole chunks as conlleval counts them (seqeval's default mode).

    As there, the precision is 0 where no chunk is predicted, and the recall where there is none to find.
    Counted with arrays: evaluating a path asks for these numbers at many lambdas, and reading a training split of 211,727
    tokens label by label takes longer than solving a lambda.
    """
    true, predicted, hits = (int(counts.sum()) for counts in chunk_counts(names, ptr, truth, predictions)[1])
    precision, recall = hits / max(predicted, 1), hits / max(true, 1)
    f1 = 2.0 * precision * recall / (precision + recall) if hits else 0.0
    return {"chunk_precision": precision, "chunk_recall": recall, "chunk_f1": f1}


def chunk_counts(
    names: list[str], ptr: np.ndarray, truth: np.ndarray, predictions: np.ndarray
) -> tuple[list[str], np.ndarray]:
    """The kinds of chunks that occur, and how many are true, predicted and right: int (3, kinds)."""
    _, roles = chunk_roles(names)
    true, predicted = _chunks(roles, ptr, truth), _chunks(roles, ptr, predictions)
    right = true[np.isin(true, predicted, assume_unique=True)]
    counts = np.array([np.bincount(chunks % len(roles), minlength=len(roles)) for chunks in (true, predicted, right)])
    occur = np.flatnonzero(counts.any(axis=0))
    return [roles[k][1].lstrip("-") or "chunk" for k in occur], counts[:, occur]


def _chunks(roles: list[tuple[str, str]], ptr: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """One number for each chunk, from its first token, its end and its type, by the roles of labels (`chunk_roles`).

    A chunk begins at a B or S, after an E, S or anything but a label of its type, and with its sequence.
    """
    kinds = [kind for _, kind in roles]
    kind = np.array([-1 if letter == "O" else kinds.index(of) for letter, of in roles])[labels]
    begins, ends = (np.array([letter in which for letter, _ in roles])[labels] for which in ("BS", "ES"))
    begins[1:] |= (kind[1:] != kind[:-1]) | ends[:-1]
    begins[ptr[:-1]] = True
    edges = np.append(np.flatnonzero(begins), labels.size)
    first, end = edges[:-1], edges[1:]
    chunk = kind[first] >= 0
    first, end = first[chunk].astype(np.int64), end[chunk]
    return (first * (labels.size + 1) + end) * len(roles) + kind[first]
