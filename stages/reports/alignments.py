"""Test sentence pairs as grids of words, with the predicted links and the annotators'."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

from gapwise.stages.datasets.alignment.sentences import word_pair
from gapwise.stages.problems.matching.metrics import scores
from gapwise.stages.reports.paint import BLUE, GREEN, GREY, GRID, INK, ORANGE, Draw, Size
from gapwise.stages.reports.stored import StoredRun

Links = set[tuple[int, int]]
"""Links (j, k) between words, from 0."""
KINDS = ("predicted", "sure", "possible")
WORDS = 30
"""Longer pairs, in words of either language, are left out where shorter ones have mistakes, too."""
CELL, MARGIN, LETTER = 0.17, 0.25, 0.075
"""Inches of a cell, around the grid, and of a letter."""


class Aligned:
    """A sentence pair.

    Attributes
    ----------
    number : int
        Of the sentence, as its file counts.
    e, f : list of str
        Words of either language.
    sure, possible, predicted : set of (j, k)
        The annotators' links, those they call possible with the sure ones, and the predicted ones.
    """

    def __init__(self, run: StoredRun, i: int) -> None:
        arrays, predictions = run.test_blocks, run.predictions
        self.number = int(arrays["number"][i])
        self.e, self.f = word_pair(arrays, i)
        self.sure, self.possible = (_links(arrays, name, i) for name in ("sure", "possible"))
        start, stop = predictions["label_ptr"][i : i + 2]
        entries = predictions["labels"][start:stop].reshape(len(self.e), -1).astype(int)
        first, column = arrays["counts_ptr"][i], arrays["column"][arrays["column_ptr"][i] :]
        begin = np.concatenate([[0], np.cumsum(arrays["counts"][first : first + len(self.e)], dtype=np.int64)])
        self.predicted: Links = {(j, int(column[begin[j] + k - 1])) for j, row in enumerate(entries) for k in row if k}

    @property
    def wrong(self) -> Links:
        """Predicted links that are not even possible."""
        return self.predicted - self.possible

    @property
    def missed(self) -> Links:
        """Sure links that are not predicted."""
        return self.sure - self.predicted

    @property
    def mistakes(self) -> int:
        """Predicted links that are not possible, and sure ones that are not predicted."""
        return len(self.wrong) + len(self.missed)

    @property
    def size(self) -> Size:
        """Of its grid."""
        left, top = (MARGIN + LETTER * max(map(len, words)) for words in (self.e, self.f))
        return left + CELL * len(self.f) + MARGIN, top + CELL * len(self.e) + MARGIN

    @property
    def said(self) -> str:
        """How many mistakes there are."""
        return f"Sentence {self.number}: {_count(len(self.wrong), 'wrong link')}, {len(self.missed)} missed"

    @property
    def in_words(self) -> str:
        """The mistakes, for readers who cannot see the grid."""
        wrong, missed = (
            ", ".join(f"{self.e[j]} – {self.f[k]}" for j, k in sorted(links)) or "none"
            for links in (self.wrong, self.missed)
        )
        return f"Alignment of sentence {self.number}. Wrong links: {wrong}. Missed: {missed}."


def all_pairs(run: StoredRun) -> list[Aligned]:
    """Every test sentence pair that has predictions; [] for other data."""
    if not run.predictions or not {"sure", "possible", "text"} <= set(run.test_blocks):
        return []
    return [Aligned(run, i) for i in range(run.test_blocks["number"].size)]


def worst(pairs: list[Aligned], most: int) -> list[Aligned]:
    """At most `most` pairs with mistakes, most mistakes first."""
    wrong = [pair for pair in pairs if pair.mistakes]
    short = [pair for pair in wrong if max(len(pair.e), len(pair.f)) <= WORDS]
    return sorted(short or wrong, key=lambda pair: -pair.mistakes)[:most]


def all_scores(pairs: list[Aligned]) -> dict[str, float]:
    """Precision, recall and alignment error rate of all pairs together."""
    links = ({(i, *link) for i, pair in enumerate(pairs) for link in getattr(pair, name)} for name in KINDS)
    return scores(*links)


def figure(run: StoredRun) -> tuple[Draw, Size] | None:
    """The six worst pairs; None if there are none."""
    pairs = worst(all_pairs(run), 6)
    if not pairs:
        return None

    def draw(figure: Figure) -> None:
        grid = figure.subplots(2, -(-len(pairs) // 2), squeeze=False).ravel()
        for axes in grid[len(pairs) :]:
            axes.set_visible(False)
        for axes, pair in zip(grid, pairs, strict=False):
            draw_pair(axes, pair)
            axes.set_title(f"sentence {pair.number}", fontsize=8)
        handles = [Patch(color=colour, label=name) for name, colour in LEGEND]
        handles += [Patch(facecolor="none", edgecolor=INK, label="sure"), Patch(facecolor=GRID, label="possible")]
        figure.legend(handles=handles, loc="outside lower center", ncols=len(handles))

    return draw, (11.0, 8.0)


LEGEND = (("found, and sure", GREEN), ("found, and possible", BLUE), ("found, but wrong", ORANGE))
"""Colours of links that were found."""


def draw_alone(pair: Aligned, figure: Figure) -> None:
    """A pair in a figure of its own, of its `size`."""
    figure.set_layout_engine(None)
    width, height = pair.size
    right, below = CELL * len(pair.f), CELL * len(pair.e)
    draw_pair(figure.add_axes((1 - (right + MARGIN) / width, MARGIN / height, right / width, below / height)), pair)


def draw_pair(axes: Axes, pair: Aligned) -> None:
    """English words down, French ones across; truth as frames and shades, predicted links as coloured squares."""
    for j, k in sorted(pair.possible):
        axes.add_patch(Rectangle((k - 0.5, j - 0.5), 1, 1, facecolor=GRID))
    for j, k in sorted(pair.predicted):
        colour = GREEN if (j, k) in pair.sure else BLUE if (j, k) in pair.possible else ORANGE
        axes.add_patch(Rectangle((k - 0.4, j - 0.4), 0.8, 0.8, facecolor=colour))
    for j, k in sorted(pair.sure):
        axes.add_patch(Rectangle((k - 0.5, j - 0.5), 1, 1, fill=False, edgecolor=INK, linewidth=1.0))
    axes.set(xlim=(-0.5, len(pair.f) - 0.5), ylim=(len(pair.e) - 0.5, -0.5), aspect="equal")
    axes.set_xticks(range(len(pair.f)), pair.f, rotation=90, fontsize=8)
    axes.set_yticks(range(len(pair.e)), pair.e, fontsize=8)
    axes.xaxis.tick_top()
    axes.grid(False)
    axes.tick_params(length=0)
    axes.spines[:].set(visible=True, color=GREY)


def _links(arrays: dict[str, np.ndarray], name: str, i: int) -> Links:
    start, stop = arrays[f"{name}_ptr"][i : i + 2]
    return {(j, k) for j, k in np.asarray(arrays[name][start:stop]).tolist()}


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' * (number != 1)}"
