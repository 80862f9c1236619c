"""Recomputes a solved lambda from its labellings and their weights alone.

The dual point, w, an exact pass and every number that a certificate rests on are computed by code that is separate from the
solver's and sums in another order.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numba import njit

from gapwise.stages.certify.kernels import completed, norm2, product
from gapwise.stages.certify.oracle import OracleError, compare_stored, exact_pass
from gapwise.stages.problems.compiled import driver
from gapwise.stages.problems.parallel import HERE, Spread
from gapwise.stages.problems.protocol import JIT, Problem, frozen, max_local_size
from gapwise.stages.problems.simd import one_type


class Rebuilt(NamedTuple):
    """One breakpoint as recomputed."""

    norm2: float
    gap: float
    hinge: float
    ell: float
    simplex_error: float
    rebuild_error: float
    """Largest difference between a stored and a recomputed weight, as a share of the largest weight."""
    primal: float
    dual: float
    largest: float
    """max_j |w_j|, stored or recomputed"""
    psi_scale: float
    """mean_i ||psi_i|| of the dual point"""
    bound_slack: float = 0.0
    """The part of gap and hinge that is due to the bounds on an approximate oracle's maxima."""
    proven: float = 1.0
    """Share of the blocks whose answer attains the bound."""
    dual_norm2: float = math.nan
    """||q||^2 of the dual point, q = clip(psi) = lambda w(alpha)"""


class Zero(NamedTuple):
    """What certifies w = 0: with the largest losses as dual point its gap at lambda is psi_norm2 / (2 lambda)."""

    hinge: float
    """R_0: mean of the largest losses"""
    psi_norm2: float
    """||psi~||^2, clipped to the cone"""
    psi: np.ndarray
    """psi~ itself, not clipped (d,)"""
    psi_scale: float
    """mean_i ||psi_i||"""


CHUNK, PER_BLOCK = 50, 256
"""Blocks whose contributions are added up plainly, unless d is so large that more than PER_BLOCK numbers a block would then
be added with compensation."""


def chunk_length(d: int) -> int:
    """Blocks in a chunk of `rebuild`."""
    return max(CHUNK, d // PER_BLOCK)


@driver
def rebuild_driver(fingerprint: str) -> Callable[..., None]:
    """`rebuild(P, offset, alpha, label, label_offset, ell, psi, sums, worst_and_scale, work, chunk, start, stop)`:
    blocks start to stop - 1; calls for consecutive ranges come in order and cover all blocks, `sums` (2, d) and
    `worst_and_scale` (2,) begin at 0. work (2, largest p_i) is workspace: fresh memory for each block would take longer
    than what is computed in it.

    worst_and_scale <- (largest |sum alpha - 1| or -alpha, scale). ell (n,) and psi = (1/n) sum_i B_i (m_i(y_i) - mu_i) (d,)
    come in zeroed. Losses are recomputed. scale is mean_i ||B_i (m_i(y_i) - mu_i)||. The sums of `chunk` blocks each are
    added up with compensation (Neumaier).
    """

    @njit(cache=True, **JIT)
    def rebuild(P, offset, alpha, label, label_offset, ell, psi, sums, worst_and_scale, work, chunk, start, stop):
        fingerprint  # noqa: B018
        n, label = ell.size, one_type(label)
        worst, scale = worst_and_scale[0], worst_and_scale[1]
        part, lost = sums[0], sums[1]
        for i in range(start, stop):
            lo, hi = P.local_ptr[i], P.local_ptr[i + 1]
            first, last = P.label_ptr[i], P.label_ptr[i + 1]
            mean, residual = work[0, : hi - lo], work[1, : hi - lo]
            mean[:] = 0.0
            total = 0.0
            for a in range(offset[i], offset[i + 1]):
                y = label[label_offset[a] : label_offset[a + 1]]
                total += alpha[a]
                worst = max(worst, -alpha[a])
                P.add(i, y, alpha[a], mean)
                ell[i] += alpha[a] * P.loss(i, y)
            worst = max(worst, abs(total - 1.0))
            for j in range(hi - lo):
                residual[j] = -mean[j]
            P.add(i, one_type(P.truth[first:last]), 1.0, residual)
            P.push(i, 1.0, residual, part)
            scale += np.sqrt(max(P.norm2(i, residual), 0.0))
            if (i + 1) % chunk == 0 or i == n - 1:
                for j in range(psi.size):
                    total = psi[j] + part[j]
                    if abs(psi[j]) >= abs(part[j]):
                        lost[j] += (psi[j] - total) + part[j]
                    else:
                        lost[j] += (part[j] - total) + psi[j]
                    psi[j] = total
                part[:] = 0.0
        if stop == n:
            for j in range(psi.size):
                psi[j] = (psi[j] + lost[j]) / n
            scale /= n
        worst_and_scale[0], worst_and_scale[1] = worst, scale

    return rebuild


def primal_at(problem: Problem, w: np.ndarray, lam: float, spread: Spread = HERE, *, least: bool = False) -> float:
    """P_lambda(w) by an exact pass; OracleError if an answer of the max-oracle is beaten.

    Where the oracle is approximate, the bound on it; with `least`, the lower estimate. That is what can disprove a
    certificate between breakpoints, which bounds P at a mixture of solved points by convexity: the oracle's bounds at the
    mixture itself may be looser.
    """
    answered = exact_pass(problem, w, spread, decode=False)
    hinges = answered.least_hinges if least else answered.hinges
    return 0.5 * lam * norm2(problem, w) + math.fsum(hinges) / problem.n


def share(gap: float, primal: float) -> float:
    """gap / primal; the gap itself where the primal value is 0, as where no labelling has a loss."""
    return gap if primal <= 0.0 else gap / primal


def worst(gaps: Sequence[float]) -> float:
    """The largest; nan if one is, which certifies nothing."""
    return float(np.max(gaps))


def clip(problem: Problem, v: np.ndarray) -> np.ndarray:
    """The point of the box nearest to v."""
    return np.clip(v, problem.lower, problem.upper) if problem.lower.size else v


def dual_at(problem: Problem, ell: float, v: np.ndarray, lam: float) -> float:
    """min over the box of the Lagrangian: ell + min_w lambda/2 ||w||^2 - lambda <v, w>."""
    w = clip(problem, v)
    return ell + lam * product(problem, w, 0.5 * w - v)


class RebuiltDual(NamedTuple):
    """A dual point, computed from its supports."""

    v: np.ndarray
    ell: np.ndarray
    simplex_error: float
    psi_scale: float
    """mean_i ||psi_i||, psi_i = B_i (m_i(y_i) - mu_i)"""


def supports_of(arrays: Mapping[str, np.ndarray], b: int) -> tuple[np.ndarray, ...]:
    """Breakpoint b's support_offset (n + 1,), and the support_alpha, support_label and label_offset that it refers to."""
    names = ("support_alpha", "support_label", "label_offset")
    return frozen(arrays["support_offset"][b]), *(frozen(arrays[name]) for name in names)


def summed(
    problem: Problem, supports: tuple[np.ndarray, ...], ell: np.ndarray, spread: Spread
) -> tuple[np.ndarray, float, float]:
    """What `rebuild_driver` makes of a dual point: psi (d,), |sum alpha - 1| or -alpha at the worst, scale."""
    P, psi, sums, worst_and_scale = problem, np.zeros(problem.d), np.zeros((2, problem.d)), np.zeros(2)
    run, rest = rebuild_driver(P), (worst_and_scale, np.empty((2, max_local_size(P))), chunk_length(P.d))
    spread.in_order(lambda start, stop: run(P, *supports, ell, psi, sums, *rest, start, stop), P)
    return psi, float(worst_and_scale[0]), float(worst_and_scale[1])


KEPT = 2**28
"""Most bytes of dual points that are kept for their next use, unless two take more."""


class DualPoints:
    """v (d,) and ell (n,) of any breakpoint of a path, kept while memory allows.

    A dual point is needed for its breakpoint, for the inner products with both neighbours, and at sampled lambdas. Making it
    again each time took half of the time of an audit of CoNLL-2000 (17 breakpoints, d = 1,643,026).
    """

    def __init__(self, problem: Problem, arrays: Mapping[str, np.ndarray]) -> None:
        self._problem, self._arrays = problem, arrays
        self._kept: dict[int, RebuiltDual] = {}

    def __call__(self, b: int, spread: Spread = HERE) -> RebuiltDual:
        """That of breakpoint b."""
        point = self._kept.get(b)
        if point is None:
            P, ell = self._problem, np.zeros(self._problem.n)
            psi, simplex, scale = summed(P, supports_of(self._arrays, b), ell, spread)
            point = RebuiltDual(completed(P, psi) / float(self._arrays["lambda"][b]), ell, simplex, scale)
            self._kept[b] = point
            size = 8 * (point.v.size + point.ell.size)
            for other in list(self._kept)[: -max(2, KEPT // size)]:  # the oldest ones
                self._kept.pop(other, None)  # another thread may have done so
        return point


def rebuild(
    problem: Problem,
    arrays: Mapping[str, np.ndarray],
    b: int,
    stored: np.ndarray,
    own: bool,
    spread: Spread = HERE,
    *,
    duals: DualPoints | None,
) -> Rebuilt:
    """Breakpoint b, whose weights are `stored`. With `own`, w does not follow from the supports, and the gap is P - D.

    Without dual points only the primal value is known; the rest is nan.
    """
    if duals is None:
        lam, w = float(arrays["lambda"][b]), completed(problem, stored)
        size2, primal = norm2(problem, w), primal_at(problem, w, lam, spread)
        hinge, most = primal - 0.5 * lam * size2, _largest_entry(stored)
        return Rebuilt(size2, math.nan, hinge, math.nan, 0.0, 0.0, primal, math.nan, most, 0.0)
    lam, point = float(arrays["lambda"][b]), duals(b, spread)
    w = completed(problem, stored) if own else clip(problem, point.v)
    answered = exact_pass(problem, w, spread, decode=True)
    inside = compare_stored(problem, w, answered, supports_of(arrays, b), spread)
    hinge, mean_ell, size2 = math.fsum(answered.hinges) / problem.n, math.fsum(point.ell) / problem.n, norm2(problem, w)
    primal = 0.5 * lam * size2 + hinge
    value = dual_at(problem, mean_ell, point.v, lam)
    size = max(_largest_entry(stored), _largest_entry(w))
    error = 0.0 if w is stored or size == 0.0 else _largest_entry(w - stored) / size
    gap = primal - value if own else math.fsum((answered.most - point.ell - inside) / problem.n)
    numbers = size2, gap, hinge, mean_ell, point.simplex_error, error, primal, value, size, point.psi_scale
    dual_norm2 = lam**2 * (norm2(problem, clip(problem, point.v)) if own else size2)
    return Rebuilt(*numbers, answered.slack / problem.n, float(np.mean(answered.proven)), dual_norm2)


def _largest_entry(w: np.ndarray) -> float:
    return float(np.max(np.abs(w), initial=0.0))


def rebuild_zero(problem: Problem, spread: Spread = HERE) -> Zero:
    """The dual point of w = 0 from an exact pass."""
    P = problem
    answered = exact_pass(P, np.zeros(P.d), spread, decode=True)
    if not answered.proven.all():
        i = int(np.argmin(answered.proven))
        raise OracleError(
            f"block {i}: the bound exceeds the oracle's answer by {answered.most[i] - answered.reached[i]:.3g}; above the "
            "first breakpoint a path rests on the largest losses themselves"
        )
    hinge = math.fsum(answered.hinges) / P.n
    labels = answered.labels if hinge > 0.0 else P.truth  # if no labelling has a loss, the truth's is the largest
    vertices = frozen(np.arange(P.n + 1)), frozen(np.ones(P.n)), frozen(labels), P.label_ptr
    psi, _, scale = summed(P, vertices, np.zeros(P.n), spread)
    psi = completed(P, psi)
    return Zero(hinge, norm2(P, clip(P, psi)), psi, scale)


def warm_up(problem: Problem) -> None:
    """Compile or load every function that the audit of a path calls."""
    P = problem
    truths = {
        "lambda": np.ones(1),
        "support_offset": np.arange(P.n + 1)[None],
        "support_alpha": np.ones(P.n),
        "support_label": P.truth,
        "label_offset": P.label_ptr,
    }
    rebuild(P, truths, 0, np.zeros(P.d), own=False, duals=DualPoints(P, truths))
    rebuild_zero(P)
