"""`path.rule=two_sided`: lambdas certified from the solved ones on both sides (proof: `stages.solver.path.cells`).

Lambdas are solved from the largest down. If the interval between two of them cannot be certified, the lambda at which it
fails by most is solved next, and both parts are tried. So the rule keeps a stack of solved points: the one down to which
everything is certified, and those below it, whose intervals are not certified yet.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from gapwise.stages.problems.stored import check_array
from gapwise.stages.solver.objective import Certificate, Product, plain_product
from gapwise.stages.solver.options import PathOptions, Status
from gapwise.stages.solver.path.capabilities import Capabilities
from gapwise.stages.solver.path.cells import (
    Cell,
    Goal,
    Pair,
    Point,
    cell_down_to,
    cell_to_zero,
    lowest,
    solved_point,
    zero,
)
from gapwise.stages.solver.path.rule import (
    NEGLIGIBLE,
    PAST_TOP,
    Following,
    PathStart,
    Solved,
    Tolerance,
    closing,
    negligible,
    rounding_floor,
)

if TYPE_CHECKING:
    from gapwise.stages.parallel import Spread
    from gapwise.stages.problems.protocol import Problem
    from gapwise.stages.solver.packed import ArraySpec

THETA = (0.5, 1.5)
"""Range of the step's factor theta."""
THETA_APART = (0.5, 3.0)
"""The same where primal and dual point are not each other's: both are then closer to the optimum than their gap says."""
AFTER_FAILURE = 0.75
"""The factor applied to theta when an interval fails."""
CELL_COLUMNS = 9
"""Columns of `flat_cells`."""
LAST_HINGE = 0.85
"""The last lambda is chosen so that R is about this share of eps; a smaller share would cost extra breakpoints."""

PAST_END = 0.25
"""Share of the lambda at which the path would end (`rule.negligible`) if w stayed, below which no step goes: w still grows,
but lambdas far below the end of the path cost more than all others together."""

FLOOR = 1e-9
"""No path goes below this share of its largest lambda: there psi = lambda w is a small difference of large sums, and
rounding shows."""


@dataclass
class TwoSided:
    """The stack of solved points and the cells certified so far; all of it is committed."""

    capabilities = Capabilities(kappa=0.7, kappa_apart=0.88, between=True, two_points=True, takes_product=True)
    SPECS = (
        (
            "path_points",
            ("point", "point_column"),
            "f8",
            "solved points that are still needed: fields of `cells.Point`",
        ),
        ("path_vectors", ("point", "point_feature"), "f8", "w of these points; psi~ for the point w = 0"),
        ("path_cells", ("cell", "cell_column"), "f8", "cells certified so far: columns of `flat_cells`"),
    )
    DUALS = ("path_duals", ("point", "point_feature"), "f8", "w(alpha) of these points; psi~ for the point w = 0")

    path: PathOptions
    hinge_at_zero: float
    lam_top: float
    rounding: float
    """`rounding_floor` of this path"""
    points: list[Point]
    """By falling lambda; the first is the lowest down to which everything is certified."""
    vectors: list[np.ndarray]
    """w of each (d,); psi~ for w = 0"""
    cells: list[Cell] = field(default_factory=list)
    """The cells certified so far, from the top down."""
    theta: float = 1.0
    fall: float = math.nan
    """d log R / d log lambda between the last two certified points."""
    duals: list[np.ndarray] = field(default_factory=list)
    """w(alpha) of each point (d,), psi~ for w = 0, once a point comes whose w is another; [] before."""
    product: Product = plain_product
    """Of the problem's weights; `stages.solver.path.walk.in_metric_of` sets another."""

    # -- the rule -----------------------------------------------------------------------------------------------------
    @classmethod
    def check(cls, path: PathOptions) -> None:
        """There is nothing more to check than for every path."""

    @classmethod
    def lambdas(cls, path: PathOptions) -> tuple[float, ...]:
        """None are given."""
        return ()

    @classmethod
    def start(cls, problem: Problem, path: PathOptions, spread: Spread) -> PathStart:
        """w = 0 covers all lambda >= ||psi~||^2 / (2 eps); the first lambda solved is an eighth of that."""
        from gapwise.stages.solver.path.start import start_below_zero

        return start_below_zero(problem, path, spread)

    @classmethod
    def begin(cls, path: PathOptions, start: PathStart | None) -> Self:
        """The rule before any lambda is solved: w = 0 covers everything from `lam_top` up."""
        assert start is not None
        point = zero(start.hinge_at_zero, start.psi_norm2)
        everything_above = Cell(-1, start.lam_top, math.inf, (1.0, 0.0), (1.0, 0.0), 0.0, 0.0)
        rounding = rounding_floor(path, start, FLOOR)
        return cls(path, start.hinge_at_zero, start.lam_top, rounding, [point], [start.psi], [everything_above])

    def tolerance(self) -> Tolerance:
        """The share kappa of eps, which may be relative."""
        return Tolerance(self.path.kappa * self.path.eps, self.path.relative)

    def warm_start(self) -> str:
        """alpha stays."""
        return "keep_dual"

    def open_end(self) -> None:
        """The path goes down to its end."""

    def following(self, solved: Solved) -> Following:
        """The next lambda: inside the first interval that is not certified, otherwise below the last lambda."""
        path, point = self.path, solved.point
        assert point is not None
        goal = Goal(closing(path.eps), path.relative)
        if goal.excess(point.primal, point.dual) >= 0.0:
            return Following(math.nan, point.lam, solved.status)
        last = all(p.lam > point.lam for p in self.points)
        self.add(*self.point_of(solved, point))
        lam = self.advance(goal, self.lam_top)
        if lam is None:
            ended = self.finish(goal)
            if ended:
                return Following(math.nan, self.cells[-1].low if last else point.lam, ended)
        if solved.index + 1 >= path.max_breakpoints:
            return Following(math.nan, point.lam, Status.PASS_LIMIT)
        return Following(max(self.step(goal, path.kappa), self.floor_here()) if lam is None else lam, point.lam)

    # -- points and cells ---------------------------------------------------------------------------------------------
    def point_of(self, solved: Solved, point: Certificate) -> tuple[Point, np.ndarray, np.ndarray | None]:
        """What a solved lambda contributes, its w, and its w(alpha) if that is another."""
        worst = solved.worst_hinge() if self.path.relative else math.inf
        dual = solved.dual_weights
        own = None if dual is None else point.lam**2 * self.product(dual, dual)
        return solved_point(point, worst, own), solved.weights, dual

    def add(self, point: Point, w: np.ndarray, dual: np.ndarray | None = None) -> None:
        """Another solved lambda."""
        k = sum(p.lam > point.lam for p in self.points)
        if dual is not None:
            self.duals = self.duals or list(self.vectors)
            self.duals.insert(k, np.array(dual))
        self.points.insert(k, point)
        self.vectors.insert(k, np.array(w))

    @property
    def theta_range(self) -> tuple[float, float]:
        """The range of theta."""
        return THETA_APART if self.duals else THETA

    def advance(self, goal: Goal, lam_top: float) -> float | None:
        """Certify intervals from the top down; returns the lambda to solve inside the first that fails, or None."""
        while len(self.points) > 1:
            pair = self.pair()
            low, high = pair.below.lam, min(pair.above.lam, lam_top)
            interval = self.cells[-1].interval + 1
            cells = pair.cells(goal, interval, low, high)
            if not cells and low < high:
                self.theta = max(AFTER_FAILURE * self.theta, self.theta_range[0])
                return pair.worst(goal, low, high)
            if low < high and pair.above.norm2 > 0.0:
                self.adapt(pair, goal)
            self.cells += cells or [Cell(interval, low, low, (0.0, 1.0), (0.0, 1.0), pair.inner, pair.dual_inner)]
            if 0.0 < pair.below.hinge < pair.above.hinge and math.isfinite(high):
                self.fall = math.log(pair.above.hinge / pair.below.hinge) / math.log(pair.above.lam / pair.below.lam)
            del self.points[0], self.vectors[0], self.duals[:1]
        return None

    def finish(self, goal: Goal) -> Status | None:
        """How the path ends if its last point certifies all smaller lambdas it should reach, else None; adds its cell."""
        (point,) = self.points
        interval = self.cells[-1].interval + 1
        cells, ended = cell_to_zero(point, goal, interval), Status.CONVERGED
        if not cells and point.lam > 0.0:
            at = Certificate(point.lam, point.gap, point.hinge, point.ell, point.norm2, math.nan)
            unit = goal.eps * (self.hinge_at_zero if goal.relative else 1.0)
            psi_norm2 = 2.0 * unit * self.lam_top
            if negligible(self.path, at, self.hinge_at_zero, psi_norm2):
                cells, ended = cell_down_to(point, goal, interval, lowest(point, goal)), Status.LAMBDA_NEGLIGIBLE
            else:
                low = self.floor_here()
                ended = Status.CONVERGED if low <= self.path.lambda_min else Status.ROUNDING_LIMIT
                cells = cell_down_to(point, goal, interval, min(low, point.lam)) if low > 0.0 else []
        self.cells += cells
        return ended if cells else None

    def floor_here(self) -> float:
        """Where the path ends if it does not reach lambda = 0."""
        return max(self.path.lambda_min, self.rounding)

    def pair(self) -> Pair:
        """The first two points."""
        a, b = self.points[:2]
        inner = self.product(self.vectors[0], self.vectors[1])
        dual_inner = self.product(self.duals[0], self.duals[1]) if self.duals else inner
        if math.isinf(a.lam):
            return Pair(a, b, 0.0, b.lam * dual_inner, self.hinge_at_zero)
        return Pair(a, b, inner, a.lam * b.lam * dual_inner, self.hinge_at_zero)

    def adapt(self, pair: Pair, goal: Goal) -> None:
        """Choose theta from the slack of the interval: what its middle adds to the gap grows with the square of the step."""
        middle = math.sqrt(pair.below.lam) * math.sqrt(pair.above.lam)
        t, tau = pair.best(middle)
        primal, own = pair.primal(middle, t), 0.5 * (pair.above.gap + pair.below.gap)
        added = max(primal - pair.dual(middle, tau) - own, 1e-3 * own, 1e-300)
        left = goal.eps * (primal if goal.relative else 1.0) - own
        wanted = self.theta * math.sqrt(max(left, 0.0) / added)
        self.theta = min(max(wanted, self.theta_range[0]), self.theta_range[1])

    def step(self, goal: Goal, kappa: float) -> float:
        """The next smaller lambda to solve."""
        b = self.points[0]
        eps = goal.eps * ((0.5 * b.lam * b.norm2 + b.hinge) if goal.relative else 1.0)
        room = self.theta**2 * (1.0 - kappa) * eps / (b.lam * b.norm2)
        lam = b.lam * math.exp(-2.0 * math.acosh(1.0 + room))
        if self.fall > 0.0 and not goal.relative:
            lam = max(lam, b.lam * min((LAST_HINGE * goal.eps / b.hinge) ** (1.0 / self.fall), 1.0))
        out_of_reach = goal.relative or b.hinge - b.lam * b.norm2 > goal.eps
        if self.path.lambda_min == 0.0 and out_of_reach:
            far = math.inf if self.hinge_at_zero - b.hinge >= eps else PAST_TOP * self.lam_top
            lam = max(lam, PAST_END * min(2.0 * NEGLIGIBLE * eps / b.norm2, far))
        return lam

    # -- committed state ----------------------------------------------------------------------------------------------
    @property
    def specs(self) -> tuple[ArraySpec, ...]:
        """The arrays of `packed`."""
        return (*self.SPECS, self.DUALS) if self.duals else self.SPECS

    def packed(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Arrays of `specs`, and scalars."""
        arrays = {
            "path_points": np.array(self.points, dtype=float).reshape(-1, len(Point._fields)),
            "path_vectors": np.array(self.vectors),
            "path_cells": flat_cells(self.cells),
        }
        if self.duals:
            arrays["path_duals"] = np.array(self.duals)
        return arrays, {"theta": self.theta, "fall": self.fall}

    @classmethod
    def restored(
        cls, path: PathOptions, start: PathStart | None, arrays: Mapping[str, np.ndarray], attrs: Mapping[str, Any]
    ) -> Self:
        """The rule in its packed state; ValueError, naming the array, if one is not what `packed` gives."""
        assert start is not None
        count = len(check_array("path_points", arrays["path_points"], (None, len(Point._fields)), float))
        check_array("path_vectors", arrays["path_vectors"], (max(count, 1), None), float, finite=True)
        check_array("path_cells", arrays["path_cells"], (None, CELL_COLUMNS), float)
        duals = arrays.get("path_duals", np.empty((0, 1)))
        if duals.size:
            check_array("path_duals", duals, arrays["path_vectors"].shape, float, finite=True)
        points = [Point(*row) for row in arrays["path_points"].tolist()]
        cells = [
            Cell(int(k), lo, hi, (a, b), (c, d), G, S) for k, lo, hi, a, b, c, d, G, S in arrays["path_cells"].tolist()
        ]
        vectors = list(arrays["path_vectors"])
        rounding = rounding_floor(path, start, FLOOR)
        numbers = path, start.hinge_at_zero, start.lam_top, rounding
        return cls(*numbers, points, vectors, cells, duals=list(duals), **attrs)

    # -- results ------------------------------------------------------------------------------------------------------
    def model(self, solved: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The cells, with the shares of their dual points and the inner products that certify them."""
        return model_of(self.cells)

    @classmethod
    def bound(cls, arrays: Mapping[str, np.ndarray], attrs: Mapping[str, Any], lam: np.ndarray) -> np.ndarray:
        """The certified bound on the gap (or gap / primal) at `lam`, nan where nothing is certified."""
        columns = [arrays[name] for name in ("lambda", "gap", "hinge", "loss_dual", "norm2")]
        columns.append(arrays["dual_norm2"] if "dual_norm2" in arrays else arrays["lambda"] ** 2 * arrays["norm2"])
        points = [Point(*row) for row in zip(*columns, strict=True)]
        hinge_at_zero, relative = float(attrs["hinge_at_zero"]), bool(attrs["relative"])
        above_all, nothing = (
            zero(hinge_at_zero, float(attrs["psi_norm2"])),
            Point(0.0, 0.0, hinge_at_zero, 0.0, 0.0, 0.0),
        )
        low, found = arrays["cell_low"], []
        for x in np.ravel(lam).tolist():
            if not x >= low[-1]:
                found.append(math.nan)
                continue
            c = int(np.argmax(low <= x))
            k, t, tau = int(arrays["cell_interval"][c]), arrays["cell_primal"][c], arrays["cell_dual"][c]
            if k < 0:  # w = 0
                primal, gap = hinge_at_zero, above_all.dual_norm2 / (2.0 * x)
                found.append(share_of(gap, primal) if relative else gap)
                continue
            above = points[k - 1] if k > 0 else above_all
            below = points[k] if k < len(points) else nothing
            pair = Pair(above, below, arrays["cell_inner"][c], arrays["cell_dual_inner"][c], hinge_at_zero)
            primal = pair.primal(x, t)
            if low[c] == 0.0:
                tau = tau * (min(1.0, above.ell * x / above.dual_norm2) if above.dual_norm2 > 0.0 else 1.0)
                primal = 0.5 * x * t[0] ** 2 * above.norm2 + (above.hinge if t[0] == 1.0 else 0.0)
            gap = primal - pair.dual(x, tau)
            found.append(share_of(gap, primal) if relative else gap)
        return np.array(found).reshape(np.shape(lam))


def share_of(gap: float, primal: float) -> float:
    """gap / primal; the gap itself where the primal value is 0, as where no labelling has a loss."""
    return gap / primal if primal > 0.0 else gap


def flat_cells(cells: list[Cell]) -> np.ndarray:
    """One row per cell: interval, low, high, t_a, t_b, tau_a, tau_b, G, S."""
    rows = [(c.interval, c.low, c.high, *c.primal, *c.dual, c.inner, c.dual_inner) for c in cells]
    return np.array(rows, dtype=float).reshape(-1, CELL_COLUMNS)


def model_of(cells: list[Cell]) -> dict[str, np.ndarray]:
    """Cells as arrays of `storage.layout.CELLS` and `CELL_CERTIFICATES`."""
    rows = flat_cells(cells)
    return {
        "cell_interval": rows[:, 0].astype(np.int64),
        "cell_low": rows[:, 1],
        "cell_high": rows[:, 2],
        "cell_primal": rows[:, 3:5],
        "cell_scale": np.full(len(rows), math.inf),
        "cell_dual": rows[:, 5:7],
        "cell_inner": rows[:, 7],
        "cell_dual_inner": rows[:, 8],
    }


RULE = TwoSided
