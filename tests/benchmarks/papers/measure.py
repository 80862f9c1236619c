"""What the sentences of the papers are judged by, measured on the sweep of a part: a row for each comparison.

A row has the seeds' own values of both sides, so that every verdict can be found again from the table alone (`judge`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from gapwise.stages.reports.curves import Curves, Trace, column, first_at, values_at
from gapwise.stages.reports.stored import read_numbers
from gapwise.stages.reports.suboptimality import best_dual, read_suboptimality
from gapwise.storage.backend import location
from gapwise.storage.files import read_json
from gapwise.storage.results import read_iterations

Claim = Mapping[str, Any]
"""An entry of claims.yaml."""
Row = dict[str, str]
COLUMNS = (
    "claim", "part", "lambda", "at", "ours", "theirs", "measure",  # these identify a row
    "after", "our_values", "their_values", "note",
)  # fmt: skip
"""`after`: the work at which both sides were compared; values: one a seed, with spaces between; `note`: why a row decides
nothing, or empty."""
ACCURACIES = (1.0, *(float(f"{digit}e{power}") for power in range(-1, -5, -1) for digit in (5, 2, 1)))
"""To which work is compared, as shares of D*, the largest dual value of any run."""
UNITS = {"oracle_calls": "calls", "passes": "passes", "seconds": "s"}
PATH = {"path passes": "effective_passes", "path seconds": "seconds"}
SHORT, LARGE = "runs are too short", "gaps are still large"
STATISTICS: dict[str, Callable[[np.ndarray], float]] = {
    "median": lambda run: float(np.median(run)),
    "nine tenths": lambda run: float(np.quantile(run, 0.9)),
    "most in the last half": lambda run: float(run[run.size // 2 :].max()),
    "first half / end": lambda run: float(run[: run.size // 2].max() / run[-1]),
    "last quarter / most": lambda run: float(_quarters(run)[3].max() / run.max()),
    "last quarter / first": lambda run: float(np.median(_quarters(run)[3]) / max(np.median(_quarters(run)[0]), 1e-9)),
    "least growth by quarters": lambda run: min(b / a for a, b in pairwise(map(np.median, _quarters(run)))),
    "steadiness at the end": lambda run: float(_quarters(run)[3].min() / _quarters(run)[3].max()),
}
"""Of what MP-BCFW records of its outer iterations."""


def _quarters(run: np.ndarray) -> list[np.ndarray]:
    return np.array_split(run, 4)


def comparisons(claim: Claim) -> list[Claim]:
    """The claim, and the second comparison that its `and` describes."""
    return [claim, {**claim, **claim["and"]}] if "and" in claim else [claim]


class Sweep:
    """The finished runs of a sweep, by its folder."""

    def __init__(self, folder: Path):
        self.summary = read_json(folder / "summary.json")
        self.jobs = [row for row in self.summary["jobs"] if row["status"] in ("complete", "done")]
        self.variants = list(dict.fromkeys(row["variant"] for row in self.jobs))

    @cached_property
    def curves(self) -> Curves:
        """Gap traces with suboptimalities, by variant and lambda."""
        runs = [(row["variant"], row["lambda"], row["seed"], location(row["run"])) for row in self.jobs]
        return read_suboptimality(runs)

    @cached_property
    def lambdas(self) -> list[str]:
        """As the sweep names them, from the largest to the least."""
        values = {lam: float(traces[0]["lambda"][0]) for (_, lam), traces in self.curves.items()}
        return sorted(values, key=lambda lam: -values[lam])

    def runs(self, variant: str, lam: str = "") -> list[Path]:
        """The run directories of all seeds; of a path `lam` is empty."""
        return [location(row["run"]) for row in self.jobs if (row["variant"], row["lambda"]) == (variant, lam)]

    def named(self, patterns: str) -> list[str]:
        """The variants that any of several patterns, with | between them, describes; LookupError if there is none."""
        every = [name for one in patterns.split(" | ") for name in self.variants if fnmatchcase(name, one)]
        if not every:
            raise LookupError(f"no runs of {patterns}")
        return every


def rows_of(claim: Claim, part: str, sweep: Sweep) -> Iterator[Row]:
    """Every row of a claim on one part."""
    for one in comparisons(claim):
        if part not in one["parts"]:
            continue
        lams = [""] if one["measure"] in PATH else sweep.lambdas
        for lam in (lam for lam in lams if lam in one.get("lambdas", lams)):
            moments = one.get("at", "end")
            for at in moments if isinstance(moments, list) else [moments]:
                for ours, others in one["compare"].items():
                    for theirs in others or [""]:
                        key = (claim["id"], part, lam, str(at), ours, theirs, one["measure"])
                        yield _row(key, *_measured(one, sweep, lam, at, ours, theirs))


def _row(key: Sequence[str], ours: Sequence[float], theirs: Sequence[float], after: str = "", note: str = "") -> Row:
    values = [" ".join(f"{value:.6g}" for value in side) for side in (ours, theirs)]
    return dict(zip(COLUMNS, (*key, after, *values, note), strict=True))


Found = tuple[np.ndarray, np.ndarray, str, str]
"""Values of both sides, the work at which they are compared, and why they decide nothing."""
NOTHING = np.empty(0)


def _measured(claim: Claim, sweep: Sweep, lam: str, at: object, ours: str, theirs: str) -> Found:
    try:
        names = [sweep.named(side) if side else [] for side in (ours, theirs)]
    except LookupError as error:
        return NOTHING, NOTHING, "", str(error)
    measure: str = claim["measure"]
    if measure in PATH:
        totals = [_least({name: _totals(sweep, name, PATH[measure]) for name in side}) for side in names]
        return totals[0], totals[1], "whole path", ""
    if ", " in measure:
        quantity, statistic = measure.split(", ")
        values = [_least({name: _statistics(sweep, name, lam, quantity, statistic) for name in side}) for side in names]
        return values[0], values[1], "", "" if values[0].size else SHORT
    traces = [{name: sweep.curves[name, lam] for name in side} for side in names]
    return _work_to(traces, measure, claim["to"]) if "to" in claim else _at_equal_work(claim, traces, at)


def _least(values: Mapping[str, np.ndarray]) -> np.ndarray:
    """The values of the variant with the least median; none of no variants."""
    return min(values.values(), key=np.median, default=NOTHING)


def _totals(sweep: Sweep, name: str, quantity: str) -> np.ndarray:
    return np.array([np.sum(read_numbers(run)[0][quantity]) for run in sweep.runs(name)])


def _statistics(sweep: Sweep, name: str, lam: str, quantity: str, statistic: str) -> np.ndarray:
    """A number a seed, of its outer iterations or of its gap trace."""
    traces = sweep.curves[name, lam]
    if statistic == "true / known":
        return np.array([1.0 / column(trace, "stale_ratio")[-1] for trace in traces])
    if statistic == "half way / end":
        ends = [float(trace["passes"][-1]) for trace in traces]
        both = [values_at([one], "passes", np.array([end / 2.0, end])) for one, end in zip(traces, ends, strict=True)]
        return np.array([half / late for half, late in np.squeeze(both, axis=1)])
    runs = [read_iterations(run).get(quantity, NOTHING) for run in sweep.runs(name, lam)]
    return np.array([STATISTICS[statistic](np.asarray(run, float)) for run in runs if run.size >= 4])


def _at_equal_work(claim: Claim, sides: Sequence[Mapping[str, Sequence[Trace]]], at: object) -> Found:
    """A column of the traces after `at` passes, calls or seconds, or after as much as all runs of both sides reach."""
    over, quantity = claim.get("over", "passes"), claim["measure"]
    every = [trace for side in sides for traces in side.values() for trace in traces]
    first = max(float(trace[over][min(1, len(trace[over]) - 1)]) for trace in every)
    x = min(*(float(trace[over][-1]) for trace in every), np.inf if at == "end" else float(str(at)))
    after = f"{x:,.0f} calls" if over == "oracle_calls" else f"{x:.3g} {UNITS[over]}"
    ours, theirs = (_least({name: values_at(some, over, x, quantity) for name, some in side.items()}) for side in sides)
    if x <= 0.0 or x < first * (1.0 - 1e-9) or not np.isfinite([*ours, *theirs]).all():
        return NOTHING, NOTHING, after, SHORT
    small = claim.get("below", np.inf) * best_dual(every[0])
    return ours, theirs, after, LARGE if min(np.median(ours), np.median(theirs)) > small else ""


def _work_to(sides: Sequence[Mapping[str, Sequence[Trace]]], over: str, to: str | float) -> Found:
    """Work to a gap of `to`, or until the quantity `to` is at the finest accuracy that both sides reach.

    Where they reach none, what `theirs` spent without reaching the coarsest bounds their work from below.
    """
    ours, theirs = (next(iter(side.values())) for side in sides)
    if not isinstance(to, str):
        values = [np.array([first_at(trace, over, to) for trace in side]) for side in (ours, theirs)]
        reached = np.isfinite(values).all()
        return values[0], values[1], f"a gap of {to:g}", "" if reached else SHORT
    for level in reversed(ACCURACIES):
        a, b = (work_to(side, over, level, to) for side in (ours, theirs))
        if np.isfinite([*a, *b]).all() and min(*a, *b) > 0.0:
            return a, b, f"{level:g} D*", ""
    a, spent = work_to(ours, over, 1.0, to), np.array([trace[over][-1] for trace in theirs])
    reached = np.isfinite(a).all() and a.min() > 0.0
    return a, spent, "1 D*, which theirs do not reach", "" if reached and a.max() < spent.min() else SHORT


def work_to(traces: Sequence[Trace], over: str, level: float, quantity: str = "gap") -> np.ndarray:
    """For each trace the work until `quantity` is at most `level` D*; inf if it never is."""
    return np.array([first_at(trace, over, level * best_dual(trace), quantity) for trace in traces])


def added_rows(part: str, sweep: Sweep, ours: Sequence[str], neither: Sequence[str]) -> Iterator[Row]:
    """What this project adds: the least work of its methods beside the least of the papers', in this part.

    Work is counted to the finest gap that both sides certify at a lambda, or for the whole path of O16's rule and of ours.
    """
    names = [[name for name in sweep.variants if name in ours], ["paper"] if "paper" in sweep.variants else []]
    if all(names):
        for measure, quantity in PATH.items():
            totals = [{name: _totals(sweep, name, quantity) for name in side} for side in names]
            yield _added(part, "", measure, totals, "whole path")
        return
    for lam in sweep.lambdas:
        here = {name: traces for (name, at), traces in sweep.curves.items() if at == lam and name not in neither}
        for level in reversed(ACCURACIES):
            work = {
                over: {name: work_to(traces, over, level) for name, traces in here.items()}
                for over in ("passes", "seconds")
            }
            reached = [
                name for name, values in work["passes"].items() if np.isfinite(values).all() and values.min() > 0.0
            ]
            sides = [[name for name in reached if (name in ours) == mine] for mine in (True, False)]
            if all(sides):
                for over in work:
                    yield _added(
                        part, lam, over, [{name: work[over][name] for name in side} for side in sides], f"{level:g} D*"
                    )
                break


def _added(part: str, lam: str, measure: str, sides: Sequence[Mapping[str, np.ndarray]], after: str) -> Row:
    ours, theirs = (min(side, key=lambda name: float(np.median(side[name]))) for side in sides)
    return _row(("added", part, lam, "end", ours, theirs, measure), sides[0][ours], sides[1][theirs], after)
