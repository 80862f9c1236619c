"""All solvers on one data set (LJ13 Fig. 1): one column per lambda, medians in bands over seeds.

`passes.png` and `seconds.png`: primal and dual suboptimality, the gap and the test loss, over effective passes and over
seconds. `solvers.md` and `solvers.csv`: oracle calls and seconds to given accuracies; stages/README.md has what theory says.

Lines end where the passes or seconds of a run do. A method without a dual point has neither dual suboptimality nor gap.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from gapwise.stages.reports.band_grid import draw_grid
from gapwise.stages.reports.bounds import gap_label
from gapwise.stages.reports.costs import conclusion, costs_to_levels, lines, summarised
from gapwise.stages.reports.curves import AXES, Curves, Runs, Trace, trace_attributes
from gapwise.stages.reports.paint import StyleOf
from gapwise.stages.reports.styles import method_styles
from gapwise.stages.reports.suboptimality import read_suboptimality
from gapwise.stages.reports.tables import Compared, write_csv
from gapwise.storage.backend import Location
from gapwise.storage.files import aside, publish

ROWS = {
    "primal_excess": "primal suboptimality",
    "dual_lack": "dual suboptimality",
    "gap": "duality gap",
    "test_loss": "test loss",
}


def make(runs: Runs, folder: Location) -> Compared:
    curves = read_suboptimality(runs)
    table = summarised(costs_to_levels(curves, ("primal_excess", "gap")))
    text = lines(table, "calls")
    aside(folder / "solvers.md").write_text("\n".join(text).strip() + "\n", encoding="utf-8")
    publish(folder / "solvers.md")
    write_csv(folder / "solvers.csv", table)
    figures = ["passes.png", "seconds.png"]
    for name, over in zip(figures, ("passes", "seconds"), strict=True):
        gap, target = gap_label(trace_attributes(runs)), folder / "figures" / name
        _paint(curves, method_styles(runs), over, gap, target, conclusion(table, ("calls", "seconds"), "primal_excess"))
    return {"figures": figures, "table": table, "text": text}


def _paint(curves: Curves, style: StyleOf, over: str, gap: str, target: Location, title: str) -> None:
    rows = {
        quantity: label
        for quantity, label in {**ROWS, "gap": gap}.items()
        if quantity in next(iter(curves.values()))[0]
    }
    draw_grid(
        target, curves, rows, over, style, x_label=AXES[over], linear=("test_loss",), log=True,
        floor=lambda variants: 0.3 * _smallest_gap(variants), title=title,
    )  # fmt: skip


def _smallest_gap(variants: Mapping[str, Sequence[Trace]]) -> float:
    """The least positive gap of any run: below it, suboptimalities are not known."""
    gaps = np.concatenate([trace["gap"] for traces in variants.values() for trace in traces])
    return float(np.min(gaps[np.isfinite(gaps) & (gaps > 0.0)], initial=np.inf))
