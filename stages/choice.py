"""Which lambda to take, from a mean loss at each and its standard error."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:  # commands that list runs do without it
    import numpy as np

PICKS = ("parabola", "least", "one_se")
"""Rules by which the lambda of the model that leaves home is picked (`picked`); the first is the default.

tests/benchmarks/bench_picking.py compares them.
"""
LOSS = "loss"
"""What lambda is chosen by if nothing else is asked for (`criteria`)."""
REACH = 1.0
"""Decades to either side of the least loss through which `parabola` is fitted."""


class Choice(NamedTuple):
    """Positions among the lambdas that were compared."""

    best: int
    """The least loss, the larger lambda on ties."""
    one_se: int
    """The one-standard-error rule: the largest lambda whose loss is at most one standard error above the least."""


def choose(lams: np.ndarray, losses: np.ndarray, errors: np.ndarray) -> Choice:
    """The choice among `lams`, in any order, with mean `losses` and their standard `errors`, all (lambdas,)."""
    import numpy as np

    order = np.argsort(-lams, kind="stable")
    best = int(order[np.argmin(losses[order])])
    near = losses[order] <= losses[best] + errors[best]
    return Choice(best, int(order[np.argmax(near)]))


def standard_error(values: np.ndarray) -> float:
    """The standard error of the mean of independent `values` (n,); 0 for a single value, which cannot give it."""
    import numpy as np

    return float(np.std(values, ddof=1) / np.sqrt(values.size)) if values.size > 1 else 0.0


def picked(rule: str, lams: np.ndarray, losses: np.ndarray, errors: np.ndarray) -> int:
    """The position that a rule of PICKS picks among `lams`, with mean `losses` and their standard `errors`, (lambdas,)."""
    choice = choose(lams, losses, errors)
    match rule:
        case "parabola":
            return parabola(lams, losses, choice.best)
        case "least":
            return choice.best
        case "one_se":
            return choice.one_se
    raise ValueError(f"pick: expected one of {', '.join(PICKS)}, got {rule!r}")


def picked_in_words(rule: str, criterion: str = LOSS) -> str:
    """Which lambda a rule of PICKS picks by a criterion, for a person."""
    of = criterion.replace("_", " ")
    best = "least" if criterion == LOSS else "best"
    words = {
        "parabola": f"where a parabola through the {of} on validation examples has its vertex",
        "least": f"where the {of} on validation examples is {best}",
        "one_se": f"the largest within one standard error of the {best} {of} on validation examples",
    }
    return words.get(rule, rule)


def parabola(lams: np.ndarray, losses: np.ndarray, best: int) -> int:
    """The lambda nearest to the vertex of a parabola in log lambda through the losses within a decade of that at `best`.

    A held-out fifth gives losses that jump from one lambda to the next; the least of them is often a lucky one. Where the
    losses have no such minimum, or there are too few, it is `best`.
    """
    import numpy as np

    x = np.log10(lams) - np.log10(lams[best])
    (near,) = np.nonzero(np.abs(x) <= REACH)
    if near.size < 4 or np.ptp(losses[near]) == 0.0:
        return best
    a, b, _ = np.polyfit(x[near], losses[near], 2)
    if not a > 0.0:
        return best
    return int(near[np.argmin(np.abs(x[near] + b / (2.0 * a)))])


class Edge(StrEnum):
    """Where a chosen lambda has no neighbour that was compared, so that a better one may lie beyond."""

    LOW = "low"
    """The least lambda, and smaller ones have other models."""
    HIGH = "high"
    """The largest lambda, and larger ones have other models."""

    @property
    def words(self) -> str:
        """For a person."""
        return f"at the {'lower' if self is Edge.LOW else 'upper'} edge of the λ's that were compared"


def edge_of(lams: np.ndarray, chosen: int, *, of_path: bool, low: float = 0.0) -> Edge | None:
    """The edge at which the choice among `lams` lies, if it does.

    Parameters
    ----------
    of_path : bool
        Whether they are those of a path: above its largest lambda models only shrink, and predict the same.
    low : float
        Where a path ends; 0: it has the model of every smaller lambda.
    """
    if lams.size < 2:
        return None
    if lams[chosen] == lams.min() and not (of_path and low == 0.0):
        return Edge.LOW
    return Edge.HIGH if lams[chosen] == lams.max() and not of_path else None
