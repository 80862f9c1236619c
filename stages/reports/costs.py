"""What it takes to reach an accuracy: a row a run and accuracy, medians over seeds, and the tables that say so.

Every frame has the columns of `RUN` and of `WORK`; the work of a run that did not get there is infinite. Accuracies are
shares of D*, the largest dual value of any run at that lambda, read off the gap traces of runs; or tolerances on
(P - D) / D, each certified by a run of its own, whose cost is that of the whole run with its exact passes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypedDict

import numpy as np
import pandas as pd

from gapwise.records import Record
from gapwise.stages.certify.verdict import read_verdict
from gapwise.stages.reports.curves import Curves, Runs, first_at
from gapwise.stages.reports.stored import read_numbers
from gapwise.stages.reports.suboptimality import best_dual
from gapwise.stages.reports.tables import markdown
from gapwise.stages.solver.path.rules import path_rule
from gapwise.storage.backend import Location
from gapwise.storage.files import read_json

LEVELS = (0.1, 0.01, 0.001, 0.0001)
RUN = ("variant", "lambda", "value", "measure", "level")
"""Variant and lambda as the sweep names them, the value of lambda, what has to be at most `level`."""
WORK = ("calls", "passes", "seconds")
COLUMNS = ("oracle_calls", "passes", "seconds")
"""Of gap traces: those of `WORK`."""
SPENT = ("spent_calls", "spent_passes", "spent_seconds")
"""The work of whole runs."""
LAST = ("last_gap", "last_test_loss")
"""The gap at the end, as a share of D*, and the test loss; nan where unknown."""
MEASURES = {"gap": "P − D ≤ {} D*", "primal_excess": "P − D* ≤ {} D*", "certified": "(P − D) / D ≤ {}"}
Row = Record


class Costs(TypedDict):
    """What runs cost."""

    table: list[Row]
    text: list[str]
    """the table as lines"""


def costs_to_levels(curves: Curves, measures: Sequence[str] = ("gap",)) -> pd.DataFrame:
    """Calls, passes and seconds of every run to each of `LEVELS`, from traces with suboptimalities."""
    rows = []
    for (variant, lam), traces in curves.items():
        for trace in traces:
            best = best_dual(trace)
            spent = {name: float(trace[over][-1]) for name, over in zip(SPENT, COLUMNS, strict=True)}
            last = (float(trace["gap"][-1]) / best, float(trace["test_loss"][-1]) if "test_loss" in trace else np.nan)
            for measure in measures:
                for level in LEVELS:
                    key = dict(zip(RUN, (variant, lam, float(trace["lambda"][0]), measure, level), strict=True))
                    work = [first_at(trace, over, level * best, measure) for over in COLUMNS]
                    rows.append(
                        {**key, **dict(zip(WORK, work, strict=True)), **spent, **dict(zip(LAST, last, strict=True))}
                    )
    return pd.DataFrame(rows, columns=[*RUN, *WORK, *SPENT, *LAST])


def summary(curves: Curves) -> Costs:
    """What runs with gap traces cost; `curves` have suboptimalities."""
    table = summarised(costs_to_levels(curves))
    return {"table": table, "text": lines(table)}


def costs_of_solves(runs: Runs) -> pd.DataFrame:
    """Calls, passes and seconds of solves at one lambda to their tolerances; runs of paths are left out."""
    rows = []
    for variant, lam, _, run_dir in runs:
        arrays, attrs = read_numbers(run_dir)
        if path_rule(str(attrs["rule"])).finds_lambdas:
            continue
        spent = _totals(arrays)
        key = dict(zip(RUN, (variant, lam, float(arrays["lambda"][-1]), "certified", float(attrs["eps"])), strict=True))
        work = spent if read_verdict(run_dir, arrays, attrs).certified else (np.inf,) * len(WORK)
        rows.append({**key, **dict(zip((*WORK, *SPENT), (*work, *spent), strict=True)), **dict.fromkeys(LAST, np.nan)})
    return pd.DataFrame(rows, columns=[*RUN, *WORK, *SPENT, *LAST])


def _totals(arrays: Mapping[str, np.ndarray]) -> tuple[float, ...]:
    """Calls, passes and seconds of a run."""
    return tuple(float(np.sum(arrays[name])) for name in ("oracle_calls", "effective_passes", "seconds"))


def summarised(costs: pd.DataFrame) -> list[Row]:
    """A row a variant, lambda, measure and level: of each of `WORK` the median, the least and the largest over seeds.

    The median is the upper one: infinite if half of the seeds did not get there.
    """
    groups = costs.groupby([*RUN], sort=False)
    middle = groups[[*WORK, *SPENT, *LAST]].quantile(0.5, interpolation="higher")
    least, most = groups[[*WORK]].min().add_suffix(" least"), groups[[*WORK]].max().add_suffix(" most")
    seeds, reached = groups.size().rename("seeds"), groups["passes"].agg(lambda passes: int(np.isfinite(passes).sum()))
    table = pd.concat([seeds, reached.rename("reached"), middle, least, most], axis=1).reset_index()
    rows: list[Row] = table.to_dict("records")
    return rows


def conclusion(table: Sequence[Row], work: Sequence[str], measure: str = "gap") -> str:
    """Who needs least to the smallest level that is reached at every lambda, as the title of a figure; empty if none is."""
    rows = pd.DataFrame([row for row in table if row["measure"] == measure])
    for level, some in sorted(rows.groupby("level"), key=lambda pair: pair[0]) if len(rows) else ():
        least = {name: some.loc[some.groupby("lambda", sort=False)[name].idxmin()] for name in work}
        if all(len(best) == rows["lambda"].nunique() and np.isfinite(best[name]).all() for name, best in least.items()):
            said = [f"fewest {name} with {_of_most(best['variant'])}" for name, best in least.items()]
            return f"To an accuracy of {level:g}: {'; '.join(said)}"
    return ""


def _of_most(winners: Iterable[str]) -> str:
    """Who wins at most lambdas, and at how many of them."""
    names = [name.replace("_", " ") for name in winners]
    first = max(dict.fromkeys(names), key=names.count)
    return first + (f" at {names.count(first)} of {len(names)} λ's" if len(names) > 1 else "")


def lines(table: Sequence[Row], over: str = "passes") -> list[str]:
    """For each lambda a table in Markdown: medians of work (of `WORK`) and seconds to each level, the least of them bold."""
    text: list[str] = []
    for lam in dict.fromkeys(row["lambda"] for row in table):
        rows = [row for row in table if row["lambda"] == lam]
        columns = list(dict.fromkeys((row["measure"], row["level"]) for row in rows))
        seeds = max(row["seeds"] for row in rows)
        of_seeds = f"medians of {seeds} seeds" if seeds > 1 else "one seed"
        text += ["", f"{lambda_name(rows[0])}, {of_seeds}: {over} / seconds", ""]
        last = {
            name: words
            for name, words in zip(LAST, ("last gap / D*", "test loss"), strict=True)
            if any(pd.notna(row[name]) for row in rows)
        }
        cells = [["", *(MEASURES[measure].format(f"{level:g}") for measure, level in columns), *last.values()]]
        least = {
            key: [min(row[name] for row in rows if (row["measure"], row["level"]) == key) for name in (over, "seconds")]
            for key in columns
        }
        for variant in dict.fromkeys(row["variant"] for row in rows):
            mine = {(row["measure"], row["level"]): row for row in rows if row["variant"] == variant}
            to_levels = [_cell(mine[key], over, least[key]) if key in mine else "" for key in columns]
            cells.append([variant, *to_levels, *(short(next(iter(mine.values()))[name]) for name in last)])
        text += markdown(cells)
    return text


def _cell(row: Row, over: str, least: Sequence[float]) -> str:
    """Work and seconds to a level, in bold where nobody needs less, or what was spent without getting there."""
    if not np.isfinite(row[over]):
        some = f", {row['reached']} of {row['seeds']} seeds did" if row["reached"] else ""
        return f"not in {short(row[f'spent_{over}'])}{some}"
    pairs = zip((row[over], row["seconds"]), least, strict=True)
    return " / ".join(f"**{short(value)}**" if value == best else short(value) for value, best in pairs)


def lambda_name(row: Row) -> str:
    """λ as the sweep names it, with its value if the name is not a number."""
    lam, value = row["lambda"] or f"{row['value']:g}", f"{row['value']:.3g}"
    return f"λ = {lam} = {value}" if "/" in lam else f"λ = {lam}"


def short(value: float) -> str:
    """Three digits, or a whole number with commas; a dash for nan."""
    return "–" if np.isnan(value) else f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}"


def path_costs(runs: Iterable[tuple[str, Location]]) -> list[Row]:
    """What whole paths and grids cost, how far down they are certified, and to which gap; a row a (name, run directory)."""
    rows = []
    for name, run_dir in runs:
        arrays, attrs = read_numbers(run_dir)
        verdict, file = read_verdict(run_dir, arrays, attrs), run_dir / "verify.json"
        samples = read_json(file).get("samples", ()) if file.is_file() else ()
        rows.append({
            "variant": name, "rule": attrs["rule"], "eps": float(attrs["eps"]), "lambdas": int(arrays["lambda"].size),
            "last_lambda": float(arrays["lambda"][-1]), **dict(zip(WORK, _totals(arrays), strict=True)),
            "test_loss": float(np.min(arrays["test_loss"])) if "test_loss" in arrays else None,
            "status": attrs["status"], "certified": verdict.certified, "lambda_low": verdict.lam_low,
            "certified gap": verdict.largest_gap, "sampled gap": max((one["gap"] for one in samples), default=None),
        })  # fmt: skip
    return rows


def path_lines(rows: Sequence[Row]) -> list[str]:
    """The table of `path_costs` in Markdown."""
    heads = {"lambdas": "λ's solved", "passes": "passes", "seconds": "seconds", "last_lambda": "last λ",
             "lambda_low": "certified from λ", "certified gap": "largest gap", "sampled gap": "sampled gap",
             "test_loss": "least test loss"}  # fmt: skip
    shown = [row if row["certified"] else {**row, "lambda_low": None} for row in rows]
    cells = [
        [row["variant"], *("–" if row[name] is None else short(float(row[name])) for name in heads)] for row in shown
    ]
    return ["", *markdown([["path", *heads.values()], *cells])] if rows else []
