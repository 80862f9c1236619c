"""The verifier of `two_sided`: recomputes the certificate of every cell (guarantee and proof: `solver/path/cells.py`).

Each cell's bound is computed again from the numbers that `recompute` derives from the supports. The shares t and tau are
taken as stored, because any shares >= 0 with a sum <= 1 give a valid bound.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from gapwise.records import Facts
from gapwise.stages.certify.audit import Audit, BaselessError, VerifierCapabilities
from gapwise.stages.certify.ends import check_end, check_top
from gapwise.stages.certify.kernels import norm2
from gapwise.stages.certify.oracle import OracleError, exact_pass
from gapwise.stages.certify.recompute import clip, dual_at, primal_at, share, worst
from gapwise.stages.certify.rounding import TOLERANCE
from gapwise.stages.certify.served import Shares
from gapwise.stages.certify.solved_points import SolvedPoints
from gapwise.stages.problems.certainty import UPPER_BOUNDED, certainty_of
from gapwise.stages.problems.parallel import HERE, Spread

ROUNDING = 1e-12
"""Tolerance for sums of shares, and for a hinge that should be zero, as a share of that of w = 0."""


class TwoSided:
    """All cells of a path over the rebuilt breakpoints."""

    capabilities = VerifierCapabilities(of_path=True, two_points=True)

    def __init__(self, audit: Audit) -> None:
        self.audit = audit
        self.problem, self.arrays, self.attrs = audit.problem, audit.arrays, audit.attrs
        self.broken, self.spread, self.points = audit.broken, audit.spread, SolvedPoints(audit)
        self.low, self.high = audit.arrays["cell_low"], audit.arrays["cell_high"]
        self.inner: list[tuple[float, float]] = []

    def claims(self, b: int) -> bool:
        """Whether the path claims that breakpoint b is solved to its tolerance: a limit may have left one unfinished."""
        return float(self.arrays["gap"][b]) <= self.audit.allowed(b)

    def closed(self) -> np.ndarray:
        """The lower ends of the certified cells."""
        return np.asarray(self.low)

    def intervals(self) -> list[float]:
        """The worst gap (or gap / primal, for the relative goal) of every cell; adds to `broken`."""
        check_top(self.audit)
        count = int(np.max(self.arrays["cell_interval"], initial=-1)) + 1
        self.inner = [self.points.inner(k) for k in range(min(count, len(self.points)))]
        return self.check()

    # -- checks -------------------------------------------------------------------------------------------------------
    def check(self) -> list[float]:
        """The worst gap (or gap / primal, for the relative goal) of every cell; fills `broken`."""
        self._coverage()
        found = [self._cell(c) for c in range(self.low.size)]
        eps = float(self.attrs["eps"])
        for c, most in enumerate(found):
            k = int(self.arrays["cell_interval"][c])
            if not most <= eps * (1.0 + self.audit.bound(k - 1, k)):
                self.broken.append(f"{self._where(c)}: the gap reaches {most:.9g} > {eps:g}")
        return found

    def _where(self, c: int) -> str:
        interval = int(self.arrays["cell_interval"][c])
        return f"lambda {float(self.low[c]):.9g}..{float(self.high[c]):.9g} (interval {interval})"

    def _coverage(self) -> None:
        """Check that the cells reach from infinity to the claimed end, side by side."""
        if not self.low.size or self.high[0] != math.inf:
            self.broken.append("lambda inf: no cell covers the largest lambdas")
            return
        if (top := float(self.attrs["lam_top"])) != self.low[0]:
            self.broken.append(
                f"lambda {self.low[0]:.9g}: the first cell ends here, but lam_top is stored as {top:.9g}"
            )
        for c in range(self.low.size):
            if not 0.0 <= self.low[c] <= self.high[c]:
                self.broken.append(f"{self._where(c)}: expected 0 <= low <= high")
            if c and self.high[c] != self.low[c - 1]:
                fault = "no cell covers this interval" if self.high[c] < self.low[c - 1] else "two cells do"
                self.broken.append(f"lambda {self.high[c]:.9g}..{self.low[c - 1]:.9g}: {fault}")
        self._stored_ends()
        self.end()

    def _stored_ends(self) -> None:
        """A breakpoint by itself claims its own lambda; the last may claim what the last cell covers."""
        lams, lows = self.arrays["lambda"], self.arrays["lambda_low"]
        for b in np.flatnonzero(lows != lams):
            if b < lams.size - 1 or lows[b] != self.low[-1]:
                expected = f"{lams[b]:.9g}"
                if b == lams.size - 1:
                    expected += f", or {self.low[-1]:.9g}, where the last cell ends"
                self.broken.append(
                    f"lambda {lams[b]:.9g} (breakpoint {b}): lambda_low is stored as {lows[b]:.9g}, expected {expected}"
                )

    def end(self) -> None:
        """The path ends where its status says."""
        check_end(self.audit)

    def _cell(self, c: int) -> float:
        """The worst gap of one cell."""
        k, low, high = int(self.arrays["cell_interval"][c]), float(self.low[c]), float(self.high[c])
        t, tau = self.arrays["cell_primal"][c], self.arrays["cell_dual"][c]
        if not -1 <= k <= len(self.points):
            self.broken.append(f"{self._where(c)}: no such interval; the path has {len(self.points)} breakpoints")
            return math.inf
        inner, dual_inner = self.inner[k] if 0 <= k < len(self.inner) else (0.0, 0.0)
        (Ra, la, Na, ca), (Rb, lb, Nb, cb) = self.points.numbers(k - 1), self.points.numbers(k)
        for name, stored, value, allowed in (
            ("inner", self.arrays["cell_inner"][c], inner, self.points.slack(Na, Nb, k, dual=False)),
            ("dual_inner", self.arrays["cell_dual_inner"][c], dual_inner, self.points.slack(ca, cb, k, dual=True)),
        ):
            if not abs(stored - value) <= allowed:
                self.broken.append(f"{self._where(c)}: {name} is stored as {stored:.9g}, recomputed {value:.9g}")
        if self.arrays["cell_scale"][c] != math.inf:
            self.broken.append(f"{self._where(c)}: expected a model that is not scaled")
        if low == 0.0:
            return self._to_zero(c, k - 1, high)
        for name, shares in (("t", t), ("tau", tau)):
            if not (min(shares) >= 0.0 and sum(shares) <= 1.0 + ROUNDING):
                self.broken.append(
                    f"{self._where(c)}: the shares {name} = {shares.tolist()} are not >= 0 with a sum <= 1"
                )
        A = t[0] ** 2 * Na + t[1] ** 2 * Nb + 2.0 * t[0] * t[1] * inner
        B = tau[0] ** 2 * ca + tau[1] ** 2 * cb + 2.0 * tau[0] * tau[1] * dual_inner
        R = t[0] * Ra + t[1] * Rb + (1.0 - t[0] - t[1]) * self.audit.zero.hinge
        ell = tau[0] * la + tau[1] * lb
        if high == math.inf:  # the bound on P must not grow without limit; the bound on D only rises
            return self._miss(R, ell - B / (2.0 * low)) if A == 0.0 else math.inf
        return worst([self._miss(0.5 * x * A + R, ell - B / (2.0 * x)) for x in (low, high)])

    def _miss(self, primal: float, dual: float) -> float:
        """The gap, or gap / primal."""
        return share(primal - dual, primal) if self.attrs["relative"] else primal - dual

    def _to_zero(self, c: int, b: int, high: float) -> float:
        """The worst gap over (0, high] of (s w_b, tau alpha_b) with the best tau at each lambda; it is at an end."""
        scale = float(self.arrays["cell_primal"][c][0])
        if not 0 <= b < len(self.points) or not scale >= 1.0 or self.arrays["cell_primal"][c][1] != 0.0:
            self.broken.append(
                f"{self._where(c)}: expected the model down to 0 to be a multiple >= 1 of a breakpoint's w"
            )
            return math.inf
        hinge, ell, norm2, dual_norm2 = self.points.numbers(b)
        if scale > 1.0:
            w = scale * self.points.vectors(b)[0]
            try:
                hinge = primal_at(self.problem, w, 0.0, self.spread, least=True)
                if certainty_of(self.problem) == UPPER_BOUNDED:
                    hinge = max(hinge, self._hinge_by_margins(self.points.vectors(b)[0], scale))
            except OracleError as error:
                raise BaselessError([f"{self._where(c)}: {error}"]) from error
            if not hinge <= ROUNDING * self.audit.zero.hinge:
                self.broken.append(f"{self._where(c)}: the scaled weights have a mean hinge of {hinge:.9g}, not 0")
            hinge = 0.0
        at_zero = self._miss(hinge, ell if dual_norm2 == 0.0 else 0.0)
        turn = min(dual_norm2 / ell, high) if ell > 0.0 else high
        lams = [x for x in (turn, high) if x > 0.0]
        return worst(
            [at_zero, *(self._miss(0.5 * x * scale**2 * norm2 + hinge, ell - dual_norm2 / (2.0 * x)) for x in lams)]
        )

    def _hinge_by_margins(self, w: np.ndarray, scale: float) -> float:
        """A bound on the mean hinge at scale w: margins at w are at least L_i(y) - h_i, with h_i bounded from above.

        With h_i / L_i <= m for all wrong labellings they are at least (1 - m) L_i(y), so
        scale (1 - m) >= 1 makes the hinge 0.
        """
        P = self.problem
        hinges = exact_pass(P, w, self.spread, decode=False).hinges
        least = np.array([P.least_loss(i) for i in range(P.n)])
        with np.errstate(divide="ignore", invalid="ignore"):
            most = float(np.max(np.where(hinges <= 0.0, 0.0, hinges / least)))
        return 0.0 if scale * (1.0 - most) >= 1.0 - TOLERANCE else self.audit.zero.hinge

    # -- one lambda ---------------------------------------------------------------------------------------------------
    def gap_at(self, lam: float, spread: Spread = HERE) -> float:
        """The gap (or gap / primal) by an exact pass at w(lambda), less the dual value of the point that certifies it."""
        P, c = self.problem, cell_at(self.arrays, lam)
        if c is None:
            return math.inf
        k = int(self.arrays["cell_interval"][c])
        t, tau = self.arrays["cell_primal"][c], self.arrays["cell_dual"][c].copy()
        w, psi, ell = np.zeros(P.d), np.zeros(P.d), 0.0
        for side, b in ((0, k - 1), (1, k)):
            if b >= len(self.points) or (t[side] == 0.0 and tau[side] == 0.0):
                continue
            own_w, own_psi, own_ell = self.points.whole(b, spread)
            part = tau[side]
            if self.low[c] == 0.0:
                c2 = norm2(P, clip(P, own_psi))
                part *= min(1.0, own_ell * lam / c2) if c2 > 0.0 else 1.0
            w, psi, ell = w + t[side] * own_w, psi + part * own_psi, ell + part * own_ell
        return self._miss(primal_at(P, w, lam, spread, least=True), dual_at(P, ell, psi / lam, lam))

    @staticmethod
    def shares(arrays: Mapping[str, np.ndarray], attrs: Facts, lam: float) -> Shares | None:
        """The weights of a lambda that was solved to its tolerance; else the shares t of the cell that lambda is in."""
        allowed = float(attrs["eps"]) * (arrays["dual"] if attrs["relative"] else np.ones(arrays["gap"].size))
        solved = np.flatnonzero((arrays["lambda"] == lam) & (arrays["gap"] <= allowed))
        if solved.size:
            return {int(solved[0]): 1.0}
        if (c := cell_at(arrays, lam)) is None:
            return None
        below, t = int(arrays["cell_interval"][c]), arrays["cell_primal"][c]
        return {below - 1: float(t[0]), below: float(t[1])}


def cell_at(arrays: Mapping[str, np.ndarray], lam: float) -> int | None:
    """The cell that certifies lambda, the upper one of two that meet there; None if there is none."""
    inside = np.flatnonzero((arrays["cell_low"] <= lam) & (lam <= arrays["cell_high"])) if lam > 0.0 else np.empty(0)
    return int(inside[0]) if inside.size else None


VERIFIER = TwoSided
