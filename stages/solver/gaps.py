"""Block gaps: by an exact pass with the max-oracle, or over the cached labellings only (LJ13 3; O16 3.3)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from stages.parallel import HERE, Spread
from stages.problems.compiled import driver
from stages.problems.protocol import JIT, Problem, frozen, max_label_length, widest_block
from stages.solver.oracles import BASES, ORACLES, Corners, bases, check_corners, corners_at, exact_driver
from stages.solver.step import atoms_of, score_atoms
from stages.solver.supports import Pool, empty_pool


class ExactGaps(NamedTuple):
    """The results of one exact pass at a fixed w; arrays over blocks."""

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
    """One exact pass at w (d,) with block states mu (flat local) and ell (n,); blocks with few atoms use `pool` instead.

    Where oracles run in other processes, only w is sent: ell_i + <theta_i, mu_i> is computed here.

    Raises
    ------
    ValueError
        If an oracle's value is below the truth's, so that its labelling is not a maximiser. Names the block.
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
    """`cached(P, pool, w, gap)`: lower bounds on the gaps at w (d,) from cached labellings; no oracle call."""

    @njit(cache=True, **JIT)
    def cached(P, pool, w, gap):
        fingerprint  # noqa: B018
        widest = widest_block(P.local_ptr)
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
