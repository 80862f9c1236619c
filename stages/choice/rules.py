"""Which lambda to take, from a mean loss at each and its standard error."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:  # commands that list runs do without it
    import numpy as np

    from gapwise.records import Facts, Record

PICKS = ("parabola", "least", "one_se")
"""Rules by which held-out blocks pick the best lambda (`picked`); the first is the default.

tests/benchmarks/bench_picking.py compares them.
"""
LOSS = "loss"
"""What lambda is chosen by if nothing else is asked for (`criteria`)."""
CHOOSING_EPS = 0.02
"""`eps` of a path that lambda is chosen on, if none is given: at 0.1 the path of CoNLL-2000 is too coarse."""
REACH = 1.0
"""Decades to either side of the least loss through which `parabola` is fitted."""


class Choice(NamedTuple):
    """Positions among the lambdas that were compared."""

    best: int
    """The least loss, the larger lambda on ties."""
    one_se: int | None
    """The one-standard-error rule: the largest lambda whose loss is at most one standard error above the least; None where
    the least loss has no standard error."""


def choose(lams: np.ndarray, losses: np.ndarray, errors: np.ndarray | None) -> Choice:
    """The choice among `lams`, in any order, with mean `losses` and their standard `errors`, all (lambdas,).

    A loss that is NaN was not measured, so its lambda is never chosen. ValueError if all of them are.
    """
    import numpy as np

    order = np.argsort(-lams, kind="stable")
    order = order[~np.isnan(losses[order])]
    if not order.size:
        raise ValueError(f"no lambda can be chosen: each of the {lams.size} held-out losses is NaN; expected numbers")
    best = int(order[np.argmin(losses[order])])
    if errors is None or np.isnan(errors[best]):
        return Choice(best, None)
    near = losses[order] <= losses[best] + errors[best]
    return Choice(best, int(order[np.argmax(near)]))


def standard_error(values: np.ndarray) -> float:
    """The standard error of the mean of independent `values` (n,); 0 for a single value, which cannot give it."""
    import numpy as np

    return float(np.std(values, ddof=1) / np.sqrt(values.size)) if values.size > 1 else 0.0


def picked(rule: str, lams: np.ndarray, losses: np.ndarray, errors: np.ndarray | None) -> int:
    """The position that a rule of PICKS picks among `lams`, with mean `losses` and their standard `errors`, (lambdas,).

    ValueError for "one_se" where the least loss has no standard error (`errors` None or NaN), and as `choose`.
    """
    choice = choose(lams, losses, errors)
    match rule:
        case "parabola":
            return parabola(lams, losses, choice.best)
        case "least":
            return choice.best
        case "one_se" if choice.one_se is not None:
            return choice.one_se
        case "one_se":
            raise ValueError("pick: one_se needs a standard error of what is compared, and there is none; take another")
    raise ValueError(f"pick: expected one of {', '.join(PICKS)}, got {rule!r}")


class Selection(NamedTuple):
    """What a rule takes, as positions among the lambdas that were compared."""

    rule: str
    picked: int
    least: int
    one_se: int | None
    edge: Edge | None

    def record(self, lams: np.ndarray) -> Record:
        """JSON-able: picked_by; best_edge and least_lambda, if there is an edge, and if the best value lies elsewhere."""
        edge = {} if self.edge is None else {"best_edge": self.edge.value}
        least = {} if self.picked == self.least else {"least_lambda": float(lams[self.least])}
        return {**edge, "picked_by": self.rule, **least}


def selected(
    rule: str, lams: np.ndarray, losses: np.ndarray, errors: np.ndarray | None, end: float | None
) -> Selection:
    """What commands, folds and estimators take: `picked` and `choose`, and the edge at which that lies.

    `end`: where the paths end that the lambdas are from (`grid.end_of`); None of given lambdas.
    """
    choice, chosen = choose(lams, losses, errors), picked(rule, lams, losses, errors)
    return Selection(rule, chosen, *choice, edge_of(lams, chosen, end))


def picked_in_words(chosen: Facts, of: str) -> str:
    """How a result of evaluate, or of a cross-validation, has come to its best lambda, by `of`, for a person."""
    best = f"{'best' if 'criterion' in chosen else 'least'} {of}"
    if "least_lambda" not in chosen:
        return best
    how = f"nearest to the vertex of a parabola through the {of}"
    if chosen["picked_by"] == "one_se":
        how = f"largest λ within one standard error of the {best}"
    return f"{how}; {best.split()[0]}: λ {chosen['least_lambda']:.3g}"


def baseline(measured: Facts) -> tuple[str, float] | None:
    """What a model that has learnt nothing answers, in words, and its mean test loss; None where that is not known."""
    answer, loss = "the first label everywhere", measured.get("all_zero_test_loss")
    if "test_foreground_iou" in measured:
        answer = "all background"
    elif "commonest_label" in measured:
        answer, loss = f"{measured['commonest_label']} everywhere", measured.get("commonest_test_loss")
    if not isinstance(loss, int | float) or isinstance(loss, bool):
        return None
    return f"baseline ({answer})", float(loss)


def parabola(lams: np.ndarray, losses: np.ndarray, best: int) -> int:
    """The lambda nearest to the vertex of a parabola in log lambda through the losses within a decade of that at `best`.

    A held-out fifth gives losses that jump from one lambda to the next; the least of them is often a lucky one. Where the
    losses have no such minimum, or there are too few, it is `best`.
    """
    import numpy as np

    x = np.log10(lams) - np.log10(lams[best])
    (near,) = np.nonzero(np.isfinite(losses) & (np.abs(x) <= REACH))
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
    END = "end"
    """The least lambda that was solved of a path, whose smaller ones have this model but for a gap of eps."""
    HIGH = "high"
    """The largest lambda, and larger ones have other models."""

    @property
    def words(self) -> str:
        """For a person."""
        if self is Edge.END:
            return "at the end of the path: a smaller eps goes on to smaller λ's, of which one may be better"
        side = "lower" if self is Edge.LOW else "upper"
        return f"at the {side} edge of the λ's that were compared: a better one may lie beyond"


def edge_of(lams: np.ndarray, chosen: int, end: float | None) -> Edge | None:
    """The edge at which the choice among `lams` lies, if it does.

    `end`: where the path ends that they are from; 0: it has the model of every smaller lambda; None: they were given. Above
    the largest lambda of a path models only shrink, and predict the same.
    """
    if lams.size < 2:
        return None
    if lams[chosen] == lams.min():
        return Edge.END if end == 0.0 else Edge.LOW
    return Edge.HIGH if lams[chosen] == lams.max() and end is None else None
