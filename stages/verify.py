"""Verify: every certificate of the path, recomputed from the supports alone (DESIGN 2.5, 2.6, 3.3).

Code of its own: it shares the structures with the solver and nothing else. From each breakpoint's labellings and weights it
rebuilds the dual point and w, makes an exact pass, and recomputes the gap g, the hinge R, the mean loss ell and the
squared norm N. The certificate of every lambda then follows by arithmetic; at some lambdas between breakpoints it is
also checked by an exact pass.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from stages.problems.protocol import JIT, Problem
from stages.solver.compiled import driver
from stages.solver.gaps import MapRanges, serial
from storage.files import write_json
from storage.results import read_path

TOLERANCE = 1e-7
"""Relative difference allowed between stored and recomputed numbers: rounding of sums in another order."""

Report = Callable[[int, int, str], None]


class CertificateError(RuntimeError):
    """A certificate that does not hold; says which lambda and which number."""


class Rebuilt(NamedTuple):
    """One breakpoint as recomputed."""

    v: np.ndarray
    w: np.ndarray
    gap: float
    hinge: float
    ell: float
    simplex_error: float
    rebuild_error: float
    primal: float
    dual: float

    @property
    def norm2(self) -> float:
        return float(np.sum(self.w**2))


@driver
def rebuild_driver(fingerprint: str) -> Any:
    """`rebuild(P, offset, alpha, label, label_offset, mu, ell, psi) -> largest |sum alpha - 1| or -alpha`.

    mu (flat local), ell (n,) and psi = (1/n) sum_i B_i (m_i(y_i) - mu_i) (d,) come in zeroed; losses are recomputed.
    """

    @njit(cache=True, **JIT)
    def rebuild(P, offset, alpha, label, label_offset, mu, ell, psi):
        fingerprint  # noqa: B018
        n = ell.size
        worst = 0.0
        for i in range(n):
            lo, hi = P.local_ptr[i], P.local_ptr[i + 1]
            first, last = P.label_ptr[i], P.label_ptr[i + 1]
            total = 0.0
            for a in range(offset[i], offset[i + 1]):
                y = label[label_offset[a] : label_offset[a + 1]]
                total += alpha[a]
                worst = max(worst, -alpha[a])
                P.add(i, y, alpha[a], mu[lo:hi])
                ell[i] += alpha[a] * P.loss(i, y)
            worst = max(worst, abs(total - 1.0))
            residual = -mu[lo:hi]
            P.add(i, P.truth[first:last], 1.0, residual)
            P.push(i, 1.0 / n, residual, psi)
        return worst

    return rebuild


@driver
def hinge_driver(fingerprint: str) -> Any:
    """`hinge(P, w, mu, ell, hinges, gaps)`: one oracle call a block, written out once more for independence."""

    @njit(cache=True, **JIT)
    def hinge(P, w, mu, ell, hinges, gaps):
        fingerprint  # noqa: B018
        scratch = P.scratch()
        for i in range(ell.size):
            theta = np.empty(P.local_ptr[i + 1] - P.local_ptr[i])
            P.scores(i, w, theta)
            truth = P.truth[P.label_ptr[i] : P.label_ptr[i + 1]]
            y = np.empty_like(truth)
            P.max_oracle(i, theta, y, scratch)
            most = P.loss(i, y) + P.value(i, theta, y)
            hinges[i] = most - P.value(i, theta, truth)
            inside = 0.0
            for j in range(theta.size):
                inside += theta[j] * mu[P.local_ptr[i] + j]
            gaps[i] = (most - ell[i] - inside) / ell.size

    return hinge


def verify(
    problem: Problem,
    run_dir: Path,
    *,
    samples: int = 20,
    seed: int = 0,
    map_ranges: MapRanges = serial,
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
        Naming the first lambda whose certificate does not hold. A heuristic path claims none and raises none.
    """
    arrays, attrs = read_path(run_dir / "path.zarr")
    audit = Audit(problem, arrays, attrs, map_ranges, report)
    rebuilt = audit.breakpoints()
    intervals = audit.intervals(rebuilt) if attrs["kind"] in ("regpath", "heuristic") else []
    sampled = audit.sampled(rebuilt, samples, seed) if intervals else []
    eps = float(attrs["eps"])
    gaps = [b.gap for b in rebuilt] + intervals + [s["gap"] for s in sampled]
    result = {
        "certified": bool(attrs["certified"]) and not audit.broken,
        "epsilon": eps,
        "max_gap": max(gaps),
        "max_rebuild_error": max(b.rebuild_error for b in rebuilt),
        "max_simplex_error": max(b.simplex_error for b in rebuilt),
        "lambda_low": float(arrays["lambda_low"][-1]),
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
        map_ranges: MapRanges,
        report: Report,
    ) -> None:
        self.problem, self.arrays, self.attrs = problem, arrays, attrs
        self.map_ranges, self.report = map_ranges, report
        self.broken: list[str] = []

    def exact(self, w: np.ndarray, mu: np.ndarray, ell: np.ndarray) -> tuple[float, float]:
        """(sum of block gaps, mean hinge) at w."""
        hinges, gaps = np.empty(self.problem.n), np.empty(self.problem.n)
        hinge_driver(self.problem)(self.problem, w, mu, ell, hinges, gaps)
        return math.fsum(gaps), math.fsum(hinges) / self.problem.n

    def clip(self, v: np.ndarray) -> np.ndarray:
        P = self.problem
        return np.clip(v, P.lower, P.upper) if P.lower.size else v

    def dual(self, ell: float, v: np.ndarray, lam: float) -> float:
        """min over the box of the Lagrangian: ell + min_w lambda/2 ||w||^2 - lambda <v, w>."""
        w = self.clip(v)
        return ell + lam * float(np.sum(w * (0.5 * w - v)))

    def rebuild(self, b: int) -> Rebuilt:
        """Breakpoint b from its supports."""
        P, A = self.problem, self.arrays
        lam = float(A["lambda"][b])
        mu, ell, psi = np.zeros(int(P.local_ptr[-1])), np.zeros(P.n), np.zeros(P.d)
        supports = A["support_offset"][b], A["support_alpha"], A["support_label"], A["label_offset"]
        simplex = rebuild_driver(P)(P, *supports, mu, ell, psi)
        v = psi / lam
        stored = A["weights"][b]
        averaged = self.attrs["averaging"] != "none"
        w = stored if averaged else self.clip(v)
        gap, hinge = self.exact(w, mu, ell)
        mean_ell = math.fsum(ell) / P.n
        primal = 0.5 * lam * float(np.sum(w**2)) + hinge
        dual = self.dual(mean_ell, v, lam)
        error = 0.0 if averaged else float(np.max(np.abs(w - stored)) / max(1.0, float(np.max(np.abs(w)))))
        return Rebuilt(v, w, primal - dual if averaged else gap, hinge, mean_ell, simplex, error, primal, dual)

    def breakpoints(self) -> list[Rebuilt]:
        """All breakpoints recomputed and compared with what is stored."""
        total = self.arrays["lambda"].size
        results: list[Rebuilt | None] = [None] * total

        def part(start: int, stop: int) -> None:
            for b in range(start, stop):
                results[b] = self.rebuild(b)
                self.report(b + 1, total, "verify")

        self.map_ranges(part, [(b, b + 1) for b in range(total)])
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

    def intervals(self, rebuilt: list[Rebuilt]) -> list[float]:
        """The worst gap of each breakpoint's interval, by arithmetic on the recomputed numbers; overlaps checked."""
        A, eps = self.arrays, float(self.attrs["eps"])
        lams, lows = A["lambda"], A["lambda_low"]
        worst = []
        for b, r in enumerate(rebuilt):
            lam, low = float(lams[b]), float(lows[b])
            most = self.gap_below(r, lam, low) if low > 0.0 else max(r.gap, r.hinge) if r.norm2 > 0.0 else r.gap
            if b == 0 and self.attrs["rule"] == "one_sided":
                most = max(most, self._worst_above(r, lam))
            worst.append(most)
            if most > eps * (1.0 + TOLERANCE):
                self.broken.append(
                    f"lambda {low:.9g}..{lam:.9g} (breakpoint {b}): the gap reaches {most:.9g} > {eps:g}"
                )
            if b + 1 < len(rebuilt) and float(lams[b + 1]) < low * (1.0 - 1e-12):
                self.broken.append(f"lambda {float(lams[b + 1]):.9g}..{low:.9g}: no breakpoint covers this interval")
        if self.attrs["status"] == "CONVERGED" and float(lows[-1]) > max(float(self.attrs["lambda_min"]), 0.0) + 1e-300:
            self.broken.append(f"lambda {float(lows[-1]):.9g}: the path ends above lambda_min without reaching its end")
        return worst

    def gap_below(self, r: Rebuilt, lam: float, low: float) -> float:
        """Gap of (w^j, its dual point) at low <= lam: monotone in between, so this is the interval's worst."""
        if self.attrs["rule"] == "paper":
            return r.gap + (1.0 - low / lam) * (r.hinge - r.gap)
        return r.gap + r.norm2 * (lam - low) ** 2 / (2.0 * low)

    def _worst_above(self, r: Rebuilt, lam: float) -> float:
        """The worst gap over [lambda_1, lambda_top], on a fine grid in log lambda and at the point where t leaves 1."""
        top = float(self.attrs["lam_top"])
        if top <= lam:
            return r.gap
        turn = (float(self.attrs["hinge_at_zero"]) - r.hinge) / r.norm2 if r.norm2 > 0.0 else lam
        grid = np.append(np.geomspace(lam, top, 1000), np.clip(turn, lam, top))
        return max(self.bound_above(r, lam, float(x)) for x in grid)

    def bound_above(self, r: Rebuilt, lam: float, at: float) -> float:
        t = self.shrink(r, at)
        zero = float(self.attrs["hinge_at_zero"])
        return 0.5 * at * t * t * r.norm2 + t * r.hinge + (1 - t) * zero - r.ell + lam**2 * r.norm2 / (2.0 * at)

    def shrink(self, r: Rebuilt, at: float) -> float:
        if r.norm2 == 0.0:
            return 1.0
        return min(max((float(self.attrs["hinge_at_zero"]) - r.hinge) / (at * r.norm2), 0.0), 1.0)

    def sampled(self, rebuilt: list[Rebuilt], samples: int, seed: int) -> list[dict[str, float]]:
        """Exact passes at random lambdas: from a tenth of the last breakpoint (or the path's end) to above its top."""
        A, eps = self.arrays, float(self.attrs["eps"])
        lams = A["lambda"]
        bottom = max(float(A["lambda_low"][-1]), 0.1 * float(lams[-1]))
        top = 1.1 * max(float(self.attrs["lam_top"]), float(lams[0]))
        draws = np.exp(np.random.default_rng(seed).uniform(np.log(bottom), np.log(top), samples))
        gaps = np.empty(samples)

        def part(start: int, stop: int) -> None:
            for k in range(start, stop):
                gaps[k] = self.gap_at(rebuilt, float(draws[k]))

        self.map_ranges(part, [(k, k + 1) for k in range(samples)])
        for lam, gap in zip(draws, gaps, strict=True):
            if not gap <= eps * (1.0 + TOLERANCE):
                self.broken.append(f"lambda {lam:.9g} (sampled): an exact pass finds a gap of {gap:.9g} > {eps:g}")
        return [{"lambda": float(lam), "gap": float(gap)} for lam, gap in zip(draws, gaps, strict=True)]

    def gap_at(self, rebuilt: list[Rebuilt], lam: float) -> float:
        """P_lambda(w(lambda)) by an exact pass, less the dual value of the point that certifies lambda."""
        lams = self.arrays["lambda"]
        b = max(int(np.searchsorted(-lams, -lam, side="right")) - 1, 0)
        r, here = rebuilt[b], float(lams[b])
        w, tau = r.w, 1.0
        if lam > here:  # above the first breakpoint
            paper = self.attrs["rule"] == "paper"
            if not paper and lam >= float(self.attrs["lam_top"]):
                return float(self.attrs["hinge_at_zero"]) - self._dual_at_zero(lam)
            w = (here / lam if paper else self.shrink(r, lam)) * r.w
        elif self.attrs["rule"] == "paper":
            tau = lam / here
        elif lam < float(self.arrays["lambda_low"][b]) or self.arrays["lambda_low"][b] == 0.0:
            tau = min(1.0, r.ell * lam / (here**2 * r.norm2)) if r.norm2 > 0.0 else 1.0
        P = self.problem
        _, hinge = self.exact(w, np.zeros(int(P.local_ptr[-1])), np.zeros(P.n))
        primal = 0.5 * lam * float(np.sum(w**2)) + hinge
        return primal - self.dual(tau * r.ell, tau * r.v * here / lam, lam)

    def _dual_at_zero(self, lam: float) -> float:
        return float(self.attrs["hinge_at_zero"]) - float(self.attrs["psi_norm2"]) / (2.0 * lam)
