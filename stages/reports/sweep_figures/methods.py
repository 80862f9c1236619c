"""Methods compared (O16 Fig. 3, 5). `gaps.png`: one column per lambda; the gap over effective passes and over seconds."""

from __future__ import annotations

from typing import Any

from gapwise.stages.reports.bounds import gap_label
from gapwise.stages.reports.comparison import summary
from gapwise.stages.reports.curves import AXES, Runs, by_lambda, draw_bands, lambda_title, read_curves, trace_attributes
from gapwise.stages.reports.paint import figure_in, method_style
from gapwise.storage.backend import Location


def make(runs: Runs, folder: Location) -> dict[str, Any]:
    curves = read_curves(runs)
    columns = by_lambda(curves)
    with figure_in(folder / "figures" / "gaps.png", (4.4 * len(columns) + 1.8, 7.6)) as figure:
        grid = figure.subplots(2, len(columns), squeeze=False)
        for j, (lam, variants) in enumerate(columns.items()):
            for i, over in enumerate(AXES):
                draw_bands(grid[i, j], variants, over, "gap", method_style)
            grid[0, j].set_title(lambda_title(lam, variants))
        for row in grid:
            row[0].set_ylabel(gap_label(trace_attributes(runs)))
        handles, labels = grid[0, 0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside right upper", handlelength=2.6)
    return {"figures": ["gaps.png"], **summary(curves)}
