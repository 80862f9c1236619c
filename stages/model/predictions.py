"""Predictions on the test split: ``predictions.npz`` of a run, and for people and spreadsheets its folder ``predictions/``.

``predicted.txt`` or ``predicted.csv`` is the test split as `gapwise predict` shows it, ``masks/`` the pictures that are
stored. Where single labels mean something (`confusion` of a structure), ``confusion.csv`` counts tokens, pixels or
examples by true label (row) and predicted label (column), and ``labels.csv`` and ``labels.json`` have precision, recall
and F1 of each.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

import numpy as np

from gapwise.records import Facts, Record
from gapwise.stages.datasets import Predicted, label_names, reader_of
from gapwise.stages.datasets.common.files import csv_text
from gapwise.stages.problems import capabilities
from gapwise.stages.problems.protocol import Problem
from gapwise.storage.backend import Location
from gapwise.storage.files import aside, publish, replaced
from gapwise.storage.integrity import below

FOLDER = "predictions"
FIELDS = ("label", "support", "predicted", "right", "precision", "recall", "f1")


def write_predictions(
    run_dir: Location, problem: Problem, arrays: Mapping[str, np.ndarray], meta: Facts, labels: np.ndarray
) -> None:
    """Write ``predictions.npz`` (labels, flat; label_ptr) and ``predictions/`` of a run; parameters as `write_readable`."""
    file = run_dir / "predictions.npz"
    with aside(file).open("wb") as stream:
        np.savez(stream, labels=labels, label_ptr=problem.label_ptr)
    publish(file)
    write_readable(run_dir, problem, arrays, meta, labels)


def write_readable(
    run_dir: Location, problem: Problem, arrays: Mapping[str, np.ndarray], meta: Facts, labels: np.ndarray
) -> None:
    """Write ``predictions/`` of a run, whole or not at all.

    Parameters
    ----------
    problem, arrays, meta
        The test split, its arrays and the facts of the feature store.
    labels
        What was predicted for it, flat.
    """
    with replaced(run_dir / FOLDER) as made:
        for name, data in _files(problem, arrays, meta, labels):
            file = below(made, name)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(data)


def _files(
    problem: Problem, arrays: Mapping[str, np.ndarray], meta: Facts, labels: np.ndarray
) -> Iterator[tuple[str, bytes]]:
    new = reader_of(meta["dataset"]).stored_input(arrays, meta) if "dataset" in meta else None
    if new is not None:
        shown = reader_of(meta["dataset"]).show(new, Predicted(labels, problem.label_ptr, label_names(meta), arrays))
        if shown.files is None:
            yield f"predicted{shown.suffix}", shown.text.encode()
        else:
            yield from ((f"masks/{name}", data) for name, data in shown.files)
    confusion = capabilities(meta["structure"]).confusion
    if confusion is not None:
        names, matrix = confusion(problem, arrays, meta, labels)
        table = [[name, *map(_plain, row)] for name, row in zip(names, matrix.tolist(), strict=True)]
        yield "confusion.csv", csv_text(("truth", *names), table).encode()
        rows = by_label(names, *counts_of(matrix))
        yield "labels.csv", csv_text(FIELDS, [[row[name] for name in FIELDS] for row in rows]).encode()
        total = float(matrix.sum())
        facts = {"accuracy": float(np.trace(matrix)) / total if total else None, "labels": rows}
        yield "labels.json", (json.dumps(facts, indent=1, ensure_ascii=False) + "\n").encode()


def counts_of(matrix: np.ndarray) -> np.ndarray:
    """float64 (3, labels): how often each label is true, predicted and right, by a matrix (truth, prediction)."""
    return np.array([matrix.sum(axis=1), matrix.sum(axis=0), np.diag(matrix)], float)


def by_label(names: list[str], true: np.ndarray, predicted: np.ndarray, right: np.ndarray) -> list[Record]:
    """Counts, precision, recall and F1 of each label; None where there is nothing to divide by: the precision of a label
    that is never predicted, the recall of one that never occurs."""
    rows = []
    for name, *counts in zip(names, true.tolist(), predicted.tolist(), right.tolist(), strict=True):
        support, guesses, hits = counts
        precision, recall = (hits / n if n else None for n in (guesses, support))
        f1 = 2.0 * hits / (support + guesses) if support + guesses else None
        rows.append(dict(zip(FIELDS, (name, *map(_plain, counts), precision, recall, f1), strict=True)))
    return rows


def _plain(count: float) -> float | int:
    """A whole number without a decimal point."""
    return int(count) if count == int(count) else count
