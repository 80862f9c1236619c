"""Verify: every certificate of the path, recomputed from the supports alone (DESIGN 2.5, 2.6, 3.3).

From each breakpoint's labellings and weights `rebuild` makes the dual point and w, and by an exact pass the gap g, the
hinge R, the mean loss ell and the squared norm N; likewise the dual point of w = 0. The certificate of every lambda then
follows by arithmetic; at some lambdas between breakpoints it is also checked by an exact pass.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from stages.certify.cells import Cells
from stages.certify.recompute import Rebuilt, Zero, clip, dual_at, dual_point, primal_at, rebuild, rebuild_zero
from stages.parallel import HERE, Spread
from stages.problems.protocol import Problem
from storage.files import write_json
from storage.places import Place
from storage.results import weights_of, without_weights

TOLERANCE = 1e-7
"""Relative difference allowed between stored and recomputed numbers: rounding of sums in another order."""

PATHS = ("regpath", "heuristic")
"""Kinds whose breakpoints certify the lambdas between them."""

LIMITS = ("PASS_LIMIT", "ORACLE_LIMIT")
"""Ends of a path that may leave its last lambda unfinished."""

Report = Callable[[int, int, str], None]


class CertificateError(RuntimeError):
    """A certificate that does not hold; says which lambda and which number."""


def verify(
    problem: Problem,
    run_dir: Place,
    *,
    samples: int = 20,
    seed: int = 0,
    spread: Spread = HERE,
    report: Report = lambda done, total, what: None,
) -> dict[str, Any]:
    """Check every breakpoint and the certificates between them; writes ``verify.json``.

    Returns
    -------
    dict
        The `verify` part of ``result.json``: certified, epsilon, max_gap, max_rebuild_error, max_simplex_error, samples.

    Raises
    ------
    CertificateError
        Naming the first lambda whose certificate does not hold. A heuristic path claims none and raises none; nor
        does a path that ended at a limit for the lambda it did not finish.
    """
    arrays, attrs = without_weights(run_dir / "path.zarr")
    audit = Audit(problem, arrays, attrs, spread, report, weights_of(run_dir / "path.zarr"))
    rebuilt = audit.breakpoints()
    intervals = audit.intervals(rebuilt) if attrs["kind"] in PATHS else []
    sampled = audit.sampled(rebuilt, samples, seed) if intervals else []
    eps = float(attrs["eps"])
    closed = arrays["lambda_low"][: audit.claimed] if audit.cells is None else audit.cells.low
    relative = audit.cells is not None and attrs["relative"]
    gaps = [b.gap / (b.primal if relative else 1.0) for b in rebuilt] + intervals + [s["gap"] for s in sampled]
    result = {
        "certified": bool(attrs["certified"]) and not audit.broken and all(map(audit.claims, range(len(rebuilt)))),
        "epsilon": eps,
        "max_gap": max(gaps),
        "max_rebuild_error": max(b.rebuild_error for b in rebuilt),
        "max_simplex_error": max(b.simplex_error for b in rebuilt),
        "lambda_low": float(closed[-1]) if closed.size else None,
        "samples": sampled,
        "broken": audit.broken,
    }
    write_json(run_dir / "verify.json", result)
    if audit.broken and attrs["certified"]:
        raise CertificateError(
            f"{run_dir}: {len(audit.broken)} certificate(s) do not hold; the first: {audit.broken[0]}. See verify.json."
        )
    return result


class Audit:
    """The checks over one path; what fails is collected in `broken`."""

    def __init__(
        self,
        problem: Problem,
        arrays: Mapping[str, np.ndarray],
        attrs: Mapping[str, Any],
        spread: Spread,
        report: Report,
        weights: Callable[[int], np.ndarray],
    ) -> None:
        self.weights = weights
        self.problem, self.arrays, self.attrs = problem, arrays, attrs
        self.spread, self.report = spread, report
        self.broken: list[str] = []
        self.zero = Zero(0.0, 0.0, np.empty(0))
        self.cells: Cells | None = None
        """Of a two-sided path, when its breakpoints are rebuilt."""
        self.claimed = arrays["lambda"].size
        unfinished = attrs["kind"] in PATHS and attrs["status"] in LIMITS and attrs["rule"] != "two_sided"
        if unfinished and not float(arrays["gap"][-1]) <= self.allowed(-1):
            self.claimed -= 1  # what a limit left unfinished is claimed by nobody

    def claims(self, b: int) -> bool:
        """Whether breakpoint b is said to be solved to its tolerance."""
        if self.attrs["rule"] == "two_sided":
            return float(self.arrays["gap"][b]) <= self.allowed(b)
        if self.attrs["kind"] in PATHS:
            return b < self.claimed
        return str(self.attrs["status_meanings"][self.arrays["status"][b]]) == "CONVERGED"

    def allowed(self, b: int) -> float:
        """The gap that breakpoint b claims to stay below."""
        return float(self.attrs["eps"]) * (float(self.arrays["dual"][b]) if self.attrs.get("relative") else 1.0)

    def breakpoints(self) -> list[Rebuilt]:
        """All breakpoints recomputed and compared with what is stored."""
        total = self.arrays["lambda"].size
        results: list[Rebuilt | None] = [None] * total

        own = bool(self.attrs["own_primal"])

        def recompute(b: int, inner: Spread) -> None:
            results[b] = rebuild(self.problem, self.arrays, b, self.weights(b), own, inner)
            self.report(b + 1, total, "verify")

        self.spread.points(recompute, total)
        rebuilt = [r for r in results if r is not None]
        for b, r in enumerate(rebuilt):
            self._compare(b, r)
        return rebuilt

    def _compare(self, b: int, r: Rebuilt) -> None:
        A = self.arrays
        lam = float(A["lambda"][b])
        size = 1.0 + abs(r.primal)
        where = f"lambda {lam:.9g} (breakpoint {b})"
        found = {
            "gap": r.gap,
            "hinge": r.hinge,
            "loss_dual": r.ell,
            "norm2": r.norm2,
            "primal": r.primal,
            "dual": r.dual,
        }
        heuristic = not self.attrs["certified"]
        for name, value in found.items():
            if heuristic and name in ("gap", "hinge", "primal"):
                continue  # stale by definition
            stored = float(A[name][b])
            if not abs(stored - value) <= TOLERANCE * (size + abs(value)):
                self.broken.append(f"{where}: {name} is stored as {stored:.9g}, recomputed {value:.9g}")
        if not abs(r.primal - r.dual - r.gap) <= TOLERANCE * size:
            self.broken.append(f"{where}: primal - dual is {r.primal - r.dual:.9g}, the block gaps sum to {r.gap:.9g}")
        if not r.simplex_error <= 1e-9:
            self.broken.append(f"{where}: a block's weights leave the simplex by {r.simplex_error:.3g}")
        if not r.rebuild_error <= TOLERANCE:
            self.broken.append(
                f"{where}: the stored weights differ by {r.rebuild_error:.3g} from those of the supports"
            )
        if not r.gap >= -TOLERANCE * size:
            self.broken.append(f"{where}: the duality gap {r.gap:.9g} is negative")
        if not heuristic and self.claims(b) and not r.gap <= self.allowed(b) + TOLERANCE * size:
            self.broken.append(f"{where}: the duality gap {r.gap:.9g} is above {self.allowed(b):.9g}")

    def intervals(self, rebuilt: list[Rebuilt]) -> list[float]:
        """The worst gap of each breakpoint's interval, by arithmetic on the recomputed numbers; overlaps checked."""
        A, eps = self.arrays, float(self.attrs["eps"])
        lams, lows = A["lambda"][: self.claimed], A["lambda_low"][: self.claimed]
        self._top()
        if self.attrs["rule"] == "two_sided":
            self.cells = Cells(self.problem, A, self.attrs, rebuilt, self.zero, TOLERANCE, self.spread)
            worst = self.cells.check()
            self.broken += self.cells.broken
            return worst
        worst = []
        for b, r in enumerate(rebuilt[: self.claimed]):
            lam, low = float(lams[b]), float(lows[b])
            most = self.gap_below(r, lam, low)
            if b == 0:
                most = max(most, self._worst_above(r, lam))
            worst.append(most)
            if not most <= eps * (1.0 + TOLERANCE):
                self.broken.append(
                    f"lambda {low:.9g}..{lam:.9g} (breakpoint {b}): the gap reaches {most:.9g} > {eps:g}"
                )
            if b + 1 < len(lams) and not low * (1.0 - 1e-12) <= float(lams[b + 1]) < lam:
                self.broken.append(f"lambda {float(lams[b + 1]):.9g}..{low:.9g}: no breakpoint covers this interval")
        if self.attrs["status"] == "CONVERGED" and not float(lows[-1]) <= float(self.attrs["lambda_min"]) + 1e-300:
            self.broken.append(f"lambda {float(lows[-1]):.9g}: the path ends above lambda_min without reaching its end")
        return worst

    def _top(self) -> None:
        """The dual point of w = 0, on which all lambdas above the first breakpoint rest."""
        self.zero = rebuild_zero(self.problem, self.spread)
        top, eps = float(self.attrs["lam_top"]), float(self.attrs["eps"])
        for name, value in (("hinge_at_zero", self.zero.hinge), ("psi_norm2", self.zero.psi_norm2)):
            stored = float(self.attrs[name])
            if not abs(stored - value) <= TOLERANCE * (1.0 + abs(value)):
                self.broken.append(f"lambda {top:.9g} and above: {name} is stored as {stored:.9g}, is {value:.9g}")
        gap = self.zero.psi_norm2 / (2.0 * top)
        if self.attrs["rule"] == "one_sided" and not gap <= eps * (1.0 + TOLERANCE):
            self.broken.append(f"lambda {top:.9g}: the gap of w = 0 is {gap:.9g} > {eps:g}")

    def gap_below(self, r: Rebuilt, lam: float, low: float) -> float:
        """The worst gap of (w^j, its dual point) over [low, lam]: that at low; over all of (0, lam] if low is 0."""
        if not low > 0.0:
            end = max(r.gap, r.hinge) if r.norm2 > 0.0 else r.gap
            return end if low == 0.0 else math.inf
        if self.attrs["rule"] == "paper":
            return r.gap + (1.0 - low / lam) * (r.hinge - r.gap)
        return r.gap + r.norm2 * (lam - low) ** 2 / (2.0 * low)

    def _worst_above(self, r: Rebuilt, lam: float) -> float:
        """The worst gap above the first breakpoint.

        one_sided: over [lambda_1, lambda_top], on a fine grid in log lambda and at the point where t leaves 1. paper: of
        s w with s = lambda_1 / lambda and the same alpha the gap is convex in s, g at s = 1 and R_0 - ell at s = 0.
        """
        if self.attrs["rule"] == "paper":
            return max(r.gap, self.zero.hinge - r.ell)
        top = float(self.attrs["lam_top"])
        if top <= lam:
            return r.gap
        turn = (self.zero.hinge - r.hinge) / r.norm2 if r.norm2 > 0.0 else lam
        grid = np.append(np.geomspace(lam, top, 1000), np.clip(turn, lam, top))
        return float(max(self.bound_above(r, lam, float(x)) for x in grid))

    def bound_above(self, r: Rebuilt, lam: float, at: float) -> float:
        """Gap at `at` >= lam of t w, t = `shrink`, with the same alpha."""
        t = self.shrink(r, at)
        primal = 0.5 * at * t * t * r.norm2 + t * r.hinge + (1.0 - t) * self.zero.hinge
        return primal - r.ell + lam**2 * r.norm2 / (2.0 * at)

    def shrink(self, r: Rebuilt, at: float) -> float:
        """By how much the first breakpoint's w is scaled at a lambda above it."""
        return min(max((self.zero.hinge - r.hinge) / (at * r.norm2), 0.0), 1.0) if r.norm2 > 0.0 else 1.0

    def sampled(self, rebuilt: list[Rebuilt], samples: int, seed: int) -> list[dict[str, float]]:
        """Exact passes at random lambdas: from a tenth of the last breakpoint (or the path's end) to above its top."""
        A, eps = self.arrays, float(self.attrs["eps"])
        lams, lows = A["lambda"][: self.claimed], A["lambda_low"][: self.claimed]
        if self.cells is not None:
            lows = self.cells.low
        bottom = max(float(lows[-1]), 0.1 * float(lams[-1]))
        top = 1.1 * max(float(self.attrs["lam_top"]), float(lams[0]))
        draws = np.exp(np.random.default_rng(seed).uniform(np.log(bottom), np.log(top), samples))
        gaps = np.empty(samples)

        def sample(k: int, inner: Spread) -> None:
            lam = float(draws[k])
            gaps[k] = self.gap_at(rebuilt, lam, inner) if self.cells is None else self.cells.gap_at(lam, inner)

        self.spread.points(sample, samples)
        for lam, gap in zip(draws, gaps, strict=True):
            if not gap <= eps * (1.0 + TOLERANCE):
                self.broken.append(f"lambda {lam:.9g} (sampled): an exact pass finds a gap of {gap:.9g} > {eps:g}")
        return [{"lambda": float(lam), "gap": float(gap)} for lam, gap in zip(draws, gaps, strict=True)]

    def gap_at(self, rebuilt: list[Rebuilt], lam: float, spread: Spread = HERE) -> float:
        """P_lambda(w(lambda)) by an exact pass, less the dual value of the point that certifies lambda."""
        lams = self.arrays["lambda"][: self.claimed]
        b = max(int(np.searchsorted(-lams, -lam, side="right")) - 1, 0)
        r, here = rebuilt[b], float(lams[b])
        v = dual_point(self.problem, self.arrays, b).v
        w, tau = clip(self.problem, v), 1.0
        if lam > here:  # above the first breakpoint
            paper = self.attrs["rule"] == "paper"
            if not paper and lam >= float(self.attrs["lam_top"]):
                return self.zero.psi_norm2 / (2.0 * lam)
            w = (here / lam if paper else self.shrink(r, lam)) * w
        elif self.attrs["rule"] == "paper":
            tau = lam / here
        elif lam < float(self.arrays["lambda_low"][b]) or self.arrays["lambda_low"][b] == 0.0:
            tau = min(1.0, r.ell * lam / (here**2 * r.norm2)) if r.norm2 > 0.0 else 1.0
        return primal_at(self.problem, w, lam, spread) - dual_at(self.problem, tau * r.ell, tau * v * here / lam, lam)
