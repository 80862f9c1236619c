"""Methods compared (O16 Fig. 3, 5). `gaps.png`: one column per lambda; the gap over effective passes and over seconds.

Its title says who needs least.
"""

from __future__ import annotations

from gapwise.stages.reports.bounds import gap_label
from gapwise.stages.reports.costs import conclusion, summary
from gapwise.stages.reports.curves import AXES, Runs, by_lambda, draw_bands, lambda_title, trace_attributes
from gapwise.stages.reports.paint import figure_in, legend_beside, over_all
from gapwise.stages.reports.styles import step_styles
from gapwise.stages.reports.suboptimality import read_suboptimality
from gapwise.stages.reports.tables import Compared
from gapwise.storage.backend import Location


def make(runs: Runs, folder: Location) -> Compared:
    curves = read_suboptimality(runs)
    columns, style, compared = by_lambda(curves), step_styles(runs), summary(curves)
    with figure_in(folder / "figures" / "gaps.png", (4.4 * len(columns) + 1.8, 7.6)) as figure:
        grid = figure.subplots(2, len(columns), squeeze=False)
        for j, (lam, variants) in enumerate(columns.items()):
            for i, over in enumerate(AXES):
                draw_bands(grid[i, j], variants, over, "gap", style)
            grid[0, j].set_title(lambda_title(lam, variants))
        for row in grid:
            row[0].set_ylabel(gap_label(trace_attributes(runs)))
        legend_beside(figure, grid[0, 0])
        over_all(figure, conclusion(compared["table"], ("passes", "seconds")))
    return {"figures": ["gaps.png"], **compared}
