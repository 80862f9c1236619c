"""The verifier of `one_sided`: w^j with the same dual point, to second order in the step of lambda."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from gapwise.records import Facts
from gapwise.stages.certify.recompute import Rebuilt, worst
from gapwise.stages.certify.rounding import TOLERANCE
from gapwise.stages.certify.stepwise import Stepwise


class OneSided(Stepwise):
    """The gap at lambda is g + N (lambda_j - lambda)^2 / (2 lambda)."""

    def check_top(self) -> None:
        """The dual point of w = 0, whose gap at lambda_top must be at most eps."""
        super().check_top()
        audit = self.audit
        top, eps = float(audit.attrs["lam_top"]), float(audit.attrs["eps"])
        gap = audit.zero.psi_norm2 / (2.0 * top)
        if not gap <= eps * (1.0 + TOLERANCE):
            audit.broken.append(f"lambda {top:.9g}: the gap of w = 0 is {gap:.9g} > {eps:g}")

    def below(self, r: Rebuilt, lam: float, low: float) -> float:
        """The gap of (w^j, alpha^j) at low."""
        return r.gap + r.norm2 * (lam - low) ** 2 / (2.0 * low)

    def worst_above(self, r: Rebuilt, lam: float) -> float:
        """Over [lambda_1, lambda_top], on a fine grid in log lambda and at the point where t leaves 1."""
        top, zero = float(self.audit.attrs["lam_top"]), self.audit.zero
        if top <= lam:
            return r.gap
        turn = (zero.hinge - r.hinge) / r.norm2 if r.norm2 > 0.0 else lam
        grid = np.append(np.geomspace(lam, top, 1000), np.clip(turn, lam, top))
        return worst([self.bound_above(r, lam, float(x)) for x in grid])

    def bound_above(self, r: Rebuilt, lam: float, higher: float) -> float:
        """Gap at `higher` >= lam of t w, t = `shrink`, with the same alpha."""
        t = self.shrink(r, higher)
        primal = 0.5 * higher * t * t * r.norm2 + t * r.hinge + (1.0 - t) * self.audit.zero.hinge
        return primal - r.ell + lam**2 * r.norm2 / (2.0 * higher)

    def shrink(self, r: Rebuilt, higher: float) -> float:
        """The factor that scales the first breakpoint's w at a lambda above it."""
        hinge = self.audit.zero.hinge
        return min(max((hinge - r.hinge) / (higher * r.norm2), 0.0), 1.0) if r.norm2 > 0.0 else 1.0

    @staticmethod
    def above(arrays: Mapping[str, np.ndarray], attrs: Facts) -> list[tuple[int, float, float, float, float]]:
        """w = 0 from lambda_top up, below it t w^1, t = clip((R_0 - R) / (lambda N), 0, 1), from stored numbers."""
        after, top = float(np.nextafter(arrays["lambda"][0], math.inf)), float(attrs["lam_top"])
        fall, norm2 = float(attrs["hinge_at_zero"]) - float(arrays["hinge"][0]), float(arrays["norm2"][0])
        cells = [(-1, max(top, after), 1.0, 0.0, math.inf)]
        if top > after:
            cells.append((0, after, 0.0, 1.0, max(fall / norm2, 0.0) if norm2 > 0.0 else math.inf))
        return cells

    def scaled(self, r: Rebuilt, here: float, lam: float) -> float | None:
        """`shrink`; w = 0 from lambda_top up."""
        return None if lam >= float(self.audit.attrs["lam_top"]) else self.shrink(r, lam)

    def dual_share(self, r: Rebuilt, b: int, lam: float) -> float:
        """1 within the interval; the best share below the last breakpoint of a path that reaches down to 0."""
        low, here = float(self.audit.arrays["lambda_low"][b]), float(self.audit.arrays["lambda"][b])
        if lam < low or low == 0.0:
            return min(1.0, r.ell * lam / (here**2 * r.norm2)) if r.norm2 > 0.0 else 1.0
        return 1.0


VERIFIER = OneSided
