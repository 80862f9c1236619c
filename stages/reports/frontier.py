"""Frontier: what certified solutions cost, solver by solver, and what a certified path costs, rule by rule.

A solution is a run of its own at one lambda to one relative gap (P - D) / D <= tolerance, and its cost is that of the
whole run: oracle calls of steps and of exact passes, up to the exact pass that certifies it. Nothing is read off a trace
on the way to a smaller gap, where some schedules make no certificate. With an oracle slower by c seconds a solution costs
seconds + calls * c: arithmetic, for oracles called one after another; nothing is measured with a slowed oracle.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from storage.files import aside, publish, read_json
from storage.layout import open_group
from storage.places import Place
from storage.results import read_path

SLOWER = {"1 ms": 1e-3, "20 ms": 20e-3}
"""Seconds that an oracle call takes longer."""
MEASURES = ("passes", "seconds", *SLOWER)
HEADS = {"passes": "exact passes", "seconds": "seconds", **{name: f"oracle + {name}" for name in SLOWER}}
Row = dict[str, Any]


class Price(NamedTuple):
    """What a run has cost: a solve at one lambda, or a whole path."""

    variant: str
    lam: str
    """As the sweep names it; empty for a path."""
    value: float
    """Of that lambda; of a path the last one."""
    tolerance: float
    """On (P - D) / D; of a path eps."""
    reached: bool
    passes: float
    calls: int
    seconds: float

    def cost(self, measure: str) -> float:
        """In passes, in seconds, or in seconds with a slower oracle."""
        if measure == "passes":
            return self.passes
        return self.seconds + self.calls * SLOWER.get(measure, 0.0)


class PathRun(NamedTuple):
    """A path with what its certificates are drawn from."""

    price: Price
    arrays: Mapping[str, np.ndarray]
    attrs: Mapping[str, Any]
    verified: Mapping[str, Any]
    """verify.json"""


def frontier(runs: Iterable[tuple[str, str, int, Place]], folder: Place) -> dict[str, Any]:
    """Read the runs, write `frontier.csv`, `frontier.md` and the figures into `folder`.

    Returns
    -------
    dict
        figures: names of the files; table: a row for each variant, lambda and tolerance; paths: a row a path; text: the
        tables as lines of Markdown.
    """
    from stages.reports.frontier_figures import paint_certified, paint_prices

    solves, paths = [], []
    for variant, lam, _, place in runs:
        arrays, attrs = _without_vectors(place)
        price = _price(variant, lam, arrays, attrs)
        if attrs["kind"] == "single":
            solves.append(price)
        else:
            paths.append(PathRun(price, arrays, attrs, read_json(place / "verify.json")))
    table, of_paths = price_table(solves), [path_row(path) for path in paths]
    text = [*solve_lines(table), *path_lines(of_paths)]
    _write(folder / "frontier.md", lambda file: file.write("\n".join(text).strip() + "\n"))
    _write(folder / "frontier.csv", lambda file: _csv(file, [*table, *of_paths]))
    drawn = [*([paint_prices(table, folder)] if table else []), *([paint_certified(paths, folder)] if paths else [])]
    return {"figures": [path.name for path in drawn], "table": table, "paths": of_paths, "text": text}


def _without_vectors(place: Place) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Of a path.zarr what has one number a breakpoint, and the cells."""
    target = place / "path.zarr"
    large = ("weights", "block_gap", "support_", "label_offset")
    names = tuple(name for name, _ in open_group(target).arrays() if not name.startswith(large))
    return read_path(target, names)


def _price(variant: str, lam: str, arrays: Mapping[str, np.ndarray], attrs: Mapping[str, Any]) -> Price:
    return Price(
        variant, lam, float(arrays["lambda"][-1]), float(attrs["eps"]), attrs["status"] == "CONVERGED",
        float(np.sum(arrays["effective_passes"])), int(np.sum(arrays["oracle_calls"])), float(np.sum(arrays["seconds"])),
    )  # fmt: skip


def price_table(prices: Sequence[Price]) -> list[Row]:
    """A row for each variant, lambda and tolerance: of every measure the median, the least and the most over seeds.

    Infinite where the tolerance was not reached; `spent_passes` and `spent_seconds` are medians of what was spent anyhow.
    """
    table = []
    for lam, tolerance, variant in dict.fromkeys((p.lam, p.tolerance, p.variant) for p in prices):
        group = [p for p in prices if (p.lam, p.tolerance, p.variant) == (lam, tolerance, variant)]
        row: Row = {"variant": variant, "lambda": lam, "value": group[0].value, "tolerance": tolerance}
        row |= {"seeds": len(group), "reached": sum(p.reached for p in group)}
        for name in MEASURES:
            costs = [p.cost(name) if p.reached else np.inf for p in group]
            row |= {name: _median(costs), f"{name} least": min(costs), f"{name} most": max(costs)}
        row["spent_passes"] = _median([p.passes for p in group])
        row["spent_seconds"] = _median([p.seconds for p in group])
        table.append(row)
    return table


def _median(values: Sequence[float]) -> float:
    """The middle one; the upper of two, so that it is infinite where half of the seeds did not come there."""
    return float(sorted(values)[len(values) // 2])


def path_row(path: PathRun) -> Row:
    """What a path costs, and down to where and how well it is certified."""
    price, verified = path.price, path.verified
    return {
        "variant": price.variant,
        "rule": path.attrs["rule"],
        "eps": price.tolerance,
        "breakpoints": int(path.arrays["lambda"].size),
        **{name: price.cost(name) for name in MEASURES},
        "status": path.attrs["status"],
        "certified": verified["certified"],
        "lambda_low": verified["lambda_low"],
        "certified gap": verified["max_gap"],
        "sampled gap": max((sample["gap"] for sample in verified["samples"]), default=None),
    }


def winners(table: Sequence[Row]) -> dict[tuple[str, float, str], tuple[str, float]]:
    """(lambda, tolerance, measure) to the cheapest variant and how many times as much the next one costs.

    Infinite if no other one comes there; nothing where none does.
    """
    found = {}
    for lam, tolerance in dict.fromkeys((row["lambda"], row["tolerance"]) for row in table):
        rows = [row for row in table if (row["lambda"], row["tolerance"]) == (lam, tolerance)]
        for name in MEASURES:
            first, *others = sorted(rows, key=lambda row: row[name])
            if np.isfinite(first[name]):
                factor = others[0][name] / first[name] if others else np.inf
                found[lam, tolerance, name] = first["variant"], float(factor)
    return found


def solve_lines(table: Sequence[Row]) -> list[str]:
    """The table of solves and that of winners in Markdown; the cheapest of a column in bold."""
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
    """As the sweep names it, and its value where that is not the same."""
    lam, value = row["lambda"] or f"{row['value']:g}", f"{row['value']:.3g}"
    return f"λ = {lam} = {value}" if "/" in lam else f"λ = {lam}"


def cost_cell(row: Row, name: str) -> str:
    """Median and range of one measure; how much was spent where the tolerance was not reached."""
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
    heads = (
        "path",
        "ε",
        "breakpoints",
        *(HEADS[name] for name in MEASURES),
        "certified from λ",
        "largest gap",
        "sampled",
    )
    cells = [list(heads)]
    for row in rows:
        costs = [_short(row[name]) for name in MEASURES]
        low = "not certified" if not row["certified"] else f"{row['lambda_low']:.3g}" if row["lambda_low"] else "0"
        sampled = "–" if row["sampled gap"] is None else f"{row['sampled gap']:.3g}"
        cells.append(
            [
                row["variant"],
                f"{row['eps']:g}",
                f"{row['breakpoints']}",
                *costs,
                low,
                f"{row['certified gap']:.3g}",
                sampled,
            ]
        )
    return ["", "Paths certified for every λ:", "", *markdown(cells)]


def _short(value: float) -> str:
    return "∞" if not np.isfinite(value) else f"{value:.3g}" if value < 1000 else f"{value:,.0f}"


def markdown(cells: Sequence[Sequence[str]]) -> list[str]:
    """A table, first row its head, padded so that it can be read as it is."""
    wide = [max(map(len, column)) for column in zip(*cells, strict=True)]
    rows = ["| " + " | ".join(cell.ljust(w) for cell, w in zip(row, wide, strict=True)) + " |" for row in cells]
    return [rows[0], "|" + "|".join("-" * (w + 2) for w in wide) + "|", *rows[1:]]


def _write(path: Place, fill: Callable[[Any], Any]) -> None:
    with aside(path).open("w", newline="", encoding="utf-8") as file:
        fill(file)
    publish(path)


def _csv(file: Any, rows: Sequence[Row]) -> None:
    writer = csv.DictWriter(file, list(dict.fromkeys(name for row in rows for name in row)))
    writer.writeheader()
    writer.writerows(rows)
