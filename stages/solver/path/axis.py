"""Solved points on both sides of each lambda: what the rules `two_sided` and `anytime` rest their certificates on.

Points are in order of falling lambda, with w = 0 before the first. Two neighbours make a pair, whose best shares bound the
gap at each lambda between them; below the last point its mean hinge bounds all gaps, or the regulariser no longer matters
(proof: `stages.solver.path.cells`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gapwise.stages.problems.stored import check_array
from gapwise.stages.solver.options import Status
from gapwise.stages.solver.path.cells import (
    FLOOR,
    Cell,
    GapBound,
    Pair,
    SolvedPoint,
    cell_down_to,
    cell_to_zero,
    lowest,
    ratio,
    solved_point,
    zero,
)
from gapwise.stages.solver.path.rule import PathRule, PathStart, Solved, closing, negligible, rounding_floor

if TYPE_CHECKING:
    from gapwise.stages.solver.counts import ArraySpec

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

LAST_HINGE = 0.85
"""The last lambda is chosen so that R is about this share of eps; a smaller share would cost extra breakpoints."""


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


@dataclass
class Axis(PathRule):
    """A rule over solved points; which of them it keeps, and which lambda comes next, is for its subclasses."""

    between = two_points = switches = True

    members: list[Member]
    """By falling lambda."""

    # -- solved points ------------------------------------------------------------------------------------------------
    def insert(self, solved: Solved, worst_hinge: float = math.inf) -> int:
        """Put a solved lambda where it belongs, with its w, and its w(alpha) if that is another; returns its place."""
        point, w, own = solved.point, np.array(solved.weights), None
        assert point is not None
        dual = w
        if solved.dual_weights is not None and solved.dual_weights is not solved.weights:
            dual = np.array(solved.dual_weights)
            own = point.lam**2 * self.product(dual, dual)
        new = Member(solved_point(point, worst_hinge, own), w, dual, solved.index)
        k = sum(m.point.lam > point.lam for m in self.members)
        self.members.insert(k, new)
        return k

    def pair(self, k: int) -> Pair:
        """Members k and k + 1."""
        (a, b), top = self.members[k : k + 2], self.zero.hinge_at_zero
        dual_inner = self.product(a.dual, b.dual)
        if math.isinf(a.point.lam):
            return Pair(a.point, b.point, 0.0, b.point.lam * dual_inner, top)
        inner = dual_inner if a.w is a.dual and b.w is b.dual else self.product(a.w, b.w)
        return Pair(a.point, b.point, inner, a.point.lam * b.point.lam * dual_inner, top)

    @property
    def apart(self) -> bool:
        """Whether the w of a member is not that of its dual point."""
        return any(m.dual is not m.w for m in self.members)

    def step(self, last: SolvedPoint, theta: float, eps: float, fall: float) -> float:
        """The lambda below `last`: theta times the step that would certify between two optima.

        No lower than where R, if it falls with lambda^`fall` (nan: not known), is about `LAST_HINGE` eps.
        """
        room = ratio(theta**2 * (1.0 - self.path.kappa) * eps, last.lam * last.norm2)
        lam = last.lam * math.exp(-2.0 * math.acosh(1.0 + room))
        if fall > 0.0:
            lam = max(lam, last.lam * min(ratio(LAST_HINGE * eps, last.hinge), 1.0) ** (1.0 / fall))
        return lam

    # -- the ends of the axis -----------------------------------------------------------------------------------------
    def gap_bound(self, eps: float) -> GapBound:
        """The bound to which cells are closed for eps."""
        return GapBound(closing(eps), self.path.relative)

    def unit(self, eps: float) -> float:
        """The gap that eps allows at w = 0."""
        return eps * (self.zero.hinge_at_zero if self.path.relative else 1.0)

    def top(self, eps: float) -> float:
        """From here up w = 0 has at most the gap eps."""
        psi_norm2 = self.zero.psi_norm2
        return psi_norm2 / (2.0 * closing(self.unit(eps))) if psi_norm2 > 0.0 else self.zero.lam_top

    def rounding_at(self, eps: float) -> float:
        """The least lambda that rounding leaves meaningful to eps."""
        return rounding_floor(self.zero, self.unit(eps), FLOOR * self.top(eps))

    def floor_at(self, eps: float) -> float:
        """Where the axis ends if its certificates do not reach lambda = 0."""
        return max(self.path.lambda_min, self.rounding_at(eps))

    def below(self, eps: float, interval: int) -> tuple[list[Cell], Status | None]:
        """The cells below the last member, which meets eps itself, and how the axis ends there; ([], None) if it goes on."""
        point, bound = self.members[-1].point, self.gap_bound(eps)
        cells, ended = cell_to_zero(point, bound, interval), Status.CONVERGED
        if not cells:
            if negligible(self.path, eps, point, self.zero):
                cells, ended = cell_down_to(point, bound, interval, lowest(point, bound)), Status.LAMBDA_NEGLIGIBLE
            else:
                low = self.floor_at(eps)
                ended = Status.CONVERGED if low <= self.path.lambda_min else Status.ROUNDING_LIMIT
                cells = cell_down_to(point, bound, interval, min(low, point.lam)) if low > 0.0 else []
        return cells, ended if cells else None

    # -- committed state ----------------------------------------------------------------------------------------------
    @property
    def member_specs(self) -> tuple[ArraySpec, ...]:
        """The arrays of `packed_members`."""
        return (*SPECS, DUALS) if self.apart else SPECS

    def packed_members(self) -> dict[str, np.ndarray]:
        """The arrays of `SPECS`, and of `DUALS` if the w of a member is not that of its dual point."""
        arrays = {
            "path_points": np.array([m.point for m in self.members], dtype=float),
            "path_vectors": np.array([m.w for m in self.members]),
            "path_numbers": np.array([m.number for m in self.members], np.int64),
        }
        return {**arrays, "path_duals": np.array([m.dual for m in self.members])} if self.apart else arrays


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


def fall_of(above: SolvedPoint, below: SolvedPoint) -> float:
    """d log R / d log lambda between two solved lambdas; nan where R does not fall."""
    if not (math.isfinite(above.lam) and 0.0 < below.hinge < above.hinge):
        return math.nan
    return math.log(above.hinge / below.hinge) / math.log(above.lam / below.lam)
