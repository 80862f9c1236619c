"""Max-oracle calls for many blocks at one w, and ell_i + <theta_i, mu_i> at the same w.

One compiled function computes both, because the two parts of a gap may be computed in different processes, and only
identical machine code rounds identically. Structures whose oracle is approximate but bounded (`protocol.Bounded`) have a
function of their own, which adds the bounds; for all others nothing changes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numba import njit

from gapwise.stages.problems.certainty import ESTIMATE, EXACT, UPPER_BOUNDED, certainty_of
from gapwise.stages.problems.compiled import driver
from gapwise.stages.problems.inner import inner
from gapwise.stages.problems.one_type import one_type
from gapwise.stages.problems.parallel import HERE, Spread, work_before
from gapwise.stages.problems.protocol import JIT, PLAIN, Problem, dot, frozen, max_label_length
from gapwise.stages.solver.codes import FEW_ATOMS
from gapwise.stages.solver.supports import Pool, empty_pool

ORACLES, BASES = 1, 2
"""Bits that say what a call of the driver computes."""

ROUNDING = 1e-9
"""Share of the terms of a value by which two ways to compute it may differ."""


class Vertices(NamedTuple):
    """What the max-oracle found for some blocks at a fixed w; arrays over these blocks."""

    h: np.ndarray
    """float64: max_y L_i(y) + <theta_i, m_i(y)>, or what an approximate oracle found"""
    hinge: np.ndarray
    """float64: h_i - <theta_i, m_i(y_i)> >= 0"""
    loss: np.ndarray
    """float64: L_i of the vertices"""
    vertex: np.ndarray
    """truth's dtype, (blocks, longest): the vertices' labels"""
    bound: np.ndarray
    """float64: >= the maximum; h_i itself where the oracle is exact, or where there is no bound"""

    @classmethod
    def empty(cls, problem: Problem, size: int) -> Vertices:
        """Room for `size` blocks."""
        vertex = np.zeros((size, max_label_length(problem)), problem.truth.dtype)
        h = np.empty(size)
        bounded = certainty_of(problem) == UPPER_BOUNDED
        return cls(h, np.empty(size), np.empty(size), vertex, np.empty(size) if bounded else h)

    @property
    def upper_hinge(self) -> np.ndarray:
        """float64: the hinges that may enter a certificate, bound_i - <theta_i, m_i(y_i)>."""
        return self.hinge if self.bound is self.h else self.hinge + (self.bound - self.h)

    @property
    def proven(self) -> np.ndarray:
        """bool: whether the vertex attains the bound, up to rounding, and so is a maximiser."""
        return self.bound - self.h <= ROUNDING * (np.abs(self.loss) + np.abs(self.h) + np.abs(self.h - self.hinge))


@inner(**PLAIN)
def widest_of(P, blocks):
    """Local coordinates of the widest of some blocks."""
    widest = 0
    for k in range(blocks.size):
        widest = max(widest, P.local_ptr[blocks[k] + 1] - P.local_ptr[blocks[k]])
    return widest


@inner(**PLAIN)
def exact_block(P, w, mu, ell, pool, wanted, i, k, theta_all, scratch, h, base, hinge, loss, vertex):
    """Compute entry k of the driver's results, for block i."""
    lo, hi = P.local_ptr[i], P.local_ptr[i + 1]
    theta = theta_all[: hi - lo]
    P.scores(i, w, theta)
    first, last = P.label_ptr[i], P.label_ptr[i + 1]
    if wanted[0] & ORACLES:
        y = vertex[k, : last - first]
        loss[k] = P.max_oracle(i, theta, y, scratch)
        h[k] = loss[k] + P.value(i, theta, y)
        hinge[k] = h[k] - P.value(i, theta, one_type(P.truth[first:last]))
    if wanted[0] & BASES:
        if mu.size == 0 or 0 < pool.counts[i] <= FEW_ATOMS:
            total = 0.0
            s = pool.head[i]
            while s >= 0:
                if pool.alpha[s] > 0.0:
                    label = pool.labels[s, : last - first]
                    total += pool.alpha[s] * (pool.losses[s] + P.value(i, theta, label))
                s = pool.next[s]
            base[k] = total
        else:
            base[k] = ell[i] + dot(theta, mu[lo:hi])


@driver
def exact_driver(fingerprint: str) -> Callable[..., None]:
    """`exact(P, w, mu, ell, pool, wanted, blocks, h, base, hinge, loss, vertex)`: entry k of the results is for blocks[k].

    wanted[0] has the bits ORACLES (h, hinge, loss, vertex: one oracle call per block) and BASES (base = ell_i + <theta_i,
    mu_i>). It is an array, so that the compiler cannot specialise the loop for each value, which might round
    differently. Blocks with few atoms sum base = sum_y alpha_i(y) (L_i(y) + <theta_i, m_i(y)>) over them, and so do all
    where mu is empty; the others read mu, which touches much more memory.
    """

    @njit(cache=True, **JIT)
    def exact(P, w, mu, ell, pool, wanted, blocks, h, base, hinge, loss, vertex):
        fingerprint  # noqa: B018
        w = one_type(w)
        scratch = P.scratch()
        theta_all = np.empty(widest_of(P, blocks))
        for k in range(blocks.size):
            exact_block(P, w, mu, ell, pool, wanted, blocks[k], k, theta_all, scratch, h, base, hinge, loss, vertex)

    return exact


@driver
def bounded_driver(fingerprint: str) -> Callable[..., None]:
    """`bounded(P, w, mu, ell, pool, wanted, blocks, h, base, hinge, loss, vertex, bound)`: also bounds (theorem 4).

    The other arguments and results are those of `exact_driver`.
    """

    @njit(cache=True, **JIT)
    def bounded(P, w, mu, ell, pool, wanted, blocks, h, base, hinge, loss, vertex, bound):
        fingerprint  # noqa: B018
        w = one_type(w)
        scratch = P.scratch()
        theta_all = np.empty(widest_of(P, blocks))
        for k in range(blocks.size):
            i = blocks[k]
            exact_block(P, w, mu, ell, pool, wanted, i, k, theta_all, scratch, h, base, hinge, loss, vertex)
            if wanted[0] & ORACLES:
                theta = theta_all[: P.local_ptr[i + 1] - P.local_ptr[i]]
                y = vertex[k, : P.label_ptr[i + 1] - P.label_ptr[i]]
                bound[k] = P.max_bound(i, theta, y, scratch)

    return bounded


def run_driver(
    problem: Problem,
    w: np.ndarray,
    mu: np.ndarray,
    ell: np.ndarray,
    pool: Pool,
    wanted: int,
    blocks: np.ndarray,
    base: np.ndarray,
    answers: Vertices,
) -> None:
    """Fill `answers` and `base` for `blocks` with the compiled function of the structure."""
    arguments = problem, w, mu, ell, pool, np.array([wanted]), blocks
    results = answers.h, base, answers.hinge, answers.loss, answers.vertex
    if certainty_of(problem) == UPPER_BOUNDED:
        bounded_driver(problem)(*arguments, *results, answers.bound)
    else:
        exact_driver(problem)(*arguments, *results)


def call_oracles(problem: Problem, w: np.ndarray, blocks: np.ndarray) -> Vertices:
    """One oracle call for each of `blocks` at w (d,), one after another: a `BlockFunction`."""
    answers, nothing = Vertices.empty(problem, blocks.size), np.empty(0)
    pool = empty_pool(0, 0, answers.vertex.shape[1], answers.vertex.dtype)
    run_driver(problem, frozen(w), nothing, nothing, pool, ORACLES, blocks, nothing, answers)
    check_vertices(answers, blocks, certainty_of(problem))
    return answers


def vertices_at(problem: Problem, w: np.ndarray, blocks: range | np.ndarray, spread: Spread = HERE) -> Vertices:
    """One oracle call for each of `blocks` at the same w (d,), wherever `spread` says, in the order of `blocks`."""
    if len(blocks) == 0:
        return Vertices.empty(problem, 0)
    parts = spread.blocks(call_oracles, problem, w, blocks)
    answers = Vertices(*(np.concatenate(column) for column in zip(*parts, strict=True)))
    return answers if certainty_of(problem) == UPPER_BOUNDED else answers._replace(bound=answers.h)


def bases(
    problem: Problem,
    w: np.ndarray,
    mu: np.ndarray,
    ell: np.ndarray,
    pool: Pool,
    spread: Spread = HERE,
    blocks: np.ndarray | None = None,
) -> np.ndarray:
    """float64, as many as `blocks` (int64; None: all, in order): ell_i + <theta_i, mu_i>, on this process's threads."""
    every = np.arange(problem.n) if blocks is None else blocks
    base, nothing, w = np.empty(every.size), np.empty(0), frozen(w)
    vertex = np.empty((0, max_label_length(problem)), problem.truth.dtype)
    answers = Vertices(nothing, nothing, nothing, vertex, nothing)

    def part(start: int, stop: int) -> None:
        run_driver(problem, w, mu, ell, pool, BASES, every[start:stop], base[start:stop], answers)

    spread.over_threads(part, work_before(problem, blocks))
    return base


def load_exact(problem: Problem) -> None:
    """Compile or load what an exact pass calls."""
    call_oracles(problem, np.empty(0), np.empty(0, np.int64))


def check_vertices(answers: Vertices, blocks: np.ndarray, certainty: str = EXACT) -> None:
    """Raise ValueError, naming the block, if an answer contradicts what the structure says of its oracle.

    An exact oracle's value is never below the truth's. That of an approximate one may be; the truth's value then replaces
    it, for it is the better estimate. A bound below the oracle's own value is none.
    """
    truth = answers.h - answers.hinge
    size = ROUNDING * (np.abs(answers.loss) + np.abs(answers.h) + np.abs(truth))
    wrong = ~(answers.hinge >= -size)
    if certainty == EXACT and wrong.any():
        k = int(np.argmax(wrong))
        raise ValueError(
            f"max-oracle: block {blocks[k]}: its labelling scores {-answers.hinge[k]:.3g} below the truth (loss included); "
            "an exact max-oracle never does. Check max_oracle, value and loss of this structure."
        )
    if certainty == EXACT:
        return
    answers.h[:], answers.hinge[:] = np.maximum(answers.h, truth), np.maximum(answers.hinge, 0.0)
    if certainty == ESTIMATE:
        return
    wrong = ~(answers.bound >= answers.h - size)
    if wrong.any():
        k = int(np.argmax(wrong))
        raise ValueError(
            f"max_bound: block {blocks[k]}: the bound is {answers.bound[k]:.9g}, but a labelling is worth "
            f"{answers.h[k]:.9g} (loss included); a bound never is below any. Check max_bound, value and loss "
            "of this structure."
        )
    answers.bound[:] = np.maximum(answers.bound, answers.h)
