"""The test sequences with the most wrong labels: input, truth and prediction, one below the other."""

from __future__ import annotations

from typing import Any

import numpy as np
from markupsafe import Markup

from gapwise.stages.reports.page.html import joined, paragraph
from gapwise.stages.reports.page.inputs import picture_shape, token_attributes, words_by_attribute
from gapwise.stages.reports.page.pixels import ink
from gapwise.stages.reports.page.stored import ReportedRun

ORDER = 60
TITLE = "The worst test sequences"
SHOWN, TOKENS = 12, 80
"""Most sequences; most tokens of each."""


def applies(run: ReportedRun) -> bool:
    """True for label sequences with predictions."""
    return run.structure == "chain" and "labels" in run.predictions


def content(run: ReportedRun) -> Markup:
    truth, pointer = run.truth
    found = run.predictions["labels"]
    wrong = np.add.reduceat((found != truth).astype(np.int64), pointer[:-1])
    worst = np.argsort(-wrong, kind="stable")[:SHOWN]
    worst = worst[wrong[worst] > 0]
    if not worst.size:
        return paragraph("Not one test label is wrong.")
    words, shape = words_by_attribute(run), picture_shape(run)
    rows = [sequence(run, int(i), int(wrong[i]), words, shape) for i in worst]
    perfect = float(np.mean(wrong == 0))
    said = paragraph(
        f"{perfect:.1%} of the {wrong.size:,} test sequences are entirely right. Below are those with the most wrong "
        "labels, at the best λ; wrong labels are underlined."
    )
    unknown = paragraph("A dot stands for a word that is too rare in the training data to be known.") if words else ""
    return said + unknown + joined(rows)


def sequence(run: ReportedRun, i: int, wrong: int, words: dict[int, str], shape: tuple[int, int] | None) -> Markup:
    """One sequence as a list of tokens that wraps: input, true label, predicted label."""
    truth, pointer = run.truth
    length = int(pointer[i + 1] - pointer[i])
    at = slice(pointer[i], pointer[i] + min(length, TOKENS))
    inputs = [glimpse(ids, words, shape) for ids in token_attributes(run, i)] if words or shape else []
    names = Markup('<li class="names">{}<span>truth</span><span>predicted</span></li>')
    items = [names.format(Markup("<b>input</b>") if inputs else "")]
    for k, (a, b) in enumerate(zip(truth[at].tolist(), run.predictions["labels"][at].tolist(), strict=True)):
        item = (
            Markup('<li class="wrong">{}<span>{}</span><u>{}</u></li>')
            if a != b
            else Markup("<li>{}<span>{}</span><i>{}</i></li>")
        )
        items.append(item.format(Markup("<b>{}</b>").format(inputs[k]) if inputs else "", run.label(a), run.label(b)))
    rest = f", the first {TOKENS} are shown" if length > TOKENS else ""
    text = Markup(
        '<figure class="sequence"><figcaption>Sequence {}: {} of {} labels wrong{}</figcaption><ol>{}</ol></figure>'
    )
    return text.format(i + 1, wrong, length, rest, joined(items))


def glimpse(ids: np.ndarray, words: dict[int, str], shape: tuple[int, int] | None) -> Any:
    """The token itself: its word, or its picture."""
    if shape is None:
        return next((words[k] for k in ids.tolist() if k in words), "·")
    pixels = np.zeros(shape[0] * shape[1])
    pixels[ids[ids < pixels.size]] = 1.0
    return Markup('<img class="ink" src="{}" alt="handwritten letter">').format(ink(pixels.reshape(shape)))
