"""What an input looked like, as far as the features still tell: words of the vocabulary, pixels of letters and digits."""

from __future__ import annotations

import re

import numpy as np

from gapwise.stages.datasets import offered
from gapwise.stages.datasets.inputs import stored_input
from gapwise.stages.reports.page.stored import ReportedRun

WORD = re.compile(r"(?:w|word|w0|w\[0\]|token|form)[=:](.*)", re.DOTALL)
"""Attributes of CRFsuite's lines that hold the word itself."""


def picture_shape(run: ReportedRun) -> tuple[int, int] | None:
    """(height, width) of the picture whose pixels are the first features, if the reader declares PICTURE."""
    if not run.has_features:
        return None
    try:
        return offered(str(run.features.meta["dataset"])).picture
    except (ValueError, KeyError):
        return None


def words(run: ReportedRun) -> list[str]:
    """The word of every test token as its file has it, seen in training or not; [] where no text is kept."""
    if not run.has_features:
        return []
    new = stored_input(run.features.meta, run.test_blocks)
    text = run.features.meta.get("text")
    if new is None or not text:
        return []
    if text.get("columns") is None:  # CRFsuite's lines: a label and attributes
        named = [[match[1] for word in row[1:] if (match := WORD.fullmatch(word))] for row in new.raw.rows]
        return [words[0] if words else " ".join(row[1:2]) for words, row in zip(named, new.raw.rows, strict=True)]
    return [row[0] for row in new.raw.rows]


def token_attributes(run: ReportedRun, i: int) -> list[np.ndarray]:
    """Attribute numbers of each token of test block `i`."""
    blocks = run.test_blocks
    counts = np.asarray(blocks["counts"][blocks["counts_ptr"][i] : blocks["counts_ptr"][i + 1]])
    ids = np.asarray(blocks["ids"][blocks["ids_ptr"][i] : blocks["ids_ptr"][i + 1]])
    return np.split(ids, np.cumsum(counts)[:-1])
