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
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np

from gapwise.stages.problems.stored import check_array
from gapwise.stages.solver.counts import number
from gapwise.stages.solver.objective import Certificate, Goal
from gapwise.stages.solver.options import PathOptions, Status, check
from gapwise.stages.solver.path.axis import Axis, fall_of, restored_members, zero_member
from gapwise.stages.solver.path.cells import Cell, GapBound, Pair, SolvedPoint, model_of
from gapwise.stages.solver.path.rule import Following, PathStart, Solved, closing

if TYPE_CHECKING:
    from gapwise.records import Json
    from gapwise.stages.problems.parallel import Spread
    from gapwise.stages.problems.protocol import Problem
    from gapwise.stages.solver.counts import ArraySpec

CERTIFIED: ArraySpec = ("path_certified", ("solved",), "f8", "eps certified at every lambda after each solved one")

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
WHOLE = GapBound(1.0, False)
"""excess + 1 is then the bound itself."""

STEP = 1.5
"""Length of the steps below the last lambda, where 1 is what would certify between two optima."""
NEAR = 0.2
"""Share of an interval (in log lambda) within which its worst lambda moves to an end that is to be solved again."""


class Worst(NamedTuple):
    """The worst lambda of an interval, and the bound there."""

    lam: float
    bound: float


@dataclass
class Anytime(Axis):
    """The solved points, the eps that they certify, the level that is to be reached, the direction of the sweep."""

    kappa = 0.85
    open_ended = True

    certified: list[float] = field(default_factory=list)
    """The eps that is certified at every lambda, after each solved one."""
    done: float = math.inf
    """The last level that was reached everywhere."""
    falling: bool = True
    """Whether the sweep goes down."""
    known: dict[int, tuple[Pair, Worst]] = field(default_factory=dict)
    """By the number of the member above: the intervals that were needed."""

    # -- the rule -----------------------------------------------------------------------------------------------------
    @classmethod
    def check(cls, path: PathOptions) -> None:
        """Refuse a relative eps."""
        check("path.relative", path.relative, not path.relative, "path.rule=two_sided")

    @classmethod
    def start(cls, problem: Problem, path: PathOptions, spread: Spread) -> PathStart:
        """The first lambda is an eighth of that above which w = 0 has a gap below R_0 / 2: path.eps must not matter."""
        from gapwise.stages.solver.path.start import start_below_zero

        return start_below_zero(problem, dataclasses.replace(path, eps=0.5, relative=True), spread)

    @classmethod
    def begin(cls, path: PathOptions, start: PathStart | None) -> Self:
        """The rule before any lambda is solved: w = 0 has the gap R_0 at most."""
        assert start is not None
        return cls(path, start, [zero_member(start)], done=max(start.hinge_at_zero, 0.0))

    def open_end(self) -> Self:
        """The path may end at any lambda."""
        return self

    @property
    def level(self) -> float:
        """The bound that the present sweep is to reach: the largest path.eps RUNG^k below the last; a RUNG-th beyond."""
        eps, below = self.path.eps, self.done * (1.0 - 1e-9)
        if not eps < below:
            return self.done / RUNG
        while eps * RUNG < below:
            eps *= RUNG
        return eps

    @property
    def reached(self) -> float:
        """The eps that is certified at every lambda."""
        return self.certified[-1] if self.certified else self.zero.hinge_at_zero

    @property
    def ended(self) -> Status | None:
        """How the path ends if `path.eps` is reached; else None."""
        done = bool(self.certified) and self.reached <= self.path.eps
        return self.bottom(self.reached)[1] if done else None

    def goal(self) -> Goal:
        """The share kappa of the level."""
        return Goal(self.path.kappa * self.level)

    def following(self, solved: Solved) -> Following:
        """The next lambda of the sweep; the end only where nothing more can be solved."""
        point = solved.point
        assert point is not None
        if ended := self.take(solved, point):
            return Following(math.nan, point.lam, ended)
        lam = self.following_lambda(point.lam)
        return Following(lam, point.lam) if lam else Following(math.nan, point.lam, Status.ROUNDING_LIMIT)

    def take(self, solved: Solved, point: Certificate) -> Status | None:
        """Certify with another solved lambda; returns how the path ends, None if it goes on."""
        converged = solved.status is Status.CONVERGED
        if converged or not self.certified or point.gap < self.reached:
            self.add(solved, point)
        self.certified.append(self.certify())
        if not converged or self.zero.psi_norm2 == 0.0:  # a limit; or w = 0 is optimal everywhere
            return solved.status
        return Status.PASS_LIMIT if solved.index + 1 >= self.path.max_breakpoints else None

    # -- what is certified --------------------------------------------------------------------------------------------
    def interval(self, k: int) -> tuple[Pair, Worst]:
        """Members k and k + 1, and the worst lambda between them."""
        number = self.members[k].number
        known = self.known.get(number)
        pair = known[0] if known else self.pair(k)
        if k == 0 or known is None:
            high = min(pair.above.lam, self.top(0.25 * self.level)) if k == 0 else pair.above.lam
            self.known[number] = pair, worst_between(pair, pair.below.lam, high)
        return self.known[number]

    def intervals(self) -> Iterator[tuple[Pair, Worst]]:
        """`interval` of all neighbours, from the top down."""
        return (self.interval(k) for k in range(len(self.members) - 1))

    def certify(self) -> float:
        """The least eps, to one part in a hundred, for which the whole axis divides into cells."""
        bounds = [worst.bound for _, worst in self.intervals()]
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
        bound, top = self.gap_bound(eps), self.top(eps)
        whole = [Cell(-1, top, math.inf, (1.0, 0.0), (1.0, 0.0), 0.0, 0.0)]
        for k, (pair, _) in enumerate(self.intervals()):
            low, high = pair.below.lam, min(pair.above.lam, top)
            if low >= high:
                whole.append(Cell(k, low, low, (0.0, 1.0), (0.0, 1.0), pair.inner, pair.dual_inner))
                continue
            cells = pair.cells(bound, k, low, high)
            if not cells:
                return []
            whole += cells
        cells, ended = self.bottom(eps)
        return whole + cells if ended else []

    def bottom(self, eps: float) -> tuple[list[Cell], Status | None]:
        """The cells below the last lambda that certify eps, and how the axis ends there; ([], None) if it does not."""
        point = self.members[-1].point
        if math.isinf(point.lam) or not point.gap <= closing(eps):
            return [], None
        return self.below(eps, len(self.members) - 1)

    # -- which points to keep -----------------------------------------------------------------------------------------
    def add(self, solved: Solved, point: Certificate) -> None:
        """Add a solved lambda; it replaces an earlier solve of the same one, and neighbours that it makes needless go."""
        for k, m in enumerate(self.members):
            if m.point.lam == point.lam:
                if m.point.gap <= point.gap:
                    return
                self.drop(k)
                break
        k = self.insert(solved)
        self.known.pop(self.members[k - 1].number, None)
        for j in (k + 1, k - 1):
            if 0 < j < len(self.members) - 1 and self.coarse(self.members[j].point):
                self.drop_if_needless(j)

    def coarse(self, point: SolvedPoint) -> bool:
        """Whether a point was solved for an earlier level."""
        return point.gap > self.path.kappa * self.level

    def drop_if_needless(self, j: int) -> None:
        """Drop member j if that leaves the bound around it as small, or below the level."""
        member, above = self.members[j], self.members[j - 1].number
        before = max(self.interval(j - 1)[1].bound, self.interval(j)[1].bound, min(self.level, self.reached))
        known = self.known[above], self.known[member.number]
        self.drop(j)
        if self.interval(j - 1)[1].bound > before:
            self.members.insert(j, member)
            self.known[above], self.known[member.number] = known

    def drop(self, j: int) -> None:
        """Drop member j, and what is known of the intervals that it ends."""
        for member in (self.members[j - 1], self.members.pop(j)):
            self.known.pop(member.number, None)

    # -- the order: sweeps, down and up in turn, level by level -------------------------------------------------------
    def following_lambda(self, here: float) -> float | None:
        """The nearest lambda that is wanted, in the direction of the sweep if there is one.

        None where no level is left: rounding shows to the next one even at the largest solved lambda.
        """
        wanted = self.wanted_at_level()
        if not wanted:
            return None
        lams = [worst.lam for worst in wanted]
        below, above = [lam for lam in lams if lam <= here], [lam for lam in lams if lam >= here]
        if not (below if self.falling else above):
            self.falling = not self.falling
        return max(below) if self.falling else min(above)

    def wanted_at_level(self) -> list[Worst]:
        """What is wanted, at the next level if everything reaches this one; [] where no level is left."""
        while not (wanted := self.wanted()):
            self.done = self.level
            if self.rounding_at(self.level) >= self.members[0 if len(self.members) == 1 else 1].point.lam:
                return []
        return wanted

    def wanted(self) -> list[Worst]:
        """The worst lambda of each interval whose bound is above the level, and one below the last if that is."""
        open_intervals = []
        for pair, worst in self.intervals():
            if worst.bound > closing(self.level) / SLACK:
                open_intervals.append(Worst(self.again(pair, worst.lam), worst.bound))
        if not self.bottom(self.level)[1]:
            open_intervals.append(Worst(self.below_last(), math.inf))
        return open_intervals

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
        lam = self.step(point, STEP, level, fall_of(self.members[-2].point, point))
        return max(lam, min(self.floor_at(level), point.lam))

    # -- committed state ----------------------------------------------------------------------------------------------
    @property
    def specs(self) -> tuple[ArraySpec, ...]:
        """The arrays of `packed`."""
        return (*self.member_specs, CERTIFIED)

    def packed(self) -> tuple[dict[str, np.ndarray], dict[str, Json]]:
        """Arrays of `specs`, and scalars."""
        arrays = {**self.packed_members(), "path_certified": np.array(self.certified, dtype=float)}
        return arrays, {"done": self.done, "falling": self.falling}

    @classmethod
    def restored(
        cls, path: PathOptions, start: PathStart | None, arrays: Mapping[str, np.ndarray], attrs: Mapping[str, object]
    ) -> Self:
        """The rule in its packed state; ValueError, naming the array, if one is not what `packed` gives."""
        assert start is not None
        certified = check_array("path_certified", arrays["path_certified"], (None,), float, finite=True).tolist()
        done, falling = number(attrs, "done"), bool(attrs["falling"])
        return cls(path, start, restored_members(arrays), certified=certified, done=done, falling=falling)

    # -- results ------------------------------------------------------------------------------------------------------
    @property
    def supporting(self) -> list[int]:
        """Numbers of the breakpoints that the certificate rests on."""
        return sorted(m.number for m in self.members if m.number >= 0)

    def attributes(self) -> dict[str, Json]:
        """What path.zarr says of the certificate: its eps, from where on w = 0 will do, how the axis ends below."""
        ended = self.bottom(self.reached)[1] or Status.CONVERGED
        return {"eps": self.reached, "lam_top": self.top(self.reached), "axis_end": ended.value}

    def model(self, solved: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The cells that certify `reached`."""
        return model_of(self.cells(self.reached))


def worst_between(pair: Pair, low: float, high: float) -> Worst:
    """The worst lambda in [low, high], with the best shares at each; a bound of 0 if there is none."""
    if low >= high:
        return Worst(low, 0.0)
    lams = [high * (low / high) ** (k / GRID) for k in range(GRID)] + [low]
    return max((Worst(lam, pair.excess(lam, WHOLE) + 1.0) for lam in lams), key=lambda worst: worst.bound)


RULE = Anytime
