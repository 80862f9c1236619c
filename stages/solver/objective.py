"""Primal and dual objectives, and the certificate of a solved lambda."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from gapwise.stages.problems.protocol import Problem


Product = Callable[[np.ndarray, np.ndarray], float]
"""<a, b> of two weight vectors (d,)."""


class Certificate(NamedTuple):
    """A solved lambda in six numbers, from which the certificates of nearby lambdas follow by arithmetic."""

    lam: float
    gap: float
    """sum of the block gaps"""
    hinge: float
    """R: mean structured hinge loss at w"""
    ell: float
    """mean of the ell_i"""
    norm2: float
    """N = ||w||^2"""
    dual: float

    @property
    def primal(self) -> float:
        """lambda N / 2 + R."""
        return 0.5 * self.lam * self.norm2 + self.hinge


class Mixture(NamedTuple):
    """A point between solved ones, whose mean hinge is bounded because R is convex; it takes no oracle call."""

    weights: np.ndarray
    """float64, (d,)"""
    hinge: float
    """A bound on R there."""
    most: float
    """The gap up to which it certifies its lambda, beside whatever dual point."""


class Goal(NamedTuple):
    """What a lambda is solved to."""

    tolerance: float
    """On the duality gap, or on gap / dual if `relative`."""
    relative: bool = False
    exact: bool = True
    """False (heuristic paths): the stale gap sum decides, and no exact pass is made."""
    mixture: Mixture | None = None
    """A primal point that may certify the lambda as well, for methods whose w need not be w(alpha)."""

    def bound(self, dual: float) -> float:
        """The gap to reach, given the dual value."""
        return self.tolerance * (max(dual, 0.0) if self.relative else 1.0)


def squared_norm(w: np.ndarray) -> float:
    """||w||^2, summed pairwise: the same bits wherever the array is in memory, which BLAS does not promise."""
    return float(np.sum(w * w))


def plain_product(a: np.ndarray, b: np.ndarray) -> float:
    """<a, b> where numbers are weights, summed like `squared_norm`; of others `stages.problems.moves` knows it."""
    return float(np.sum(a * b))


def dual_value(
    ell: float,
    v: np.ndarray,
    w: np.ndarray,
    lam: float,
    lower: np.ndarray,
    upper: np.ndarray,
    norm2: float | None = None,
) -> float:
    """D = ell - lambda/2 ||w||^2 - lambda (<[v - u]_+, u> - <[l - v]_+, l>) with w = clip(v, l, u).

    `norm2`: ||w||^2 where it is not the sum of squares (`stages.problems.moves`).
    """
    value = ell - 0.5 * lam * (squared_norm(w) if norm2 is None else norm2)
    if lower.size:
        over, under = np.isfinite(upper) & (v > upper), np.isfinite(lower) & (v < lower)
        excess = np.sum((v[over] - upper[over]) * upper[over]) - np.sum((lower[under] - v[under]) * lower[under])
        value -= lam * float(excess)
    return float(value)


def require_cone(problem: Problem) -> None:
    """Raise ValueError, naming a weight, unless every bound is 0 or infinite."""
    for name, bound in (("lower", problem.lower), ("upper", problem.upper)):
        bad = ~((bound == 0) | np.isinf(bound))
        if bad.any():
            j = int(np.argmax(bad))
            raise ValueError(
                f"path: bounds must be 0 or +-inf for a regularization path; feature {j} has {name}={bound[j]:g}. "
                "Give the lambdas: path=grid or path=single, in Python lam as a number or a list."
            )
