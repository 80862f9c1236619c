"""The certificate of the whole axis of lambda from the solved lambdas: the least eps that holds everywhere, and its cells.

Between two neighbours the pair with the best shares bounds the gap (`stages.solver.path.cells`); above the first, w = 0 has
the gap ||psi~||^2 / (2 lambda); below the last, its mean hinge bounds all gaps, or the regulariser no longer matters.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from gapwise.stages.problems.stored import check_array
from gapwise.stages.solver.objective import Certificate, Product, plain_product
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
)
from gapwise.stages.solver.path.rule import PathStart, Solved, closing, negligible, rounding_floor

if TYPE_CHECKING:
    from gapwise.stages.solver.packed import ArraySpec

RUNG = 10.0
"""Ratio of two levels. With sqrt(10), OCR-small to 0.01 took 1.4 times the passes with the default method, and the eps in
between fewer."""
GRID = 48
"""Number of steps in lambda by which the worst of an interval is searched."""
SLACK = 1.01
"""Cells with fixed shares are closed at this multiple of the worst bound found on the grid."""
LEAST = 1e-8
"""No eps below this share of R_0 is certified: it takes too many cells, and rounding shows."""
MOST_SLACK = 1e3
"""No bound further above the worst one on the grid is tried."""
WHOLE = Goal(1.0, False)
"""excess + 1 is then the bound itself."""

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


class Worst(NamedTuple):
    """The worst lambda of an interval, and the bound there."""

    lam: float
    bound: float


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
    below: tuple[Pair, Worst] | None = None
    """The interval down to the next member, once it was needed."""


@dataclass
class Levels:
    """The bounds that are to hold everywhere, one after another: they fall by `RUNG`, `path.eps` among them."""

    path: PathOptions
    done: float = math.inf
    """The last level that was reached everywhere."""

    @property
    def present(self) -> float:
        """The bound that the present sweep is to reach: the largest path.eps RUNG^k below the last; a RUNG-th beyond."""
        eps, below = self.path.eps, self.done * (1.0 - 1e-9)
        if not eps < below:
            return self.done / RUNG
        while eps * RUNG < below:
            eps *= RUNG
        return eps


@dataclass
class Axis:
    """The members by falling lambda, w = 0 first, and what they certify."""

    path: PathOptions
    zero: PathStart
    levels: Levels
    members: list[Member]
    product: Product = plain_product
    """Of the problem's weights."""

    # -- what is certified --------------------------------------------------------------------------------------------
    def top(self, eps: float) -> float:
        """From here up w = 0 has at most the gap eps."""
        psi_norm2 = self.zero.psi_norm2
        return psi_norm2 / (2.0 * closing(eps)) if psi_norm2 > 0.0 else self.zero.lam_top

    def interval(self, k: int) -> tuple[Pair, Worst]:
        """Members k and k + 1, and the worst lambda between them."""
        a, b = self.members[k], self.members[k + 1]
        if a.below is None:
            a.below = self.pair(a, b), Worst(b.point.lam, math.inf)
        pair = a.below[0]
        if k == 0 or math.isinf(a.below[1].bound):
            high = min(pair.above.lam, self.top(0.25 * self.levels.present)) if k == 0 else pair.above.lam
            a.below = pair, worst_between(pair, pair.below.lam, high)
        return a.below

    def pair(self, a: Member, b: Member) -> Pair:
        """Two neighbours."""
        dual_inner = self.product(a.dual, b.dual)
        if math.isinf(a.point.lam):
            return Pair(a.point, b.point, 0.0, b.point.lam * dual_inner, self.zero.hinge_at_zero)
        inner = dual_inner if a.w is a.dual and b.w is b.dual else self.product(a.w, b.w)
        return Pair(a.point, b.point, inner, a.point.lam * b.point.lam * dual_inner, self.zero.hinge_at_zero)

    def certify(self) -> float:
        """The least eps, to one part in a hundred, for which the whole axis divides into cells."""
        bounds = [self.interval(k)[1].bound for k in range(len(self.members) - 1)]
        eps = max(SLACK * max(*bounds, *(m.point.gap for m in self.members)), LEAST * self.zero.hinge_at_zero, 1e-300)
        if not self.bottom(eps)[1]:
            last, low = self.members[-1].point, self.path.lambda_min
            ways = [last.hinge, 50.0 * last.lam * last.norm2]
            if low > 0.0:
                ways.append(0.5 * low * last.norm2 + last.hinge - last.ell + last.dual_norm2 / (2.0 * low))
            eps = min(
                (SLACK * way for way in ways if SLACK * way > eps and self.bottom(SLACK * way)[1]), default=math.inf
            )
        most = MOST_SLACK * eps
        while not (eps < math.inf and self.cells(eps)):
            eps *= SLACK
            if not eps < most:
                raise ArithmeticError(
                    "path.rule=anytime: no bound holds at all lambdas, as a solved one has numbers that are too large or no "
                    "numbers. Scale the features, or use path.rule=two_sided, which names the lambda."
                )
        return eps

    def cells(self, eps: float) -> list[Cell]:
        """Cells that certify eps on the whole axis, from the top down; [] if there is an interval that does not meet it."""
        goal, top = Goal(closing(eps), False), self.top(eps)
        whole = [Cell(-1, top, math.inf, (1.0, 0.0), (1.0, 0.0), 0.0, 0.0)]
        for k in range(len(self.members) - 1):
            pair = self.interval(k)[0]
            low, high = pair.below.lam, min(pair.above.lam, top)
            if low >= high:
                whole.append(Cell(k, low, low, (0.0, 1.0), (0.0, 1.0), pair.inner, pair.dual_inner))
                continue
            cells = pair.cells(goal, k, low, high)
            if not cells:
                return []
            whole += cells
        cells, ended = self.bottom(eps)
        return whole + cells if ended else []

    def bottom(self, eps: float) -> tuple[list[Cell], Status | None]:
        """The cells below the last lambda that certify eps, and how the axis ends there; ([], None) if it does not."""
        point, interval = self.members[-1].point, len(self.members) - 1
        goal, path = Goal(closing(eps), False), dataclasses.replace(self.path, eps=eps)
        if math.isinf(point.lam) or not point.gap <= goal.eps:
            return [], None
        if cells := cell_to_zero(point, goal, interval):
            return cells, Status.CONVERGED
        certificate = Certificate(point.lam, point.gap, point.hinge, point.ell, point.norm2, math.nan)
        if negligible(path, certificate, self.zero.hinge_at_zero, self.zero.psi_norm2):
            return cell_down_to(point, goal, interval, lowest(point, goal)), Status.LAMBDA_NEGLIGIBLE
        floor = self.floor_at(eps)
        ended = Status.CONVERGED if floor <= self.path.lambda_min else Status.ROUNDING_LIMIT
        cells = cell_down_to(point, goal, interval, min(floor, point.lam)) if floor > 0.0 else []
        return cells, ended if cells else None

    def floor_at(self, eps: float) -> float:
        """Where the axis ends if the certificates do not reach lambda = 0."""
        return max(self.path.lambda_min, self.rounding_at(eps))

    def rounding_at(self, eps: float) -> float:
        """The least lambda that rounding leaves meaningful to eps."""
        start = dataclasses.replace(self.zero, lam_top=self.top(eps))
        return rounding_floor(dataclasses.replace(self.path, eps=eps), start, FLOOR)

    # -- members ------------------------------------------------------------------------------------------------------
    def add(self, solved: Solved, point: Certificate, reached: float) -> None:
        """Add a solved lambda, which replaces an earlier solve of the same lambda and the neighbours that it makes needless.

        `reached` is the eps that was certified at every lambda before it.
        """
        dual = solved.dual_weights
        w = np.array(solved.weights)
        own = None if dual is None else point.lam**2 * self.product(dual, dual)
        new = Member(solved_point(point, math.inf, own), w, w if dual is None else np.array(dual), solved.index)
        k = sum(m.point.lam > point.lam for m in self.members)
        if k < len(self.members) and self.members[k].point.lam == point.lam:
            if self.members[k].point.gap <= point.gap:
                return
            del self.members[k]
        self.members.insert(k, new)
        self.members[k - 1].below = None
        for j in (k + 1, k - 1):
            if 0 < j < len(self.members) - 1 and self.coarse(self.members[j].point):
                self.drop_if_needless(j, reached)

    def coarse(self, point: SolvedPoint) -> bool:
        """Whether a point was solved for an earlier level."""
        return point.gap > self.path.kappa * self.levels.present

    def drop_if_needless(self, j: int, reached: float) -> None:
        """Drop member j if that leaves the bound around it as small, or below the level."""
        member, above = self.members[j], self.members[j - 1]
        before = max(self.interval(j - 1)[1].bound, self.interval(j)[1].bound, min(self.levels.present, reached))
        interval = above.below
        del self.members[j]
        above.below = None
        if self.interval(j - 1)[1].bound > before:
            self.members.insert(j, member)
            above.below = interval

    @property
    def apart(self) -> bool:
        """Whether the w of a member is not that of its dual point."""
        return any(m.dual is not m.w for m in self.members)


def worst_between(pair: Pair, low: float, high: float) -> Worst:
    """The worst lambda in [low, high], with the best shares at each; a bound of 0 if there is none."""
    if low >= high:
        return Worst(low, 0.0)
    lams = [high * (low / high) ** (k / GRID) for k in range(GRID)] + [low]
    return max((Worst(lam, pair.excess(lam, WHOLE) + 1.0) for lam in lams), key=lambda worst: worst.bound)


def packed_members(axis: Axis) -> dict[str, np.ndarray]:
    """The arrays of `SPECS`, and of `DUALS` if the w of a member is not that of its dual point."""
    members = axis.members
    arrays = {
        "path_points": np.array([m.point for m in members], dtype=float),
        "path_vectors": np.array([m.w for m in members]),
        "path_numbers": np.array([m.number for m in members], np.int64),
    }
    return {**arrays, "path_duals": np.array([m.dual for m in members])} if axis.apart else arrays


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
