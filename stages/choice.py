"""Which lambda to take, from a mean loss at each and its standard error."""

from __future__ import annotations

from enum import StrEnum
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
