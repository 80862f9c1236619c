"""Recomputes a dual point that gives all labellings of a block a weight, from the scores that define the weights.

With alpha_i(y) proportional to exp(c_i L_i(y) + <sigma_i, m_i(y)>), any scores make a feasible point, so there is no simplex
to check. mu_i and ell_i come from the structure's own sum over labellings (`marginals`), and what they are means of is
checked as far as one can without listing labellings:

* blocks with at most `FEW` labellings, of structures that allow any row of labels, are summed here, one labelling after
  another, and the sums replace the structure's;
* of the others, mu_i must lie in the convex hull of the m_i(y): there must be no theta with <theta, mu_i> above
  max_y <theta, m_i(y)>. Frank-Wolfe steps of a point x of the hull towards mu_i look for one: theta = mu_i - x, decoded.
  Where mu_i is outside, they end with such a theta. ell_i must lie between 0 and the largest loss, and the exact pass adds
  that no block gap is negative.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numba import njit

from gapwise.stages.certify.oracle import ROUNDING, OracleError
from gapwise.stages.problems.compiled import driver
from gapwise.stages.problems.inner import inner
from gapwise.stages.problems.marginals import Scores
from gapwise.stages.problems.parallel import HERE, Spread
from gapwise.stages.problems.protocol import JIT, Problem, frozen

FEW = 1000
"""Labellings of a block that are summed one after another."""

STEPS = 30
"""Frank-Wolfe steps for each of the other blocks, with a decoding each."""

TOLERANCE = 1e-9
"""Relative difference that rounding may make."""


@inner(**JIT)
def _first(y):
    for t in range(y.size):
        y[t] = 0


@inner(**JIT)
def _next(y, values):
    """y <- the following row of entries 0 to values - 1; False after the last."""
    for t in range(y.size):
        if np.int64(y[t]) + 1 < values:
            y[t] = np.int64(y[t]) + 1
            return True
        y[t] = 0
    return False


@inner(**JIT)
def _sum_all(P, i, theta, c, values, y, mu):
    """mu <- the mean of m_i(y) over all rows of labels, in two sweeps; returns (mean loss, largest loss)."""
    _first(y)
    top, largest, more = -np.inf, 0.0, True
    while more:
        loss = P.loss(i, y)
        top, largest = max(top, c * loss + P.value(i, theta, y)), max(largest, loss)
        more = _next(y, values)
    mu[:] = 0.0
    total, mean, more = 0.0, 0.0, True
    while more:
        loss = P.loss(i, y)
        weight = math.exp(c * loss + P.value(i, theta, y) - top)
        total, mean = total + weight, mean + weight * loss
        P.add(i, y, weight, mu)
        more = _next(y, values)
    for j in range(mu.size):
        mu[j] /= total
    return mean / total, largest


@inner(**JIT)
def _excess(P, i, mu, y, scratch):
    """The largest <theta, mu> - max_y <theta, m_i(y)> found, as a share of the terms that it is the sum of.

    y holds a labelling at first, where the steps begin.
    """
    x, m, theta, worst = np.zeros(mu.size), np.zeros(mu.size), np.empty(mu.size), 0.0
    P.add(i, y, 1.0, x)
    for _ in range(STEPS):
        inside, terms = 0.0, 0.0
        for j in range(mu.size):
            theta[j] = mu[j] - x[j]
            inside += theta[j] * mu[j]
            terms += abs(theta[j] * mu[j])
        if terms == 0.0:
            break
        P.decode(i, theta, y, scratch)
        worst = max(worst, (inside - P.value(i, theta, y)) / terms)
        m[:] = 0.0
        P.add(i, y, 1.0, m)
        slope, norm2 = 0.0, 0.0
        for j in range(mu.size):
            slope += theta[j] * (m[j] - x[j])
            norm2 += (m[j] - x[j]) ** 2
        if not slope > 0.0:
            break
        step = min(slope / norm2, 1.0)
        for j in range(mu.size):
            x[j] += step * (m[j] - x[j])
    return worst


@driver
def expectations_driver(fingerprint: str) -> Callable[..., None]:
    """`expectations(P, sigma, c, values, few, mu, ell, wrong, start, stop)`: mu (flat local) and ell (n,) of blocks start to
    stop - 1.

    Blocks with values ** length <= few labellings are summed one by one. wrong_i <- the largest difference from the
    structure's marginals, or by how much these are outside, relative to the numbers involved.
    """

    @njit(cache=True, **JIT)
    def expectations(P, sigma, c, values, few, mu, ell, wrong, start, stop):
        fingerprint  # noqa: B018
        scratch = P.scratch()
        for i in range(start, stop):
            lo, hi = P.local_ptr[i], P.local_ptr[i + 1]
            y = P.truth[P.label_ptr[i] : P.label_ptr[i + 1]].copy()
            theta = sigma[lo:hi]
            _, ell[i] = P.marginals(i, theta, c[i], mu[lo:hi], scratch)
            if not (np.isfinite(ell[i]) and np.isfinite(mu[lo:hi]).all()):
                wrong[i] = np.inf
                continue
            if values > 0 and y.size * math.log(values) <= math.log(few):
                own = np.empty(hi - lo)
                loss, largest = _sum_all(P, i, theta, c[i], values, y, own)
                off, most = 0.0, 1e-300
                for j in range(own.size):
                    off, most = max(off, abs(own[j] - mu[lo + j])), max(most, abs(own[j]))
                    mu[lo + j] = own[j]
                wrong[i] = max(off / most, abs(loss - ell[i]) / max(largest, 1e-300))
                ell[i] = loss
                continue
            zero = np.zeros(hi - lo)
            P.max_oracle(i, zero, y, scratch)
            largest = P.loss(i, y)
            beyond = max(-ell[i], ell[i] - largest) / max(largest, 1e-300)
            wrong[i] = max(beyond, _excess(P, i, mu[lo:hi], y, scratch))

    return expectations


def refuse_beyond(most: np.ndarray, ell: np.ndarray, inside: np.ndarray) -> None:
    """OracleError if a block's ell_i + <theta_i, mu_i> exceeds max_y L_i(y) + <theta_i, m_i(y)>; arrays (n,)."""
    beyond = ell + inside - most
    bad = ~(beyond <= ROUNDING * (np.abs(most) + np.abs(ell) + np.abs(inside)))
    if bad.any():
        i = int(np.argmax(bad))
        raise OracleError(
            f"block {i}: by its marginals the dual point is worth {ell[i] + inside[i]:.9g} (loss included), more than the "
            f"max-oracle's answer, {most[i]:.9g}; check marginals, max_oracle, value and loss of this structure"
        )


def expectations(problem: Problem, scores: Scores, spread: Spread = HERE) -> tuple[np.ndarray, np.ndarray]:
    """mu (flat local) and ell (n,) of the dual point; OracleError for the first block whose marginals are no means.

    It is the structure that is wrong then, as with a max-oracle whose answer is beaten.
    """
    P = problem
    mu, ell, wrong = np.empty(int(P.local_ptr[-1])), np.empty(P.n), np.empty(P.n)
    values = P.labels if P.unconstrained else 0
    given = P, frozen(scores.theta), frozen(scores.loss_weight), values, FEW, mu, ell, wrong
    spread.in_order(lambda start, stop: expectations_driver(P)(*given, start, stop), P)
    bad = ~(wrong <= TOLERANCE)
    if bad.any():
        i = int(np.argmax(bad))
        raise OracleError(
            f"block {i}: the marginals are not the mean over its labellings (off by {wrong[i]:.3g}); check marginals, value "
            "and loss of this structure"
        )
    return mu, ell
