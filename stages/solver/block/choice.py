"""Which move of a block raises the dual most: O16 Alg. 3 (pairwise), Alg. 4 (away), or the best of all allowed.

With `flags.by_slope` only the allowed move of largest slope is measured (O16 Alg. 4); otherwise each of them, and the one
that gains most is made. Moves differ in direction and gamma_max (`moves`); the line search is one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from gapwise.stages.problems.inner import inner
from gapwise.stages.problems.protocol import INLINED, PLAIN
from gapwise.stages.solver.block.moves import Move, move, moves
from gapwise.stages.solver.directions import gain, largest_step, line_search, slope_of
from gapwise.stages.solver.steps import AWAY, FW

ALL: tuple[Move, ...] = tuple(move(name) for name in moves())
N_MOVES = len(ALL)
DIRECTIONS = tuple(move.direction for move in ALL)


class Seen(NamedTuple):
    """A block as its view scores it; a slot of the pool is -1 if there is none."""

    base: float
    """sum_y alpha(y) h(y)"""
    best: int
    """slot of the best atom, weight or not"""
    h_best: float
    away: int
    """slot of the worst atom with weight"""
    h_away: float
    active: int
    """atoms with weight"""


class Choice(NamedTuple):
    """A move of a block; gamma is 0 if none raises the dual."""

    direction: int
    gamma: float
    slope: float
    curvature: float
    """||B_i delta||^2"""


@inner(**PLAIN)
def survey(pool, slots, values, count):
    """What is `Seen` of the first `count` of `slots`, whose scores h are `values`. Few branches (O16 Alg. 3-5)."""
    best, away, base, h_best, h_away, active = -1, -1, 0.0, -np.inf, np.inf, 0
    for k in range(count):
        h, alpha = values[k], pool.alpha[slots[k]]
        base += alpha * h
        best, h_best = (k, h) if h > h_best else (best, h_best)
        worst = h if alpha > 0.0 else np.inf
        away, h_away = (k, worst) if worst < h_away else (away, h_away)
        active += 1 if alpha > 0.0 else 0
    return Seen(base, slots[best] if best >= 0 else -1, h_best, slots[away] if away >= 0 else -1, h_away, active)


def _shortened_by(bit: int, gamma_max: Callable[[float], float], others: Callable[..., float]) -> Callable[..., float]:
    """The function that takes gamma_max of move `bit` from the function given, and that of other moves from `others`."""

    @inner(**PLAIN)
    def shortened(number, whole):
        if number == bit:
            return gamma_max(whole)
        return others(number, whole)

    return shortened


@inner(**PLAIN)
def _whole(number, whole):
    return whole


def _composed() -> Callable[..., float]:
    """gamma_max of all moves in one function."""
    composed: Callable[..., float] = _whole
    for number, kind in enumerate(ALL):
        if kind.gamma_max is not None:
            composed = _shortened_by(number, kind.gamma_max, composed)
    return composed


gamma_max_of = _composed()
"""`gamma_max_of(bit, whole)`: the largest step of a move, given the step that ends on the boundary of the simplex."""


@inner(**INLINED)
def possible(direction, seen, target):
    """Whether there is a direction: an away one needs two active atoms, others a vertex, a pairwise one another atom."""
    if direction == AWAY:
        return seen.active > 1
    return target >= 0 and (direction == FW or target != seen.away)


@inner(**INLINED)
def steepest(kinds, seen, target, h):
    """The bit of the allowed move of largest slope (O16 Alg. 4)."""
    bits, most = 0, -np.inf
    for bit in range(N_MOVES):
        if kinds & (1 << bit) and possible(DIRECTIONS[bit], seen, target):
            slope = slope_of(DIRECTIONS[bit], h, seen.base, seen.h_away)
            if bits == 0 or slope > most:
                bits, most = 1 << bit, slope
    return bits


@inner(**INLINED)
def choose(P, S, V, flags, i, seen, target, h):
    """The `Choice` for block i with the vertex in slot `target`, of score h; -1 if no move to the vertex raises the dual."""
    kinds = V.allowed_moves(flags)
    if flags.by_slope and kinds & (kinds - 1):  # where a view allows one move only, none of this is compiled in
        kinds = steepest(kinds, seen, target, h)
    taken, gamma, slope_taken, norm2_taken, most, measured = FW, 0.0, 0.0, 0.0, 0.0, 0
    for bit in range(N_MOVES):
        direction = DIRECTIONS[bit]
        if kinds & (1 << bit) == 0 or not possible(direction, seen, target):
            continue
        slope = slope_of(direction, h, seen.base, seen.h_away)
        if slope <= 0.0:
            continue
        norm2 = V.measure_move(P, S, flags, i, direction, target, seen.away)
        measured = direction
        whole = 1.0 if direction == FW else largest_step(direction, S.pool.alpha[seen.away])
        length = line_search(slope, norm2, flags.scale, gamma_max_of(bit, whole))
        improvement = gain(length, slope, norm2, flags.scale)
        if improvement > most:
            most, taken, gamma, slope_taken, norm2_taken = improvement, direction, length, slope, norm2
    if gamma > 0.0 and taken != measured:  # a later candidate has overwritten the view's workspace
        V.measure_move(P, S, flags, i, taken, target, seen.away)
    return Choice(taken, gamma, slope_taken, norm2_taken)
