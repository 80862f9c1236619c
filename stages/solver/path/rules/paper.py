"""`path.rule=paper`: the epsilon-approximate path of O16 (section 4, Alg. 6, 7); `path.rule=heuristic`, its heuristic path.

w^j with the dual point rescaled towards the truth has gap g + (1 - rho) (R - g) at rho lambda_j, first order in the step;
R - g is the paper's Delta. The next breakpoint is where that reaches eps: rho = 1 - (eps - g) / (R - g). (Alg. 7 as
printed in the supplement has its two branches swapped; the main text is right.) The path ends once R <= eps. Above the
first breakpoint the gap of (lambda_1 / lambda) w^1 with the same alpha is convex in the factor: g at 1 and R_0 - ell
at 0.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from gapwise.stages.solver.objective import Certificate
from gapwise.stages.solver.options import PathOptions, Status, check
from gapwise.stages.solver.path.rule import (
    Following,
    PathRule,
    PathStart,
    Solved,
    closing,
    negligible,
    rounding_floor,
)

if TYPE_CHECKING:
    from gapwise.stages.problems.parallel import Spread
    from gapwise.stages.problems.protocol import Problem

FLOOR = 1e-12
"""No path goes below this share of its largest lambda, nor below `rounding_floor`."""


class Paper(PathRule):
    """Breakpoints where the rescaled dual point has a gap of eps; each certificate rests on its own breakpoint."""

    starts_exactly = True

    @classmethod
    def check(cls, path: PathOptions) -> None:
        """Refuse a relative eps, which needs the two-sided rule."""
        check("path.relative", path.relative, not path.relative, "path.rule=two_sided")

    @classmethod
    def start(cls, problem: Problem, path: PathOptions, spread: Spread) -> PathStart:
        """lambda_inf = (||psi~||^2 + mean_i max_y <-psi~, psi_i(y)>) / (kappa eps): O16 Alg. 6, l. 1-6."""
        from gapwise.stages.solver.path.start import paper_start

        return paper_start(problem, path, spread)

    @staticmethod
    def lower_end(point: Certificate, eps: float) -> float:
        """The smallest lambda at which `point` certifies eps (O16 Alg. 7); 0 if it certifies every smaller one.

        ValueError unless its gap is below eps.
        """
        if point.gap >= eps:
            raise ValueError(f"path: the gap {point.gap:.3g} at lambda {point.lam:.6g} is not below eps {eps:g}")
        if point.hinge <= eps or point.norm2 == 0.0:
            return 0.0
        return point.lam * (1.0 - (eps - point.gap) / (point.hinge - point.gap))

    def warm_start(self) -> str:
        """w stays; alpha moves towards the truth."""
        return "keep_primal"

    def following(self, solved: Solved) -> Following:
        """The lower end of the interval that the last lambda certifies, unless the path's end has been reached."""
        path, point, eps = self.path, solved.point, closing(self.path.eps)
        assert point is not None
        if point.gap >= eps:
            return Following(math.nan, point.lam, solved.status)
        low = self.lower_end(point, eps)
        if ended := self.ended(point, low):
            return Following(math.nan, low, ended)
        if solved.index + 1 >= path.max_breakpoints:
            return Following(math.nan, low, Status.PASS_LIMIT)
        return Following(low, low)

    def ended(self, point: Certificate, low: float) -> Status | None:
        """How the path ends if its last `point` certifies down to `low`; None if it goes on."""
        if low <= self.path.lambda_min:
            return Status.CONVERGED
        if negligible(self.path, self.path.eps, point, self.zero):
            return Status.LAMBDA_NEGLIGIBLE
        floor = rounding_floor(self.zero, self.path.eps, FLOOR * self.zero.lam_top)
        return Status.ROUNDING_LIMIT if low <= floor else None

    def model(self, solved: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Each breakpoint's w from its own lambda down to the next one; above the first (lambda_1 / lambda) w^1."""
        lams, lows = solved["lambda"], solved["lambda_low"]
        # a breakpoint's own w holds at its lambda, so the cell of the one above ends just before it
        edges = np.append(np.nextafter(lams, math.inf), lows[-1])
        primal = np.zeros((edges.size, 2))
        primal[0, 1], primal[1:, 0] = 1.0, 1.0
        return {
            "cell_interval": np.arange(lams.size + 1),
            "cell_low": edges,
            "cell_high": np.append(math.inf, edges[:-1]),
            "cell_primal": primal,
            "cell_scale": np.append(lams[0], np.full(lams.size, math.inf)),
        }


class Heuristic(Paper):
    """The same steps with stale gaps, cheaper and without a guarantee.

    A lambda is done once the sum of the last known block gaps is at most kappa eps; no exact pass confirms it.
    """

    kappa, exact = 0.7, False


RULE = Paper
