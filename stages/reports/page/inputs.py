"""What an input looked like, as far as the features still tell: words of the vocabulary, pixels of letters and digits."""

from __future__ import annotations

import re
from itertools import pairwise

import numpy as np

from gapwise.stages.datasets import offered
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


def words_by_attribute(run: ReportedRun) -> dict[int, str]:
    """From attributes that stand for a token's own word to that word; {} if no attribute does."""
    blocks = run.test_blocks
    if "vocabulary" not in blocks:
        return {}
    raw, edges = np.asarray(blocks["vocabulary"]).tobytes(), np.asarray(blocks["vocabulary_ptr"]).tolist()
    names = [raw[a:b].decode() for a, b in pairwise(edges)]
    templates = (run.features.meta.get("text") or {}).get("templates")
    if templates:
        own = [skeleton for skeleton, macros in templates if [tuple(macro) for macro in macros] == [(0, 0)]]
        heads = tuple(f"{skeleton}\t" for skeleton in own)
        return {k: name.split("\t", 1)[1] for k, name in enumerate(names) if heads and name.startswith(heads)}
    return {k: match[1] for k, name in enumerate(names) if (match := WORD.fullmatch(name)) is not None}


def token_attributes(run: ReportedRun, i: int) -> list[np.ndarray]:
    """Attribute numbers of each token of test block `i`."""
    blocks = run.test_blocks
    counts = np.asarray(blocks["counts"][blocks["counts_ptr"][i] : blocks["counts_ptr"][i + 1]])
    ids = np.asarray(blocks["ids"][blocks["ids_ptr"][i] : blocks["ids_ptr"][i + 1]])
    return np.split(ids, np.cumsum(counts)[:-1])
