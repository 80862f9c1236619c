"""Alignments: words of test sentences against each other, with the links found and those of the annotators."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

from gapwise.stages.reports.alignments import Aligned, all_pairs, has_alignments
from gapwise.stages.reports.paint import BLUE, GREEN, GREY, ORANGE
from gapwise.stages.reports.stored import StoredRun

SIZE = (11.0, 8.0)
SHOWN = 6
"""Most sentences: those of typical length with the most links that are wrong or missed, and as many of the others."""
WORDS = range(6, 16)
"""Lengths of sentences, in English words, that are shown."""


def applies(run: StoredRun) -> bool:
    """True for sentence pairs with predictions."""
    return has_alignments(run)


def paint(figure: Figure, run: StoredRun) -> None:
    pairs = all_pairs(run)
    typical = [pair for pair in pairs if len(pair.e) in WORDS] or pairs
    ranked = sorted(typical, key=lambda pair: -pair.mistakes)
    half = (min(SHOWN, len(ranked)) + 1) // 2
    middle = len(ranked) // 2
    chosen = ranked[:half] + ranked[max(half, middle) :][: SHOWN - half]
    rows = figure.subplots(2, -(-len(chosen) // 2), squeeze=False)
    for axes, pair in zip(rows.ravel(), chosen, strict=False):
        draw(axes, pair)
    for axes in rows.ravel()[len(chosen) :]:
        axes.set_visible(False)
    handles = [
        Patch(color=GREEN, label="found, sure"), Patch(color=BLUE, label="found, possible"),
        Patch(color=ORANGE, label="found, wrong"), Patch(facecolor="none", edgecolor="black", label="sure"),
        Patch(facecolor="#edf2f7", edgecolor="none", label="possible"),
    ]  # fmt: skip
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles))


def draw(axes: Axes, pair: Aligned) -> None:
    """One sentence pair as a grid: English words down, French ones across."""
    for j, k in pair.possible - pair.predicted:
        axes.add_patch(Rectangle((k - 0.5, j - 0.5), 1, 1, facecolor="#edf2f7"))
    for j, k in pair.predicted:
        colour = GREEN if (j, k) in pair.sure else BLUE if (j, k) in pair.possible else ORANGE
        axes.add_patch(Rectangle((k - 0.4, j - 0.4), 0.8, 0.8, facecolor=colour))
    for j, k in pair.sure:
        axes.add_patch(Rectangle((k - 0.5, j - 0.5), 1, 1, fill=False, edgecolor="black", linewidth=1.0))
    axes.set(xlim=(-0.5, len(pair.f) - 0.5), ylim=(len(pair.e) - 0.5, -0.5), aspect="equal")
    axes.set_xticks(range(len(pair.f)), pair.f, rotation=90, fontsize=7)
    axes.set_yticks(range(len(pair.e)), pair.e, fontsize=7)
    axes.set_title(f"sentence {pair.number}", fontsize=8)
    axes.grid(False)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(True)
    axes.spines[:].set_color(GREY)
