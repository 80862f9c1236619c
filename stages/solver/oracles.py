"""Max-oracle calls for many blocks at one w, and ell_i + <theta_i, mu_i> at the same w.

One compiled function computes both, because the two parts of a gap may be computed in different processes, and only
identical machine code rounds identically. It also takes the bounds of an approximate oracle (`protocol.Bounded`), and asks
an oracle that lists (`protocol.Listing`) for several labellings.

The first labelling of a list is the answer of `max_oracle`, to the bit, and alone gives hinge, gap and certificate. The
others become atoms without weight. They are labellings that w violates nearly as much, hence those that an exact pass near w
would return next; passes over the cache then need no oracle to find them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple, Self

import numpy as np
from numba import njit

from gapwise.stages.problems.capabilities import (
    ESTIMATE,
    EXACT,
    UPPER_BOUNDED,
    certainty_of,
    lists_several,
    optional_of,
)
from gapwise.stages.problems.compiled import driver, inner
from gapwise.stages.problems.moves import max_bound
from gapwise.stages.problems.parallel import HERE, Spread, work_before
from gapwise.stages.problems.protocol import JIT, PLAIN, Problem, frozen, max_label_length
from gapwise.stages.problems.simd import one_type
from gapwise.stages.solver.supports import Pool, base_of, empty_pool

ORACLES, BOUNDS, BASES = 1, 2, 4
"""Bits that say what a call of the driver computes."""

ROUNDING = 1e-9
"""Share of the terms of a value by which two ways to compute it may differ."""


class Answers(NamedTuple):
    """What the max-oracle found for some blocks at a fixed w; arrays over these blocks.

    (`loss` and `label` are taken: numba gives every named tuple the methods of a problem.)
    """

    h: np.ndarray
    """float64: max_y L_i(y) + <theta_i, m_i(y)>, or what an approximate oracle found"""
    hinge: np.ndarray
    """float64: h_i - <theta_i, m_i(y_i)> >= 0"""
    losses: np.ndarray
    """float64: L_i of the vertices"""
    vertex: np.ndarray
    """truth's dtype, (blocks, longest): the vertices' labels"""
    bound: np.ndarray
    """float64: >= the maximum; h_i itself where the oracle is exact, or where there is no bound"""
    listed: np.ndarray
    """truth's dtype, (blocks, m - 1, longest): labellings besides the vertex; no certificate reads them"""
    listed_losses: np.ndarray
    """float64, (blocks, m - 1)"""
    counts: np.ndarray
    """int64: how many are listed"""
    most: np.ndarray
    """float64: the largest L_i(y) + <theta_i, m_i(y)> among them; -inf without any"""

    @classmethod
    def empty(cls, problem: Problem, size: int, m: int = 1) -> Self:
        """Room for `size` blocks, and for m labellings of each with the vertex."""
        longest, dtype, h = max_label_length(problem), problem.truth.dtype, np.empty(size)
        bound = np.empty(size) if certainty_of(problem) == UPPER_BOUNDED else h
        return cls(
            h, np.empty(size), np.empty(size), np.zeros((size, longest), dtype), bound,
            np.zeros((size, m - 1, longest), dtype), np.zeros((size, m - 1)), np.zeros(size, np.int64),
            np.full(size, -np.inf),
        )  # fmt: skip

    @classmethod
    def joined(cls, problem: Problem, parts: Sequence[Self]) -> Self:
        """The answers for the blocks of all parts, one part after another."""
        answers = cls(*(np.concatenate(column) for column in zip(*parts, strict=True)))
        return answers if certainty_of(problem) == UPPER_BOUNDED else answers._replace(bound=answers.h)

    @property
    def m(self) -> int:
        """Labellings that a call was asked for."""
        return int(self.listed.shape[1]) + 1

    @property
    def upper_hinge(self) -> np.ndarray:
        """float64: the hinges that may enter a certificate, bound_i - <theta_i, m_i(y_i)>."""
        return self.hinge if self.bound is self.h else self.hinge + (self.bound - self.h)

    @property
    def proven(self) -> np.ndarray:
        """bool: whether the vertex attains the bound, up to rounding, and so is a maximiser."""
        return self.bound - self.h <= ROUNDING * (np.abs(self.losses) + np.abs(self.h) + np.abs(self.h - self.hinge))


@inner(**PLAIN)
def widest_of(P, blocks):
    """Local coordinates of the widest of some blocks."""
    widest = 0
    for k in range(blocks.size):
        widest = max(widest, P.local_ptr[blocks[k] + 1] - P.local_ptr[blocks[k]])
    return widest


@inner(**PLAIN)
def take_list(P, i, k, theta, rows, losses, count, answers):
    """Entry k of `answers` from labellings of block i: rows (m, entries) and losses (m,), of which there are `count`."""
    answers.losses[k], answers.counts[k] = losses[0], count - 1
    for t in range(rows.shape[1]):
        answers.vertex[k, t] = rows[0, t]
    for j in range(1, count):
        answers.listed_losses[k, j - 1] = losses[j]
        answers.most[k] = max(answers.most[k], losses[j] + P.value(i, theta, rows[j]))
        for t in range(rows.shape[1]):
            answers.listed[k, j - 1, t] = rows[j, t]


def _answers(fingerprint: str, lists: bool) -> Callable[..., None]:
    """`answer(P, w, m, pool, wanted, blocks, base, answers)`: entry k of the results is for blocks[k].

    wanted[0] has the bits ORACLES (`answers`: one oracle call per block, for m labellings if the oracle `lists`), BOUNDS
    (with ORACLES: theorem 4) and BASES (`base_of`). It is an array, so that the compiler cannot specialise the loop for each
    value, which might round differently.
    """

    @njit(cache=True, **JIT)
    def answer(P, w, m, pool, wanted, blocks, base, answers):
        fingerprint  # noqa: B018
        w = one_type(w)
        scratch = P.max_oracles_scratch(m) if lists else P.scratch()
        rows_all, losses = np.empty(m * answers.vertex.shape[1], answers.vertex.dtype), np.empty(m)
        theta_all = np.empty(widest_of(P, blocks))
        for k in range(blocks.size):
            i = blocks[k]
            theta = theta_all[: P.local_ptr[i + 1] - P.local_ptr[i]]
            P.scores(i, w, theta)
            if wanted[0] & ORACLES:
                y = answers.vertex[k, : P.label_ptr[i + 1] - P.label_ptr[i]]
                if lists:
                    rows = rows_all[: m * y.size].reshape((m, y.size))
                    count = P.max_oracles(i, theta, m, rows, losses, scratch)
                    take_list(P, i, k, theta, rows, losses, count, answers)
                else:
                    answers.losses[k] = P.max_oracle(i, theta, y, scratch)
                answers.h[k] = answers.losses[k] + P.value(i, theta, y)
                answers.hinge[k] = answers.h[k] - P.value(
                    i, theta, one_type(P.truth[P.label_ptr[i] : P.label_ptr[i + 1]])
                )
                if wanted[0] & BOUNDS:
                    answers.bound[k] = max_bound(P, i, theta, y, scratch)
            if wanted[0] & BASES:
                base[k] = base_of(P, i, theta, pool)

    return answer


@driver
def answers_driver(fingerprint: str) -> Callable[..., None]:
    """`_answers` of an oracle that returns one labelling."""
    return _answers(fingerprint, lists=False)


@driver
def lists_driver(fingerprint: str) -> Callable[..., None]:
    """`_answers` of an oracle that lists."""
    return _answers(fingerprint, lists=True)


def run_driver(
    problem: Problem,
    w: np.ndarray,
    pool: Pool,
    wanted: int,
    blocks: np.ndarray,
    base: np.ndarray,
    answers: Answers,
) -> None:
    """Fill `answers` and `base` for `blocks` with the compiled function of the structure."""
    if wanted & ORACLES and certainty_of(problem) == UPPER_BOUNDED:
        wanted |= BOUNDS
    run = lists_driver if answers.m > 1 else answers_driver
    run(problem)(problem, w, answers.m, pool, np.array([wanted]), blocks, base, answers)


def call_oracles(problem: Problem, w: np.ndarray, blocks: np.ndarray, *, m: int = 1) -> Answers:
    """One oracle call for each of `blocks` at w (d,), one after another: a `BlockFunction`, given m."""
    answers = Answers.empty(problem, blocks.size, m)
    pool = empty_pool(0, 0, answers.vertex.shape[1], answers.vertex.dtype)
    run_driver(problem, frozen(w), pool, ORACLES, blocks, np.empty(0), answers)
    check_answers(answers, blocks, certainty_of(problem))
    return answers


def answers_at(
    problem: Problem, w: np.ndarray, blocks: range | np.ndarray, spread: Spread = HERE, m: int = 1
) -> Answers:
    """One oracle call for each of `blocks` at the same w (d,), wherever `spread` says, in the order of `blocks`.

    Each returns up to m labellings.
    """
    if len(blocks) == 0:
        return Answers.empty(problem, 0, m)
    return Answers.joined(problem, spread.blocks(partial(call_oracles, m=m), problem, w, blocks))


def bases(
    problem: Problem,
    w: np.ndarray,
    pool: Pool,
    spread: Spread = HERE,
    blocks: np.ndarray | None = None,
    m: int = 1,
) -> np.ndarray:
    """float64, as many as `blocks` (int64; None: all, in order): ell_i + <theta_i, mu_i>, on this process's threads.

    By the code that also asks for m labellings, so that both parts of a gap round alike.
    """
    every = np.arange(problem.n) if blocks is None else blocks
    base, w, answers = np.empty(every.size), frozen(w), Answers.empty(problem, 0, m)

    def part(start: int, stop: int) -> None:
        run_driver(problem, w, pool, BASES, every[start:stop], base[start:stop], answers)

    spread.over_threads(part, work_before(problem, blocks))
    return base


def load_oracles(problem: Problem, m: int = 1) -> None:
    """Compile or load what an exact pass calls."""
    call_oracles(problem, np.empty(0), np.empty(0, np.int64), m=m)


def check_answers(answers: Answers, blocks: np.ndarray, certainty: str = EXACT) -> None:
    """Raise ValueError, naming the block, if an answer contradicts what the structure says of its oracle.

    An exact oracle's value is never below the truth's. That of an approximate one may be; the truth's value then replaces
    it, for it is the better estimate. A bound below the oracle's own value is an error, and so is a further labelling
    that is worth more than the first.
    """
    truth = answers.h - answers.hinge
    size = ROUNDING * (np.abs(answers.losses) + np.abs(answers.h) + np.abs(truth))
    more = answers.most - answers.h
    wrong = more > ROUNDING * (np.abs(answers.losses) + np.abs(answers.h) + np.abs(answers.most))
    if wrong.any():
        k = int(np.argmax(wrong))
        raise ValueError(
            f"max_oracles: block {blocks[k]}: one of its further labellings scores {more[k]:.3g} above the first (loss "
            "included); the first has to be the best. Check max_oracles, value and loss of this structure."
        )
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


# -- how many labellings a call returns, and how many a block keeps: by counts and bytes, not by a clock ---
AUTO = 0
"""`solver.n_best`: as many as `by_cost` says."""

FEW, MOST = 4, 16
"""Most labellings a call where calls are cheap, and anywhere."""

ENTRIES = 2.0
"""Entries of a block for each labelling of a list. Shorter lists save few calls: they differ in an entry or two each."""

VISITS = 2.0
"""Visits at the price of a call for each labelling that an expensive call returns."""

KEPT = 12
"""A block keeps so many times the labellings of a call, where memory allows it and the options do not ask for more."""

SOONER = 3
"""Labellings without use are dropped after this share of the usual number of passes: most of a list are never chosen, and
the squared distances of each to all others take most of the time of the passes over the cache."""

ANSWERS, DISTANCES = 1 << 28, 1 << 30
"""Bytes for the answers of a pass, and for the squared distances between all labellings that blocks may keep."""


def labellings(problem: Problem, n_best: int) -> int:
    """How many labellings a call returns, where `n_best` are asked for; 0: as many as pay."""
    if n_best == 1 or not lists_several(problem):
        return 1
    return n_best if n_best > AUTO else by_cost(problem)


def room(problem: Problem, m: int, capacity: int) -> int:
    """Labellings that a block keeps, where a call returns m and the options ask for `capacity`."""
    return capacity if m == 1 else max(capacity, m, min(KEPT * m, int((DISTANCES / (8.0 * problem.n)) ** 0.5)))


def check_listing(problem: Problem, n_best: int) -> None:
    """Raise ValueError if several labellings are asked for and the structure's max-oracle returns one."""
    if n_best > 1 and not lists_several(problem):
        raise ValueError(
            f"solver.n_best: {n_best} labellings a call are asked for, but the max-oracle of {type(problem).__name__} "
            "returns one; use 1, or 0 for as many as pay"
        )


def by_cost(problem: Problem) -> int:
    """A labelling for every `VISITS` visits that a call costs, at most `MOST`; fewer to save memory.

    Two calls of an exact pass have 10 to 200 visits between them, and each visit scores what the lists have added. Where a
    call costs as much as a few visits, lists still pay in seconds if `FEW` labellings cover a block: its cached passes then
    need fewer steps. Where more would be needed, one labelling is fastest.
    """
    cost = float(optional_of(problem, "oracle_cost"))
    covering = round(float(problem.label_ptr[-1]) / problem.n / ENTRIES)
    cheap = covering if covering <= FEW else 1
    bytes_of_one = problem.n * max_label_length(problem) * problem.truth.itemsize
    return max(1, min(max(cheap, int(cost / VISITS)), MOST, ANSWERS // max(bytes_of_one, 1)))
