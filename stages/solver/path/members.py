"""The solved lambdas on which certificates of other lambdas rest, by falling lambda; w = 0 is before the first of them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gapwise.stages.problems.stored import check_array
from gapwise.stages.solver.objective import Certificate, Product
from gapwise.stages.solver.options import PathOptions, Status
from gapwise.stages.solver.path.cells import (
    FLOOR,
    Cell,
    Goal,
    Pair,
    SolvedPoint,
    cell_down_to,
    cell_to_zero,
    lowest,
    solved_point,
    zero,
)
from gapwise.stages.solver.path.rule import PathStart, Solved, negligible, rounding_floor

if TYPE_CHECKING:
    from gapwise.stages.solver.packed import ArraySpec

SPECS: tuple[ArraySpec, ...] = (
    ("path_points", ("point", "point_column"), "f8", "solved lambdas in use: fields of `cells.SolvedPoint`"),
    ("path_vectors", ("point", "point_feature"), "f8", "w of these points; psi~ for the point w = 0"),
    ("path_numbers", ("point",), "i8", "breakpoints solved before each of these; -1 for w = 0"),
)
DUALS: ArraySpec = (
    "path_duals",
    ("point", "point_feature"),
    "f8",
    "w(alpha) of these points; psi~ for the point w = 0",
)


@dataclass
class Member:
    """A solved lambda that the certificate rests on; w = 0 is one."""

    point: SolvedPoint
    w: np.ndarray
    """float64, (d,); psi~ for w = 0"""
    dual: np.ndarray
    """float64, (d,): w(alpha), the same array as `w` where that is it"""
    number: int
    """Breakpoints solved before it; -1 for w = 0."""


def zero_member(start: PathStart) -> Member:
    """w = 0."""
    return Member(zero(start.hinge_at_zero, start.psi_norm2), start.psi, start.psi, -1)


def insert(members: list[Member], solved: Solved, product: Product, worst_hinge: float = math.inf) -> int:
    """Put a solved lambda where it belongs: its numbers, its w, and its w(alpha) if that is another; returns its place."""
    point, w, dual = solved.point, np.array(solved.weights), solved.dual_weights
    assert point is not None
    own = None if dual is None else point.lam**2 * product(dual, dual)
    new = Member(solved_point(point, worst_hinge, own), w, w if dual is None else np.array(dual), solved.index)
    k = sum(m.point.lam > point.lam for m in members)
    members.insert(k, new)
    return k


def pair_of(a: Member, b: Member, hinge_at_zero: float, product: Product) -> Pair:
    """Two neighbours, a above b."""
    dual_inner = product(a.dual, b.dual)
    if math.isinf(a.point.lam):
        return Pair(a.point, b.point, 0.0, b.point.lam * dual_inner, hinge_at_zero)
    inner = dual_inner if a.w is a.dual and b.w is b.dual else product(a.w, b.w)
    return Pair(a.point, b.point, inner, a.point.lam * b.point.lam * dual_inner, hinge_at_zero)


def apart(members: list[Member]) -> bool:
    """Whether the w of a member is not that of its dual point."""
    return any(m.dual is not m.w for m in members)


def cells_below(
    point: SolvedPoint, goal: Goal, interval: int, path: PathOptions, start: PathStart
) -> tuple[list[Cell], Status | None]:
    """The cell below the last lambda, which meets the goal itself, and how the path ends there; ([], None) if it goes on."""
    cells, ended = cell_to_zero(point, goal, interval), Status.CONVERGED
    if not cells:
        certificate = Certificate(point.lam, point.gap, point.hinge, point.ell, point.norm2, math.nan)
        if negligible(path, certificate, start.hinge_at_zero, start.psi_norm2):
            cells, ended = cell_down_to(point, goal, interval, lowest(point, goal)), Status.LAMBDA_NEGLIGIBLE
        else:
            low = end_of(path, start)
            ended = Status.CONVERGED if low <= path.lambda_min else Status.ROUNDING_LIMIT
            cells = cell_down_to(point, goal, interval, min(low, point.lam)) if low > 0.0 else []
    return cells, ended if cells else None


def end_of(path: PathOptions, start: PathStart) -> float:
    """Where the path ends if its certificates do not reach lambda = 0."""
    return max(path.lambda_min, rounding_floor(path, start, FLOOR))


# -- committed state --------------------------------------------------------------------------------------------------
def specs_of(members: list[Member]) -> tuple[ArraySpec, ...]:
    """The arrays of `packed_members`."""
    return (*SPECS, DUALS) if apart(members) else SPECS


def packed_members(members: list[Member]) -> dict[str, np.ndarray]:
    """The arrays of `SPECS`, and of `DUALS` if the w of a member is not that of its dual point."""
    arrays = {
        "path_points": np.array([m.point for m in members], dtype=float),
        "path_vectors": np.array([m.w for m in members]),
        "path_numbers": np.array([m.number for m in members], np.int64),
    }
    return {**arrays, "path_duals": np.array([m.dual for m in members])} if apart(members) else arrays


def restored_members(arrays: Mapping[str, np.ndarray]) -> list[Member]:
    """The members of `packed_members`; ValueError, naming the array, if one is not what that gives."""
    points = check_array("path_points", arrays["path_points"], (None, len(SolvedPoint._fields)), float)
    vectors = check_array("path_vectors", arrays["path_vectors"], (max(len(points), 1), None), float, finite=True)
    numbers = check_array("path_numbers", arrays["path_numbers"], (len(vectors),), np.int64)
    duals = vectors
    if "path_duals" in arrays:
        duals = check_array("path_duals", arrays["path_duals"], vectors.shape, float, finite=True)
    members = []
    for point, w, dual, number in zip(points.tolist(), vectors, duals, numbers.tolist(), strict=True):
        same = duals is vectors or number < 0
        members.append(Member(SolvedPoint(*point), w, w if same else dual, number))
    return members
