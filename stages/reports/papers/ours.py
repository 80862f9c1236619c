"""What this project adds, beside the best of the papers' methods: work to the finest accuracy that both certify.

The sweeps of several parts may hold runs of one task, as OCR-small in figures of all three papers. A line then sets the best
of all of the papers' methods at that lambda against the best of ours, wherever they ran.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gapwise.stages.problems.certainty import ESTIMATE, EXACT
from gapwise.stages.reports.curves import Curves
from gapwise.stages.reports.papers.comparisons import ACCURACIES, amount, work_to
from gapwise.stages.reports.papers.measured import Measured
from gapwise.stages.reports.suboptimality import with_suboptimality

OURS = ("accelerated", "anytime", "expensive_oracle", "one_sided", "two_sided")
"""Methods and path rules that are in none of the papers."""
NEITHER = ("MP-BCFW inner", "MP-BCPFW", "MP-BCFW gap", "MP-BCFW one avg", "heuristic")
"""Combinations that are in none of the papers, and a path without a guarantee."""
OVERS = ("passes", "seconds")


@dataclass(frozen=True)
class Contest:
    """A task and lambda: the best of the papers' methods, and the best of ours."""

    task: str
    lam: str
    """As the sweeps name it; `all` for whole paths."""
    goal: str
    over: str
    """`passes` or `seconds`: what is compared."""
    best: str
    """The best of the papers' methods, and its work."""
    best_work: float
    ours: str
    our_work: float

    @property
    def ratio(self) -> float:
        """How many times less work ours takes."""
        return self.best_work / max(self.our_work, 1e-12)


def contests(task: str, parts: Sequence[Measured]) -> list[Contest]:
    """Lines of the runs of `parts`, which are all of `task`, by falling lambda; empty if there is nothing to compare."""
    paths = [part for part in parts if part.summary.get("figure") == "paths"]
    merged: Curves = {}
    for part in parts:
        if part not in paths:
            for key, traces in part.curves.items():
                merged.setdefault(key, []).extend(traces)
    sense = ESTIMATE if any(part.certainty == ESTIMATE for part in parts if part not in paths) else EXACT
    lines = [line for lam, value in _lambdas(merged) for line in _at(task, with_suboptimality(value, sense), lam)]
    return lines + [line for part in paths for line in _paths(task, part)]


def _lambdas(curves: Curves) -> list[tuple[str, Curves]]:
    """The curves at each lambda, by falling lambda; those that neither we nor the papers stand for are left out."""
    by_lambda: dict[str, Curves] = {}
    for (name, lam), traces in curves.items():
        if name not in NEITHER:
            by_lambda.setdefault(lam, {})[name, lam] = traces

    def value(item: tuple[str, Curves]) -> float:
        return -float(next(iter(item[1].values()))[0]["lambda"][0])

    return sorted(by_lambda.items(), key=value)


def _at(task: str, curves: Curves, lam: str) -> list[Contest]:
    """To the least share of D* that both certify, in passes and in seconds; empty if they certify none together."""
    sides = [[key for key in curves if (key[0] in OURS) == mine] for mine in (False, True)]
    for level in reversed(ACCURACIES):
        contestants = [[_least(curves, level, over, keys) for keys in sides] for over in OVERS]
        if all(side and side[1] > 0.0 for pair in contestants for side in pair):
            goal = f"a gap of {level:g} D*"
            return [
                Contest(task, lam, goal, over, *best, *ours)
                for over, (best, ours) in zip(OVERS, contestants, strict=True)
                if best and ours
            ]
    return []


def _least(curves: Curves, level: float, over: str, keys: list[tuple[str, str]]) -> tuple[str, float] | None:
    """The method with the least work to a gap of `level` times the best dual value; None if none gets there."""
    work = {key[0]: work_to(curves[key], "gap", over, level) for key in keys}
    reached = {name: spent for name, spent in work.items() if np.isfinite(spent)}
    name = min(reached, key=lambda name: reached[name], default=None)
    return None if name is None else (name, reached[name])


def _paths(task: str, part: Measured) -> list[Contest]:
    """The certified path of O16 against ours; grids certify no lambda between theirs."""
    mine = [name for name in part.variants if name in OURS]
    if "paper" not in part.variants or not mine:
        return []
    lines = []
    for over, column in zip(OVERS, ("effective_passes", "seconds"), strict=True):
        work = {name: float(np.sum(part.path(name)[column])) for name in ("paper", *mine)}
        best = min(mine, key=lambda name: work[name])
        lines.append(Contest(task, "all", "the whole path", over, "paper", work["paper"], best, work[best]))
    return lines


def times(line: Contest) -> str:
    """The ratio for people."""
    return f"{line.ratio:.1f} times less" if line.ratio >= 1.0 else f"{1.0 / line.ratio:.1f} times more"


def said(line: Contest) -> str:
    """A line in words: what both need."""
    where = "for all λ" if line.lam == "all" else f"λ = {line.lam}"
    ours, best = amount(line.our_work, line.over), amount(line.best_work, line.over)
    return f"{where}, to {line.goal}: {line.ours} {ours}, {line.best} {best}, {times(line)}"


HEADS = (
    "task",
    "λ",
    "to",
    "best of the papers, passes",
    "ours",
    "ratio",
    "best of the papers, seconds",
    "ours",
    "ratio",
)
"""Of `rows`."""


def rows(lines: Sequence[Contest]) -> list[list[str]]:
    """A row a task and lambda: passes and seconds of the best of the papers' methods, of ours, and how many times less."""
    contests: dict[tuple[str, str, str], dict[str, Contest]] = {}
    for line in lines:
        contests.setdefault((line.task, line.lam, line.goal), {})[line.over] = line
    return [
        [*key, *(cell for over in OVERS for cell in _cells(pair.get(over)))] for key, pair in contests.items()
    ]  # fmt: skip


def _cells(line: Contest | None) -> list[str]:
    if line is None:
        return ["–"] * 3
    both = [
        f"{name}: {amount(work, line.over)}" for name, work in ((line.best, line.best_work), (line.ours, line.our_work))
    ]
    return [*both, f"{line.ratio:.2g}"]
