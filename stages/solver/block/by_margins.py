"""Margin vectors psi_i(y) = B_i (m_i(y_i) - m_i(y)) of cached labellings, kept where a block's features are much larger.

A step reads the features of its block twice: for the scores of the cached labellings, and to push its move into w. A
segmented image has megabytes of them, and psi_i(y) has d numbers. These are the planes of S15 (section 3.3); with them

    L_i(y) + <theta_i, m_i(y)> = L_i(y) - <w, psi_i(y)> + <theta_i, m_i(y_i)>,     w += scale gamma (psi_i(y) - psi_i(z))

for a pairwise move of weight gamma from z to y, and the last term of the scores is the same for all labellings of a block.
So only an oracle call needs theta_i. The vectors are derived from the pool: each is computed from the truth and its own
labelling when it is first needed, never from another vector, so that a resumed solve computes the same bits. Nor does it
matter that they are forgotten, and computed again as steps need them, when new labellings come to more than `MOST_BYTES`.

`Margins` is what a method asks: gaps and derived state, as `exact` and `state` compute them by features.
`Pool.row` is an atom's row here (where margins are kept, `pairs` are not).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
from numba import njit

from gapwise.stages.problems.capabilities import optional_of
from gapwise.stages.problems.compiled import driver, inner
from gapwise.stages.problems.protocol import FAST, JIT, PLAIN, Problem, add_scaled, dot, largest, widest_block
from gapwise.stages.problems.simd import one_type
from gapwise.stages.solver.block.loop import steps_by
from gapwise.stages.solver.block.step import note_answer, survey
from gapwise.stages.solver.codes import PAIRWISE
from gapwise.stages.solver.running import State
from gapwise.stages.solver.state import Sums, block_ell, fold_due
from gapwise.stages.solver.supports import Pool, blocks_of

LARGER = 16
"""Margin vectors are kept where a block has more than this many times as many features as there are weights."""

MOST_BYTES = 1 << 30
"""They never take more than this, and are not kept where those of the atoms at hand would."""

GROWTH = 4
"""Rows are made for this many times the vectors needed; the last copy is of at most that share of `MOST_BYTES`."""

SPARE = 64
"""Free rows beyond those that one step may need."""


class Rows(NamedTuple):
    """Rows for margin vectors."""

    psi: np.ndarray
    """float64, (rows, d)"""
    free: np.ndarray
    """int64, (rows,): the free rows are free[:left[0]]"""
    left: np.ndarray
    """int64, (1,)"""


def most_rows(d: int) -> int:
    """The number of vectors of d numbers that `MOST_BYTES` hold."""
    return MOST_BYTES // (8 * d)


def worth_keeping(problem: Problem, atoms: int) -> bool:
    """Whether margin vectors save time, and those of so many atoms are not too large."""
    return optional_of(problem, "features_per_block") > LARGER * problem.d and atoms <= most_rows(problem.d)


def no_rows(d: int) -> Rows:
    """Room for no vector of d numbers."""
    return Rows(np.empty((0, d)), np.empty(0, np.int64), np.zeros(1, np.int64))


def with_rows(known: Rows, pool: Pool) -> Rows:
    """The same vectors, with a free row for every atom that lacks one and for as many more as a step may need.

    If all these rows would take more than `MOST_BYTES`, as many as that holds are left, all of them free: every vector is
    then forgotten. There are always enough for one step.
    """
    rows, d = known.psi.shape
    for_a_step = 2 * int(pool.counts.max()) + SPARE
    needed, most = int(pool.counts.sum()) + for_a_step, max(most_rows(d), for_a_step)
    if needed > most:
        pool.row[:] = -1
        needed = most
    held = pool.row[blocks_of(pool) >= 0]
    held = held[held >= 0]
    psi = known.psi
    if rows < needed:
        # with much room to grow, since rows take no memory before they are used, and so that only few are ever copied
        psi = np.empty((GROWTH * needed if GROWTH**2 * needed <= most else most, d))
        end = int(held.max(initial=-1)) + 1
        psi[:end] = known.psi[:end]
    taken = np.zeros(len(psi), bool)
    taken[held] = True
    unused = np.flatnonzero(~taken)[::-1]
    free = np.empty(len(psi), np.int64)
    free[: unused.size] = unused
    return Rows(psi, free, np.array([unused.size]))


class ByMargins(NamedTuple):
    """The vectors, `Rows`, and workspace, as that of `by_features.ByFeatures`."""

    psi: np.ndarray
    free: np.ndarray
    left: np.ndarray
    theta: np.ndarray
    delta: np.ndarray
    y: np.ndarray
    slots: np.ndarray
    values: np.ndarray
    work: object
    most: np.ndarray
    """int64, (1,): the most atoms of a block"""

    def score_atoms(self, P, S, i):
        count, delta = S.pool.counts[i], self.delta[: P.local_ptr[i + 1] - P.local_ptr[i]]
        score_margins(P, S.pool, self, i, S.w, delta, self.slots[:count], self.values[:count])
        return count

    def ask_oracle(self, P, S, flags, i, base):
        size, first, last = P.local_ptr[i + 1] - P.local_ptr[i], P.label_ptr[i], P.label_ptr[i + 1]
        theta, y = self.theta[:size], self.y[: last - first]
        P.scores(i, S.w, theta)
        loss = P.max_oracle(i, theta, y, self.work)
        common = P.value(i, theta, one_type(P.truth[first:last]))
        target, h = note_answer(P, S, flags, i, theta, y, loss, base + common)
        self.most[0] = max(self.most[0], S.pool.counts[i])
        return target, h - common, loss

    def measure_move(self, P, S, i, direction, target, away):
        delta = self.delta[: P.local_ptr[i + 1] - P.local_ptr[i]]
        to, from_ = margin(P, S.pool, self, i, target, delta), margin(P, S.pool, self, i, away, delta)
        return distance2(self.psi[to], self.psi[from_])

    def push_move(self, P, S, i, direction, target, away, c, u):
        add_difference(-c, self.psi[S.pool.row[target]], self.psi[S.pool.row[away]], u)

    def allowed_moves(self, flags):
        return PAIRWISE

    def fetch(self, P, S, flags, order, k, i):
        pass

    def exhausted(self):
        return self.left[0] <= self.most[0]


@inner(inline="always", **JIT)
def by_margins(P, S, rows):
    """The view of `Rows` with new workspace."""
    widest, slots = widest_block(P.local_ptr), S.pool.alpha.size
    y = np.empty(S.pool.labels.shape[1], P.truth.dtype)
    theta, delta, work = np.empty(widest), np.empty(widest), P.scratch()
    atoms, values = np.empty(slots, np.int64), np.empty(slots)
    most = np.full(1, largest(S.pool.counts))
    return ByMargins(rows.psi, rows.free, rows.left, theta, delta, y, atoms, values, work, most)


@inner(**PLAIN)
def margin(P, pool, margins, i, slot, delta):
    """The row of the margin vector of an atom of block i, which is computed if it is not known."""
    row = pool.row[slot]
    if row < 0:
        margins.left[0] -= 1
        row = margins.free[margins.left[0]]
        pool.row[slot] = row
        first, last = P.label_ptr[i], P.label_ptr[i + 1]
        delta[:] = 0.0
        P.add(i, one_type(P.truth[first:last]), 1.0, delta)
        P.add(i, pool.labels[slot, : last - first], -1.0, delta)
        psi = margins.psi[row]
        psi[:] = 0.0
        P.push(i, 1.0, delta, psi)
    return row


@inner(**PLAIN)
def score_margins(P, pool, margins, i, w, delta, slots, values):
    """The atoms of block i in list order, and values[k] = L_i(y_k) - <w, psi_i(y_k)>."""
    s = pool.head[i]
    for k in range(slots.size):
        slots[k] = s
        values[k] = pool.losses[s] - dot(w, margins.psi[margin(P, pool, margins, i, s, delta)])
        s = pool.next[s]


@inner(**FAST)
def distance2(a, b):
    """||a - b||^2."""
    total = 0.0
    for j in range(a.size):
        total += (a[j] - b[j]) * (a[j] - b[j])
    return total


@inner(**FAST)
def add_difference(c, a, b, u):
    """u += c (a - b)."""
    for j in range(u.size):
        u[j] += c * (a[j] - b[j])


@driver
def margin_steps_driver(fingerprint: str) -> Callable[..., tuple[int, int]]:
    """`run(P, S, rows, flags, rng, order, steps) -> (steps made, why it returned)`: `loop.steps_driver` by `Rows`."""

    @njit(cache=True, **JIT)
    def run(P, S, rows, flags, rng, order, steps):
        fingerprint  # noqa: B018
        return steps_by(P, S, by_margins(P, S, rows), flags, rng, order, steps)

    return run


@driver
def margin_gaps_driver(fingerprint: str) -> Callable[..., None]:
    """`gaps(P, pool, margins, w, gap, start, stop)`, as `exact.cached_driver`; every atom without a row needs a free one."""

    @njit(cache=True, **JIT)
    def gaps(P, pool, margins, w, gap, start, stop):
        fingerprint  # noqa: B018
        delta, most = np.empty(widest_block(P.local_ptr)), largest(pool.counts)
        slots, values = np.empty(most, np.int64), np.empty(most)
        for i in range(start, stop):
            count, size = pool.counts[i], P.local_ptr[i + 1] - P.local_ptr[i]
            score_margins(P, pool, margins, i, w, delta[:size], slots[:count], values[:count])
            seen = survey(pool, slots, values, count, False)
            gap[i] = max(seen.h_best - seen.base, 0.0) / gap.size

    return gaps


@driver
def margin_derive_driver(fingerprint: str) -> Callable[..., None]:
    """`derive(P, S, margins, scale, sums, chunk, start, stop)`, as `state.derive_driver`; every atom without a row needs
    a free one."""

    @njit(cache=True, **JIT)
    def derive(P, S, margins, scale, sums, chunk, start, stop):
        fingerprint  # noqa: B018
        delta = np.empty(widest_block(P.local_ptr))
        for i in range(start, stop):
            block_ell(S.pool, S.ell, i)
            s = S.pool.head[i]
            while s >= 0:
                if S.pool.alpha[s] > 0.0:
                    row = margin(P, S.pool, margins, i, s, delta[: P.local_ptr[i + 1] - P.local_ptr[i]])
                    add_scaled(scale * S.pool.alpha[s], margins.psi[row], sums.part)
                s = S.pool.next[s]
            fold_due(sums, i + 1, chunk, S.ell.size)

    return derive


@dataclass
class Margins:
    """The margin vectors of a solver's pool, and what is computed from them."""

    rows: Rows

    @classmethod
    def at_rebase(cls, known: Self | None, problem: Problem, pool: Pool, keep: bool) -> Self | None:
        """The vectors to keep from this rebase point on, if any (`keep`); `known`: those so far."""
        if keep == (known is not None):
            return known
        pool.row[:] = -1  # rows of `pairs` are not those of margin vectors
        return cls(no_rows(problem.d)) if keep else None

    def holds(self, pool: Pool) -> bool:
        """Whether there may be vectors of all atoms at once, which `gaps` and `derive` need."""
        return int(pool.counts.sum()) <= most_rows(self.rows.psi.shape[1])

    def make_room(self, pool: Pool) -> None:
        """Find free rows (`with_rows`)."""
        self.rows = with_rows(self.rows, pool)

    def gaps(self, P: Problem, pool: Pool, w: np.ndarray, gap: np.ndarray, start: int, stop: int) -> None:
        """Block gaps over cached labellings, as `exact.cached_driver`; after `make_room`."""
        margin_gaps_driver(P)(P, pool, self.rows, w, gap, start, stop)

    def derive(self, P: Problem, S: State, scale: float, sums: Sums, chunk: int, start: int, stop: int) -> None:
        """Block states and u from the pool, as `state.derive_driver`; after `make_room`."""
        margin_derive_driver(P)(P, S, self.rows, scale, sums, chunk, start, stop)
