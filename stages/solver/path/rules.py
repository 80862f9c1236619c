"""Where the next breakpoint lies, and how far a solved lambda certifies (O16 section 4, Alg. 7; DESIGN 2.5).

With N = ||w||^2, R the mean hinge, ell the mean loss of the dual point and g = lambda N + R - ell the gap at lambda_j:

- *paper*: w^j with the dual point rescaled towards the truth has gap g + (1 - rho) (R - g) at rho lambda_j: first order
  in the step.
- *one_sided*: w^j with the same alpha^j has P(w^j) - D(alpha^j) = g + N (lambda - lambda_j)^2 / (2 lambda) at lambda, for
  P is lambda N / 2 + R and D is ell - lambda_j^2 N / (2 lambda): second order in the step. It holds with bounds at 0 too,
  where w scales with 1 / lambda as v does.

Either ends where R <= eps: below, (w^j, tau alpha^j) stays within max(g, R).
"""

from __future__ import annotations

import math

from stages.solver.objective import Certificate


def lower_end(point: Certificate, eps: float, rule: str) -> float:
    """The smallest lambda that `point` certifies to eps; 0 if that is all of them. Needs gap < eps."""
    if point.gap >= eps:
        raise ValueError(f"path: the gap {point.gap:.3g} at lambda {point.lam:.6g} is not below eps {eps:g}")
    if point.hinge <= eps or point.norm2 == 0.0:
        return 0.0
    if rule == "paper":
        return point.lam * (1.0 - (eps - point.gap) / (point.hinge - point.gap))
    e = (eps - point.gap) / point.norm2
    # lam + e - sqrt(e^2 + 2 e lam), free of cancellation
    return point.lam**2 / (point.lam + e + math.sqrt(e * e + 2.0 * e * point.lam))


def gap_above(point: Certificate, hinge_at_zero: float, lam: float) -> float:
    """Bound on the gap at lambda >= point.lam of t w, t = clip((R_0 - R) / (lambda N), 0, 1), with the same alpha.

    P(t w) <= lambda t^2 N / 2 + t R + (1 - t) R_0 by convexity of the hinge, D >= ell - lam_1^2 N / (2 lambda).
    """
    n2 = point.norm2
    t = shrinkage(point, hinge_at_zero, lam)
    primal = 0.5 * lam * t * t * n2 + t * point.hinge + (1.0 - t) * hinge_at_zero
    return primal - (point.ell - point.lam**2 * n2 / (2.0 * lam))


def shrinkage(point: Certificate, hinge_at_zero: float, lam: float) -> float:
    """The t of `gap_above`: by how much the first breakpoint's w is scaled for lambda above it."""
    if point.norm2 == 0.0:
        return 1.0
    return min(max((hinge_at_zero - point.hinge) / (lam * point.norm2), 0.0), 1.0)


def worst_gap_above(point: Certificate, hinge_at_zero: float, lam_top: float) -> float:
    """The largest bound of `gap_above` over [point.lam, lam_top].

    Where t = 1 the bound is convex in lambda, where t < 1 monotone: the worst is at an end or where t leaves 1.
    """
    turn = (hinge_at_zero - point.hinge) / point.norm2 if point.norm2 > 0 else point.lam
    lams = [point.lam, lam_top] + ([turn] if point.lam < turn < lam_top else [])
    return max(gap_above(point, hinge_at_zero, lam) for lam in lams)
