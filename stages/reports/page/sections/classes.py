"""The confusion matrix of test labels, and inputs that were taken for another class."""

from __future__ import annotations

import numpy as np
from markupsafe import Markup

from gapwise.stages.problems.losses import counted
from gapwise.stages.reports.page.engine import fill
from gapwise.stages.reports.page.html import table
from gapwise.stages.reports.page.inputs import picture_shape
from gapwise.stages.reports.page.pixels import ink
from gapwise.stages.reports.page.stored import ReportedRun
from gapwise.stages.reports.vega import Row

ORDER = 70
TITLE = "What is taken for what"
MOST = 32
"""Most labels of a matrix; with more, the pairs that are confused most often are listed."""
PAIRS, SHOWN = 25, 40
"""Most such pairs; most inputs."""


def applies(run: ReportedRun) -> bool:
    """True for classes and label sequences with predictions."""
    return run.structure in ("multiclass", "chain") and "labels" in run.predictions


def content(run: ReportedRun) -> Markup:
    truth, _ = run.truth
    predicted = run.predictions["labels"]
    count = 1 + max(int(truth.max(initial=0)), int(predicted.max(initial=0)), len(run.label_names) - 1)
    counts = counted(truth, predicted, count).astype(int)
    right = int(np.trace(counts))
    return fill(
        "classes", by=run.predicting, total=truth.size, right=right,
        counts=matrix(run, counts) if count <= MOST else pairs(run, counts),
        wrong=mistaken(run, truth, predicted) if run.structure == "multiclass" else [],
    )  # fmt: skip


def matrix(run: ReportedRun, counts: np.ndarray) -> Markup:
    """Rows are the truth, columns the prediction; the darker a cell, the larger its share of the row."""
    share = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    names = [run.label(k) for k in range(len(counts))]
    rows = [
        {"name": name, "right": f"{share[a, a]:.0%}", "cells": [
            {"look": "hit" if a == b else "miss", "shade": f"{share[a, b] ** 0.5:.2f}", "count": int(counts[a, b])}
            for b in range(len(counts))
        ]}
        for a, name in enumerate(names)
    ]  # fmt: skip
    return fill("confusion", names=names, rows=rows)


def pairs(run: ReportedRun, counts: np.ndarray) -> Markup:
    """The most frequent mistakes."""
    off = counts * (1 - np.eye(len(counts), dtype=counts.dtype))
    order = np.argsort(-off, axis=None, kind="stable")[:PAIRS]
    rows = [
        (run.label(int(k // len(off))), run.label(int(k % len(off))), f"{off.flat[k]:,}") for k in order if off.flat[k]
    ]
    return table(["truth", "predicted", "times"], rows, caption="The most frequent mistakes")


def mistaken(run: ReportedRun, truth: np.ndarray, predicted: np.ndarray) -> list[Row]:
    """Pictures of the first misclassified inputs; [] if inputs are not pictures."""
    shape = picture_shape(run)
    (wrong,) = np.nonzero(truth != predicted)
    if shape is None or "x" not in run.test_blocks or not wrong.size:
        return []
    shots: list[Row] = []
    for i in wrong[np.linspace(0, wrong.size - 1, min(SHOWN, wrong.size)).astype(int)].tolist():
        values = np.asarray(run.test_blocks["x"][i], float).reshape(-1)[: shape[0] * shape[1]].reshape(shape)
        span = np.ptp(values) or 1.0
        uri = ink((values - values.min()) / span)
        shots.append(
            {"uri": uri, "number": i + 1, "truth": run.label(int(truth[i])), "predicted": run.label(int(predicted[i]))}
        )
    return shots
