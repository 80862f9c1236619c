"""Recomputes a solved lambda from its labellings and their weights alone.

The dual point, w, an exact pass and every number that a certificate rests on are computed by code that is separate from the
solver's and sums in another order.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from stages.parallel import HERE, Spread
from stages.problems.compiled import driver
from stages.problems.protocol import JIT, Problem, frozen


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
def rebuild_driver(fingerprint: str) -> Any:
    """`rebuild(P, offset, alpha, label, label_offset, mu, ell, psi, chunk) -> (largest |sum alpha - 1| or -alpha, scale)`.

    mu (flat local), ell (n,) and psi = (1/n) sum_i B_i (m_i(y_i) - mu_i) (d,) come in zeroed; losses are recomputed.
    scale is mean_i ||B_i (m_i(y_i) - mu_i)||. The sums of `chunk` blocks each are added up with compensation (Neumaier).
    """

    @njit(cache=True, **JIT)
    def rebuild(P, offset, alpha, label, label_offset, mu, ell, psi, chunk):
        fingerprint  # noqa: B018
        n = ell.size
        worst, scale = 0.0, 0.0
        part, lost = np.zeros(psi.size), np.zeros(psi.size)
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
        for j in range(psi.size):
            psi[j] = (psi[j] + lost[j]) / n
        return worst, scale / n

    return rebuild


@driver
def largest_driver(fingerprint: str) -> Any:
    """`largest(P, w, blocks, labels, most, hinges)`: one oracle call per block; deliberately not the solver's code."""

    @njit(cache=True, **JIT)
    def largest(P, w, blocks, labels, most, hinges):
        fingerprint  # noqa: B018
        scratch = P.scratch()
        end = 0
        for k in range(blocks.size):
            i = blocks[k]
            theta = np.empty(P.local_ptr[i + 1] - P.local_ptr[i])
            P.scores(i, w, theta)
            first, last = P.label_ptr[i], P.label_ptr[i + 1]
            start, end = end, end + last - first
            y = labels[start:end]
            P.max_oracle(i, theta, y, scratch)
            most[k] = P.loss(i, y) + P.value(i, theta, y)
            hinges[k] = most[k] - P.value(i, theta, P.truth[first:last])

    return largest


@driver
def inside_driver(fingerprint: str) -> Any:
    """`inside(P, w, mu, out)`: out_i <- <theta_i, mu_i>."""

    @njit(cache=True, **JIT)
    def inside(P, w, mu, out):
        fingerprint  # noqa: B018
        for i in range(out.size):
            theta = np.empty(P.local_ptr[i + 1] - P.local_ptr[i])
            P.scores(i, w, theta)
            out[i] = 0.0
            for j in range(theta.size):
                out[i] += theta[j] * mu[P.local_ptr[i] + j]

    return inside


def largest(problem: Problem, w: np.ndarray, blocks: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(max_y L_i(y) + <theta_i, m_i(y)>, hinges, flat labels) of `blocks` at w (d,): one oracle call each."""
    most, hinges = np.empty(blocks.size), np.empty(blocks.size)
    labels = np.empty(int(np.sum(problem.label_ptr[blocks + 1] - problem.label_ptr[blocks])), problem.truth.dtype)
    largest_driver(problem)(problem, frozen(w), blocks, labels, most, hinges)
    return most, hinges, labels


def exact(
    problem: Problem, w: np.ndarray, mu: np.ndarray, ell: np.ndarray, spread: Spread = HERE
) -> tuple[float, float]:
    """(sum of block gaps, mean hinge) at w (d,) with block states mu (flat) and ell (n,)."""
    most, hinges, _ = _largest(problem, w, spread)
    inside = np.empty(problem.n)
    inside_driver(problem)(problem, frozen(w), mu, inside)
    return math.fsum((most - ell - inside) / problem.n), math.fsum(hinges) / problem.n


def _largest(problem: Problem, w: np.ndarray, spread: Spread) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    most, hinges, labels = zip(*spread.blocks(largest, problem, w, range(problem.n)), strict=True)
    return np.concatenate(most), np.concatenate(hinges), np.concatenate(labels)


def primal_at(problem: Problem, w: np.ndarray, lam: float, spread: Spread = HERE) -> float:
    """P_lambda(w) by an exact pass."""
    _, hinges, _ = _largest(problem, w, spread)
    return 0.5 * lam * float(np.sum(w**2)) + math.fsum(hinges) / problem.n


def clip(problem: Problem, v: np.ndarray) -> np.ndarray:
    """The point of the box nearest to v."""
    return np.clip(v, problem.lower, problem.upper) if problem.lower.size else v


def dual_at(problem: Problem, ell: float, v: np.ndarray, lam: float) -> float:
    """min over the box of the Lagrangian: ell + min_w lambda/2 ||w||^2 - lambda <v, w>."""
    w = clip(problem, v)
    return ell + lam * float(np.sum(w * (0.5 * w - v)))


class Point(NamedTuple):
    """A dual point, computed from its supports."""

    v: np.ndarray
    mu: np.ndarray
    ell: np.ndarray
    simplex_error: float
    psi_scale: float
    """mean_i ||psi_i||, psi_i = B_i (m_i(y_i) - mu_i)"""


def dual_point(problem: Problem, arrays: Mapping[str, np.ndarray], b: int) -> Point:
    """Breakpoint b's v (d,), mu (flat local) and ell (n,)."""
    P = problem
    mu, ell, psi = np.zeros(int(P.local_ptr[-1])), np.zeros(P.n), np.zeros(P.d)
    names = ("support_alpha", "support_label", "label_offset")
    supports = (frozen(arrays["support_offset"][b]), *(frozen(arrays[name]) for name in names))
    simplex, scale = rebuild_driver(P)(P, *supports, mu, ell, psi, chunk_length(P.d))
    return Point(psi / float(arrays["lambda"][b]), mu, ell, float(simplex), float(scale))


def rebuild(
    problem: Problem,
    arrays: Mapping[str, np.ndarray],
    b: int,
    stored: np.ndarray,
    own: bool,
    spread: Spread = HERE,
    *,
    dual: bool = True,
) -> Rebuilt:
    """Breakpoint b, whose weights are `stored`. With `own`, w does not follow from the supports, and the gap is P - D.

    Without a `dual` point only the primal value is known; the rest is nan.
    """
    if not dual:
        at, norm2 = float(arrays["lambda"][b]), float(np.sum(stored**2))
        primal = primal_at(problem, stored, at, spread)
        hinge, most = primal - 0.5 * at * norm2, _largest_entry(stored)
        return Rebuilt(norm2, math.nan, hinge, math.nan, 0.0, 0.0, primal, math.nan, most, 0.0)
    lam, point = float(arrays["lambda"][b]), dual_point(problem, arrays, b)
    w = stored if own else clip(problem, point.v)
    gap, hinge = exact(problem, w, point.mu, point.ell, spread)
    mean_ell, norm2 = math.fsum(point.ell) / problem.n, float(np.sum(w**2))
    primal = 0.5 * lam * norm2 + hinge
    value = dual_at(problem, mean_ell, point.v, lam)
    size = max(_largest_entry(stored), _largest_entry(w))
    error = 0.0 if own or size == 0.0 else _largest_entry(w - stored) / size
    gap = primal - value if own else gap
    return Rebuilt(norm2, gap, hinge, mean_ell, point.simplex_error, error, primal, value, size, point.psi_scale)


def _largest_entry(w: np.ndarray) -> float:
    return float(np.max(np.abs(w), initial=0.0))


def rebuild_zero(problem: Problem, spread: Spread = HERE) -> Zero:
    """The dual point of w = 0 from an exact pass."""
    P = problem
    mu, ell, psi = np.zeros(int(P.local_ptr[-1])), np.zeros(P.n), np.zeros(P.d)
    _, hinges, labels = _largest(P, np.zeros(P.d), spread)
    corners = frozen(np.arange(P.n + 1)), frozen(np.ones(P.n)), frozen(labels), P.label_ptr
    _, scale = rebuild_driver(P)(P, *corners, mu, ell, psi, chunk_length(P.d))
    return Zero(math.fsum(hinges) / P.n, float(np.sum(clip(P, psi) ** 2)), psi, float(scale))
