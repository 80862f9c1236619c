"""Paint: the palette and the look of all figures, which matplotlib draws, and how they become files and parts of pages."""

from __future__ import annotations

import base64
import io
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure, FigureBase
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from gapwise.records import Record
from gapwise.storage.backend import Location
from gapwise.storage.files import aside, publish

BLUE, ORANGE, GREEN, GREY = "#0072b2", "#d55e00", "#009e73", "#718096"
"""Of Okabe and Ito's palette, which every kind of colour vision tells apart; and a grey."""
COLOURS = (BLUE, ORANGE, GREEN, "#cc79a7", "#56b4e9", GREY, "#b8860b", "#000000")
DASHES: tuple[str | tuple[int, tuple[int, ...]], ...] = ("-", "--", ":", "-.", (0, (3, 1, 1, 1)))
LAMBDA_FALLS = "λ: strong regularization (left) to weak (right)"
"""The title of an axis of lambda."""
INK, GRID, PAPER = "#000000", "#e2e8f0", "#fffffe"
"""Colours that a page has names for."""
BEHIND: dict[str, object] = {"facecolor": PAPER, "edgecolor": "none", "pad": 1.0, "alpha": 0.8}
"""Of a text that a line may run through."""

LOOK: dict[Any, object] = {
    "font.size": 10,
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": GRID,
    "axes.axisbelow": True,
    "legend.frameon": False,
    "legend.fontsize": 9,
    "lines.linewidth": 1.6,
    "lines.markersize": 4,
    "svg.hashsalt": "gapwise",
    "pdf.fonttype": 42,
}
COLUMN, PAGE = 4.6, 9.5
"""Inches of a figure whose text has 7 points when it is printed 8 cm or 16.5 cm wide."""
ROOM = 1.15
"""How much taller figures become relative to their width there, because text keeps its size."""
UNDATED: dict[str, dict[str, None]] = {"png": {"Software": None}, "pdf": {"CreationDate": None}, "svg": {"Date": None}}
"""What keeps the time out of files."""

Draw = Callable[[Figure], None]
"""Draws into an empty figure."""
Size = tuple[float, float]
"""Width and height in inches."""


def save(draw: Draw, target: Location, size: Size, formats: Sequence[str] = ("png",), dpi: int = 150) -> list[Location]:
    """Draw into the PNG file `target`, atomically, or into files beside it for other formats; returns the files.

    PDF and SVG are laid out for paper. Equal figures are equal bytes.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    files = [target.parent / f"{target.name.rsplit('.', 1)[0]}.{form}" for form in formats]
    for form, file in zip(formats, files, strict=True):
        packed: Record = {"pil_kwargs": {"compress_level": 3}} if form == "png" else {}  # half the time of 6
        with rc_context(LOOK):
            figure = _drawn(draw, size if form == "png" else _on_paper(size), dpi)
            figure.savefig(aside(file), dpi=dpi, format=form, metadata=UNDATED[form], **packed)
        publish(file)
    return files


def as_svg(draw: Draw, size: Size) -> str:
    """The figure as an SVG element of a page, whose style gives the font, and the colours of text and grid."""
    stream = io.StringIO()
    with rc_context({**LOOK, "svg.fonttype": "none"}):
        figure = _drawn(draw, size, dpi=72)
        figure.savefig(stream, format="svg", metadata={"Date": None, "Creator": None}, transparent=True)
    element = stream.getvalue().partition("<svg")[2]
    element = re.sub(r"<metadata>.*?</metadata>", "", f"<svg{element}", count=1, flags=re.DOTALL)
    return element.replace(INK, "currentColor").replace(GRID, "var(--grid)").replace(PAPER, "var(--paper)")


def as_jpeg(draw: Draw, size: Size) -> str:
    """The figure as a data URI, for photographs."""
    stream = io.BytesIO()
    with rc_context(LOOK):
        _drawn(draw, size, dpi=100).savefig(stream, format="jpeg", pil_kwargs={"quality": 85})
    return f"data:image/jpeg;base64,{base64.b64encode(stream.getvalue()).decode()}"


def _drawn(draw: Draw, size: Size, dpi: int) -> Figure:
    """A figure with its axes in their places; while it is saved matplotlib would draw all of it once more for that."""
    figure = Figure(figsize=size, dpi=dpi, layout="constrained")
    FigureCanvasAgg(figure)
    draw(figure)
    if (engine := figure.get_layout_engine()) is not None:
        engine.execute(figure)
        figure.set_layout_engine("none")
    return figure


def stacked(figure: Figure, count: int, title: str = "") -> list[Axes]:
    """Plots one below the other in their usual margins, for a tenth of a second less than a layout takes to find them."""
    figure.set_layout_engine(None)
    width, height = figure.get_size_inches()
    left, right, bottom = 0.7 / width, 1 - 0.15 / width, 0.5 / height
    top = 1 - (0.65 if title else 0.4) / height
    grid = figure.add_gridspec(count, 1, left=left, right=right, bottom=bottom, top=top, hspace=0.42)
    figure.suptitle(title, x=left, y=1 - 0.08 / height, ha="left", va="top", fontsize=10)
    return [figure.add_subplot(grid[k]) for k in range(count)]


def _on_paper(size: Size) -> Size:
    """The size for the width of a column or of a page, where text and lines keep theirs."""
    width = COLUMN if size[0] <= 8.0 else PAGE
    return width, ROOM * size[1] * width / size[0]


def looks(names: Sequence[str]) -> dict[str, Record]:
    """The colour and the dash of each line; no two lines look alike."""
    unique = dict.fromkeys(names)
    count = len(COLOURS)
    return {
        name: {"color": COLOURS[k % count], "ls": DASHES[k // count % len(DASHES)], "label": name.replace("_", " ")}
        for k, name in enumerate(unique)
    }


def legend_beside(figure: FigureBase, axes: Axes) -> None:
    """The legend of all plots, right of them, with the lines of one of them."""
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right center", handlelength=2.6)


def over_all(figure: FigureBase, conclusion: str) -> None:
    """What a figure of several plots shows, in words, at its top."""
    if conclusion:
        figure.suptitle(conclusion, x=0.01, ha="left", fontsize=11)


def level(axes: Axes, value: float, words: str, side: str = "right") -> None:
    """A dashed horizontal line with its name above one of its ends."""
    axes.axhline(value, color=GREY, ls="--", lw=1.0)
    axes.annotate(
        words, (1.0 if side == "right" else 0.0, value), (-2.0 if side == "right" else 4.0, 3.0),
        xycoords=axes.get_yaxis_transform(), textcoords="offset points", ha=side, color=GREY, fontsize=9,
    )  # fmt: skip


def lambda_axis(axes: Axes, lam: np.ndarray | Sequence[float]) -> None:
    """Make the x axis that of lambda: logarithmic, falling from left to right as a path does."""
    low, high = float(np.min(lam)), float(np.max(lam))
    room = max((high / low) ** 0.04, 1.05) if high > 2 * low else 3.0
    axes.set_xscale("log")
    axes.set_xlim(high * room, low / room)
    few_ticks(axes.xaxis, high / low)
    axes.set_xlabel(LAMBDA_FALLS)


def few_ticks(axis: Axis, ratio: float) -> None:
    """Label a logarithmic axis with plain numbers, over less than three decades at 1, 2 and 5 of each."""
    axis.set_major_locator(LogLocator(subs=(1, 2, 5) if ratio < 1e3 else (1,), numticks=8))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())
