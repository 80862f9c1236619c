"""`path.rule=anytime`: the eps that is certified at every lambda falls while the path is solved, and `path.eps` ends it.

**Certificate.** The whole axis is divided by the solved lambdas, w = 0 above the first. Between two neighbours the pair with
the best shares bounds the gap at each lambda (`stages.solver.path.cells`, two points); above, w = 0 has the gap ||psi~||^2 /
(2 lambda); below the last, its mean hinge R bounds all gaps (cell down to 0), or the regulariser no longer matters (as for
`two_sided`). The *certified eps* is the least for which all intervals divide into cells that meet it. It is known after
each solved lambda, begins at R_0 with w = 0 alone, and is that of a path as good as any other: stopping is always allowed.

**Order.** Levels fall by `RUNG`, path.eps among them: ..., 100 path.eps, 10 path.eps, path.eps. At each level the axis is
swept, down and up in turn, so that the dual point moves to a lambda nearby: the next lambda is the nearest one in the
sweep's direction at which the bound between two neighbours is worst and above the level, or a step below the last. It is
solved to the share kappa of the level. A worst lambda close to one that was solved for an earlier level becomes that one
again and replaces its point; a neighbour of an earlier level goes if the bound stays small without it. What earlier levels
cost is regained in part, because the labellings that they found are in the caches.

**Going on.** path.eps is where to stop, like a limit of time, and no part of a run's key: the same command with a smaller
one goes on from the committed state, which then lies at the beginning of the next lambda. With a tenth, a hundredth, ... of
it that is the computation of a run that was asked for the smaller eps at once, to the bit.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from gapwise.stages.problems.stored import check_array
from gapwise.stages.solver.objective import Certificate, Product, plain_product
from gapwise.stages.solver.options import PathOptions, Status, check
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
from gapwise.stages.solver.path.rule import Following, PathStart, Solved, Tolerance, closing, negligible, rounding_floor
from gapwise.stages.solver.path.rules.two_sided import FLOOR, LAST_HINGE, TwoSided, model_of

if TYPE_CHECKING:
    from gapwise.stages.parallel import Spread
    from gapwise.stages.problems.protocol import Problem
    from gapwise.stages.solver.packed import ArraySpec

RUNG = 10.0
"""Ratio of two levels. With sqrt(10), OCR-small to 0.01 took 1.4 times the passes with the default method, and the eps in
between fewer."""
GRID = 48
"""Number of steps in lambda by which the worst of an interval is searched."""
SLACK = 1.01
"""Cells with fixed shares are closed at this multiple of the worst bound found on the grid."""
STEP = 1.5
"""Length of the steps below the last lambda, where 1 is what would certify between two optima."""
NEAR = 0.2
"""Share of an interval (in log lambda) within which its worst lambda moves to an end that is to be solved again."""
WHOLE = Goal(1.0, False)
"""excess + 1 is then the bound itself."""


class Worst(NamedTuple):
    """The worst lambda of an interval, and the bound there."""

    lam: float
    bound: float


@dataclass
class Member:
    """A solved lambda that the certificate rests on; w = 0 is one."""

    point: Point
    w: np.ndarray
    """float64, (d,); psi~ for w = 0"""
    dual: np.ndarray
    """float64, (d,): w(alpha), the same array as `w` where that is it"""
    number: int
    """Breakpoints solved before it; -1 for w = 0."""
    below: tuple[Pair, Worst] | None = None
    """The interval down to the next member, once it was needed."""


@dataclass
class Anytime:
    """The members by falling lambda, w = 0 first; the sweep; what was certified after each solved lambda."""

    capabilities = Capabilities(kappa=0.85, between=True, two_points=True, takes_product=True, open_ended=True)
    SPECS = (
        ("path_points", ("point", "point_column"), "f8", "solved lambdas in use: fields of `cells.Point`"),
        ("path_vectors", ("point", "point_feature"), "f8", "w of these points; psi~ for the point w = 0"),
        ("path_numbers", ("point",), "i8", "breakpoints solved before each of these; -1 for w = 0"),
        ("path_certified", ("solved",), "f8", "eps certified at every lambda after each solved one"),
    )
    DUALS = ("path_duals", ("point", "point_feature"), "f8", "w(alpha) of these points; psi~ for the point w = 0")

    path: PathOptions
    zero: PathStart
    members: list[Member]
    certified: list[float] = field(default_factory=list)
    """After each solved lambda."""
    done: float = math.inf
    """The last level that was reached everywhere."""
    falling: bool = True
    """Whether the sweep goes down."""
    product: Product = plain_product
    """Of the problem's weights; `stages.solver.path.walk.in_metric_of` sets another."""

    # -- the rule -----------------------------------------------------------------------------------------------------
    @classmethod
    def check(cls, path: PathOptions) -> None:
        """Refuse a relative eps."""
        check("path.relative", path.relative, not path.relative, "path.rule=two_sided")

    @classmethod
    def lambdas(cls, path: PathOptions) -> tuple[float, ...]:
        """None are given."""
        return ()

    @classmethod
    def start(cls, problem: Problem, path: PathOptions, spread: Spread) -> PathStart:
        """The first lambda is an eighth of that above which w = 0 has a gap below R_0 / 2: path.eps must not matter."""
        from gapwise.stages.solver.path.start import start_below_zero

        return start_below_zero(problem, dataclasses.replace(path, eps=0.5, relative=True), spread)

    @classmethod
    def begin(cls, path: PathOptions, start: PathStart | None) -> Self:
        """The rule before any lambda is solved: w = 0 has the gap R_0 at most."""
        assert start is not None
        point = zero(start.hinge_at_zero, start.psi_norm2)
        return cls(path, start, [Member(point, start.psi, start.psi, -1)], done=max(start.hinge_at_zero, 0.0))

    def open_end(self) -> Self:
        """The path may end at any lambda."""
        return self

    @property
    def reached(self) -> float:
        """The eps that is certified at every lambda."""
        return self.certified[-1] if self.certified else self.zero.hinge_at_zero

    @property
    def ended(self) -> Status | None:
        """How the path ends if `path.eps` is reached; else None."""
        done = bool(self.certified) and self.reached <= self.path.eps
        return self.bottom(self.reached)[1] if done else None

    @property
    def level(self) -> float:
        """The bound that the present sweep is to reach: the largest path.eps RUNG^k below the last; a RUNG-th beyond."""
        eps, below = self.path.eps, self.done * (1.0 - 1e-9)
        if not eps < below:
            return self.done / RUNG
        while eps * RUNG < below:
            eps *= RUNG
        return eps

    def tolerance(self) -> Tolerance:
        """The share kappa of the level."""
        return Tolerance(self.path.kappa * self.level, False)

    def warm_start(self) -> str:
        """alpha stays."""
        return "keep_dual"

    def following(self, solved: Solved) -> Following:
        """The next lambda of the sweep; the end only where nothing more can be solved."""
        point = solved.point
        assert point is not None
        converged = solved.status is Status.CONVERGED
        if converged or not self.certified or point.gap < self.reached:
            self.add(solved, point)
        self.certified.append(self.certify())
        if not converged or self.zero.psi_norm2 == 0.0:  # a limit; or w = 0 is optimal everywhere
            return Following(math.nan, point.lam, solved.status)
        if solved.index + 1 >= self.path.max_breakpoints:
            return Following(math.nan, point.lam, Status.PASS_LIMIT)
        lam = self.following_lambda(point.lam)
        return Following(lam, point.lam) if lam else Following(math.nan, point.lam, Status.ROUNDING_LIMIT)

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
            high = min(pair.above.lam, self.top(0.25 * self.level)) if k == 0 else pair.above.lam
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
        eps = max(SLACK * max(*bounds, *(m.point.gap for m in self.members)), 1e-300)
        if not self.bottom(eps)[1]:
            last, low = self.members[-1].point, self.path.lambda_min
            ways = [last.hinge, 50.0 * last.lam * last.norm2]
            if low > 0.0:
                ways.append(0.5 * low * last.norm2 + last.hinge - last.ell + last.dual_norm2 / (2.0 * low))
            eps = min(SLACK * way for way in ways if SLACK * way > eps and self.bottom(SLACK * way)[1])
        while not self.cells(eps):
            eps *= SLACK
        return eps

    def cells(self, eps: float) -> list[Cell]:
        """Cells that certify eps on the whole axis, from the top down; [] if there is an interval that does not meet it."""
        goal, top = Goal(closing(eps), False), self.top(eps)
        found = [Cell(-1, top, math.inf, (1.0, 0.0), (1.0, 0.0), 0.0, 0.0)]
        for k in range(len(self.members) - 1):
            pair = self.interval(k)[0]
            low, high = pair.below.lam, min(pair.above.lam, top)
            if low >= high:
                found.append(Cell(k, low, low, (0.0, 1.0), (0.0, 1.0), pair.inner, pair.dual_inner))
                continue
            cells = pair.cells(goal, k, low, high)
            if not cells:
                return []
            found += cells
        cells, ended = self.bottom(eps)
        return found + cells if ended else []

    def bottom(self, eps: float) -> tuple[list[Cell], Status | None]:
        """The cells below the last lambda that certify eps, and how the axis ends there; ([], None) if it does not."""
        point, interval = self.members[-1].point, len(self.members) - 1
        goal, path = Goal(closing(eps), False), dataclasses.replace(self.path, eps=eps)
        if math.isinf(point.lam) or point.gap > goal.eps:
            return [], None
        if cells := cell_to_zero(point, goal, interval):
            return cells, Status.CONVERGED
        at = Certificate(point.lam, point.gap, point.hinge, point.ell, point.norm2, math.nan)
        if negligible(path, at, self.zero.hinge_at_zero, self.zero.psi_norm2):
            return cell_down_to(point, goal, interval, lowest(point, goal)), Status.LAMBDA_NEGLIGIBLE
        floor = self.floor_at(eps)
        ended = Status.CONVERGED if floor <= self.path.lambda_min else Status.ROUNDING_LIMIT
        cells = cell_down_to(point, goal, interval, min(floor, point.lam)) if floor > 0.0 else []
        return cells, ended if cells else None

    def floor_at(self, eps: float) -> float:
        """Where the axis ends if the certificates do not reach lambda = 0."""
        start = dataclasses.replace(self.zero, lam_top=self.top(eps))
        return max(self.path.lambda_min, rounding_floor(dataclasses.replace(self.path, eps=eps), start, FLOOR))

    # -- members ------------------------------------------------------------------------------------------------------
    def add(self, solved: Solved, point: Certificate) -> None:
        """Another solved lambda; it replaces the one that was solved there before, and neighbours that it makes needless."""
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
                self.drop_if_needless(j)

    def coarse(self, point: Point) -> bool:
        """Whether a point was solved for an earlier level."""
        return point.gap > self.path.kappa * self.level

    def drop_if_needless(self, j: int) -> None:
        """Drop member j if that leaves the bound around it as small, or below the level."""
        member, above = self.members[j], self.members[j - 1]
        before = max(self.interval(j - 1)[1].bound, self.interval(j)[1].bound, min(self.level, self.reached))
        kept = above.below
        del self.members[j]
        above.below = None
        if self.interval(j - 1)[1].bound > before:
            self.members.insert(j, member)
            above.below = kept

    # -- the sweep ----------------------------------------------------------------------------------------------------
    def following_lambda(self, here: float) -> float | None:
        """The nearest lambda that is wanted, in the direction of the sweep if there is one; None where no level is left."""
        while not (wanted := self.wanted()):
            self.done = self.level
            if self.floor_at(self.level) >= self.members[0 if len(self.members) == 1 else 1].point.lam:
                return None
        below, above = [lam for lam in wanted if lam <= here], [lam for lam in wanted if lam >= here]
        if not (below if self.falling else above):
            self.falling = not self.falling
        return max(below) if self.falling else min(above)

    def wanted(self) -> list[float]:
        """The worst lambda of each interval whose bound is above the level, and one below the last if that is."""
        found = []
        for k in range(len(self.members) - 1):
            pair, worst = self.interval(k)
            if worst.bound > closing(self.level) / SLACK:
                found.append(self.again(pair, worst.lam))
        return found if self.bottom(self.level)[1] else [*found, self.below_last()]

    def again(self, pair: Pair, lam: float) -> float:
        """`lam`, or the end of the interval that is close to it and was solved for an earlier level."""
        width = math.log(min(pair.above.lam, self.top(self.level)) / pair.below.lam)
        for end in (pair.above, pair.below):
            if math.isfinite(end.lam) and self.coarse(end) and abs(math.log(lam / end.lam)) <= NEAR * width:
                return end.lam
        return lam

    def below_last(self) -> float:
        """A step below the last lambda; or itself, if its R might be small enough once it is solved for this level."""
        point, level = self.members[-1].point, self.level
        if self.coarse(point) and (point.hinge - point.gap <= level or point.gap > level):
            return point.lam
        room = STEP**2 * (1.0 - self.path.kappa) * level / (point.lam * point.norm2)
        lam = point.lam * math.exp(-2.0 * math.acosh(1.0 + room))
        above = self.members[-2].point
        if math.isfinite(above.lam) and 0.0 < point.hinge < above.hinge:
            fall = math.log(above.hinge / point.hinge) / math.log(above.lam / point.lam)
            lam = max(lam, point.lam * min((LAST_HINGE * level / point.hinge) ** (1.0 / fall), 1.0))
        return max(lam, min(self.floor_at(level), point.lam))

    # -- committed state ----------------------------------------------------------------------------------------------
    @property
    def apart(self) -> bool:
        """Whether the w of a member is not that of its dual point."""
        return any(m.dual is not m.w for m in self.members)

    @property
    def specs(self) -> tuple[ArraySpec, ...]:
        """The arrays of `packed`."""
        return (*self.SPECS, self.DUALS) if self.apart else self.SPECS

    def packed(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Arrays of `specs`, and scalars."""
        arrays = {
            "path_points": np.array([m.point for m in self.members], dtype=float),
            "path_vectors": np.array([m.w for m in self.members]),
            "path_numbers": np.array([m.number for m in self.members], np.int64),
            "path_certified": np.array(self.certified, dtype=float),
        }
        if self.apart:
            arrays["path_duals"] = np.array([m.dual for m in self.members])
        return arrays, {"done": self.done, "falling": self.falling}

    @classmethod
    def restored(
        cls, path: PathOptions, start: PathStart | None, arrays: Mapping[str, np.ndarray], attrs: Mapping[str, Any]
    ) -> Self:
        """The rule in its packed state; ValueError, naming the array, if one is not what `packed` gives."""
        assert start is not None
        points = check_array("path_points", arrays["path_points"], (None, len(Point._fields)), float)
        vectors = check_array("path_vectors", arrays["path_vectors"], (max(len(points), 1), None), float, finite=True)
        numbers = check_array("path_numbers", arrays["path_numbers"], (len(vectors),), np.int64)
        certified = check_array("path_certified", arrays["path_certified"], (None,), float, finite=True)
        duals = vectors
        if "path_duals" in arrays:
            duals = check_array("path_duals", arrays["path_duals"], vectors.shape, float, finite=True)
        rows = zip(points.tolist(), vectors, duals, numbers.tolist(), strict=True)
        members = []
        for point, w, dual, number in rows:
            same = duals is vectors or number < 0
            members.append(Member(Point(*point), w, w if same else dual, number))
        return cls(path, start, members, certified.tolist(), **attrs)

    # -- results ------------------------------------------------------------------------------------------------------
    @property
    def kept(self) -> list[int]:
        """Numbers of the breakpoints that the certificate rests on."""
        return sorted(m.number for m in self.members if m.number >= 0)

    def attributes(self) -> dict[str, Any]:
        """What path.zarr says of the certificate: its eps, from where on w = 0 will do, how the axis ends below."""
        ended = self.bottom(self.reached)[1] or Status.CONVERGED
        return {"eps": self.reached, "lam_top": self.top(self.reached), "axis_end": ended.value}

    def model(self, solved: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The cells that certify `reached`."""
        return model_of(self.cells(self.reached))

    @classmethod
    def bound(cls, arrays: Mapping[str, np.ndarray], attrs: Mapping[str, Any], lam: np.ndarray) -> np.ndarray:
        """The certified bound on the gap at `lam`, nan where nothing is certified."""
        return TwoSided.bound(arrays, attrs, lam)


def worst_between(pair: Pair, low: float, high: float) -> Worst:
    """The worst lambda in [low, high], with the best shares at each; a bound of 0 if there is none."""
    if low >= high:
        return Worst(low, 0.0)
    lams = [high * (low / high) ** (k / GRID) for k in range(GRID)] + [low]
    return max((Worst(lam, pair.excess(lam, WHOLE) + 1.0) for lam in lams), key=lambda worst: worst.bound)


RULE = Anytime
