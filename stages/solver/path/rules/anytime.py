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
from typing import TYPE_CHECKING, Self

import numpy as np

from gapwise.stages.problems.stored import check_array
from gapwise.stages.solver.objective import Certificate, Product
from gapwise.stages.solver.options import PathOptions, Status, check
from gapwise.stages.solver.packed import number
from gapwise.stages.solver.path.axis import Axis, Levels
from gapwise.stages.solver.path.cell_arrays import bound_of, model_of
from gapwise.stages.solver.path.members import packed_members, restored_members, specs_of, zero_member
from gapwise.stages.solver.path.rule import Following, PathRule, PathStart, Solved, Tolerance
from gapwise.stages.solver.path.sweep import Sweep

if TYPE_CHECKING:
    from gapwise.records import Json
    from gapwise.stages.problems.parallel import Spread
    from gapwise.stages.problems.protocol import Problem
    from gapwise.stages.solver.packed import ArraySpec

CERTIFIED: ArraySpec = ("path_certified", ("solved",), "f8", "eps certified at every lambda after each solved one")


@dataclass
class Anytime(PathRule):
    """What the solved lambdas certify (`path.axis`), the order of lambdas (`path.sweep`), the eps after each solved one."""

    kappa = 0.85
    between = two_points = open_ended = switches = True

    axis: Axis
    sweep: Sweep
    certified: list[float] = field(default_factory=list)
    """After each solved lambda."""

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
        levels = Levels(path, max(start.hinge_at_zero, 0.0))
        axis = Axis(path, start, levels, [zero_member(start)])
        return cls(path, start, axis, Sweep(axis))

    def use_product(self, product: Product) -> None:
        """Take inner products of solved points by `product`."""
        self.axis.product = product

    def open_end(self) -> Self:
        """The path may end at any lambda."""
        return self

    @property
    def reached(self) -> float:
        """The eps that is certified at every lambda."""
        return self.certified[-1] if self.certified else self.axis.zero.hinge_at_zero

    @property
    def ended(self) -> Status | None:
        """How the path ends if `path.eps` is reached; else None."""
        done = bool(self.certified) and self.reached <= self.path.eps
        return self.axis.bottom(self.reached)[1] if done else None

    def tolerance(self) -> Tolerance:
        """The share kappa of the level."""
        return Tolerance(self.path.kappa * self.axis.levels.present, False)

    def following(self, solved: Solved) -> Following:
        """The next lambda of the sweep; the end only where nothing more can be solved."""
        point = solved.point
        assert point is not None
        if ended := self.take(solved, point):
            return Following(math.nan, point.lam, ended)
        lam = self.sweep.following_lambda(point.lam)
        return Following(lam, point.lam) if lam else Following(math.nan, point.lam, Status.ROUNDING_LIMIT)

    def take(self, solved: Solved, point: Certificate) -> Status | None:
        """Certify with another solved lambda; returns how the path ends, None if it goes on."""
        converged = solved.status is Status.CONVERGED
        if converged or not self.certified or point.gap < self.reached:
            self.axis.add(solved, point, self.reached)
        self.certified.append(self.axis.certify())
        if not converged or self.axis.zero.psi_norm2 == 0.0:  # a limit; or w = 0 is optimal everywhere
            return solved.status
        return Status.PASS_LIMIT if solved.index + 1 >= self.path.max_breakpoints else None

    # -- committed state ----------------------------------------------------------------------------------------------
    @property
    def specs(self) -> tuple[ArraySpec, ...]:
        """The arrays of `packed`."""
        return (*specs_of(self.axis.members), CERTIFIED)

    def packed(self) -> tuple[dict[str, np.ndarray], dict[str, Json]]:
        """Arrays of `specs`, and scalars."""
        arrays = {**packed_members(self.axis.members), "path_certified": np.array(self.certified, dtype=float)}
        return arrays, {"done": self.axis.levels.done, "falling": self.sweep.falling}

    @classmethod
    def restored(
        cls, path: PathOptions, start: PathStart | None, arrays: Mapping[str, np.ndarray], attrs: Mapping[str, object]
    ) -> Self:
        """The rule in its packed state; ValueError, naming the array, if one is not what `packed` gives."""
        assert start is not None
        members = restored_members(arrays)
        certified = check_array("path_certified", arrays["path_certified"], (None,), float, finite=True)
        axis = Axis(path, start, Levels(path, number(attrs, "done")), members)
        return cls(path, start, axis, Sweep(axis, bool(attrs["falling"])), certified.tolist())

    # -- results ------------------------------------------------------------------------------------------------------
    @property
    def supporting(self) -> list[int]:
        """Numbers of the breakpoints that the certificate rests on."""
        return sorted(m.number for m in self.axis.members if m.number >= 0)

    def attributes(self) -> dict[str, Json]:
        """What path.zarr says of the certificate: its eps, from where on w = 0 will do, how the axis ends below."""
        ended = self.axis.bottom(self.reached)[1] or Status.CONVERGED
        return {"eps": self.reached, "lam_top": self.axis.top(self.reached), "axis_end": ended.value}

    def model(self, solved: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The cells that certify `reached`."""
        return model_of(self.axis.cells(self.reached))

    @classmethod
    def bound(cls, arrays: Mapping[str, np.ndarray], attrs: Mapping[str, object], lam: np.ndarray) -> np.ndarray:
        """The certified bound on the gap at `lam`, nan where nothing is certified."""
        return bound_of(arrays, attrs, lam)


RULE = Anytime
