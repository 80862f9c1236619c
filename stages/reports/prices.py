"""Prices: what a certified solution costs, solver by solver, and what a certified path costs, rule by rule.

Each solution is a run of its own at one lambda, to one relative gap (P - D) / D <= tolerance. Its cost is that of the
whole run: all oracle calls of steps and of exact passes, up to the exact pass that certifies it. No cost is read off the
trace of a run to a smaller gap, because some methods compute no certificate on the way. With an oracle slower by c seconds
a solution costs seconds + calls * c, which is computed, not measured, and valid for oracles called one after another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from gapwise.records import Facts, Record
from gapwise.stages.certify.verdict import Verdict, read_verdict
from gapwise.stages.reports.stored import read_numbers
from gapwise.stages.reports.tables import markdown
from gapwise.stages.solver.path.rules import path_rule
from gapwise.storage.backend import Location
from gapwise.storage.files import read_json

SLOWER = {"1 ms": 1e-3, "20 ms": 20e-3}
"""Extra seconds per oracle call."""
MEASURES = ("passes", "seconds", *SLOWER)
HEADS = {"passes": "exact passes", "seconds": "seconds", **{name: f"oracle + {name}" for name in SLOWER}}
Row = Record
Aggregate = tuple[str, str | Callable[[pd.Series], float]]
"""A column, and how pandas makes one number of those of a group."""


class Price(NamedTuple):
    """What one run cost: a solve at one lambda, or a whole path."""

    variant: str
    lam: str
    """As the sweep names it; empty for a path."""
    value: float
    """The value of lambda; for a path the last one."""
    tolerance: float
    """On (P - D) / D; for a path eps."""
    reached: bool
    """Whether everything that was asked for is certified (`Verdict.certified`)."""
    passes: float
    calls: int
    seconds: float

    def cost(self, measure: str) -> float:
        """In passes, in seconds, or in seconds with a slower oracle."""
        if measure == "passes":
            return self.passes
        return self.seconds + self.calls * SLOWER.get(measure, 0.0)


class PathRun(NamedTuple):
    """A path, with the data to draw its certificates from."""

    price: Price
    arrays: Mapping[str, np.ndarray]
    attrs: Facts
    verdict: Verdict
    samples: Sequence[Mapping[str, float]]
    """lambda and gap where verify made exact passes between solved lambdas"""


def read_prices(runs: Iterable[tuple[str, str, int, Location]]) -> tuple[list[Price], list[PathRun]]:
    """The prices of all solves at one lambda, and the paths."""
    solves, paths = [], []
    for variant, lam, _, run_dir in runs:
        arrays, attrs = read_numbers(run_dir)
        verdict = read_verdict(run_dir, arrays, attrs)
        price = _price(variant, lam, arrays, attrs, verdict.certified)
        if not path_rule(str(attrs["rule"])).finds_lambdas:
            solves.append(price)
        else:
            samples = read_json(run_dir / "verify.json")["samples"]
            paths.append(PathRun(price, arrays, attrs, verdict, samples))
    return solves, paths


def _price(variant: str, lam: str, arrays: Mapping[str, np.ndarray], attrs: Facts, reached: bool) -> Price:
    return Price(
        variant, lam, float(arrays["lambda"][-1]), float(attrs["eps"]), reached,
        float(np.sum(arrays["effective_passes"])), int(np.sum(arrays["oracle_calls"])), float(np.sum(arrays["seconds"])),
    )  # fmt: skip


def price_table(prices: Sequence[Price]) -> list[Row]:
    """One row per variant, lambda and tolerance: median, least and largest value of every measure over seeds.

    The median is the upper one. The cost of a run that did not reach the tolerance is infinite, so the median is
    infinite if half of the seeds did not; `spent_passes` and `spent_seconds` are medians of what all runs spent.
    """
    if not prices:
        return []
    runs = pd.DataFrame(prices).rename(columns={"lam": "lambda", "passes": "spent_passes", "seconds": "spent_seconds"})
    for name in MEASURES:
        runs[name] = [price.cost(name) if price.reached else np.inf for price in prices]
    columns: dict[str, Aggregate] = {"value": ("value", "first"), "seeds": ("value", "size")}
    columns["reached"] = ("reached", "sum")
    for name in MEASURES:
        columns |= {name: (name, _upper_median), f"{name} least": (name, "min"), f"{name} most": (name, "max")}
    columns |= {name: (name, _upper_median) for name in ("spent_passes", "spent_seconds")}
    table = runs.groupby(["lambda", "tolerance", "variant"], sort=False).agg(**columns).reset_index()
    return table[["variant", "lambda", "value", "tolerance", *list(columns)[1:]]].to_dict("records")


def _upper_median(values: pd.Series) -> float:
    return float(values.quantile(interpolation="higher"))


def path_row(path: PathRun) -> Row:
    """What a path costs, how far down it is certified, and to which gap."""
    price, verdict = path.price, path.verdict
    return {
        "variant": price.variant,
        "rule": path.attrs["rule"],
        "eps": price.tolerance,
        "breakpoints": int(path.arrays["lambda"].size),
        **{name: price.cost(name) for name in MEASURES},
        "status": path.attrs["status"],
        "certified": verdict.certified,
        "lambda_low": verdict.lam_low,
        "certified gap": verdict.largest_gap,
        "sampled gap": max((sample["gap"] for sample in path.samples), default=None),
    }


def winners(table: Sequence[Row]) -> dict[tuple[str, float, str], tuple[str, float]]:
    """(lambda, tolerance, measure) to the cheapest variant and how many times as much the next one costs.

    Infinite if no other variant reaches the tolerance; no entry if none does.
    """
    best = {}
    for lam, tolerance in dict.fromkeys((row["lambda"], row["tolerance"]) for row in table):
        rows = [row for row in table if (row["lambda"], row["tolerance"]) == (lam, tolerance)]
        for name in MEASURES:
            first, *others = sorted(rows, key=lambda row: row[name])
            if np.isfinite(first[name]):
                factor = others[0][name] / first[name] if others else np.inf
                best[lam, tolerance, name] = first["variant"], float(factor)
    return best


def solve_lines(table: Sequence[Row]) -> list[str]:
    """The tables of solves and of winners in Markdown; the cheapest entry of each column is bold."""
    best, text = winners(table), []
    for lam in dict.fromkeys(row["lambda"] for row in table):
        rows = [row for row in table if row["lambda"] == lam]
        seeds = max(row["seeds"] for row in rows)
        of_seeds = f"median of {seeds} seeds [least–most]" if seeds > 1 else "one seed"
        text += ["", f"{lambda_name(rows[0])}, (P − D)/D ≤ tolerance, {of_seeds}:", ""]
        cells = [["tolerance", "solver", *(HEADS[name] for name in MEASURES)]]
        for row in rows:
            costs = []
            for name in MEASURES:
                words = cost_cell(row, name)
                wins = best.get((lam, row["tolerance"], name), ("", 0.0))[0] == row["variant"]
                costs.append(f"**{words}**" if wins else words)
            cells.append([f"{row['tolerance']:g}", row["variant"], *costs])
        text += markdown(cells)
    if table:
        text += ["", "The cheapest, and how many times as much the next one costs:", ""]
        cells = [["λ", "tolerance", *(HEADS[name] for name in MEASURES)]]
        for lam, tolerance in dict.fromkeys((row["lambda"], row["tolerance"]) for row in table):
            named = [best.get((lam, tolerance, name)) for name in MEASURES]
            cells.append([lam, f"{tolerance:g}", *(f"{won[0]} ({won[1]:.3g})" if won else "none" for won in named)])
        text += markdown(cells)
    return text


def lambda_name(row: Row) -> str:
    """λ as the sweep names it, with its value if the name is not a number."""
    lam, value = row["lambda"] or f"{row['value']:g}", f"{row['value']:.3g}"
    return f"λ = {lam} = {value}" if "/" in lam else f"λ = {lam}"


def cost_cell(row: Row, name: str) -> str:
    """Median and range of one measure, or what was spent without reaching the tolerance."""
    if not np.isfinite(row[name]):
        if name not in ("passes", "seconds"):
            return "–"
        some = f"; {row['reached']} of {row['seeds']} seeds" if row["reached"] else ""
        return f"not in {_short(row[f'spent_{name}'])}{some}"
    least, most = row[f"{name} least"], row[f"{name} most"]
    return f"{_short(row[name])} [{_short(least)}–{_short(most)}]" if row["seeds"] > 1 else _short(row[name])


def path_lines(rows: Sequence[Row]) -> list[str]:
    """The table of paths in Markdown."""
    if not rows:
        return []
    cells = [
        ["path", "ε", "breakpoints", *(HEADS[name] for name in MEASURES), "certified from λ", "largest gap", "sampled"]
    ]
    for row in rows:
        costs = [_short(row[name]) for name in MEASURES]
        low = "not certified" if not row["certified"] else f"{row['lambda_low']:.3g}" if row["lambda_low"] else "0"
        sampled = "–" if row["sampled gap"] is None else f"{row['sampled gap']:.3g}"
        largest = f"{row['certified gap']:.3g}"
        cells.append([row["variant"], f"{row['eps']:g}", f"{row['breakpoints']}", *costs, low, largest, sampled])
    return ["", "Paths certified for every λ:", "", *markdown(cells)]


def _short(value: float) -> str:
    return "∞" if not np.isfinite(value) else f"{value:.3g}" if value < 1000 else f"{value:,.0f}"
