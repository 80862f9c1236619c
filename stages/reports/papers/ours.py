"""What this project adds, beside the best of the papers' methods: work to the finest accuracy that both certify.

The sweeps of several parts may hold runs of one task, as OCR-small in figures of all three papers. A line then sets the best
of all of the papers' methods at that lambda against the best of ours, wherever they ran.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace

import numpy as np

from gapwise.records import Facts
from gapwise.stages.problems.certainty import ESTIMATE, EXACT
from gapwise.stages.reports.curves import Curves
from gapwise.stages.reports.papers.comparisons import ACCURACIES, amount, work_to
from gapwise.stages.reports.papers.measured import Measured
from gapwise.stages.reports.suboptimality import with_suboptimality

OURS = ("accelerated", "anytime", "expensive_oracle", "two_sided")
"""Methods and path rules that are in none of the papers."""
NEITHER = ("MP-BCPFW", "MP-BCFW gap", "MP-BCFW one avg", "heuristic")
"""Combinations that are in none of the papers, and a path without a guarantee."""
OVERS = ("passes", "seconds")


@dataclass(frozen=True)
class Contest:
    """A task and lambda: the best of the papers' methods, and the best of ours."""

    task: str
    lam: str
    """As the sweeps name it; `all` for whole paths."""
    value: float
    """Of lambda; 0 for whole paths."""
    level: float | None
    """The gap to get to, a share of D*; None for whole paths."""
    over: str
    """`passes` or `seconds`: what is compared."""
    best: str
    """The best of the papers' methods, and its work."""
    best_work: float
    ours: str
    our_work: float
    parts: tuple[str, ...]
    """Of `+experiment=papers`: those with runs of either method."""

    @property
    def goal(self) -> str:
        """What both get to, in words."""
        return "the whole path" if self.level is None else f"a gap of {self.level:g} D*"

    @property
    def ratio(self) -> float:
        """How many times less work ours takes."""
        return self.best_work / max(self.our_work, 1e-12)


def contest_of(row: Facts) -> Contest:
    """The line that `papers.json` tells."""
    told = {one.name: row[one.name] for one in fields(Contest)}
    return Contest(**told | {"parts": tuple(told["parts"])})


def contests(task: str, parts: Mapping[str, Measured]) -> list[Contest]:
    """Lines of the runs of `parts` (by name, all of `task`), by falling lambda; empty if nothing can be compared."""
    paths = {name: part for name, part in parts.items() if part.summary.get("figure") == "paths"}
    together: Curves = {}
    holders: dict[Key, list[str]] = {}
    others = {name: part for name, part in parts.items() if name not in paths}
    for name, part in others.items():
        for key, traces in part.curves.items():
            together.setdefault(key, []).extend(traces)
            holders.setdefault(key, []).append(name)
    sense = ESTIMATE if any(part.certainty == ESTIMATE for part in others.values()) else EXACT
    at_lambdas = [(lam, value, with_suboptimality(curves, sense)) for lam, value, curves in _lambdas(together)]
    lines = [line for lam, value, curves in at_lambdas for line in _at(task, curves, lam, value, holders)]
    return merged([*lines, *(line for name, part in paths.items() for line in _paths(task, name, part))], [task])


Key = tuple[str, str]
"""Variant and lambda."""


def _lambdas(curves: Curves) -> list[tuple[str, float, Curves]]:
    """The name, the value and the curves of each lambda; those that neither we nor the papers stand for are left out."""
    by_lambda: dict[str, Curves] = {}
    for (name, lam), traces in curves.items():
        if name not in NEITHER:
            by_lambda.setdefault(lam, {})[name, lam] = traces
    return [(lam, float(next(iter(some.values()))[0]["lambda"][0]), some) for lam, some in by_lambda.items()]


def _at(task: str, curves: Curves, lam: str, value: float, holders: Mapping[Key, Sequence[str]]) -> list[Contest]:
    """To the least share of D* that both certify, in passes and in seconds; empty if they certify none together."""
    sides = [[key for key in curves if (key[0] in OURS) == mine] for mine in (False, True)]
    for level in reversed(ACCURACIES):
        contestants = [[_least(curves, level, over, keys) for keys in sides] for over in OVERS]
        if all(side and side[1] > 0.0 for pair in contestants for side in pair):
            return [
                Contest(task, lam, value, level, over, *best, *ours, _parts([best[0], ours[0]], lam, holders))
                for over, (best, ours) in zip(OVERS, contestants, strict=True)
                if best and ours
            ]
    return []


def _parts(methods: Sequence[str], lam: str, holders: Mapping[Key, Sequence[str]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(part for name in methods for part in holders[name, lam]))


def _least(curves: Curves, level: float, over: str, keys: list[Key]) -> tuple[str, float] | None:
    """The method with the least work to a gap of `level` times the best dual value; None if none gets there."""
    work = {key[0]: work_to(curves[key], "gap", over, level) for key in keys}
    reached = {name: spent for name, spent in work.items() if np.isfinite(spent)}
    name = min(reached, key=lambda name: reached[name], default=None)
    return None if name is None else (name, reached[name])


def _paths(task: str, name: str, part: Measured) -> list[Contest]:
    """The certified path of O16 against ours; grids certify no lambda between theirs."""
    mine = [variant for variant in part.variants if variant in OURS]
    if "paper" not in part.variants or not mine:
        return []
    lines = []
    for over, column in zip(OVERS, ("effective_passes", "seconds"), strict=True):
        work = {variant: float(np.sum(part.path(variant)[column])) for variant in ("paper", *mine)}
        best = min(mine, key=lambda variant: work[variant])
        lines.append(Contest(task, "all", 0.0, None, over, "paper", work["paper"], best, work[best], (name,)))
    return lines


def merged(lines: Iterable[Contest], tasks: Sequence[str]) -> list[Contest]:
    """One line a task, lambda and `over`, in the order of `tasks` and by falling lambda."""
    best: dict[tuple[str, str, str], Contest] = {}
    for line in lines:
        key = line.task, line.lam, line.over
        best[key] = _finer(best[key], line) if key in best else line
    return sorted(best.values(), key=lambda line: (tasks.index(line.task), -line.value, OVERS.index(line.over)))


def _finer(a: Contest, b: Contest) -> Contest:
    """The line to the finer accuracy; of lines to the same, the least work of either side."""
    if a.level != b.level:
        return min(a, b, key=lambda line: line.level or 0.0)
    best, ours = min(a, b, key=lambda line: line.best_work), min(a, b, key=lambda line: line.our_work)
    parts = tuple(dict.fromkeys((*best.parts, *ours.parts)))
    return replace(best, ours=ours.ours, our_work=ours.our_work, parts=parts)


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
