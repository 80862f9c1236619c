"""`path.rule=one_sided`: w^j with the *same* dual point certifies smaller lambdas, to second order in the step.

With N = ||w||^2, R the mean hinge, ell the mean loss of the dual point and g = lambda_j N + R - ell the gap at lambda_j:
P(w^j) is lambda N / 2 + R and D(alpha^j) is ell - lambda_j^2 N / (2 lambda) at any lambda, hence

    P(w^j) - D(alpha^j) = g + N (lambda - lambda_j)^2 / (2 lambda).

This also holds with bounds at 0, where w scales with 1 / lambda as v does. The next breakpoint is the lower root of
gap = eps. The path ends once R <= eps: below that, (w^j, tau alpha^j) stays within max(g, R).

Above the first breakpoint, t w^1 with t = clip((R_0 - R) / (lambda N), 0, 1) and the same alpha: by convexity of the hinge
P(t w) <= lambda t^2 N / 2 + t R + (1 - t) R_0. From lambda_top up w = 0 is eps-optimal.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from gapwise.stages.solver.objective import Certificate
from gapwise.stages.solver.options import PathOptions
from gapwise.stages.solver.packed import number
from gapwise.stages.solver.path.descend import (
    Descending,
    below_first,
    just_above,
    next_down,
    second_order,
    stepwise_model,
    to_zero,
)
from gapwise.stages.solver.path.rule import Following, PathStart, Solved, closing

if TYPE_CHECKING:
    from gapwise.stages.problems.parallel import Spread
    from gapwise.stages.problems.protocol import Problem


class OneSided(Descending):
    """Breakpoints at the lower roots of gap = eps, less the margin of `closing`."""

    @classmethod
    def start(cls, problem: Problem, path: PathOptions, spread: Spread) -> PathStart:
        """w = 0 covers all lambda >= ||psi~||^2 / (2 eps); the first lambda solved is an eighth of that."""
        from gapwise.stages.solver.path.start import start_below_zero

        return start_below_zero(problem, path, spread)

    @staticmethod
    def lower_root(point: Certificate, eps: float) -> float:
        """The lower root of the quadratic above (theorem 1a)."""
        e = (eps - point.gap) / point.norm2
        # lam + e - sqrt(e^2 + 2 e lam), free of cancellation
        return point.lam**2 / (point.lam + e + math.sqrt(e * e + 2.0 * e * point.lam))

    def warm_start(self) -> str:
        """alpha stays."""
        return "keep_dual"

    def following(self, solved: Solved) -> Following:
        """The lower end; if the first lambda does not cover all above it, the path restarts at twice that lambda."""
        point, path, zero = solved.point, self.path, self.zero
        assert point is not None
        if point.gap < closing(path.eps) and solved.index == 0 and point.lam < zero.lam_top:
            worst = worst_gap_above(point, zero.hinge_at_zero, zero.lam_top)
            if worst > closing(path.eps) * (1.0 + 1e-12):
                return Following(min(2.0 * point.lam, zero.lam_top), point.lam, again=True)
        return next_down(self, solved)

    def model(self, solved: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Each breakpoint's w down to the next one; above the first t w^1, and w = 0 from the top up."""
        first = float(solved["lambda"][0])
        fall, norm2 = self.zero.hinge_at_zero - float(solved["hinge"][0]), float(solved["norm2"][0])
        scale = max(fall / norm2, 0.0) if norm2 > 0.0 else math.inf
        above = [(-1, max(self.zero.lam_top, just_above(first)), (1.0, 0.0), math.inf)]
        if self.zero.lam_top > just_above(first):
            above.append((0, just_above(first), (0.0, 1.0), scale))
        return stepwise_model(solved, above)

    @classmethod
    def bound(cls, arrays: Mapping[str, np.ndarray], attrs: Mapping[str, object], lam: np.ndarray) -> np.ndarray:
        """The certified bound on the gap at `lam`, nan where nothing is certified."""
        first = {name: float(arrays[name][0]) for name in ("lambda", "gap", "hinge", "loss_dual", "norm2")}
        point = Certificate(
            first["lambda"], first["gap"], first["hinge"], first["loss_dual"], first["norm2"], dual=math.nan
        )
        zero = number(attrs, "psi_norm2") / (2.0 * lam)
        scaled = np.array([gap_above(point, number(attrs, "hinge_at_zero"), float(x)) for x in np.ravel(lam)])
        above = np.where(lam >= max(number(attrs, "lam_top"), point.lam), zero, scaled.reshape(np.shape(lam)))
        below = below_first(
            arrays, lam, lambda b, x: np.where(b["lambda_low"] <= 0.0, to_zero(b, x), second_order(b, x))
        )
        return np.where(lam > point.lam, above, below)


def gap_above(point: Certificate, hinge_at_zero: float, lam: float) -> float:
    """Bound on the gap at lambda >= point.lam of t w, with the same alpha."""
    n2 = point.norm2
    t = shrinkage(point, hinge_at_zero, lam)
    primal = 0.5 * lam * t * t * n2 + t * point.hinge + (1.0 - t) * hinge_at_zero
    return primal - (point.ell - point.lam**2 * n2 / (2.0 * lam))


def shrinkage(point: Certificate, hinge_at_zero: float, lam: float) -> float:
    """The t of `gap_above`: the factor that scales the first breakpoint's w at a lambda above it."""
    if point.norm2 == 0.0:
        return 1.0
    return min(max((hinge_at_zero - point.hinge) / (lam * point.norm2), 0.0), 1.0)


def worst_gap_above(point: Certificate, hinge_at_zero: float, lam_top: float) -> float:
    """The largest bound of `gap_above` over [point.lam, lam_top] (theorem 1d).

    Where t = 1 the bound is convex in lambda, where t < 1 it is monotone, so the worst is at an end or where t leaves 1.
    """
    turn = (hinge_at_zero - point.hinge) / point.norm2 if point.norm2 > 0 else point.lam
    lams = [point.lam, lam_top] + ([turn] if point.lam < turn < lam_top else [])
    return max(gap_above(point, hinge_at_zero, lam) for lam in lams)


RULE = OneSided
