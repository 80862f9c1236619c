"""Alignments: words of test sentences against each other, with the links found and those of the annotators."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

from stages.datasets.alignment.links import word_pair
from stages.reports.paint import BLUE, GREEN, GREY, ORANGE
from stages.reports.stored import StoredRun

SIZE = (11.0, 8.0)
SHOWN = 6
"""Most sentences: those of typical length with the most links that are wrong or missed, and as many of the others."""
WORDS = range(6, 16)
"""Lengths of sentences, in English words, that are shown."""


def applies(run: StoredRun) -> bool:
    """True for sentence pairs with predictions."""
    return bool(run.predictions) and {"sure", "possible", "text"} <= set(run.test_blocks)


def paint(figure: Figure, run: StoredRun) -> None:
    pairs = [Shown(run, i) for i in range(run.test_blocks["number"].size)]
    typical = [pair for pair in pairs if len(pair.e) in WORDS] or pairs
    ranked = sorted(typical, key=lambda pair: -pair.mistakes)
    half = (min(SHOWN, len(ranked)) + 1) // 2
    middle = len(ranked) // 2
    chosen = ranked[:half] + ranked[max(half, middle) :][: SHOWN - half]
    rows = figure.subplots(2, -(-len(chosen) // 2), squeeze=False)
    for axes, pair in zip(rows.ravel(), chosen, strict=False):
        pair.draw(axes)
    for axes in rows.ravel()[len(chosen) :]:
        axes.set_visible(False)
    handles = [
        Patch(color=GREEN, label="found, sure"), Patch(color=BLUE, label="found, possible"),
        Patch(color=ORANGE, label="found, wrong"), Patch(facecolor="none", edgecolor="black", label="sure"),
        Patch(facecolor="#edf2f7", edgecolor="none", label="possible"),
    ]  # fmt: skip
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles))


class Shown:
    """A sentence pair, its links and those found."""

    def __init__(self, run: StoredRun, i: int) -> None:
        arrays, predictions = run.test_blocks, run.predictions
        self.number = int(arrays["number"][i])
        self.e, self.f = word_pair(arrays, i)
        self.sure, self.possible = (_links(arrays, name, i) for name in ("sure", "possible"))
        start, stop = predictions["label_ptr"][i : i + 2]
        entries = predictions["labels"][start:stop].reshape(len(self.e), -1).astype(int)
        first, column = arrays["counts_ptr"][i], arrays["column"][arrays["column_ptr"][i] :]
        begin = np.concatenate([[0], np.cumsum(arrays["counts"][first : first + len(self.e)], dtype=np.int64)])
        self.found = {(j, int(column[begin[j] + k - 1])) for j, row in enumerate(entries) for k in row if k}

    @property
    def mistakes(self) -> int:
        """Links found that are not possible, and sure ones that are not found."""
        return len(self.found - self.possible) + len(self.sure - self.found)

    def draw(self, axes: Axes) -> None:
        for j, k in self.possible - self.found:
            axes.add_patch(Rectangle((k - 0.5, j - 0.5), 1, 1, facecolor="#edf2f7"))
        for j, k in self.found:
            colour = GREEN if (j, k) in self.sure else BLUE if (j, k) in self.possible else ORANGE
            axes.add_patch(Rectangle((k - 0.4, j - 0.4), 0.8, 0.8, facecolor=colour))
        for j, k in self.sure:
            axes.add_patch(Rectangle((k - 0.5, j - 0.5), 1, 1, fill=False, edgecolor="black", linewidth=1.0))
        axes.set(xlim=(-0.5, len(self.f) - 0.5), ylim=(len(self.e) - 0.5, -0.5), aspect="equal")
        axes.set_xticks(range(len(self.f)), self.f, rotation=90, fontsize=7)
        axes.set_yticks(range(len(self.e)), self.e, fontsize=7)
        axes.set_title(f"sentence {self.number}", fontsize=8)
        axes.grid(False)
        axes.tick_params(length=0)
        axes.spines[:].set_visible(True)
        axes.spines[:].set_color(GREY)


def _links(arrays: dict[str, np.ndarray], name: str, i: int) -> set[tuple[int, int]]:
    start, stop = arrays[f"{name}_ptr"][i : i + 2]
    return {(j, k) for j, k in np.asarray(arrays[name][start:stop]).tolist()}
