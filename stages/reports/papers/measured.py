"""A finished sweep as claims read it: two variants beside each other at equal work, and the work to a given accuracy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gapwise.stages.problems.facts import Facts
from gapwise.stages.reports.curves import SMALLEST, Curves, Trace, first_at, read_curves, value_at
from gapwise.stages.reports.stored import read_numbers
from gapwise.stages.reports.suboptimality import LEVELS, best_dual, with_suboptimality
from gapwise.storage.backend import Location, location
from gapwise.storage.files import read_json
from gapwise.storage.results import read_iterations

UNITS = {"oracle_calls": "calls", "passes": "passes", "seconds": "s"}
FORMS = {"oracle_calls": ",.0f", "passes": ".3g", "seconds": ".2g"}
SHARES = (*LEVELS, 0.0001)
"""Accuracies to which work is compared, as shares of the largest dual value that is known."""


@dataclass(frozen=True)
class Finding:
    """What was measured of a claim."""

    holds: bool | None
    """None: these runs do not decide it."""
    measured: str
    """The numbers, in words."""
    ratio: float | None = None
    """By how much, if a single number can say: more than 1 where the claim holds."""


class Measured:
    """The runs of one sweep.

    Attributes
    ----------
    folder : Path or UrlPath
        The sweep's directory, with summary.json.
    """

    def __init__(self, folder: Location):
        self.folder = folder
        self.summary: Facts = read_json(folder / "summary.json")
        self.jobs = [row for row in self.summary["jobs"] if row["status"] in ("complete", "done")]

    @cached_property
    def curves(self) -> Curves:
        """Gap traces with suboptimalities, by (variant, lambda)."""
        runs = [(row["variant"], row["lambda"], row["seed"], location(row["run"])) for row in self.jobs]
        return with_suboptimality(read_curves(runs))

    @property
    def lambdas(self) -> list[str]:
        """As the sweep names them."""
        return list(dict.fromkeys(lam for _, lam in self.curves))

    @property
    def variants(self) -> list[str]:
        """Those with complete runs."""
        return list(dict.fromkeys(row["variant"] for row in self.jobs))

    def traces(self, variant: str, lam: str) -> list[Trace]:
        """One per seed; KeyError names the variant."""
        if (variant, lam) not in self.curves:
            raise KeyError(variant)
        return self.curves[variant, lam]

    def path(self, variant: str) -> dict[str, np.ndarray]:
        """One number per breakpoint of the variant's first run; KeyError names the variant."""
        for row in self.jobs:
            if row["variant"] == variant:
                return read_numbers(location(row["run"]))[0]
        raise KeyError(variant)

    def iterations(self, variant: str, lam: str) -> list[Mapping[str, np.ndarray]]:
        """What the variant's runs recorded of their outer iterations."""
        rows = [row for row in self.jobs if (row["variant"], row["lambda"]) == (variant, lam)]
        tables = [read_iterations(location(row["run"])) for row in rows]
        if not any(tables):
            raise KeyError(variant)
        return [columns for columns in tables if columns]


def better_at_equal_work(
    ours: str, theirs: str, quantity: str = "gap", over: str = "passes"
) -> Callable[[Measured], Finding]:
    """A claim that `ours` has less of `quantity` than `theirs` after the work that all their runs reach, at every lambda.

    Parameters
    ----------
    quantity : str
        A column of the gap trace, or `primal_excess`, `dual_lack`.
    over : str
        The work: `passes`, `oracle_calls` or `seconds`.
    """

    def measure(part: Measured) -> Finding:
        ratios, words = [], []
        for lam in part.lambdas:
            pair = [part.traces(name, lam) for name in (ours, theirs)]
            x = min(float(trace[over][-1]) for traces in pair for trace in traces)
            values = [value_at(traces, over, x, quantity) for traces in pair]
            if x <= 0.0 or not np.isfinite(values).all():
                continue
            ratios.append(values[1] / max(values[0], SMALLEST))
            half = [value_at(traces, over, 0.5 * x, quantity) for traces in pair]
            about = budget(ratios[-1], half[1] / max(half[0], SMALLEST))
            words.append(f"λ = {lam}: {values[0]:.2g} against {values[1]:.2g} after {amount(x, over)}{about}")
        return verdict(ratios, words)

    return measure


def budget(ratio: float, halfway: float) -> str:
    """Of a claim that does not hold, whether more work may turn it: its ratio at the end and after half the work."""
    if ratio > 1.0 or not np.isfinite(halfway):
        return ""
    why = (
        "it held there"
        if halfway > 1.0
        else "a larger budget may turn it"
        if halfway < ratio
        else "not for want of budget"
    )
    return f" (a ratio of {ratio:.2g}, half-way {halfway:.2g}: {why})"


def less_work(
    ours: str, theirs: str, quantity: str = "gap", over: str = "passes", times: float = 1.0
) -> Callable[[Measured], Finding]:
    """A claim that `ours` needs less work than `theirs`, by more than `times`, to the finest accuracy that both reach.

    Where they reach none together, what `theirs` spent without reaching the coarsest bounds the ratio from below; if that is
    not enough, the lambda decides nothing.
    """

    def measure(part: Measured) -> Finding:
        ratios, words, open_at = [], [], []
        for lam in part.lambdas:
            mine, other = (part.traces(name, lam) for name in (ours, theirs))
            work = {level: [work_to(traces, quantity, over, level) for traces in (mine, other)] for level in SHARES}
            both = [level for level in SHARES if np.isfinite(work[level]).all() and min(work[level]) > 0.0]
            if both:
                a, b = work[both[-1]]
                ratios.append(b / a / times)
                words.append(f"λ = {lam}: {amount(a, over)} against {amount(b, over)} to {both[-1]:g} D*")
                continue
            a, spent = work[SHARES[0]][0], float(np.median([trace[over][-1] for trace in other]))
            if np.isfinite(a) and a > 0.0 and spent / a > times:
                ratios.append(spent / a / times)
                words.append(
                    f"λ = {lam}: {amount(a, over)} against more than {amount(spent, over)} to {SHARES[0]:g} D*"
                )
            else:
                open_at.append(f"λ = {lam}")
        if open_at:
            words.append(f"not decided at {', '.join(open_at)}")
        return verdict(ratios, words)

    return measure


def work_to(traces: list[Trace], quantity: str, over: str, level: float) -> float:
    """The median work until `quantity` is at most `level` times the largest known dual value; inf if half stay above."""
    amounts = [first_at(trace, over, level * best_dual(trace), quantity) for trace in traces]
    return float(np.quantile(amounts, 0.5, method="higher"))


def amount(work: float, over: str) -> str:
    """Work with its unit."""
    return f"{work:{FORMS[over]}} {UNITS[over]}"


def verdict(ratios: list[float], words: list[str]) -> Finding:
    """A claim holds if every ratio is above 1; what decides is shown as the least of them."""
    if not ratios:
        return Finding(None, "these runs do not come far enough to tell")
    least = float(min(ratios))
    return Finding(least > 1.0, "; ".join(words), least)
