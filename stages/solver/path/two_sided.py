"""`path.rule=two_sided`: lambdas certified from the solved ones on both sides (DESIGN 2.5; proof in `cells`).

Lambdas are solved from the largest down. When the interval between two of them cannot be certified, the lambda at which
it fails by most is solved next, and both halves are tried. So what the walk keeps is a stack of solved points: the
lowest one above which everything is certified, and those below it that wait for the interval between.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from stages.solver.path.cells import Cell, Goal, Pair, Point, cell_down_to, cell_to_zero, zero

THETA = (0.5, 1.5)
"""Range of the step's factor theta."""
AFTER_FAILURE = 0.75
LAST_HINGE = 0.85
"""The last lambda is aimed at this share of eps for R: less would be a longer way than needed."""


@dataclass
class TwoSided:
    """What the walk keeps from one lambda to the next; all of it is committed."""

    hinge_at_zero: float
    points: list[Point]
    """By falling lambda; the first is the lowest down to which everything is certified."""
    vectors: list[np.ndarray]
    """w of each (d,); psi~ for w = 0"""
    cells: list[Cell] = field(default_factory=list)
    """Those certified so far, from the top down."""
    theta: float = 1.0
    fall: float = math.nan
    """d log R / d log lambda between the last two certified points."""

    def add(self, point: Point, w: np.ndarray) -> None:
        """Another solved lambda."""
        k = sum(p.lam > point.lam for p in self.points)
        self.points.insert(k, point)
        self.vectors.insert(k, np.array(w))

    def advance(self, goal: Goal, lam_top: float) -> float | None:
        """Certify intervals from the top down; None when all are, else the lambda to solve for the first that fails."""
        while len(self.points) > 1:
            pair = self.pair()
            low, high = pair.below.lam, min(pair.above.lam, lam_top)
            interval = self.cells[-1].interval + 1
            cells = pair.cells(goal, interval, low, high)
            if not cells and low < high:
                self.theta = max(AFTER_FAILURE * self.theta, THETA[0])
                return pair.worst(goal, low, high)
            if low < high and pair.above.norm2 > 0.0:
                self.adapt(pair, goal)
            self.cells += cells or [Cell(interval, low, low, (0.0, 1.0), (0.0, 1.0), pair.inner, pair.dual_inner)]
            if 0.0 < pair.below.hinge < pair.above.hinge and math.isfinite(high):
                self.fall = math.log(pair.above.hinge / pair.below.hinge) / math.log(pair.above.lam / pair.below.lam)
            del self.points[0], self.vectors[0]
        return None

    def finish(self, goal: Goal, lowest: float) -> bool:
        """Whether the last point certifies all that is left; its cell is then added."""
        (point,) = self.points
        interval = self.cells[-1].interval + 1
        cells = cell_to_zero(point, goal, interval)
        if not cells and lowest > 0.0:
            cells = cell_down_to(point, goal, interval, min(lowest, point.lam))
        self.cells += cells
        return bool(cells)

    def pair(self) -> Pair:
        """The first two points."""
        a, b = self.points[:2]
        inner = float(np.sum(self.vectors[0] * self.vectors[1]))
        if math.isinf(a.lam):
            return Pair(a, b, 0.0, b.lam * inner, self.hinge_at_zero)
        return Pair(a, b, inner, a.lam * b.lam * inner, self.hinge_at_zero)

    def adapt(self, pair: Pair, goal: Goal) -> None:
        """theta from what the interval left over: what its middle adds to the gap grows with the square of the step."""
        middle = math.sqrt(pair.below.lam) * math.sqrt(pair.above.lam)
        t, tau = pair.best(middle)
        primal, own = pair.primal(middle, t), 0.5 * (pair.above.gap + pair.below.gap)
        added = max(primal - pair.dual(middle, tau) - own, 1e-3 * own, 1e-300)
        left = goal.eps * (primal if goal.relative else 1.0) - own
        wanted = self.theta * math.sqrt(max(left, 0.0) / added)
        self.theta = min(max(wanted, THETA[0]), THETA[1])

    def step(self, goal: Goal, kappa: float) -> float:
        """The next smaller lambda to solve."""
        b = self.points[0]
        eps = goal.eps * ((0.5 * b.lam * b.norm2 + b.hinge) if goal.relative else 1.0)
        room = self.theta**2 * (1.0 - kappa) * eps / (b.lam * b.norm2)
        lam = b.lam * math.exp(-2.0 * math.acosh(1.0 + room))
        if self.fall > 0.0 and not goal.relative:
            lam = max(lam, b.lam * min((LAST_HINGE * goal.eps / b.hinge) ** (1.0 / self.fall), 1.0))
        return lam

    # -- committed state ----------------------------------------------------------------------------------------------
    def packed(self) -> tuple[dict[str, np.ndarray], dict[str, float]]:
        """Arrays under the names of `storage.layout.STATE`, and scalars."""
        arrays = {
            "path_points": np.array(self.points, dtype=float).reshape(-1, len(Point._fields)),
            "path_vectors": np.array(self.vectors),
            "path_cells": flat_cells(self.cells),
        }
        return arrays, {"hinge_at_zero": self.hinge_at_zero, "theta": self.theta, "fall": self.fall}

    @staticmethod
    def unpacked(arrays: Mapping[str, np.ndarray], scalars: Mapping[str, float]) -> TwoSided:
        """What was packed."""
        points = [Point(*row) for row in arrays["path_points"].tolist()]
        cells = [
            Cell(int(k), lo, hi, (a, b), (c, d), G, S) for k, lo, hi, a, b, c, d, G, S in arrays["path_cells"].tolist()
        ]
        return TwoSided(points=points, vectors=list(arrays["path_vectors"]), cells=cells, **scalars)


def flat_cells(cells: list[Cell]) -> np.ndarray:
    """One row a cell: interval, low, high, t_a, t_b, tau_a, tau_b, G, S."""
    rows = [(c.interval, c.low, c.high, *c.primal, *c.dual, c.inner, c.dual_inner) for c in cells]
    return np.array(rows, dtype=float).reshape(-1, 9)


def begin(hinge_at_zero: float, psi: np.ndarray, psi_norm2: float, lam_top: float) -> TwoSided:
    """Nothing solved yet: w = 0 covers everything from `lam_top` up."""
    point = zero(hinge_at_zero, psi_norm2)
    everything_above = Cell(-1, lam_top, math.inf, (1.0, 0.0), (1.0, 0.0), 0.0, 0.0)
    return TwoSided(hinge_at_zero, [point], [psi], [everything_above])
