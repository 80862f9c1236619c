"""What `one_sided` and `paper` share: one breakpoint after another, each certified down to the next."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from gapwise.records import Json
from gapwise.stages.solver.objective import Certificate
from gapwise.stages.solver.options import PathOptions, Status, check
from gapwise.stages.solver.path.capabilities import Capabilities
from gapwise.stages.solver.path.rule import Following, PathStart, Solved, Tolerance, closing, where_it_ends

FLOOR = 1e-12
"""No path goes below this share of its largest lambda, nor below `rounding_floor`."""


@dataclass
class Descending(ABC):
    """A rule without state: each certificate rests on its own breakpoint, and its lower end is the next lambda."""

    capabilities: ClassVar[Capabilities] = Capabilities(kappa=0.9, stale_steps=True)
    specs = ()

    path: PathOptions
    zero: PathStart

    @classmethod
    def check(cls, path: PathOptions) -> None:
        """Refuse a relative eps, which needs the two-sided rule."""
        check("path.relative", path.relative, not path.relative, "path.rule=two_sided")

    @classmethod
    def lambdas(cls, path: PathOptions) -> tuple[float, ...]:
        """None are given."""
        return ()

    @classmethod
    def begin(cls, path: PathOptions, start: PathStart | None) -> Self:
        """The rule of a path that begins at `start`."""
        assert start is not None
        return cls(path, start)

    @classmethod
    def restored(
        cls, path: PathOptions, start: PathStart | None, arrays: Mapping[str, np.ndarray], attrs: Mapping[str, object]
    ) -> Self:
        """The rule again."""
        return cls.begin(path, start)

    def packed(self) -> tuple[dict[str, np.ndarray], dict[str, Json]]:
        """Nothing."""
        return {}, {}

    def tolerance(self) -> Tolerance:
        """The share kappa of eps (O16 Alg. 6)."""
        return Tolerance(self.path.kappa * self.path.eps, False)

    def open_end(self) -> None:
        """The path goes down to its end."""
        return

    @classmethod
    def lower_end(cls, point: Certificate, eps: float) -> float:
        """The smallest lambda at which `point` certifies eps; 0 if it certifies every smaller one. Needs gap < eps."""
        if point.gap >= eps:
            raise ValueError(f"path: the gap {point.gap:.3g} at lambda {point.lam:.6g} is not below eps {eps:g}")
        return 0.0 if point.hinge <= eps or point.norm2 == 0.0 else cls.lower_root(point, eps)

    @staticmethod
    @abstractmethod
    def lower_root(point: Certificate, eps: float) -> float:
        """The lambda > 0 below that of `point` at which its gap reaches eps."""

    @abstractmethod
    def following(self, solved: Solved) -> Following:
        """The next lambda, or the end (O16 Alg. 6)."""


def next_down(rule: Descending, solved: Solved) -> Following:
    """The lower end of the interval that the last lambda certifies, unless the path's end has been reached."""
    path, point = rule.path, solved.point
    assert point is not None
    eps = closing(path.eps)
    if point.gap >= eps:
        return Following(math.nan, point.lam, solved.status)
    low = rule.lower_end(point, eps)
    ended = where_it_ends(path, rule.zero, FLOOR, point, low)
    if ended:
        return Following(math.nan, low, ended)
    if solved.index + 1 >= path.max_breakpoints:
        return Following(math.nan, low, Status.PASS_LIMIT)
    return Following(low, low)


def stepwise_model(
    solved: Mapping[str, np.ndarray], above: list[tuple[int, float, tuple[float, float], float]]
) -> dict[str, np.ndarray]:
    """Cells in which each breakpoint's w holds from its own lambda down to the next one, after the cells of `above`.

    `above`: (interval, low, (t_0, t_1), scale) of cells above the first breakpoint, from the largest lambda down.
    """
    lams, lows = solved["lambda"], solved["lambda_low"]
    rows = [*above]
    for b in range(lams.size):
        # a breakpoint's own w holds at its lambda, so the cell of the breakpoint above ends just before it
        low = float(np.nextafter(lams[b + 1], math.inf)) if b + 1 < lams.size else float(lows[b])
        rows.append((b + 1, low, (1.0, 0.0), math.inf))
    edges = np.array([row[1] for row in rows])
    return {
        "cell_interval": np.array([row[0] for row in rows], np.int64),
        "cell_low": edges,
        "cell_high": np.append(math.inf, edges[:-1]),
        "cell_primal": np.array([row[2] for row in rows]),
        "cell_scale": np.array([row[3] for row in rows]),
    }


def just_above(lam: float) -> float:
    """The next number above lambda."""
    return float(np.nextafter(lam, math.inf))


def below_first(
    arrays: Mapping[str, np.ndarray],
    lam: np.ndarray,
    gap_below: Callable[[Mapping[str, np.ndarray], np.ndarray], np.ndarray],
) -> np.ndarray:
    """Bounds on the gap at each `lam` from the breakpoint at or above it; nan above the first and below the path's end."""
    names = ("lambda", "lambda_low", "gap", "hinge", "norm2")
    which = np.searchsorted(-arrays["lambda"], -lam, side="right") - 1
    above = {name: arrays[name][np.maximum(which, 0)] for name in names}
    return np.where((which >= 0) & (lam >= above["lambda_low"]), gap_below(above, lam), np.nan)


def second_order(above: Mapping[str, np.ndarray], lam: np.ndarray) -> np.ndarray:
    """g + N (lambda - lambda_j)^2 / (2 lambda): the gap of w^j with the same alpha^j at another lambda."""
    return np.asarray(above["gap"] + above["norm2"] * (above["lambda"] - lam) ** 2 / (2 * lam))


def to_zero(above: Mapping[str, np.ndarray], lam: np.ndarray) -> np.ndarray:
    """The bound of a breakpoint that certifies all lambdas below it, with the dual point scaled towards the truth."""
    return np.minimum(second_order(above, lam), np.maximum(above["gap"], above["hinge"]))
