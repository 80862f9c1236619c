"""The solved points that the cells of an interval mix: their recomputed numbers, vectors and inner products.

Interval k lies between breakpoints k - 1 and k. Point -1 is w = 0; the point past the last is w = 0 with the true labels
as its dual point.
"""

from __future__ import annotations

import math

import numpy as np

from gapwise.stages.certify.audit import Audit
from gapwise.stages.certify.kernels import completed, product
from gapwise.stages.certify.recompute import clip
from gapwise.stages.certify.rounding import TOLERANCE
from gapwise.stages.problems.parallel import Spread


class SolvedPoints:
    """The breakpoints of an audited path, w = 0 above them and the truth below."""

    def __init__(self, audit: Audit) -> None:
        self.audit, self.problem, self.arrays = audit, audit.problem, audit.arrays

    def __len__(self) -> int:
        """The number of breakpoints."""
        return len(self.audit.rebuilt)

    def numbers(self, k: int) -> tuple[float, float, float, float]:
        """(R, ell, ||w||^2, ||q||^2) of point k."""
        zero = self.audit.zero
        if k < 0:
            return zero.hinge, zero.hinge, 0.0, zero.psi_norm2
        if k >= len(self):
            return zero.hinge, 0.0, 0.0, 0.0
        r = self.audit.rebuilt[k]
        return r.hinge, r.ell, r.norm2, r.dual_norm2

    def vectors(self, k: int, spread: Spread | None = None) -> tuple[np.ndarray, np.ndarray, float]:
        """(w, psi, ell) of point k, at most the last breakpoint; q is psi, projected onto the bounds."""
        if k < 0:
            return np.zeros(self.problem.d), self.audit.zero.psi, self.audit.zero.hinge
        point = self.audit.duals(k, spread or self.audit.spread)
        # where primal and dual point are not each other's, w is the stored one
        apart = completed(self.problem, np.asarray(self.audit.weights(k))) if self.audit.apart else None
        w = clip(self.problem, point.v) if apart is None else apart
        return w, float(self.arrays["lambda"][k]) * point.v, self.audit.rebuilt[k].ell

    def inner(self, k: int) -> tuple[float, float]:
        """(<w, w'>, <q, q'>) of points k - 1 and k."""
        P, (w, psi, _), (w_below, psi_below, _) = self.problem, self.vectors(k - 1), self.vectors(k)
        return product(P, w, w_below), product(P, clip(P, psi), clip(P, psi_below))

    def slack(self, above: float, below: float, k: int, *, dual: bool) -> float:
        """What the inner product of points k - 1 and k, of these squared norms, may differ by; `dual`: that of their q."""
        off = []
        for b in (k - 1, k):
            known = 0 <= b < len(self)
            lam = float(self.arrays["lambda"][b]) if known and dual else 1.0
            off.append(lam * self.audit.slacks[b].in_w if known else 0.0)
        return TOLERANCE * math.sqrt(above * below) + math.sqrt(above) * off[1] + math.sqrt(below) * off[0]
