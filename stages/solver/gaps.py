"""Block gaps: by an exact pass with the max-oracle, or over the cached labellings only (LJ13 3; O16 3.3)."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numba import njit

from gapwise.stages.problems.certainty import ESTIMATE, EXACT, certainty_of
from gapwise.stages.problems.compiled import driver
from gapwise.stages.problems.one_type import one_type
from gapwise.stages.problems.parallel import HERE, Spread, work_before
from gapwise.stages.problems.protocol import JIT, Problem, frozen, largest, max_label_length, widest_block
from gapwise.stages.solver.block.views.distances import atoms_of, score_slots
from gapwise.stages.solver.oracles import BASES, ORACLES, Vertices, bases, check_vertices, run_driver, vertices_at
from gapwise.stages.solver.several import Listed, several_at
from gapwise.stages.solver.supports import Pool, empty_pool


class ExactGaps(NamedTuple):
    """The results of one exact pass at a fixed w; arrays over blocks."""

    gap: np.ndarray
    """float64, (n,): g_i; a lower estimate if the oracle is approximate"""
    hinge: np.ndarray
    """float64, (n,): max_y L_i(y) - <theta_i, m_i(y_i) - m_i(y)> >= 0, or the bound on it that the structure offers"""
    loss: np.ndarray
    """float64, (n,): L_i of the vertices"""
    vertex: np.ndarray
    """truth's dtype, (n, longest): the vertices' labels"""
    certified: np.ndarray
    """float64, (n,): the block gaps that belong to `hinge`; `gap` itself if the oracle is exact"""
    proven: float
    """Share of the blocks whose vertex is proven to be a maximiser; 1 if the oracle is exact, 0 without a bound."""
    listed: Listed | None = None
    """The labellings that the oracle returned besides the vertices, if it was asked for several."""

    @property
    def slack(self) -> float:
        """What the bounds add to the gap; 0 if the oracle is exact."""
        return 0.0 if self.certified is self.gap else float(np.sum(self.certified)) - float(np.sum(self.gap))


def exact_gaps(
    problem: Problem,
    w: np.ndarray,
    mu: np.ndarray,
    ell: np.ndarray,
    spread: Spread = HERE,
    pool: Pool | None = None,
    m: int = 1,
) -> ExactGaps:
    """One exact pass at w (d,) with block states mu (flat local) and ell (n,); few atoms: `pool` instead (LJ13 Alg. 2).

    An empty mu means that all blocks use `pool`, which is then needed.

    Where oracles run in other processes, only w is sent: ell_i + <theta_i, mu_i> is computed here. An oracle call returns up
    to m labellings.

    Raises
    ------
    ValueError
        If an oracle's value is below the truth's, so that its labelling is not a maximiser. Names the block. If there is
        neither mu nor a pool.
    """
    n = problem.n
    if mu.size == 0 and pool is None:
        raise ValueError("exact_gaps: mu is empty, and there is no pool to sum it from; give one of them")
    longest = max_label_length(problem)
    atoms = empty_pool(n, 0, longest, problem.truth.dtype) if pool is None else pool
    if m > 1:
        answers, listed = several_at(problem, w, range(n), m, spread)
        return _gaps(answers, bases(problem, w, mu, ell, atoms, spread), certainty_of(problem))._replace(listed=listed)
    if spread.elsewhere is not None:
        answers = vertices_at(problem, w, range(n), spread)
        return _gaps(answers, bases(problem, w, mu, ell, atoms, spread), certainty_of(problem))
    answers, base, every = Vertices.empty(problem, n), np.empty(n), np.arange(n)
    w = frozen(w)

    def part(start: int, stop: int) -> None:
        of = slice(start, stop)
        piece = Vertices(*(column[of] for column in answers))
        run_driver(problem, w, mu, ell, atoms, ORACLES | BASES, every[of], base[of], piece)

    spread.over_threads(part, work_before(problem))
    check_vertices(answers, every, certainty_of(problem))
    return _gaps(answers, base, certainty_of(problem))


def gaps_given(
    problem: Problem,
    w: np.ndarray,
    mu: np.ndarray,
    ell: np.ndarray,
    blocks: np.ndarray,
    answers: Vertices,
    spread: Spread,
    pool: Pool,
    listed: Listed | None = None,
) -> ExactGaps:
    """The same as `exact_gaps`, to the bit, where the oracles of `blocks` (int64, rising) have been asked at this w.

    With `listed` they returned further labellings; of the other blocks as many are asked for.
    """
    rest = np.setdiff1d(np.arange(problem.n), blocks, assume_unique=True)
    joined, both = Vertices.empty(problem, problem.n), None
    if listed is None:
        others = vertices_at(problem, w, rest, spread)
    else:
        m = listed.labels.shape[1] + 1
        others, further = several_at(problem, w, rest, m, spread)
        both = Listed.empty(problem, problem.n, m)
        for column, first, second in zip(both, listed, further, strict=True):
            column[blocks], column[rest] = first, second
    for column, first, second in zip(joined, answers, others, strict=True):
        column[blocks], column[rest] = first, second
    return _gaps(joined, bases(problem, w, mu, ell, pool, spread), certainty_of(problem))._replace(listed=both)


def _gaps(answers: Vertices, base: np.ndarray, certainty: str) -> ExactGaps:
    """The gaps from the oracle's answers and base_i = ell_i + <theta_i, mu_i>.

    base_i is a mean of labellings' values, hence also a lower estimate of the maximum, below which an approximate oracle
    may fall.
    """
    n = base.size
    if certainty == EXACT:
        gap = (answers.h - base) / n
        return ExactGaps(gap, answers.hinge, answers.loss, answers.vertex, gap, 1.0)
    gap = np.maximum(answers.h - base, 0.0) / n
    if certainty == ESTIMATE:
        hinge = answers.hinge + np.maximum(base - answers.h, 0.0)
        return ExactGaps(gap, hinge, answers.loss, answers.vertex, gap, 0.0)
    proven = float(np.mean(answers.proven))
    return ExactGaps(gap, answers.upper_hinge, answers.loss, answers.vertex, (answers.bound - base) / n, proven)


@driver
def cached_driver(fingerprint: str) -> Callable[..., None]:
    """`cached(P, pool, w, gap, start, stop)`: lower bounds on the gaps of blocks start to stop - 1 at w (d,) from cached
    labellings; no oracle call."""

    @njit(cache=True, **JIT)
    def cached(P, pool, w, gap, start, stop):
        fingerprint  # noqa: B018
        w = one_type(w)
        widest = widest_block(P.local_ptr)
        theta_all, most = np.empty(widest), largest(pool.counts)
        slots_all, places_all, values_all = np.empty(most, np.int64), np.empty(most, np.int64), np.empty(most)
        for i in range(start, stop):
            slots, values = slots_all[: pool.counts[i]], values_all[: pool.counts[i]]
            atoms_of(pool, i, slots, places_all)
            score_slots(P, pool, i, w, slots, theta_all[: P.local_ptr[i + 1] - P.local_ptr[i]], values)
            best, base = -np.inf, 0.0
            for k in range(slots.size):
                best = max(best, values[k])
                base += pool.alpha[slots[k]] * values[k]
            gap[i] = max(best - base, 0.0) / gap.size

    return cached
