"""Where a path may end because the loss on held-out blocks has clearly risen: no smaller lambda is going to be chosen.

A difference of two models is judged on the same blocks, so its standard error is that of the differences of their losses.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gapwise.stages.choice.rules import choose, standard_error
from gapwise.stages.solver.events import Event, Kind
from gapwise.stages.solver.options import LOSS_RISES, PathOptions, Status

DECADE = 10.0
"""Ratio of lambdas over which the loss has to stay above its minimum."""
FEWEST = 3
"""Least number of solved lambdas in that range."""


def clearly_less(losses: np.ndarray, others: np.ndarray) -> bool:
    """Whether the mean of `losses` (n,) is below that of `others` by more than the standard error of the difference."""
    differences = others - losses
    return bool(np.mean(differences) > standard_error(differences))


def has_risen(lams: np.ndarray, losses: np.ndarray) -> bool:
    """Whether the loss has clearly risen over a whole decade down to the last of the `lams`.

    It has if each of the last lambdas, at least `FEWEST` over a decade or more, has clearly more loss than the least, which
    itself is clearly below that of the first lambda. Near the top of a path hardly anything is learned, and losses move
    to and fro. A loss that is NaN has not risen. ValueError if all are NaN.

    Parameters
    ----------
    lams : array, (lambdas,)
        Falling.
    losses : array, (lambdas, blocks)
        Of the held-out blocks.
    """
    best = choose(lams, losses.mean(axis=1), None).best
    first = lams.size
    while first > best + 1 and clearly_less(losses[best], losses[first - 1]):
        first -= 1
    if lams.size - first < FEWEST or lams[first] < DECADE * lams[-1]:
        return False
    return clearly_less(losses[best], losses[0])


class RisingLoss:
    """An observer that ends a path of `path.end=loss_rises`, once all is certified down to a lambda where `has_risen`.

    Parameters
    ----------
    losses : callable
        losses(w) -> (blocks,) losses of the held-out blocks.
    """

    def __init__(self, losses: Callable[[np.ndarray], np.ndarray]) -> None:
        self._losses = losses
        self.known: dict[float, np.ndarray] = {}
        """The losses at each lambda that is solved."""
        self._asked_at = 0

    def note(self, lam: float, w: np.ndarray) -> None:
        """Measure the model of a solved lambda."""
        self.known[lam] = self._losses(w)

    @property
    def risen(self) -> bool:
        """Whether the loss has risen at the lambdas so far."""
        lams = np.array(sorted(self.known, reverse=True))
        return lams.size > 0 and has_risen(lams, np.array([self.known[lam] for lam in lams.tolist()]))

    def __call__(self, event: Event) -> Status | None:
        """Measure a solved lambda; at a boundary, end the walk if the loss has risen.

        The walk is at a lambda below all that are solved only if it has certified everything above.
        """
        if event.kind is Kind.CERTIFIED and event.breakpoint is not None:
            self.note(event.breakpoint.point.lam, event.breakpoint.weights)
        if event.kind is not Kind.BOUNDARY or len(self.known) == self._asked_at:
            return None
        self._asked_at = len(self.known)
        below = event.engine.solver.counts.lam < min(self.known)
        return Status.LOSS_RISES if below and self.risen else None


def check_ending(path: PathOptions, ending: RisingLoss | None) -> None:
    """ValueError unless the losses of held-out blocks are given where `path.end` needs them, and only there."""
    if (path.end == LOSS_RISES) is not (ending is not None):
        raise ValueError(f"path.end: {path.end} is asked for, and held-out blocks are {'' if ending else 'not '}given")
