"""The solved points of a two-sided path that are still needed, and the cells that are certified above them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Self

import numpy as np

from gapwise.stages.problems.stored import check_array
from gapwise.stages.solver.objective import Mixture, Product, plain_product
from gapwise.stages.solver.path.cell_arrays import CELL_COLUMNS, cells_of, flat_cells
from gapwise.stages.solver.path.cells import Cell, Pair, SolvedPoint, zero
from gapwise.stages.solver.path.rule import PathStart

if TYPE_CHECKING:
    from gapwise.stages.solver.packed import ArraySpec

SPECS: tuple[ArraySpec, ...] = (
    (
        "path_points",
        ("point", "point_column"),
        "f8",
        "solved points that are still needed: fields of `cells.SolvedPoint`",
    ),
    ("path_vectors", ("point", "point_feature"), "f8", "w of these points; psi~ for the point w = 0"),
    ("path_cells", ("cell", "cell_column"), "f8", "cells certified so far: columns of `flat_cells`"),
)
DUALS: ArraySpec = (
    "path_duals",
    ("point", "point_feature"),
    "f8",
    "w(alpha) of these points; psi~ for the point w = 0",
)


@dataclass
class Stack:
    """Points by falling lambda: the one down to which everything is certified, then those whose intervals are not yet."""

    hinge_at_zero: float
    points: list[SolvedPoint]
    vectors: list[np.ndarray]
    """w of each (d,); psi~ for w = 0"""
    cells: list[Cell] = field(default_factory=list)
    """The cells certified so far, from the top down."""
    duals: list[np.ndarray] = field(default_factory=list)
    """w(alpha) of each point (d,), psi~ for w = 0, once a point comes whose w is another; [] before."""
    product: Product = plain_product
    """Of the problem's weights."""

    @classmethod
    def begin(cls, start: PathStart) -> Self:
        """Before any lambda is solved: w = 0 covers everything from the top of the path up."""
        everything_above = Cell(-1, start.lam_top, math.inf, (1.0, 0.0), (1.0, 0.0), 0.0, 0.0)
        return cls(start.hinge_at_zero, [zero(start.hinge_at_zero, start.psi_norm2)], [start.psi], [everything_above])

    @property
    def apart(self) -> bool:
        """Whether the w of a solved lambda differs from that of its dual point."""
        return bool(self.duals)

    @property
    def interval(self) -> int:
        """Number of the first interval that is not certified."""
        return self.cells[-1].interval + 1

    def add(self, point: SolvedPoint, w: np.ndarray, dual: np.ndarray | None = None) -> None:
        """Another solved lambda; `dual` is its w(alpha), if that is another point."""
        k = sum(p.lam > point.lam for p in self.points)
        if dual is not None:
            self.duals = self.duals or list(self.vectors)
            self.duals.insert(k, np.array(dual))
        self.points.insert(k, point)
        self.vectors.insert(k, np.array(w))

    def pair(self, k: int = 0) -> Pair:
        """Two neighbours: the point at `k` and the one below it."""
        a, b = self.points[k : k + 2]
        inner = self.product(self.vectors[k], self.vectors[k + 1])
        dual_inner = self.product(self.duals[k], self.duals[k + 1]) if self.duals else inner
        if math.isinf(a.lam):
            return Pair(a, b, 0.0, b.lam * dual_inner, self.hinge_at_zero)
        return Pair(a, b, inner, a.lam * b.lam * dual_inner, self.hinge_at_zero)

    def mixture(self, lam: float, most: float) -> Mixture | None:
        """The best mixture of the two points around lambda, for gaps up to `most`; None without two."""
        for k, (above, below) in enumerate(pairwise(self.points)):
            if below.lam < lam < above.lam:
                pair = self.pair(k)
                share = pair.best(lam)[0]
                w = share[1] * self.vectors[k + 1]
                if math.isfinite(above.lam):  # not w = 0
                    w += share[0] * self.vectors[k]
                return Mixture(w, pair.hinge(share), most)
        return None

    def pop(self, cells: list[Cell]) -> None:
        """The first interval is certified by these cells."""
        self.cells += cells
        del self.points[0], self.vectors[0], self.duals[:1]

    # -- committed state ----------------------------------------------------------------------------------------------
    @property
    def specs(self) -> tuple[ArraySpec, ...]:
        """The arrays of `packed`."""
        return (*SPECS, DUALS) if self.duals else SPECS

    def packed(self) -> dict[str, np.ndarray]:
        """The arrays of `specs`."""
        arrays = {
            "path_points": np.array(self.points, dtype=float).reshape(-1, len(SolvedPoint._fields)),
            "path_vectors": np.array(self.vectors),
            "path_cells": flat_cells(self.cells),
        }
        if self.duals:
            arrays["path_duals"] = np.array(self.duals)
        return arrays

    @classmethod
    def restored(cls, hinge_at_zero: float, arrays: Mapping[str, np.ndarray]) -> Self:
        """The stack in its packed state; ValueError, naming the array, if one is not what `packed` gives."""
        count = len(check_array("path_points", arrays["path_points"], (None, len(SolvedPoint._fields)), float))
        check_array("path_vectors", arrays["path_vectors"], (max(count, 1), None), float, finite=True)
        check_array("path_cells", arrays["path_cells"], (None, CELL_COLUMNS), float)
        duals = arrays.get("path_duals", np.empty((0, 1)))
        if duals.size:
            check_array("path_duals", duals, arrays["path_vectors"].shape, float, finite=True)
        points = [SolvedPoint(*row) for row in arrays["path_points"].tolist()]
        return cls(hinge_at_zero, points, list(arrays["path_vectors"]), cells_of(arrays["path_cells"]), list(duals))
