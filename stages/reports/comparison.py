"""Comparison: what the runs of a sweep say together, as numbers (figures: `comparison_figures`).

A run is a curve of its gap over effective passes and over seconds, computed from snapshots (`gap_trace`). Runs of one
variant and lambda that differ in their seed make a median and a min-max band (O16 Fig. 3, 5).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from stages.reports.frontier import frontier
from stages.reports.gap_trace import read_gap_trace
from storage.places import Place
from storage.results import read_path

LEVELS = (0.1, 0.01, 0.001, 0.0001)
"""Gaps as shares of the best primal value known at their lambda, for the table of passes and seconds needed."""
SMALLEST = 1e-16

Runs = Sequence[tuple[str, str, int, Place]]
"""(variant, lambda as the sweep names it, seed, run directory)"""
Curves = dict[tuple[str, str], list[dict[str, np.ndarray]]]
"""(variant, lambda) to the gap traces of its seeds, columns of `storage.layout.GAP_TRACE`"""


def compare(figure: str, runs: Runs, folder: Place) -> dict[str, Any]:
    """Draw the runs into ``folder/figures`` and say what they cost.

    Parameters
    ----------
    figure : str
        methods: gap against passes and seconds; staleness: with the ratio of stale to true gap; regimes: a grid of F and nu;
        work: passes and seconds along a path or grid of lambdas; frontier: what certified solutions and paths cost.

    Returns
    -------
    dict
        figures: names of the files; table: a row for each variant and lambda; text: the table as lines.
    """
    from stages.reports import sweep_figures as paint

    (folder / "figures").mkdir(parents=True, exist_ok=True)
    if figure == "frontier":
        return frontier(runs, folder)
    if figure == "work":
        paths = [(name, read_path(place / "path.zarr")[0]) for name, _, _, place in runs]
        table = [
            {"variant": name, "lambdas": int(a["lambda"].size), "passes": float(np.sum(a["effective_passes"])),
             "seconds": float(np.sum(a["seconds"]))}
            for name, a in paths
        ]  # fmt: skip
        text = [f"{r['variant']:<20} {r['passes']:9.1f} passes {r['seconds']:8.2f} s" for r in table]
        return {"figures": [paint.work(paths, folder).name], "table": table, "text": text}
    curves = read_curves(runs)
    table = costs(curves)
    drawn = {"methods": paint.methods, "staleness": paint.staleness, "regimes": paint.regimes}[figure](curves, folder)
    return {"figures": [path.name for path in drawn], "table": table, "text": lines(table)}


def read_curves(runs: Runs) -> Curves:
    """The gap traces of all runs, by variant and lambda, in the order of the sweep."""
    curves: Curves = {}
    for variant, lam, _, place in runs:
        curves.setdefault((variant, lam), []).append(read_gap_trace(place))
    return curves


def band(traces: Sequence[Mapping[str, np.ndarray]], over: str, what: str = "gap") -> np.ndarray:
    """Median, least and most of `what` on a common axis, (4, points): x, median, min, max.

    Interpolated logarithmically between snapshots, where all runs have some. Over seconds the axis is logarithmic too.
    """
    xs = [np.asarray(trace[over], float) for trace in traces]
    ys = [np.log(np.maximum(column(trace, what), SMALLEST)) for trace in traces]
    known = [np.isfinite(y) & ((x > 0) if over == "seconds" else True) for x, y in zip(xs, ys, strict=True)]
    xs, ys = [x[k] for x, k in zip(xs, known, strict=True)], [y[k] for y, k in zip(ys, known, strict=True)]
    if min(x.size for x in xs) == 0:
        return np.empty((4, 0))
    first, last = max(x[0] for x in xs), min(x[-1] for x in xs)
    grid = np.geomspace(first, last, 300) if over == "seconds" else np.linspace(first, last, 300)
    values = np.exp([np.interp(grid, x, y) for x, y in zip(xs, ys, strict=True)])
    return np.stack([grid, np.median(values, axis=0), values.min(axis=0), values.max(axis=0)])


def column(trace: Mapping[str, np.ndarray], what: str) -> np.ndarray:
    """A column of a gap trace, or `stale_ratio`, of the believed gap to the true one."""
    if what == "stale_ratio":
        return np.asarray(trace["stale_gap"] / np.maximum(trace["gap"], SMALLEST))
    return np.asarray(trace[what])


def value_at(traces: Sequence[Mapping[str, np.ndarray]], over: str, x: float) -> float:
    """Median gap at `x` passes or seconds."""
    logs = [np.interp(x, trace[over], np.log(np.maximum(trace["gap"], SMALLEST))) for trace in traces]
    return float(np.exp(np.median(logs)))


def best_primal(curves: Curves, lam: str) -> float:
    """The least primal value any run has seen at this lambda."""
    return min(float(np.min(trace["primal"])) for (_, at), traces in curves.items() if at == lam for trace in traces)


def costs(curves: Curves) -> list[dict[str, Any]]:
    """Passes and seconds (medians over seeds) to each level of the relative gap, and the gap at the end."""
    table = []
    for (variant, lam), traces in curves.items():
        scale = best_primal(curves, lam)
        row: dict[str, Any] = {"variant": variant, "lambda": lam, "seeds": len(traces)}
        row["value"] = float(traces[0]["lambda"][0])
        for name in ("passes", "seconds"):
            row[name] = float(np.median([trace[name][-1] for trace in traces]))
        row["relative_gap"] = float(np.median([trace["gap"][-1] for trace in traces])) / scale
        for level in LEVELS:
            for name in ("passes", "seconds"):
                row[f"{name}_to_{level:g}"] = float(
                    np.median([first_at(trace, name, level * scale) for trace in traces])
                )
        table.append(row)
    return table


def first_at(trace: Mapping[str, np.ndarray], over: str, gap: float) -> float:
    """Passes or seconds at the first snapshot whose gap is at most `gap`; inf if there is none."""
    (below,) = np.nonzero(trace["gap"] <= gap)
    return float(trace[over][below[0]]) if below.size else np.inf


def lines(table: Sequence[Mapping[str, Any]]) -> list[str]:
    """The table of `costs` for a terminal: passes / seconds to each level; - where it was not reached."""
    out = []
    for lam in dict.fromkeys(row["lambda"] for row in table):
        rows = [row for row in table if row["lambda"] == lam]
        out.append(
            f"λ = {lam or format(rows[0]['value'], 'g')}: passes / seconds to a gap of … times the best primal value"
        )
        out.append(f"{'':<20}" + "".join(f"{level:>16g}" for level in LEVELS) + f"{'at the end':>20}")
        for row in rows:
            cells = "".join(f"{_pair(row, level):>16}" for level in LEVELS)
            out.append(f"{row['variant']:<20}{cells}{row['relative_gap']:>10.1e} @{row['passes']:>6.0f} p")
    return out


def _pair(row: Mapping[str, Any], level: float) -> str:
    passes, seconds = row[f"passes_to_{level:g}"], row[f"seconds_to_{level:g}"]
    return f"{passes:.0f} / {seconds:.2f}" if np.isfinite(passes) else "-"
