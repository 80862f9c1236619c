"""The verifier of paths: recomputes the certificate of every cell; the cells cover all lambdas (`solver/path/cells.py`).

In a cell the model is w(lambda) = min(1, scale / lambda) (t_a w_a + t_b w_b), of neighbours a and b by falling lambda. Its
dual point is tau_a alpha_a + tau_b alpha_b, the rest on the truth. Each cell's bound is computed again from the numbers
that `recompute` derives from the supports. The shares are taken as stored, because any shares >= 0 with a sum <= 1 give a
valid bound. Paths of `paper` and `heuristic` store no tau: there it is 1 above the first breakpoint, and lambda / lambda_a
below (O16 section 4).
"""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from gapwise.stages.certify.audit import Audit, BaselessError, Given
from gapwise.stages.certify.ends import check_end, check_top, rounding_floor
from gapwise.stages.certify.kernels import norm2
from gapwise.stages.certify.oracle import OracleError, exact_pass
from gapwise.stages.certify.points import SolvedPoints
from gapwise.stages.certify.recompute import clip, dual_at, primal_at, share, worst
from gapwise.stages.certify.rounding import TOLERANCE
from gapwise.stages.problems.capabilities import UPPER_BOUNDED, certainty_of
from gapwise.stages.problems.parallel import HERE, Spread

ROUNDING = 1e-12
"""Tolerance for sums of shares, for lambdas that should be one, and for a hinge that should be zero as a share of R_0."""

RUNG = 10.0
"""On a path of `anytime` the next level lies at most by this factor below the eps that is reached."""

ENDS = ("CONVERGED", "LAMBDA_NEGLIGIBLE", "ROUNDING_LIMIT")
"""How the axis of `anytime` may end: at `path.lambda_min`, where no smaller lambda matters, where rounding shows."""


class Cells(Given):
    """All cells of a path over the rebuilt breakpoints."""

    of_path: ClassVar[bool] = True

    def __init__(self, audit: Audit) -> None:
        super().__init__(audit)
        self.problem, self.spread, self.points = audit.problem, audit.spread, SolvedPoints(audit)
        self.with_shares = "cell_dual" in self.arrays
        # without shares of its own, the last cell is that of a breakpoint which a limit may have left unfinished
        count = self.arrays["cell_low"].size - (audit.unfinished and not self.with_shares)
        self.low, self.high = self.arrays["cell_low"][:count], self.arrays["cell_high"][:count]
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
        if self.with_shares:
            count = int(np.max(self.arrays["cell_interval"], initial=-1)) + 1
            self.inner = [self.points.inner(k) for k in range(min(count, len(self.points)))]
        self._coverage()
        found = [self._cell(c) for c in range(self.low.size)]
        eps = float(self.attrs["eps"])
        for c, most in enumerate(found):
            k = int(self.arrays["cell_interval"][c])
            if not most <= eps * (1.0 + self.audit.bound(k - 1, k)):
                self.broken.append(f"{self._where(c)}: the gap reaches {most:.9g} > {eps:g}")
        return found

    # -- where the cells lie ------------------------------------------------------------------------------------------
    def _where(self, c: int) -> str:
        interval = int(self.arrays["cell_interval"][c])
        return f"lambda {float(self.low[c]):.9g}..{float(self.high[c]):.9g} (interval {interval})"

    def _coverage(self) -> None:
        """Check that the cells reach from infinity to the claimed end, side by side."""
        if not self.low.size or self.high[0] != math.inf:
            self.broken.append("lambda inf: no cell covers the largest lambdas")
            return
        if self.low[0] not in ((top := float(self.attrs["lam_top"])), np.nextafter(top, math.inf)):
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
        """A breakpoint by itself claims its own lambda, and what the cell covers that rests on it alone."""
        lams, lows = self.arrays["lambda"], self.arrays["lambda_low"]
        ends = dict.fromkeys(range(lams.size), math.nan)
        for c, low in enumerate(self.low.tolist()):
            if self.arrays["cell_primal"][c][1] == 0.0:
                ends[int(self.arrays["cell_interval"][c]) - 1] = low
        for b in range(lams.size):
            if lows[b] != lams[b] and lows[b] not in (ends[b], np.nextafter(ends[b], 0.0)):
                self.broken.append(
                    f"{self.audit.where(b)}: lambda_low is stored as {lows[b]:.9g}, expected {lams[b]:.9g}, or "
                    f"{ends[b]:.9g}, where the last cell ends that rests on it alone"
                )

    def end(self) -> None:
        """The path ends where its status says."""
        check_end(self.audit)

    # -- what they certify --------------------------------------------------------------------------------------------
    def _cell(self, c: int) -> float:
        """The worst gap of one cell."""
        k, low, high = int(self.arrays["cell_interval"][c]), float(self.low[c]), float(self.high[c])
        if not -1 <= k <= len(self.points):
            self.broken.append(f"{self._where(c)}: no such interval; the path has {len(self.points)} breakpoints")
            return math.inf
        if not self.with_shares:
            return self._rescaled(c, k, low, high)
        t, tau = self.arrays["cell_primal"][c], self.arrays["cell_dual"][c]
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

    def _rescaled(self, c: int, k: int, low: float, high: float) -> float:
        """The worst gap of a cell of one breakpoint with its rescaled w or dual point: affine in 1 / lambda or lambda.

        Above the first breakpoint it is g at s = lambda_1 / lambda = 1, and R_0 - ell at s = 0; below, g at lambda_b and R
        at 0.
        """
        above = high == math.inf
        b, shares = (k, [0.0, 1.0]) if above else (k - 1, [1.0, 0.0])
        known = 0 <= b < len(self.points)
        lam = float(self.arrays["lambda"][b]) if known else math.nan
        model = self.arrays["cell_primal"][c].tolist() == shares and self.arrays["cell_scale"][c] == (
            lam if above else math.inf
        )
        if not (model and (low >= lam if above else high <= lam * (1.0 + ROUNDING))):
            self.broken.append(f"{self._where(c)}: the model is not that of breakpoint {b}, at lambda {lam:.9g}")
            return math.inf
        hinge, ell, norm2, dual_norm2 = self.points.numbers(b)
        gap = self._miss(0.5 * lam * norm2 + hinge, ell - dual_norm2 / (2.0 * lam))
        if above:
            return worst([gap, self._miss(self.audit.zero.hinge, ell)])
        if dual_norm2 == 0.0:  # then w = 0 and alpha itself serve all smaller lambdas
            return gap
        return worst([gap, gap + (1.0 - low / lam) * (self._miss(hinge, 0.0) - gap)])

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
        P, inside = self.problem, np.flatnonzero((self.low <= lam) & (lam <= self.high))
        if not inside.size:
            return math.inf
        c = int(inside[0])
        k, t = int(self.arrays["cell_interval"][c]), self.arrays["cell_primal"][c]
        tau = self.arrays["cell_dual"][c] if self.with_shares else t
        w, psi, ell = np.zeros(P.d), np.zeros(P.d), 0.0
        for side, b in ((0, k - 1), (1, k)):
            if b >= len(self.points) or (t[side] == 0.0 and tau[side] == 0.0):
                continue
            own_w, own_psi, own_ell = self.points.vectors(b, spread)
            part = tau[side]
            if not self.with_shares:
                part = min(1.0, lam / float(self.arrays["lambda"][b]))
            elif self.low[c] == 0.0:
                c2 = norm2(P, clip(P, own_psi))
                part *= min(1.0, own_ell * lam / c2) if c2 > 0.0 else 1.0
            w, psi, ell = w + t[side] * own_w, psi + part * own_psi, ell + part * own_ell
        w *= min(1.0, float(self.arrays["cell_scale"][c]) / lam)
        return self._miss(primal_at(P, w, lam, spread, least=True), dual_at(P, ell, psi / lam, lam))


class OpenEnded(Cells):
    """The cells of `anytime`, for the eps reached: a path that a limit has stopped claims the whole axis as well."""

    def end(self) -> None:
        """The axis ends as the path says, even if a limit has stopped the solve."""
        ended, status, eps = self.attrs.get("axis_end"), str(self.attrs["status"]), float(self.attrs["eps"])
        stopped = status == "ROUNDING_LIMIT" and (ended != status or eps > self.audit.asked_eps)
        if ended not in ENDS or (status in ENDS and status != ended and not stopped):
            low, known = (float(self.closed()[-1]) if self.low.size else math.inf), ", ".join(ENDS)
            self.broken.append(
                f"lambda {low:.9g}: axis_end is stored as {ended!r}, with the status {status}: expected one of {known}"
            )
            return
        highest, floor = float(self.arrays["lambda"][0]), rounding_floor(self.audit.zero, eps / RUNG)
        if stopped and not highest <= floor:  # rounding shows at every solved lambda a level below
            self.broken.append(
                f"lambda {highest:.9g}: the path says that rounding leaves no eps below {eps:.9g}, as is so from "
                f"{floor:.9g} down"
            )
        check_end(self.audit, str(ended))


VERIFIERS: dict[str, type[Given]] = {
    **dict.fromkeys(("grid", "single"), Given),
    **dict.fromkeys(("heuristic", "paper", "two_sided"), Cells),
    "anytime": OpenEnded,
}
"""What checks the certificates of each path rule."""
