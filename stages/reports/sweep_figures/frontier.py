"""The frontier of accuracy and price (tables: `stages.reports.costs`).

`frontier.png`: certified relative gap against exact passes and against seconds; `certified.png`: the certified gap of
whole paths over the whole axis of lambda. `frontier.md` and `frontier.csv` hold the tables.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes

from gapwise.stages.reports.bounds import gap_label, whole_axis
from gapwise.stages.reports.costs import (
    Row,
    conclusion,
    costs_of_solves,
    lambda_name,
    lines,
    path_costs,
    path_lines,
    summarised,
)
from gapwise.stages.reports.curves import AXES, Runs
from gapwise.stages.reports.paint import (
    BLUE,
    GREY,
    LAMBDA_FALLS,
    ORANGE,
    Style,
    StyleOf,
    figure_in,
    legend_beside,
    over_all,
    plain_ticks,
)
from gapwise.stages.reports.stored import read_numbers
from gapwise.stages.reports.styles import step_styles
from gapwise.stages.reports.tables import Compared, write_csv
from gapwise.stages.solver.path.rules import path_rule
from gapwise.storage.backend import Location
from gapwise.storage.files import aside, publish, read_json


def make(runs: Runs, folder: Location) -> Compared:
    """Returns, besides figures, table and text: paths, one row per path."""
    table = summarised(costs_of_solves(runs))
    paths = [(name, run_dir) for name, _, _, run_dir in runs if path_rule(_rule(run_dir)).finds_lambdas]
    of_paths = path_costs(paths)
    text = [*lines(table), *path_lines(of_paths)]
    aside(folder / "frontier.md").write_text("\n".join(text).strip() + "\n", encoding="utf-8")
    publish(folder / "frontier.md")
    write_csv(folder / "frontier.csv", [*table, *of_paths])
    figures = []
    if table:
        figures.append("frontier.png")
        _paint_prices(table, step_styles(runs), folder / "figures" / figures[-1])
    if paths:
        figures.append("certified.png")
        _paint_certified(paths, folder / "figures" / figures[-1])
    return {"figures": figures, "table": table, "paths": of_paths, "text": text}


def _rule(run_dir: Location) -> str:
    return str(read_numbers(run_dir)[1]["rule"])


def _paint_prices(table: Sequence[Row], style: StyleOf, target: Location) -> None:
    """One column per lambda; over exact passes above, over seconds below.

    Lines are medians, bands span the range over seeds; an open triangle marks a limit that was reached first.
    """
    lams = list(dict.fromkeys(row["lambda"] for row in table))
    names = list(dict.fromkeys(row["variant"] for row in table))
    with figure_in(target, (4.2 * len(lams) + 1.8, 7.6)) as figure:
        grid = figure.subplots(2, len(lams), squeeze=False, sharex="row", sharey=True)
        for j, lam in enumerate(lams):
            for i, over in enumerate(AXES):
                for number, name in enumerate(names):
                    rows = [row for row in table if (row["variant"], row["lambda"]) == (name, lam)]
                    _price_line(grid[i, j], rows, over, name, style(name, number))
                grid[i, j].set(xscale="log", yscale="log", xlabel="exact passes" if over == "passes" else over)
                plain_ticks(grid[i, j].xaxis)
            grid[0, j].set_title(lambda_name(next(row for row in table if row["lambda"] == lam)))
        for axes in grid[:, 0]:
            axes.set_ylabel("certified (P − D) / D")
        legend_beside(figure, grid[0, 0])
        over_all(figure, conclusion(table, ("passes", "seconds"), "certified"))


def _price_line(axes: Axes, rows: Sequence[Row], over: str, name: str, style: Style) -> None:
    reached = sorted((row for row in rows if np.isfinite(row[over])), key=lambda row: -row["level"])
    tolerances = [row["level"] for row in reached]
    axes.plot([row[over] for row in reached], tolerances, marker="o", ms=3.5, label=name.replace("_", " "), **style)
    if any(row["seeds"] > 1 for row in reached):
        most = [row[f"{over} most"] if np.isfinite(row[f"{over} most"]) else row[over] for row in reached]
        axes.fill_betweenx(
            tolerances, [row[f"{over} least"] for row in reached], most, color=style["color"], alpha=0.12, lw=0
        )
    missed = [row for row in rows if not np.isfinite(row[over])]
    spent = [row[f"spent_{over}"] for row in missed]
    axes.plot(spent, [row["level"] for row in missed], ls="", marker=">", mfc="none", color=style["color"])


def _paint_certified(paths: Sequence[tuple[str, Location]], target: Location) -> None:
    """One panel per path, with exact gaps at sampled lambdas as dots."""
    read = [(name, *read_numbers(run_dir), read_json(run_dir / "verify.json")["samples"]) for name, run_dir in paths]
    first = 1.2 * max(max(float(attrs["lam_top"]), float(arrays["lambda"][0])) for _, arrays, attrs, _ in read)
    last = 0.1 * min(float(arrays["lambda"][-1]) for _, arrays, *_ in read)
    with figure_in(target, (8.6, 2.1 * len(paths) + 0.7)) as figure:
        panels = figure.subplots(len(paths), 1, sharex=True, squeeze=False)[:, 0]
        for axes, (name, arrays, attrs, samples) in zip(panels, read, strict=True):
            eps, solved, passes = float(attrs["eps"]), arrays["lambda"], float(np.sum(arrays["effective_passes"]))
            axes.plot(*whole_axis(arrays, attrs, first, last), color=BLUE, lw=1.2, label="certified")
            axes.plot(solved, np.zeros(solved.size), "|", color=GREY, ms=7, label="solved")
            lams, gaps = [s["lambda"] for s in samples], [s["gap"] for s in samples]
            axes.plot(lams, gaps, "o", ms=4, color=ORANGE, label="exact, at sampled λ's")
            axes.axhline(eps, color=GREY, ls="--", lw=1)
            count = solved.size
            axes.set_title(f"{name.replace('_', ' ')}: {count} λ{'s' * (count > 1)} solved, {passes:.0f} exact passes")
            axes.set(ylim=(-0.04 * eps, 1.12 * eps), ylabel=gap_label(attrs, relative=attrs["relative"]))
        panels[-1].set(xscale="log", xlabel=LAMBDA_FALLS)
        panels[-1].set_xlim(first, last)
        handles, labels = panels[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper center", ncols=3)
