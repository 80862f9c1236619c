"""What is predicted for single labels: the worst test sequences, and which labels are taken for which."""

from __future__ import annotations

import re

import numpy as np
from markupsafe import Markup

from gapwise.stages.datasets import reader_of
from gapwise.stages.model.measures import confusions
from gapwise.stages.problems import build
from gapwise.stages.reports.html import fill, ink, paragraph, table
from gapwise.stages.reports.page.story import knowledge
from gapwise.stages.reports.stored import StoredRun

Row = dict[str, object]
WORD = re.compile(r"(?:w|word|w0|w\[0\]|token|form)[=:](.*)", re.DOTALL)
"""Attributes of CRFsuite's lines that hold the word itself."""
SEQUENCES, TOKENS = 12, 80
"""Most sequences; most tokens of each."""
MOST, PAIRS, WRONG = 32, 25, 40
"""Most labels of a matrix, with more the pairs that are confused most often are listed; most such pairs; most inputs."""


def sequences(run: StoredRun) -> Markup | None:
    """The test sequences with the most wrong labels: input, truth and prediction, one below the other."""
    if run.structure != "chain" or "labels" not in run.predictions:
        return None
    truth, pointer = run.truth
    wrong = np.add.reduceat((run.predictions["labels"] != truth).astype(np.int64), pointer[:-1])
    worst = np.argsort(-wrong, kind="stable")[:SEQUENCES]
    worst = worst[wrong[worst] > 0]
    if not worst.size:
        return paragraph("Not one test label is wrong.")
    shape = picture_shape(run)
    shown = [] if shape is not None else words(run)
    return fill(
        "sequences", by=run.predicting, perfect=float(np.mean(wrong == 0)), sequences=wrong.size,
        rows=[_sequence(run, int(i), int(wrong[i]), shown, shape) for i in worst],
    )  # fmt: skip


def _sequence(run: StoredRun, i: int, wrong: int, shown: list[str], shape: tuple[int, int] | None) -> Row:
    """One sequence: input, true label and predicted label of each token."""
    truth, pointer = run.truth
    length = int(pointer[i + 1] - pointer[i])
    part = slice(pointer[i], pointer[i] + min(length, TOKENS))
    inputs = [{"word": word} for word in shown[part]]
    if shape is not None:
        inputs = [{"uri": _glimpse(ids, shape)} for ids in _attributes(run, i)]
    tokens = [
        {"truth": a, "predicted": b, "true_name": run.label(a), "predicted_name": run.label(b), "uri": "", "word": "",
         **(inputs[k] if inputs else {})}
        for k, (a, b) in enumerate(zip(truth[part].tolist(), run.predictions["labels"][part].tolist(), strict=True))
    ]  # fmt: skip
    cut = TOKENS if length > TOKENS else 0
    return {"number": i + 1, "wrong": wrong, "length": length, "cut": cut, "inputs": bool(inputs), "tokens": tokens}


def picture_shape(run: StoredRun) -> tuple[int, int] | None:
    """(height, width) of the picture whose pixels are the first features, if the reader declares its `picture`."""
    try:
        return reader_of(str(run.meta["dataset"])).picture
    except (ValueError, KeyError):
        return None


def words(run: StoredRun) -> list[str]:
    """The word of every test token as its file has it, seen in training or not; [] where no text is kept."""
    text = run.meta.get("text")
    new = reader_of(str(run.meta["dataset"])).stored_input(run.test_blocks, run.meta) if text else None
    if new is None or not text:
        return []
    if text.get("columns") is None:  # CRFsuite's lines: a label and attributes
        named = [[match[1] for word in row[1:] if (match := WORD.fullmatch(word))] for row in new.raw.rows]
        return [words[0] if words else " ".join(row[1:2]) for words, row in zip(named, new.raw.rows, strict=True)]
    return [row[0] for row in new.raw.rows]


def _attributes(run: StoredRun, i: int) -> list[np.ndarray]:
    """Attribute numbers of each token of test block `i`."""
    blocks = run.test_blocks
    counts = np.asarray(blocks["counts"][blocks["counts_ptr"][i] : blocks["counts_ptr"][i + 1]])
    ids = np.asarray(blocks["ids"][blocks["ids_ptr"][i] : blocks["ids_ptr"][i + 1]])
    return np.split(ids, np.cumsum(counts)[:-1])


def _glimpse(ids: np.ndarray, shape: tuple[int, int]) -> str:
    """The URI of a token's picture."""
    pixels = np.zeros(shape[0] * shape[1])
    pixels[ids[ids < pixels.size]] = 1.0
    return ink(pixels.reshape(shape))


def classes(run: StoredRun) -> Markup | None:
    """The confusion matrix of test labels, and inputs that were taken for another class.

    None where single labels mean nothing by themselves.
    """
    confusion = knowledge(run).confusion
    if confusion is None or "labels" not in run.predictions:
        return None
    problem = build(run.structure, run.test_blocks, run.meta)
    names, matrix = confusion(problem, run.test_blocks, run.meta, run.predictions["labels"])
    counts = np.rint(matrix).astype(int)
    return fill(
        "classes", by=run.predicting, total=int(counts.sum()), right=int(np.trace(counts)), wrong=_mistaken(run),
        counts=_matrix(names, counts) if len(names) <= MOST else _pairs(names, counts),
    )  # fmt: skip


def _matrix(names: list[str], counts: np.ndarray) -> Markup:
    """Rows are the truth, columns the prediction; the darker a cell, the larger its share of the row."""
    share = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    rows = [
        {"name": name, "right": f"{share[a, a]:.0%}", "cells": [
            {"look": "hit" if a == b else "miss", "shade": f"{share[a, b] ** 0.5:.2f}", "count": int(counts[a, b])}
            for b in range(len(counts))
        ]}
        for a, name in enumerate(names)
    ]  # fmt: skip
    return fill("confusion", names=names, rows=rows)


def _pairs(names: list[str], counts: np.ndarray) -> Markup:
    """The most frequent mistakes."""
    rows = [(row["truth"], row["predicted"], f"{row['count']:,}") for row in confusions(names, counts, PAIRS)]
    return table(["truth", "predicted", "times"], rows, caption="The most frequent mistakes")


def _mistaken(run: StoredRun) -> list[Row]:
    """Pictures of some misclassified inputs; [] if inputs are not pictures, of one example each."""
    shape = picture_shape(run)
    if shape is None or "x" not in run.test_blocks:
        return []
    truth, predicted = run.truth[0], run.predictions["labels"]
    (wrong,) = np.nonzero(truth != predicted)
    shots: list[Row] = []
    for i in wrong[np.linspace(0, wrong.size - 1, min(WRONG, wrong.size)).astype(int)].tolist():
        values = np.asarray(run.test_blocks["x"][i], float).reshape(-1)[: shape[0] * shape[1]].reshape(shape)
        span = np.ptp(values) or 1.0
        uri, names = ink((values - values.min()) / span), (run.label(int(truth[i])), run.label(int(predicted[i])))
        shots.append({"uri": uri, "number": i + 1, "truth": names[0], "predicted": names[1]})
    return shots
