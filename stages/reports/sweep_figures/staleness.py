"""Staleness of block gaps (O16 Fig. 1). `staleness.png`: one row per lambda.

The gap over passes; stale / true gap; and by how much Theorem 2 lets gap sampling improve on uniform sampling, from the
block gaps that the solver knows. Curvatures are bounded by the largest ||psi_i(y)|| of the oracle's answers at snapshots.
"""

from __future__ import annotations

from matplotlib import colormaps
from matplotlib.colors import to_hex

from gapwise.stages.reports.bounds import gap_label
from gapwise.stages.reports.costs import summary
from gapwise.stages.reports.curves import Runs, by_lambda, draw_bands, lambda_title, trace_attributes
from gapwise.stages.reports.paint import Style, figure_in, legend_beside
from gapwise.stages.reports.suboptimality import read_suboptimality
from gapwise.stages.reports.tables import Compared
from gapwise.storage.backend import Location


def make(runs: Runs, folder: Location) -> Compared:
    curves = read_suboptimality(runs)
    rows = by_lambda(curves)
    with figure_in(folder / "figures" / "staleness.png", (15.0, 3.9 * len(rows))) as figure:
        grid = figure.subplots(len(rows), 3, squeeze=False)
        for row, (lam, variants) in zip(grid, rows.items(), strict=True):
            draw_bands(row[0], variants, "passes", "gap", _style)
            draw_bands(row[1], variants, "passes", "stale_ratio", _style)
            draw_bands(row[2], variants, "passes", "predicted", _style)
            for axes in row[1:]:
                axes.axhline(1.0, color="black", lw=0.8)
            row[0].set_ylabel(gap_label(trace_attributes(runs)))
            row[1].set_ylabel("ratio")
            row[0].set_title(lambda_title(lam, variants))
            row[1].set_yscale("linear")
            row[1].set_title("sum of last known block gaps / true gap, at each snapshot")
            row[2].set_title("improvement that O16 Theorem 2 predicts")
            row[2].set_ylabel("χ(gaps)³ / χ(curvatures)")
        legend_beside(figure, grid[0, 0])
    return {"figures": ["staleness.png"], **summary(curves)}


def _style(variant: str, number: int) -> Style:
    if variant.startswith("uniform"):
        return {"color": "black", "ls": "--"}
    return {"color": to_hex(colormaps["viridis"](min(0.18 * number, 0.95))), "ls": "-"}
