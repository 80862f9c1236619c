"""The report of a sweep: its runs as a table, their losses and their work in one chart each, and the sweep's own figures."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from markupsafe import Markup

from gapwise.records import Facts
from gapwise.stages.certify.verdict import verdict_in
from gapwise.stages.reports.curves import AXES, Curves
from gapwise.stages.reports.grids import Row, bands, over_lambda
from gapwise.stages.reports.html import number, paragraph, picture, plots, saved, table
from gapwise.stages.reports.page import FILE, write_page
from gapwise.stages.reports.page.terms import term, with_terms
from gapwise.stages.reports.stored import read_numbers
from gapwise.stages.reports.sweep_figures import figure_file
from gapwise.storage.backend import Location, location, location_in
from gapwise.storage.files import read_json
from gapwise.storage.results import read_trace

log = logging.getLogger("gapwise")
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


def comparison(summary: Facts, folder: Location) -> Markup:
    """One row per run; the least loss is marked, that of validation blocks where any run has some."""
    jobs: Sequence[Facts] = summary["jobs"]
    split = "validation" if any(row.get("validation_loss") is not None for row in jobs) else "test"
    losses_of = [row.get(f"{split}_loss") for row in jobs]
    known = [loss for loss in losses_of if loss is not None]
    best = losses_of.index(min(known)) if known else None
    heads = [
        "run",
        "status",
        term("breakpoint", "breakpoints"),
        term("effective pass", "passes"),
        "seconds of solving",
        "best λ",
        Markup("validation {}").format(term("loss")),
        Markup("test {}").format(term("loss")),
    ]
    rows = [
        [linked(row, folder), row["status"] + (f": {row['error']}" if row.get("error") else ""),
         number(row.get("breakpoints"), "d"), number(row.get("passes"), ",.1f"),
         number(row.get("solve_seconds"), ".1f"), number(row.get("best_lambda")),
         number(row.get("validation_loss"), ".4g"), number(row.get("test_loss"), ".4g")]
        for row in jobs
    ]  # fmt: skip
    counts = ", ".join(f"{count} {status}" for status, count in summary.get("statuses", {}).items())
    said = paragraph(
        f"{len(jobs)} runs: {counts}. ", f"The marked row has the least {split} loss." if best is not None else ""
    )
    return said + table(heads, rows, marked=best, caption="All runs of the sweep")


def linked(row: Facts, folder: Location) -> Markup | str:
    """The run's name, with a link to its report if that lies on the same disk."""
    run_dir = location(row["run"]) if row.get("run") else None
    if not isinstance(run_dir, Path) or not isinstance(folder, Path) or not (run_dir / FILE).is_file():
        return str(row["name"])
    link = os.path.relpath(run_dir / FILE, folder).replace(os.sep, "/")
    return Markup('<a href="{}">{}</a>').format(link, row["name"])


def losses(rows: Sequence[Facts]) -> Markup:
    """Test loss over λ of all runs that were evaluated."""
    paths = {name: arrays for name, arrays in _paths(rows).items() if "test_loss" in arrays}
    return plots([("Test loss of every run over λ.", *over_lambda(paths, ["test_loss"]))]) if paths else Markup("")


def work(rows: Sequence[Facts]) -> Markup:
    """What each run cost: convergence where every run has one λ, otherwise the work down to each λ."""
    paths = _paths(rows)
    if paths and all(arrays["lambda"].size == 1 for arrays in paths.values()):
        return convergence(rows)
    words = "Effective passes and seconds from the start of the path down to λ."
    return plots([(words, *over_lambda(paths, ["effective_passes", "seconds"]))]) if paths else Markup("")


def _paths(rows: Sequence[Facts]) -> dict[str, Mapping[str, np.ndarray]]:
    return {str(row["name"]): read_numbers(location(row["run"]))[0] for row in rows}


def convergence(rows: Sequence[Facts]) -> Markup:
    """Gap against passes and seconds of runs with one λ each, a column for each λ."""
    curves: Curves = {}
    for row in rows:
        trace = read_trace(location(row["run"]))
        (shown,) = np.nonzero(np.nan_to_num(trace["gap"]) > 0.0)
        if shown.size:
            part = {name: trace[name][shown] for name in ("lambda", "gap", "passes", "seconds")}
            curves.setdefault((str(row["name"]), str(row["lambda"])), []).append(part)
    if not curves:
        return Markup("")
    files = [location(row["run"]) / "verify.json" for row in rows]
    kinds = {verdict_in(read_json(file), file).sense for file in files if file.is_file()}
    label = "duality gap" + (f" ({', '.join(sorted(kinds))})" if kinds else "")
    words = "Each point is a duality gap that a solver computed with a pass over all blocks."
    return paragraph(with_terms(words)) + plots([(words, *bands(curves, [Row("gap", label, over) for over in AXES]))])


def drawn(summary: Facts, folder: Location) -> list[Part]:
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
        parts.append(("In numbers", Markup("<pre>{}</pre>").format("\n".join(summary["text"]))))
    return parts
