"""`path.rule=two_sided`: lambdas certified from the solved ones on both sides (proof: `stages.solver.path.cells`).

Lambdas are solved from the largest down. If the interval between two of them cannot be certified, the lambda at which it
fails by most is solved next, and both parts are tried. So the rule keeps a stack of solved points (`path.stack`): the one
down to which everything is certified, and those below it, whose intervals are not certified yet. Steps: `path.stride`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

from gapwise.stages.solver.objective import Certificate, Mixture, Product
from gapwise.stages.solver.options import PathOptions, Status
from gapwise.stages.solver.path.cell_arrays import bound_of, model_of
from gapwise.stages.solver.path.cells import (
    FLOOR,
    Cell,
    Goal,
    SolvedPoint,
    cell_down_to,
    cell_to_zero,
    lowest,
    solved_point,
)
from gapwise.stages.solver.path.rule import (
    Following,
    PathRule,
    PathStart,
    Solved,
    closing,
    negligible,
    rounding_floor,
)
from gapwise.stages.solver.path.stack import Stack
from gapwise.stages.solver.path.stride import Stride

if TYPE_CHECKING:
    from gapwise.records import Json
    from gapwise.stages.solver.packed import ArraySpec


NARROW = 1e-6
"""Two lambdas this close, as a share, whose interval is not certified although both are solved to kappa eps: more lambdas
between them will not help, so the path ends with STALLED instead of never."""


MIXED = 0.98
"""A mixture of two solved points certifies a lambda between them up to this share of eps; what is left lets the cells meet
there."""


@dataclass
class TwoSided(PathRule):
    """Solved points, the cells certified so far, the length of steps; all of it is committed."""

    kappa, kappa_apart = 0.7, 0.84
    between = two_points = switches = True

    stack: Stack
    stride: Stride

    # -- the rule -----------------------------------------------------------------------------------------------------
    @classmethod
    def begin(cls, path: PathOptions, start: PathStart | None) -> Self:
        """The rule before any lambda is solved: w = 0 covers everything from `lam_top` up."""
        assert start is not None
        return cls(path, start, Stack.begin(start), Stride(path, start.hinge_at_zero, start.lam_top))

    def use_product(self, product: Product) -> None:
        """Take inner products of solved points by `product`."""
        self.stack.product = product

    def following(self, solved: Solved) -> Following:
        """The next lambda: inside the first interval that is not certified, otherwise below the last lambda."""
        path, point = self.path, solved.point
        assert point is not None
        goal = Goal(closing(path.eps), path.relative)
        if not self.add(solved, point, goal):
            return Following(math.nan, point.lam, solved.status)
        lam = self.advance(goal)
        if lam is None and (ended := self.finish(goal)):
            return Following(math.nan, self.lower_end(point.lam), ended)
        narrow = lam is not None and self.stack.points[1].lam >= (1.0 - NARROW) * self.stack.points[0].lam
        if narrow or solved.index + 1 >= path.max_breakpoints:
            return Following(math.nan, point.lam, Status.STALLED if narrow else Status.PASS_LIMIT)
        if lam is None:
            lam = max(self.stride.below(self.stack.points[0], goal), self.floor_here())
        return Following(lam, point.lam)

    def add(self, solved: Solved, point: Certificate, goal: Goal) -> bool:
        """Add a solved lambda to the stack: its numbers, its w, and its w(alpha) if that is another; False if its gap misses
        the goal."""
        if goal.excess(point.primal, point.dual) >= 0.0:
            return False
        if solved.oracle_calls and self.mixture(point.lam) is not None:
            self.stride.restrain()
        if point.lam < self.stack.points[-1].lam:
            self.stride.passes = solved.passes
        worst = solved.worst_hinge() if self.path.relative else math.inf
        dual = solved.dual_weights
        own = None if dual is None else point.lam**2 * self.stack.product(dual, dual)
        self.stack.add(solved_point(point, worst, own), solved.weights, dual)
        return True

    def mixture(self, lam: float) -> Mixture | None:
        """The best mixture of the two points around lambda, if w may differ from that of the dual point."""
        return self.stack.mixture(lam, MIXED * self.path.eps) if self.stack.apart and not self.path.relative else None

    def lower_end(self, lam: float) -> float:
        """Down to where a solved lambda certifies once the path has ended: the last one to the end, others to themselves."""
        return self.stack.cells[-1].low if lam == self.stack.points[-1].lam else lam

    def advance(self, goal: Goal) -> float | None:
        """Certify intervals from the top down; returns the lambda to solve inside the first that fails, or None."""
        stack, stride = self.stack, self.stride
        while len(stack.points) > 1:
            pair, interval = stack.pair(), stack.interval
            low, high = pair.below.lam, min(pair.above.lam, self.zero.lam_top)
            cells = pair.cells(goal, interval, low, high)
            if not cells and low < high:
                if self.path.relative or not stack.apart:
                    stride.shorten(stack.apart)
                return pair.worst(goal, low, high)
            if low < high and pair.above.norm2 > 0.0:
                stride.adapt(pair, goal, stack.apart)
            if math.isfinite(high):
                stride.note_fall(pair)
            stack.pop(cells or [Cell(interval, low, low, (0.0, 1.0), (0.0, 1.0), pair.inner, pair.dual_inner)])
        return None

    def finish(self, goal: Goal) -> Status | None:
        """How the path ends if its last point certifies all smaller lambdas it should reach, else None; adds its cell."""
        (point,) = self.stack.points
        cells, ended = self.bottom(point, goal)
        self.stack.cells += cells
        return ended if cells else None

    def bottom(self, point: SolvedPoint, goal: Goal) -> tuple[list[Cell], Status]:
        """The cell below the last point, and how the path ends with it; [] if the path has to go on."""
        interval, hinge_at_zero = self.stack.interval, self.zero.hinge_at_zero
        cells, ended = cell_to_zero(point, goal, interval), Status.CONVERGED
        if not cells and point.lam > 0.0:
            certificate = Certificate(point.lam, point.gap, point.hinge, point.ell, point.norm2, math.nan)
            unit = goal.eps * (hinge_at_zero if goal.relative else 1.0)
            psi_norm2 = 2.0 * unit * self.zero.lam_top
            if negligible(self.path, certificate, hinge_at_zero, psi_norm2):
                cells, ended = cell_down_to(point, goal, interval, lowest(point, goal)), Status.LAMBDA_NEGLIGIBLE
            else:
                low = self.floor_here()
                ended = Status.CONVERGED if low <= self.path.lambda_min else Status.ROUNDING_LIMIT
                cells = cell_down_to(point, goal, interval, min(low, point.lam)) if low > 0.0 else []
        return cells, ended

    def floor_here(self) -> float:
        """Where the path ends if it does not reach lambda = 0."""
        return max(self.path.lambda_min, rounding_floor(self.path, self.zero, FLOOR))

    # -- committed state ----------------------------------------------------------------------------------------------
    @property
    def specs(self) -> tuple[ArraySpec, ...]:
        """The arrays of `packed`."""
        return self.stack.specs

    def packed(self) -> tuple[dict[str, np.ndarray], dict[str, Json]]:
        """Arrays of `specs`, and scalars."""
        return self.stack.packed(), self.stride.packed()

    @classmethod
    def restored(
        cls, path: PathOptions, start: PathStart | None, arrays: Mapping[str, np.ndarray], attrs: Mapping[str, object]
    ) -> Self:
        """The rule in its packed state; ValueError, naming the array, if one is not what `packed` gives."""
        assert start is not None
        stack = Stack.restored(start.hinge_at_zero, arrays)
        return cls(path, start, stack, Stride(path, start.hinge_at_zero, start.lam_top).restored(attrs))

    # -- results ------------------------------------------------------------------------------------------------------
    def model(self, solved: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The cells, with the shares of their dual points and the inner products that certify them."""
        return model_of(self.stack.cells)

    @classmethod
    def bound(cls, arrays: Mapping[str, np.ndarray], attrs: Mapping[str, object], lam: np.ndarray) -> np.ndarray:
        """The certified bound on the gap (or gap / primal) at `lam`, nan where nothing is certified."""
        return bound_of(arrays, attrs, lam)


RULE = TwoSided
