"""Margin vectors psi_i(y) = B_i (m_i(y_i) - m_i(y)) of cached labellings, kept where a block's features are much larger.

A step reads the features of its block twice: for the scores of the cached labellings, and to push its move into w. A
segmented image has megabytes of them, and psi_i(y) has d numbers. These are the planes of S15 (section 3.3); with them

    L_i(y) + <theta_i, m_i(y)> = L_i(y) - <w, psi_i(y)> + <theta_i, m_i(y_i)>,     w += scale gamma (psi_i(y) - psi_i(z))

for a pairwise move of weight gamma from z to y, and the last term of the scores is the same for all labellings of a block.
So only an oracle call needs theta_i. The vectors are derived from the pool: each is computed from the truth and its own
labelling when it is first needed, never from another vector, so that a resumed solve computes the same bits. Nor does it
matter that they are forgotten, and computed again as steps need them, when new labellings come to more than `MOST_BYTES`.

`Margins` is what a method asks: steps, gaps and derived state, as `loop`, `gaps` and `state` compute them by features. Its
compiled code is in `block.views.margins` and `margin_passes`. `Pool.row` is an atom's row here (where margins are kept,
`distances` are not).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np

from gapwise.stages.problems.capabilities import optional_of
from gapwise.stages.problems.protocol import Problem
from gapwise.stages.solver.codes import MARGINS_FULL
from gapwise.stages.solver.loop import margin_steps_driver
from gapwise.stages.solver.margin_passes import margin_derive_driver, margin_gaps_driver
from gapwise.stages.solver.running import Flags, State
from gapwise.stages.solver.state import Sums
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


@dataclass
class Margins:
    """The margin vectors of a solver's pool, and what is computed from them."""

    rows: Rows

    @classmethod
    def at_rebase(cls, known: Self | None, problem: Problem, pool: Pool, keep: bool) -> Self | None:
        """The vectors to keep from this rebase point on, if any (`keep`, by `block.views.chosen`); `known`: those so far."""
        if keep == (known is not None):
            return known
        pool.row[:] = -1  # rows of `distances` are not those of margin vectors
        return cls(no_rows(problem.d)) if keep else None

    def holds(self, pool: Pool) -> bool:
        """Whether there may be vectors of all atoms at once, which `gaps` and `derive` need."""
        return int(pool.counts.sum()) <= most_rows(self.rows.psi.shape[1])

    def make_room(self, pool: Pool) -> None:
        """Find free rows (`with_rows`)."""
        self.rows = with_rows(self.rows, pool)

    def steps(
        self, P: Problem, S: State, flags: Flags, rng: np.random.Generator, order: np.ndarray, steps: int
    ) -> tuple[int, int]:
        """Pairwise steps by margin vectors: (steps made, why it returned), as `loop.steps_driver`."""
        made, why = 0, MARGINS_FULL
        while why == MARGINS_FULL:
            more, why = margin_steps_driver(P)(P, S, self.rows, flags, rng, order[made:], steps - made)
            made += more
            if why == MARGINS_FULL:
                self.make_room(S.pool)
        return made, why

    def gaps(self, P: Problem, pool: Pool, w: np.ndarray, gap: np.ndarray, start: int, stop: int) -> None:
        """Block gaps over cached labellings, as `gaps.cached_driver`; after `make_room`."""
        margin_gaps_driver(P)(P, pool, self.rows, w, gap, start, stop)

    def derive(self, P: Problem, S: State, scale: float, sums: Sums, chunk: int, start: int, stop: int) -> None:
        """Block states and u from the pool, as `state.derive_driver`; after `make_room`."""
        margin_derive_driver(P)(P, S, self.rows, scale, sums, chunk, start, stop)
