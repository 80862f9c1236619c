"""The guarantee of a path, its proof, and the cells with which the two-sided rule achieves it.

**Guarantee.** For every lambda >= lambda_last of a certified path,

    P_lambda(w(lambda)) - P*_lambda <= eps,    or <= eps P_lambda(w(lambda)) with `path.relative`,

where w(lambda) is the model that `storage.paths.open_path` gives, and lambda_last is 0 unless the path says otherwise.

**Notation.** K is the cone that w lies in (a box whose bounds are 0 or infinite; R^d without one), clip the projection
onto it, R(w) the mean hinge. A dual point alpha has a mean loss ell and psi = (1/n) sum_i B_i (m_i(y_i) - mu_i), both
linear in alpha and zero if all weight is on the truth; q = clip(psi). Then

    P_lambda(w) = lambda/2 ||w||^2 + R(w),    D_lambda(alpha) = ell - ||q||^2 / (2 lambda),

the latter because lambda/2 ||w||^2 - <w, psi> is least over K at clip(psi) / lambda. By weak duality, D_lambda(alpha)
<= P*_lambda for all feasible alpha, so it is enough to have at every lambda a w(lambda) in K and a feasible alpha(lambda)
with P - D <= eps. Solved points a and b each have (R, ell), N = ||w||^2, c = ||q||^2, and together G = <w_a, w_b>,
S = <q_a, q_b>. The topmost point is w = 0 with R_0, the mean of the largest losses, and with their labellings as its alpha:
ell = R_0, N = G = 0, psi = psi~.

**Two points.** Nothing below relates w to alpha. Bounds on P are made of (R, N, G), that is of points w in K at which an
exact pass has measured the hinge; bounds on D of (ell, c, S), that is of feasible alpha. So a solved lambda contributes a
primal and a dual point, which need not be each other's: most methods leave w = w(alpha) = q / lambda, and then c =
lambda^2 N; `accelerated` leaves the mean of its points, which is closer to the optimum, beside its alpha.

**Primal.** For t_a, t_b >= 0 with t_a + t_b <= 1 the point w = t_a w_a + t_b w_b is in K. R is convex, a mean of maxima of
affine functions, so R(w) <= R_t = t_a R_a + t_b R_b + (1 - t_a - t_b) R_0, and P_lambda(w) <= lambda A / 2 + R_t with
A = ||w||^2.

**Dual.** For tau likewise, alpha = tau_a alpha_a + tau_b alpha_b + (1 - tau_a - tau_b) truth is feasible, its ell is
ell_tau = tau_a ell_a + tau_b ell_b, its psi likewise, and ||clip(psi)||^2 <= B = ||tau_a q_a + tau_b q_b||^2: ||clip(x)|| is
the distance of x from the polar cone of K, which contains psi_a - q_a and psi_b - q_b (Moreau), hence also the same
combination of them, which is sqrt(B) away from psi. Without bounds this is an equality. So
D_lambda(alpha) >= ell_tau - B / (2 lambda).

**Cells.** For fixed (t, tau) the gap at lambda is thus at most

    lambda A / 2 + (R_t - ell_tau) + B / (2 lambda),

convex in lambda: if it is <= eps at both ends of a cell, it is so throughout. For the relative bound A and R_t take the
factor 1 - eps, since P - D <= eps P means (1 - eps) P - D <= 0. `two_sided` covers the whole axis with such cells:

- Above, w = 0: its gap ||psi~||^2 / (2 lambda) falls with lambda, so the cell [lambda_top, inf) needs its lower end only.
- Between neighbours (w = 0 is the first): (t, tau) optimal at a cell's geometric middle; a cell is halved if an end fails.
- Where an interval fails, its worst lambda is solved. w = t_a w_a + t_b w_b with the best t and R_t is a primal point there
  before any oracle is called, and passes over cached labellings raise D. If the two are within eps, they are the solved
  point: one that has cost no oracle call. R_t is a bound, as R_a and R_b may be.
- Below the last, w = s w_b and alpha = tau alpha_b with the best tau, min(1, ell lambda / c). The dual bound is concave in
  lambda (linear up to c / ell, ell - c / (2 lambda) above), the primal bound affine: again the two ends of (0, lambda_b]
  decide, and at 0 the gap is R. So s = 1 and R <= eps suffice for the absolute bound. For the relative one R must be 0. Let
  h_i be block i's hinge at w_b, L_i > 0 the least loss of its wrong labellings and m = max_i h_i / L_i < 1. Every margin
  <w_b, psi_i(y)> is at least L_i(y) - h_i >= (1 - m) L_i(y), so at w_b / (1 - m) all margins reach their losses: with
  s = 1 / (1 - m) R is 0. If this never happens, the path ends at `path.lambda_min` or at a floor, and says so.

Special cases with w = w(alpha): theorem 1 has t = tau = 1 on a single point. `path.rule=paper` has t = 1 and tau = lambda /
lambda_j, so the gap is affine in lambda, g at lambda_j and R at 0.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from gapwise.stages.solver.counts import number
from gapwise.stages.solver.objective import Certificate

MOST_HALVINGS = 30
"""How often a cell may be halved when its middle holds and an end does not."""

FLOOR = 1e-9
"""No path goes below this share of its largest lambda: there psi = lambda w is a small difference of large sums, and
rounding shows."""

GRID = 64
"""Number of lambdas between two solved ones among which the worst is searched."""


class SolvedPoint(NamedTuple):
    """What a solved lambda contributes to the certificates around it."""

    lam: float
    """infinite for w = 0"""
    gap: float
    hinge: float
    ell: float
    norm2: float
    """N = ||w||^2"""
    dual_norm2: float
    """c = ||q||^2, q = clip(psi)"""
    worst_hinge: float = math.inf
    """m: the largest hinge of a block in units of the least loss of its wrong labellings"""

    @property
    def primal(self) -> float:
        """lambda N / 2 + R."""
        return 0.5 * self.lam * self.norm2 + self.hinge


def solved_point(point: Certificate, worst_hinge: float = math.inf, dual_norm2: float | None = None) -> SolvedPoint:
    """The point of a certificate; without `dual_norm2` its w is w(alpha), hence q = lambda w."""
    own = point.lam**2 * point.norm2 if dual_norm2 is None else dual_norm2
    return SolvedPoint(point.lam, point.gap, point.hinge, point.ell, point.norm2, own, worst_hinge)


def zero(hinge_at_zero: float, psi_norm2: float) -> SolvedPoint:
    """w = 0 with the largest losses as its dual point."""
    return SolvedPoint(math.inf, 0.0, hinge_at_zero, hinge_at_zero, 0.0, psi_norm2)


class GapBound(NamedTuple):
    """The bound on the gap that has to hold at every lambda."""

    eps: float
    relative: bool

    def excess(self, primal: float, dual: float) -> float:
        """<= 0 if a primal and a dual value are close enough; in units of eps (of the primal value if relative)."""
        if self.relative:
            return (1.0 - self.eps) - dual / primal if primal > 0.0 else -self.eps  # P = 0 is the least there is
        return (primal - dual) / self.eps - 1.0


Share = tuple[float, float]
"""Shares of the point above and of the point below."""


class Cell(NamedTuple):
    """An interval of lambda with the combination that certifies it."""

    interval: int
    """k: between breakpoints k - 1 and k by falling lambda; w = 0 is before the first, and k = -1 means w = 0 alone"""
    low: float
    high: float
    primal: Share
    """t_a, t_b"""
    dual: Share
    """tau_a, tau_b"""
    inner: float
    """G"""
    dual_inner: float
    """S"""


def ratio(a: float, b: float) -> float:
    """a / b; infinite where b is 0, as ||w||^2 is of a solved w = 0."""
    return a / b if b > 0.0 else math.inf


def quadratic(share: Share, above: float, inner: float, below: float) -> float:
    """||s_a x_a + s_b x_b||^2 from the inner products."""
    a, b = share
    return a * a * above + 2.0 * a * b * inner + b * b * below


def best_share(gain: Share, above: float, inner: float, below: float, scale: float) -> Share:
    """Maximiser of <gain, s> - scale/2 ||s_a x_a + s_b x_b||^2 over s_a, s_b >= 0, s_a + s_b <= 1 (theorem 2).

    The stationary point if it lies inside; otherwise the best of the three edges' stationary points, clipped to their ends.
    """
    determinant = above * below - inner * inner
    if determinant > 1e-14 * above * below and scale * determinant > 0.0:  # such a product may underflow
        a = (gain[0] * below - gain[1] * inner) / (scale * determinant)
        b = (gain[1] * above - gain[0] * inner) / (scale * determinant)
        if a >= 0.0 and b >= 0.0 and a + b <= 1.0:
            return a, b
    on_both = _top(gain[0] - gain[1] + scale * (below - inner), scale * (above - 2.0 * inner + below))
    edges = [
        (_top(gain[0], scale * above), 0.0),
        (0.0, _top(gain[1], scale * below)),
        (on_both, 1.0 - on_both),
    ]
    return max(edges, key=lambda s: gain[0] * s[0] + gain[1] * s[1] - 0.5 * scale * quadratic(s, above, inner, below))


def _top(slope: float, curvature: float) -> float:
    """Maximiser of slope u - curvature u^2 / 2 over [0, 1]."""
    if slope <= 0.0:
        return 0.0
    return 1.0 if slope >= curvature else slope / curvature


class Pair(NamedTuple):
    """Two solved points, and the bounds that hold between them (theorems 2, 3)."""

    above: SolvedPoint
    below: SolvedPoint
    inner: float
    dual_inner: float
    hinge_at_zero: float

    def hinge(self, t: Share) -> float:
        """Upper bound of R at t_a w_a + t_b w_b."""
        return t[0] * self.above.hinge + t[1] * self.below.hinge + (1.0 - t[0] - t[1]) * self.hinge_at_zero

    def primal(self, lam: float, t: Share) -> float:
        """Upper bound of P at t_a w_a + t_b w_b."""
        return 0.5 * lam * quadratic(t, self.above.norm2, self.inner, self.below.norm2) + self.hinge(t)

    def dual(self, lam: float, tau: Share) -> float:
        """Lower bound of D at tau_a alpha_a + tau_b alpha_b, the rest on the truth."""
        ell = tau[0] * self.above.ell + tau[1] * self.below.ell
        return ell - quadratic(tau, self.above.dual_norm2, self.dual_inner, self.below.dual_norm2) / (2.0 * lam)

    def best(self, lam: float) -> tuple[Share, Share]:
        """(t, tau) with the least bound on the gap at lambda."""
        a, b = self.above, self.below
        gain = self.hinge_at_zero - a.hinge, self.hinge_at_zero - b.hinge
        t = best_share(gain, a.norm2, self.inner, b.norm2, lam)
        return t, best_share((a.ell, b.ell), a.dual_norm2, self.dual_inner, b.dual_norm2, 1.0 / lam)

    def excess(self, lam: float, bound: GapBound, shares: tuple[Share, Share] | None = None) -> float:
        """The amount by which the bound is missed at lambda (<= 0: it is met) with these shares, or with the best."""
        t, tau = self.best(lam) if shares is None else shares
        return bound.excess(self.primal(lam, t), self.dual(lam, tau))

    def cells(self, bound: GapBound, interval: int, low: float, high: float) -> list[Cell]:
        """Cells that cover [low, high] from above; [] if the bound is missed somewhere between."""
        covering: list[Cell] = []
        waiting = [(low, high, 0)] if low < high else []
        while waiting:
            lo, hi, halvings = waiting.pop()
            middle = math.sqrt(lo) * math.sqrt(hi)
            shares = self.best(middle)
            if max(self.excess(lo, bound, shares), self.excess(hi, bound, shares)) <= 0.0:
                covering.append(Cell(interval, lo, hi, *shares, self.inner, self.dual_inner))
            elif self.excess(middle, bound, shares) <= 0.0 and halvings < MOST_HALVINGS and lo < middle < hi:
                waiting += [(lo, middle, halvings + 1), (middle, hi, halvings + 1)]
            else:
                return []
        return covering

    def worst(self, bound: GapBound, low: float, high: float) -> float:
        """The lambda in [low, high] at which the bound is missed by the largest margin (or met by the smallest)."""
        ratio = low / high
        return max((high * ratio ** (k / GRID) for k in range(1, GRID)), key=lambda lam: self.excess(lam, bound))


def cell_to_zero(point: SolvedPoint, bound: GapBound, interval: int) -> list[Cell]:
    """The cell (0, lambda_b] of s w_b; [] if the bound is missed there."""
    scale, hinge = 1.0, point.hinge
    if bound.relative and point.worst_hinge < 1.0:
        scale, hinge = 1.0 / (1.0 - point.worst_hinge), 0.0
    flat = point.dual_norm2 == 0.0  # if so, the dual value is ell at every lambda
    at_zero = bound.excess(hinge, point.ell if flat else 0.0)
    primal = 0.5 * point.lam * scale**2 * point.norm2 + hinge
    dual = point.ell - point.dual_norm2 / (2.0 * point.lam)
    if not (at_zero <= 0.0 and bound.excess(primal, dual) <= 0.0):
        return []
    return [Cell(interval, 0.0, point.lam, (scale, 0.0), (1.0, 0.0), 0.0, 0.0)]


def lowest(point: SolvedPoint, bound: GapBound) -> float:
    """The least lambda at which the point alone, with shares 1, meets the bound; the point has to meet it at its own lambda.

    There A lambda / 2 + B + C / (2 lambda) = 0, with A, B, C as in `Pair` and the bound on the gap in B; the smaller
    root in the form that does not cancel. The last part in a million keeps rounding on the safe side.
    """
    share, rest = (1.0 - bound.eps, 0.0) if bound.relative else (1.0, bound.eps)
    a, b, c = share * point.norm2, share * point.hinge - point.ell - rest, point.dual_norm2
    root = math.sqrt(max(b * b - a * c, 0.0))
    return min(c / (root - b) * (1.0 + 1e-6), point.lam) if root > b else point.lam


def cell_down_to(point: SolvedPoint, bound: GapBound, interval: int, low: float) -> list[Cell]:
    """The cell [low, lambda_b] of the last point alone; [] if the bound is missed there."""
    alone = Pair(point, SolvedPoint(0.0, 0.0, 0.0, 0.0, 0.0, 0.0), 0.0, 0.0, 0.0)
    shares: tuple[Share, Share] = (1.0, 0.0), (1.0, 0.0)
    if not all(alone.excess(lam, bound, shares) <= 0.0 for lam in (low, point.lam)):
        return []
    return [Cell(interval, low, point.lam, *shares, 0.0, 0.0)]


# -- cells as arrays --------------------------------------------------------------------------------------------------
CELL_COLUMNS = 9
"""Columns of `flat_cells`."""


def flat_cells(cells: list[Cell]) -> np.ndarray:
    """One row per cell: interval, low, high, t_a, t_b, tau_a, tau_b, G, S."""
    rows = [(c.interval, c.low, c.high, *c.primal, *c.dual, c.inner, c.dual_inner) for c in cells]
    return np.array(rows, dtype=float).reshape(-1, CELL_COLUMNS)


def cells_of(rows: np.ndarray) -> list[Cell]:
    """The cells of the rows of `flat_cells`."""
    return [Cell(int(k), lo, hi, (a, b), (c, d), G, S) for k, lo, hi, a, b, c, d, G, S in rows.tolist()]


def model_of(cells: list[Cell]) -> dict[str, np.ndarray]:
    """Cells as arrays of `storage.layout.CELLS` and `CELL_CERTIFICATES`."""
    rows = flat_cells(cells)
    return {
        "cell_interval": rows[:, 0].astype(np.int64),
        "cell_low": rows[:, 1],
        "cell_high": rows[:, 2],
        "cell_primal": rows[:, 3:5],
        "cell_scale": np.full(len(rows), math.inf),
        "cell_dual": rows[:, 5:7],
        "cell_inner": rows[:, 7],
        "cell_dual_inner": rows[:, 8],
    }


def bound_of(arrays: Mapping[str, np.ndarray], attrs: Mapping[str, object], lam: np.ndarray) -> np.ndarray:
    """The bound on the gap (or gap / primal) that the cells of path.zarr certify at `lam`, nan where there is no cell.

    Cells without shares tau are those of `path.rule=paper`: one point, of which w or the dual point is rescaled.
    """
    columns = [arrays[name] for name in ("lambda", "gap", "hinge", "loss_dual", "norm2")]
    columns.append(arrays["dual_norm2"] if "dual_norm2" in arrays else arrays["lambda"] ** 2 * arrays["norm2"])
    hinge_at_zero, relative = number(attrs, "hinge_at_zero"), bool(attrs["relative"])
    nothing = SolvedPoint(0.0, 0.0, hinge_at_zero, 0.0, 0.0, 0.0)
    solved = [SolvedPoint(*row) for row in zip(*columns, strict=True)]
    points = [zero(hinge_at_zero, number(attrs, "psi_norm2")), *solved, nothing]
    low, with_shares, bounds = arrays["cell_low"], "cell_dual" in arrays, []
    for x in np.ravel(lam).tolist():
        if not x >= low[-1]:
            bounds.append(math.nan)
            continue
        c = int(np.argmax(low <= x))
        k, t = max(int(arrays["cell_interval"][c]), 0), arrays["cell_primal"][c]
        (above, below), tau = points[k : k + 2], arrays["cell_dual"][c] if with_shares else t
        inner = (arrays["cell_inner"][c], arrays["cell_dual_inner"][c]) if with_shares else (0.0, 0.0)
        pair = Pair(above, below, inner[0], inner[1], hinge_at_zero)
        primal = pair.primal(x, t * min(1.0, arrays["cell_scale"][c] / x))
        if not with_shares:
            only = below if t[1] > 0.0 else above
            tau = t * (min(1.0, x / only.lam) if only.dual_norm2 > 0.0 else 1.0)
        elif low[c] == 0.0:
            tau = tau * (min(1.0, above.ell * x / above.dual_norm2) if above.dual_norm2 > 0.0 else 1.0)
            primal = 0.5 * x * t[0] ** 2 * above.norm2 + (above.hinge if t[0] == 1.0 else 0.0)
        gap = primal - pair.dual(x, tau)
        bounds.append(gap / primal if relative and primal > 0.0 else gap)  # P = 0: where no labelling has a loss
    return np.array(bounds).reshape(np.shape(lam))
