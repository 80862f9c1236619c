"""The verifier of `paper`: w^j with its dual point rescaled towards the truth (O16 section 4)."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from gapwise.records import Facts
from gapwise.stages.certify.recompute import Rebuilt, worst
from gapwise.stages.certify.stepwise import Stepwise


class Paper(Stepwise):
    """The gap at rho lambda_j is g + (1 - rho) (R - g)."""

    def below(self, r: Rebuilt, lam: float, low: float) -> float:
        """The gap of (w^j, rescaled alpha^j) at low."""
        return r.gap + (1.0 - low / lam) * (r.hinge - r.gap)

    def worst_above(self, r: Rebuilt, lam: float) -> float:
        """The gap of (s w, alpha), s = lambda_1 / lambda, is convex in s: g at s = 1, R_0 - ell at s = 0."""
        return worst([r.gap, self.audit.zero.hinge - r.ell])

    @staticmethod
    def above(arrays: Mapping[str, np.ndarray], attrs: Facts) -> list[tuple[int, float, float, float, float]]:
        """The first w, scaled by lambda_1 / lambda."""
        first = float(arrays["lambda"][0])
        return [(0, float(np.nextafter(first, math.inf)), 0.0, 1.0, first)]

    def scaled(self, r: Rebuilt, here: float, lam: float) -> float | None:
        """lambda_1 / lambda."""
        return here / lam

    def dual_share(self, r: Rebuilt, b: int, lam: float) -> float:
        """lambda / lambda_j."""
        return lam / float(self.audit.arrays["lambda"][b])


VERIFIER = Paper
