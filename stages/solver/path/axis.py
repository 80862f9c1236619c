"""The certificate of the whole axis of lambda from the solved lambdas: the least eps that holds everywhere, and its cells.

Between two neighbours the pair with the best shares bounds the gap (`stages.solver.path.cells`); above the first, w = 0 has
the gap ||psi~||^2 / (2 lambda); below the last, its mean hinge bounds all gaps, or the regulariser no longer matters.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass, field
from typing import NamedTuple

from gapwise.stages.solver.objective import Certificate, Product, plain_product
from gapwise.stages.solver.options import PathOptions, Status
from gapwise.stages.solver.path.cells import FLOOR, Cell, Goal, Pair, SolvedPoint
from gapwise.stages.solver.path.members import Member, cells_below, end_of, insert, pair_of
from gapwise.stages.solver.path.rule import PathStart, Solved, closing, rounding_floor

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


class Worst(NamedTuple):
    """The worst lambda of an interval, and the bound there."""

    lam: float
    bound: float


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
    worst: dict[int, tuple[Pair, Worst]] = field(default_factory=dict)
    """By the number of the member above: the intervals that were needed."""

    # -- what is certified --------------------------------------------------------------------------------------------
    def top(self, eps: float) -> float:
        """From here up w = 0 has at most the gap eps."""
        psi_norm2 = self.zero.psi_norm2
        return psi_norm2 / (2.0 * closing(eps)) if psi_norm2 > 0.0 else self.zero.lam_top

    def interval(self, k: int) -> tuple[Pair, Worst]:
        """Members k and k + 1, and the worst lambda between them."""
        a, b = self.members[k], self.members[k + 1]
        known = self.worst.get(a.number)
        pair = known[0] if known else pair_of(a, b, self.zero.hinge_at_zero, self.product)
        if k == 0 or known is None:
            high = min(pair.above.lam, self.top(0.25 * self.levels.present)) if k == 0 else pair.above.lam
            self.worst[a.number] = pair, worst_between(pair, pair.below.lam, high)
        return self.worst[a.number]

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
        goal = Goal(closing(eps), False)
        if math.isinf(point.lam) or not point.gap <= goal.eps:
            return [], None
        return cells_below(point, goal, interval, *self.at(eps))

    def at(self, eps: float) -> tuple[PathOptions, PathStart]:
        """The path and its start for another eps."""
        return dataclasses.replace(self.path, eps=eps), dataclasses.replace(self.zero, lam_top=self.top(eps))

    def floor_at(self, eps: float) -> float:
        """Where the axis ends if the certificates do not reach lambda = 0."""
        return end_of(*self.at(eps))

    def rounding_at(self, eps: float) -> float:
        """The least lambda that rounding leaves meaningful to eps."""
        return rounding_floor(*self.at(eps), FLOOR)

    # -- members ------------------------------------------------------------------------------------------------------
    def add(self, solved: Solved, point: Certificate, reached: float) -> None:
        """Add a solved lambda, which replaces an earlier solve of the same lambda and the neighbours that it makes needless.

        `reached` is the eps that was certified at every lambda before it.
        """
        for k, m in enumerate(self.members):
            if m.point.lam == point.lam:
                if m.point.gap <= point.gap:
                    return
                self.drop(k)
                break
        k = insert(self.members, solved, self.product)
        self.worst.pop(self.members[k - 1].number, None)
        for j in (k + 1, k - 1):
            if 0 < j < len(self.members) - 1 and self.coarse(self.members[j].point):
                self.drop_if_needless(j, reached)

    def coarse(self, point: SolvedPoint) -> bool:
        """Whether a point was solved for an earlier level."""
        return point.gap > self.path.kappa * self.levels.present

    def drop_if_needless(self, j: int, reached: float) -> None:
        """Drop member j if that leaves the bound around it as small, or below the level."""
        member, above = self.members[j], self.members[j - 1].number
        before = max(self.interval(j - 1)[1].bound, self.interval(j)[1].bound, min(self.levels.present, reached))
        known = self.worst[above], self.worst[member.number]
        self.drop(j)
        if self.interval(j - 1)[1].bound > before:
            self.members.insert(j, member)
            self.worst[above], self.worst[member.number] = known

    def drop(self, j: int) -> None:
        """Drop member j, and what is known of the intervals that it ends."""
        for member in (self.members[j - 1], self.members.pop(j)):
            self.worst.pop(member.number, None)


def worst_between(pair: Pair, low: float, high: float) -> Worst:
    """The worst lambda in [low, high], with the best shares at each; a bound of 0 if there is none."""
    if low >= high:
        return Worst(low, 0.0)
    lams = [high * (low / high) ** (k / GRID) for k in range(GRID)] + [low]
    return max((Worst(lam, pair.excess(lam, WHOLE) + 1.0) for lam in lams), key=lambda worst: worst.bound)
