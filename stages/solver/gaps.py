"""Block gaps: the exact pass with the max-oracle, and what is known of them without it (DESIGN 2.1, 2.3, 2.5)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from stages.parallel import HERE, Spread
from stages.problems.compiled import driver
from stages.problems.protocol import JIT, Problem, dot, frozen, max_label_length
from stages.solver.directions import FW, line_search, update_weights, write_direction
from stages.solver.oracles import BASES, ORACLES, Corners, bases, check_corners, corners_at, exact_driver
from stages.solver.step import atoms_of, clip_into, score_atoms
from stages.solver.supports import Pool, empty_pool, find, insert


class ExactGaps(NamedTuple):
    """What one exact pass at a fixed w found; arrays over blocks."""

    gap: np.ndarray
    """float64, (n,): g_i"""
    hinge: np.ndarray
    """float64, (n,): max_y L_i(y) - <theta_i, m_i(y_i) - m_i(y)> >= 0"""
    loss: np.ndarray
    """float64, (n,): L_i of the corners"""
    corner: np.ndarray
    """truth's dtype, (n, longest): the corners' labels"""


def exact_gaps(
    problem: Problem, w: np.ndarray, mu: np.ndarray, ell: np.ndarray, spread: Spread = HERE, pool: Pool | None = None
) -> ExactGaps:
    """One exact pass at w (d,) with block states mu (flat local) and ell (n,), which `pool` may speak for.

    Where oracles are called elsewhere, nothing of the state goes there: this process computes its part of the gaps.

    Raises
    ------
    ValueError
        If an oracle's value is below the truth's: its labelling is no maximiser. Names the block.
    """
    n = problem.n
    longest = max_label_length(problem)
    atoms = empty_pool(n, 0, longest, problem.truth.dtype) if pool is None else pool
    if spread.elsewhere is not None:
        found = corners_at(problem, w, range(n), spread)
        base = bases(problem, w, mu, ell, atoms, spread)
        return ExactGaps((found.h - base) / n, found.hinge, found.loss, found.corner)
    found, base, every = Corners.empty(problem, n), np.empty(n), np.arange(n)
    kernel, what, w = exact_driver(problem), np.array([ORACLES | BASES]), frozen(w)

    def part(start: int, stop: int) -> None:
        of = slice(start, stop)
        kernel(
            problem, w, mu, ell, atoms, what, every[of],
            found.h[of], base[of], found.hinge[of], found.loss[of], found.corner[of],
        )  # fmt: skip

    spread.over_threads(part, n)
    check_corners(found, every)
    return ExactGaps((found.h - base) / n, found.hinge, found.loss, found.corner)


@driver
def cached_driver(fingerprint: str) -> Any:
    """`cached(P, pool, w, gap)`: gaps at w (d,) from the cached labellings only, at most the true ones; no oracle call."""

    @njit(cache=True, **JIT)
    def cached(P, pool, w, gap):
        fingerprint  # noqa: B018
        widest = 0
        for i in range(gap.size):
            widest = max(widest, P.local_ptr[i + 1] - P.local_ptr[i])
        theta_all, most = np.empty(widest), pool.counts.max()
        slots_all, places_all, values_all = np.empty(most, np.int64), np.empty(most, np.int64), np.empty(most)
        for i in range(gap.size):
            slots, values = slots_all[: pool.counts[i]], values_all[: pool.counts[i]]
            atoms_of(pool, i, slots, places_all)
            score_atoms(P, pool, i, w, slots, theta_all[: P.local_ptr[i + 1] - P.local_ptr[i]], values)
            best, base = -np.inf, 0.0
            for k in range(slots.size):
                best = max(best, values[k])
                base += pool.alpha[slots[k]] * values[k]
            gap[i] = max(best - base, 0.0) / gap.size

    return cached


@driver
def truth_driver(fingerprint: str) -> Any:
    """`towards_truth(P, S, rho, capacity)`: the dual of lambda becomes that of rho lambda with the same w (DESIGN 2.5).

    alpha_i(y) <- rho alpha_i(y), the rest on y_i; block gaps follow exactly, without an oracle call. mu, ell and u are
    left to the next rebase. A slot a block must be free.
    """

    @njit(cache=True, **JIT)
    def towards_truth(P, S, rho, capacity):
        fingerprint  # noqa: B018
        n = S.ell.size
        theta_all = np.empty(S.mu.size)
        for i in range(n):
            lo, hi = P.local_ptr[i], P.local_ptr[i + 1]
            theta = theta_all[: hi - lo]
            P.scores(i, S.w, theta)
            y = P.truth[P.label_ptr[i] : P.label_ptr[i + 1]]
            S.gap[i] += (1.0 - rho) / n * (S.ell[i] + dot(theta, S.mu[lo:hi]) - P.value(i, theta, y))
            s = S.pool.head[i]
            while s >= 0:
                S.pool.alpha[s] *= rho
                s = S.pool.next[s]
            s = find(S.pool, i, y, 0.0)
            if s < 0:
                s = insert(S.pool, i, y, 0.0, capacity)
            S.pool.alpha[s] += 1.0 - rho

    return towards_truth


@driver
def batch_driver(fingerprint: str) -> Any:
    """`batch(P, S, scale, corner, loss, gap, direction, capacity)`: one Frank-Wolfe step of all blocks together.

    All blocks move by the same gamma towards the corners of an exact pass at the current w (batch Frank-Wolfe, LJ13
    Alg. 2). `direction` (d,) is zeroed workspace; a slot a block must be free. Returns gamma.
    """

    @njit(cache=True, **JIT)
    def batch(P, S, scale, corner, loss, gap, direction, capacity):
        fingerprint  # noqa: B018
        n = S.ell.size
        delta_all = np.empty(S.mu.size)
        slope = 0.0
        for i in range(n):
            lo, hi = P.local_ptr[i], P.local_ptr[i + 1]
            y = corner[i, : P.label_ptr[i + 1] - P.label_ptr[i]]
            delta = delta_all[lo:hi]
            write_direction(P, i, FW, S.mu[lo:hi], S.pool, True, y, y, delta)
            P.push(i, 1.0, delta, direction)
            slope += gap[i] * n
        gamma = line_search(slope, dot(direction, direction), scale, 1.0)
        if gamma > 0.0:
            for i in range(n):
                lo, hi = P.local_ptr[i], P.local_ptr[i + 1]
                y = corner[i, : P.label_ptr[i + 1] - P.label_ptr[i]]
                target = find(S.pool, i, y, loss[i])
                if target < 0:
                    target = insert(S.pool, i, y, loss[i], capacity)
                for j in range(lo, hi):
                    S.mu[j] += gamma * delta_all[j]
                S.ell[i] += gamma * (loss[i] - S.ell[i])
                update_weights(S.pool, i, FW, target, -1, gamma, 1.0)
            for j in range(S.u.size):
                S.u[j] -= gamma * scale * direction[j]
            if P.lower.size > 0:
                clip_into(S.u, P.lower, P.upper, S.w)
        return gamma

    return batch
