"""The report of a sweep: its runs as a table, their losses and their work in one chart each, and the sweep's own figures."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from markupsafe import Markup

from gapwise.records import Facts
from gapwise.stages.certify.verdict import verdict_in
from gapwise.stages.reports.page import FILE, write_page
from gapwise.stages.reports.page.engine import fill
from gapwise.stages.reports.page.html import charts, number, paragraph, picture, table
from gapwise.stages.reports.page.pixels import saved
from gapwise.stages.reports.page.terms import term
from gapwise.stages.reports.stored import read_numbers
from gapwise.stages.reports.sweep_charts import coloured, work_chart
from gapwise.stages.reports.sweep_figures import figure_file
from gapwise.stages.reports.vega import Chart, Panel, axis, lambda_axis, records, tooltip
from gapwise.storage.backend import Location, location, location_in
from gapwise.storage.files import read_json
from gapwise.storage.results import read_trace

ROWS = 150
"""Most certificates that are shown of a run."""
log = logging.getLogger("gapwise")
Row = Facts
Part = tuple[str, Markup]


def write_sweep_report(folder: Location, target: Location | None = None) -> Location:
    """Write the report of the sweep in `folder` from its summary.json and its runs; returns the file.

    Raises
    ------
    FileNotFoundError
        If there is no summary.json.
    ValueError
        If it names a run by a URL that is not of the same kind as the folder's.
    """
    summary = read_json(folder / "summary.json")
    for run in filter(None, (row.get("run") for row in summary["jobs"])):
        location_in(str(run), folder)
    rows = [row for row in summary["jobs"] if row["status"] in ("complete", "done") and row.get("breakpoints", 1)]
    parts = [("The runs", comparison(summary, folder))]
    for title, make in (("Losses", losses), ("Work", work)):
        try:
            parts += [(title, made)] if (made := make(rows)) else []
        except (ValueError, OSError, KeyError) as error:  # a run that is gone must not take the rest with it
            log.warning("report: %s: %s", title, error)
    parts += drawn(summary, folder)
    return write_page(folder / FILE if target is None else target, f"{folder.name}: comparison", parts)


def comparison(summary: Row, folder: Location) -> Markup:
    """One row per run; the least test loss is marked."""
    jobs: Sequence[Row] = summary["jobs"]
    losses_of = [row.get("test_loss") for row in jobs]
    known = [loss for loss in losses_of if loss is not None]
    best = losses_of.index(min(known)) if known else None
    heads = [
        "run",
        "status",
        term("breakpoint", "breakpoints"),
        term("effective pass", "passes"),
        "seconds of solving",
        "best λ",
        Markup("test {}").format(term("loss")),
    ]
    rows = [
        [linked(row, folder), row["status"] + (f": {row['error']}" if row.get("error") else ""),
         number(row.get("breakpoints"), "d"), number(row.get("passes"), ",.1f"),
         number(row.get("solve_seconds"), ".1f"), number(row.get("best_lambda")),
         number(row.get("test_loss"), ".4g")]
        for row in jobs
    ]  # fmt: skip
    counts = ", ".join(f"{count} {status}" for status, count in summary.get("statuses", {}).items())
    said = paragraph(
        f"{len(jobs)} runs: {counts}. ", "The marked row has the least test loss." if best is not None else ""
    )
    return said + table(heads, rows, marked=best, caption="All runs of the sweep")


def linked(row: Row, folder: Location) -> Markup | str:
    """The run's name, with a link to its report if that lies on the same disk."""
    run_dir = location(row["run"]) if row.get("run") else None
    if not isinstance(run_dir, Path) or not isinstance(folder, Path) or not (run_dir / FILE).is_file():
        return str(row["name"])
    return fill("link", to=os.path.relpath(run_dir / FILE, folder).replace(os.sep, "/"), words=row["name"])


def losses(rows: Sequence[Row]) -> Markup:
    """Test loss over λ of all runs that were evaluated."""
    values: list[Row] = []
    for row in rows:
        arrays, _ = read_numbers(location(row["run"]))
        if "test_loss" in arrays:
            values += records(
                **{
                    "lambda": arrays["lambda"],
                    "loss": arrays["test_loss"],
                    "run": [row["name"]] * arrays["lambda"].size,
                }
            )
    if not values:
        return Markup("")
    encoding = {
        "x": lambda_axis(), "y": axis("loss", "mean task loss on test blocks", {"zero": False}),
        "color": coloured([str(row["name"]) for row in rows]),
        "tooltip": [{"field": "run"}, *tooltip({"lambda": "λ", "loss": "test loss"})],
    }  # fmt: skip
    mark = {"type": "line", "strokeWidth": 1.8, "point": {"size": 30}}
    panel = Panel(
        "losses", "Test loss of every run over λ.", [{"mark": mark, "encoding": encoding}], {"data": {"values": values}}
    )
    return charts(Chart([panel]))


def work(rows: Sequence[Row]) -> Markup:
    """What each run cost: convergence where every run has one λ, otherwise the work down to each λ."""
    numbers = [read_numbers(location(row["run"]))[0] for row in rows]
    if not numbers:
        return Markup("")
    if all(arrays["lambda"].size == 1 for arrays in numbers):
        return convergence(rows)
    return charts(work_chart([(str(row["name"]), arrays) for row, arrays in zip(rows, numbers, strict=True)]))


def convergence(rows: Sequence[Row]) -> Markup:
    """Gap against passes and seconds of runs with one λ each; a choice between the λ's if there are several."""
    lams = list(dict.fromkeys(row["lambda"] for row in rows))
    values: list[Row] = []
    for row in rows:
        trace = read_trace(location(row["run"]))
        (shown,) = np.nonzero(np.nan_to_num(trace["gap"]) > 0.0)
        shown = shown[np.linspace(0, shown.size - 1, min(shown.size, ROWS)).round().astype(int)]
        values += records(
            k=[lams.index(row["lambda"])] * shown.size, run=[row["name"]] * shown.size,
            **{name: trace[name][shown] for name in ("gap", "passes", "seconds")},
        )  # fmt: skip
    if not values:
        return Markup("")
    files = [location(row["run"]) / "verify.json" for row in rows]
    kinds = {verdict_in(read_json(file), file).sense for file in files if file.is_file()}
    label = "duality gap" + (f" ({', '.join(sorted(kinds))})" if kinds else "")
    panels = []
    for name, title in (("passes", "effective passes"), ("seconds", "seconds of solving")):
        encoding = {
            "x": axis(name, title), "y": axis("gap", label, {"type": "log", "nice": False}, format="~g"),
            "color": coloured([str(row["name"]) for row in rows]),
            "tooltip": [{"field": "run"}, *tooltip({"gap": "gap", "passes": "passes", "seconds": "seconds"})],
        }  # fmt: skip
        mark = {"type": "line", "strokeWidth": 1.8, "point": {"size": 20}}
        panels.append(Panel(
            f"convergence-{name}", f"Duality gap against {title}.", [{"mark": mark, "encoding": encoding}],
            {"data": {"values": values}, "transform": [{"filter": "chosen < 0 || datum.k == chosen"}]},
            params=[{"name": "chosen", "value": 0 if len(lams) > 1 else -1}],
        ))  # fmt: skip
    return fill("sweep_convergence", lambdas=lams, charts=charts(Chart(panels, beside=True)))


def drawn(summary: Row, folder: Location) -> list[Part]:
    """The figures and the table of `sweep.figure`."""
    parts: list[Part] = []
    pictures = []
    for name in summary.get("figures", ()):
        file = figure_file(folder, name)
        if name.endswith(".png") and file.is_file():
            pictures.append(picture(name, saved(file)))
    if pictures:
        parts.append(("Figures", Markup("").join(pictures)))
    if summary.get("text"):
        parts.append(("In numbers", fill("lines", text="\n".join(summary["text"]))))
    return parts
