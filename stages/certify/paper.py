"""The verifier of `paper` and `heuristic`: w^j with its dual point rescaled towards the truth (O16 section 4).

The numbers of `heuristic` are checked in the same way, although it claims nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from gapwise.records import Facts
from gapwise.stages.certify.audit import Audit, VerifierCapabilities
from gapwise.stages.certify.ends import check_end, check_top
from gapwise.stages.certify.recompute import Rebuilt, clip, dual_at, primal_at, worst
from gapwise.stages.certify.rounding import TOLERANCE
from gapwise.stages.certify.served import Shares
from gapwise.stages.problems.parallel import HERE, Spread


class Paper:
    """Intervals [lambda_low, lambda_j], each certified by the numbers of its own breakpoint."""

    capabilities = VerifierCapabilities(of_path=True, last_may_be_unfinished=True)

    def __init__(self, audit: Audit) -> None:
        self.audit = audit

    def below(self, r: Rebuilt, lam: float, low: float) -> float:
        """The gap of (w^j, rescaled alpha^j) at low > 0: that at rho lambda_j is g + (1 - rho) (R - g)."""
        return r.gap + (1.0 - low / lam) * (r.hinge - r.gap)

    def worst_above(self, r: Rebuilt) -> float:
        """The gap of (s w, alpha), s = lambda_1 / lambda, is convex in s: g at s = 1, R_0 - ell at s = 0."""
        return worst([r.gap, self.audit.zero.hinge - r.ell])

    @classmethod
    def shares(cls, arrays: Mapping[str, np.ndarray], attrs: Facts, lam: float) -> Shares | None:
        """Above the first breakpoint its weights times lambda_1 / lambda; below it those of the breakpoint at or above."""
        lams = arrays["lambda"]
        if lam > lams[0]:
            return {0: float(lams[0]) / lam}
        if not lam > 0.0 or lam < arrays["lambda_low"][-1]:
            return None
        return {int(np.flatnonzero(lams >= lam)[-1]): 1.0}

    def check_model(self) -> None:
        """The stored cells give each lambda the model that is certified: its breakpoint's w, or the first one's, scaled."""
        A, broken = self.audit.arrays, self.audit.broken
        edges = [*np.nextafter(A["lambda"][1:], math.inf).tolist(), float(A["lambda_low"][-1])]
        first = float(A["lambda"][0])
        expected = [(0, float(np.nextafter(first, math.inf)), 0.0, 1.0, first)]
        expected += [(b + 1, low, 1.0, 0.0, math.inf) for b, low in enumerate(edges)]
        columns = (A["cell_interval"], A["cell_low"], *A["cell_primal"].T, A["cell_scale"])
        stored = list(zip(*(column.tolist() for column in columns), strict=True))
        if len(stored) != len(expected):
            broken.append(f"lambda {first:.9g} and below: {len(stored)} cells of the model, expected {len(expected)}")
            return
        high = math.inf
        for c, (cell, wanted) in enumerate(zip(stored, expected, strict=True)):
            same = np.allclose(np.array(cell), np.array(wanted), rtol=TOLERANCE, atol=0.0)
            if not same or float(A["cell_high"][c]) != high:
                numbers = ", ".join(f"{float(x):.9g}" for x in cell)
                broken.append(f"lambda {cell[1]:.9g} and above: cell {c} of the model ({numbers}) is not the rule's")
            high = cell[1]

    def claims(self, b: int) -> bool:
        """Whether the path claims that breakpoint b is solved to its tolerance."""
        return b < self.audit.claimed

    def closed(self) -> np.ndarray:
        """The lower ends of the certified intervals, in path order."""
        return np.asarray(self.audit.arrays["lambda_low"][: self.audit.claimed])

    def gap_below(self, r: Rebuilt, lam: float, low: float) -> float:
        """The worst gap of (w^j, its dual point) over [low, lam]: that at low; over all of (0, lam] if low is 0."""
        if not low > 0.0:
            end = worst([r.gap, r.hinge]) if r.norm2 > 0.0 else r.gap
            return end if low == 0.0 else math.inf
        return self.below(r, lam, low)

    def intervals(self) -> list[float]:
        """The worst gap of each breakpoint's interval, from the recomputed numbers; checks that intervals leave no hole."""
        audit = self.audit
        eps, broken = float(audit.attrs["eps"]), audit.broken
        lams, lows = audit.arrays["lambda"][: audit.claimed], self.closed()
        check_top(audit)
        found = []
        for b, r in enumerate(audit.rebuilt[: audit.claimed]):
            lam, low = float(lams[b]), float(lows[b])
            most = self.gap_below(r, lam, low)
            if b == 0:
                most = worst([most, self.worst_above(r)])
            found.append(most)
            if not most <= eps * (1.0 + audit.bound(b)):
                broken.append(f"lambda {low:.9g}..{lam:.9g} (breakpoint {b}): the gap reaches {most:.9g} > {eps:g}")
            if b + 1 < len(lams) and not low * (1.0 - 1e-12) <= float(lams[b + 1]) < lam:
                broken.append(f"lambda {float(lams[b + 1]):.9g}..{low:.9g}: no breakpoint covers this interval")
        check_end(audit)
        self.check_model()
        return found

    def gap_at(self, lam: float, spread: Spread = HERE) -> float:
        """P_lambda(w(lambda)) by an exact pass (`primal_at`, least), less the dual value that certifies lambda."""
        audit = self.audit
        lams = audit.arrays["lambda"][: audit.claimed]
        b = max(int(np.searchsorted(-lams, -lam, side="right")) - 1, 0)
        r, here = audit.rebuilt[b], float(lams[b])
        v = audit.duals(b, spread).v
        w, tau = clip(audit.problem, v), 1.0
        if lam > here:  # above the first breakpoint
            w = (here / lam) * w
        else:
            tau = lam / here
        dual = dual_at(audit.problem, tau * r.ell, tau * v * here / lam, lam)
        return primal_at(audit.problem, w, lam, spread, least=True) - dual


VERIFIER = Paper
