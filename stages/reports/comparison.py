"""Comparison: passes and seconds that the runs of a sweep need to given gaps, as a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from stages.reports.curves import Curves, Trace

LEVELS = (0.1, 0.01, 0.001, 0.0001)
"""Gaps as shares of the best primal value known at their lambda."""
Row = dict[str, Any]


def summary(curves: Curves) -> dict[str, Any]:
    """{table: one row per variant and lambda, see `costs`; text: the table as lines}."""
    table = costs(curves)
    return {"table": table, "text": lines(table)}


def costs(curves: Curves) -> list[Row]:
    """Medians over seeds: passes and seconds to each level of the relative gap and to the end, and the gap at the end."""
    best = pd.Series({key: min(float(np.min(trace["primal"])) for trace in traces) for key, traces in curves.items()})
    scales = best.groupby(level=1).min()
    """from lambda to the least primal value of any run there"""
    runs = []
    for (variant, lam), traces in curves.items():
        for trace in traces:
            run = {"variant": variant, "lambda": lam, "value": float(trace["lambda"][0])}
            run |= {name: trace[name][-1] for name in ("passes", "seconds")}
            run["relative_gap"] = trace["gap"][-1]
            for level in LEVELS:
                for name in ("passes", "seconds"):
                    run[f"{name}_to_{level:g}"] = first_at(trace, name, level * scales[lam])
            runs.append(run)
    groups = pd.DataFrame(runs).groupby(["variant", "lambda"], sort=False)
    table = groups.median().reset_index()
    table.insert(2, "seeds", groups.size().to_numpy())
    table["relative_gap"] /= table["lambda"].map(scales)
    return table.to_dict("records")


def first_at(trace: Trace, over: str, gap: float) -> float:
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
