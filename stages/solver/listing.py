"""How many labellings an oracle call should return, and how many a block keeps: by counts and bytes, not by a clock."""

from __future__ import annotations

from gapwise.stages.problems.capabilities import lists_several, optional_of
from gapwise.stages.problems.protocol import Problem, max_label_length

AUTO = 0
"""`solver.n_best`: as many as `by_cost` says."""

FEW, MOST = 4, 16
"""Most labellings a call where calls are cheap, and anywhere."""

ENTRIES = 2.0
"""Entries of a block for each labelling of a list. Shorter lists save few calls: they differ in an entry or two each."""

VISITS = 2.0
"""Visits at the price of a call for each labelling that an expensive call returns."""

KEPT = 12
"""A block keeps so many times the labellings of a call, where memory allows it and the options do not ask for more."""

SOONER = 3
"""Labellings without use are dropped after this share of the usual number of passes: most of a list are never chosen, and
the squared distances of each to all others take most of the time of the passes over the cache."""

ANSWERS, DISTANCES = 1 << 28, 1 << 30
"""Bytes for the answers of a pass, and for the squared distances between all labellings that blocks may keep."""


def labellings(problem: Problem, n_best: int) -> int:
    """How many labellings a call returns, where `n_best` are asked for; 0: as many as pay."""
    if n_best == 1 or not lists_several(problem):
        return 1
    return n_best if n_best > AUTO else by_cost(problem)


def room(problem: Problem, m: int, capacity: int) -> int:
    """Labellings that a block keeps, where a call returns m and the options ask for `capacity`."""
    return capacity if m == 1 else max(capacity, m, min(KEPT * m, int((DISTANCES / (8.0 * problem.n)) ** 0.5)))


def check_listing(problem: Problem, n_best: int) -> None:
    """Raise ValueError if several labellings are asked for and the structure's max-oracle returns one."""
    if n_best > 1 and not lists_several(problem):
        raise ValueError(
            f"solver.n_best: {n_best} labellings a call are asked for, but the max-oracle of {type(problem).__name__} "
            "returns one; use 1, or 0 for as many as pay"
        )


def by_cost(problem: Problem) -> int:
    """A labelling for every `VISITS` visits that a call costs, at most `MOST`; fewer to save memory.

    Two calls of an exact pass have 10 to 200 visits between them, and each visit scores what the lists have added. Where a
    call costs as much as a few visits, lists still pay in seconds if `FEW` labellings cover a block: its cached passes then
    need fewer steps. Where more would be needed, one labelling is fastest.
    """
    cost = float(optional_of(problem, "oracle_cost"))
    covering = round(float(problem.label_ptr[-1]) / problem.n / ENTRIES)
    cheap = covering if covering <= FEW else 1
    bytes_of_one = problem.n * max_label_length(problem) * problem.truth.itemsize
    return max(1, min(max(cheap, int(cost / VISITS)), MOST, ANSWERS // max(bytes_of_one, 1)))
