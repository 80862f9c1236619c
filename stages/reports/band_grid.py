"""Several quantities of a sweep's runs in one figure: a row per quantity, a column per lambda."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from gapwise.stages.reports.curves import Curves, Trace, by_lambda, draw_bands, lambda_title
from gapwise.stages.reports.paint import StyleOf, figure_in, legend_beside, name_ends, over_all
from gapwise.storage.backend import Location


def draw_grid(
    target: Location,
    curves: Curves,
    rows: Mapping[str, str],
    over: str,
    style: StyleOf,
    *,
    x_label: str,
    linear: Collection[str] = (),
    log: bool = False,
    floor: Callable[[Mapping[str, Sequence[Trace]]], float] | None = None,
    title: str = "",
) -> None:
    """Draw the columns `rows`, {name: label}, of all traces as medians within bands into the file `target`.

    Parameters
    ----------
    over : str
        passes or seconds; see `curves.draw_bands`, also for `log`.
    linear : collection of str
        Quantities with a linear axis; the others have a logarithmic one.
    floor : callable, optional
        The least value of the logarithmic axes, from the traces of a lambda by variant.
    title : str
        The conclusion, above all plots.
    """
    columns = by_lambda(curves)
    with figure_in(target, (4.1 * len(columns) + 1.9, 2.8 * len(rows) + 0.4)) as figure:
        grid = figure.subplots(len(rows), len(columns), squeeze=False, sharex="col")
        for j, (lam, variants) in enumerate(columns.items()):
            for i, (quantity, label) in enumerate(rows.items()):
                draw_bands(grid[i, j], variants, over, quantity, style, log)
                grid[i, j].set_xlabel("")
                if quantity in linear:
                    grid[i, j].set_yscale("linear")
                elif floor is not None:
                    grid[i, j].set_ylim(bottom=floor(variants))
                if j == 0:
                    grid[i, j].set_ylabel(label)
            name_ends(grid[0, j])
            grid[0, j].set_title(lambda_title(lam, variants))
            grid[-1, j].set_xlabel(x_label)
        legend_beside(figure, grid[0, 0])
        over_all(figure, title)
