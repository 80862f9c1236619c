"""`path.rule=two_sided`: lambdas certified from the solved ones on both sides (proof: `stages.solver.path.cells`).

Lambdas are solved from the largest down. If the interval between two of them cannot be certified, the lambda at which it
fails by most is solved next, and both parts are tried. So the rule keeps solved points
(`path.members`): the one down to which everything is certified, and those below it, whose intervals are not certified yet.
Steps: `path.stride`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Self

import numpy as np

from gapwise.stages.problems.stored import check_array
from gapwise.stages.solver.objective import Certificate, Mixture, Product, plain_product
from gapwise.stages.solver.options import PathOptions, Status
from gapwise.stages.solver.path.cell_arrays import CELL_COLUMNS, bound_of, cells_of, flat_cells, model_of
from gapwise.stages.solver.path.cells import Cell, Goal, Pair
from gapwise.stages.solver.path.members import (
    Member,
    apart,
    cells_below,
    end_of,
    insert,
    packed_members,
    pair_of,
    restored_members,
    specs_of,
    zero_member,
)
from gapwise.stages.solver.path.rule import Following, PathRule, PathStart, Solved, closing
from gapwise.stages.solver.path.stride import Stride

if TYPE_CHECKING:
    from gapwise.records import Json
    from gapwise.stages.solver.packed import ArraySpec


CELLS: ArraySpec = ("path_cells", ("cell", "cell_column"), "f8", "cells certified so far: columns of `flat_cells`")

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

    members: list[Member]
    """The one down to which everything is certified, then those whose intervals are not yet."""
    cells: list[Cell]
    """The cells certified so far, from the top down."""
    stride: Stride
    product: Product = plain_product
    """Of the problem's weights."""

    # -- the rule -----------------------------------------------------------------------------------------------------
    @classmethod
    def begin(cls, path: PathOptions, start: PathStart | None) -> Self:
        """The rule before any lambda is solved: w = 0 covers everything from `lam_top` up."""
        assert start is not None
        everything_above = Cell(-1, start.lam_top, math.inf, (1.0, 0.0), (1.0, 0.0), 0.0, 0.0)
        stride = Stride(path, start.hinge_at_zero, start.lam_top)
        return cls(path, start, [zero_member(start)], [everything_above], stride)

    def use_product(self, product: Product) -> None:
        """Take inner products of solved points by `product`."""
        self.product = product

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
        narrow = lam is not None and self.members[1].point.lam >= (1.0 - NARROW) * self.members[0].point.lam
        if narrow or solved.index + 1 >= path.max_breakpoints:
            return Following(math.nan, point.lam, Status.STALLED if narrow else Status.PASS_LIMIT)
        if lam is None:
            lam = max(self.stride.below(self.members[0].point, goal), end_of(path, self.zero))
        return Following(lam, point.lam)

    def add(self, solved: Solved, point: Certificate, goal: Goal) -> bool:
        """Add a solved lambda to the members; False if its gap misses the goal."""
        if goal.excess(point.primal, point.dual) >= 0.0:
            return False
        if solved.oracle_calls and self.mixture(point.lam) is not None:
            self.stride.restrain()
        if point.lam < self.members[-1].point.lam:
            self.stride.passes = solved.passes
        insert(self.members, solved, self.product, solved.worst_hinge() if self.path.relative else math.inf)
        return True

    def mixture(self, lam: float) -> Mixture | None:
        """The best mixture of the two points around lambda, if w may differ from that of the dual point."""
        if self.path.relative or not apart(self.members):
            return None
        for above, below in pairwise(self.members):
            if below.point.lam < lam < above.point.lam:
                pair = self.pair(above, below)
                share = pair.best(lam)[0]
                w = share[1] * below.w
                if math.isfinite(above.point.lam):  # not w = 0
                    w += share[0] * above.w
                return Mixture(w, pair.hinge(share), MIXED * self.path.eps)
        return None

    def pair(self, above: Member, below: Member) -> Pair:
        """Two neighbours."""
        return pair_of(above, below, self.zero.hinge_at_zero, self.product)

    def lower_end(self, lam: float) -> float:
        """Down to where a solved lambda certifies once the path has ended: the last one to the end, others to themselves."""
        return self.cells[-1].low if lam == self.members[-1].point.lam else lam

    def advance(self, goal: Goal) -> float | None:
        """Certify intervals from the top down; returns the lambda to solve inside the first that fails, or None."""
        stride = self.stride
        while len(self.members) > 1:
            pair, interval, two_points = self.pair(*self.members[:2]), self.cells[-1].interval + 1, apart(self.members)
            low, high = pair.below.lam, min(pair.above.lam, self.zero.lam_top)
            cells = pair.cells(goal, interval, low, high)
            if not cells and low < high:
                if self.path.relative or not two_points:
                    stride.shorten(two_points)
                return pair.worst(goal, low, high)
            if low < high and pair.above.norm2 > 0.0:
                stride.adapt(pair, goal, two_points)
            if math.isfinite(high):
                stride.note_fall(pair)
            self.cells += cells or [Cell(interval, low, low, (0.0, 1.0), (0.0, 1.0), pair.inner, pair.dual_inner)]
            del self.members[0]
        return None

    def finish(self, goal: Goal) -> Status | None:
        """How the path ends if its last point certifies all smaller lambdas it should reach, else None; adds its cell."""
        (last,) = self.members
        cells, ended = cells_below(last.point, goal, self.cells[-1].interval + 1, self.path, self.zero)
        self.cells += cells
        return ended

    # -- committed state ----------------------------------------------------------------------------------------------
    @property
    def specs(self) -> tuple[ArraySpec, ...]:
        """The arrays of `packed`."""
        return (*specs_of(self.members), CELLS)

    def packed(self) -> tuple[dict[str, np.ndarray], dict[str, Json]]:
        """Arrays of `specs`, and scalars."""
        return {**packed_members(self.members), "path_cells": flat_cells(self.cells)}, self.stride.packed()

    @classmethod
    def restored(
        cls, path: PathOptions, start: PathStart | None, arrays: Mapping[str, np.ndarray], attrs: Mapping[str, object]
    ) -> Self:
        """The rule in its packed state; ValueError, naming the array, if one is not what `packed` gives."""
        assert start is not None
        cells = cells_of(check_array("path_cells", arrays["path_cells"], (None, CELL_COLUMNS), float))
        stride = Stride(path, start.hinge_at_zero, start.lam_top).restored(attrs)
        return cls(path, start, restored_members(arrays), cells, stride)

    # -- results ------------------------------------------------------------------------------------------------------
    def model(self, solved: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The cells, with the shares of their dual points and the inner products that certify them."""
        return model_of(self.cells)

    @classmethod
    def bound(cls, arrays: Mapping[str, np.ndarray], attrs: Mapping[str, object], lam: np.ndarray) -> np.ndarray:
        """The certified bound on the gap (or gap / primal) at `lam`, nan where nothing is certified."""
        return bound_of(arrays, attrs, lam)


RULE = TwoSided
