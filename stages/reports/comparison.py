"""Comparison: passes and seconds that the runs of a sweep need to given gaps, as a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from gapwise.records import Facts, Record
from gapwise.stages.reports.curves import Curves, Trace, first_at
from gapwise.stages.reports.tables import Costs

LEVELS = (0.1, 0.01, 0.001, 0.0001)
"""Gaps as shares of the best primal value known at their lambda."""
Row = Record


def summary(curves: Curves) -> Costs:
    """{table: one row per variant and lambda, see `costs`; text: the table as lines}."""
    table = costs(curves)
    return {"table": table, "text": lines(table)}


def costs(curves: Curves) -> list[Row]:
    """Medians over seeds: passes and seconds to each level of the relative gap and to the end, and the gap at the end.

    `equal_passes` is the largest budget that every run at that lambda spent, and `relative_gap_at_equal` the gap there.
    """
    best = pd.Series({key: min(float(np.min(trace["primal"])) for trace in traces) for key, traces in curves.items()})
    scales = best.groupby(level=1).min()
    """from lambda to the least primal value of any run there"""
    equal = {
        lam: min(float(t["passes"][-1]) for (_, other), traces in curves.items() if other == lam for t in traces)
        for lam in scales.index
    }
    runs = []
    for (variant, lam), traces in curves.items():
        for trace in traces:
            run = {"variant": variant, "lambda": lam, "value": float(trace["lambda"][0])}
            run |= {name: trace[name][-1] for name in ("passes", "seconds")}
            run["relative_gap"] = trace["gap"][-1]
            run["equal_passes"], run["relative_gap_at_equal"] = equal[lam], gap_within(trace, equal[lam])
            for level in LEVELS:
                for name in ("passes", "seconds"):
                    run[f"{name}_to_{level:g}"] = first_at(trace, name, level * scales[lam])
            runs.append(run)
    groups = pd.DataFrame(runs).groupby(["variant", "lambda"], sort=False)
    table = groups.median().reset_index()
    table.insert(2, "seeds", groups.size().to_numpy())
    for name in ("relative_gap", "relative_gap_at_equal"):
        table[name] /= table["lambda"].map(scales)
    return table.to_dict("records")


def conclusion(table: Sequence[Facts], columns: Mapping[str, str], levels: Sequence[float]) -> str:
    """Who needs least to the smallest level that is reached at every lambda, as the title of a figure; empty if none is.

    `columns`: what is counted, in words, to its column, in which ``{}`` stands for the level.
    """
    by_lambda: dict[str, list[Facts]] = {}
    for row in table:
        by_lambda.setdefault(row["lambda"], []).append(row)
    for level in sorted(levels):
        winners = {
            words: [min(rows, key=lambda row: float(row[column.format(f"{level:g}")])) for rows in by_lambda.values()]
            for words, column in columns.items()
        }
        if all(
            np.isfinite(row[columns[words].format(f"{level:g}")]) for words, rows in winners.items() for row in rows
        ):
            return f"To an accuracy of {level:g}: " + "; ".join(
                _of_most(words, rows) for words, rows in winners.items()
            )
    return ""


def _of_most(words: str, winners: Sequence[Facts]) -> str:
    """Who wins at most lambdas, and at how many of them."""
    names = [str(row["variant"]).replace("_", " ") for row in winners]
    first = max(dict.fromkeys(names), key=names.count)
    return f"fewest {words} with {first}" + (f" at {names.count(first)} of {len(names)} λ's" if len(names) > 1 else "")


def gap_within(trace: Trace, passes: float) -> float:
    """The gap at the last snapshot within so many passes; inf if the first comes later."""
    (within,) = np.nonzero(trace["passes"] <= passes)
    return float(trace["gap"][within[-1]]) if within.size else np.inf


def lines(table: Sequence[Facts]) -> list[str]:
    """The table of `costs` for a terminal: passes / seconds to each level, or the budget within which it was not reached.

    Then the gap after the passes that all of them made, and after each one's own.
    """
    out = []
    for lam in dict.fromkeys(row["lambda"] for row in table):
        rows = [row for row in table if row["lambda"] == lam]
        out.append(
            f"λ = {lam or format(rows[0]['value'], 'g')}: passes / seconds to a gap of … times the best primal value"
        )
        equal = f"gap at {rows[0]['equal_passes']:.0f} p"
        out.append(f"{'':<20}" + "".join(f"{level:>18g}" for level in LEVELS) + f"{equal:>14}{'at its end':>18}")
        for row in rows:
            cells = "".join(f"{_pair(row, level):>18}" for level in LEVELS)
            end = f"{row['relative_gap']:.1e} @{row['passes']:.0f} p"
            out.append(f"{row['variant']:<20}{cells}{row['relative_gap_at_equal']:>14.1e}{end:>18}")
    return out


def _pair(row: Facts, level: float) -> str:
    passes, seconds = row[f"passes_to_{level:g}"], row[f"seconds_to_{level:g}"]
    return f"{passes:.0f} / {seconds:.2f}" if np.isfinite(passes) else f"not within {row['passes']:.0f} p"
