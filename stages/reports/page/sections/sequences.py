"""The test sequences with the most wrong labels: input, truth and prediction, one below the other."""

from __future__ import annotations

import numpy as np
from markupsafe import Markup

from gapwise.stages.reports.page.engine import fill
from gapwise.stages.reports.page.html import paragraph
from gapwise.stages.reports.page.inputs import picture_shape, token_attributes, words
from gapwise.stages.reports.page.pixels import ink
from gapwise.stages.reports.page.stored import ReportedRun
from gapwise.stages.reports.vega import Row

ORDER = 60
TITLE = "The worst test sequences"
SHOWN, TOKENS = 12, 80
"""Most sequences; most tokens of each."""


def applies(run: ReportedRun) -> bool:
    """True for label sequences with predictions."""
    return run.structure == "chain" and "labels" in run.predictions


def content(run: ReportedRun) -> Markup:
    truth, pointer = run.truth
    predicted = run.predictions["labels"]
    wrong = np.add.reduceat((predicted != truth).astype(np.int64), pointer[:-1])
    worst = np.argsort(-wrong, kind="stable")[:SHOWN]
    worst = worst[wrong[worst] > 0]
    if not worst.size:
        return paragraph("Not one test label is wrong.")
    shape = picture_shape(run)
    shown = [] if shape is not None else words(run)
    return fill(
        "sequences", by=run.predicting, perfect=float(np.mean(wrong == 0)), sequences=wrong.size,
        rows=[sequence(run, int(i), int(wrong[i]), shown, shape) for i in worst],
    )  # fmt: skip


def sequence(run: ReportedRun, i: int, wrong: int, shown: list[str], shape: tuple[int, int] | None) -> Row:
    """One sequence: input, true label and predicted label of each token."""
    truth, pointer = run.truth
    length = int(pointer[i + 1] - pointer[i])
    part = slice(pointer[i], pointer[i] + min(length, TOKENS))
    inputs = [{"word": word} for word in shown[part]]
    if shape is not None:
        inputs = [{"uri": glimpse(ids, shape)} for ids in token_attributes(run, i)]
    tokens = [
        {"truth": a, "predicted": b, "true_name": run.label(a), "predicted_name": run.label(b), "uri": "", "word": "",
         **(inputs[k] if inputs else {})}
        for k, (a, b) in enumerate(zip(truth[part].tolist(), run.predictions["labels"][part].tolist(), strict=True))
    ]  # fmt: skip
    cut = TOKENS if length > TOKENS else 0
    return {"number": i + 1, "wrong": wrong, "length": length, "cut": cut, "inputs": bool(inputs), "tokens": tokens}


def glimpse(ids: np.ndarray, shape: tuple[int, int]) -> str:
    """The URI of a token's picture."""
    pixels = np.zeros(shape[0] * shape[1])
    pixels[ids[ids < pixels.size]] = 1.0
    return ink(pixels.reshape(shape))
