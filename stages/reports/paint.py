"""Paint: the palette of all figures, their shared axes, and the function that saves a figure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NotRequired, TypedDict

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter

from gapwise.records import Record
from gapwise.stages.reports.formats import FORMATS, wanted
from gapwise.storage.backend import Location
from gapwise.storage.files import aside, publish

BLUE, ORANGE, GREEN, GREY = "#0072b2", "#d55e00", "#009e73", "#718096"
"""Of Okabe and Ito's palette, which every kind of colour vision tells apart; and a grey."""
PALE, VIOLET, SKY, GOLD = "#a0aec0", "#cc79a7", "#56b4e9", "#b8860b"
SPARE = (BLUE, ORANGE, GREEN, VIOLET, SKY, GREY, GOLD, "#000000")
"""Colours of lines whose method has no colour in `styles`."""


class Style(TypedDict):
    """What matplotlib draws a line with."""

    color: str
    ls: str | tuple[int, tuple[int, ...]]
    lw: NotRequired[float]


LAMBDA_FALLS = "λ: strong regularization (left) to weak (right)"
"""The title of an axis of lambda."""

StyleOf = Callable[[str, int], Style]
"""The style of a variant, whose number among the lines decides where its method has no colour of its own."""

LOOK: dict[Any, object] = {
    "font.size": 10,
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e2e8f0",
    "axes.axisbelow": True,
    "legend.frameon": False,
    "lines.linewidth": 1.6,
    "lines.markersize": 4,
    "svg.hashsalt": "gapwise",
    "pdf.fonttype": 42,
}
ROW = 8.0
"""Points between the names of two lines, at least."""
COLUMN, PAGE = 4.6, 9.5
"""Inches of a figure whose text has 7 points when it is printed 8 cm or 16.5 cm wide."""
ROOM = 1.15
"""How much taller figures become relative to their width there, because text keeps its size."""
UNDATED: dict[str, dict[str, None]] = {"png": {"Software": None}, "pdf": {"CreationDate": None}, "svg": {"Date": None}}
"""What keeps the time out of files."""


@contextmanager
def figure_in(target: Location, size: tuple[float, float], dpi: int = 130) -> Iterator[Figure]:
    """A figure of `size` inches that is saved, atomically, when the block ends without an error.

    The PNG file is `target`; the other formats of `formats.saved_as` lie beside it, laid out for paper. Equal figures
    are equal bytes.
    """
    with rc_context(LOOK):
        figure = Figure(figsize=size)
        FigureCanvasAgg(figure)
        yield figure
        target.parent.mkdir(parents=True, exist_ok=True)
        stem = target.name.rsplit(".", 1)[0]
        for form in sorted(wanted.get(), key=FORMATS.index):
            if form != "png" and figure.get_figwidth() == size[0]:
                to_paper(figure)
            file = target.parent / f"{stem}.{form}"
            _lay_out(figure, dpi)
            packed: Record = {"pil_kwargs": {"compress_level": 3}} if form == "png" else {}  # half the time of 6
            figure.savefig(aside(file), dpi=dpi, format=form, metadata=UNDATED[form], **packed)
            publish(file)


def _lay_out(figure: Figure, dpi: int) -> None:
    """Place the axes of a figure; while it is saved matplotlib would draw all of it once more for that."""
    figure.set_dpi(dpi)
    figure.set_layout_engine("constrained")
    engine = figure.get_layout_engine()
    assert engine is not None
    engine.execute(figure)
    figure.set_layout_engine("none")


def to_paper(figure: Figure) -> None:
    """Lay a figure out again for the width of a column or of a page, with its text and lines as large as they are."""
    wide, high = figure.get_size_inches()
    width = COLUMN if wide <= 8.0 else PAGE
    figure.set_size_inches(width, ROOM * high * width / wide)


def legend_beside(figure: Figure, axes: Axes) -> None:
    """The legend of all plots, right of them and below a title, with the lines of one of them."""
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right center", handlelength=2.6)


def name_ends(axes: Axes) -> None:
    """Write the name of each coloured line beside its last point, moved down where names would overlap; grey ones have none.

    The axis of x becomes longer by a third, which is room for the names.
    """
    left, right = axes.get_xlim()
    axes.set_xlim(left, right * (right / left) ** (1 / 3) if axes.get_xscale() == "log" else right + (right - left) / 3)
    axes.get_ylim()  # which matplotlib computes when it is asked for
    ends = []
    for line in axes.get_lines():
        points = np.column_stack([np.asarray(line.get_xdata(), float), np.asarray(line.get_ydata(), float)])
        points = points[np.isfinite(points).all(axis=1)]
        if line.get_color() != PALE and len(points):
            height = float(axes.transData.transform(points[-1])[1]) * 72.0 / axes.figure.dpi
            ends.append((height, str(line.get_label()), str(line.get_color()), points[-1]))
    above = np.inf
    for height, name, colour, end in sorted(ends, key=lambda end: -end[0]):
        above = min(height, above - ROW)
        axes.annotate(
            name, (float(end[0]), float(end[1])), (4.0, above - height), textcoords="offset points", fontsize=7,
            va="center", color=colour, annotation_clip=False,
        )  # fmt: skip


def over_all(figure: Figure, conclusion: str) -> None:
    """What a figure of several plots shows, in words, at its top."""
    if conclusion:
        figure.suptitle(conclusion, x=0.01, ha="left", fontsize=11)


def finish(rows: np.ndarray, names: Sequence[str]) -> None:
    """Take the axes of pictures, (rows, columns), away, and name the rows."""
    for axes in rows.ravel():
        axes.set(xticks=[], yticks=[])
        axes.grid(False)
        axes.spines[:].set_visible(False)
    for axes, name in zip(rows[:, 0], names, strict=True):
        axes.set_ylabel(name)


def lambda_axis(axes: Axes, lam: np.ndarray) -> None:
    """Make the x axis that of lambda: logarithmic, falling from left to right as a path does."""
    low, high = float(np.min(lam)), float(np.max(lam))
    room = max((high / low) ** 0.04, 1.05) if high > 2 * low else 3.0
    axes.set_xscale("log")
    axes.set_xlim(high * room, low / room)
    if high / low > 1e3:
        axes.xaxis.set_major_locator(LogLocator(numticks=8))
        axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_xlabel(LAMBDA_FALLS)


def plain_ticks(axis: Axis) -> None:
    """Label a logarithmic axis with plain numbers at 1, 2 and 5 of each decade."""
    axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter("{x:g}")
    axis.set_minor_formatter(NullFormatter())
