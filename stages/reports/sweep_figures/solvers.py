"""All solvers on one data set (LJ13 Fig. 1): one column per lambda, medians in bands over seeds.

`passes.png` and `seconds.png`: primal and dual suboptimality, the gap and the test loss, over effective passes and over
seconds. `solvers.md` and `solvers.csv`: oracle calls and seconds to given accuracies beside what theory says (LJ13 Table 1).

Lines end where the passes or seconds of a run do. A method without a dual point has neither dual suboptimality nor gap.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from gapwise.stages.reports.bounds import gap_label
from gapwise.stages.reports.curves import (
    Curves,
    Runs,
    Trace,
    by_lambda,
    draw_bands,
    lambda_title,
    read_curves,
    trace_attributes,
)
from gapwise.stages.reports.paint import StyleOf, figure_in
from gapwise.stages.reports.styles import method_styles
from gapwise.stages.reports.suboptimality import calls_lines, calls_table, with_suboptimality
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
    curves = with_suboptimality(read_curves(runs))
    table = calls_table(curves)
    text = calls_lines(table)
    aside(folder / "solvers.md").write_text("\n".join(text).strip() + "\n", encoding="utf-8")
    publish(folder / "solvers.md")
    write_csv(folder / "solvers.csv", table)
    figures = ["passes.png", "seconds.png"]
    for name, over in zip(figures, ("passes", "seconds"), strict=True):
        _paint(curves, method_styles(runs), over, gap_label(trace_attributes(runs)), folder / "figures" / name)
    return {"figures": figures, "table": table, "text": text}


def _paint(curves: Curves, style: StyleOf, over: str, gap: str, target: Location) -> None:
    columns = by_lambda(curves)
    rows = {what: label for what, label in {**ROWS, "gap": gap}.items() if what in next(iter(curves.values()))[0]}
    with figure_in(target, (4.0 * len(columns) + 1.8, 2.7 * len(rows) + 0.4)) as figure:
        grid = figure.subplots(len(rows), len(columns), squeeze=False, sharex="col")
        for j, (lam, variants) in enumerate(columns.items()):
            for i, (what, label) in enumerate(rows.items()):
                axes = grid[i, j]
                draw_bands(axes, variants, over, what, style, log=True)
                if what == "test_loss":
                    axes.set_yscale("linear")
                else:
                    axes.set_ylim(bottom=0.3 * _smallest_gap(variants))
                if i + 1 < len(rows):
                    axes.set_xlabel("")
                if j == 0:
                    axes.set_ylabel(label)
            grid[0, j].set_title(lambda_title(lam, variants))
        handles, labels = grid[0, 0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside right upper", handlelength=2.6)


def _smallest_gap(variants: Mapping[str, Sequence[Trace]]) -> float:
    """The least positive gap of any run: below it, suboptimalities are not known."""
    gaps = np.concatenate([trace["gap"] for traces in variants.values() for trace in traces])
    return float(np.min(gaps[np.isfinite(gaps) & (gaps > 0.0)], initial=np.inf))
