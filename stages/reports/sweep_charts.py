"""The figures over the runs of a sweep, a function each: it draws them and returns what the runs cost (`Compared`)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from gapwise.records import Facts, Record
from gapwise.stages.choice.folds import columns_of
from gapwise.stages.choice.rules import LOSS, picked_in_words
from gapwise.stages.reports.bounds import gap_label, whole_axis
from gapwise.stages.reports.costs import (
    conclusion,
    costs_of_solves,
    costs_to_levels,
    lambda_name,
    lines,
    path_costs,
    path_lines,
    summarised,
    summary,
)
from gapwise.stages.reports.curves import (
    AXES,
    Curves,
    Runs,
    Trace,
    by_lambda,
    lambda_title,
    trace_attributes,
    value_at,
)
from gapwise.stages.reports.grids import Row, bands, over_lambda
from gapwise.stages.reports.paint import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    Draw,
    Size,
    few_ticks,
    lambda_axis,
    legend_beside,
    looks,
    over_all,
    save,
)
from gapwise.stages.reports.stored import read_numbers
from gapwise.stages.reports.suboptimality import read_suboptimality
from gapwise.stages.reports.tables import Compared, write_csv
from gapwise.stages.solver.path.rules import path_rule
from gapwise.storage.backend import Location
from gapwise.storage.files import aside, publish, read_json
from gapwise.storage.results import read_iterations

EXCESS = {"primal_excess": "primal suboptimality", "dual_lack": "dual suboptimality"}
CALLS = {**AXES, "passes": "exact oracle calls / n"}


class Out(NamedTuple):
    """Where figures and tables of a sweep go."""

    folder: Location
    formats: tuple[str, ...] = ("png",)

    def figure(self, name: str, drawing: tuple[Draw, Size]) -> str:
        """Draw a figure into its files; returns the name of its PNG."""
        save(drawing[0], self.folder / "figures" / f"{name}.png", drawing[1], self.formats, dpi=130)
        return f"{name}.png"

    def table(self, name: str, lines: Sequence[str], rows: Sequence[Facts]) -> None:
        """Write a table as Markdown and as CSV."""
        aside(self.folder / f"{name}.md").write_text("\n".join(lines).strip() + "\n", encoding="utf-8")
        publish(self.folder / f"{name}.md")
        write_csv(self.folder / f"{name}.csv", rows)


def methods(runs: Runs, out: Out) -> Compared:
    """Methods compared (O16 Fig. 3, 5): the gap over effective passes and over seconds. The title says who needs least."""
    curves = read_suboptimality(runs)
    compared, label = summary(curves), gap_label(trace_attributes(runs))
    title = conclusion(compared["table"], ("passes", "seconds"))
    return {
        "figures": [out.figure("gaps", bands(curves, [Row("gap", label, over) for over in AXES], title=title))],
        **compared,
    }


def solvers(runs: Runs, out: Out) -> Compared:
    """All solvers on one data set (LJ13 Fig. 1): suboptimality, gap and test loss over effective passes and over seconds.

    `solvers.md` and `solvers.csv`: oracle calls and seconds to given accuracies.
    Lines end where the passes or seconds of a run do. A method without a dual point has neither dual suboptimality nor gap.
    """
    curves = read_suboptimality(runs)
    table = summarised(costs_to_levels(curves, ("primal_excess", "gap")))
    text = lines(table, "calls")
    out.table("solvers", text, table)
    labels = {**EXCESS, "gap": gap_label(trace_attributes(runs)), "test_loss": "test loss"}
    known = [*next(iter(curves.values()))[0]]
    title = conclusion(table, ("calls", "seconds"), "primal_excess")
    figures = []
    for over in AXES:
        rows = [Row(name, label, over, name == "test_loss") for name, label in labels.items() if name in known]
        figures.append(out.figure(over, bands(curves, rows, title=title, log=True, floor=_floor)))
    return {"figures": figures, "table": table, "text": text}


def _floor(variants: Mapping[str, Sequence[Trace]]) -> float:
    """A third of the least positive gap of any run: below it, suboptimalities are not known."""
    gaps = np.concatenate([trace["gap"] for traces in variants.values() for trace in traces])
    return 0.3 * float(np.min(gaps[np.isfinite(gaps) & (gaps > 0.0)], initial=np.inf))


def multiplane(runs: Runs, out: Out) -> Compared:
    """Multi-plane BCFW against its relatives (S15 Fig. 4-6).

    `calls` and `seconds`: primal and dual suboptimality, which are bounds from above, and the gap, over exact oracle calls
    and over seconds. `planes`: how large the working sets are, and how many approximate passes an outer iteration has.
    """
    curves = read_suboptimality(runs)
    labels, figures = {**EXCESS, "gap": gap_label(trace_attributes(runs))}, []
    for name, over in (("calls", "passes"), ("seconds", "seconds")):
        rows = [Row(quantity, label, over) for quantity, label in labels.items()]
        figures.append(out.figure(name, bands(curves, rows, x_labels=CALLS)))
    if iterations := outer_iterations(runs, curves):
        rows = [Row("planes", "labellings in a working set", linear=True)]
        rows += [Row("approximate_passes", "approximate passes\nan outer iteration", linear=True)]
        figures.append(out.figure("planes", bands(iterations, rows, x_labels=CALLS)))
    return {"figures": figures, **summary(curves)}


def outer_iterations(runs: Runs, curves: Curves) -> Curves:
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


def staleness(runs: Runs, out: Out) -> Compared:
    """Staleness of block gaps (O16 Fig. 1), over passes.

    The gap; stale / true gap; and by how much Theorem 2 lets gap sampling improve on uniform sampling, from the block gaps
    that the solver knows. Curvatures are bounded by the largest ||psi_i(y)|| of the oracle's answers at snapshots.
    """
    curves = read_suboptimality(runs)
    rows = [
        Row("gap", gap_label(trace_attributes(runs))),
        Row("stale_ratio", "sum of last known\nblock gaps / true gap", linear=True, at_one=True),
        Row("predicted", "χ(gaps)³ / χ(curvatures): improvement\nthat O16 Theorem 2 predicts", at_one=True),
    ]
    return {"figures": [out.figure("staleness", bands(curves, rows))], **summary(curves)}


def regimes(runs: Runs, out: Out) -> Compared:
    """Cache regimes (O16 Fig. 2): the gap over F and nu at equal passes and at equal seconds; one row per lambda.

    Variants named `F=<number> nu=<number>` fill the grid; any other variant is a reference, given in the title.
    """
    curves = read_suboptimality(runs)
    rows = by_lambda(curves)

    def draw(figure: Figure) -> None:
        grid = figure.subplots(len(rows), 2, squeeze=False)
        for row, (lam, variants) in zip(grid, rows.items(), strict=True):
            for axes, over in zip(row, AXES, strict=True):
                budget = min(float(trace[over][-1]) for traces in variants.values() for trace in traces)
                others = _regime(axes, variants, over, budget)
                after = f"gap after {budget:.3g} {AXES[over]}" + (f" ({', '.join(others)})" if others else "")
                axes.set_title(f"{lambda_title(lam, variants)}: {after}")

    return {"figures": [out.figure("regimes", (draw, (10.5, 4.2 * len(rows))))], **summary(curves)}


def _regime(axes: Axes, variants: Mapping[str, Sequence[Trace]], over: str, budget: float) -> list[str]:
    """Draw a map of gaps; returns those of the variants that are not in it, in words."""
    gap_of, others = {}, []
    for variant, traces in variants.items():
        gap = value_at(traces, over, budget)
        if match := re.fullmatch(r"F=(\S+) nu=(\S+)", variant):
            gap_of[float(match[1]), float(match[2])] = gap
        else:
            others.append(f"{variant} {gap:.2g}")
    many_F, many_nu = sorted({F for F, _ in gap_of}), sorted({nu for _, nu in gap_of})
    values = np.array([[gap_of.get((F, nu), np.nan) for F in many_F] for nu in many_nu])
    image = np.log10(values)
    axes.imshow(image, origin="lower", cmap="viridis_r", aspect="auto")
    middle = 0.5 * (np.nanmin(image) + np.nanmax(image))
    for i, j in np.ndindex(*values.shape):
        colour = "black" if image[i, j] < middle else "white"
        axes.text(j, i, f"{values[i, j]:.2g}", ha="center", va="center", color=colour)
    axes.set_xticks(range(len(many_F)), [f"{F:g}" for F in many_F])
    axes.set_yticks(range(len(many_nu)), [f"{nu:g}" for nu in many_nu])
    axes.set(xlabel="F", ylabel="ν")
    axes.grid(False)
    return others


def paths(runs: Runs, out: Out) -> Compared:
    """Paths and grids compared (O16 Fig. 4, 7, 8): passes, seconds and lambdas solved so far, and the test loss."""
    of_runs = {name: read_numbers(run_dir)[0] for name, _, _, run_dir in runs}
    figure = out.figure("paths", over_lambda(of_runs, ["effective_passes", "seconds", "breakpoints", "test_loss"]))
    table = path_costs((name, run_dir) for name, _, _, run_dir in runs)
    return {"figures": [figure], "table": table, "text": path_lines(table)}


def work(runs: Runs, out: Out) -> Compared:
    """Work of paths and grids: effective passes and seconds spent down to each lambda, one line per run."""
    of_runs = {name: read_numbers(run_dir)[0] for name, _, _, run_dir in runs}
    figure = out.figure("work", over_lambda(of_runs, ["effective_passes", "seconds"]))
    table = path_costs((name, run_dir) for name, _, _, run_dir in runs)
    return {"figures": [figure], "table": table, "text": path_lines(table)}


def frontier(runs: Runs, out: Out) -> Compared:
    """The frontier of accuracy and price (`prices`); returns, besides figures, table and text: paths, one row per path.

    `frontier`: certified relative gap against exact passes and against seconds; `certified`: the certified gap of whole
    paths over the whole axis of lambda. `frontier.md` and `frontier.csv` hold the tables.
    """
    table = summarised(costs_of_solves(runs))
    of_paths = {name: run_dir for name, _, _, run_dir in runs if _finds_lambdas(run_dir)}
    path_table = path_costs(of_paths.items())
    text = [*lines(table), *path_lines(path_table)]
    out.table("frontier", text, [*table, *path_table])
    figures = [out.figure("frontier", _prices(table))] if table else []
    figures += [out.figure("certified", _certified(of_paths))] if of_paths else []
    return {"figures": figures, "table": table, "paths": path_table, "text": text}


def _finds_lambdas(run_dir: Location) -> bool:
    return path_rule(str(read_numbers(run_dir)[1]["rule"])).finds_lambdas


def _prices(table: Sequence[Record]) -> tuple[Draw, Size]:
    """One column per lambda; over exact passes above, over seconds below.

    Lines are medians, bands span the range over seeds; an open triangle marks a limit that was reached first.
    """
    lams = list(dict.fromkeys(row["lambda"] for row in table))
    styles = looks([row["variant"] for row in table])

    def draw(figure: Figure) -> None:
        grid = figure.subplots(2, len(lams), squeeze=False, sharex="row", sharey=True)
        for j, lam in enumerate(lams):
            for i, over in enumerate(AXES):
                for name, style in styles.items():
                    _price_line(
                        grid[i, j],
                        [row for row in table if (row["variant"], row["lambda"]) == (name, lam)],
                        over,
                        style,
                    )
                grid[i, j].set(xscale="log", yscale="log", xlabel="exact passes" if over == "passes" else over)
                few_ticks(grid[i, j].xaxis, 1.0)
            grid[0, j].set_title(lambda_name(next(row for row in table if row["lambda"] == lam)))
        for axes in grid[:, 0]:
            axes.set_ylabel("certified (P − D) / D")
        legend_beside(figure, grid[0, 0])
        over_all(figure, conclusion(table, ("passes", "seconds"), "certified"))

    return draw, (4.2 * len(lams) + 1.8, 7.6)


def _price_line(axes: Axes, rows: Sequence[Record], over: str, style: Record) -> None:
    reached = sorted((row for row in rows if np.isfinite(row[over])), key=lambda row: -row["level"])
    tolerances = [row["level"] for row in reached]
    axes.plot([row[over] for row in reached], tolerances, marker="o", ms=3.5, **style)
    if any(row["seeds"] > 1 for row in reached):
        most = [row[f"{over} most"] if np.isfinite(row[f"{over} most"]) else row[over] for row in reached]
        axes.fill_betweenx(
            tolerances, [row[f"{over} least"] for row in reached], most, color=style["color"], alpha=0.12, lw=0
        )
    missed = [row for row in rows if not np.isfinite(row[over])]
    spent = [row[f"spent_{over}"] for row in missed]
    axes.plot(spent, [row["level"] for row in missed], ls="", marker=">", mfc="none", color=style["color"])


def _certified(of_paths: Mapping[str, Location]) -> tuple[Draw, Size]:
    """One panel per path, with exact gaps at sampled lambdas as dots."""
    read = {name: (*read_numbers(run), read_json(run / "verify.json")["samples"]) for name, run in of_paths.items()}
    first = 1.2 * max(max(float(attrs["lam_top"]), float(arrays["lambda"][0])) for arrays, attrs, _ in read.values())
    last = 0.1 * min(float(arrays["lambda"][-1]) for arrays, *_ in read.values())

    def draw(figure: Figure) -> None:
        panels = figure.subplots(len(read), 1, sharex=True, squeeze=False)[:, 0]
        for axes, (name, (arrays, attrs, samples)) in zip(panels, read.items(), strict=True):
            eps, solved, passes = float(attrs["eps"]), arrays["lambda"], float(np.sum(arrays["effective_passes"]))
            axes.plot(*whole_axis(arrays, attrs, first, last), color=BLUE, lw=1.2, label="certified")
            axes.plot(solved, np.zeros(solved.size), "|", color=GREY, ms=7, label="solved")
            lams, gaps = [sample["lambda"] for sample in samples], [sample["gap"] for sample in samples]
            axes.plot(lams, gaps, "o", ms=4, color=ORANGE, label="exact, at sampled λ's")
            axes.axhline(eps, color=GREY, ls="--", lw=1)
            count = f"{solved.size} λ{'s' * (solved.size > 1)} solved, {passes:.0f} exact passes"
            axes.set_title(f"{name.replace('_', ' ')}: {count}")
            axes.set(ylim=(-0.04 * eps, 1.12 * eps), ylabel=gap_label(attrs, relative=attrs["relative"]))
        lambda_axis(panels[-1], (last, first))
        handles, labels = panels[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper center", ncols=3)

    return draw, (8.6, 2.1 * len(read) + 0.7)


def folds(chosen: Facts) -> tuple[Draw, Size]:
    """A cross-validation (`stages.choice.folds`): the loss of every fold over lambda, their mean, and the choices."""
    criterion, mean, values = columns_of(chosen)
    lam, error = (np.array(chosen[name]) for name in ("lambda", "standard_error"))
    is_loss, words = criterion == LOSS, criterion.replace("_", " ")
    best, simple = chosen["best_lambda"], chosen["one_se_lambda"]

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        marker = "o" if lam.size <= 3 else ""
        for k, losses in enumerate(values):
            axes.plot(lam, losses, color=GREY, lw=0.8, alpha=0.6, marker=marker, label="" if k else "one fold")
        axes.fill_between(lam, mean - error, mean + error, color=GREEN, alpha=0.2, lw=0)
        axes.plot(lam, mean, color=GREEN, marker=marker, label="mean ± one standard error")
        axes.axvline(best, color=GREY, ls="--", lw=1, zorder=0)
        axes.axvline(simple, color=GREEN, ls=":", lw=1.2, zorder=0, label=f"one standard error: λ = {simple:.3g}")
        label = picked_in_words(chosen, f"mean {words}")
        axes.plot(best, chosen[f"best_validation_{criterion}"], "*", ms=15, color=GREEN, mec="white", label=label)
        axes.set_title(f"λ = {best:.3g} chosen on {chosen['folds']} folds: test loss {chosen['best_test_loss']:.3g}")
        if is_loss:
            axes.set_ylim(0, None)
        axes.set_ylabel("mean task loss" if is_loss else words)
        axes.legend(loc="best")
        lambda_axis(axes, lam)

    return draw, (7.0, 3.6)
