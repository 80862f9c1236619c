"""Multi-plane BCFW against its relatives (S15 Fig. 4-6): one column per lambda, medians in bands over seeds.

`calls.png` and `seconds.png`: primal and dual suboptimality and the gap, over exact oracle calls and over seconds.
`planes.png`: how large the working sets are, and how many approximate passes an outer iteration has.

Suboptimalities are bounds from above: see `stages.reports.suboptimality`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from gapwise.stages.reports.band_grid import draw_grid
from gapwise.stages.reports.bounds import gap_label
from gapwise.stages.reports.costs import summary
from gapwise.stages.reports.curves import Curves, Runs, trace_attributes
from gapwise.stages.reports.paint import SPARE, Style, StyleOf
from gapwise.stages.reports.suboptimality import read_suboptimality
from gapwise.stages.reports.tables import Compared
from gapwise.storage.backend import Location
from gapwise.storage.results import read_iterations

ROWS = {"primal_excess": "primal suboptimality", "dual_lack": "dual suboptimality"}
PLANES = {"planes": "labellings in a working set", "approximate_passes": "approximate passes\nan outer iteration"}
CALLS = "exact oracle calls / n"


def make(runs: Runs, folder: Location) -> Compared:
    curves = read_suboptimality(runs)
    names = list(dict.fromkeys(variant for variant, _ in curves))
    rows, figures = {**ROWS, "gap": gap_label(trace_attributes(runs))}, []
    for name, over in (("calls.png", "passes"), ("seconds.png", "seconds")):
        figures.append(name)
        _paint(curves, names, over, rows, folder / "figures" / name)
    iterations = read_outer_iterations(runs, curves)
    if iterations:
        figures.append("planes.png")
        _paint(iterations, names, "passes", PLANES, folder / "figures" / figures[-1])
    return {"figures": figures, **summary(curves)}


def read_outer_iterations(runs: Runs, curves: Curves) -> Curves:
    """What the runs recorded of their outer iterations, with a column `passes`; only of variants with approximate passes.

    Without the outer iteration in which a limit ended the solve: it has an exact pass only.
    """
    iterations: Curves = {}
    for variant, lam, _, run_dir in runs:
        columns = read_iterations(run_dir)
        if columns and np.any(columns["approximate_passes"] > 0):
            ended = columns["approximate_passes"][-1] == 0.0
            columns = {name: column[:-1] for name, column in columns.items()} if ended else columns
            trace = curves[variant, lam][0]
            blocks = trace["oracle_calls"][-1] / trace["passes"][-1]
            iterations.setdefault((variant, lam), []).append(
                {**columns, "lambda": trace["lambda"], "passes": columns["oracle_calls"] / blocks}
            )
    return iterations


def _style(names: Sequence[str]) -> StyleOf:
    """Colours in the order of all variants, so that a variant has the same one in all figures; dashes for averages."""

    def style(variant: str, _: int) -> Style:
        return {"color": SPARE[names.index(variant) % len(SPARE)], "ls": "--" if "avg" in variant else "-"}

    return style


def _paint(curves: Curves, names: Sequence[str], over: str, rows: Mapping[str, str], target: Location) -> None:
    label = CALLS if over == "passes" else over
    draw_grid(target, curves, rows, over, _style(names), x_label=label, linear=PLANES)
