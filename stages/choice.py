"""Which lambda to take, from a mean loss at each and its standard error."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Choice(NamedTuple):
    """Positions among the lambdas that were compared."""

    best: int
    """The least loss, the larger lambda on ties."""
    one_se: int
    """The one-standard-error rule: the largest lambda whose loss is at most one standard error above the least."""


def choose(lams: np.ndarray, losses: np.ndarray, errors: np.ndarray) -> Choice:
    """The choice among `lams`, in any order, with mean `losses` and their standard `errors`, all (lambdas,)."""
    order = np.argsort(-lams, kind="stable")
    best = int(order[np.argmin(losses[order])])
    near = losses[order] <= losses[best] + errors[best]
    return Choice(best, int(order[np.argmax(near)]))


def standard_error(values: np.ndarray) -> float:
    """The standard error of the mean of independent `values` (n,); 0 for a single value, which cannot give it."""
    return float(np.std(values, ddof=1) / np.sqrt(values.size)) if values.size > 1 else 0.0
