"""Several lambdas of a path at once: what a rule hands out in a round, and what it makes of the answers.

A round is a list of lambdas, none of which waits for another. First come those that the certificates already wait for: the
worst lambda of each interval or cell that fails. Further ones lie below the last solved lambda, one step below the other, as
far as N = ||w||^2 and the hinge R can be told ahead: both are continued as powers of lambda from the last two solved points.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from gapwise.stages.solver.options import Status
from gapwise.stages.solver.path.cells import SolvedPoint
from gapwise.stages.solver.path.rule import Solved

LAST_ALONE = 2.0
"""Where R is expected to be below this multiple of eps, no more steps ahead are made: R falls faster and faster, and lambdas
below the end of the path cost more than all others."""

LEAST_STEP = 1e-3
"""Steps ahead that are shorter than this share of lambda end a round: the last lambda of the path is among them already."""


class Round(NamedTuple):
    """What comes after the lambdas of a round."""

    lams: list[float]
    """the next round; [] at the end of the path"""
    lows: list[float]
    """how far down each solved lambda certifies, as `Following.low`"""
    status: Status = Status.CONVERGED
    """how the path ended"""


class Abreast(Protocol):
    """A rule that hands out several lambdas at once (`Capabilities.abreast`)."""

    def following_round(self, solved: Sequence[Solved], most: int) -> Round:
        """At most `most` lambdas, after those of a round, by falling lambda."""


def next_lambdas(
    last: SolvedPoint,
    before: SolvedPoint | None,
    below: Callable[[SolvedPoint], float],
    least: float,
    hinge: float,
    count: int,
) -> list[float]:
    """At most `count` lambdas below that of `last`, each `below` the one above it, none below `least`.

    `before` is a solved point above `last`, from which N and R are continued; without one N stays, as R does. After the
    first lambda R must not be expected below `hinge`.
    """
    lams: list[float] = []
    here = last
    while len(lams) < count:
        if lams and here.hinge < hinge:
            break
        lam = max(below(here), least)
        if lam >= (1.0 - LEAST_STEP) * here.lam:
            break
        lams.append(lam)
        here = continued(last, before, lam)
    return lams


def continued(last: SolvedPoint, before: SolvedPoint | None, lam: float) -> SolvedPoint:
    """The point that is expected at a lambda below `last`."""
    if before is None or not math.isfinite(before.lam):
        return last._replace(lam=lam)
    span = math.log(before.lam / last.lam)
    powers = [
        max(math.log(below / above) / span, 0.0) if min(below, above) > 0.0 else 0.0
        for below, above in ((last.norm2, before.norm2), (before.hinge, last.hinge))
    ]
    down = last.lam / lam
    return last._replace(lam=lam, norm2=last.norm2 * down ** powers[0], hinge=last.hinge * down ** -powers[1])
