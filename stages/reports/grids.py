"""Grids of plots over many runs: medians in bands over seeds, or numbers of whole paths over lambda."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from gapwise.stages.reports.curves import AXES, Curves, Trace, band, by_lambda, lambda_title
from gapwise.stages.reports.paint import Draw, Size, lambda_axis, legend_beside, looks, over_all

PATHS = {
    "test_loss": "test loss",
    "effective_passes": "effective passes so far",
    "seconds": "seconds of solving so far",
    "breakpoints": "λ's solved so far",
}
"""What is drawn of paths, with the label of its axis."""
Paths = Mapping[str, Mapping[str, np.ndarray]]
"""Name of a run to the arrays of its path.zarr."""


class Row(NamedTuple):
    """A row of plots."""

    quantity: str
    """a column of traces (`curves.column`)"""
    label: str
    over: str = "passes"
    linear: bool = False
    at_one: bool = False
    """whether a line marks the value 1"""


def bands(
    curves: Curves,
    rows: Sequence[Row],
    *,
    title: str = "",
    log: bool = False,
    floor: Callable[[Mapping[str, Sequence[Trace]]], float] | None = None,
    x_labels: Mapping[str, str] = AXES,
) -> tuple[Draw, Size]:
    """A row of plots for each quantity and a column for each lambda: a line and a band for each variant.

    Parameters
    ----------
    title : str
        The conclusion, above all plots.
    log : bool
        Whether the axis of passes is logarithmic, as that of seconds is.
    floor : callable, optional
        The least value of the logarithmic axes, from the traces of a lambda by variant.
    """
    columns = by_lambda(curves)
    styles = looks([variant for variant, _ in curves])
    shared = len({row.over for row in rows}) == 1

    def draw(figure: Figure) -> None:
        grid = figure.subplots(len(rows), len(columns), squeeze=False, sharex="col" if shared else False)
        for j, (lam, variants) in enumerate(columns.items()):
            for i, row in enumerate(rows):
                _bands(grid[i, j], variants, row, styles, log)
                if floor is not None and not row.linear:
                    grid[i, j].set_ylim(bottom=floor(variants))
                if j == 0:
                    grid[i, j].set_ylabel(row.label)
                if i == len(rows) - 1 or not shared:
                    grid[i, j].set_xlabel(x_labels[row.over])
            grid[0, j].set_title(lambda_title(lam, variants))
        fullest = max(range(len(columns)), key=lambda j: len([*columns.values()][j]))
        legend_beside(figure, grid[0, fullest])
        over_all(figure, title)

    return draw, (4.2 * len(columns) + 1.9, 3.0 * len(rows) + 0.5)


def _bands(
    axes: Axes, variants: Mapping[str, Sequence[Trace]], row: Row, styles: Mapping[str, dict], log: bool
) -> None:
    for variant, traces in variants.items():
        x, middle, least, most = band(traces, row.over, row.quantity, log)
        axes.plot(x, middle, **styles[variant])
        if len(traces) > 1:
            axes.fill_between(x, least, most, color=styles[variant]["color"], alpha=0.12, lw=0)
    axes.set(yscale="linear" if row.linear else "log", xscale="log" if log or row.over == "seconds" else "linear")
    if row.at_one:
        axes.axhline(1.0, color="black", lw=0.8)


def over_lambda(paths: Paths, quantities: Sequence[str]) -> tuple[Draw, Size]:
    """A plot for each of the quantities of `PATHS`, a line for each path or grid."""
    styles = looks([*paths])

    def draw(figure: Figure) -> None:
        plots = figure.subplots(-(-len(quantities) // 2), min(len(quantities), 2), squeeze=False).ravel()
        for axes, quantity in zip(plots, quantities, strict=True):
            for name, arrays in paths.items():
                if (values := _so_far(arrays, quantity)) is not None:
                    marker = "o" if arrays["lambda"].size <= 60 else ""
                    axes.plot(arrays["lambda"], values, **styles[name], marker=marker, ms=3)
            axes.set(yscale="linear" if quantity == "test_loss" else "log", ylabel=PATHS[quantity])
            lambda_axis(axes, np.concatenate([arrays["lambda"] for arrays in paths.values()]))
        legend_beside(figure, plots[0])

    return draw, (6.2 * min(len(quantities), 2) + 1.9, 3.6 * -(-len(quantities) // 2))


def _so_far(arrays: Mapping[str, np.ndarray], quantity: str) -> np.ndarray | None:
    if quantity == "breakpoints":
        return np.arange(1, arrays["lambda"].size + 1)
    if quantity not in arrays:
        return None
    return arrays[quantity] if quantity == "test_loss" else np.cumsum(arrays[quantity])
