"""What this project adds, beside the best of the papers' methods: work to the finest accuracy that both reach."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from stages.reports.papers.measured import SHARES, Measured, work_to

OURS = ("accelerated", "one_sided", "two_sided")
NEITHER = ("MP-BCPFW", "MP-BCFW gap", "heuristic")
"""Combinations that are in none of the papers, and a path without a guarantee."""


@dataclass(frozen=True)
class Contest:
    """One line of the table."""

    task: str
    lam: str
    goal: str
    over: str
    """`passes` or `seconds`."""
    best: str
    """The best of the papers' methods, and its work."""
    best_work: float
    ours: str
    our_work: float

    @property
    def ratio(self) -> float:
        """How many times less work ours takes."""
        return self.best_work / max(self.our_work, 1e-12)


def contests(task: str, part: Measured) -> list[Contest]:
    """Ours against the best of the papers' methods on the runs of `part`; empty if it has not both."""
    known = [name for name in part.variants if name not in NEITHER]
    mine, others = [n for n in known if n in OURS], [n for n in known if n not in OURS]
    if not mine or not others:
        return []
    if part.summary.get("figure") == "paths":
        return _paths(task, part, mine)
    return [
        line
        for lam in part.lambdas
        for over in ("passes", "seconds")
        for line in _at(task, part, lam, over, mine, others)
    ]


def _at(task: str, part: Measured, lam: str, over: str, mine: list[str], others: list[str]) -> list[Contest]:
    """To the least share of D* of which both certify a gap: at most one line."""
    for level in reversed(SHARES):
        ours, best = (_least(part, lam, over, level, names) for names in (mine, others))
        if ours and best and min(ours[1], best[1]) > 0.0:
            return [Contest(task, lam, f"a gap of {level:g} D*", over, *best, *ours)]
    return []


def _least(part: Measured, lam: str, over: str, level: float, names: list[str]) -> tuple[str, float] | None:
    found: Mapping[str, float] = {
        name: work_to(part.traces(name, lam), "gap", over, level) for name in names if (name, lam) in part.curves
    }
    reached = {name: work for name, work in found.items() if np.isfinite(work)}
    name = min(reached, key=lambda name: reached[name], default=None)
    return None if name is None else (name, reached[name])


def _paths(task: str, part: Measured, mine: list[str]) -> list[Contest]:
    """The certified path of O16 against ours; grids certify no lambda between theirs."""
    if "paper" not in part.variants:
        return []
    lines = []
    for over, column in (("passes", "effective_passes"), ("seconds", "seconds")):
        work = {name: float(np.sum(part.path(name)[column])) for name in ("paper", *mine)}
        best = min(mine, key=lambda name: work[name])
        lines.append(Contest(task, "all", "the whole path", over, "paper", work["paper"], best, work[best]))
    return lines


def times(line: Contest) -> str:
    """The ratio for people."""
    return f"{line.ratio:.1f} times less" if line.ratio >= 1.0 else f"{1.0 / line.ratio:.1f} times more"
