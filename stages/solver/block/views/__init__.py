"""The views: how a step scores the atoms of a block, measures a move, and applies it. One file each.

A view is a ``NamedTuple`` of arrays, its data and its workspace, whose ordinary methods are compiled as those of a structure
are (`stages.problems.protocol`): a call ``V.score_atoms(...)`` goes to the class's own method, so numba specialises the one
step for each pair of structure and view.

| view | scores of atoms | norm of a move | after a move |
|---|---|---|---|
| `features` | B_i^T w, computed from features | B_i delta, from features or a Gram matrix | B_i^T w again, or its change |
| `margins` | inner products of w and vectors kept for each atom | difference of two vectors | inner products again |
| `distances` | B_i^T w, once a visit | squared distances kept between atoms | change of the scores; u follows once a visit |
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from gapwise.stages.problems.protocol import Problem, compile_methods
from gapwise.stages.solver.block.step import Seen
from gapwise.stages.solver.running import Flags, State


class View(Protocol):
    """How a step scores the atoms of a block, measures a move and makes it.

    Attributes
    ----------
    slots : int64 array
        Slots of the scored atoms in the pool; the first `count` are in use.
    values : float64 array
        Their scores h.

    Notes
    -----
    Arguments of the methods:

    P : Problem
        n blocks, d weights.
    S : State
        The arrays of the solve.
    flags : Flags
        The options, as numbers.
    i, k : int
        The block; the number of the visit in `order`.
    order : int64 array
        Blocks of the visits to come.
    turn, count : int
        Steps of this visit so far; number of scored atoms.
    base : float
        Sum of the scored atoms' scores times their weights.
    seen : Seen
        What `survey` has returned.
    direction : int
        FW, PAIRWISE or AWAY.
    target, away : int
        Slots of the vertex and of the worst atom with weight.
    h, gamma : float
        Score of the vertex; length of the move.

    Methods are compiled and raise nothing.

    Examples
    --------
    The view by features, but with pairwise moves alone, whatever the step rule allows. Its method is ordinary Python, and
    is compiled where compiled code calls it:

    >>> from collections import namedtuple
    >>> from numba import njit
    >>> from gapwise.stages.solver.block.views.features import ByFeatures
    >>> from gapwise.stages.solver.codes import FW, PAIRWISE
    >>> class Pairs(ByFeatures):
    ...     def allowed_moves(self, flags):
    ...         return flags[0] & PAIRWISE
    >>> numbers = np.empty(3)
    >>> view = Pairs(numbers, numbers, numbers, numbers, np.array([0, 1, 2]), np.array([0.5, 2.0, 1.0]), ())
    >>> moves = njit(lambda view, kinds: view.allowed_moves((kinds,)))(view, FW | PAIRWISE)
    >>> moves == PAIRWISE
    True

    The other methods are inherited. This one finds the best and the worst of three atoms:

    >>> Pool, Solve = namedtuple("Pool", "alpha"), namedtuple("Solve", "pool")
    >>> seen = view.survey(Solve(Pool(np.full(3, 1 / 3))), (), 3)
    >>> int(seen.best), int(seen.away)
    (1, 0)
    """

    @property
    def slots(self) -> np.ndarray: ...
    @property
    def values(self) -> np.ndarray: ...

    def score_atoms(self, P: Problem, S: State, flags: Flags, i: int, turn: int) -> int:
        """slots[:count], values[:count] <- the block's atoms in list order and their scores h; returns count.

        The scores may lack a term common to all atoms of the block. On a later `turn` the view knows of `follow_move`.
        """

    def survey(self, S: State, flags: Flags, count: int) -> Seen:
        """What is `Seen` of the scored atoms (`step.survey`); `best` may be sought among some of them only."""

    def mean_score(self, P: Problem, S: State, flags: Flags, i: int, base: float) -> float:
        """sum_y alpha(y) h(y), which is `base` if it is summed over the scored atoms."""

    def allowed_moves(self, flags: Flags) -> int:
        """Bits of the moves that a step may make; a constant leaves the others out of the code."""

    def vertex_source(self, flags: Flags) -> int:
        """CACHE_FIRST to CACHE_ONLY; a constant leaves the others out of the code."""

    def ask_oracle(self, P: Problem, S: State, flags: Flags, i: int, base: float) -> tuple[int, float, float]:
        """(slot or -1, h, L_i) of the max-oracle's answer at the current w, which is noted (`step.note_answer`)."""

    def measure_move(self, P: Problem, S: State, flags: Flags, i: int, direction: int, target: int, away: int) -> float:
        """||B_i delta||^2; the view may keep B_i delta for `push_move` and `follow_move`."""

    def push_move(
        self, P: Problem, S: State, flags: Flags, i: int, direction: int, target: int, away: int, gamma: float
    ) -> None:
        """Move u, and what else the view keeps up to date, by the move measured last; alpha has not moved yet."""

    def follow_move(
        self, P: Problem, S: State, flags: Flags, i: int, direction: int, target: int, away: int, gamma: float
    ) -> None:
        """Note that w has changed by a move, before `score_atoms` is called for another turn."""

    def end_visit(self, P: Problem, S: State, flags: Flags, i: int) -> None:
        """Clean up after the steps of a block."""

    def fetch(self, P: Problem, S: State, flags: Flags, order: np.ndarray, k: int, i: int) -> None:
        """Fetch what this visit and the next ones will read (`prefetching`); changes nothing."""

    def exhausted(self, S: State) -> bool:
        """Whether the view lacks room for another step."""


compile_methods(View)
