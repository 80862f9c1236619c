"""Work of paths and grids. `work.png`: effective passes and seconds spent down to each lambda, one line per run."""

from __future__ import annotations

from gapwise.stages.reports.chart_files import save_charts
from gapwise.stages.reports.costs import path_costs, path_lines
from gapwise.stages.reports.curves import Runs
from gapwise.stages.reports.formats import wanted
from gapwise.stages.reports.stored import read_numbers
from gapwise.stages.reports.sweep_charts import work_chart
from gapwise.stages.reports.tables import Compared
from gapwise.storage.backend import Location


def make(runs: Runs, folder: Location) -> Compared:
    paths = [(name, read_numbers(run_dir)[0]) for name, _, _, run_dir in runs]
    made = save_charts({"work": work_chart(paths)}, folder / "figures", wanted.get())
    table = path_costs((name, run_dir) for name, _, _, run_dir in runs)
    return {"figures": ["work.png"] if made else [], "table": table, "text": path_lines(table)}
