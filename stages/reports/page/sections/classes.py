"""The confusion matrix of test labels, and inputs that were taken for another class."""

from __future__ import annotations

import numpy as np
from markupsafe import Markup

from gapwise.stages.problems.confusion import counted
from gapwise.stages.reports.page.html import joined, paragraph, scrolling, table
from gapwise.stages.reports.page.inputs import picture_shape
from gapwise.stages.reports.page.pixels import ink
from gapwise.stages.reports.page.stored import ReportedRun

ORDER = 70
TITLE = "What is taken for what"
MOST = 32
"""Most labels of a matrix; with more, the pairs that are confused most often are listed."""
PAIRS, SHOWN = 25, 40
"""Most such pairs; most inputs."""


def applies(run: ReportedRun) -> bool:
    """True for classes and label sequences with predictions."""
    return run.structure in ("multiclass", "multiclass_sparse", "chain") and "labels" in run.predictions


def content(run: ReportedRun) -> Markup:
    truth, _ = run.truth
    found = run.predictions["labels"]
    count = 1 + max(int(truth.max(initial=0)), int(found.max(initial=0)), len(run.label_names) - 1)
    counts = counted(truth, found, count).astype(int)
    right = int(np.trace(counts))
    said = paragraph(f"Of {truth.size:,} test labels, {right:,} are right ({right / truth.size:.1%}), at the best λ.")
    shown = matrix(run, counts) if count <= MOST else pairs(run, counts)
    return said + shown + (mistaken(run, truth, found) if run.structure == "multiclass" else Markup(""))


def matrix(run: ReportedRun, counts: np.ndarray) -> Markup:
    """Rows are the truth, columns the prediction; the darker a cell, the larger its share of the row."""
    share = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    names = [run.label(k) for k in range(len(counts))]
    head = joined(Markup('<th scope="col">{}</th>').format(name) for name in names)
    body = joined(
        Markup('<tr><th scope="row">{}</th>{}<td class="sum">{}</td></tr>').format(
            name,
            joined(
                Markup('<td class="{}" style="--s:{}">{}</td>').format(
                    "hit" if a == b else "miss", f"{share[a, b] ** 0.5:.2f}", counts[a, b] or ""
                )
                for b in range(len(counts))
            ),
            f"{share[a, a]:.0%}",
        )
        for a, name in enumerate(names)
    )
    text = Markup(
        '<table class="matrix"><caption>Rows: true label. Columns: predicted label. Last column: share that is right.'
        "</caption>"
        '<thead><tr><td></td>{}<th scope="col">right</th></tr></thead><tbody>{}</tbody></table>'
    )
    return scrolling("Confusion matrix", text.format(head, body))


def pairs(run: ReportedRun, counts: np.ndarray) -> Markup:
    """The most frequent mistakes."""
    off = counts * (1 - np.eye(len(counts), dtype=counts.dtype))
    order = np.argsort(-off, axis=None, kind="stable")[:PAIRS]
    rows = [
        (run.label(int(k // len(off))), run.label(int(k % len(off))), f"{off.flat[k]:,}") for k in order if off.flat[k]
    ]
    return table(["truth", "predicted", "times"], rows, caption="The most frequent mistakes")


def mistaken(run: ReportedRun, truth: np.ndarray, found: np.ndarray) -> Markup:
    """Pictures of the first inputs that were taken for another class; nothing if inputs are no pictures."""
    shape = picture_shape(run)
    (wrong,) = np.nonzero(truth != found)
    if shape is None or "x" not in run.test_blocks or not wrong.size:
        return Markup("")
    shots = []
    for i in wrong[np.linspace(0, wrong.size - 1, min(SHOWN, wrong.size)).astype(int)]:
        values = np.asarray(run.test_blocks["x"][i], float).reshape(-1)[: shape[0] * shape[1]].reshape(shape)
        span = np.ptp(values) or 1.0
        names = run.label(int(truth[i])), run.label(int(found[i]))
        text = Markup(
            '<figure><img class="ink" src="{}" alt="test example {}"><figcaption>{} → <u>{}</u></figcaption></figure>'
        )
        shots.append(text.format(ink((values - values.min()) / span), int(i) + 1, *names))
    said = paragraph("Some of those that are wrong: truth → prediction.")
    return said + Markup('<div class="strip">{}</div>').format(joined(shots))
