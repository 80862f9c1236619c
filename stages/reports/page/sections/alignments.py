"""The test sentence pairs with the most wrong or missed links: a grid of words with predicted and true links."""

from __future__ import annotations

import math

from markupsafe import Markup

from gapwise.stages.reports.alignments import Aligned, all_pairs, all_scores, has_alignments
from gapwise.stages.reports.page.engine import fill
from gapwise.stages.reports.page.stored import ReportedRun
from gapwise.stages.reports.paint import BLUE, GREEN, ORANGE
from gapwise.stages.reports.vega import Row

ORDER = 60
TITLE = "The worst alignments"
SHOWN, WORDS = 12, 30
"""Most sentence pairs; longer ones, in words of either language, are left out where shorter ones have mistakes too."""
CELL, LETTER = 16, 7
"""Pixels of a cell, and about those of a letter."""
KINDS = {"sure": GREEN, "possible": BLUE, "wrong": ORANGE}
"""Colours of links that were found."""
NAMES = {"sure": "found, and sure", "possible": "found, and possible", "wrong": "found, but wrong"}


def applies(run: ReportedRun) -> bool:
    """True for sentence pairs with predictions."""
    return run.has_features and has_alignments(run)


def content(run: ReportedRun) -> Markup:
    pairs = all_pairs(run)
    return fill(
        "alignments", by=run.predicting, perfect=sum(not pair.mistakes for pair in pairs) / len(pairs), pairs=len(pairs),
        scores=all_scores(pairs), colours=[(KINDS[kind], name) for kind, name in NAMES.items()],
        grids=[grid(pair) for pair in worst(pairs)],
    )  # fmt: skip


def worst(pairs: list[Aligned]) -> list[Aligned]:
    """At most SHOWN pairs with mistakes, most mistakes first."""
    wrong = [pair for pair in pairs if pair.mistakes]
    short = [pair for pair in wrong if max(len(pair.e), len(pair.f)) <= WORDS]
    return sorted(short or wrong, key=lambda pair: -pair.mistakes)[:SHOWN]


def grid(pair: Aligned) -> Row:
    """English words down, French ones across; truth as frames and shades, predicted links as coloured squares."""
    left, top = (8 + LETTER * max(map(len, words)) for words in (pair.e, pair.f))
    cells = [_square(pair, link, left, top, "maybe") for link in sorted(pair.possible)]
    cells += [_square(pair, link, left, top, _kind(pair, link), 2) for link in sorted(pair.predicted)]
    cells += [_square(pair, link, left, top, "frame", 1) for link in sorted(pair.sure)]
    return {
        "width": math.ceil(left + CELL * len(pair.f) + 1), "height": math.ceil(top + CELL * len(pair.e) + 1),
        "cells": cells, "lines": _lines(left, top, len(pair.f), len(pair.e)), "in_words": _in_words(pair),
        "down": [(left - 5, top + CELL * j + 12, word) for j, word in enumerate(pair.e)],
        "across": [(left + CELL * k + 12, top - 5, word) for k, word in enumerate(pair.f)],
        "said": f"Sentence {pair.number}: {_count(len(pair.wrong), 'wrong link')}, {len(pair.missed)} missed",
    }  # fmt: skip


def _square(pair: Aligned, link: tuple[int, int], left: float, top: float, kind: str, inset: int = 0) -> Row:
    """A link as a square: `maybe`, a shade; `frame`, of a sure link; or found, in a colour of KINDS."""
    j, k = link
    said = f": {kind}" if kind in KINDS else ""
    return {
        "x": left + CELL * k + inset, "y": top + CELL * j + inset, "side": CELL - 2 * inset,
        "fill": KINDS.get(kind, ""), "look": "sure" if kind == "frame" else kind, "name": f"{pair.e[j]} – {pair.f[k]}{said}",
    }  # fmt: skip


def _kind(pair: Aligned, link: tuple[int, int]) -> str:
    return "sure" if link in pair.sure else "possible" if link in pair.possible else "wrong"


def _lines(left: float, top: float, columns: int, rows: int) -> str:
    """Path data of the lines of a grid."""
    across = "".join(f"M{left} {top + CELL * j}h{CELL * columns}" for j in range(rows + 1))
    return across + "".join(f"M{left + CELL * k} {top}v{CELL * rows}" for k in range(columns + 1))


def _in_words(pair: Aligned) -> str:
    """The grid in words, for readers who cannot see it."""

    def named(links: set[tuple[int, int]]) -> str:
        return ", ".join(f"{pair.e[j]} – {pair.f[k]}" for j, k in sorted(links)) or "none"

    return f"Alignment of sentence {pair.number}. Wrong links: {named(pair.wrong)}. Missed: {named(pair.missed)}."


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' * (number != 1)}"
